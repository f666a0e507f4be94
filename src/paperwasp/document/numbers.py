"""Numbers as documents have them: their arithmetic in updates, their texts as sent and as Java writes them, degrees."""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping
from ctypes import c_float
from itertools import pairwise
from typing import Any, Final, NamedTuple

import numpy as np
import orjson

from paperwasp.base.patterns import compile_later
from paperwasp.document.types import FLOAT, FLOAT16, INT, LONG, DataType, NumericType
from paperwasp.document.updates import Arithmetic
from paperwasp.text.large_json import load_json, load_stored_json, without_escapes

# Arithmetic of updates: increment, decrement, multiply and divide, of whole numbers as they fit into their type.
#
# There are four kinds of it, since Vespa updates numbers in four places that round differently:
#
#     of_value      a field that is no attribute, or an element of an array: from 0 where there is no number; towards 0
#     of_attribute  an attribute: stays unset; the operand of a sum is cut to a whole number; products are rounded half
#                   up
#     of_weight     a weight in an attribute: the operand is cut to a whole number
#     of_path       at the end of a field path: from 0; towards 0; what does not fit leaves the number as it was
#
# Elsewhere a whole number that does not fit is first moved into the range of long, then keeps its lowest bits. No kind
# divides a whole number by 0, and a field path divides nothing by 0: the number stays as it was.
#
# Vespa: document/src/vespa/document/update, searchlib/src/vespa/searchlib/attribute
# Differs: sums and products of whole numbers are exact; Vespa calculates with 53 bits.


Number = int | float
Kind = Callable[[Arithmetic, Number | None, Number, DataType], Number | None]
"""(operation, number, operand, type of the number) → the number after the operation. None: there is no number."""

_LARGEST_HALF: Final = 65504.0


def half(number: float) -> float:
    """The nearest 16-bit float; what is too large is infinite."""
    if math.isnan(number) or abs(number) <= _LARGEST_HALF:
        return float(struct.unpack("<e", struct.pack("<e", number))[0])
    return math.copysign(math.inf, number)


def single(number: float) -> float:
    """The nearest 32-bit float; what is too large is infinite."""
    return c_float(number).value


def of_value(operation: Arithmetic, value: Number | None, operand: Number, data_type: DataType) -> Number | None:
    """Arithmetic on a field that is not an attribute, or on an element that `match` names. None counts as 0."""
    if _is_float(data_type):
        return _float(operation, value or 0.0, operand, data_type)
    start = int(value or 0)
    result = _EXACT[operation](start, operand)
    return start if result is None else _wrap(_long(result, math.trunc), data_type)


def of_attribute(operation: Arithmetic, value: Number | None, operand: Number, data_type: DataType) -> Number | None:
    """Arithmetic on the single value of an attribute. The least whole number and NaN mean unset there: None."""
    if value is None:
        return None
    if _is_float(data_type):
        number = _float(operation, value, operand, data_type)
        return None if math.isnan(number) else number
    whole = _attribute_integer(operation, int(value), operand, data_type)
    return None if whole == _range(data_type)[0] else whole


def _attribute_integer(operation: Arithmetic, value: int, operand: Number, data_type: DataType) -> int:
    if operation in ("increment", "decrement"):
        amount = _long(operand, math.trunc)
        return _wrap(value + (amount if operation == "increment" else -amount), data_type)
    result = _EXACT[operation](value, operand)
    return value if result is None else _wrap(_long(result, _half_up), data_type)


def of_weight(operation: Arithmetic, value: Number | None, operand: Number, data_type: DataType) -> Number | None:
    """Arithmetic on a weight in an attribute."""
    return of_value(operation, value, _wrap(_long(operand, math.trunc), INT), INT)


def of_path(operation: Arithmetic, value: Number | None, operand: Number, data_type: DataType) -> Number | None:
    """Arithmetic on the number that a field path leads to. What does not fit the type leaves it as it is."""
    if operation == "divide" and operand == 0:
        return value
    if _is_float(data_type):
        return _float(operation, value or 0.0, operand, data_type)
    result = _EXACT[operation](int(value or 0), operand)
    if result is None or not math.isfinite(result):
        return value
    whole = math.trunc(result)
    low, high = _range(data_type)
    return whole if low <= whole <= high else value


def _divide(value: float, operand: float) -> float:
    if operand:
        return value / operand
    return math.nan if value == 0 or math.isnan(value) else math.copysign(math.inf, value) * math.copysign(1, operand)


_EXACT: Final[Mapping[Arithmetic, Callable[[int, Number], Number | None]]] = {
    "increment": lambda value, operand: value + operand,
    "decrement": lambda value, operand: value - operand,
    "multiply": lambda value, operand: value * operand,
    "divide": lambda value, operand: value / operand if operand else None,
}
"""Operations on whole numbers; None: division by 0, which changes nothing."""

