"""The functions of grouping, one row at a time, in plain Python, from the definition of Vespa's function nodes.

Authority: searchlib/expression/functionnodes.cpp, numericfunctionnode.cpp and the files of single functions; where
these end the process, the modules of `paperwasp.search.grouping.expressions` say what is done.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import date
from typing import Any, Final

import icu

from paperwasp.search.grouping.request import Bucket, Infinite
from paperwasp.search.grouping.values import Kind
from tests.search.grouping.scalar import (
    LEAST,
    MOST,
    NUMBERS,
    TEXTS,
    Result,
    Unfit,
    Unsure,
    check_buckets,
    double_text,
    first_long,
    to_double,
    to_long,
    to_text,
    wrapped,
)

_BUCKETS = {int: Kind.LONG_BUCKET, float: Kind.DOUBLE_BUCKET, str: Kind.STRING_BUCKET, bytes: Kind.RAW_BUCKET}


def one(kind: Kind, value: Any) -> Result:
    return Result(kind, [value])


_CONVERSIONS: Final[dict[Kind, Callable[[Kind, Any], Any]]] = {
    Kind.LONG: to_long,
    Kind.DOUBLE: to_double,
    Kind.STRING: to_text,
    Kind.RAW: to_text,
}


def divided(left: int, right: int) -> tuple[int, int]:
    """As C does: rounded toward zero; by 0, and where C's division ends the process, there is no rest."""
    if right == 0:
        return 0, 0
    quotient = abs(left) // abs(right) * (1 if (left < 0) == (right < 0) else -1)
    return wrapped(quotient), left - quotient * right


def of_longs(function: str, left: int, right: int) -> int:
    return {
        "add": lambda: wrapped(left + right),
        "mul": lambda: wrapped(left * right),
        "div": lambda: divided(left, right)[0],
        "mod": lambda: divided(left, right)[1],
        "min": lambda: min(left, right),
        "max": lambda: max(left, right),
    }[function]()


def of_doubles(function: str, left: float, right: float) -> float:
    match function:
        case "add":
            return left + right
        case "mul":
            return left * right
        case "div":
            return 0.0 if right == 0 else left / right
        case "min":
            return right if right < left else left
        case "max":
            return right if right > left else left
    return float(divided(to_long(Kind.DOUBLE, left), to_long(Kind.DOUBLE, right))[1])


def of_texts(function: str, kind: Kind, left: bytes, right: bytes) -> bytes:
    if function == "add":
        longest = max(len(left), len(right))
        pairs = zip(left.ljust(longest, b"\0"), right.ljust(longest, b"\0"), strict=True)
        return bytes((one + other) % 256 for one, other in pairs)
    size = min(len(left), len(right)) if kind == Kind.RAW else max(len(left), len(right))
    is_other = right[:size] < left[:size] if function == "min" else right[:size] > left[:size]
    return right if is_other else left


def arithmetic(function: str, arguments: Sequence[Result]) -> Result:
    check_buckets(*arguments)
    if len(arguments) == 1:
        return flattened(function, arguments[0])
    kinds = [each.kind for each in arguments]
    if Kind.DOUBLE in kinds:
        kind = Kind.DOUBLE
    elif Kind.LONG in kinds or Kind.BOOL in kinds:
        kind = Kind.LONG
    else:
        kind = Kind.STRING if Kind.STRING in kinds else Kind.RAW
    is_multi = any(each.is_multi for each in arguments)
    if kind in TEXTS and (is_multi or function in ("mul", "div", "mod")):
        raise Unfit

    def combine(left: Any, right: Result, number: int) -> Any:
        given = right.values[number % len(right.values)]
        if kind in TEXTS:
            return of_texts(function, kind, left, to_text(right.kind, given))
        if kind == Kind.LONG:
            return of_longs(function, left, to_long(right.kind, given))
        if function == "mod":
            return float(divided(to_long(Kind.DOUBLE, left), to_long(right.kind, given))[1])
        return of_doubles(function, left, to_double(right.kind, given))

    found = [_CONVERSIONS[kind](arguments[0].kind, value) for value in arguments[0].values]
    for each in arguments[1:]:
        if not each.values:
            continue
        if not found:
            if each.is_multi:
                found = [_CONVERSIONS[kind](each.kind, value) for value in each.values]
            continue
        if len(each.values) > len(found):
            found = [found[number % len(found)] for number in range(len(each.values))]
        found = [combine(value, each, number) for number, value in enumerate(found)]
    return Result(kind, found, is_multi)


