"""Data types of fields.

Vespa: https://docs.vespa.ai/en/reference/schemas/schemas.html#field-types
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class DataType:
    """A field's type. `str()` is its name as a schema writes it."""

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class NumericType(DataType):
    """A number with the range of `low`..`high` (inclusive, for integers) and a NumPy dtype name for its column."""

    dtype: str
    low: int | None = None
    high: int | None = None


BYTE = NumericType("byte", "int8", -128, 127)
INT = NumericType("int", "int32", -(2**31), 2**31 - 1)
LONG = NumericType("long", "int64", -(2**63), 2**63 - 1)
FLOAT = NumericType("float", "float32")
DOUBLE = NumericType("double", "float64")
BOOL = NumericType("bool", "int8", 0, 1)
STRING = DataType("string")

PRIMITIVES: Mapping[str, DataType] = {t.name: t for t in (BYTE, INT, LONG, FLOAT, DOUBLE, BOOL, STRING)}


@dataclass(frozen=True, slots=True)
class ArrayType(DataType):
    """`array<…>` of a primitive type."""

    element: DataType


def array_of(element: DataType) -> ArrayType:
    return ArrayType(f"array<{element}>", element)


@dataclass(frozen=True, slots=True)
class DocumentType:
    """A document type: its fields by name, in the order of the schema, inherited ones first."""

    name: str
    fields: Mapping[str, DataType]
    inherits: tuple[str, ...] = field(default=())
