"""Documents as JSON: how the fields of a document are stored, logged and shown, and how they are read back.

The JSON is what document/v1 shows as `fields`: empty strings and arrays are left out, a float is written as the
shortest text of its 32 bits, and what is no finite number is a string. It loses nothing: read back by type, each
value is what it was.

Vespa: https://docs.vespa.ai/en/reference/schemas/document-json-format.html
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, Protocol

import numpy as np
import orjson

from paperwasp.content.layout import TypeLayout
from paperwasp.document.json_format import DocumentReader
from paperwasp.document.operations import Value
from paperwasp.document.types import FLOAT, ArrayType, DataType, DocumentType, NumericType
from paperwasp.store.document_store import StoredDocument

_Render = Callable[[Any], Any]


class DocumentCodec:
    """Fields of one document type to JSON and back."""

    def __init__(self, layout: TypeLayout) -> None:
        self._known = layout.types
        self._renders = {name: render for name, kind in layout.types.items() if (render := _render_of(kind))}
        self._reader = DocumentReader(DocumentType(layout.name, layout.types))

    def encode(self, fields: Mapping[str, Value]) -> bytes:
        """A document's fields as JSON. Errors: TypeError for text that is none (lone surrogates)."""
        return self._dump({name: value for name, value in fields.items() if value != "" and value != []})

    def encode_assigned(self, fields: Mapping[str, Value | None]) -> bytes:
        """Assigned values as JSON: empty ones stay, and null clears."""
        return self._dump(dict(fields))

    def decode(self, data: bytes) -> dict[str, Value]:
        """The typed values. Fields that the type does not have are left out."""
        found = orjson.loads(data)
        return self._reader.read_put({name: value for name, value in found.items() if name in self._known})

    def decode_assigned(self, data: bytes) -> dict[str, Value | None]:
        """As `decode`; null stays None."""
        found = orjson.loads(data)
        known = {name: value for name, value in found.items() if name in self._known}
        return {name: None for name, value in known.items() if value is None} | self._reader.read_put(known)

    def overlay(self, data: bytes, values: Mapping[str, Value | None]) -> bytes:
        """The JSON with some values replaced; None takes a field away."""
        fields = orjson.loads(data)
        shown = orjson.loads(self.encode({name: value for name, value in values.items() if value is not None}))
        for name in values:
            if name in shown:
                fields[name] = shown[name]
            else:
                fields.pop(name, None)
        return orjson.dumps(fields)

    def _dump(self, fields: dict[str, Any]) -> bytes:
        for name, render in self._renders.items():
            if (value := fields.get(name)) is not None:
                fields[name] = render(value)
        return orjson.dumps(fields, option=orjson.OPT_SERIALIZE_NUMPY)


class Row(Protocol):
    """A column, or a view of one."""

    def get(self, lid: int) -> Value | None: ...


def changed_fields(
    document: StoredDocument, kind: TypeLayout, codec: DocumentCodec, columns: Mapping[tuple[str, str], Row]
) -> bytes:
    """The fields of a stored document whose attributes were changed in place: the columns know better."""
    values = {name: columns[kind.name, name].get(document.lid) for name in kind.in_place}
    return codec.overlay(document.fields, values)


def type_of_id(id_text: str) -> str:
    """The document type in `id:namespace:type:…`."""
    return id_text.split(":", 3)[2]


def _render_of(data_type: DataType) -> _Render | None:
    """How a value is made ready for orjson; None where it is as it is."""
    if isinstance(data_type, ArrayType):
        render = _render_of(data_type.element)
        return None if render is None else lambda values: [render(value) for value in values]
    if data_type == FLOAT:
        return _render_float
    if isinstance(data_type, NumericType) and data_type.low is None:
        return _render_double
    return None


def _render_float(value: float) -> Any:
    return np.float32(value) if math.isfinite(value) else _render_double(value)


def _render_double(value: float) -> float | str:
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
