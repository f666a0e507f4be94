"""Tensor types: the cell type and the dimensions, as text and as values.

    tensor(x{}) · tensor<float>(x[3]) · tensor<int8>(token{},x[16])

Dimensions are kept in the order of their names, so types that mean the same are equal.

Vespa: https://docs.vespa.ai/en/reference/ranking/tensor.html#tensor-type-spec
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Final

from msgspec import Struct

from paperwasp import limits
from paperwasp.base.patterns import compile_later

CELL_TYPES: Final = ("double", "float", "bfloat16", "int8")
"""From the largest to the smallest."""

_TYPE: Final = compile_later(r"tensor\s*(?:<\s*(\w+)\s*>)?\s*\((.*)\)", re.DOTALL)
_DIMENSION: Final = compile_later(r"\s*(\w+)\s*(\{\s*\}|\[\s*(\d*)\s*\])\s*")


class Dimension(Struct, frozen=True):
    """One dimension: mapped (`x{}`), or indexed with a size (`x[3]`); size 0: indexed and unbound (`x[]`)."""

    name: str
    size: int | None = None
    """None: mapped."""

    @property
    def is_mapped(self) -> bool:
        return self.size is None

    def __str__(self) -> str:
        return f"{self.name}{{}}" if self.size is None else f"{self.name}[{self.size or ''}]"


class TensorType(Struct, frozen=True, dict=True):
    """A tensor type. Without dimensions it is a number, `tensor()`."""

    dimensions: tuple[Dimension, ...] = ()
    cell_type: str = "double"

    def __post_init__(self) -> None:
        names = [dimension.name for dimension in self.dimensions]
        if names != sorted(set(names)):
            raise ValueError("the dimensions of a tensor type are ordered by name, each once")

    @classmethod
    def of(cls, dimensions: Iterable[Dimension], cell_type: str = "double") -> TensorType:
        """The type with these dimensions, in whatever order. A type without dimensions has cells of double."""
        ordered = tuple(sorted(dimensions, key=lambda dimension: dimension.name))
        return cls(ordered, cell_type if ordered else "double")

    @classmethod
    def parse(cls, text: str) -> TensorType:
        """The type that `text` writes. Errors: ValueError that says what is wrong."""
        match = _TYPE.fullmatch(text.strip())
        if match is None:
            raise ValueError(f"{text!r} is no tensor type; one looks like tensor<float>(x[3],label{{}})")
        cell_type = match[1] or "double"
        if cell_type not in CELL_TYPES:
            raise ValueError(f"unknown cell type {cell_type!r}; there are {', '.join(CELL_TYPES)}")
        parts = match[2].split(",") if match[2].strip() else []
        dimensions = [_dimension(part) for part in parts]
        if len(dimensions) > limits.TENSOR_DIMENSIONS:
            raise ValueError(f"a tensor has at most {limits.TENSOR_DIMENSIONS} dimensions")
        names = {dimension.name for dimension in dimensions}
        if len(names) < len(dimensions):
            raise ValueError(f"a dimension is twice in {text!r}")
        return cls.of(dimensions, cell_type)

    @cached_property
    def mapped(self) -> tuple[Dimension, ...]:
        return tuple(dimension for dimension in self.dimensions if dimension.is_mapped)

    @cached_property
    def indexed(self) -> tuple[Dimension, ...]:
        return tuple(dimension for dimension in self.dimensions if not dimension.is_mapped)

    @property
    def is_number(self) -> bool:
        return not self.dimensions

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """The sizes of the indexed dimensions: of one dense subspace."""
        return tuple(dimension.size or 0 for dimension in self.indexed)

    def __str__(self) -> str:
        cells = "" if self.cell_type == "double" else f"<{self.cell_type}>"
        return f"tensor{cells}({','.join(map(str, self.dimensions))})"


NUMBER: Final = TensorType()
"""`tensor()`: what every number is."""


def _dimension(text: str) -> Dimension:
    match = _DIMENSION.fullmatch(text)
    if match is None:
        raise ValueError(f"{text.strip()!r} is no tensor dimension; one looks like x{{}} or x[3]")
    if match[3] is None:
        return Dimension(match[1])
    if match[3] and (len(match[3]) > 10 or not 0 < int(match[3]) <= limits.TENSOR_DIMENSION_SIZE):
        raise ValueError(f"the size of dimension {match[1]!r} must be from 1 to {limits.TENSOR_DIMENSION_SIZE}")
    return Dimension(match[1], int(match[3] or 0))


# The types that tensor operations give, from the types they are given.
#
# A result of arithmetic has cells of at least float: only what moves cells without changing them keeps int8 and
# bfloat16. A number has no say in the cell type of what it is combined with.
#
# Errors: ValueError that says what does not fit.
# Vespa: https://docs.vespa.ai/en/reference/ranking/ranking-expressions.html#tensor-functions


def largest(*cell_types: str) -> str:
    """The cell type of these that holds most."""
    return min(cell_types, key=CELL_TYPES.index)


def at_least_float(cell_type: str) -> str:
    return largest(cell_type, "float")


def mapped(type_: TensorType) -> TensorType:
    """The type of a function of each cell."""
    return TensorType.of(type_.dimensions, at_least_float(type_.cell_type))


def joined(a: TensorType, b: TensorType) -> TensorType:
    """The type of a function of the cells that agree in the dimensions that both have. Errors: ValueError."""
    return TensorType.of(_united(a, b).values(), at_least_float(_common_cells(a, b)))


def merged(a: TensorType, b: TensorType) -> TensorType:
    """The type of a merge: the cells of both. Errors: ValueError unless they have the same dimensions."""
    if [d.name for d in a.dimensions] != [d.name for d in b.dimensions]:
        raise ValueError(f"merge needs the same dimensions on both sides, not {a} and {b}")
    return joined(a, b)


def reduced(type_: TensorType, dimensions: Sequence[str]) -> TensorType:
    """The type without these dimensions; a number if none is named."""
    kept = _without(type_, dimensions) if dimensions else ()
    return TensorType.of(kept, at_least_float(type_.cell_type)) if kept else NUMBER


def renamed(type_: TensorType, old: Sequence[str], new: Sequence[str]) -> TensorType:
    """The type with dimensions renamed. Errors: ValueError."""
    if len(old) != len(new) or not old:
        raise ValueError(f"rename needs as many new names as old ones, not {len(old)} and {len(new)}")
    kept = _without(type_, old)
    names = dict(zip(old, new, strict=True))
    changed = [Dimension(names[d.name], d.size) for d in type_.dimensions if d.name in names]
    result = TensorType.of([*kept, *changed], type_.cell_type) if _distinct([*kept, *changed]) else None
    if result is None:
        raise ValueError(f"rename gives {type_} two dimensions of one name")
    return result


def sliced(type_: TensorType, dimensions: Sequence[str]) -> TensorType:
    """The type of a slice: the cells at one place in these dimensions. Errors: ValueError."""
    return TensorType.of(_without(type_, dimensions), type_.cell_type)


def concatenated(a: TensorType, b: TensorType, dimension: str) -> TensorType:
    """The type of two tensors end to end along an indexed dimension; one that lacks it counts as one place in it."""
    for side in (a, b):
        if any(d.name == dimension and d.is_mapped for d in side.dimensions):
            raise ValueError(f"concat is along an indexed dimension, and {dimension!r} of {side} is mapped")
    sizes = [_size(side, dimension) for side in (a, b)]
    united = _united(_lacking(a, dimension), _lacking(b, dimension))
    united[dimension] = Dimension(dimension, sum(sizes) if all(sizes) else 0)
    cells = _common_cells(a, b)
    same = a.is_number or b.is_number or a.cell_type == b.cell_type
    return TensorType.of(united.values(), cells if same else at_least_float(cells))


def cast(type_: TensorType, cell_type: str) -> TensorType:
    """With other cells."""
    if type_.is_number and cell_type != "double":
        raise ValueError(f"a number cannot have cells of {cell_type}")
    return TensorType.of(type_.dimensions, cell_type)


def unpacked(type_: TensorType, cell_type: str) -> TensorType:
    """A cell for every bit, along the last indexed dimension."""
    if type_.cell_type != "int8" or not type_.indexed:
        raise ValueError(f"unpack_bits takes cells of int8 in an indexed dimension, not {type_}")
    last = type_.indexed[-1]
    if not last.size:
        raise ValueError(f"unpack_bits needs the size of dimension {last.name!r} of {type_}")
    dimensions = [Dimension(d.name, last.size * 8) if d is last else d for d in type_.dimensions]
    return TensorType.of(dimensions, cell_type)


def filtered(type_: TensorType) -> TensorType:
    """The type of a filter that keeps some of the subspaces. Errors: ValueError without a mapped dimension."""
    if not type_.mapped:
        raise ValueError(f"filter_subspaces needs a mapped dimension, and {type_} has none")
    return type_


def dense_part(type_: TensorType) -> TensorType:
    """The type of one subspace; without indexed dimensions a number."""
    return TensorType.of(type_.indexed, type_.cell_type)


def with_subspaces(type_: TensorType, subspace: TensorType) -> TensorType:
    """The type of tensors of `type_` after each subspace has become a `subspace`. Errors: ValueError."""
    if subspace.mapped:
        raise ValueError(f"the function of map_subspaces gives {subspace}, which has mapped dimensions")
    if not type_.mapped:
        return subspace
    if subspace.is_number:
        return TensorType.of(type_.mapped, at_least_float(type_.cell_type))
    if not _distinct([*type_.mapped, *subspace.dimensions]):
        raise ValueError(f"map_subspaces gives {type_} two dimensions of one name, by {subspace}")
    return TensorType.of([*type_.mapped, *subspace.dimensions], subspace.cell_type)


def generalized(a: TensorType, b: TensorType) -> TensorType | None:
    """The type that holds values of both; None if there is none."""
    if len(a.dimensions) != len(b.dimensions):
        return None
    dimensions = []
    for one, other in zip(a.dimensions, b.dimensions, strict=True):
        sizes_differ = one.size != other.size and one.size != 0 and other.size != 0
        if one.name != other.name or one.is_mapped != other.is_mapped or sizes_differ:
            return None
        dimensions.append(one if one.is_mapped or one.size == 0 else other)
    return TensorType.of(dimensions, largest(a.cell_type, b.cell_type))


def is_assignable(given: TensorType, wanted: TensorType) -> bool:
    """Return whether a value of one type is one of the other: the same but for the cell type and sizes left open."""
    return [d.name for d in given.dimensions] == [d.name for d in wanted.dimensions] and all(
        have.is_mapped == want.is_mapped and (want.is_mapped or want.size in (0, have.size))
        for have, want in zip(given.dimensions, wanted.dimensions, strict=True)
    )


def _united(a: TensorType, b: TensorType) -> dict[str, Dimension]:
    united = {d.name: d for d in a.dimensions}
    for dimension in b.dimensions:
        other = united.setdefault(dimension.name, dimension)
        if other.is_mapped != dimension.is_mapped or (other.size and dimension.size and other.size != dimension.size):
            raise ValueError(f"dimension {dimension.name!r} differs between {a} and {b}")
        if not other.size:
            united[dimension.name] = dimension
    return united


def _common_cells(a: TensorType, b: TensorType) -> str:
    if a.is_number:
        return b.cell_type
    return a.cell_type if b.is_number else largest(a.cell_type, b.cell_type)


def _without(type_: TensorType, names: Sequence[str]) -> tuple[Dimension, ...]:
    present: Mapping[str, Dimension] = {d.name: d for d in type_.dimensions}
    for name in names:
        if name not in present:
            raise ValueError(f"{type_} has no dimension {name!r}")
    return tuple(d for d in type_.dimensions if d.name not in names)


def _lacking(type_: TensorType, dimension: str) -> TensorType:
    return TensorType.of((d for d in type_.dimensions if d.name != dimension), type_.cell_type)


def _size(type_: TensorType, dimension: str) -> int:
    """0: not known."""
    return next((d.size or 0 for d in type_.dimensions if d.name == dimension), 1)


def _distinct(dimensions: Iterable[Dimension]) -> bool:
    names = [d.name for d in dimensions]
    return len(set(names)) == len(names)