_FLOATING: Final[Mapping[Arithmetic, Callable[[float, float], float]]] = {
    "increment": lambda value, operand: value + operand,
    "decrement": lambda value, operand: value - operand,
    "multiply": lambda value, operand: value * operand,
    "divide": _divide,
}
_ROUND: Final[Mapping[str, Callable[[float], float]]] = {FLOAT16.name: half, FLOAT.name: single}


def _is_float(data_type: DataType) -> bool:
    return isinstance(data_type, NumericType) and data_type.low is None


def _float(operation: Arithmetic, value: Number, operand: Number, data_type: DataType) -> float:
    result = _FLOATING[operation](float(value), float(operand))
    return _ROUND.get(data_type.name, float)(result)


def _half_up(number: Number) -> int:
    return number if isinstance(number, int) else math.floor(number + 0.5)


def _long(number: Number, whole: Callable[[float], int]) -> int:
    """The number as a long: what is outside of its range is moved to the end of it."""
    low, high = _range(LONG)
    if isinstance(number, float) and not math.isfinite(number):
        return 0 if math.isnan(number) else low if number < 0 else high
    return min(max(number if isinstance(number, int) else whole(number), low), high)


def _wrap(number: int, data_type: DataType) -> int:
    """Wraps a number to the range of a type: its lowest bits."""
    low, high = _range(data_type)
    return (number - low) % (high - low + 1) + low


def _range(data_type: DataType) -> tuple[int, int]:
    assert isinstance(data_type, NumericType)
    return data_type.low or 0, data_type.high or 0


# Numbers as they were written, for fields that are texts: what is sent as `1.10` is the text `1.10` in Vespa.
#
# A decoded number no longer says how it was written. Where a text is wanted of one (`TextOfNumber`), the body is
# decoded once more with all its numbers in quotation marks. Documents whose texts are strings pay nothing for this. A
# number that no double is large enough for is its text from the start: `1e400` is that text, and an infinite double.
#
# Vespa: TokenBuffer.java and SingleValueReader.java of document/json read all single values from their text.


_STRING_OR_NUMBER: Final = compile_later(rb'"[^"]*"|-?[0-9][0-9.eE+-]*')
_QUOTE: Final = b'"'
_TOO_LARGE: Final = "number is infinity"
"""How orjson refuses it."""
_LONG: Final = 300
"""A number of fewer characters fits into a double, unless it has an exponent."""


class SentFields(dict[str, Any]):
    """The fields of a body, which also keep the text that they were decoded from."""

    __slots__ = ("_written", "body")

    def __init__(self, fields: Mapping[str, Any], body: bytes, written: Mapping[str, Any] | None = None) -> None:
        super().__init__(fields)
        self.body = body
        self._written = written

    def with_texts(self, name: str) -> Any:
        """The value of a field with its numbers as texts. Errors: TooLarge."""
        if self._written is None:
            self._written = load_json(quote_numbers(self.body))["fields"]
        return self._written[name]

    def only(self, names: Iterable[str]) -> SentFields:
        """Some of the fields."""
        return SentFields({name: self[name] for name in names}, self.body, self._written)


def value_with_texts(fields: Mapping[str, Any], name: str) -> Any:
    """The value of a field with its numbers as texts: as they were written, where that is known."""
    return fields.with_texts(name) if isinstance(fields, SentFields) else numbers_as_texts(fields[name])


def numbers_as_texts(value: Any) -> Any:
    """A JSON value with its numbers as texts, in the form in which we write them."""
    return load_stored_json(quote_numbers(orjson.dumps(value)))


def quote_numbers(text: bytes) -> bytes:
    """JSON with each number in quotation marks."""
    return b"".join(_with_numbers(text, _quote))


def load_sent_json(text: bytes) -> Any:
    """Decodes JSON that a client sent; a number that is too large for a double becomes its text.

    Errors: orjson.JSONDecodeError with the place; TooLarge.
    """
    try:
        return load_json(text)
    except orjson.JSONDecodeError as error:
        if not error.msg.startswith(_TOO_LARGE):
            raise
        return load_json(b"".join(_with_numbers(text, _quote_if_too_large)))


def _with_numbers(text: bytes, written: Callable[[bytes], bytes]) -> Iterator[bytes]:
    """The text, piece by piece, with what `written` makes of each of its numbers."""
    at = 0
    for found in _STRING_OR_NUMBER.finditer(without_escapes(text)):
        token = found[0]
        if not token.startswith(_QUOTE):
            yield text[at : found.start()]
            yield written(token)
            at = found.end()
    yield text[at:]


def _quote_if_too_large(number: bytes) -> bytes:
    if len(number) < _LONG and b"e" not in number and b"E" not in number:
        return number
    try:
        return _quote(number) if math.isinf(float(number)) else number
    except ValueError:  # it is no number
        return number


