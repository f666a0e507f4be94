"""Attributes: columns of values by lid, with what matching, ranking, sorting and summaries ask of them."""

from __future__ import annotations

from paperwasp.attribute.array import ArrayColumn
from paperwasp.attribute.column import Bitmap, Column, ColumnView
from paperwasp.attribute.numeric import NumericColumn
from paperwasp.attribute.string import StringColumn
from paperwasp.document.types import STRING, ArrayType, DataType, NumericType
from paperwasp.errors import InvalidInput
from paperwasp.schema.model import AttributeSettings, Field

__all__ = ["Bitmap", "Column", "ColumnView", "can_be_attribute", "create_column", "create_column_of"]


def create_column(field: Field) -> Column:
    """An empty column for an attribute field. Errors: InvalidInput for a type that has no columns yet."""
    return create_column_of(field.type, field.attribute or AttributeSettings())


def create_column_of(data_type: DataType, settings: AttributeSettings) -> Column:
    if isinstance(data_type, NumericType):
        return NumericColumn(data_type, fast_search=settings.fast_search)
    if data_type == STRING:
        return StringColumn(cased=settings.cased, fast_search=settings.fast_search)
    if isinstance(data_type, ArrayType) and isinstance(data_type.element, NumericType):
        return ArrayColumn(data_type.element, cased=settings.cased)
    if isinstance(data_type, ArrayType) and data_type.element == STRING:
        return ArrayColumn(None, cased=settings.cased)
    raise InvalidInput(f"Attributes of type {data_type} are not supported yet")


def can_be_attribute(data_type: DataType) -> bool:
    """Whether a column of this type can be made."""
    element = data_type.element if isinstance(data_type, ArrayType) else data_type
    return isinstance(element, NumericType) or element == STRING
