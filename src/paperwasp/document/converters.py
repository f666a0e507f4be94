"""JSON values to typed values: one small function for each data type, compiled once for each field.

    string, uri, predicate → str        array → list                     position → GeoPosition
    numbers → int, float   bool → bool  weightedset → {key: weight}      raw → bytes
    reference → str (a document id)     map → {key: value}, struct → {field: value}       tensor → Tensor

It is on the feed path, so a converter does nothing that its type does not need.

Vespa: https://docs.vespa.ai/en/reference/schemas/document-json-format.html
"""

from __future__ import annotations

import base64
import math
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Final, NamedTuple

import orjson

from paperwasp import limits
from paperwasp.base.patterns import compile_later
from paperwasp.document.degrees import parse_degrees
from paperwasp.document.ids import DocumentId
from paperwasp.document.numbers import half, single
from paperwasp.document.operations import Value
from paperwasp.document.predicate import parse_predicate
from paperwasp.document.tensor.json_format import tensor_of
from paperwasp.document.tensor.value import Tensor
from paperwasp.document.types import (
    BOOL,
    FLOAT,
    FLOAT16,
    INT,
    POSITION,
    PREDICATE,
    RAW,
    AnnotationReferenceType,
    ArrayType,
    DataType,
    InnerStructType,
    MapType,
    NumericType,
    ReferenceType,
    StructType,
    TensorFieldType,
    WeightedSetType,
)
from paperwasp.errors import InvalidInput, LanguageError

Converter = Callable[[Any], Value]
"""JSON value → typed value. Raises ValueError that says what is wrong with the value; TextOfNumber."""

_CONTROL_CHARACTERS: Final = bytes(set(range(0x20)) - set(b"\t\n\r"))
_CHECKED_AT_ONCE: Final = 1 << 20
"""Characters: about a millisecond."""
_NONCHARACTER_BYTES: Final = (b"\xef\xb7", b"\xbf\xbe", b"\xbf\xbf")
"""One of these pairs is in the UTF-8 of every illegal character above ASCII (and of some legal ones)."""
_LAST_TWO_OF_PLANES: Final = "".join(
    f"{chr(plane << 16 | 0xFFFE)}{chr(plane << 16 | 0xFFFF)}" for plane in range(1, 17)
)
_ILLEGAL_CHARACTER: Final = compile_later(rf"[\x00-\x08\x0b\x0c\x0e-\x1f\ufdd0-\ufddf{_LAST_TWO_OF_PLANES}]")
_INTEGER: Final = compile_later(r"[+-]?[0-9]+")
_DECIMAL: Final = compile_later(r"[+-]?(NaN|Infinity|([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?)[fFdD]?")
_BASE64: Final = compile_later("[A-Za-z0-9+/]")
_NO_BASE64: Final = compile_later("[^A-Za-z0-9+/]+")
_MICRO: Final = 1_000_000
_COORDINATES: Final[Mapping[str, tuple[str, int]]] = {
    **dict.fromkeys(("lat", "latitude"), ("y", _MICRO)),
    **dict.fromkeys(("lng", "longitude"), ("x", _MICRO)),
    "x": ("x", 1),
    "y": ("y", 1),
}
"""Member of a position's object → its axis, and the factor by which it becomes millionths of a degree."""


class TextOfNumber(Exception):
    """A text is wanted of a number that may have been written otherwise than here: see `document.sent_numbers`."""


class GeoPosition(NamedTuple):
    """A place on Earth, in millionths of a degree: `y` north, `x` east."""

    x: int
    y: int


def converter_of(data_type: DataType, outer: Converter | None = None) -> Converter:
    """The function that turns a JSON value into a value of `data_type`; `outer`: that of the struct it is in."""
    match data_type:
        case ArrayType():
            return _array_converter(converter_of(data_type.element, outer))
        case NumericType():
            return _SINGLE.get(data_type.name) or _integer_converter(data_type)
        case WeightedSetType():
            return _map_converter(converter_of(data_type.key), _integer_converter(INT))
        case MapType():
            return _map_converter(converter_of(data_type.key), converter_of(data_type.value, outer))
        case StructType():
            return _struct_converter(data_type)
        case ReferenceType():
            return _reference_converter(data_type)
        case TensorFieldType():
            return _tensor_converter(data_type)
        case InnerStructType() if outer is not None:
            return outer
        case AnnotationReferenceType():
            return _refuse
    return _SINGLE[data_type.name]


