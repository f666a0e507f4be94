"""Numbers as documents have them: their texts as Java writes them, and their arithmetic in updates.

Updates increment, decrement, multiply and divide; whole numbers stay within their type. There are four kinds of
it, since Vespa updates numbers in four places that round differently:

    of_value      a field that is no attribute, or an element of an array: from 0 where there is no number; towards 0
    of_attribute  an attribute: stays unset; the operand of a sum is cut to a whole number; products are rounded half
                  up
    of_weight     a weight in an attribute: the operand is cut to a whole number
    of_path       at the end of a field path: from 0; towards 0; what does not fit leaves the number as it was

Elsewhere a whole number that does not fit is first moved into the range of long, then keeps its lowest bits. No kind
divides a whole number by 0, and a field path divides nothing by 0: the number stays as it was.

Vespa: document/src/vespa/document/update, searchlib/src/vespa/searchlib/attribute
Differs: sums and products of whole numbers are exact; Vespa calculates with 53 bits.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Mapping
from ctypes import c_float
from typing import Final

import numpy as np

from paperwasp.document.types import FLOAT, FLOAT16, INT, LONG, DataType, NumericType
from paperwasp.document.updates import Arithmetic

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


_PLAIN_FROM: Final = 1e-3
_PLAIN_TO: Final = 1e7


def double_text(number: float) -> str:
    """The text of a number with the fewest digits that say which double it is."""
    return _java_text(number, repr(float(number)))


def single_text(number: float) -> str:
    """The text of a number with the fewest digits that say which float of 32 bits it is."""
    return _java_text(number, str(np.float32(number)))


def _java_text(number: float, shortest: str) -> str:
    """Write a number whose shortest digits are known in the form that Java gives it: 1.0, 1.0E-5, 1.2E7."""
    if not math.isfinite(number):
        return "NaN" if math.isnan(number) else "Infinity" if number > 0 else "-Infinity"
    if number == 0 or _PLAIN_FROM <= abs(number) < _PLAIN_TO:
        text = np.format_float_positional(float(shortest), trim="0") if "e" in shortest else shortest
        return text if "." in text else f"{text}.0"
    mantissa, _, exponent = np.format_float_scientific(float(shortest), trim="0").partition("e")
    return f"{mantissa}E{int(exponent)}"
