"""The converters: `to_int`, `to_string`, `to_array`, … From the text of a value, where Vespa takes that."""

from __future__ import annotations

from datetime import date
from typing import Final

from paperwasp.base.patterns import compile_later
from paperwasp.document.converters import GeoPosition, number_of
from paperwasp.document.degrees import parse_degrees
from paperwasp.document.numbers import single
from paperwasp.document.types import (
    BOOL,
    BYTE,
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    POSITION,
    PRIMITIVES,
    STRING,
    URI,
    DataType,
    NumericType,
    array_of,
    weighted_set_of,
)
from paperwasp.indexing.scope import (
    Compiled,
    Run,
    Scope,
    ScriptError,
    Value,
    compiles,
    is_float,
    is_number,
    is_text,
    text_of,
)
from paperwasp.schema.indexing_tree import Expression

_WHOLE: Final = {"to_byte": BYTE, "to_int": INT, "to_long": LONG}
_FLOATS: Final = {"to_float": FLOAT, "to_double": DOUBLE}
_INTEGER: Final = compile_later(r"[+-]?[0-9]{1,40}")
_SHOWN: Final = 100
_DEFAULT_WEIGHT: Final = 1
_INSTANT: Final = compile_later(
    r"(?P<year>[0-9]{4}|[+-][0-9]{4,9})-(?P<month>[0-9]{2})-(?P<day>[0-9]{2})[Tt]"
    r"(?P<hour>[0-9]{2}):(?P<minute>[0-9]{2}):(?P<second>[0-9]{2})(?:\.[0-9]{0,9})?"
    r"(?:[Zz]|(?P<sign>[+-])(?P<hours>[0-9]{2}):(?P<minutes>[0-9]{2})(?::(?P<seconds>[0-9]{2}))?)"
)
_CYCLE_YEARS: Final = 400
_CYCLE_DAYS: Final = 146_097
"""The years, and the days, after which the calendar repeats."""
_EPOCH: Final = date(1970, 1, 1).toordinal()


def _any(expression: Expression, type_: DataType | None, scope: Scope) -> DataType:
    if type_ is None:
        scope.expected(expression, "any", type_)
    return type_


# Numbers


@compiles(*_WHOLE)
def _to_whole(expression: Expression, type_: DataType | None, scope: Scope) -> Compiled:
    source, target = _any(expression, type_, scope), _WHOLE[expression.keyword]
    low, high = target.low or 0, target.high or 0
    if is_number(source) and not is_float(source):

        def narrow(value: Value, run: Run) -> int:
            if low <= value <= high:
                return value  # type: ignore[no-any-return]
            raise _no_number(str(value), target)

        return Compiled(narrow, target)
    to_text = text_of(source)

    def parse(value: Value, run: Run) -> int:
        text = to_text(value)
        if _INTEGER.fullmatch(text) and low <= (number := int(text)) <= high:
            return number
        raise _no_number(text, target)

    return Compiled(parse, target)


@compiles(*_FLOATS)
def _to_float(expression: Expression, type_: DataType | None, scope: Scope) -> Compiled:
    source, target = _any(expression, type_, scope), _FLOATS[expression.keyword]
    narrow = single if target == FLOAT else float
    if is_number(source):
        return Compiled(lambda value, run: narrow(float(value)), target)
    to_text = text_of(source)

    def parse(value: Value, run: Run) -> float:
        text = to_text(value)
        try:
            return narrow(number_of(text))
        except ValueError:
            raise _no_number(text, target) from None

    return Compiled(parse, target)


def _no_number(text: str, target: NumericType) -> ScriptError:
    return ScriptError(f'For input string: "{text[:_SHOWN]}", which is no {target}')


@compiles("to_bool")
def _to_bool(expression: Expression, type_: DataType | None, scope: Scope) -> Compiled:
    source = _any(expression, type_, scope)
    if is_number(source):
        return Compiled(lambda value, run: bool(value == value and int(min(max(value, -1e9), 1e9))), BOOL)
    if is_text(source) or source == BOOL:
        return Compiled(lambda value, run: bool(value), BOOL)
    return Compiled(lambda value, run: False, BOOL)


# Texts and places


@compiles("to_string")
def _to_string(expression: Expression, type_: DataType | None, scope: Scope) -> Compiled:
    to_text = text_of(_any(expression, type_, scope))
    return Compiled(lambda value, run: run.text(to_text(value)), STRING)


@compiles("to_uri")
def _to_uri(expression: Expression, type_: DataType | None, scope: Scope) -> Compiled:
    if not is_text(type_):
        scope.expected(expression, "string", type_)
    return Compiled(lambda value, run: value, URI)


@compiles("to_pos")
def _to_pos(expression: Expression, type_: DataType | None, scope: Scope) -> Compiled:
    if not is_text(type_):
        scope.expected(expression, "string", type_)

    def parse(value: Value, run: Run) -> GeoPosition:
        place = parse_degrees(value)
        return GeoPosition(place.x, place.y)

    return Compiled(parse, POSITION)


@compiles("to_epoch_second")
def _to_epoch_second(expression: Expression, type_: DataType | None, scope: Scope) -> Compiled:
    if not is_text(type_):
        scope.expected(expression, "string", type_)
    return Compiled(lambda value, run: epoch_second(value), LONG)


def epoch_second(text: str) -> int:
    """The seconds since 1970 of an instant of ISO 8601, a fraction cut off. Errors: ScriptError."""
    found = _INSTANT.fullmatch(text)
    if found is None:
        raise ScriptError(f"Text '{text[:_SHOWN]}' could not be parsed as an ISO-8601 instant")
    year, month, day, hour, minute, second = (
        int(found[name]) for name in ("year", "month", "day", "hour", "minute", "second")
    )
    # Java takes 24:00:00 for the end of the day, and 23:59:60 for the second before.
    is_end = (hour, minute, second) == (24, 0, 0)
    is_leap = (hour, minute, second) == (23, 59, 60)
    if not (is_end or is_leap) and (hour > 23 or minute > 59 or second > 59):
        raise ScriptError(f"Text '{text[:_SHOWN]}' could not be parsed: there is no such time")
    offset = sum(int(found[name] or 0) * size for name, size in (("hours", 3600), ("minutes", 60), ("seconds", 1)))
    cycles = year // _CYCLE_YEARS - 1
    try:
        days = date(year - cycles * _CYCLE_YEARS, month, day).toordinal() + cycles * _CYCLE_DAYS - _EPOCH
    except ValueError:
        raise ScriptError(f"Text '{text[:_SHOWN]}' could not be parsed: there is no such day") from None
    seconds = days * 86_400 + hour * 3600 + minute * 60 + (59 if is_leap else second)
    return seconds + offset if found["sign"] == "-" else seconds - offset


# Collections


@compiles("to_array")
def _to_array(expression: Expression, type_: DataType | None, scope: Scope) -> Compiled:
    return Compiled(lambda value, run: [value], array_of(_any(expression, type_, scope)))


@compiles("to_wset")
def _to_wset(expression: Expression, type_: DataType | None, scope: Scope) -> Compiled:
    if type_ is None or type_.name not in PRIMITIVES:
        scope.expected(expression, "primitive", type_)
    options = expression.arguments
    made = weighted_set_of(
        type_,
        create_if_nonexistent="create_if_non_existent" in options,
        remove_if_zero="remove_if_zero" in options,
    )
    return Compiled(lambda value, run: {value: _DEFAULT_WEIGHT}, made)
