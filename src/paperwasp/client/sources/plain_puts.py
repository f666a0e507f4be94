"""Puts of tables whose values are in JSON what they are here: fed in this process, they need not become JSON.

Texts, whole numbers, truth values, doubles and lists of texts are that. Batches with other columns or with ids that are
not plain go the general way, as operations with JSON. Imported where there is a table: it needs pyarrow.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as is_type

from paperwasp import limits
from paperwasp.client.sources.arrow_values import column_values
from paperwasp.client.sources.operations import DecodedPut, DecodedPuts
from paperwasp.client.sources.rows import PlainColumns
from paperwasp.client.sources.whole_numbers import WHOLE_TYPES, is_like_whole, made_whole
from paperwasp.document.ids import DocumentId
from paperwasp.errors import InvalidInput

_MOST_BYTES: Final = limits.JSON_PIECE_BYTES // 2
"""Of a row's texts: larger documents are read beside the event loop."""
_NUMBER_BYTES: Final = 8


def plain_puts(batch: Any, columns: PlainColumns) -> DecodedPuts | None:
    """The puts of a batch of rows; None: it goes the general way, which also says what is wrong. Errors: those of Arrow
    for columns that are damaged, UnicodeDecodeError."""
    arrays = [batch.column(place) for place in columns.places]
    if not all(_is_plain(array.type) for array in arrays) or sum(map(_largest_bytes, arrays)) > _MOST_BYTES:
        return None
    ids = _ids(column_values(batch.column(columns.id)), columns)
    if ids is None or (_has_doubles(arrays) and not _are_known(ids, columns)):
        return None
    rows = zip(*map(_values, arrays, columns.types), strict=True) if arrays else (() for _ in ids)
    size_bytes = _size_bytes(arrays, columns.fields, len(ids))
    names = columns.fields
    if any(array.null_count for array in arrays):
        fields = [{name: value for name, value in zip(names, row, strict=True) if value is not None} for row in rows]
    else:
        fields = [dict(zip(names, row, strict=True)) for row in rows]
    puts = [DecodedPut(*put, size_bytes) for put in zip(ids, fields, strict=True)]
    return DecodedPuts(puts, frozenset([each.document_type for each in ids]))


def _is_plain(kind: Any) -> bool:
    if is_type.is_list(kind) or is_type.is_large_list(kind):
        return _is_text(kind.value_type)
    if is_type.is_dictionary(kind):
        return _is_text(kind.value_type)
    plain = (_is_text, is_type.is_boolean, is_type.is_integer, is_type.is_float64, is_type.is_null)
    return not isinstance(kind, pa.BaseExtensionType) and any(is_kind(kind) for is_kind in plain)


def _is_text(kind: Any) -> bool:
    return bool(is_type.is_string(kind) or is_type.is_large_string(kind))


def _has_doubles(arrays: Sequence[Any]) -> bool:
    return any(is_type.is_float64(array.type) for array in arrays)


def _are_known(ids: Sequence[DocumentId], columns: PlainColumns) -> bool:
    """Whether the types of all fields are known: doubles of whole numbers become what these are."""
    return None not in columns.types and {each.document_type for each in ids} <= {columns.document_type}


def _values(array: Any, field_type: str | None) -> Sequence[Any]:
    values = column_values(array)
    if is_type.is_float64(array.type):  # what is not finite is its name already
        if field_type in WHOLE_TYPES:
            values = [made_whole(value, field_type) if is_like_whole(value) else value for value in values]
            return [float(value) if isinstance(value, float) else value for value in values]
        return [value if value is None or type(value) is str else float(value) for value in values]
    return values


def _largest_bytes(array: Any) -> int:
    """The most bytes in the text of one row."""
    if _is_text(array.type):
        return pc.max(pc.binary_length(array)).as_py() or 0
    return int(array.nbytes) if is_type.is_nested(array.type) else _NUMBER_BYTES


def _size_bytes(arrays: Sequence[Any], names: Sequence[str], rows: int) -> int:
    """About the bytes of a row as JSON."""
    content = sum(int(array.nbytes) for array in arrays)
    return content // max(rows, 1) + sum(map(len, names)) + 6 * len(names)


def _ids(values: Sequence[Any], columns: PlainColumns) -> list[DocumentId] | None:
    """The ids of the rows; None where one is not plain."""
    try:
        return list(_each_id(map(_plain_text, values), columns))
    except InvalidInput:
        return None


def _plain_text(value: Any) -> str:
    """Errors: InvalidInput."""
    text = "" if value is None else str(value)
    if not (text and text.isascii() and text.isprintable()):
        raise InvalidInput("no plain id")
    return text


def _each_id(texts: Iterator[str], columns: PlainColumns) -> Iterator[DocumentId]:
    """Errors: InvalidInput."""
    namespace = document_type = start = ""
    for text in texts:
        if not text.startswith("id:"):
            if columns.document_type is None:
                raise InvalidInput("no document type")
            yield DocumentId(columns.namespace, columns.document_type, text)
        elif start and text.startswith(start) and len(text) > len(start):
            yield DocumentId(namespace, document_type, text[len(start) :])
        else:
            found = DocumentId.parse(text)
            if found.number is not None or found.group is not None:
                raise InvalidInput("no plain id")
            namespace, document_type = found.namespace, found.document_type
            start = f"id:{namespace}:{document_type}::"
            yield found
