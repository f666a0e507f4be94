"""The fields of stored documents as document/v1 shows them: all values, but those that Vespa's JSON hides.

    a text, URI, array, map or weighted set that is empty      hidden, of the document and of structs in it; an empty
                                                               text in an array or map is shown
    an attribute's value that stands for none                  hidden: its column, which Vespa asks, has none
    an attribute of type bool that is unset                    shown as false
    a predicate that is an attribute                           shown as it is indexed (`document.predicate`)

Structs, references and raws are shown when they are empty, and so are tensors.

Vespa: JsonSerializationHelper.java, document_field_retriever.cpp
Differs: an empty array, map or set in an array or map is shown. Vespa writes nothing there: the elements behind one in
an array move, and a map is no JSON.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Callable, Container, Iterable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any, Final

import numpy as np
import orjson

from paperwasp.core import _core
from paperwasp.document.predicate import PredicateIndex, shown_predicate
from paperwasp.document.tensor.json_format import tensor_of
from paperwasp.document.tensor.json_output import FORMS, is_stored_in_hex, shown_json, tensor_json
from paperwasp.document.tensor.types import TensorType
from paperwasp.document.tensor.value import Tensor
from paperwasp.document.types import (
    DOUBLE,
    FLOAT,
    FLOAT16,
    POSITION,
    RAW,
    STRING,
    URI,
    ArrayType,
    DataType,
    InnerStructType,
    MapType,
    StructType,
    TensorFieldType,
    WeightedSetType,
)
from paperwasp.errors import LanguageError

# Typed values to JSON values, as document/v1 shows them: what `converters` reads, the other way.
#
# A float is written as the shortest text of its 32 bits, what is no finite number is a string, keys of maps are
# strings.
#
# Vespa: https://docs.vespa.ai/en/reference/schemas/document-json-format.html


Render = Callable[[Any], Any]
_MICRO: Final = 1_000_000


def render_of(data_type: DataType, outer: Render | None = None) -> Render | None:
    """How a value is made ready for JSON (NumPy scalars included); None where it is as it is.

    `outer`: how the struct is that the value is in.
    """
    match data_type:
        case ArrayType():
            render = render_of(data_type.element, outer)
            return None if render is None else lambda values: [render(value) for value in values]
        case WeightedSetType():
            name_of = _key_render(data_type.key)
            return lambda weights: {name_of(key): weight for key, weight in weights.items()}
        case MapType():
            key_of, item = _key_render(data_type.key), render_of(data_type.value, outer) or _same
            return lambda entries: {key_of(key): item(value) for key, value in entries.items()}
        case StructType():
            return _struct_render(data_type)
        case InnerStructType():
            return outer
        case TensorFieldType():
            return tensor_json
    return _SINGLE.get(data_type.name)


def _struct_render(data_type: StructType) -> Render:
    renders: dict[str, Render] = {}

    def render_struct(members: Any) -> Any:
        return {name: renders.get(name, _same)(value) for name, value in members.items()}

    renders |= {name: render for name, inner in data_type.fields if (render := render_of(inner, render_struct))}
    return render_struct


def _same(value: Any) -> Any:
    return value


def _key_render(data_type: DataType) -> Callable[[Any], str]:
    """How a key is made the name of a member of a JSON object."""
    render = render_of(data_type) or _same

    def name_of(key: Any) -> str:
        rendered = render(key)
        if isinstance(rendered, str):
            return rendered
        return orjson.dumps(rendered, option=orjson.OPT_SERIALIZE_NUMPY).decode()

    return name_of


def _render_float(value: float) -> Any:
    return np.float32(value) if math.isfinite(value) else _render_double(value)


def _render_double(value: float) -> float | str:
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _render_raw(value: bytes) -> str:
    return base64.b64encode(value).decode()


def _render_position(position: tuple[int, int]) -> dict[str, float]:
    x, y = position
    return {"lat": y / _MICRO, "lng": x / _MICRO}


_SINGLE: Final[Mapping[str, Render]] = {
    FLOAT16.name: _render_float,
    FLOAT.name: _render_float,
    DOUBLE.name: _render_double,
    RAW.name: _render_raw,
    POSITION.name: _render_position,
}


# A walk through a type, for what changes the JSON of its values at the structs and tensors in them.


Json = Any
Prune = Callable[[Json], Json]
OfStruct = Callable[[StructType, Mapping[str, Prune]], Prune]
"""A change of the members of a struct. The mapping has the changes of their values, by name, when it runs."""


def pruner(
    data_type: DataType,
    of_struct: OfStruct,
    of_tensor: Callable[[TensorType], Prune] | None = None,
    outer: Prune | None = None,
) -> Prune | None:
    """Return the change that values of a type are shown with; None: none.

    `outer`: that of the struct which the type is in.
    """
    match data_type:
        case StructType():
            members: dict[str, Prune] = {}
            prune = of_struct(data_type, members)
            found = {name: pruner(kind, of_struct, of_tensor, prune) for name, kind in data_type.fields}
            members |= {name: member for name, member in found.items() if member is not None}
            return prune
        case InnerStructType():
            return outer
        case TensorFieldType():
            return of_tensor and of_tensor(data_type.tensor)
        case ArrayType():
            element = pruner(data_type.element, of_struct, of_tensor, outer)
            return element and (lambda values: [element(value) for value in values])
        case MapType():
            item = pruner(data_type.value, of_struct, of_tensor, outer)
            return item and (lambda entries: {key: item(value) for key, value in entries.items()})
    return None


# Stored documents with their tensors as they are shown. They are stored in the short form, many of them in hex.
#
# The form is `format.tensors`: https://docs.vespa.ai/en/reference/api/document-v1.html#format.tensors


DEFAULT_FORM: Final = FORMS[0]
"""The short form, without hex."""

Show = Callable[[Tensor], Any]
Convert = Callable[[Any, Show], Any]
"""JSON of a value, what shows a tensor → its JSON with the tensors so shown."""


class TensorForms:
    """The tensors of one document type. Made once for a type; documents without tensors then cost nothing."""

    def __init__(self, types: Mapping[str, DataType]) -> None:
        self._fields = {name: convert for name, kind in types.items() if (convert := converter_of(kind))}
        self._in_hex = {
            name: self._fields[name]
            for name, kind in types.items()
            if isinstance(kind, TensorFieldType) and is_stored_in_hex(kind.tensor)
        }

    def render(self, data: bytes, form: str) -> bytes:
        """Renders a stored JSON object of fields with its tensors in `form`, one of `FORMS`."""
        converters = self._in_hex if form == DEFAULT_FORM else self._fields
        if not converters:
            return data
        fields = orjson.loads(data)
        found = converters.keys() & fields.keys()
        if not found:
            return data
        show = shown_json if form == DEFAULT_FORM else partial(tensor_json, form=form)
        for name in found:
            fields[name] = converters[name](fields[name], show)
        return orjson.dumps(fields, option=orjson.OPT_SERIALIZE_NUMPY)


def expand_tensor(value: Any, show: Show) -> Any:
    """Show a stored tensor by the type that it names itself. One that is not stored in hex stays."""
    if not isinstance(value, dict) or not _has_hex(value):
        return value
    return show(tensor_of(value, TensorType.parse(value["type"])))


def _has_hex(value: dict[str, Any]) -> bool:
    blocks = value.get("blocks", ())
    subspaces = blocks.values() if isinstance(blocks, dict) else (block["values"] for block in blocks)
    return any(isinstance(cells, str) for cells in (value.get("values"), *subspaces))


def render_tensors(data: bytes, types: Mapping[str, DataType], form: str) -> bytes:
    """Renders one document's fields with their tensors in `form`. Who has many keeps a `TensorForms`."""
    return TensorForms(types).render(data, form)


