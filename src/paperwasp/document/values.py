"""Whether a value is one of its type: the last look at it before it is logged, since what is logged must be applied.

Values: str, bool, int, float, bytes (raw), GeoPosition (position), Tensor, list (array), dict (map, weighted set,
struct).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

from paperwasp.document.tensor.value import Tensor
from paperwasp.document.types import (
    BOOL,
    FLOAT,
    FLOAT16,
    INT,
    POSITION,
    RAW,
    AnnotationReferenceType,
    ArrayType,
    DataType,
    InnerStructType,
    MapType,
    NumericType,
    StructType,
    TensorFieldType,
    WeightedSetType,
)

Check = Callable[[Any], bool]

_LARGEST: Final = {FLOAT16.name: 65504.0, FLOAT.name: 3.4028234663852886e38, "double": math.inf}


def check_of(data_type: DataType, outer: Check | None = None) -> Check:
    """The function that says whether a value is one of this type; `outer`: that of the struct it is in.

    A lone surrogate is found later, when the text is encoded.
    """
    match data_type:
        case ArrayType():
            element = check_of(data_type.element, outer)
            return lambda value: type(value) is list and all(map(element, value))
        case WeightedSetType():
            return _entries(check_of(data_type.key), check_of(INT))
        case MapType():
            return _entries(check_of(data_type.key), check_of(data_type.value, outer))
        case StructType():
            return _members(data_type)
        case InnerStructType() if outer is not None:
            return outer
        case NumericType():
            return _number(data_type)
        case TensorFieldType():
            return lambda value: type(value) is Tensor and value.type == data_type.tensor
        case AnnotationReferenceType():
            return lambda value: False
    if data_type == RAW:
        return lambda value: type(value) is bytes
    if data_type == POSITION:
        whole = check_of(INT)
        return lambda value: isinstance(value, tuple) and len(value) == 2 and all(map(whole, value))
    return lambda value: type(value) is str


def _number(data_type: NumericType) -> Check:
    if data_type == BOOL:
        return lambda value: type(value) is bool
    if data_type.low is not None and data_type.high is not None:
        low, high = data_type.low, data_type.high
        return lambda value: type(value) is int and low <= value <= high
    largest = _LARGEST[data_type.name]
    return lambda value: type(value) is float and (abs(value) <= largest or not math.isfinite(value))


def _entries(key: Check, item: Check) -> Check:
    return lambda value: type(value) is dict and all(map(key, value)) and all(map(item, value.values()))


def _members(data_type: StructType) -> Check:
    checks: dict[str, Check] = {}

    def check(value: Any) -> bool:
        return type(value) is dict and all(name in checks and checks[name](item) for name, item in value.items())

    checks |= {name: check_of(inner, check) for name, inner in data_type.fields}
    return check
