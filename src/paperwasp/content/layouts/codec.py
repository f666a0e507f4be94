"""Documents as JSON: how the fields of a document are stored, logged and shown, and how they are read back.

The JSON is what document/v1 shows as `fields`: a float is written as the shortest text of its 32 bits, and what is no
finite number is a string. But it has all values, where document/v1 hides empty ones (`document.shown`), and the cells
of dense tensors are stored in hex (`tensor.json_output.stored_json`); earlier versions stored them as shown, and both
are read. It loses nothing: read back by type, each value is what it was. How values of a type look is defined in
`document.converters` and `document.shown`.

What was stored under an earlier layout may have fields that are there no more, or values of another type. It is left
as it is, and `conform` makes of it what is to be seen.

Vespa: https://docs.vespa.ai/en/reference/schemas/document-json-format.html
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, Protocol

import orjson

from paperwasp.content.layouts.layout import TypeLayout, fits
from paperwasp.document.apply_updates import updated_fields
from paperwasp.document.converters import Converter, TextOfNumber, converter_of
from paperwasp.document.operations import Value
from paperwasp.document.plain_fields import is_written_at_once
from paperwasp.document.sent_numbers import numbers_as_texts
from paperwasp.document.shown import Prune, Render, ShownFields, TensorForms, expand_tensor, pruner, render_of
from paperwasp.document.tensor.json_output import stored_json, tensor_json
from paperwasp.document.tensor.types import TensorType, is_assignable
from paperwasp.document.types import (
    BOOL,
    RAW,
    STRING,
    URI,
    ArrayType,
    DataType,
    DocumentType,
    MapType,
    NumericType,
    ReferenceType,
    StructType,
    TensorFieldType,
    WeightedSetType,
)
from paperwasp.document.update_json import UpdateReader, write_updates
from paperwasp.document.updates import Assign, FieldUpdate
from paperwasp.storage.attributes import looks_unset, unset_value
from paperwasp.storage.documents.document_store import StoredDocument
from paperwasp.text.large_json import load_stored_json

Json = Any


class DocumentCodec:
    """Fields of one document type to JSON and back."""

    def __init__(self, layout: TypeLayout) -> None:
        self._type = DocumentType(layout.name, layout.types)
        self._attributes = frozenset(field.name for field in layout.attributes)
        self._shown = _shown_fields(layout)
        self._renders = {name: render for name, kind in layout.types.items() if (render := _render_of(kind))}
        self._made_only_here = frozenset(name for name in self._renders if not is_written_at_once(layout.types[name]))
        self._converters = {name: _converter(kind) for name, kind in layout.types.items()}
        self._pruners = {
            name: prune for name, kind in layout.types.items() if (prune := pruner(kind, _struct_pruner, _tensor_check))
        }

    def is_plain(self, names: Iterable[str]) -> bool:
        """Return whether the JSON that came with the values of these fields can be stored as it is."""
        return self._made_only_here.isdisjoint(names)

    def encode(self, fields: Mapping[str, Value]) -> bytes:
        """Return a document's fields as JSON. Errors: TypeError for text that is none (lone surrogates)."""
        rendered = dict(fields)
        self._render(rendered)
        return _dumps(rendered)

    def decode(self, data: bytes) -> dict[str, Value]:
        """Return the typed values of a document of this layout. Fields that the type does not have are left out."""
        converters = self._converters
        found: dict[str, Json] = load_stored_json(data)
        return {
            name: converters[name](value) for name, value in found.items() if value is not None and name in converters
        }

    def encode_assigned(self, fields: Mapping[str, Value | None]) -> bytes:
        """The body of an update that assigns whole fields: empty values stay, and null clears."""
        rendered = dict(fields)
        self._render(rendered)
        return _dumps({name: {"assign": value} for name, value in rendered.items()})

    def encode_updates(self, updates: Sequence[FieldUpdate]) -> bytes:
        """The body of any update. Errors: InvalidInput where it is none of this type."""
        return _dumps(write_updates(updates, self._type))

    def decode_updates(self, data: bytes) -> tuple[FieldUpdate, ...]:
        """The updates of a body. Errors: InvalidInput where they are none of this type."""
        return self._updates.read(load_stored_json(data))

    def update(self, fields: Mapping[str, Value], updates: Sequence[FieldUpdate]) -> dict[str, Value]:
        """The fields of a document with these updates applied. A number that an attribute cannot tell from none is
        none for arithmetic, as it is where a column is changed in place."""
        changed = {update.field for update in updates if type(update.action) is not Assign}
        unset = [name for name in changed & self._attributes if self._is_unset_number(name, fields.get(name))]
        if unset:
            fields = {name: value for name, value in fields.items() if name not in unset}
        return updated_fields(fields, updates, self._type.fields, self._attributes)

    def create(self, updates: Sequence[FieldUpdate]) -> dict[str, Value]:
        """The fields of a document that updates create. It has no row in any attribute yet, so its numbers are those
        of a document: arithmetic starts from 0."""
        return updated_fields({}, updates, self._type.fields, frozenset())

    def read(self, name: str, value: Json) -> Value | None:
        """The typed value of what a document of any layout has in a field; None where it is none of this type's."""
        return self._convert_kept(name, value)

    def decode_kept(self, data: bytes, names: Iterable[str] | None = None) -> dict[str, Value]:
        """Decode what fits this layout's types in a document of any earlier one; with `names`, only these fields."""
        found: dict[str, Json] = load_stored_json(data)
        wanted = found if names is None else [name for name in names if name in found]
        values = {name: self._convert_kept(name, found[name]) for name in wanted}
        return {name: value for name, value in values.items() if value is not None}

    def conform(self, data: bytes) -> bytes:
        """The JSON of a document of any earlier layout, as one of this layout."""
        return self.encode(self.decode_kept(data))

    def overlay(self, data: bytes, values: Mapping[str, Value | None], is_of_earlier_layout: bool = False) -> bytes:
        """The JSON with some values replaced by those of columns. None takes a field away, unless it has a value that a
        column keeps as none. What an earlier layout wrote stays as it is where it reads as the value of the column: the
        column may have been filled from it."""
        fields = load_stored_json(data)
        known = load_stored_json(self.conform(data)) if is_of_earlier_layout else {}
        shown = load_stored_json(self.encode({name: value for name, value in values.items() if value is not None}))
        for name, value in values.items():
            if value is not None:
                if name not in known or known[name] != shown[name]:
                    fields[name] = shown[name]
            elif name in fields and not looks_unset(self._type.fields[name], self.read(name, fields[name])):
                del fields[name]
        return orjson.dumps(fields)

    def _is_unset_number(self, name: str, value: Value | None) -> bool:
        data_type = self._type.fields[name]
        return isinstance(data_type, NumericType) and looks_unset(data_type, value)

    def _convert_kept(self, name: str, value: Json) -> Value | None:
        convert = self._converters.get(name)
        if convert is None or value is None:
            return None
        prune = self._pruners.get(name)
        try:
            pruned = value if prune is None else prune(value)
            try:
                kept = convert(pruned)
            except TextOfNumber:
                kept = convert(numbers_as_texts(pruned))
        except (ValueError, TypeError, AttributeError, ArithmeticError, LookupError):
            return None
        return kept if fits(self._type.fields[name], kept) else None

    def render(self, data: bytes, names: Container[str] | None, tensor_form: str) -> bytes:
        """The JSON of some fields (None: all) as it is shown: with tensors in a form of `tensor.json_output`."""
        if names is not None:
            fields: dict[str, Json] = load_stored_json(data)
            data = _dumps({name: value for name, value in fields.items() if name in names})
        return self._tensor_forms.render(self._shown.render(data, names), tensor_form)

    @cached_property
    def _updates(self) -> UpdateReader:
        return UpdateReader(self._type)

    @cached_property
    def _tensor_forms(self) -> TensorForms:
        return TensorForms(self._type.fields)

    @cached_property
    def empty_values(self) -> Mapping[str, Value]:
        """The empty value of each field whose type has one that earlier versions did not store."""
        kinds = self._type.fields.items()
        return {name: empty for name, kind in kinds if (empty := _empty_value(kind)) is not None}

    def _render(self, fields: dict[str, Any]) -> None:
        for name, render in self._renders.items():
            if (value := fields.get(name)) is not None:
                fields[name] = render(value)


