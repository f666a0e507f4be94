"""Whether a document is found by its own vector, over HTTP, as soon as it is acknowledged.

Several connections put, update, remove and put again, each its own keys. After each acknowledgement the same connection
asks for the ten nearest of the vector that the document now has; every fourth time within a filter. In the middle of it
a deployment has all graphs built anew, with other settings, behind what goes on. A kind is a metric, a type of cells
and a size; a shape says how vectors lie and how many keys there are. Both are drawn by the seed, or all are taken.

A miss counts by its cause, which further queries tell: `late`: the same query finds it a moment later; `explored`: it
is found when everything is explored; `unreached`: only an exact search finds it; `lost`: not even that. No miss are
ties: ten others that are at least as near, as duplicates are, and as longer vectors are by dot product.
"""

from __future__ import annotations

import http.client
import itertools
import json
import random
import threading
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date, timedelta
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from bench.deploy import config_port, deploy_zip, zip_of
from bench.report import Report, Row
from bench.service import Running, data_directory, paperwasp

HITS: Final = 10
FILTERS: Final = (2, 40)
"""Of how many documents a filter lets one through."""
EVERYTHING: Final = 1_000_000
MOST_EXPLORED: Final = 0.001
"""The share of searches that may miss what they would find if they explored everything: graphs are approximate."""
_SETTINGS: Final = ((8, 50), (16, 200))
"""max-links-per-node and neighbors-to-explore-at-insert, of the first deployment and of the second."""
_JSON: Final = {"Content-Type": "application/json"}

Vector = NDArray[np.float32]


@dataclass(frozen=True)
class Kind:
    metric: str
    cell: str
    dimensions: int

    @property
    def name(self) -> str:
        return f"{self.metric.replace('-', '')}_{self.cell}_{self.dimensions}"


@dataclass(frozen=True)
class Shape:
    """`keys_count`: of each connection."""

    name: str
    keys_count: int = EVERYTHING


KINDS: Final = (
    Kind("angular", "float", 2), Kind("angular", "float", 8), Kind("angular", "float", 384),
    Kind("angular", "bfloat16", 32), Kind("angular", "int8", 16),
    Kind("euclidean", "float", 2), Kind("euclidean", "float", 384), Kind("euclidean", "double", 3),
    Kind("euclidean", "bfloat16", 8), Kind("euclidean", "int8", 32),
    Kind("dotproduct", "float", 8), Kind("dotproduct", "float", 128), Kind("dotproduct", "bfloat16", 32),
    Kind("dotproduct", "int8", 16),
    Kind("prenormalized-angular", "float", 8), Kind("prenormalized-angular", "float", 384),
    Kind("prenormalized-angular", "bfloat16", 32),
    Kind("hamming", "int8", 8), Kind("hamming", "int8", 64), Kind("geodegrees", "float", 2),
)  # fmt: skip
SHAPES: Final = (
    Shape("spread"), Shape("clusters"), Shape("one direction"), Shape("duplicates"),
    Shape("one direction", 2), Shape("spread", 60),
)  # fmt: skip


@dataclass(frozen=True)
class Options:
    """`documents_count`: operations of each kind and shape. `draws`: how many of these there are; 0: all."""

    documents_count: int = 600
    draws: int = 12
    connections_count: int = 4
    seed: int = 13


def run(report: Report, options: Options) -> None:
    works = list(itertools.product(KINDS, SHAPES))
    if options.draws:
        works = random.Random(options.seed).sample(works, options.draws)
    with data_directory() as data, paperwasp(data, None) as server:
        total: Counter[str] = Counter()
        for number, (kind, shape) in enumerate(works):
            found = _run_one(server, kind, shape, replace(options, seed=options.seed + number))
            keys = "" if shape.keys_count == EVERYTHING else f", {shape.keys_count} keys a connection"
            report.add(Row(f"{kind.name}, {shape.name}{keys}", _shown(found)))
            total += found
    met = not any(total[cause] for cause in _FAULTS) and total["explored"] <= MOST_EXPLORED * total["asked"]
    target = f"none late, unreached or lost, {MOST_EXPLORED:.1%} explored at most"
    report.add(Row(f"all, seed {options.seed}", _shown(total), target=target, met=met))


_FAULTS: Final = ("late", "unreached", "lost")


def _shown(found: Counter[str]) -> str:
    causes = [f"{found[cause]:,} {cause}" for cause in ("ties", "explored", *_FAULTS) if found[cause]]
    return ", ".join([f"{found['asked']:,} asked", *causes])


