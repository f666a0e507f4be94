"""The text of a cell, or a value of Python, becomes the JSON that it stands for: numbers, dates in other
forms than ISO 8601, whole numbers that a table holds as floats.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Collection
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from math import copysign, inf
from typing import Any, Final

import orjson

from paperwasp.base.patterns import compile_later
from paperwasp.document.ids import DocumentId
from paperwasp.errors import InvalidInput

# Dates in other forms than ISO 8601, as tables of people have them: 05.07.2025, 7/5/2025 3:04 PM, 5 July 2025.
#
# A form says where day, month and year stand: DD and MM are one or two digits, YYYY four, Mon is the name of a month in
# English, whole or its first three letters. A time of day may follow.


GUESSED_FORMS: Final = (
    "DD.MM.YYYY",
    "DD/MM/YYYY",
    "MM/DD/YYYY",
    "DD-MM-YYYY",
    "MM-DD-YYYY",
    "YYYY/MM/DD",
    "YYYY.MM.DD",
    "DD Mon YYYY",
    "DD-Mon-YYYY",
    "Mon DD, YYYY",
    "Mon DD YYYY",
)
"""The forms that are looked for in a sample. Dots stand in no date that begins with the month."""
_PARTS: Final = {
    "YYYY": "(?P<year>[0-9]{4})",
    "MM": "(?P<month>[0-9]{1,2})",
    "Mon": r"(?P<name>[A-Za-z]{3,9})\.?",
    "DD": "(?P<day>[0-9]{1,2})",
}
_PART: Final = compile_later("YYYY|MM|Mon|DD")
_TIME: Final = (
    r"(?:(?:,? +|T)(?P<hour>[0-9]{1,2}):(?P<minute>[0-9]{2})(?::(?P<second>[0-9]{2})(?:\.(?P<fraction>[0-9]{1,6}))?)?"
    r"(?: ?(?P<half>[AaPp])[Mm])?)?"
)
_MONTHS: Final = (
    "january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november",
    "december",
)  # fmt: skip
_HALF_HOURS: Final = 12


def date_reader(form: str) -> Callable[[str], datetime]:
    """Return a reader of texts of a form, in UTC; it raises ValueError for others. Errors: ValueError for no form."""
    parts = _PART.findall(form)
    if sorted("MM" if part == "Mon" else part for part in parts) != ["DD", "MM", "YYYY"]:
        raise ValueError(f"'{form}' has to say where day (DD), month (MM or Mon) and year (YYYY) are, each once")
    between = [re.escape(text) for text in _PART.split(form)]
    pattern = between[0] + "".join(_PARTS[part] + text for part, text in zip(parts, between[1:], strict=True))
    compiled = re.compile(pattern + _TIME)

    def read(text: str) -> datetime:
        found = compiled.fullmatch(text.strip())
        if found is None:
            raise ValueError(f"a date of the form {form}")
        try:
            return _moment(found.groupdict())
        except ValueError:
            raise ValueError(f"a date of the form {form}") from None

    return read


def _moment(parts: dict[str, str | None]) -> datetime:
    """Errors: ValueError for a day or time that is not there."""
    hour = int(parts["hour"] or 0)
    if half := parts["half"]:
        if not 1 <= hour <= _HALF_HOURS:
            raise ValueError
        hour = hour % _HALF_HOURS + (_HALF_HOURS if half in "Pp" else 0)
    name = parts.get("name")
    month = int(parts["month"] or 0) if name is None else _month(name.lower())
    return datetime(
        int(parts["year"] or 0),
        month,
        int(parts["day"] or 0),
        hour,
        int(parts["minute"] or 0),
        int(parts["second"] or 0),
        int((parts["fraction"] or "0").ljust(6, "0")),
        UTC,
    )


def _month(name: str) -> int:
    """Errors: ValueError for what is no month."""
    for number, month in enumerate(_MONTHS, 1):
        if name in (month, month[:3]) or (name, month) == ("sept", "september"):
            return number
    raise ValueError


# Whole numbers that a table holds as floats, as `1901.0`, since another value of their column is missing.
#
# Fields of whole numbers refuse them, so they become whole again where the field is of such a type. A float at or above
# the limit of its type may have lost digits when it was made, so it stays what it is, and the service refuses it.


TypeOf = Callable[[DocumentId, str], str | None]
"""The type of a field of a document; "" where it is none of whole numbers, None where nobody knows."""

WHOLE_TYPES: Final = ("byte", "int", "long")
EXACT: Final = 2**53
"""Below it, each whole number has a double of its own."""
EXACT_SINGLE: Final = 2**24
"""The same of floats of 32 bits."""
_WRITTEN: Final = compile_later(r"([+-]?[0-9]{1,16})\.0+")


def is_like_whole(value: Any) -> bool:
    """Whether a value is a float, or the text of one, that is a whole number and has all its digits."""
    if isinstance(value, str):
        return value.endswith("0") and whole_of_text(value) is not None
    if isinstance(value, float):
        return value.is_integer() and -EXACT < value < EXACT
    is_single = getattr(getattr(value, "dtype", None), "kind", "") == "f" and not getattr(value, "ndim", 0)
    return is_single and bool(-EXACT_SINGLE < value < EXACT_SINGLE) and value.is_integer()


def whole_of_text(text: str) -> int | None:
    """The number of a text like `1901.0`; None where it is none, or may have lost digits."""
    match = _WRITTEN.fullmatch(text)
    found = int(match[1]) if match else EXACT
    return found if -EXACT < found < EXACT else None


def made_whole(value: Any, field_type: str | None) -> Any:
    """A value that is like a whole number, as a field of that type takes it.

    Where the type is not known, numbers become whole, which fields of floats take as well; texts do not.
    """
    is_text = isinstance(value, str)
    if field_type in WHOLE_TYPES:
        return whole_of_text(value) if is_text else int(value)
    if field_type is not None or is_text or (value == 0 and copysign(1.0, value) < 0):
        return value
    return int(value)


# From the text of a cell to a value.


Convert = Callable[[str], Any]
"""From the text of a cell to a value for JSON; None where there is none. Raises ValueError with what was expected."""

TIME_UNITS: Final = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
"""Name → how many there are in a second."""
_WHOLE: Final = compile_later(r"[+-]?[0-9]+")
_NUMBER: Final = compile_later(
    r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|NaN|[+-]?Infinity", re.IGNORECASE
)
_NON_FINITE: Final = {"nan": "NaN", "infinity": "Infinity", "+infinity": "Infinity", "-infinity": "-Infinity"}
_BOOLEANS: Final = {
    **dict.fromkeys(("true", "t", "yes", "y", "1"), True),
    **dict.fromkeys(("false", "f", "no", "n", "0"), False),
}
DATE_FORM: Final = "timestamp:"
"""Before a form of dates (`date_reader`)."""
_SHOWN: Final = 60
_MICROSECONDS: Final = 1_000_000


def converter(type_name: str, separator: str, time_unit: str) -> Convert:
    """The conversion of a type's name. Errors: InvalidInput for a name that is none."""
    name = type_name.strip().lower()
    if name.startswith("array<") and name.endswith(">"):
        return _list_of(converter(name[len("array<") : -1], separator, time_unit), separator)
    if name == "timestamp":
        return lambda text: _since_1970(_iso(text), TIME_UNITS[time_unit])
    if name.startswith(DATE_FORM):
        return _dates(type_name.strip()[len(DATE_FORM) :], TIME_UNITS[time_unit])
    if name in _CONVERTERS:
        return _CONVERTERS[name]
    known = ", ".join((*_CONVERTERS, "timestamp", "timestamp:DD.MM.YYYY", "array<…>"))
    raise InvalidInput(f"--field-type: '{type_name}' is not one of {known}")


