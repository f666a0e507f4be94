"""Dates in other forms than ISO 8601, as tables of people have them: 05.07.2025, 7/5/2025 3:04 PM, 5 July 2025.

A form says where day, month and year stand: DD and MM are one or two digits, YYYY four, Mon is the name of a month in
English, whole or its first three letters. A time of day may follow.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final

from paperwasp.base.patterns import compile_later

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
    """What reads texts of a form, in UTC; it raises ValueError for others. Errors: ValueError for what is no form."""
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