def converter_of(data_type: DataType, outer: Convert | None = None) -> Convert | None:
    """How the JSON of a value is changed; None where there is no tensor in it. `outer`: of the struct it is in."""
    match data_type:
        case TensorFieldType():
            return _tensor_converter(data_type.tensor)
        case ArrayType():
            element = converter_of(data_type.element, outer)
            return element and (lambda values, show: [element(value, show) for value in values])
        case MapType():
            item = converter_of(data_type.value, outer)
            return item and (lambda entries, show: {key: item(value, show) for key, value in entries.items()})
        case StructType() if any(isinstance(inner, TensorFieldType) for inner in data_type.walk()):
            return _struct_converter(data_type)
        case InnerStructType():
            return outer
    return None


def _struct_converter(data_type: StructType) -> Convert:
    members: dict[str, Convert] = {}

    def convert(value: Any, show: Show) -> Any:
        return {name: members[name](item, show) if name in members else item for name, item in value.items()}

    members |= {name: found for name, kind in data_type.fields if (found := converter_of(kind, convert))}
    return convert


def _tensor_converter(type_: TensorType) -> Convert:
    def convert(value: Any, show: Show) -> Any:
        if isinstance(value, Tensor):
            return show(value)
        try:
            return show(tensor_of(value, type_))
        except LanguageError:  # stored when the field had another type
            return expand_tensor(value, show)

    return convert