def check_text(text: str) -> None:
    """Raises ValueError for a string with a character that is not text: control characters, noncharacters.

    Of a long one some characters at a time, between which other threads run.
    """
    if len(text) > _CHECKED_AT_ONCE:
        for start in range(0, len(text), _CHECKED_AT_ONCE):
            check_text(text[start : start + _CHECKED_AT_ONCE])
        return
    try:
        encoded = text.encode()
    except UnicodeEncodeError as error:
        raise _illegal_character(text[error.start]) from None
    clean = len(encoded) == len(encoded.translate(None, _CONTROL_CHARACTERS))
    if clean and (text.isascii() or not any(pair in encoded for pair in _NONCHARACTER_BYTES)):
        return
    if illegal := _ILLEGAL_CHARACTER.search(text):
        raise _illegal_character(illegal[0])


def describe(value: object) -> str:
    """Describes the kind of a JSON value, for error messages."""
    names = {dict: "an object", list: "an array", str: "a string", bool: "a boolean", type(None): "null"}
    return names.get(type(value), "a number")


def _illegal_character(character: str) -> ValueError:
    return ValueError(f"The string field value contains illegal code point 0x{ord(character):X}")


def _string(value: Any) -> str:
    if type(value) is str:
        check_text(value)
        return value
    return _scalar_text(value)


def _scalar_text(value: object) -> str:
    """A scalar as it was written: what Vespa parses values from. Errors: ValueError, TextOfNumber."""
    if isinstance(value, str):
        return value
    if isinstance(value, dict | list) or value is None:
        raise ValueError(f"Expected a single value, got {describe(value)}")
    if type(value) is float or (type(value) is int and value == 0):  # 1.10, 1e3, more than 64 bits; -0
        raise TextOfNumber
    return orjson.dumps(value).decode()


def _bool(value: Any) -> bool:
    """As Boolean.parseBoolean of Java: whatever is not "true" is false, numbers too."""
    if isinstance(value, bool):
        return value
    return not isinstance(value, int | float) and _scalar_text(value).lower() == "true"


@cache
def _integer_converter(data_type: NumericType) -> Converter:
    """One for all fields of the type."""
    low, high = data_type.low or 0, data_type.high or 0

    def convert(value: Any) -> int:
        if type(value) is not int:
            value = _parse_integer(value)
        if low <= value <= high:
            return value  # type: ignore[no-any-return]
        raise ValueError(f'For input string: "{value}"')

    return convert


def _parse_integer(value: object) -> int:
    text = _scalar_text(value)
    if isinstance(value, str) and len(text) <= 20 and _INTEGER.fullmatch(text):
        return int(text)
    raise ValueError(f'For input string: "{text}"')


def number_of(value: Any) -> float:
    """A number, or the text of one. Errors: ValueError."""
    if type(value) is float:
        return value
    if type(value) is int:
        try:
            return float(value)
        except OverflowError:
            raise ValueError("The number is too large") from None
    text = _scalar_text(value).strip()
    if not text:
        raise ValueError("empty String")
    if isinstance(value, str) and _DECIMAL.fullmatch(text):
        return float(text.rstrip("fFdD") if text[-1] in "fFdD" else text)
    raise ValueError(f'For input string: "{text}"')


def _float(value: Any) -> float:
    return single(value if type(value) is float else number_of(value))


def _array_converter(convert: Converter) -> Converter:
    def convert_array(value: Any) -> list[Value]:
        if not isinstance(value, list):
            raise ValueError(f"Expected an array, got {describe(value)}")
        try:
            return [convert(element) for element in value]
        except ValueError:
            raise ValueError(_first_error(convert, value)) from None

    return convert_array


def _first_error(convert: Converter, values: list[object]) -> str:
    for index, value in enumerate(values):
        try:
            convert(value)
        except ValueError as error:
            return f"element {index}: {error}"
    return ""


def _half(value: Any) -> float:
    return half(number_of(value))


def _raw(value: Any) -> bytes:
    """Base64 as mail has it (Base64.getMimeDecoder of Java): what is none of its characters is passed over, and the
    padding may be missing."""
    head, padding, tail = _scalar_text(value).partition("=")
    units = _NO_BASE64.sub("", head)
    last = len(units) % 4
    if padding and (last == 0 or (last == 2 and not tail.startswith("="))):
        raise ValueError("Input byte array has wrong 4-byte ending unit")
    if last == 1:
        raise ValueError("Last unit does not have enough valid bits")
    if (wrong := _BASE64.search(tail)) is not None:
        raise ValueError(f"Input byte array has incorrect ending byte at {len(head) + 2 + wrong.start()}")
    return base64.b64decode(units + "=" * (-len(units) % 4))


def _predicate(value: Any) -> str:
    """In the one text that predicates are kept in, which may be longer and deeper than what was sent, and must be
    read again as well."""
    text = _string(value)
    try:
        kept = str(parse_predicate(text))
        return kept if kept == text else str(parse_predicate(kept))
    except LanguageError as error:
        raise ValueError(str(error)) from None


