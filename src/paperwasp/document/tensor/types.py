"""Tensor types: the cell type and the dimensions, as text and as values.

    tensor(x{}) · tensor<float>(x[3]) · tensor<int8>(token{},x[16])

Dimensions are kept in the order of their names, so types that mean the same are equal.

Vespa: https://docs.vespa.ai/en/reference/ranking/tensor.html#tensor-type-spec
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cached_property
from typing import Final

from paperwasp import limits
from paperwasp.base.patterns import compile_later
from paperwasp.base.records import dataclass

CELL_TYPES: Final = ("double", "float", "bfloat16", "int8")
"""From the largest to the smallest."""

_TYPE: Final = compile_later(r"tensor\s*(?:<\s*(\w+)\s*>)?\s*\((.*)\)", re.DOTALL)
_DIMENSION: Final = compile_later(r"\s*(\w+)\s*(\{\s*\}|\[\s*(\d*)\s*\])\s*")


@dataclass(frozen=True, slots=True)
class Dimension:
    """One dimension: mapped (`x{}`), or indexed with a size (`x[3]`); size 0: indexed and unbound (`x[]`)."""

    name: str
    size: int | None = None
    """None: mapped."""

    @property
    def is_mapped(self) -> bool:
        return self.size is None

    def __str__(self) -> str:
        return f"{self.name}{{}}" if self.size is None else f"{self.name}[{self.size or ''}]"


@dataclass(frozen=True)
class TensorType:
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