_EMPTY: Final = (b':""', b":[]", b":{}")


class ShownFields:
    """The fields of one document type. A document of which nothing is hidden costs a few looks at its bytes."""

    def __init__(
        self,
        types: Mapping[str, DataType],
        unset: Mapping[str, Json],
        bools: Iterable[str],
        predicates: Mapping[str, PredicateIndex] = MappingProxyType({}),
    ) -> None:
        """`unset`: by attribute the JSON that stands for no value; `bools`: the attributes that are false then;
        `predicates`: by attribute how it is indexed."""
        self._hidden = {name for name, kind in types.items() if _is_hidden_when_empty(kind)}
        self._pruners = {name: prune for name, kind in types.items() if (prune := pruner(kind, _struct_pruner))}
        self._pruners |= {name: partial(shown_predicate, index=index) for name, index in predicates.items()}
        self._unset = unset
        self._bools = {name: _key(name) for name in bools}
        literals = {b":" + orjson.dumps(value) for value in unset.values()}
        self._needles = (*_EMPTY, *sorted(literals - set(_EMPTY)), *map(_key, predicates))

    def render(self, data: bytes, names: Container[str] | None) -> bytes:
        """Renders a stored JSON object, of which these fields are shown; None: all."""
        for needle in self._needles:
            if needle in data:
                data = self._render_hidden(data)
                break
        for name, key in self._bools.items():
            if (names is None or name in names) and not _has_member(data, key):
                data = b"%b%b%bfalse}" % (data[:-1], b"" if data == b"{}" else b",", key)
        return data

    def _render_hidden(self, data: bytes) -> bytes:
        fields: dict[str, Json] = orjson.loads(data)
        shown: dict[str, Json] = {}
        for name, value in fields.items():
            if (value or name not in self._hidden) and (name not in self._unset or value != self._unset[name]):
                prune = self._pruners.get(name)
                shown[name] = value if prune is None else prune(value)
        return data if shown == fields else orjson.dumps(shown)


def _has_member(data: bytes, key: bytes) -> bool:
    return key in data and _core.pick_members([data], [key], 1)[0] is not None


def _key(name: str) -> bytes:
    return orjson.dumps(name) + b":"


def _is_hidden_when_empty(data_type: DataType) -> bool:
    return data_type in (STRING, URI) or isinstance(data_type, ArrayType | MapType | WeightedSetType)


def _struct_pruner(data_type: StructType, inner: Mapping[str, Prune]) -> Prune:
    """Takes away members that are hidden."""
    hidden = {name for name, kind in data_type.fields if _is_hidden_when_empty(kind)}

    def prune(members: Json) -> Json:
        return {
            name: inner[name](value) if name in inner else value
            for name, value in members.items()
            if value or name not in hidden
        }

    return prune
