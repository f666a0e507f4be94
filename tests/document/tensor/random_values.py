"""Random tensors: batches, and beside them the plain tensors that they are to hold."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from paperwasp.document.tensor import Dimension, TensorBuilder, TensorType
from paperwasp.document.tensor.batch import Labels, TensorBatch
from tests.document.tensor import plain_tensors as plain
from tests.document.tensor.plain_tensors import Address, PlainTensor

LABELS = ("x", "y", "7", "2", "0", "07", "-1", "")
CELL_TYPES = ("double", "double", "float", "float", "bfloat16", "int8")


@dataclass(frozen=True)
class Value:
    """A batch, and the tensors that it is to hold: one for each hit, or one for all."""

    batch: TensorBatch
    tensors: Sequence[PlainTensor]

    @property
    def is_single(self) -> bool:
        return self.batch.is_single

    @property
    def sizes(self) -> Mapping[str, int | None]:
        return {d.name: d.size for d in self.batch.type.dimensions}

    @property
    def mapped(self) -> list[str]:
        return [d.name for d in self.batch.type.mapped]

    @property
    def indexed(self) -> list[str]:
        return [d.name for d in self.batch.type.indexed]

    def of_hit(self, hit: int) -> PlainTensor:
        return self.tensors[0 if self.is_single else hit]


def type_of(sizes: Mapping[str, int | None], cell_type: str) -> TensorType:
    return TensorType.of((Dimension(name, size) for name, size in sizes.items()), cell_type)


def batch_of(tensors: Sequence[PlainTensor], labels: Labels, is_single: bool, rng: random.Random) -> TensorBatch:
    type_ = type_of(tensors[0].sizes, tensors[0].cell_type)
    built = []
    for tensor in tensors:
        builder = TensorBuilder(type_)
        cells = list(tensor.cells.items())
        rng.shuffle(cells)
        for address, value in cells:
            places = dict(address)
            texts = tuple(str(places[d.name]) for d in type_.mapped)
            builder.cell(texts, tuple(int(places[d.name]) for d in type_.indexed), value)
        built.append(builder.build())
    return TensorBatch.single(built[0], labels) if is_single else TensorBatch.of(built, type_, labels)


class RandomValues:
    """Makes values of some hits, of dimensions that go together."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.hits = rng.choice((1, 2, 3, 4))
        self.labels = Labels()
        self.dimensions: dict[str, int | None] = {n: rng.choice((None, None, 1, 2, 3)) for n in "abcd"}

    def random_value(self, sizes: Mapping[str, int | None] | None = None, cell_type: str | None = None) -> Value:
        if sizes is None:
            names = self.rng.sample(sorted(self.dimensions), self.rng.choice((0, 1, 1, 2, 2, 3)))
            sizes = {name: self.dimensions[name] for name in sorted(names)}
        cell_type = (cell_type or self.rng.choice(CELL_TYPES)) if sizes else "double"
        is_single = self.rng.random() < 0.4
        has_special = cell_type != "int8" and self.rng.random() < 0.1
        count = 1 if is_single else self.hits
        tensors = [self.random_tensor(sizes, cell_type, has_special) for _ in range(count)]
        return Value(batch_of(tensors, self.labels, is_single, self.rng), tensors)

    def random_tensor(self, sizes: Mapping[str, int | None], cell_type: str, has_special: bool) -> PlainTensor:
        mapped = [name for name, size in sizes.items() if size is None]
        cells: dict[Address, float] = {}
        subspaces = self.rng.choice((0, 0, 1, 2, 3)) if mapped else 1
        for _ in range(subspaces):
            labels = frozenset((name, self.rng.choice(LABELS)) for name in mapped)
            for place in plain.all_places(sizes):
                cells[labels | place] = self.random_number(has_special)
        return plain.of(sizes, cells, cell_type)

    def random_number(self, has_special: bool = False) -> float:
        if has_special and self.rng.random() < 0.3:
            return self.rng.choice((math.nan, math.inf, -math.inf))
        return self.rng.choice((0.0, 1.0, float(self.rng.randint(-9, 9)), self.rng.randint(-20, 20) / 4))


def has_different_cells(value: Value) -> bool:
    return all(
        len(set(map(repr, (number + 0.0 for number in tensor.cells.values())))) == len(tensor.cells)
        for tensor in value.tensors
    )


def has_small_cells(value: Value) -> bool:
    return all(not abs(number) > 20 for tensor in value.tensors for number in tensor.cells.values())
