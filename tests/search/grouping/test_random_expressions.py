"""Random expressions over random columns, beside the oracle that works out one row at a time."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paperwasp.base.records import replace
from paperwasp.document.converters import GeoPosition
from paperwasp.document.types import (
    BOOL,
    BYTE,
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    POSITION,
    RAW,
    STRING,
    DataType,
    array_of,
    weighted_set_of,
)
from paperwasp.errors import InvalidQuery
from paperwasp.search.grouping.binding import bind_filter
from paperwasp.search.grouping.expression_node import ExpressionNode
from paperwasp.search.grouping.expressions import Rows, Scope, bind
from paperwasp.search.grouping.request import Bucket, Expression, Filter, Infinite
from paperwasp.search.grouping.tables import encoded
from paperwasp.search.grouping.values import Kind, Values
from tests.search.grouping.documents import attribute, column, of, rows_of
from tests.search.grouping.scalar import LEAST, MOST, Column, Result, Row, Unfit, Unsure, to_double, to_text
from tests.search.grouping.scalar_expressions import Evaluator

_ROWS = 4
_TEXTS = ("", "a", "B", "b\u00e9", "12", "-7x", " 0x1F", "010", "1.5e3", "-.25", "inf", "Re: x", "FwD: Re: y", "zz top")
_KEYS = ("a", "B", "12", "")
_LONGS = st.sampled_from([0, 1, -1, 2, 7, -13, 255, 86_400, 951_782_400, MOST, LEAST]) | st.integers(-40, 40)
_DOUBLES = st.sampled_from([0.0, 0.5, -0.5, 1.5, 2.5, -2.5, 1e300, -1e18, math.inf, 3.0]) | st.floats(-50, 50)


def _numbers(bits: int) -> st.SearchStrategy[int]:
    return st.integers(-3, 20) | st.sampled_from([-(2 ** (bits - 1)) + 1, 2 ** (bits - 1) - 1])


_VALUES: dict[DataType, st.SearchStrategy[Any]] = {
    BYTE: _numbers(8),
    INT: _numbers(32),
    LONG: _LONGS,
    FLOAT: st.floats(-100, 100, width=32),
    DOUBLE: _DOUBLES | st.just(math.nan),
    BOOL: st.booleans(),
    STRING: st.sampled_from(_TEXTS),
    RAW: st.binary(max_size=10),
    POSITION: st.builds(GeoPosition, st.integers(-180_000_000, 180_000_000), st.integers(-90_000_000, 90_000_000)),
}
_KINDS: dict[DataType, tuple[Kind, int]] = {
    BYTE: (Kind.LONG, 1),
    INT: (Kind.LONG, 4),
    LONG: (Kind.LONG, 8),
    FLOAT: (Kind.DOUBLE, 8),
    DOUBLE: (Kind.DOUBLE, 8),
    BOOL: (Kind.BOOL, 1),
    STRING: (Kind.STRING, 8),
    RAW: (Kind.RAW, 8),
    POSITION: (Kind.LONG, 8),
}
_TYPES = {"i8": BYTE, "i32": INT, "i64": LONG, "f32": FLOAT, "f64": DOUBLE, "t": BOOL, "s": STRING, "p": POSITION}
_SINGLE = {**_TYPES, "r": RAW}
_ARRAYS = {f"a_{name}": data_type for name, data_type in _TYPES.items()}
_SETS = {"w_s": STRING, "w_i64": LONG}
_MAPS = {
    "m": {"m.key": STRING, "m.value": BYTE},
    "n": {"n.key": LONG, "n.value.name": STRING, "n.value.weight": DOUBLE, "n.value.flag": BOOL},
}


def _spread(number: int) -> int:
    """The bits of 32 with a zero before each."""
    return sum((number >> place & 1) << 2 * place for place in range(32))


def _plain_of(data_type: DataType, value: Any) -> Any:
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, GeoPosition):
        number = _spread(value.x) | _spread(value.y) << 1
        return number - 2**64 if number >= 2**63 else number
    return value


class Data:
    """Columns as the service has them, and as the oracle reads them."""

    def __init__(self) -> None:
        self.views: dict[str, Any] = {}
        self.columns: dict[str, Column] = {}

    def add(self, name: str, data_type: DataType, values: Sequence[Any]) -> None:
        self.views[name] = column(data_type, values)
        kind, size = _KINDS[data_type]
        plain = [None if value is None else _plain_of(data_type, value) for value in values]
        self.columns[name] = Column(kind, plain, size=size)
        if data_type == POSITION:
            self.columns[f"{name}_zcurve"] = self.columns[name]

    def add_several(self, name: str, data_type: DataType, values: Sequence[Any], *, is_set: bool = False) -> None:
        self.views[name] = column(weighted_set_of(data_type) if is_set else array_of(data_type), values)
        kind, size = _KINDS[data_type]
        plain = [[_plain_of(data_type, value) for value in row or ()] for row in values]
        self.columns[name] = Column(kind, plain, is_multi=True, size=size)
        if data_type == POSITION:
            self.columns[f"{name}_zcurve"] = self.columns[name]

    def __repr__(self) -> str:
        return repr({name: each.values for name, each in self.columns.items()})


_GRAPHS = st.lists(st.lists(st.floats(-9, 9), max_size=5).map(sorted), min_size=_ROWS, max_size=_ROWS)


def _add_column(draw: st.DrawFn, data: Data, name: str) -> None:
    """A column with random values; of a map all of its parts."""
    if name in data.columns:
        return
    rows: dict[str, Any] = {"min_size": _ROWS, "max_size": _ROWS}
    if (one := _SINGLE.get(name)) is not None:
        data.add(name, one, draw(st.lists(st.none() | _VALUES[one], **rows)))
    elif (one := _ARRAYS.get(name)) is not None:
        data.add_several(name, one, draw(st.lists(st.lists(_VALUES[one], max_size=10), **rows)))
    elif (one := _SETS.get(name)) is not None:
        sets = st.dictionaries(_VALUES[one], st.integers(1, 9), max_size=3)
        data.add_several(name, one, draw(st.lists(sets, **rows)), is_set=True)
    elif name == "graph":
        data.add_several(name, DOUBLE, draw(_GRAPHS))
    else:
        lengths = draw(st.lists(st.integers(0, 3), **rows))
        for part, one in _MAPS[name.partition(".")[0]].items():
            each = st.sampled_from(_KEYS) if part == "m.key" else _VALUES[one]
            data.add_several(part, one, [draw(st.lists(each, min_size=n, max_size=n)) for n in lengths])


def _names_in(expression: Expression) -> Iterator[str]:
    function, arguments = expression.function, expression.arguments
    if function in ("attribute", "array.at", "interpolatedlookup"):
        yield str(arguments[0])
    elif function in ("map", "map_source"):
        yield f"{arguments[0]!s}."
        if function == "map_source":
            yield str(arguments[1])
    for each in arguments:
        if isinstance(each, Expression):
            yield from _names_in(each)


@st.composite
def _cases(draw: st.DrawFn, expressions: st.SearchStrategy[Any]) -> tuple[Data, Expression]:
    """An expression, and columns for all that it names."""
    expression = draw(expressions)
    expression = expression if isinstance(expression, Expression) else of("constant", expression)
    data = Data()
    for name in _names_in(expression):
        _add_column(draw, data, name.removesuffix("_zcurve"))
    return data, expression


_NUMBER_NAMES = (
    "i8",
    "i32",
    "i64",
    "f32",
    "f64",
    "t",
    "a_i8",
    "a_i32",
    "a_i64",
    "a_f64",
    "a_t",
    "w_i64",
    "m.value",
    "graph",
)
_TEXT_NAMES = ("s", "r", "a_s", "w_s", "m.key", "n.value.name")
_LEAVES = st.one_of(
    st.sampled_from(_NUMBER_NAMES).map(attribute),
    st.sampled_from(_NUMBER_NAMES).map(attribute),
    st.sampled_from(_TEXT_NAMES).map(attribute),
    st.sampled_from(("p_zcurve", "a_p_zcurve", "a_f32", "n.key", "n.value.weight", "n.value.flag")).map(attribute),
    _LONGS,
    _DOUBLES,
    st.sampled_from(_TEXTS),
    st.sampled_from([of("relevance"), of("now"), of("docidnsspecific")]),
    st.builds(lambda key, function: of(function, "m", key, ""), st.sampled_from([*_KEYS, "no"]), st.just("map")),
    st.builds(
        lambda key, part: of("map", "n", key, part),
        st.sampled_from(["1", "0x7", "-1", "x", ""]),
        st.sampled_from([".name", ".weight", ".flag"]),
    ),
    st.builds(lambda source: of("map_source", "m", source, ""), st.sampled_from(["s", "i8", "a_s"])),
    st.builds(lambda source: of("map_source", "n", source, ".name"), st.sampled_from(["i64", "t", "f64", "s"])),
)
_ONE_NAMES = (
    "neg tolong todouble tostring toraw strlen normalizesubject size sort reverse zcurve.x zcurve.y math.floor "
    "math.sqrt time.date time.year time.dayofyear time.dayofweek time.hourofday time.minuteofhour time.monthofyear "
    "time.dayofmonth time.secondofminute"
)
_SEVERAL = ("add", "sub", "mul", "div", "mod", "min", "max", "and", "or", "xor", "cat", "strcat")
_BITS = st.sampled_from([1, 8, 12, 64, 128])
_WIDTHS = st.sampled_from([3, 10, 0, -2, 2.5, 0.5, 1e-300, 2**62])
_BUCKETS = st.sampled_from(
    [
        (
            Bucket(Infinite(True), -1),
            Bucket(0, 0, True, True),
            Bucket(2, 12, False, True),
            Bucket(100, Infinite(False)),
        ),
        (Bucket(-1.5, 0.5), Bucket(0.5, 0.5, True, True), Bucket(2.0, 9.0, False)),
        (Bucket(Infinite(True), "1"), Bucket("1", "a", True, False), Bucket("b", Infinite(False))),
        (Bucket("", Infinite(False)),),
        (Bucket(b"", b"B"), Bucket(b"B", b"B", True, True), Bucket(b"a\0", Infinite(False))),
        (Bucket(Infinite(True), 5),),
    ]
)
_LOCALES = st.sampled_from([("sv",), ("de", "TERTIARY"), ("en", "IDENTICAL")])
_GIVEN_ARRAYS = st.sampled_from([*_ARRAYS, *_SETS, "m.value", "i8"])
_GIVEN_GRAPHS = st.sampled_from(["graph", "graph", "a_i32", "a_t", "i8", "s"])


def _function(name: str, inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Expression]:
    """Calls of a function with such arguments."""
    match name:
        case "md5" | "xorbit":
            return st.builds(lambda each, bits: of(name, each, bits), inner, _BITS)
        case "fixedwidth":
            return st.builds(lambda each, width: of(name, each, width), inner, _WIDTHS)
        case "predefined":
            return st.builds(lambda each, buckets: of(name, each, *buckets), inner, _BUCKETS)
        case "array.at":
            return st.builds(lambda array, each: of(name, array, each), _GIVEN_ARRAYS, inner)
        case "interpolatedlookup":
            return st.builds(lambda array, each: of(name, array, each), _GIVEN_GRAPHS, inner)
        case "uca":
            return st.builds(lambda each, locale: of(name, each, *locale), inner, _LOCALES)
        case "debugwait":
            return st.builds(lambda each: of(name, each, 0.0, False), inner)
    if name in _SEVERAL:
        return st.lists(inner, min_size=1, max_size=3).map(lambda arguments: of(name, *arguments))
    return st.builds(lambda each: of(name, each), inner)


_FUNCTIONS = (*_ONE_NAMES.split(), *_SEVERAL, "md5", "xorbit", "fixedwidth", "predefined", "array.at",
              "interpolatedlookup", "uca", "debugwait")  # fmt: skip


def _larger(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(*(_function(name, inner) for name in _FUNCTIONS))


_EXPRESSIONS = st.recursive(_LEAVES, _larger, max_leaves=6)
_INNER = _LEAVES | _larger(_LEAVES)
_ROUNDED_NAMES = "exp log log1p log10 sqrt cbrt sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh floor"
_OF_TWO = ("pow", "hypot")


_OFFSETS = st.sampled_from([0, 3600, -45_000])


@given(_cases(_EXPRESSIONS), _OFFSETS, st.booleans())
def test_expressions(case: tuple[Data, Expression], offset: int, is_bound: bool) -> None:
    _compare(*case, offset=offset, bound=frozenset({"m", "n", "a_i32", "a_s", "w_s"}) if is_bound else frozenset())


@pytest.mark.parametrize("function", _FUNCTIONS)
def test_each_function(function: str) -> None:
    @settings(max_examples=40)
    @given(_cases(_function(function, _INNER)), _OFFSETS)
    def check(case: tuple[Data, Expression], offset: int) -> None:
        _compare(*case, offset=offset)

    check()


@pytest.mark.parametrize("function", [*_ROUNDED_NAMES.split(), *_OF_TWO])
def test_functions_that_are_rounded(function: str) -> None:
    count = 2 if function in _OF_TWO else 1

    @settings(max_examples=40)
    @given(_cases(st.lists(_INNER, min_size=count, max_size=count).map(lambda given: of(f"math.{function}", *given))))
    def check(case: tuple[Data, Expression]) -> None:
        _compare(*case, is_rounded=True)

    check()


_PLACES = st.sampled_from(["p_zcurve", "a_p_zcurve"]).map(attribute)
_UNITS = st.sampled_from(["km", "miles"])


@given(_cases(st.builds(lambda unit, *given: of(f"geo_distance.{unit}", *given), _UNITS, _PLACES, _INNER, _INNER)))
def test_distances(case: tuple[Data, Expression]) -> None:
    _compare(*case, is_rounded=True)


_FILTERS = st.one_of(
    st.builds(lambda *given: Filter("range", settings=given), *[st.sampled_from([-3.0, 0.0, 1.5, 7.0])] * 2,
              *[st.booleans()] * 2),
    st.sampled_from(["", "a.*", ".*[0-9]", "true|b", "-?[0-9]+"]).map(
        lambda pattern: Filter("regex", settings=(pattern,))),
    st.lists(st.sampled_from(["", "a", "12", "0", "true", "1.5", "-3"]), min_size=1).map(
        lambda wanted: Filter("in", settings=tuple(wanted))),
)  # fmt: skip


@given(_cases(_INNER), _FILTERS)
def test_filters(case: tuple[Data, Expression], predicate: Filter) -> None:
    data, expression = case
    evaluator = Evaluator(data.columns)
    expected = [_expected(evaluator, expression, Row(lid)) for lid in range(_ROWS)]
    predicate = replace(predicate, expression=expression)
    try:
        found = bind_filter(predicate, Scope(data.views))(rows_of(_ROWS))
    except InvalidQuery:
        assert any(
            each is Unfit or (isinstance(each, Result) and each.kind.value.endswith("bucket")) for each in expected
        )
        return
    for accepted, result in zip(found.tolist(), expected, strict=True):
        if isinstance(result, Result) and all(map(_is_plain, result.values)):
            assert accepted == any(_fits(predicate, result.kind, value) for value in result.values)


def _is_plain(value: Any) -> bool:
    """Whether a value has a text that regular expressions of Python and RE2 read alike."""
    return value == value and not (isinstance(value, bytes) and (b"\n" in value or max(value, default=0) > 127))


def _fits(predicate: Filter, kind: Kind, value: Any) -> bool:
    settings: Sequence[Any] = predicate.settings
    if predicate.kind == "range":
        low, high, has_low, has_high = settings
        number = to_double(kind, value)
        return bool((low <= number if has_low else low < number) and (number <= high if has_high else number < high))
    text = to_text(kind, value)
    if predicate.kind == "in":
        return text in [each.encode() for each in settings]
    return re.fullmatch(settings[0].encode(), text) is not None


def _compare(
    data: Data,
    expression: Expression,
    *,
    offset: int = 0,
    bound: frozenset[str] = frozenset(),
    is_rounded: bool = False,
) -> None:
    relevances = [0.5, 7.0, -3.25, 1e10]
    elements = {name: [0, 2, 1, 0] for name in bound}
    ids = [f"id:ns:type::doc {lid}" for lid in range(_ROWS)]
    scope = Scope(
        data.views, offset, 1_700_000_000, bound, document_ids=lambda lids: [ids[lid] for lid in lids.tolist()]
    )
    evaluator = Evaluator(
        data.columns,
        bound=bound,
        time_offset=offset,
        now=1_700_000_000,
        ids=[f"doc {lid}".encode() for lid in range(_ROWS)],
    )
    rows = rows_of(_ROWS, relevances, **elements)
    plain = [Row(lid, relevances[lid], {name: each[lid] for name, each in elements.items()}) for lid in range(_ROWS)]
    expected = [_expected(evaluator, expression, row) for row in plain]
    try:
        node = bind(expression, scope)
    except InvalidQuery:
        assert any(each in (Unfit, Unsure) for each in expected if isinstance(each, type))
        return
    assert not any(each is Unfit for each in expected), expected
    found = _found(node, rows)
    for row, (wanted, values) in enumerate(zip(expected, found, strict=True)):
        if isinstance(wanted, Result):
            assert (node.kind, node.is_multi) == (wanted.kind, wanted.is_multi), row
            assert len(values) == len(wanted.values), row
            for value, other in zip(values, wanted.values, strict=True):
                assert _is_same(value, other, is_rounded=is_rounded), (row, values, wanted)


def _expected(evaluator: Evaluator, expression: Expression, row: Row) -> Any:
    try:
        return evaluator.of(expression, row)
    except (Unfit, Unsure) as error:
        return type(error)


def _found(node: ExpressionNode, rows: Rows) -> list[list[Any]]:
    """The values of each row: of all rows at once, and the same in two blocks."""
    whole = _plain(node.values(rows))
    half = np.arange(_ROWS // 2)
    assert str(_plain(node.values(rows.at(half))) + _plain(node.values(rows.at(half + _ROWS // 2)))) == str(whole)
    return whole


def _plain(values: Values) -> list[list[Any]]:
    if values.table is None:
        found = list(values.data.tolist())
    elif hasattr(values.table, "bytes_of"):
        found = values.table.bytes_of(values.data)
    else:
        found = [_as_bytes(each) for each in values.table.values_of(values.data)]
    if values.offsets is None:
        return [[each] for each in found]
    return [found[start:end] for start, end in pairwise(values.offsets.tolist())]


def _as_bytes(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(_as_bytes(limit) for limit in value)
    return encoded(value) if isinstance(value, str) else value


def _is_same(value: Any, other: Any, *, is_rounded: bool) -> bool:
    if isinstance(value, tuple) and isinstance(other, tuple):
        return all(_is_same(left, right, is_rounded=is_rounded) for left, right in zip(value, other, strict=True))
    if isinstance(value, float) and isinstance(other, float):
        if is_rounded and math.isfinite(other):
            return value == pytest.approx(other, rel=1e-9, abs=1e-12)
        return (math.isnan(value) and math.isnan(other)) or value == other
    return type(value) is type(other) and bool(value == other)
