"""The plain twin of core/rank/bm25.cpp: what terms add to the bm25 of documents.

Vespa: https://docs.vespa.ai/en/ranking/bm25.html
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


def add_bm25(
    occurrences: NDArray[np.int32],
    lengths: NDArray[np.int32],
    weight: float,
    k1: float,
    b: float,
    average_length: float,
    scores: NDArray[np.float64],
) -> None:
    """Adds to each of `scores` what a term of this weight (its idf) adds; nothing where it does not occur."""
    frequencies = occurrences.astype(np.float64)
    saturation = k1 * (1.0 - b) + k1 * b * (lengths / average_length)
    with np.errstate(all="ignore"):  # 0 / 0 where the term does not occur and k1 is 0
        added = frequencies * (weight * (k1 + 1.0)) / (frequencies + saturation)
    scores += np.where(occurrences > 0, added, 0.0)


def add_bm25_of(
    occurrences: Sequence[NDArray[np.int32]],
    lengths: NDArray[np.int32],
    weights: Sequence[float],
    k1: float,
    b: float,
    average_length: float,
    scores: NDArray[np.float64],
) -> None:
    """Adds to each of `scores` what terms of these weights add, one after another. `occurrences`: of each term, those
    in each document."""
    for found, weight in zip(occurrences, weights, strict=True):
        add_bm25(found, lengths, weight, k1, b, average_length, scores)
