"""Values of Python that JSON has not, as those of rows may be: times as numbers, decimals with all their digits."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from decimal import Decimal
from typing import Any, Final

from paperwasp.client.sources.values import TIME_UNITS

_START: Final = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_MICROSECOND: Final = datetime.timedelta(microseconds=1)
_MISSING: Final = ("NAType", "NaTType")
"""What pandas has where a value is missing."""


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
