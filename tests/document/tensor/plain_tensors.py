"""Tensors as dictionaries from addresses to numbers: the tensor functions by their definitions, one tensor at a time.

What the algebra of batches is compared to. Slow, and plain enough to be believed.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import numpy as np

Label = str | int
Address = frozenset[tuple[str, Label]]
"""(dimension, label or index) of each dimension."""
Function = Callable[..., float]


@dataclass(frozen=True)
class PlainTensor:
    """`sizes`: dimension → its size; None: mapped. A subspace of indexed dimensions has all of its cells or none."""

    sizes: Mapping[str, int | None]
    cells: Mapping[Address, float]
    cell_type: str = "double"

    @property
    def is_number(self) -> bool:
        return not self.sizes

    @property
    def number(self) -> float:
        return self.cells[frozenset()]


def number(value: float) -> PlainTensor:
    return PlainTensor({}, {frozenset(): value})


def rounded(value: float, cell_type: str) -> float:
    """What a cell of this type holds of a value."""
    with np.errstate(all="ignore"):
        if cell_type == "double":
            return float(value)
        if cell_type == "int8":
            whole = int(value) if abs(value) < 2**31 else 0
            return float((whole + 128) % 256 - 128)
        single = np.float32(value)
        if cell_type == "bfloat16":
            single = (single.view(np.uint32) & np.uint32(0xFFFF0000)).view(np.float32)
        return float(single)


def floating(tensor_type: str) -> str:
    """Results of arithmetic have cells of float at least."""
    return "double" if tensor_type == "double" else "float"


def common(a: PlainTensor, b: PlainTensor) -> str:
    if a.is_number or b.is_number:
        return b.cell_type if a.is_number else a.cell_type
    if a.cell_type == b.cell_type:
        return a.cell_type
    return "double" if "double" in (a.cell_type, b.cell_type) else "float"


def of(sizes: Mapping[str, int | None], cells: Mapping[Address, float], cell_type: str) -> PlainTensor:
    cell_type = cell_type if sizes else "double"
    return PlainTensor(sizes, {address: rounded(value, cell_type) for address, value in cells.items()}, cell_type)


def part(address: Address, dimensions: Iterable[str]) -> Address:
    wanted = set(dimensions)
    return frozenset((dimension, label) for dimension, label in address if dimension in wanted)


def all_places(sizes: Mapping[str, int | None]) -> list[Address]:
    """All addresses in the indexed dimensions."""
    indexed = [(name, size) for name, size in sizes.items() if size is not None]
    ranges = [range(size) for _, size in indexed]
    return [frozenset(zip((n for n, _ in indexed), places, strict=True)) for places in itertools.product(*ranges)]


def mapped(t: PlainTensor, f: Function) -> PlainTensor:
    return of(t.sizes, {address: f(value) for address, value in t.cells.items()}, floating(t.cell_type))


def united(a: PlainTensor, b: PlainTensor) -> dict[str, int | None]:
    return {**a.sizes, **b.sizes}


def joined(a: PlainTensor, b: PlainTensor, f: Function) -> PlainTensor:
    both = set(a.sizes) & set(b.sizes)
    cells = {
        one | other: f(value, with_value)
        for one, value in a.cells.items()
        for other, with_value in b.cells.items()
        if part(one, both) == part(other, both)
    }
    return of(united(a, b), cells, floating(common(a, b)))


def merged(a: PlainTensor, b: PlainTensor, f: Function) -> PlainTensor:
    cells = {**a.cells, **b.cells}
    cells |= {address: f(a.cells[address], b.cells[address]) for address in a.cells if address in b.cells}
    return of(a.sizes, cells, floating(common(a, b)))


def aggregate(values: list[float], aggregator: str) -> float:
    if not values:
        return 0.0
    match aggregator:
        case "count":
            return float(len(values))
        case "sum":
            return 0.0 + float(np.sum(values))
        case "prod":
            return float(np.prod(values))
        case "avg":
            return float(np.sum(values)) / len(values)
        case "max":
            return max((v for v in values if not math.isnan(v)), default=-math.inf)
        case "min":
            return min((v for v in values if not math.isnan(v)), default=math.inf)
    if any(map(math.isnan, values)):
        return math.nan
    values = sorted(values)
    middle = len(values) // 2
    return values[middle] if len(values) % 2 else (values[middle - 1] + values[middle]) / 2


def without(t: PlainTensor, dimensions: Iterable[str]) -> dict[str, int | None]:
    removed = set(dimensions)
    return {name: size for name, size in t.sizes.items() if name not in removed}


def complete(sizes: Mapping[str, int | None], cells: dict[Address, float]) -> dict[Address, float]:
    """A tensor without mapped dimensions has all its cells."""
    return cells if None in sizes.values() else {place: cells.get(place, 0.0) for place in all_places(sizes)}


def reduced(t: PlainTensor, aggregator: str, dimensions: Iterable[str] = ()) -> PlainTensor:
    sizes = without(t, list(dimensions) or t.sizes)
    groups: dict[Address, list[float]] = {}
    for address, value in t.cells.items():
        groups.setdefault(part(address, sizes), []).append(value)
    with np.errstate(all="ignore"):
        cells = {address: aggregate(values, aggregator) for address, values in groups.items()}
    return of(sizes, complete(sizes, cells), floating(t.cell_type))


def sliced(t: PlainTensor, places: Mapping[str, Label]) -> PlainTensor:
    sizes = without(t, places)
    wanted = frozenset(places.items())
    cells = {part(address, sizes): value for address, value in t.cells.items() if wanted <= address}
    return of(sizes, complete(sizes, cells), t.cell_type)


def renamed(t: PlainTensor, names: Mapping[str, str]) -> PlainTensor:
    cells = {frozenset((names.get(d, d), label) for d, label in address): v for address, v in t.cells.items()}
    return PlainTensor({names.get(d, d): size for d, size in t.sizes.items()}, cells, t.cell_type)


def concatenated(a: PlainTensor, b: PlainTensor, dimension: str) -> PlainTensor:
    lengths = [t.sizes.get(dimension, 1) or 0 for t in (a, b)]
    sizes = {**united(a, b), dimension: sum(lengths)}
    both = set(a.sizes) & set(b.sizes) - {dimension}
    others = set(sizes) - {dimension}
    cells: dict[Address, float] = {}
    for one, value in a.cells.items():
        for other, with_value in b.cells.items():
            if part(one, both) == part(other, both):
                address = part(one, others) | part(other, others)
                cells[address | {(dimension, dict(one).get(dimension, 0))}] = value
                cells[address | {(dimension, lengths[0] + int(dict(other).get(dimension, 0)))}] = with_value
    return of(sizes, cells, common(a, b))


def cast(t: PlainTensor, cell_type: str) -> PlainTensor:
    return of(t.sizes, t.cells, cell_type)


def unpacked(t: PlainTensor, cell_type: str, endian: str) -> PlainTensor:
    last = max(name for name, size in t.sizes.items() if size is not None)
    cells: dict[Address, float] = {}
    for address, value in t.cells.items():
        index = int(dict(address)[last])
        for bit in range(8):
            place = index * 8 + (bit if endian == "little" else 7 - bit)
            cells[part(address, set(t.sizes) - {last}) | {(last, place)}] = float(int(value) >> bit & 1)
    return of({**t.sizes, last: (t.sizes[last] or 0) * 8}, cells, cell_type)


def subspaces(t: PlainTensor) -> dict[Address, PlainTensor]:
    """Labels → the tensor of the indexed dimensions there."""
    sizes = {name: size for name, size in t.sizes.items() if size is not None}
    found: dict[Address, dict[Address, float]] = {}
    for address, value in t.cells.items():
        found.setdefault(part(address, set(t.sizes) - set(sizes)), {})[part(address, sizes)] = value
    return {labels: of(sizes, cells, t.cell_type) for labels, cells in found.items()}


def map_subspaces(
    t: PlainTensor, f: Callable[[PlainTensor], PlainTensor], sizes: Mapping[str, int | None]
) -> PlainTensor:
    """`sizes`: of the indexed dimensions of what `f` gives."""
    if None not in t.sizes.values():
        return f(t)
    mapped_sizes: dict[str, int | None] = {name: size for name, size in t.sizes.items() if size is None}
    results = {labels: f(subspace) for labels, subspace in subspaces(t).items()}
    cells = {labels | place: value for labels, r in results.items() for place, value in r.cells.items()}
    inner: dict[str, int | None] = {n: s for n, s in t.sizes.items() if s is not None}
    ones = of(inner, dict.fromkeys(all_places(inner), 1.0), t.cell_type)
    cell_type = f(ones).cell_type if sizes else floating(t.cell_type)
    return of({**mapped_sizes, **sizes}, cells, cell_type)


def filter_subspaces(t: PlainTensor, f: Callable[[PlainTensor], PlainTensor]) -> PlainTensor:
    kept = [labels for labels, subspace in subspaces(t).items() if sum(f(subspace).cells.values()) != 0]
    names = {name for name, size in t.sizes.items() if size is None}
    return of(t.sizes, {address: v for address, v in t.cells.items() if part(address, names) in kept}, t.cell_type)


def cell_order(t: PlainTensor, order: str) -> PlainTensor:
    """Of different cells."""
    sign = -1.0 if order == "max" else 1.0
    in_order = sorted(t.cells, key=lambda address: (math.isnan(t.cells[address]), sign * t.cells[address]))
    return of(t.sizes, {address: float(rank) for rank, address in enumerate(in_order)}, floating(t.cell_type))


def dense(sizes: Mapping[str, int | None], f: Callable[[Mapping[str, Label]], float], cell_type: str) -> PlainTensor:
    """`f` of the place of each cell."""
    return of(sizes, {address: f(dict(address)) for address in all_places(sizes)}, cell_type)