def _position(value: Any) -> GeoPosition:
    """An object with lat and lng in degrees, or x and y in millionths; or a text such as `N37.4;W122.0`."""
    if isinstance(value, str):
        place = parse_degrees(value)
        return GeoPosition(_millionths(place.x), _millionths(place.y))
    if not isinstance(value, dict):
        raise ValueError(f"Expected an object with lat and lng, got {describe(value)}")
    if (unknown := next((name for name in value if name not in _COORDINATES), None)) is not None:
        raise ValueError(f"Unexpected attribute '{unknown}' in geo position field")
    found = {}
    for name, number in value.items():
        axis, scale = _COORDINATES[name]
        found[axis] = number_of(number) * scale
    for axis, name in (("y", "lat"), ("x", "lng")):
        if axis not in found:
            raise ValueError(f"Missing '{name}' attribute in geo position field")
    return GeoPosition(_millionths(found["x"]), _millionths(found["y"]))


def _millionths(number: float) -> int:
    if not -(2**31) <= number < 2**31 - 0.5:
        raise ValueError(f"{number / _MICRO} degrees are more than 32 bits of millionths")
    return math.floor(number + 0.5)


def _map_converter(key: Converter, item: Converter) -> Converter:
    def convert_map(value: Any) -> dict[Value, Value]:
        converted: dict[Value, Value] = {}
        for name, content in _pairs(value):
            try:
                converted[key(name)] = item(content)
            except ValueError as error:
                raise ValueError(f'key "{name}": {error}') from None
        return converted

    return convert_map


def _pairs(value: Any) -> list[tuple[Any, Any]]:
    """The entries of an object, or of an array of objects with `key` and `value`."""
    if isinstance(value, dict):
        return list(value.items())
    if isinstance(value, list) and all(isinstance(item, dict) and item.keys() == {"key", "value"} for item in value):
        return [(item["key"], item["value"]) for item in value]
    raise ValueError(f"Expected an object, got {describe(value)}")


def _struct_converter(data_type: StructType) -> Converter:
    converters: dict[str, Converter] = {}

    def convert_struct(value: Any) -> dict[str, Value]:
        if not isinstance(value, dict):
            raise ValueError(f"Expected an object, got {describe(value)}")
        if (unknown := next((name for name in value if name not in converters), None)) is not None:
            raise ValueError(f"No field '{unknown}' in struct '{data_type}', which has: {', '.join(converters)}")
        return {name: _member(name, converters[name], item) for name, item in value.items() if item is not None}

    converters |= {name: converter_of(inner, convert_struct) for name, inner in data_type.fields}
    if any(isinstance(inner, InnerStructType) for inner in data_type.walk()):
        return lambda value: convert_struct(within_depth(value))
    return convert_struct


def within_depth(value: Any, depth: int = 0) -> Any:
    """The value, unless it is nested deeper than who walks it can go. Types that have an end need no such look."""
    if isinstance(value, dict | list):
        if depth == limits.VALUE_DEPTH:
            raise ValueError(f"the value is nested deeper than {limits.VALUE_DEPTH}")
        for item in value.values() if isinstance(value, dict) else value:
            within_depth(item, depth + 1)
    return value


def _member(name: str, convert: Converter, value: Any) -> Value:
    try:
        return convert(value)
    except ValueError as error:
        raise ValueError(f"field '{name}': {error}") from None


def _reference_converter(data_type: ReferenceType) -> Converter:
    def convert_reference(value: Any) -> str:
        text = _string(value)
        if not text:
            return text
        try:
            document_id = DocumentId.parse(text)
        except InvalidInput as error:
            raise ValueError(error.message) from None
        if document_id.document_type != data_type.target:
            raise ValueError(f"'{text}' is no document of type '{data_type.target}'")
        return text

    return convert_reference


def _refuse(value: Any) -> Value:
    raise ValueError("An annotation reference has no form in JSON")


def _tensor_converter(data_type: TensorFieldType) -> Converter:
    def convert_tensor(value: Any) -> Tensor:
        try:
            return tensor_of(value, data_type.tensor, is_lenient=True)
        except LanguageError as error:
            raise ValueError(error.bare_message) from None

    return convert_tensor


_SINGLE: Final[Mapping[str, Converter]] = {
    "string": _string,
    "uri": _string,
    PREDICATE.name: _predicate,
    BOOL.name: _bool,
    FLOAT16.name: _half,
    FLOAT.name: _float,
    "double": number_of,
    RAW.name: _raw,
    POSITION.name: _position,
}