def without_missing(convert: Convert, missing: Collection[str]) -> Convert:
    """The conversion where some texts stand for no value; texts that are to stay texts are kept."""
    if not missing or convert is _text:
        return convert
    return lambda text: None if text.strip() in missing else convert(text)


def shown(text: str) -> str:
    """The text for a message, cut where it is long."""
    return repr(text if len(text) <= _SHOWN else text[:_SHOWN] + "…")


def _text(text: str) -> str:
    return text


def _whole(text: str) -> int:
    if _WHOLE.fullmatch(stripped := text.strip()):
        return int(stripped)
    if (number := whole_of_text(stripped)) is None:
        raise ValueError("a whole number")
    return number


def _number(text: str) -> Any:
    stripped = text.strip()
    if not _NUMBER.fullmatch(stripped):
        raise ValueError("a number")
    if name := _NON_FINITE.get(stripped.lower()):
        return name
    try:
        orjson.loads(stripped)
    except orjson.JSONDecodeError:
        return float(stripped)
    return orjson.Fragment(stripped)  # with the digits that it has


def _boolean(text: str) -> bool:
    if (value := _BOOLEANS.get(text.strip().lower())) is None:
        raise ValueError("true or false")
    return value


def _json(text: str) -> Any:
    """JSON as it stands there."""
    try:
        if orjson.loads(text) is None:
            return None
    except orjson.JSONDecodeError as error:
        raise ValueError(f"JSON ({error.msg})") from None
    return orjson.Fragment(text.strip())


