"""Attributes: columns of values by lid, with what matching, ranking, sorting and summaries ask of them."""

from __future__ import annotations

from paperwasp.attribute.array import LONGEST_ROW, ArrayColumn
from paperwasp.attribute.column import Bitmap, Column, ColumnView
from paperwasp.attribute.numeric import NumericColumn
from paperwasp.attribute.string import StringColumn
from paperwasp.document.types import STRING, ArrayType, DataType, NumericType
from paperwasp.errors import InvalidInput

__all__ = ["LONGEST_ROW", "Bitmap", "Column", "ColumnView", "create_column"]


def create_column(data_type: DataType, *, fast_search: bool = False, cased: bool = False) -> Column:
    """An empty column. `fast_search` keeps posting lists; `cased` makes strings differ that differ in case alone.

    Errors: InvalidInput for a type that has no columns yet.
    """
    if isinstance(data_type, NumericType):
        return NumericColumn(data_type, fast_search=fast_search)
    if data_type == STRING:
        return StringColumn(cased=cased, fast_search=fast_search)
    if isinstance(data_type, ArrayType) and isinstance(data_type.element, NumericType):
        return ArrayColumn(data_type.element, cased=cased)
    if isinstance(data_type, ArrayType) and data_type.element == STRING:
        return ArrayColumn(None, cased=cased)
    raise InvalidInput(f"Attributes of type {data_type} are not supported yet")
