"""What the text of a cell stands for, by the type that --field-type gives its field."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from datetime import UTC, datetime
from typing import Any, Final

import orjson

from paperwasp.base.patterns import compile_later
from paperwasp.client.sources.dates import date_reader
from paperwasp.client.sources.whole_numbers import WHOLE_TYPES, whole_of_text
from paperwasp.errors import InvalidInput

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
"""Before a form of dates (`dates.date_reader`)."""
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