def _either(text: str) -> Any:
    """JSON where it is that, else the text."""
    try:
        return _json(text)
    except ValueError:
        return text


def _iso(text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        raise ValueError("a time like 2024-05-01T12:00:00Z") from None
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


def _dates(form: str, units: int) -> Convert:
    """The conversion of dates of a form. Errors: InvalidInput for what is none."""
    try:
        read = date_reader(form)
    except ValueError as error:
        raise InvalidInput(f"--field-type: {error}") from None
    return lambda text: _since_1970(read(text), units)


def _since_1970(moment: datetime, units: int) -> int:
    since = moment - datetime(1970, 1, 1, tzinfo=UTC)
    microseconds = (since.days * 86_400 + since.seconds) * _MICROSECONDS + since.microseconds
    return microseconds * units // _MICROSECONDS


def _list_of(element: Convert, separator: str) -> Convert:
    def convert(text: str) -> Any:
        stripped = text.strip()
        if stripped.startswith("[") and stripped.endswith("]"):
            return _json(stripped)
        return [element(part.strip()) for part in stripped.split(separator) if part.strip()]

    return convert


_CONVERTERS: Final[dict[str, Convert]] = {
    **dict.fromkeys(("string", "text", "uri", "raw"), _text),
    **dict.fromkeys(WHOLE_TYPES, _whole),
    **dict.fromkeys(("float", "double"), _number),
    "bool": _boolean,
    "json": _json,
    "auto": _either,
}


# Values of Python that JSON has not, as those of rows may be: times as numbers, decimals with all their digits, and
# infinities by their names, as services take them.


_START: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
_MISSING: Final = ("NAType", "NaTType")
"""The values by which pandas says that one is missing."""
_OPTIONS: Final = orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_NON_STR_KEYS | orjson.OPT_PASSTHROUGH_DATETIME
_INFINITIES: Final = {inf: "Infinity", -inf: "-Infinity"}


def json_of(value: Any, plain: Callable[[Any], Any]) -> bytes:
    """JSON of a value, also of NumPy arrays and numbers, and of what `plain` makes JSON of: infinities by their names,
    NaN as null. Errors: TypeError, ValueError."""
    text = orjson.dumps(value, plain, _OPTIONS)
    # Infinities became null, without a word.
    return orjson.dumps(_named(value, plain), plain, _OPTIONS) if b"null" in text else text


def _named(value: Any, plain: Callable[[Any], Any]) -> Any:
    """A value, of which JSON could be made, with names for infinities."""
    if isinstance(value, float):
        return _INFINITIES.get(value, value)
    if value is None or isinstance(value, str | int):
        return value
    if isinstance(value, dict):
        return {_INFINITIES.get(name, name): _named(member, plain) for name, member in value.items()}
    if isinstance(value, list | tuple):
        return [_named(element, plain) for element in value]
    if dataclasses.is_dataclass(value):
        names = [each.name for each in dataclasses.fields(value) if not each.name.startswith("_")]
        return {name: _named(getattr(value, name), plain) for name in names}
    kind = getattr(getattr(value, "dtype", None), "kind", "O")
    if kind not in "fO":
        return value  # an array or a number of NumPy without infinities; times would become others by `plain`
    if kind == "f" and getattr(value, "ndim", 0):
        # Its numbers stay those of NumPy, which have no more digits than their type has.
        return [_named(element, plain) for element in value] if (abs(value) == inf).any() else value
    if kind == "f":
        return _INFINITIES.get(value.item(), value)
    try:
        made = plain(value)
    except TypeError:
        return value
    return _named(made, plain)


def plain_value(time_unit: str) -> Callable[[Any], Any]:
    """Return a function that makes JSON of a value: times are numbers of `time_unit` since 1970, rounded down, in
    UTC where they do not say their zone. It raises TypeError for what is no value of a field."""
    factor = TIME_UNITS[time_unit]

    def plain(value: Any) -> Any:
        if type(value).__name__ in _MISSING:
            return None
        if isinstance(value, timedelta):
            return value // _MICROSECOND * factor // 1_000_000
        if isinstance(value, datetime):
            moment = value if value.tzinfo is not None else value.replace(tzinfo=UTC)
            return (moment - _START) // _MICROSECOND * factor // 1_000_000
        if isinstance(value, date):
            return (value - _START.date()).days * 86_400 * factor
        if isinstance(value, time):
            return plain(datetime.combine(_START, value, UTC))
        if isinstance(value, Decimal):
            return str(value)
        if isinstance(value, set | frozenset):
            return sorted(value)
        for name in ("tolist", "as_py"):
            if (make := getattr(value, name, None)) is not None:
                return make()
        raise TypeError(f"a value of type {type(value).__name__}")

    return plain