def flattened(function: str, argument: Result) -> Result:
    if not argument.is_multi or argument.kind not in NUMBERS or function in ("div", "mod"):
        raise Unfit
    if argument.kind == Kind.DOUBLE:
        number = {"add": 0.0, "mul": 1.0, "min": struct.unpack(">d", b"\x7f\xef" + b"\xff" * 6)[0]}.get(
            function, 2.0**-1022
        )
        for value in argument.values:
            number = of_doubles(function, number, value)
        return one(Kind.DOUBLE, number)
    total = {"add": 0, "mul": 1, "min": MOST}.get(function, LEAST)
    for value in argument.values:
        total = of_longs(function, total, int(value))
    return one(Kind.LONG, total)


def negated(argument: Result) -> Result:
    check_buckets(argument)

    def negate(value: Any) -> Any:
        match argument.kind:
            case Kind.BOOL:
                return value
            case Kind.LONG:
                return wrapped(-value)
            case Kind.DOUBLE:
                return -value
        return bytes(-byte % 256 for byte in value)

    return replace(argument, values=[negate(value) for value in argument.values])


def bits(function: str, arguments: Sequence[Result]) -> Result:
    check_buckets(*arguments)
    combine: Callable[[int, int], int] = {
        "and": lambda left, right: left & right,
        "or": lambda left, right: left | right,
        "xor": lambda left, right: left ^ right,
    }[function]
    if len(arguments) == 1:
        (argument,) = arguments
        if not argument.is_multi:
            raise Unfit
        numbers = [to_long(argument.kind, value) for value in argument.values]
        found = -1 if function == "and" else 0
    else:
        found, *numbers = [first_long(each) for each in arguments]
    for number in numbers:
        found = combine(found, number)
    return one(Kind.LONG, found)


_MATH_NAMES = "exp log log1p log10 sqrt cbrt sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh pow hypot"
_MATH: Final[dict[str, Callable[..., float]]] = {name: getattr(math, name) for name in _MATH_NAMES.split()}
_POLES = {"log": (0.0, -math.inf), "log10": (0.0, -math.inf), "log1p": (-1.0, -math.inf)}


def maths(function: str, numbers: Sequence[float]) -> float:
    """C's functions, which Python has, with what they give where Python raises."""
    if any(map(math.isnan, numbers)) and function not in ("pow", "hypot"):
        return math.nan
    if function == "floor":
        return math.copysign(math.floor(numbers[0]), numbers[0]) if math.isfinite(numbers[0]) else numbers[0]
    if function in _POLES and numbers[0] == _POLES[function][0]:
        return _POLES[function][1]
    if function == "atanh" and abs(numbers[0]) == 1:
        return math.copysign(math.inf, numbers[0])
    if function == "pow":
        return _pow(*numbers)
    try:
        return _MATH[function](*numbers)
    except OverflowError:
        return math.copysign(math.inf, numbers[0]) if function == "sinh" else math.inf
    except ValueError:
        return math.nan


def _pow(base: float, exponent: float) -> float:
    is_odd = abs(exponent) < 2.0**53 and exponent % 2 == 1
    if base == 0 and exponent < 0:
        return math.copysign(math.inf, base) if is_odd else math.inf
    try:
        return math.pow(base, exponent)
    except OverflowError:
        return -math.inf if base < 0 and is_odd else math.inf
    except ValueError:
        return math.nan