def _quote(number: bytes) -> bytes:
    return b"".join((_QUOTE, number, _QUOTE))


# Floating-point numbers as the texts that Java makes of them: 1.0, 1.0E-5 and 1.2E7.


_PLAIN_FROM: Final = 1e-3
_PLAIN_TO: Final = 1e7


def double_text(number: float) -> str:
    """The text of a number with the fewest digits that say which double it is."""
    return _java_text(number, repr(float(number)))


def single_text(number: float) -> str:
    """The text of a number with the fewest digits that say which float of 32 bits it is."""
    return _java_text(number, str(np.float32(number)))


def _java_text(number: float, shortest: str) -> str:
    """A number whose shortest digits are known, in the form that Java gives it."""
    if not math.isfinite(number):
        return "NaN" if math.isnan(number) else "Infinity" if number > 0 else "-Infinity"
    if number == 0 or _PLAIN_FROM <= abs(number) < _PLAIN_TO:
        text = np.format_float_positional(float(shortest), trim="0") if "e" in shortest else shortest
        return text if "." in text else f"{text}.0"
    mantissa, _, exponent = np.format_float_scientific(float(shortest), trim="0").partition("e")
    return f"{mantissa}E{int(exponent)}"


# Places on Earth as text: a latitude and a longitude, in either order, each with its direction.
#
#     N37.416383;W122.024683     37N24.983;122W01.481     N37°24'59;W122°01'29     N63o25.105 E10o25.982
#
# Two whole numbers, `-122024683;37416383`, are millionths of a degree, east and north.
#
# Vespa: https://docs.vespa.ai/en/querying/geo-search.html, vespajlib com.yahoo.geo.DegreesParser


_NUMBER: Final = r"[0-9]{1,20}(?:\.[0-9]{0,20})?|\.[0-9]{1,20}"
_DIRECTION_FIRST: Final = compile_later(
    rf"(?P<direction>[NSEW])(?P<degrees>{_NUMBER})(?:[°o](?P<minutes>{_NUMBER})?(?:'(?P<seconds>{_NUMBER})?)?)?"
)
_DIRECTION_BETWEEN: Final = compile_later(
    rf"(?P<degrees>{_NUMBER})[°o]?(?P<direction>[NSEW])(?P<minutes>{_NUMBER})?(?:'(?P<seconds>{_NUMBER})?)?"
)
_DIRECTION_LAST: Final = compile_later(
    rf"(?P<degrees>{_NUMBER})[°o](?P<minutes>{_NUMBER})(?:'(?P<seconds>{_NUMBER})?)?(?P<direction>[NSEW])"
)
_MILLIONTHS: Final = compile_later(r"([-+]?[0-9]{1,10});([-+]?[0-9]{1,10})")
_MOST: Final = {"N": 90, "S": 90, "E": 180, "W": 180}
_MICRO: Final = 1_000_000
_LONGEST: Final = 200
_SHOWN: Final = 40


class Millionths(NamedTuple):
    """A place, in millionths of a degree: `x` east, `y` north."""

    x: int
    y: int


def parse_degrees(text: str) -> Millionths:
    """The place that `text` names; what is finer than a millionth is cut off. Errors: ValueError."""
    if found := _MILLIONTHS.fullmatch(text):
        return Millionths(int(found[1]), int(found[2]))
    parts = re.split("[; ]", text) if len(text) < _LONGEST else []
    angles = dict(_angle(part, text) for part in parts)
    if len(parts) != 2 or angles.keys() != {"x", "y"}:
        raise _refusal(text, "it needs a latitude and a longitude")
    return Millionths(int(angles["x"] * _MICRO), int(angles["y"] * _MICRO))


def _angle(part: str, text: str) -> tuple[str, float]:
    """On which axis it is, and its degrees."""
    patterns = (_DIRECTION_FIRST, _DIRECTION_BETWEEN, _DIRECTION_LAST)
    found = next((found for pattern in patterns if (found := pattern.fullmatch(part))), None)
    if found is None:
        raise _refusal(text, "each part is a direction (N, S, E, W) and degrees")
    finer = [found["degrees"], found["minutes"], found["seconds"]]
    if any("." in (above or "") and below for above, below in pairwise(finer)):
        raise _refusal(text, "what has minutes or seconds has whole numbers before them")
    size = sum(float(number or 0) / 60**power for power, number in enumerate(finer))
    direction = found["direction"]
    if size > _MOST[direction]:
        raise _refusal(text, f"{direction} is at most {_MOST[direction]} degrees")
    return "y" if direction in "NS" else "x", -size if direction in "SW" else size


def _refusal(text: str, reason: str) -> ValueError:
    return ValueError(f"Could not parse '{text[:_SHOWN]}' as geo coordinates: {reason}")