def _run_one(server: Running, kind: Kind, shape: Shape, options: Options) -> Counter[str]:
    deploy_zip(config_port(server), zip_of(package(kind, *_SETTINGS[0])))
    chance = np.random.default_rng(options.seed)
    vectors = vectors_of(chance, kind, shape, options.documents_count)
    parts = np.array_split(vectors, options.connections_count)
    middle = threading.Barrier(len(parts) + 1, timeout=600)
    clients = [_Client(server, kind, shape, part, number, options.seed) for number, part in enumerate(parts)]
    threads = [threading.Thread(target=client.run, args=(middle,)) for client in clients]
    for thread in threads:
        thread.start()
    middle.wait()
    deploy_zip(config_port(server), zip_of(package(kind, *_SETTINGS[1])))
    for thread in threads:
        thread.join()
    for client in clients:
        if client.failure:
            raise client.failure
    return sum((client.found for client in clients), Counter())


def vectors_of(chance: np.random.Generator, kind: Kind, shape: Shape, count: int) -> Vector:
    """As the documents get them, each of which a column of the kind keeps as it is."""
    size = kind.dimensions
    if kind.metric == "geodegrees":
        spread = chance.uniform((-80, -180), (80, 180), (count, 2))
        return (spread if shape.name == "spread" else spread / 1000).astype(np.float32)
    if kind.metric == "hamming" and shape.name != "duplicates":
        flips = {"spread": 0.5, "clusters": 0.2}.get(shape.name, 0.02)
        bits = chance.random((count, 8 * size)) < flips
        bits[::2] ^= chance.random(8 * size) < 0.5
        return np.packbits(bits, axis=1).view(np.int8).astype(np.float32)
    vectors = chance.standard_normal((count, size))
    if shape.name == "clusters":
        vectors = 0.3 * vectors + chance.standard_normal((20, size))[chance.integers(0, 20, count)]
    elif shape.name == "one direction":
        vectors[::2] = 1 + 0.01 * vectors[::2]
    elif shape.name == "duplicates":
        vectors = vectors[chance.integers(0, max(1, count // 20), count)]
    if kind.metric == "prenormalized-angular":
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return _kept(vectors, kind)


def _kept(vectors: NDArray[Any], kind: Kind) -> Vector:
    if kind.cell == "int8":
        whole: Vector = np.clip(np.rint(vectors * 40), -128, 127).astype(np.float32)
        return whole
    single: Vector = vectors.astype(np.float32)
    if kind.cell == "bfloat16":
        single.view(np.uint32)[:] &= np.uint32(0xFFFF0000)
    return single


class _Client:
    """One connection. Its keys are its own, so it knows what is in each."""

    def __init__(self, server: Running, kind: Kind, shape: Shape, vectors: Vector, number: int, seed: int) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=120)
        self._kind, self._shape, self._vectors, self._number = kind, shape, vectors.tolist(), number
        self._chance = random.Random(f"{seed} {number}")
        self._living: dict[int, list[float]] = {}
        self._next = 0
        self.found: Counter[str] = Counter()
        self.failure: Exception | None = None

    def run(self, middle: threading.Barrier) -> None:
        try:
            for place, vector in enumerate(self._vectors):
                if place == len(self._vectors) // 2:
                    middle.wait()
                self._change(vector)
            for key in self._chance.sample(sorted(self._living), min(50, len(self._living))):
                self._look(key)
        except Exception as error:
            self.failure = error
            middle.abort()
        finally:
            self._connection.close()

    def _change(self, vector: list[float]) -> None:
        """One change of a document, and a look at one that is there."""
        chance, draw = self._chance, self._chance.random()
        is_small = self._shape.keys_count < EVERYTHING
        if self._living and (draw < 0.25 or is_small):
            key = chance.randrange(self._shape.keys_count) if is_small else chance.choice(list(self._living))
        else:
            key = self._next
            self._next += 1
        fields = {"v": {"values": vector}, "bucket2": key % FILTERS[0], "bucket40": key % FILTERS[1]}
        if key not in self._living or chance.random() < 0.3:
            self._ask("POST", self._path(key), {"fields": fields})
            self._living[key] = vector
        elif chance.random() < 0.5:
            self._ask("PUT", self._path(key), {"fields": {"v": {"assign": fields["v"]}}})
            self._living[key] = vector
        else:
            self._ask("DELETE", self._path(key))
            del self._living[key]
        if self._living:
            self._look(key if key in self._living else chance.choice(list(self._living)))

    def _path(self, key: int) -> str:
        return f"/document/v1/own/{self._kind.name}/docid/{self._name(key)}"

    def _name(self, key: int) -> str:
        return f"{self._number}-{key}"

    def _look(self, key: int) -> None:
        self.found["asked"] += 1
        size = self._chance.choice(FILTERS) if self._chance.random() < 0.25 else None
        bucket = "" if size is None else f" and bucket{size} = {key % size}"
        hits = self._search(key, bucket)
        if self._name(key) not in hits:
            self.found[self._cause(key, bucket, hits)] += 1

    def _cause(self, key: int, bucket: str, hits: Mapping[str, float]) -> str:
        own = self._search(key, f' and name contains "{self._name(key)}"', approximate="false")
        if self._name(key) not in own:
            return "lost"
        least = own[self._name(key)]
        if self._are_ties(hits, least):
            return "ties"
        if self._name(key) in self._search(key, bucket):
            return "late"
        everything = self._search(key, bucket, **{"hnsw.exploreAdditionalHits": EVERYTHING})
        if self._name(key) in everything or self._are_ties(everything, least):
            return "explored"
        return "unreached"

    @staticmethod
    def _are_ties(hits: Mapping[str, float], least: float) -> bool:
        return sum(score >= least - 1e-6 * abs(least) for score in hits.values()) >= HITS

    def _search(self, key: int, more: str, **annotations: object) -> Mapping[str, float]:
        """Closeness by name of the best hits."""
        notes = "".join(f", {name}: {value}" for name, value in {"targetHits": HITS, **annotations}.items())[2:]
        answer = self._ask(
            "POST",
            "/search/",
            {
                "yql": f"select name from {self._kind.name} where ({{{notes}}}nearestNeighbor(v, q)){more}",
                "input.query(q)": self._living[key],
                "hits": HITS,
                "timeout": "60s",
            },
        )
        root = answer["root"]
        if "errors" in root or root.get("coverage", {}).get("degraded"):
            raise AssertionError(f"no whole answer: {root}")
        return {hit["fields"]["name"]: hit["relevance"] for hit in root.get("children", [])}

    def _ask(self, method: str, path: str, body: Any = None) -> dict[str, Any]:
        if method == "POST" and "fields" in (body or {}):
            body["fields"]["name"] = path.rpartition("/")[2]
        self._connection.request(method, path, None if body is None else json.dumps(body), _JSON)
        answer = self._connection.getresponse()
        content = answer.read()
        if answer.status != 200:
            raise AssertionError(f"{method} {path}: {answer.status} {content[:300]!r}")
        found: dict[str, Any] = json.loads(content)
        return found


def package(kind: Kind, links: int, explored: int) -> dict[str, str]:
    """An application for documents of one kind."""
    query_cell = "float" if kind.cell == "bfloat16" else kind.cell
    schema = f"""schema {kind.name} {{
  document {kind.name} {{
    field name type string {{ indexing: attribute | summary }}
    {" ".join(f"field bucket{size} type int {{ indexing: attribute }}" for size in FILTERS)}
    field v type tensor<{kind.cell}>(x[{kind.dimensions}]) {{
      indexing: attribute | index
      attribute {{ distance-metric: {kind.metric} }}
      index {{ hnsw {{ max-links-per-node: {links} neighbors-to-explore-at-insert: {explored} }} }}
    }}
  }}
  rank-profile default {{
    inputs {{ query(q) tensor<{query_cell}>(x[{kind.dimensions}]) }}
    first-phase {{ expression: closeness(field, v) }}
  }}
}}
"""
    services = (
        '<services version="1.0"><container id="default" version="1.0"><search/><document-api/></container>'
        f'<content id="own" version="1.0"><redundancy>1</redundancy>'
        f'<documents><document type="{kind.name}" mode="index"/></documents>'
        '<nodes><node hostalias="node1" distribution-key="0"/></nodes></content></services>'
    )
    until = date.today() + timedelta(days=20)
    changes = ("content-cluster-removal", "schema-removal", "hnsw-settings-change")
    allowed = "".join(f'<allow until="{until}">{change}</allow>' for change in changes)
    overrides = f"<validation-overrides>{allowed}</validation-overrides>"
    return {"services.xml": services, "validation-overrides.xml": overrides, f"schemas/{kind.name}.sd": schema}