def binary_form(result: Result, value: Any) -> bytes:
    match result.kind:
        case Kind.STRING | Kind.RAW:
            return bytes(value)
        case Kind.BOOL:
            return b"\1" if value else b"\0"
        case Kind.LONG:
            return int(value).to_bytes(8, "big", signed=True)[8 - result.size :]
        case Kind.DOUBLE:
            if math.isnan(value):
                raise Unsure
            return struct.pack(">d", value)
        case Kind.LONG_BUCKET:
            return struct.pack(">qq", *(value or (0, 0)))
        case Kind.DOUBLE_BUCKET:
            if value is not None and math.isnan(value[0]):
                raise Unsure
            return struct.pack(">dd", *(value or (0.0, 0.0)))
    low, high = value or (b"", b"")
    return bytes(low + high)


def text_form(result: Result, value: Any) -> bytes:
    match result.kind:
        case Kind.STRING | Kind.RAW:
            return bytes(value)
        case Kind.BOOL | Kind.LONG:
            return b"%d" % (int(value) % 2**64)
        case Kind.DOUBLE:
            return double_text(value)
    raise Unfit


def joined(results: Sequence[Result], form: Callable[[Result, Any], bytes]) -> bytes:
    return b"".join(form(result, value) for result in results for value in result.values)


def folded(form: bytes, size: int) -> bytes:
    found = bytearray(size)
    whole = len(form) // size * size
    for place, byte in enumerate(form):
        found[place % size] = found[place % size] ^ byte if place < whole else byte
    return bytes(found)


def time_part(part: str, seconds: int) -> int:
    """By Python's calendar, 400 years later or earlier where it ends."""
    days, rest = divmod(seconds, 86_400)
    eras, days_of_era = divmod(days, 146_097)
    day = date.fromordinal(719_163 + days_of_era)  # from 1970 on
    year = day.year + 400 * eras
    shown = (year + 2**31) % 2**32 - 2**31
    is_leap = shown % 4 == 0 and (shown % 100 != 0 or shown % 400 == 0)
    before = (date(2001, day.month, 1) - date(2001, 1, 1)).days
    parts = {
        "year": year % 2**32,
        "monthofyear": day.month,
        "dayofmonth": day.day,
        "dayofyear": before + day.day - 1 + (is_leap and day.month > 2),
        "dayofweek": (days + 4) % 7,
        "hourofday": rest // 3600,
        "minuteofhour": rest // 60 % 60,
        "secondofminute": rest % 60,
    }
    return parts[part]


def fixed_width(result: Result, width: float) -> Result:
    if result.kind == Kind.DOUBLE:
        return result.each(Kind.DOUBLE_BUCKET, lambda value: _around_double(value, float(width)))
    if result.kind not in NUMBERS:
        raise Unfit
    whole = width if isinstance(width, int) else to_long(Kind.DOUBLE, width)
    return result.each(Kind.LONG_BUCKET, lambda value: _around_long(int(value), whole))


def _around_double(value: float, width: float) -> Any:
    if not width > 0:
        return None
    place = value / width
    place = float(math.floor(place)) if math.isfinite(place) else place
    low, high = place * width, (place + 1) * width
    return None if low == high else (low, high)


