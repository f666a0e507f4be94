"""Typed values to JSON values, as document/v1 shows them: what `converters` reads, the other way.

A float is written as the shortest text of its 32 bits, what is no finite number is a string, keys of maps are strings.

Vespa: https://docs.vespa.ai/en/reference/schemas/document-json-format.html
"""

from __future__ import annotations

import base64
import math
from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np
import orjson

from paperwasp.document.tensor.json_output import tensor_json
from paperwasp.document.types import (
    DOUBLE,
    FLOAT,
    FLOAT16,
    POSITION,
    RAW,
    ArrayType,
    DataType,
    InnerStructType,
    MapType,
    StructType,
    TensorFieldType,
    WeightedSetType,
)

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
        return rendered if isinstance(rendered, str) else _json(rendered)

    return name_of


def _json(value: Any) -> str:
    return orjson.dumps(value, option=orjson.OPT_SERIALIZE_NUMPY).decode()


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
