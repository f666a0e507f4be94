"""Text and vectors in one request over HTTP: 100 of each, fused by their places, ten hits.

Beside it tantivy and hnswlib, glued in this process: the best 100 of each, the same fusion in Python. Bodies are those
of the corpus. Vectors are of 384 cells, of length 1, around some hundred middles; `BENCH_VECTORS` names an .npz file
with `documents` and `queries` instead.
"""

from __future__ import annotations

import importlib
import json
import os
import random
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import cycle, islice
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from bench.connection import Connection
from bench.corpus import CACHE, SEED, query_texts, records
from bench.filled import fill
from bench.layers import NothingMeasured
from bench.report import Report, Row
from bench.service import Running, data_directory, paperwasp

APPLICATION: Final = Path(__file__).parent / "hybrid_application"
SIZE: Final = 384
MIDDLES: Final = 300
WANTED: Final = 100
EXPLORED: Final = 128
RANK_CONSTANT: Final = 60
HITS: Final = 10
LEAST_SAME: Final = 0.9
"""Of the peers' ten hits: tantivy rounds the lengths of texts, which has some change places."""
MOST_VECTORS, MOST_FUSED = 1.3, 1.2
"""Of what the peers take in process."""
_WORD: Final = re.compile("[a-z0-9]+")
Vectors = NDArray[np.float32]
Ranked = list[int]


@dataclass(frozen=True)
class Options:
    documents_count: int = 20_000
    queries_count: int = 300
    passes: int = 3


@dataclass(frozen=True)
class Asked:
    """One query: words, and a vector."""

    words: str
    vector: Vectors


def run(report: Report, options: Options) -> None:
    texts = _texts(options.documents_count)
    vectors, asked = _vectors(options.documents_count), _queries(options)
    peers = _Peers(texts, vectors)
    with data_directory() as data, _filled(data, texts, vectors) as server:
        connection = Connection(server.port)
        kinds = {kind: [_request(one, kind) for one in asked] for kind in ("fused", "words", "vectors")}
        shares = {
            kind: agreement([_numbers(connection, each) for each in kinds[kind]], [search(one) for one in asked])
            for kind, search in (("words", peers.words), ("vectors", peers.vectors), ("fused", peers.fused))
        }
        spent: dict[str, list[float]] = {kind: [] for kind in (*kinds, "glued", "tantivy", "hnswlib")}
        for _ in range(options.passes):
            for kind, requests in kinds.items():
                spent[kind].append(_server_us(server, connection, requests))
            for name, search in (("glued", peers.fused), ("tantivy", peers.words), ("hnswlib", peers.vectors)):
                spent[name].append(_thread_us(search, asked))
        connection.close()
    _report(report, {name: min(times) for name, times in spent.items()}, shares, options)


def _report(report: Report, least: Mapping[str, float], shares: Mapping[str, float], options: Options) -> None:
    for kind, work, peer, name, most in (
        ("words", f"best {WANTED} by words", "tantivy", "tantivy", None),
        ("vectors", f"nearest {WANTED} by vectors", "hnswlib", "hnswlib", MOST_VECTORS),
        ("fused", f"{WANTED} of each, fused", "glued", "tantivy + hnswlib glued", MOST_FUSED),
    ):
        ratio = least[kind] / least[peer]
        report.add(
            Row(
                f"hybrid: {work}, over HTTP, {options.documents_count:,} documents",
                f"CPU {least[kind]:.0f} µs",
                f"{name} in process {least[peer]:.0f} µs",
                f"{ratio:.2f}",
                "" if most is None else f"≤ {most:g} of the peers",
                None if most is None else ratio <= most,
            )
        )
    same, work = shares["fused"], "hybrid: of the ten that the peers fuse, ours too"
    report.add(Row(work, f"{same:.2f}", target=f"≥ {LEAST_SAME}", met=same >= LEAST_SAME))
    alone = ", ".join(f"{shares[kind]:.2f} by {kind}" for kind in ("words", "vectors"))
    report.remark(f"hybrid: of the peers' ten are ours, too: {alone}")


