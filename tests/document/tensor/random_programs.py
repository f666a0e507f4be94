"""Random steps of tensor programs: each works a function on a batch, and its definition on every tensor of it."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import prod

import numpy as np

from paperwasp.document.tensor import algebra
from paperwasp.document.tensor.algebra import CELL_FUNCTIONS
from paperwasp.document.tensor.batch import TensorBatch
from tests.document.tensor import plain_tensors as plain
from tests.document.tensor.plain_functions import ARITY, EXACT, ROUNDED
from tests.document.tensor.plain_tensors import Address, Label, PlainTensor
from tests.document.tensor.random_values import (
    CELL_TYPES,
    LABELS,
    RandomValues,
    Value,
    has_different_cells,
    has_small_cells,
    type_of,
)

MOST_CELLS = 120
LARGEST = 1000.0
FUNCTIONS = {**EXACT, **ROUNDED}
Batches = Callable[..., TensorBatch]
Plains = Callable[..., PlainTensor]


@dataclass(frozen=True)
class Step:
    """What a function gave for a batch (`value.batch`), and what its definition gives for each tensor."""

    what: str
    value: Value


def linear(factor: float, dimension: str, at: Mapping[str, Label]) -> float:
    """The value of a generated cell."""
    return factor * sum(map(int, at.values())) + int(at[dimension])


class Unfit(Exception):
    """The function does not go with the values that were chosen."""


class Program(RandomValues):
    """Values of some hits, of which steps make new ones."""

    def __init__(self, rng: random.Random) -> None:
        super().__init__(rng)
        self.pool = [self.random_value() for _ in range(4)]

    def any(self, fits: Callable[[Value], bool] = lambda value: True) -> Value:
        found = [value for value in self.pool if fits(value)]
        if not found:
            raise Unfit
        return self.rng.choice(found)

    def pair(self, ignored: str = "") -> tuple[Value, Value]:
        """Two that agree about the dimensions that both have."""
        a, b = self.any(), self.any()
        if any(a.sizes[n] != b.sizes[n] for n in a.sizes if n in b.sizes and n != ignored):
            raise Unfit
        return a, b

    def some(self, names: Sequence[str], at_least: int = 1) -> list[str]:
        if len(names) < at_least:
            raise Unfit
        return self.rng.sample(list(names), self.rng.randint(at_least, len(names)))

    def worked(self, what: str, batches: Batches, plains: Plains, *operands: Value) -> Step:
        """Both ways to work a function on these values."""
        many = any(not value.is_single for value in operands)
        tensors = [plains(*(v.of_hit(hit) for v in operands)) for hit in range(self.hits if many else 1)]
        shown = ", ".join(f"{'one' if v.is_single else 'many'} {v.batch.type}" for v in operands)
        return Step(f"{what} of {shown}", Value(batches(*(value.batch for value in operands)), tensors))

    def keep(self, value: Value) -> None:
        """Adds a value to the pool, unless it is large, not exact, or -0: of 0 and -0 either may be the greatest."""
        numbers = [number for tensor in value.tensors for number in tensor.cells.values() if math.isfinite(number)]
        small = all(abs(number) <= LARGEST and number * 4 == int(number * 4) for number in numbers)
        zeros = [number for number in [*numbers, *value.batch.cells.reshape(-1).tolist()] if number == 0]
        has_minus = any(math.copysign(1.0, zero) < 0 for zero in zeros)
        if small and not has_minus and max(len(tensor.cells) for tensor in value.tensors) <= MOST_CELLS:
            self.pool[self.rng.randrange(len(self.pool))] = value

    def steps(self, count: int) -> Iterator[Step]:
        """Random steps; the value of each may be an operand of the next ones."""
        while count:
            try:
                step = self.rng.choice(STEPS)(self)
            except Unfit:
                self.pool[self.rng.randrange(len(self.pool))] = self.random_value()
                continue
            count -= 1
            yield step
            self.keep(step.value)

    # Steps

    def map(self) -> Step:
        name = self.rng.choice([name for name in FUNCTIONS if ARITY[name] == 1])
        f, g = CELL_FUNCTIONS[name], FUNCTIONS[name]
        return self.worked(f"map {name}", lambda a: algebra.mapped(a, f), lambda a: plain.mapped(a, g), self.any())

    def join(self) -> Step:
        name = self.rng.choice([name for name in FUNCTIONS if ARITY[name] == 2])
        f, g = CELL_FUNCTIONS[name], FUNCTIONS[name]
        return self.worked(
            f"join {name}", lambda a, b: algebra.joined(a, b, f), lambda a, b: plain.joined(a, b, g), *self.pair()
        )

    def merge(self) -> Step:
        a = self.any()
        b = self.any(lambda value: value.sizes == a.sizes) if self.rng.random() < 0.5 else self.random_value(a.sizes)
        name = self.rng.choice(("add", "subtract", "max"))
        f, g = CELL_FUNCTIONS[name], FUNCTIONS[name]
        return self.worked(
            f"merge {name}", lambda a, b: algebra.merged(a, b, f), lambda a, b: plain.merged(a, b, g), a, b
        )

    def reduce(self) -> Step:
        value = self.any()
        over = self.some(list(value.sizes), 0)
        aggregator = self.rng.choice(sorted(algebra.AGGREGATORS))
        cells = [number for tensor in value.tensors for number in tensor.cells.values()]
        if aggregator == "prod" and not math.prod(max(1.0, abs(n)) for n in cells if math.isfinite(n)) < 1e30:
            raise Unfit
        return self.worked(
            f"reduce {aggregator} {over}",
            lambda a: algebra.reduced(a, aggregator, over),
            lambda a: plain.reduced(a, aggregator, over),
            value,
        )

    def product_sum(self) -> Step:
        a, b = self.pair()
        over = self.some(list({**a.sizes, **b.sizes}), 0)
        multiply = EXACT["multiply"]
        return self.worked(
            f"summed products {over}",
            lambda a, b: algebra.summed_products(a, b, over),
            lambda a, b: plain.reduced(plain.joined(a, b, multiply), "sum", over),
            a,
            b,
        )

    def concat(self) -> Step:
        dimension = self.rng.choice("abcdk")
        a, b = self.pair(ignored=dimension)
        if dimension in (*a.mapped, *b.mapped):
            raise Unfit
        return self.worked(
            f"concat {dimension}",
            lambda a, b: algebra.concatenated(a, b, dimension),
            lambda a, b: plain.concatenated(a, b, dimension),
            a,
            b,
        )

    def rename(self) -> Step:
        value = self.any(lambda value: bool(value.sizes))
        old = self.some(list(value.sizes))
        new = self.rng.sample([name for name in "abcdefg" if name in old or name not in value.sizes], len(old))
        return self.worked(
            f"rename {old} {new}",
            lambda a: algebra.renamed(a, old, new),
            lambda a: plain.renamed(a, dict(zip(old, new, strict=True))),
            value,
        )

    def cast(self) -> Step:
        value = self.any(lambda value: bool(value.sizes))
        cell_type = self.rng.choice(CELL_TYPES)
        return self.worked(
            f"cast {cell_type}", lambda a: algebra.cast(a, cell_type), lambda a: plain.cast(a, cell_type), value
        )

    def unpack(self) -> Step:
        sizes = {name: size for name, size in self.dimensions.items() if self.rng.random() < 0.6}
        if not any(sizes.values()):
            raise Unfit
        cell_type, endian = self.rng.choice(CELL_TYPES), self.rng.choice(("big", "little"))
        return self.worked(
            f"unpack_bits {cell_type} {endian}",
            lambda a: algebra.unpacked(a, cell_type, endian),
            lambda a: plain.unpacked(a, cell_type, endian),
            self.random_value(sizes, "int8"),
        )

    def expand(self) -> Step:
        value = self.any(lambda value: "k" not in value.sizes)
        one = plain.dense({"k": 1}, lambda place: 1.0, "double")
        return self.worked(
            "expand",
            lambda a: algebra.expanded(a, "k"),
            lambda a: plain.joined(a, one, EXACT["multiply"]),
            value,
        )

    def slice(self) -> Step:
        value = self.any(lambda value: bool(value.sizes))
        places: dict[str, np.ndarray] = {}
        wanted: list[dict[str, Label]] = [{} for _ in range(self.hits)]
        is_single = value.is_single
        for name in self.some(list(value.sizes)):
            size = value.sizes[name]
            if self.rng.random() < 0.5:
                label: Label = self.rng.choice(LABELS) if size is None else self.rng.randrange(size)
                places[name] = (
                    algebra.label_place(str(label), self.labels) if size is None else algebra.index_place(int(label))
                )
                of_hits: list[Label] = [label] * self.hits
            else:
                varies = self.hits > 1 and self.rng.random() < 0.7
                is_single = is_single and not varies
                numbers = [self.rng.choice((0.0, 1.9, 2.0, 7.0, -1.0, math.nan, 1e30)) for _ in range(self.hits)]
                numbers = numbers if varies else numbers[:1]
                column = np.array(numbers)
                places[name] = (
                    algebra.label_places(column, self.labels) if size is None else algebra.index_places(column)
                )
                whole = [int(n) if abs(n) < 2**63 else -(2**63) for n in numbers]
                of_hits = [str(n) if size is None else n for n in (whole if varies else whole * self.hits)]
            for places_of_hit, label in zip(wanted, of_hits, strict=True):
                places_of_hit[name] = label
        count = 1 if is_single else self.hits
        tensors = [plain.sliced(value.of_hit(hit), wanted[hit]) for hit in range(count)]
        return Step(
            f"slice {wanted[:count]} of {value.batch.type}", Value(algebra.sliced(value.batch, places), tensors)
        )

    def map_subspaces(self) -> Step:
        value = self.any()
        dimension = self.rng.choice(value.indexed) if value.indexed else "k"
        sizes = {name: value.sizes[name] for name in value.indexed}
        less = {name: size for name, size in sizes.items() if name != dimension}
        choices: list[tuple[str, Batches, Plains, Mapping[str, int | None]]] = [
            ("sum", lambda a: algebra.reduced(a, "sum"), lambda a: plain.reduced(a, "sum"), {}),
            ("itself", lambda a: a, lambda a: a, sizes),
            (
                "concat",
                lambda a: algebra.concatenated(a, a, dimension),
                lambda a: plain.concatenated(a, a, dimension),
                {**less, dimension: 2 * (sizes.get(dimension) or 1)},
            ),
            (
                "constant",
                lambda a: algebra.number(np.array([3.0])),
                lambda a: plain.number(3.0),
                {},
            ),
        ]
        name, batches, plains, result = self.rng.choice(choices)
        if name == "constant" and not value.mapped:
            raise Unfit
        return self.worked(
            f"map_subspaces {name}",
            lambda a: algebra.map_subspaces(a, batches),
            lambda a: plain.map_subspaces(a, plains, result),
            value,
        )

    def filter_subspaces(self) -> Step:
        value = self.any(lambda value: bool(value.mapped))
        limit = self.random_number()
        is_of_sum = self.rng.random() < 0.5

        def batches(a: TensorBatch) -> TensorBatch:
            a = algebra.reduced(a, "sum") if is_of_sum else a
            return algebra.joined(a, algebra.number(np.array([limit])), CELL_FUNCTIONS["less"])

        def plains(a: PlainTensor) -> PlainTensor:
            a = plain.reduced(a, "sum") if is_of_sum else a
            return plain.mapped(a, lambda cell: float(cell < limit))

        return self.worked(
            "filter_subspaces",
            lambda a: algebra.filter_subspaces(a, batches),
            lambda a: plain.filter_subspaces(a, plains),
            value,
        )

    def cell_order(self) -> Step:
        order = self.rng.choice(("max", "min"))
        return self.worked(
            f"cell_order {order}",
            lambda a: algebra.cell_order(a, order),
            lambda a: plain.cell_order(a, order),
            self.any(has_different_cells),
        )

    def top(self) -> Step:
        n = self.rng.randint(0, 3)
        less, multiply = EXACT["less"], EXACT["multiply"]

        def plains(t: PlainTensor) -> PlainTensor:
            below = plain.joined(plain.cell_order(t, "max"), plain.number(n), less)
            return plain.joined(t, plain.filter_subspaces(below, lambda a: a), multiply)

        value = self.any(lambda value: bool(value.mapped) and not value.indexed and has_different_cells(value))
        return self.worked(f"top {n}", lambda a: algebra.top(algebra.number(np.array([float(n)])), a), plains, value)

    def choose(self) -> Step:
        a = self.any()
        b = self.random_value(a.sizes)
        order = ("double", "float", "bfloat16", "int8")
        cell_type = min(a.batch.type.cell_type, b.batch.type.cell_type, key=order.index)
        which = [self.rng.randrange(2) for _ in range(self.hits)]
        tensors = [plain.of(a.sizes, (a, b)[w].of_hit(hit).cells, cell_type) for hit, w in enumerate(which)]
        batch = algebra.chosen(np.array(which), [a.batch, b.batch], type_of(a.sizes, cell_type))
        tensors = tensors[:1] if batch.is_single else tensors
        return Step(f"chosen of {a.batch.type} and {b.batch.type}", Value(batch, tensors))

    def literal(self) -> Step:
        sizes = {name: size for name, size in self.dimensions.items() if self.rng.random() < 0.6}
        cell_type = self.rng.choice(CELL_TYPES) if sizes else "double"
        type_ = type_of(sizes, cell_type)
        addresses = {
            tuple(str(self.rng.choice(LABELS) if s is None else self.rng.randrange(s)) for s in sizes.values())
            for _ in range(self.rng.randint(0, 4))
        }
        columns = {
            address: [self.random_number() for _ in range(self.rng.choice((1, self.hits)))] for address in addresses
        }
        batch = algebra.literal(type_, list(columns), [np.array(column) for column in columns.values()], self.labels)
        tensors = []
        for hit in range(max((len(column) for column in columns.values()), default=1)):
            cells: dict[Address, float] = {} if None in sizes.values() else dict.fromkeys(plain.all_places(sizes), 0.0)
            for texts, column in columns.items():
                place = {n: t if sizes[n] is None else int(t) for n, t in zip(sizes, texts, strict=True)}
                mapped = frozenset((n, p) for n, p in place.items() if sizes[n] is None)
                cells |= {mapped | at: cells.get(mapped | at, 0.0) for at in plain.all_places(sizes)}
                cells[frozenset(place.items())] = column[0 if len(column) == 1 else hit]
            tensors.append(plain.of(sizes, cells, cell_type))
        return Step(f"literal {columns} of {type_}", Value(batch, tensors))

    def generate(self) -> Step:
        sizes = {name: self.rng.randint(1, 3) for name in self.some("abcd")}
        type_ = type_of(sizes, self.rng.choice(CELL_TYPES))
        factors = [float(self.rng.randint(-3, 3)) for _ in range(self.rng.choice((1, self.hits)))]
        names = [d.name for d in type_.indexed]
        columns = dict(zip(names, algebra.places_of(type_, 0, prod(type_.shape)), strict=True))
        values = np.concatenate([factor * sum(columns.values()) + columns[min(sizes)] for factor in factors])
        tensors = [plain.dense(sizes, partial(linear, factor, min(sizes)), type_.cell_type) for factor in factors]
        return Step(f"generated {type_}", Value(algebra.generated(type_, values), tensors))

    def made(self) -> Step:
        sizes = {name: self.rng.randint(1, 3) for name in self.some("abcd")}
        type_ = type_of(sizes, self.rng.choice(CELL_TYPES))
        if self.rng.random() < 0.5:
            tensor = plain.dense(sizes, lambda at: float(sum(map(int, at.values()))), type_.cell_type)
            return Step(f"range {type_}", Value(algebra.range_cells(type_), [tensor]))
        tensor = plain.dense(sizes, lambda at: float(len(set(at.values())) == 1), type_.cell_type)
        return Step(f"diag {type_}", Value(algebra.diagonal(type_), [tensor]))

    def normalize(self) -> Step:
        value = self.any()
        over = self.some(list(value.sizes), 0)
        divide, square = ROUNDED["divide"], EXACT["square"]
        equal, sqrt = EXACT["equal"], ROUNDED["sqrt"]

        def length(t: PlainTensor) -> PlainTensor:
            return plain.mapped(plain.reduced(plain.mapped(t, square), "sum", over), sqrt)

        name, plains = self.rng.choice(
            (
                ("argmax", lambda t: plain.joined(t, plain.reduced(t, "max", over), equal)),
                ("argmin", lambda t: plain.joined(t, plain.reduced(t, "min", over), equal)),
                ("l1_normalize", lambda t: plain.joined(t, plain.reduced(t, "sum", over), divide)),
                ("l2_normalize", lambda t: plain.joined(t, length(t), divide)),
            )
        )
        return self.worked(f"{name} {over}", lambda a: getattr(algebra, name)(a, over), plains, value)

    def softmax(self) -> Step:
        value = self.any(has_small_cells)
        over = self.some(list(value.sizes), 0)
        exp, divide = ROUNDED["exp"], ROUNDED["divide"]

        def plains(t: PlainTensor) -> PlainTensor:
            powers = plain.mapped(t, exp)
            return plain.joined(powers, plain.reduced(powers, "sum", over), divide)

        return self.worked(f"softmax {over}", lambda a: algebra.softmax(a, over), plains, value)

    def vectors(self) -> Step:
        a, b = self.pair()
        [dimension] = self.some([name for name in a.sizes if name in b.sizes])[:1]
        multiply, divide, sqrt = EXACT["multiply"], ROUNDED["divide"], ROUNDED["sqrt"]

        def dot(a: PlainTensor, b: PlainTensor) -> PlainTensor:
            return plain.reduced(plain.joined(a, b, multiply), "sum", [dimension])

        def cosine(a: PlainTensor, b: PlainTensor) -> PlainTensor:
            lengths = plain.joined(dot(a, a), dot(b, b), multiply)
            return plain.joined(dot(a, b), plain.mapped(lengths, sqrt), divide)

        def distance(a: PlainTensor, b: PlainTensor) -> PlainTensor:
            squares = plain.mapped(plain.joined(a, b, EXACT["subtract"]), EXACT["square"])
            return plain.mapped(plain.reduced(squares, "sum", [dimension]), sqrt)

        choices = (("matmul", dot), ("cosine_similarity", cosine), ("euclidean_distance", distance))
        name, plains = self.rng.choice(choices)
        return self.worked(f"{name} {dimension}", lambda a, b: getattr(algebra, name)(a, b, dimension), plains, a, b)

    def take(self) -> Step:
        value = self.any(lambda value: not value.is_single)
        hits = [self.rng.randrange(self.hits) for _ in range(self.hits)]
        batch = algebra.taken(algebra.spread(value.batch, self.hits), np.array(hits))
        return Step(f"taken {hits} of {value.batch.type}", Value(batch, [value.of_hit(hit) for hit in hits]))

    def spread(self) -> Step:
        value = self.any(lambda value: value.is_single)
        batch = algebra.spread(value.batch, self.hits)
        return Step(f"spread of {value.batch.type}", Value(batch, [value.of_hit(0)] * self.hits))


_P = Program
STEPS: tuple[Callable[[Program], Step], ...] = (
    _P.map, _P.join, _P.join, _P.join, _P.merge, _P.reduce, _P.reduce, _P.product_sum, _P.concat, _P.rename, _P.cast,
    _P.unpack, _P.expand, _P.slice, _P.slice, _P.map_subspaces, _P.filter_subspaces, _P.cell_order, _P.top, _P.choose,
    _P.literal, _P.generate, _P.made, _P.normalize, _P.softmax, _P.vectors, _P.take, _P.spread,
)  # fmt: skip