def _around_long(value: int, width: int) -> Any:
    if width <= 0:
        return None
    if value >= 0:
        low = value // width * width
        return low, MOST if low >= MOST - width else low + width
    high = -((-(value + 1)) // width) * width
    return LEAST if high <= LEAST + width else high - width, high


def predefined(result: Result, buckets: Sequence[Bucket]) -> Result:
    check_buckets(result)
    types = {type(limit) for each in buckets for limit in (each.low, each.high)} - {Infinite}
    if len(types) != 1 or (kind := _BUCKETS.get(next(iter(types)))) is None:
        raise Unfit
    convert = {Kind.LONG_BUCKET: to_long, Kind.DOUBLE_BUCKET: to_double}.get(kind, to_text)
    found = []
    for value in result.values:
        number = convert(result.kind, value)
        fits = (limits for limits in map(_limits, buckets) if _contains(limits, number))
        limits = next(fits, None)
        found.append(None if limits is None else tuple(limits[0] * 0 if limit is None else limit for limit in limits))
    return Result(kind, found, result.is_multi)


def _limits(bucket: Bucket) -> tuple[Any, Any]:
    """As they are compared; None: a text without end."""
    other = bucket.high if isinstance(bucket.low, Infinite) else bucket.low
    match other:
        case int():
            least, most = LEAST, MOST
        case float():
            least, most = -math.inf, math.inf  # type: ignore[assignment]
        case _:
            least, most = b"", None  # type: ignore[assignment]
    low = least if isinstance(bucket.low, Infinite) else _limit(bucket.low, bucket.includes_low)
    high = most if isinstance(bucket.high, Infinite) else _limit(bucket.high, not bucket.includes_high)
    return low, high


def _limit(limit: Any, is_plain: bool) -> Any:
    """The limit, or what is next to it."""
    match limit:
        case int():
            return limit if is_plain else min(limit + 1, MOST)
        case float():
            return limit if is_plain else math.nextafter(limit, math.inf)
        case str():
            return limit.encode() + (b"" if is_plain else b" ")
    return bytes(limit) + (b"" if is_plain else b"\0")


def _contains(limits: tuple[Any, Any], value: Any) -> bool:
    low, high = limits
    return not (value < low or (high is not None and value >= high))


def interpolated(elements: Sequence[float], wanted: float) -> float:
    if not elements or wanted < elements[0]:
        return 0.0
    for number in range(1, len(elements)):
        if wanted < elements[number]:
            below = elements[number - 1]
            return number - 1 + _quotient(wanted - below, elements[number] - below)
    return float(len(elements) - 1)


def _quotient(left: float, right: float) -> float:
    if right == 0 or math.isnan(right):
        return math.nan if left == 0 or math.isnan(left) or math.isnan(right) else math.copysign(math.inf, left)
    return left / right


def place_of(number: int) -> tuple[int, int]:
    """x and y of a number on a z-curve: its even bits, and its odd ones."""
    bits_ = [number >> place & 1 for place in range(64)]
    found = [sum(bit << place for place, bit in enumerate(bits_[axis::2])) for axis in (0, 1)]
    x, y = ((each + 2**31) % 2**32 - 2**31 for each in found)
    return x, y


def distance_km(latitude: float, longitude: float, other_latitude: float, other_longitude: float) -> float:
    theta, phi, other_theta, other_phi = (
        math.radians(each) for each in (latitude, longitude, other_latitude, other_longitude)
    )
    if not all(map(math.isfinite, (theta, phi))):
        return math.nan
    central = math.sin((theta - other_theta) / 2) ** 2
    central += math.cos(theta) * math.cos(other_theta) * math.sin((phi - other_phi) / 2) ** 2
    return 2 * math.asin(math.sqrt(central)) * 6371.0088 if 0 <= central <= 1 else math.nan


def subject(text: bytes) -> bytes:
    if len(text) >= 4:
        start = text[:4].lower()
        if text[:1] == b"R" and start == b"re: ":
            return text[4:]
        if text[:1] == b"F" and start == b"fw: ":
            return text[4:]
        if text[:1] == b"F" and text[:5].lower() == b"fwd: ":
            return text[5:]
    return text


def collation_key(text: bytes, locale: str, strength: str) -> bytes:
    collator = icu.Collator.createInstance(icu.Locale(locale))
    collator.setStrength(getattr(icu.Collator, strength))
    try:
        return bytes(collator.getSortKey(text.split(b"\0")[0].decode()))
    except UnicodeDecodeError:
        return bytes(collator.getSortKey(""))


def sort_key(kind: Kind, value: Any) -> Any:
    match kind:
        case Kind.LONG_BUCKET:
            return value or (0, 0)
        case Kind.DOUBLE_BUCKET:
            return tuple(sort_key(Kind.DOUBLE, limit) for limit in value or (0.0, 0.0))
        case Kind.STRING_BUCKET | Kind.RAW_BUCKET:
            return ((b"", b""), 0) if value is None else (value, 1)
        case Kind.DOUBLE:
            return (0, 0.0) if math.isnan(value) else (1, value)
    return value
