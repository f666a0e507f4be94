"""Bodies of puts and updates whose fields are all plain, read in one step: nearly all that are fed.

Plain are texts, numbers and truth values that are written as such, lists of texts, and dense tensors as flat arrays.
The kernel (`core/documents/plain_fields.cpp`) leaves everything else, and whatever is wrong, to `document.json_format`,
which gives the same values for what the kernel takes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import orjson

from paperwasp import limits
from paperwasp.core import _core
from paperwasp.core._core import PlainChange
from paperwasp.document.ids import DocumentId
from paperwasp.document.operations import Put, Update
from paperwasp.document.tensor.json_format import dense_tensor
from paperwasp.document.types import (
    BOOL,
    BYTE,
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    STRING,
    ArrayType,
    DataType,
    DocumentType,
    NumericType,
    TensorFieldType,
)
from paperwasp.document.updates import Assign, FieldUpdate, Value

_TEXT, _WHOLE, _TRUTH, _DOUBLE, _SINGLE, _TEXTS, _CELLS, _FLOATS, _DOUBLES = range(9)
"""The kinds of fields, as the kernel numbers them."""
_SINGLE_VALUES: Final = {
    STRING: (_TEXT, 0, 0),
    BOOL: (_TRUTH, 0, 0),
    DOUBLE: (_DOUBLE, 0, 0),
    FLOAT: (_SINGLE, 0, 0),
}


class PlainPut(NamedTuple):
    """The values of a put, and their JSON as it is stored; empty where that is to be made of the values."""

    fields: dict[str, Value]
    json: bytes


class PlainUpdate(NamedTuple):
    """The assignments of an update, and their JSON as it is logged; empty where that is to be made of them."""

    updates: tuple[FieldUpdate, ...]
    json: bytes


class PlainFields:
    """Reads the bodies of one document type."""

    def __init__(self, document_type: DocumentType) -> None:
        kinds = {name: kind for name, type_ in document_type.fields.items() if (kind := _kind_of(type_)) is not None}
        starts = {name: _start_of(type_) for name, type_ in document_type.fields.items() if name in kinds}
        self._kernel: Final = _core.PlainFields(
            document_type, [(name, *kind, starts[name]) for name, kind in kinds.items()]
        )
        self._tensors: Final = {
            name: type_.tensor
            for name, type_ in document_type.fields.items()
            if name in kinds and isinstance(type_, TensorFieldType)
        }

    def read_put(self, body: bytes) -> PlainPut | None:
        """The fields of a put that has nothing else; None where it goes the general way."""
        if len(body) > limits.JSON_PIECE_BYTES or (found := self._kernel.put(body)) is None:
            return None
        return self._put(*found)

    def read_change(
        self, start: str, name: str, body: bytes, is_update: bool
    ) -> PlainChange | PlainPut | PlainUpdate | None:
        """A put or an update of the document with the id `start` and `name`, which are of ASCII. A `PlainChange`, but
        where there are tensors what `read_put` or `read_update` says of it."""
        if len(body) > limits.JSON_PIECE_BYTES:
            return None
        found = self._kernel.change(start, name, body, is_update)
        if found is None or isinstance(found, PlainChange):
            return found
        return self._update(*found) if is_update else self._put(*found)

    def read_changes(self, start: str, names: list[str], bodies: list[bytes], is_update: bool) -> list[PlainChange]:
        """As `read_change` of each, up to one that is no `PlainChange`, or whose name is not as it stands in a path."""
        return self._kernel.changes(start, names, bodies, is_update, limits.DOCUMENT_ID_BYTES, limits.JSON_PIECE_BYTES)

    def read_update(self, body: bytes) -> PlainUpdate | None:
        """The assignments of an update that has nothing else; None where it goes the general way."""
        if len(body) > limits.JSON_PIECE_BYTES or (found := self._kernel.assigned(body)) is None:
            return None
        return self._update(*found)

    def _put(self, values: dict[str, Any], json: bytes) -> PlainPut | None:
        return PlainPut(values, json) if self._set_tensors(values) else None

    def _update(self, values: dict[str, Any], json: bytes) -> PlainUpdate | None:
        return PlainUpdate(assignments(values), json) if self._set_tensors(values) else None

    def _set_tensors(self, values: dict[str, Any]) -> bool:
        """Makes tensors of the cells that were read; whether they are what the general way takes."""
        try:
            for name in self._tensors.keys() & values.keys() if self._tensors else ():
                values[name] = dense_tensor(values[name], self._tensors[name])
        except ValueError:
            return False
        return True


def assignments(values: Mapping[str, Value]) -> tuple[FieldUpdate, ...]:
    """The updates that assign these values to whole fields."""
    return tuple([FieldUpdate(name, Assign(value)) for name, value in values.items()])


def operation_of(change: PlainChange) -> Put | Update:
    """A plain change as an operation, which the general way takes."""
    document_id, fields, json = DocumentId.parse(change.id), change.fields, change.body
    if change.is_update:
        return Update(document_id, assignments(fields), json=json, read_as=change.read_as)
    return Put(document_id, fields, json=json, read_as=change.read_as)


def _start_of(data_type: DataType) -> str:
    """How the JSON begins that is stored of a vector, up to its first digit."""
    if not isinstance(data_type, TensorFieldType):
        return ""
    return orjson.dumps({"type": str(data_type.tensor), "values": ""}).decode().removesuffix('"}')


def is_written_at_once(data_type: DataType) -> bool:
    """Return whether the kernel writes what is stored of a value of this type."""
    kind = _kind_of(data_type)
    return kind is not None and kind[0] != _CELLS


def _kind_of(data_type: DataType) -> tuple[int, int, int] | None:
    """The kind of a field, and the least and the largest number that it may have, or the number of its cells."""
    match data_type:
        case ArrayType():
            return (_TEXTS, 0, 0) if data_type.element == STRING else None
        case TensorFieldType():
            type_ = data_type.tensor
            count = 0 if type_.mapped or not type_.indexed else math.prod(type_.shape)
            kind = {"float": _FLOATS, "double": _DOUBLES}.get(type_.cell_type, _CELLS)
            return (kind, 0, count) if 0 < count <= limits.TENSOR_CELLS else None
        case NumericType() if data_type in (BYTE, INT, LONG):
            return _WHOLE, data_type.low or 0, data_type.high or 0
    return _SINGLE_VALUES.get(data_type)