def _texts(count: int) -> list[str]:
    """The bodies of the corpus; what comes again has another body after it, so that few have the same score."""
    bodies = [body for _, body in islice(records(), count)]
    return [
        " ".join(bodies[(number + copy * copy) % len(bodies)] for copy in range(number // len(bodies) + 1))
        for number in range(count)
    ]


def _vectors(count: int, seed: int = SEED) -> Vectors:
    given = os.environ.get("BENCH_VECTORS")
    if given:
        loaded: Vectors = np.load(given)["documents" if seed == SEED else "queries"][:count].astype(np.float32)
        return loaded
    middles = np.random.default_rng(SEED).normal(size=(MIDDLES, SIZE))
    chance = np.random.default_rng(seed)
    found = middles[chance.integers(0, MIDDLES, count)] + chance.normal(size=(count, SIZE)) * 1.2
    scaled: Vectors = (found / np.linalg.norm(found, axis=1, keepdims=True)).astype(np.float32)
    return scaled


def _queries(options: Options) -> list[Asked]:
    vectors = _vectors(options.queries_count, SEED + 1)
    return [Asked(words, vector) for words, vector in zip(cycle(_lines()), vectors, strict=False)]


def _lines() -> list[str]:
    """Words that all engines split alike, and none takes for an operator."""
    if os.environ.get("BENCH_QUERIES"):
        return [" ".join(_WORD.findall(text.lower())) for text in query_texts()]
    chance = random.Random(SEED)
    bodies = (body for _, body in islice(records(), 2000))
    words = [word for body in bodies for word in _WORD.findall(body.lower()) if word.isalpha() and len(word) > 3]
    return [" ".join(chance.sample(words, 3)) for _ in range(500)]


@contextmanager
def _filled(data: Path, texts: Sequence[str], vectors: Vectors) -> Iterator[Running]:
    fill(data, _feed_file(texts, vectors), APPLICATION)
    with paperwasp(data, None) as server:
        yield server


def _feed_file(texts: Sequence[str], vectors: Vectors) -> Path:
    path = CACHE / f"feed-hybrid-{len(texts)}.jsonl"
    with path.open("w", encoding="utf-8") as file:
        for number, (text, vector) in enumerate(zip(texts, vectors.tolist(), strict=True)):
            fields = {"number": number, "body": text, "vector": vector}
            file.write(json.dumps({"put": f"id:bench:article::{number}", "fields": fields}) + "\n")
    return path


def _request(asked: Asked, kind: str) -> bytes:
    notes = f"label: 'near', targetHits: {WANTED}, hnsw.exploreAdditionalHits: {EXPLORED - WANTED}"
    near = f"({{{notes}}}nearestNeighbor(vector, q))"
    words = f"({{targetHits: {WANTED}, defaultIndex: 'body'}}userInput(@words))"
    where = {"fused": f"{words} or {near}", "words": words, "vectors": near}[kind]
    body = {
        "yql": f"select number from article where {where}",
        "words": asked.words,
        "input.query(q)": asked.vector.tolist(),
        "ranking": kind,
        "hits": HITS,
        "noCache": True,
        "presentation.summary": "number",
    }
    if kind != "fused":
        del body["input.query(q)" if kind == "words" else "words"]
    data = json.dumps(body).encode()
    headers = ("Host: localhost", "Content-Type: application/json", f"Content-Length: {len(data)}")
    return "\r\n".join(["POST /search/ HTTP/1.1", *headers, "", ""]).encode() + data


def _answer(connection: Connection, request: bytes) -> bytes:
    connection.send(request)
    while (body := connection.receive()) is None:
        pass
    return body


def _server_us(server: Running, connection: Connection, requests: Sequence[bytes]) -> float:
    before = server.cpu_seconds()
    for request in requests:
        _answer(connection, request)
    return (server.cpu_seconds() - before) / len(requests) * 1e6


def _thread_us(search: Callable[[Asked], Ranked], asked: Sequence[Asked]) -> float:
    before = time.thread_time_ns()
    for one in asked:
        search(one)
    return (time.thread_time_ns() - before) / len(asked) / 1e3


def _numbers(connection: Connection, request: bytes) -> Ranked:
    root = json.loads(_answer(connection, request))["root"]
    return [hit["fields"]["number"] for hit in root.get("children", [])]


def agreement(ours: Sequence[Ranked], theirs: Sequence[Ranked]) -> float:
    """The share of the peers' first ten that are among ours, of all queries. Errors: NothingMeasured without any."""
    wanted = [set(found[:HITS]) for found in theirs]
    if not any(wanted):
        raise NothingMeasured("the peers find nothing")
    same = sum(len(found & set(own)) for found, own in zip(wanted, ours, strict=True))
    return same / sum(map(len, wanted))


def fused(*lists: Ranked) -> Ranked:
    """The first ten by their places in some lists: what a list lacks gets nothing for it."""
    scores: dict[int, float] = {}
    for ranked in lists:
        for place, number in enumerate(ranked, 1):
            scores[number] = scores.get(number, 0.0) + 1 / (RANK_CONSTANT + place)
    return sorted(scores, key=lambda number: -scores[number])[:HITS]


class _Peers:
    """tantivy and hnswlib over the same documents, one thread each."""

    def __init__(self, texts: Sequence[str], vectors: Vectors) -> None:
        tantivy: Any = importlib.import_module("tantivy")
        hnswlib: Any = importlib.import_module("hnswlib")
        builder = tantivy.SchemaBuilder()
        builder.add_text_field("text", tokenizer_name="default")
        builder.add_integer_field("number", fast=True)
        self._schema = builder.build()
        self._index = tantivy.Index(self._schema)
        writer = self._index.writer(heap_size=1_000_000_000, num_threads=1)
        for number, text in enumerate(texts):
            writer.add_document(tantivy.Document(text=text, number=number))
        writer.commit()
        writer.wait_merging_threads()
        self._index.reload()
        self._searcher = self._index.searcher()
        self._graph: Any = hnswlib.Index("ip", SIZE)
        self._graph.init_index(len(vectors), M=16, ef_construction=200)
        self._graph.add_items(vectors, num_threads=-1)
        self._graph.set_ef(EXPLORED)
        self._graph.set_num_threads(1)

    def words(self, asked: Asked) -> Ranked:
        """The numbers of the best by words."""
        query = self._index.parse_query(asked.words, ["text"])
        hits = self._searcher.search(query, WANTED, count=False).hits
        numbers = self._searcher.fast_field_values("number", [address for _, address in hits])
        return list(numbers)

    def vectors(self, asked: Asked) -> Ranked:
        labels, _ = self._graph.knn_query(asked.vector, WANTED)
        return labels[0].tolist()  # type: ignore[no-any-return]

    def fused(self, asked: Asked) -> Ranked:
        return fused(self.words(asked), self.vectors(asked))
