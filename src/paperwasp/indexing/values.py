"""Values of scripts: their text, as Java writes it, and how they fit the types of fields.

Vespa: com.yahoo.document.datatypes, whose `toString` is what scripts concatenate, join and parse.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from paperwasp.document.arithmetic import half, single
from paperwasp.document.float_text import double_text, single_text
from paperwasp.document.operations import Value
from paperwasp.document.tensor.types import TensorType
from paperwasp.document.tensor.value import Tensor, as_cells
from paperwasp.document.types import (
    BOOL,
    BYTE,
    DOUBLE,
    FLOAT,
    FLOAT16,
    INT,
    LONG,
    POSITION,
    RAW,
    STRING,
    URI,
    ArrayType,
    DataType,
    MapType,
    NumericType,
    StructType,
    TensorFieldType,
    WeightedSetType,
    array_of,
)

ToText = Callable[[Value], str]
Fit = Callable[[Value], Value]
_WIDTHS: Final[dict[DataType, int]] = {BYTE: 0, INT: 1, LONG: 2, FLOAT16: 3, FLOAT: 4, DOUBLE: 5}
"""Numeric types, each holding those before it, as far as Java widens them."""
_ROUNDED: Final[dict[DataType, Callable[[float], float]]] = {FLOAT16: half, FLOAT: single}


_WHITESPACE: Final = "\t\n\v\f\r\x1c\x1d\x1e\x1f \u1680" + "".join(
    map(chr, (*range(0x2000, 0x2007), *range(0x2008, 0x200B), 0x2028, 0x2029, 0x205F, 0x3000))
)
"""What Java's Character.isWhitespace is true of."""


def is_blank(text: str) -> bool:
    """Whether a text is empty or all whitespace, as Java's String.isBlank says."""
    return not text.strip(_WHITESPACE)


def is_number(type_: DataType | None) -> bool:
    return isinstance(type_, NumericType) and type_ != BOOL


def is_text(type_: DataType | None) -> bool:
    return type_ in (STRING, URI)


def is_float(type_: DataType | None) -> bool:
    return type_ in (FLOAT16, FLOAT, DOUBLE)


def primitive_of(type_: DataType) -> DataType:
    """The type of the elements, of an array or a weighted set; any other itself."""
    return primitive_of(type_.inner[0]) if isinstance(type_, ArrayType | WeightedSetType) else type_


# Text


def text_of(type_: DataType) -> ToText:
    """The function that writes a value of the type as text."""
    match type_:
        case ArrayType():
            element = text_of(type_.element)
            return lambda values: f"[{', '.join(map(element, values))}]"
        case WeightedSetType() | MapType():
            key, item = text_of(type_.inner[0]), text_of(type_.inner[1] if isinstance(type_, MapType) else INT)
            return lambda entries: f"{{{', '.join(f'{key(k)}={item(v)}' for k, v in entries.items())}}}"
        case StructType():
            members = {name: text_of(inner) for name, inner in type_.fields}
            return lambda value: f"{{{', '.join(f'{name}={members[name](v)}' for name, v in value.items())}}}"
    return _TEXTS.get(type_.name, str)


_TEXTS: Final[dict[str, ToText]] = {
    BOOL.name: lambda value: "true" if value else "false",
    STRING.name: lambda value: value,
    URI.name: lambda value: value,
    FLOAT16.name: single_text,
    FLOAT.name: single_text,
    DOUBLE.name: double_text,
    RAW.name: lambda value: base64.b64encode(value).decode(),
    POSITION.name: lambda place: f"{place[0]};{place[1]}",
}


# Types


def joined(first: DataType | None, second: DataType | None) -> DataType | None:
    """The type that values of both can be given; None: there is none."""
    if first is None or second is None or first == second:
        return first or second
    if is_number(first) and is_number(second):
        return max(first, second, key=lambda type_: _WIDTHS[type_])
    if is_text(first) and is_text(second):
        return STRING
    if isinstance(first, ArrayType) and isinstance(second, ArrayType):
        element = joined(first.element, second.element)
        return element and array_of(element)
    return None


def fit_of(source: DataType, target: DataType) -> Fit | None:
    """How a value of `source` becomes one of `target`, without losing anything; None: it cannot."""
    if source == target or (is_text(source) and is_text(target)):
        return _same
    if is_number(source) and is_number(target):
        return _number_fit(source, target)
    match source, target:
        case ArrayType(), ArrayType():
            return _each(fit_of(source.element, target.element))
        case WeightedSetType(), WeightedSetType():
            return _keys(fit_of(source.key, target.key))
        case TensorFieldType(), TensorFieldType():
            return _tensor_fit(source.tensor, target.tensor)
        case (StructType(), StructType()) | (MapType(), MapType()) if source.name == target.name:
            return _same
    return None


def _same(value: Value) -> Value:
    return value


def _number_fit(source: DataType, target: DataType) -> Fit | None:
    if _WIDTHS[source] > _WIDTHS[target]:
        return None
    if not is_float(target):
        return _same
    if is_float(source):
        return _same
    rounded = _ROUNDED.get(target)
    return float if rounded is None else lambda value: rounded(float(value))


def _each(fit: Fit | None) -> Fit | None:
    if fit is None or fit is _same:
        return fit
    each = fit
    return lambda values: [each(value) for value in values]


def _keys(fit: Fit | None) -> Fit | None:
    if fit is None or fit is _same:
        return fit
    each = fit
    return lambda entries: {each(key): item for key, item in entries.items()}


def _tensor_fit(source: TensorType, target: TensorType) -> Fit | None:
    """Cells of any type become cells of another; dimensions must be the same."""
    if source.dimensions != target.dimensions:
        return None

    def fit(tensor: Tensor) -> Tensor:
        cells: Any = as_cells(tensor.cells.astype(np.float64), target.cell_type)
        return Tensor(target, tensor.labels, cells)

    return fit
