"""Vectors and queries for the benchmark of nearest neighbours, and which neighbours are right.

BENCH_VECTORS names a folder with `vectors.npy` and `queries.npy`, (rows, dimensions) of unit length and type float32:
embeddings of real texts. Without it, vectors are made up to be as hard: they lie in clusters that overlap, near a
surface of few dimensions, and queries a little beside that surface, as short queries do beside long texts.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

HITS = 10
QUERIES = 1000

Vectors = NDArray[np.float32]
Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class Data:
    """`truth[q]`: the numbers of the nearest vectors of query q."""

    name: str
    vectors: Vectors
    queries: Vectors
    truth: NDArray[np.int64]

    @property
    def count(self) -> int:
        return len(self.vectors)

    @property
    def dimensions(self) -> int:
        return int(self.vectors.shape[1])

    def truth_within(self, allowed: Flags) -> NDArray[np.int64]:
        """The nearest among some of the vectors."""
        numbers = np.flatnonzero(allowed)
        return numbers[nearest(self.vectors[numbers], self.queries)]


def made_up(count: int, dimensions: int, surface: int) -> Data:
    """`surface`: the dimensions of the surface that the vectors are near."""
    random = np.random.default_rng(20)
    plane = random.standard_normal((surface, dimensions), np.float32)
    spread = np.arange(1, surface + 1, dtype=np.float32) ** np.float32(-0.2)
    middles = random.standard_normal((max(20, count // 500), surface), np.float32)

    def some(number: int, noise: float) -> Vectors:
        places = middles[random.integers(0, len(middles), number)]
        places = (np.float32(0.6) * places + random.standard_normal(places.shape, np.float32)) * spread
        return places @ plane + np.float32(noise) * random.standard_normal((number, dimensions), np.float32)

    vectors, shift = unit(some(count, 1.0)), np.float32(0.8) * random.standard_normal(dimensions, np.float32)
    queries = unit(some(QUERIES, 1.4) + shift)
    return Data(f"made up, {count // 1000}k by {dimensions}", vectors, queries, nearest(vectors, queries))


def embeddings(count: int) -> Data:
    """Of real texts where there are some; else made up ones of 384 dimensions."""
    if not (folder := os.environ.get("BENCH_VECTORS", "")):
        return made_up(count, 384, 48)
    vectors: Vectors = np.ascontiguousarray(np.load(Path(folder) / "vectors.npy", mmap_mode="r")[:count])
    queries: Vectors = np.ascontiguousarray(np.load(Path(folder) / "queries.npy")[:QUERIES])
    name = f"embeddings, {len(vectors) // 1000}k by {vectors.shape[1]}"
    return Data(name, vectors, queries, nearest(vectors, queries))


def unit(vectors: Vectors) -> Vectors:
    found: Vectors = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return found


def nearest(vectors: Vectors, queries: Vectors) -> NDArray[np.int64]:
    """For each query the numbers of the vectors with the greatest dot products, in no order."""
    found = np.empty((len(queries), min(HITS, len(vectors))), np.int64)
    for start, products in _products(vectors, queries):
        places = np.argpartition(-products, found.shape[1] - 1, axis=1)[:, : found.shape[1]]
        found[start : start + len(places)] = places
    return found


def _products(vectors: Vectors, queries: Vectors) -> Iterator[tuple[int, Vectors]]:
    for start in range(0, len(queries), 50):
        yield start, queries[start : start + 50] @ vectors.T


def filters(data: Data) -> dict[str, Flags]:
    """By name: random shares of the documents, and those that are all near to or far from the queries' middle."""
    random = np.random.default_rng(21).random(data.count)
    likeness = data.vectors @ data.queries.mean(axis=0)
    found = {f"filter {share} %": random < share / 100 for share in (1, 10, 50)}
    found["filter 10 %, far from the queries"] = likeness < np.quantile(likeness, 0.1)
    found["filter 10 %, near the queries"] = likeness > np.quantile(likeness, 0.9)
    return found