class Codecs:
    """The codecs of document types by name, each made when it is first asked for. One layout has one object."""

    def __init__(self) -> None:
        self._made: dict[str, DocumentCodec] = {}

    def of(self, kind: TypeLayout) -> DocumentCodec:
        """Return the codec of a document type."""
        codec = self._made.get(kind.name)
        if codec is None:
            codec = self._made[kind.name] = DocumentCodec(kind)
        return codec


def _dumps(fields: Json) -> bytes:
    return orjson.dumps(fields, option=orjson.OPT_SERIALIZE_NUMPY)


class Row(Protocol):
    """A column, or a view of one."""

    def get(self, lid: int) -> Value | None: ...


def changed_fields(
    document: StoredDocument,
    kind: TypeLayout,
    codec: DocumentCodec,
    columns: Mapping[tuple[str, str], Row],
    is_of_earlier_layout: bool = False,
) -> bytes:
    """The fields of a stored document whose attributes were changed in place: the columns know better."""
    values = {name: columns[kind.name, name].get(document.lid) for name in kind.types if name in kind.in_place}
    return codec.overlay(document.fields, values, is_of_earlier_layout)


def type_of_id(id_text: str) -> str:
    """The document type in `id:namespace:type:…`."""
    return id_text.split(":", 3)[2]


