"""Stored documents with their tensors as they are shown. They are stored in the short form, many of them in hex.

The form is `format.tensors`: https://docs.vespa.ai/en/reference/api/document-v1.html#format.tensors
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

import orjson

from paperwasp.document.tensor.json_format import tensor_of
from paperwasp.document.tensor.json_output import FORMS, is_stored_in_hex, shown_json, tensor_json
from paperwasp.document.tensor.types import TensorType
from paperwasp.document.tensor.value import Tensor
from paperwasp.document.types import ArrayType, DataType, InnerStructType, MapType, StructType, TensorFieldType
from paperwasp.errors import LanguageError

DEFAULT_FORM: Final = FORMS[0]
"""The short form, without hex."""

Show = Callable[[Tensor], Any]
Convert = Callable[[Any, Show], Any]
"""JSON of a value, what shows a tensor → its JSON with the tensors so shown."""


class TensorForms:
    """The tensors of one document type. Made once for a type; documents without tensors then cost nothing."""

    def __init__(self, types: Mapping[str, DataType]) -> None:
        self._fields = {name: convert for name, kind in types.items() if (convert := converter_of(kind))}
        self._in_hex = {name: self._fields[name] for name, kind in types.items() if _is_stored_in_hex(kind)}

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
    """What is shown of a stored tensor by the type that it names itself. One that is not stored in hex stays."""
    if not isinstance(value, dict) or not _has_hex(value):
        return value
    return show(tensor_of(value, TensorType.parse(value["type"])))


def _has_hex(value: dict[str, Any]) -> bool:
    blocks = value.get("blocks", ())
    subspaces = blocks.values() if isinstance(blocks, dict) else (block["values"] for block in blocks)
    return any(isinstance(cells, str) for cells in (value.get("values"), *subspaces))


def _is_stored_in_hex(data_type: DataType) -> bool:
    return isinstance(data_type, TensorFieldType) and is_stored_in_hex(data_type.tensor)


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
