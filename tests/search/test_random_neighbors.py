"""Every way of searching vectors against comparing them all, over random documents, filters, removals and updates.

Explored as a whole, a graph misses nothing; as it is explored by default, little.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import pytest

from paperwasp.document.ids import DocumentId
from paperwasp.document.json_format import read_fields
from paperwasp.document.operations import Operation, Put, Remove, Update
from paperwasp.document.tensor.literal import parse_tensor
from paperwasp.document.tensor.types import TensorType
from paperwasp.document.updates import Assign, FieldUpdate
from paperwasp.query_languages.yql.statement import parse_yql
from paperwasp.schema import parse_schemas
from paperwasp.search.search import search
from paperwasp.search.served import ServedSchemas
from paperwasp.storage.attributes.tensor import TensorView
from tests.chance import SEED
from tests.content.nodes import TestNode, start
from tests.search.graphs import give_graph
from tests.search.queries import query_of

CELLS: Final = 6
SCHEMA: Final = f"""
schema s {{
  document s {{
    field n type int {{ indexing: attribute | summary }}
    field one type tensor<float>(x[{CELLS}]) {{ indexing: attribute | index }}
    field many type tensor<float>(p{{}},x[{CELLS}]) {{ indexing: attribute | index }}
  }}
  rank-profile one {{ inputs {{ query(q) tensor<float>(x[{CELLS}]) }}
    first-phase {{ expression: closeness(field,one) }}
    match-features: distance(field,one) }}
  rank-profile many {{ inputs {{ query(q) tensor<float>(x[{CELLS}]) }}
    first-phase {{ expression: closeness(field,many) }}
    match-features: distance(field,many) }}
}}
"""
WAYS: Final = {
    "exact": "approximate: false",
    "exact fallback": "hnsw.approximateThreshold: 1.0",
    "index top k using filter": "hnsw.approximateThreshold: 0.0, hnsw.filterFirstThreshold: 0.0",
    "filter first": "hnsw.approximateThreshold: 0.0, hnsw.filterFirstThreshold: 1.0, hnsw.filterFirstExploration: 1.0",
    "index top k": "hnsw.approximateThreshold: 0.0, hnsw.postFilterThreshold: 0.0,"
    " hnsw.targetHitsMaxAdjustmentFactor: 1000.0",
}
LEAST_RECALL: Final = {"filter first": 0.9, "index top k": 0.8}
"""Of ways that may miss something though they are explored as a whole, on average."""
DOCUMENTS: Final = 240
WANTED: Final = 7
Vector = tuple[float, ...]


@dataclass
class Document:
    n: int
    one: Vector | None
    many: list[Vector]


@dataclass
class Model:
    node: TestNode
    chance: random.Random
    documents: dict[int, Document] = field(default_factory=dict)

    def change(self, count: int) -> None:
        """Puts, replaces, updates and removes."""
        schema = self.node.node.reader.view().schemas["s"]
        operations: list[Operation] = []
        for _ in range(count):
            number = self.chance.randrange(DOCUMENTS)
            name = DocumentId.parse(f"id:n:s::{number}")
            old = self.documents.get(number)
            if old is not None and self.chance.random() < 0.25:
                del self.documents[number]
                operations.append(Remove(name))
            elif old is not None and self.chance.random() < 0.4:
                old.one = self._vector()
                value = parse_tensor(str(list(old.one)), TensorType.parse(f"tensor<float>(x[{CELLS}])"))
                operations.append(Update(name, (FieldUpdate("one", Assign(value)),)))
            else:
                self.documents[number] = new = Document(
                    self.chance.randrange(100),
                    self._vector() if self.chance.random() < 0.9 else None,
                    [self._vector() for _ in range(self.chance.choice([0, 1, 1, 2, 5]))],
                )
                values = {"n": new.n, "many": {str(place): list(vector) for place, vector in enumerate(new.many)}}
                fields = read_fields(schema.document, values | ({"one": list(new.one)} if new.one else {}))
                operations.append(Put(name, fields))
        self.node.apply(*operations)

    def _vector(self) -> Vector:
        """Near one of a few middles, as embeddings are."""
        middle = self.chance.randrange(5)
        return tuple(round(self.chance.gauss(3.0 * (middle == cell), 1.0), 3) for cell in range(CELLS))

    def nearest(self, name: str, query: Vector, allowed: Callable[[Document], bool]) -> list[float]:
        """The distances of the nearest documents."""
        distances = []
        for document in self.documents.values():
            vectors = document.many if name == "many" else [document.one] if document.one else []
            if vectors and allowed(document):
                distances.append(min(float(np.linalg.norm(np.subtract(vector, query))) for vector in vectors))
        return sorted(distances)[:WANTED]

    def found(self, name: str, query: Vector, way: str, where: str, explored: int) -> list[float]:
        """The distances of the best hits."""
        view = self.node.node.reader.view()
        column = view.columns["s", name]
        assert isinstance(column, TensorView)
        if column.graph is None:
            give_graph(view, "s", name)
        notes = f"targetHits: {WANTED}, hnsw.exploreAdditionalHits: {explored}, {WAYS[way]}"
        tree = parse_yql(f"select * from s where {where} ({{{notes}}}nearestNeighbor({name}, q))").tree
        inputs = {"q": parse_tensor(str(list(query)), TensorType.parse(f"tensor<float>(x[{CELLS}])"))}
        answer = search(view, query_of(tree, ("s",), name, hits=WANTED, inputs=inputs), ServedSchemas())
        features = [hit.match_features or {} for hit in answer.hits]
        return [float(str(each[f"distance(field,{name})"])) for each in features]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Model]:
    with closing(start(tmp_path_factory.mktemp("node"), None)) as node:
        node.node.configure(1, parse_schemas({"schemas/s.sd": SCHEMA}).schemas, {}, 0)
        yield Model(node, random.Random(SEED))


@pytest.mark.parametrize("name", ["one", "many"])
@pytest.mark.parametrize("round_", range(4))
def test_every_way_finds_the_nearest(model: Model, name: str, round_: int) -> None:
    chance = random.Random(SEED + round_)
    model.change(150)
    recalls: dict[str, list[float]] = {way: [] for way in WAYS}
    by_default: list[float] = []
    for _ in range(12):
        query = model._vector()
        low = chance.choice([0, 0, 30, 70, 95])
        high = chance.choice([low + 5, 60, 100])
        where, among = f"n >= {low} and n < {high} and", range(low, high)
        if low == 0 and high == 100:
            where = ""
        expected = model.nearest(name, query, lambda document, among=among: document.n in among)  # type: ignore[misc]
        for way in WAYS:
            recalls[way].append(recall(model.found(name, query, way, where, 10_000), expected))
        by_default.append(recall(model.found(name, query, "index top k using filter", where, 0), expected))
    for way, values in recalls.items():
        assert np.mean(values) >= LEAST_RECALL.get(way, 1.0), (way, values, SEED)
    assert np.mean(by_default) >= 0.8, (by_default, SEED)


def recall(found: list[float], expected: list[float]) -> float:
    """The share of the nearest that was found; what is found is in order, and no nearer than they are."""
    assert found == sorted(found)
    assert len(found) <= len(expected)
    if not expected:
        return 1.0
    left = list(expected)
    hits = 0
    for distance in found:
        match = next((place for place, each in enumerate(left) if abs(each - distance) < 1e-4), None)
        if match is not None:
            del left[match]
            hits += 1
    return hits / len(expected)
