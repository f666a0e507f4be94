"""Attributes: columns of values by lid, with what matching, ranking, sorting and summaries ask of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from paperwasp.document.operations import Value
from paperwasp.document.types import (
    BOOL,
    POSITION,
    PREDICATE,
    RAW,
    STRING,
    URI,
    ArrayType,
    DataType,
    NumericType,
    ReferenceType,
    TensorFieldType,
    WeightedSetType,
)
from paperwasp.errors import InvalidInput
from paperwasp.storage.attributes.array import ArrayColumn, WeightedSetColumn
from paperwasp.storage.attributes.column import Bitmap, Column, ColumnView
from paperwasp.storage.attributes.numeric import NumericColumn, unset_of
from paperwasp.storage.attributes.position import UNSET_POSITION, PositionColumn
from paperwasp.storage.attributes.predicate import PredicateColumn
from paperwasp.storage.attributes.raw import RawColumn
from paperwasp.storage.attributes.rows import LONGEST_ROW
from paperwasp.storage.attributes.string import StringColumn
from paperwasp.storage.attributes.tensor import TensorColumn
from paperwasp.storage.attributes.vector_graph import GraphSettings

__all__ = ["LONGEST_ROW", "Bitmap", "Column", "ColumnView", "create_column", "looks_unset", "unset_value"]

_TEXTS: Final = (STRING, URI)
_NO_VALUES: Final[tuple[Value, ...]] = ("", [], {})
_UNSET: Final[Mapping[str, Value]] = {RAW.name: b"", POSITION.name: UNSET_POSITION}
_RowsOf = Callable[..., Column]


def create_column(
    data_type: DataType,
    *,
    fast_search: bool = False,
    cased: bool = False,
    paged_in: Path | None = None,
    graph: GraphSettings | None = None,
) -> Column:
    """An empty column. `fast_search` keeps posting lists; `cased` makes strings differ that differ in case alone;
    `paged_in` is the folder where the cells of tensors are in a mapped file; `graph` keeps a graph over their vectors.

    Errors: InvalidInput for a type that has no columns.
    """
    match data_type:
        case NumericType():
            return NumericColumn(data_type, fast_search=fast_search)
        case TensorFieldType():
            return TensorColumn(data_type.tensor, paged_in, graph)
        case ReferenceType():
            return StringColumn(cased=True, fast_search=fast_search)
        case ArrayType() if data_type.element == POSITION:
            return PositionColumn(is_array=True)
        case ArrayType():
            return _rows_of(ArrayColumn, data_type.element, data_type, cased=cased, fast_search=fast_search)
        case WeightedSetType():
            return _rows_of(WeightedSetColumn, data_type.key, data_type, cased=cased, fast_search=fast_search)
    if data_type in _TEXTS:
        return StringColumn(cased=cased, fast_search=fast_search)
    if data_type == RAW:
        return RawColumn()
    if data_type == PREDICATE:
        return PredicateColumn()
    if data_type == POSITION:
        return PositionColumn(fast_search=fast_search)
    raise _no_column(data_type)


def looks_unset(data_type: DataType, value: Value | None) -> bool:
    """Tell whether a column of this type keeps the value as it keeps none, as in Vespa: so only documents know it."""
    return unset_check(data_type)(value)


def unset_check(data_type: DataType) -> Callable[[Value | None], bool]:
    """`looks_unset` of one type."""
    if isinstance(data_type, TensorFieldType) or data_type == BOOL:
        return lambda value: value is None
    unset = unset_value(data_type)
    if unset is None:
        return lambda value: value is None or value in _NO_VALUES
    return lambda value: value is None or bool(value == unset or value != value)


def unset_value(data_type: DataType) -> Value | None:
    """The value that a column keeps as it keeps none, where that is a number, bytes or a position; None: of this type
    there is none but the empty text, array, map or set."""
    if isinstance(data_type, NumericType):
        return None if data_type == BOOL else unset_of(data_type)
    return _UNSET.get(data_type.name)


def _rows_of(make: _RowsOf, element: DataType, data_type: DataType, **settings: bool) -> Column:
    if isinstance(element, NumericType):
        return make(element, **settings)
    if element in _TEXTS:
        return make(None, **settings)
    raise _no_column(data_type)


def _no_column(data_type: DataType) -> InvalidInput:
    return InvalidInput(f"Values of type {data_type} are not kept as attributes")