def _shown_fields(layout: TypeLayout) -> ShownFields:
    unset: dict[str, Json] = {}
    for name in layout.in_place:
        data_type = layout.types[name]
        if (value := unset_value(data_type)) is not None:
            render = render_of(data_type)
            unset[name] = value if render is None else render(value)
    predicates = {
        field.name: field.column.predicate
        for field in layout.attributes
        if field.column is not None and field.column.predicate is not None
    }
    bools = [name for name in layout.in_place if layout.types[name] == BOOL]
    return ShownFields(layout.types, unset, bools, predicates)


def _empty_value(data_type: DataType) -> Value | None:
    match data_type:
        case ArrayType():
            return []
        case MapType() | WeightedSetType() | StructType():
            return {}
        case ReferenceType():
            return ""
    return {STRING: "", URI: "", RAW: b""}.get(data_type)


def _render_of(data_type: DataType) -> Render | None:
    """Return the function that makes values of a type ready for `_dumps`; None: they are."""
    return stored_json if isinstance(data_type, TensorFieldType) else render_of(data_type)


def _converter(data_type: DataType) -> Converter:
    """Return the function that reads stored values of a type."""
    convert = converter_of(data_type)
    if data_type == STRING:  # text was looked through when it came
        return lambda value: value if type(value) is str else convert(value)
    return convert


def _struct_pruner(data_type: StructType, inner: Mapping[str, Prune]) -> Prune:
    """Return a function that removes members which the type does not have (any more)."""
    there = {name for name, _ in data_type.fields}

    def prune(members: Json) -> Json:
        return {
            name: inner[name](value) if name in inner else value for name, value in members.items() if name in there
        }

    return prune


def _tensor_check(type_: TensorType) -> Prune:
    """Raise ValueError for a tensor of a type that is not assignable; a value that names none is given as it is."""
    name = str(type_)

    def check(value: Json) -> Json:
        stored = value.get("type", name) if isinstance(value, dict) else name
        if stored == name:
            return value
        if not is_assignable(TensorType.parse(str(stored)), type_):
            raise ValueError(f"a {stored} is stored, not a {name}")
        return expand_tensor(value, tensor_json)  # hex is of the stored cells' type

    return check
