"""Values of Python that JSON has not, as those of rows may be: times as numbers, decimals with all their digits, and
infinities by their names, as services take them."""

from __future__ import annotations

import dataclasses
import datetime
from collections.abc import Callable
from decimal import Decimal
from math import inf
from typing import Any, Final

import orjson

from paperwasp.client.sources.values import TIME_UNITS

_START: Final = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_MICROSECOND: Final = datetime.timedelta(microseconds=1)
_MISSING: Final = ("NAType", "NaTType")
"""What pandas has where a value is missing."""
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
    """What makes JSON of a value: times are numbers of `time_unit` since 1970, rounded down, in UTC where they do not
    say their zone. It raises TypeError for what is no value of a field."""
    factor = TIME_UNITS[time_unit]

    def plain(value: Any) -> Any:
        if type(value).__name__ in _MISSING:
            return None
        if isinstance(value, datetime.timedelta):
            return value // _MICROSECOND * factor // 1_000_000
        if isinstance(value, datetime.datetime):
            moment = value if value.tzinfo is not None else value.replace(tzinfo=datetime.UTC)
            return (moment - _START) // _MICROSECOND * factor // 1_000_000
        if isinstance(value, datetime.date):
            return (value - _START.date()).days * 86_400 * factor
        if isinstance(value, datetime.time):
            return plain(datetime.datetime.combine(_START, value, datetime.UTC))
        if isinstance(value, Decimal):
            return str(value)
        if isinstance(value, set | frozenset):
            return sorted(value)
        for name in ("tolist", "as_py"):
            if (make := getattr(value, name, None)) is not None:
                return make()
        raise TypeError(f"a value of type {type(value).__name__}")

    return plain
