"""Expressions of grouping, one row at a time, in Python: the oracle of `paperwasp.search.grouping.expressions`."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from paperwasp.search.grouping.request import Bucket, Expression
from paperwasp.search.grouping.values import Kind
from tests.search.grouping.scalar import (
    TEXTS,
    Column,
    Result,
    Row,
    Unfit,
    check_buckets,
    first_double,
    first_long,
    first_text,
    to_double,
    to_long,
    to_text,
)
from tests.search.grouping.scalar_functions import (
    arithmetic,
    binary_form,
    bits,
    collation_key,
    distance_km,
    fixed_width,
    folded,
    interpolated,
    joined,
    maths,
    negated,
    one,
    place_of,
    predefined,
    sort_key,
    subject,
    text_form,
    time_part,
)


class Evaluator:
    """Expressions over columns. `bound`: the arrays and maps of which rows are about one element."""

    def __init__(
        self,
        columns: Mapping[str, Column],
        *,
        bound: frozenset[str] = frozenset(),
        time_offset: int = 0,
        now: int = 0,
        ids: Sequence[bytes] = (),
    ) -> None:
        self._columns = columns
        self._bound = bound
        self._time_offset = time_offset
        self._seconds_now = now
        self._ids = ids

    def of(self, expression: Any, row: Row) -> Result:
        """Raises Unfit, Unsure."""
        if not isinstance(expression, Expression):
            expression = Expression("constant", (expression,))
        function, arguments = expression.function, expression.arguments
        if function.startswith("time.") and function != "time.date":
            return self._time(function.removeprefix("time."), arguments, row)
        own = getattr(self, "_" + function.replace(".", "_"), None)
        if own is not None:
            found: Result = own(arguments, row)
            return found
        results = [self.of(each, row) for each in arguments if not isinstance(each, Bucket)]
        return computed(function, arguments, results)

    def _constant(self, arguments: Sequence[Any], row: Row) -> Result:
        (value,) = arguments
        match value:
            case bool():
                return Result(Kind.BOOL, [value], size=1)
            case int():
                return one(Kind.LONG, value)
            case float():
                return one(Kind.DOUBLE, value)
        return one(Kind.STRING, value.encode()) if isinstance(value, str) else one(Kind.RAW, value)

    def _attribute(self, arguments: Sequence[Any], row: Row) -> Result:
        (name,) = arguments
        array = name.rpartition(".")[0] or name
        column = self._columns[name]
        return column.at(row.lid, row.elements[array]) if array in self._bound else column.of(row.lid)

    def _relevance(self, arguments: Sequence[Any], row: Row) -> Result:
        return one(Kind.DOUBLE, row.relevance)

    def _now(self, arguments: Sequence[Any], row: Row) -> Result:
        return one(Kind.LONG, self._seconds_now)

    def _docidnsspecific(self, arguments: Sequence[Any], row: Row) -> Result:
        return one(Kind.STRING, self._ids[row.lid] if self._ids else b"")

    def _debugwait(self, arguments: Sequence[Any], row: Row) -> Result:
        return self.of(arguments[0], row)

    def _md5(self, arguments: Sequence[Any], row: Row) -> Result:
        form = joined([self.of(arguments[0], row)], binary_form)
        return one(Kind.RAW, hashlib.md5(form).digest()[: (arguments[1] + 7) // 8])

    def _xorbit(self, arguments: Sequence[Any], row: Row) -> Result:
        form = joined([self.of(arguments[0], row)], binary_form)
        return one(Kind.RAW, folded(form, (arguments[1] + 7) // 8))

    def _fixedwidth(self, arguments: Sequence[Any], row: Row) -> Result:
        return fixed_width(self.of(arguments[0], row), arguments[1])

    def _uca(self, arguments: Sequence[Any], row: Row) -> Result:
        argument = self.of(arguments[0], row)
        check_buckets(argument)
        locale, strength = arguments[1], arguments[2] if len(arguments) > 2 else "PRIMARY"
        return argument.each(Kind.RAW, lambda value: collation_key(to_text(argument.kind, value), locale, strength))

    def _local(self, argument: Any, row: Row) -> Result:
        seconds = self.of(argument, row)
        check_buckets(seconds)
        return arithmetic("add", [seconds, one(Kind.LONG, self._time_offset)]) if self._time_offset else seconds

    def _time(self, part: str, arguments: Sequence[Any], row: Row) -> Result:
        seconds = self._local(arguments[0], row)
        return seconds.each(Kind.LONG, lambda value: time_part(part, to_long(seconds.kind, value)))

    def _time_date(self, arguments: Sequence[Any], row: Row) -> Result:
        seconds = self._local(arguments[0], row)
        if not seconds.values:
            return one(Kind.STRING, b"--")
        number = first_long(seconds)
        parts = [b"%d" % time_part(part, number) for part in ("year", "monthofyear", "dayofmonth")]
        return one(Kind.STRING, b"-".join(parts))

    def _array_at(self, arguments: Sequence[Any], row: Row) -> Result:
        number = first_long(self.of(arguments[1], row))
        column = self._columns[arguments[0]]
        if not column.is_multi:
            raise Unfit
        return column.at(row.lid, number)

    def _interpolatedlookup(self, arguments: Sequence[Any], row: Row) -> Result:
        wanted = first_double(self.of(arguments[1], row))
        column = self._columns[arguments[0]]
        if column.kind in TEXTS:
            raise Unfit
        elements = [to_double(column.kind, value) for value in column.of(row.lid).values]
        return one(Kind.DOUBLE, interpolated(elements, wanted))

    def _map(self, arguments: Sequence[Any], row: Row) -> Result:
        prefix, key, suffix = arguments
        keys = self._columns[f"{prefix}.key"]
        return self._looked_up(keys, self._columns[f"{prefix}.value{suffix}"], _written_key(key, keys.kind), row)

    def _map_source(self, arguments: Sequence[Any], row: Row) -> Result:
        prefix, source, suffix = arguments
        keys, found = self._columns[f"{prefix}.key"], self._columns[source]
        if found.is_multi:
            raise Unfit
        key = found.of(row.lid).values[0]
        is_same = found.kind == keys.kind or {found.kind, keys.kind} <= {Kind.LONG, Kind.BOOL}
        return self._looked_up(keys, self._columns[f"{prefix}.value{suffix}"], key if is_same else None, row)

    def _looked_up(self, keys: Column, column: Column, key: Any, row: Row) -> Result:
        known = list(keys.values[row.lid] or ())
        values = list(column.values[row.lid] or ())
        place = known.index(key) if key in known else len(values)
        value = values[place] if place < len(values) else column.unset
        if column.kind == Kind.BOOL:
            return Result(Kind.LONG, [int(value)], size=1)
        return Result(column.kind, [value], size=column.size)


def _written_key(key: str, kind: Kind) -> Any:
    """None: it is no key of this type."""
    text = key.encode()
    if kind == Kind.STRING:
        return text
    start = text.strip().lstrip(b"+-")[:1]
    if not (start.isdigit() or (kind == Kind.DOUBLE and start == b".")):
        return None
    return to_long(Kind.STRING, text) if kind != Kind.DOUBLE else to_double(Kind.STRING, text)


def computed(  # noqa: C901, PLR0912 (a case for each function)
    function: str, arguments: Sequence[Any], results: Sequence[Result]
) -> Result:
    """What a function makes of the values of its arguments, buckets aside."""
    space, _, name = function.partition(".")
    match space:
        case "add" | "mul" | "div" | "mod" | "min" | "max":
            return arithmetic(function, results)
        case "sub":
            return arithmetic("add", [results[0], *map(negated, results[1:])])
        case "neg":
            return negated(results[0])
        case "and" | "or" | "xor":
            return bits(function, results)
        case "math":
            return one(Kind.DOUBLE, maths(name, [first_double(each) for each in results]))
        case "tolong":
            return one(Kind.LONG, first_long(results[0]))
        case "todouble":
            return one(Kind.DOUBLE, first_double(results[0]))
        case "tostring":
            return one(Kind.STRING, first_text(results[0]))
        case "toraw":
            return one(Kind.RAW, first_text(results[0]))
        case "strlen":
            return one(Kind.LONG, len(first_text(results[0])))
        case "normalizesubject":
            return one(Kind.STRING, subject(first_text(results[0])))
        case "strcat":
            return one(Kind.STRING, joined(results, text_form))
        case "cat":
            return one(Kind.RAW, joined(results, binary_form))
        case "size":
            return one(Kind.LONG, len(results[0].values))
        case "sort":
            values = sorted(results[0].values, key=lambda value: sort_key(results[0].kind, value))
            return replace(results[0], values=values)
        case "reverse":
            return replace(results[0], values=results[0].values[::-1])
        case "zcurve":
            check_buckets(results[0])
            axis = "xy".index(name)
            return results[0].each(Kind.LONG, lambda value: place_of(to_long(results[0].kind, value))[axis])
        case "geo_distance":
            latitude, longitude = map(first_double, results[1:])
            places = [place_of(to_long(results[0].kind, value)) for value in results[0].values]
            ways = [distance_km(latitude, longitude, y / 1e6, x / 1e6) for x, y in places]
            km = float(np.min(ways)) if ways else math.inf
            return one(Kind.DOUBLE, km if name == "km" else km / 1.609344)
        case "predefined":
            return predefined(results[0], [each for each in arguments if isinstance(each, Bucket)])
    raise AssertionError(function)
