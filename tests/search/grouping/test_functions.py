"""Functions of numbers, texts and times against values worked by hand from the definitions."""

from __future__ import annotations

import hashlib
import math
import struct
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

import pytest

from paperwasp import limits
from paperwasp.document.types import BOOL, BYTE, DOUBLE, INT, LONG, RAW, STRING, array_of
from paperwasp.errors import InvalidQuery
from paperwasp.limits import grouping as grouping_limits
from paperwasp.search.grouping.expression_node import Computed
from paperwasp.search.grouping.expressions import Scope, bind
from paperwasp.search.grouping.request import Expression
from paperwasp.search.grouping.values import Kind, Values
from tests.search.grouping.documents import attribute, column, evaluated, of, rows_of, scope_of

_LEAST = -(2**63)


def _folded(text: bytes, size: int) -> bytes:
    """By its definition, a byte at a time."""
    found = bytearray(size)
    whole = len(text) // size * size
    for place, byte in enumerate(text[:whole]):
        found[place % size] ^= byte
    for place in range(whole, len(text)):
        found[place % size] = text[place]
    return bytes(found)


@pytest.fixture(name="scope")
def _scope() -> Scope:
    """Two documents."""
    return scope_of(
        {
            "i": column(INT, [7, -7]),
            "b": column(BYTE, [-1, 5]),
            "l": column(LONG, [2**63 - 1, _LEAST]),
            "d": column(DOUBLE, [2.5, -0.5]),
            "t": column(BOOL, [True, False]),
            "s": column(STRING, ["0x10", " -12 apples"]),
            "r": column(RAW, [b"\0\0\0\0\0\0\1\0", b"\x40"]),
            "ai": column(array_of(INT), [[1, 2, 3], []]),
            "ab": column(array_of(INT), [[10, 20], [5]]),
            "as": column(array_of(STRING), [["x", "yy"], []]),
        }
    )


N, D, L, S, R, T = (attribute(name) for name in ("i", "d", "l", "s", "r", "t"))
AI, AB = attribute("ai"), attribute("ab")


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        (of("add", N, 1), [8, -6]),
        (of("add", N, 0.5), [7.5, -6.5]),
        (of("add", L, 1), [_LEAST, _LEAST + 1]),
        (of("sub", N, 2, 1), [4, -10]),
        (of("mul", L, 2), [-2, 0]),
        (of("div", N, 2), [3, -3]),
        (of("div", N, 0), [0, 0]),
        (of("div", D, 0), [0.0, 0.0]),
        (of("div", L, -1), [-(2**63 - 1), _LEAST]),
        (of("mod", N, 4), [3, -3]),
        (of("mod", N, -4), [3, -3]),
        (of("mod", N, 0), [0, 0]),
        (of("mod", D, 2), [1.0, -1.0]),
        (of("min", N, 3), [3, -7]),
        (of("max", N, D), [7.0, -0.5]),
        (of("neg", N), [-7, 7]),
        (of("neg", L), [-(2**63 - 1), _LEAST]),
        (of("neg", T), [True, False]),
        (of("add", N, S), [23, -19]),
        (of("add", S, "\1"), ["1x10", "!-12 apples"]),
        (of("max", S, "1"), ["1", "1"]),
        (of("add", AI, 1), [[2, 3, 4], []]),
        (of("add", AI, AB), [[11, 22, 13], [5]]),
        (of("mul", AB, 0.5), [[5.0, 10.0], [2.5]]),
        (of("add", AI), [6, 0]),
        (of("mul", AB), [200, 5]),
        (of("max", AB), [20, 5]),
        (of("and", N, 3), [3, 1]),
        (of("or", N, 8), [15, -7]),
        (of("xor", N, D), [4, 6]),
        (of("or", AB, 1), [11, 5]),
        (of("xor", AB), [30, 5]),
        (of("math.floor", D), [2.0, -1.0]),
        (of("math.pow", N, 2), [49.0, 49.0]),
        (of("math.hypot", 3, 4), [5.0, 5.0]),
        (of("math.sqrt", of("mul", N, N)), [7.0, 7.0]),
        (of("tolong", S), [16, -12]),
        (of("tolong", D), [3, -1]),
        (of("tolong", R), [256, 0x40 << 56]),
        (of("todouble", S), [16.0, -12.0]),
        (of("todouble", R), [struct.unpack(">d", b"\0\0\0\0\0\0\1\0")[0], 2.0]),
        (of("tostring", D), ["2.5", "-0.5"]),
        (of("tostring", T), ["true", "false"]),
        (of("tostring", AI), ["1", ""]),
        (of("tolong", AI), [1, _LEAST]),
        (of("xor", AI, AB), [11, 5 ^ _LEAST]),
        (of("tostring", attribute("as")), ["x", ""]),
        (of("toraw", N), [b"7", b"-7"]),
        (of("strlen", of("strcat", "\u00e9", "a")), [3, 3]),
        (of("strcat", N, "-", S), ["7-0x10", "18446744073709551609- -12 apples"]),
        (of("strcat", D, T), ["2.51", "-0.50"]),
        (of("strcat", attribute("as"), "!"), ["xyy!", "!"]),
        (of("cat", attribute("b"), N), [b"\xff\0\0\0\7", b"\5\xff\xff\xff\xf9"]),
        (of("cat", AB, "z"), [b"\0\0\0\x0a\0\0\0\x14z", b"\0\0\0\5z"]),
        (of("cat", D, T), [struct.pack(">d?", 2.5, True), struct.pack(">d?", -0.5, False)]),
        (of("md5", S, 64), [hashlib.md5(text).digest()[:8] for text in (b"0x10", b" -12 apples")]),
        (of("xorbit", S, 16), [_folded(text, 2) for text in (b"0x10", b" -12 apples")]),
        (of("normalizesubject", "Re: Fwd: x"), ["Fwd: x"] * 2),
        (of("normalizesubject", "FwD: x"), ["x"] * 2),
        (of("normalizesubject", "re: x"), ["re: x"] * 2),
    ],
)
def test_functions(scope: Scope, expression: Expression, expected: list[Any]) -> None:
    found = evaluated(expression, scope, rows_of(2))
    assert found == expected
    assert [type(each) for each in found] == [type(each) for each in expected]


_TIMES = (0, 951_782_400, -1, 1_700_000_000, -62_135_596_800, 253_402_300_799, 4_107_542_399)
_PARTS: dict[str, Callable[[datetime], Any]] = {
    "year": lambda time: time.year,
    "monthofyear": lambda time: time.month,
    "dayofmonth": lambda time: time.day,
    "dayofyear": lambda time: time.timetuple().tm_yday - 1,
    "dayofweek": lambda time: time.isoweekday() % 7,
    "hourofday": lambda time: time.hour,
    "minuteofhour": lambda time: time.minute,
    "secondofminute": lambda time: time.second,
    "date": lambda time: f"{time.year}-{time.month}-{time.day}",
}


@pytest.mark.parametrize("part", _PARTS)
@pytest.mark.parametrize("offset", [0, 3600])
def test_parts_of_times(part: str, offset: int) -> None:
    times = [time - offset for time in _TIMES]
    scope = scope_of({"t": column(LONG, times)}, time_offset_seconds=offset)
    expected = [_PARTS[part](_datetime(time)) for time in _TIMES]
    assert evaluated(of(f"time.{part}", attribute("t")), scope, rows_of(len(times))) == expected


def _datetime(seconds: int) -> datetime:
    days, rest = divmod(seconds, 86_400)
    midnight = datetime.fromordinal(719_163 + days).replace(tzinfo=UTC)
    return midnight.replace(hour=rest // 3_600, minute=rest % 3_600 // 60, second=rest % 60)


def test_times_of_arrays_and_of_what_is_unset() -> None:
    scope = scope_of({"t": column(array_of(LONG), [[0, 86_400], []]), "u": column(LONG, [None])})
    assert evaluated(of("time.dayofmonth", attribute("t")), scope, rows_of(2)) == [[1, 2], []]
    assert evaluated(of("time.date", attribute("t")), scope, rows_of(2)) == ["1970-1-1", "--"]
    # 2^63 seconds are 292277024626 years and 290 days; of the year before 1970 the lowest 32 bits are shown.
    assert evaluated(of("time.year", attribute("u")), scope, rows_of(1)) == [(1970 - 292277024627) & 0xFFFFFFFF]


def test_math_beyond_its_domain() -> None:
    found = evaluated(of("math.log", -1), scope_of({}), rows_of(1))
    assert math.isnan(found[0])


@pytest.mark.parametrize(
    "expression",
    [
        of("mul", S, S),
        of("add", attribute("as"), "x"),
        of("add", N),
        of("and", N),
        of("math.pow", N),
        of("tolong", N, N),
        of("md5", N, 0),
        of("add"),
    ],
)
def test_arguments_that_do_not_fit_are_errors(scope: Scope, expression: Expression) -> None:
    with pytest.raises(InvalidQuery):
        bind(expression, scope)


def test_values_of_many_elements_are_joined_in_their_order() -> None:
    """Rows of one length are joined together, and equal ones once."""
    rows = [["a"] * 3, ["b", "", "a"], [], ["a"] * 3, ["ab"], [str(number) for number in range(20_000)]]
    scope = scope_of({"a": column(array_of(STRING), rows)})
    assert evaluated(of("strcat", attribute("a"), "!"), scope, rows_of(6)) == ["".join(row) + "!" for row in rows]


@pytest.mark.parametrize(
    ("expression", "is_too_much"),
    [
        (of("strcat", S, S), False),
        (of("strcat", *[S] * 70), True),
        (of("cat", of("strcat", *[S] * 30), of("strcat", S, *["xy"] * 15)), True),
        (of("md5", of("strcat", *[S] * 70), 8), True),
        (of("strcat", attribute("as"), "y" * 300), False),
        (of("strcat", attribute("as"), "y" * 1100), True),
        (of("tostring", of("toraw", S)), False),
    ],
)
def test_texts_that_functions_make_have_a_limit(
    scope: Scope, expression: Expression, is_too_much: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The two texts have 4 and 11 bytes."""
    monkeypatch.setattr(limits.grouping, "TEXT_BYTES", 1000)
    node = bind(expression, scope)
    if is_too_much:
        with pytest.raises(InvalidQuery, match="more than 1000 bytes of text"):
            node.values(rows_of(2))
    else:
        node.values(rows_of(2))


@pytest.mark.parametrize(
    "expression",
    [
        of("add", N, 1, D, N, N),
        of("add", AI, AB, N, 1, 2),
        of("mul", AI, 1, 2, AB, N),
        of("max", S, R, S, S, "q"),
        of("and", N, 3, L, N, 7),
        of("strcat", S, N, attribute("as"), S, D),
        of("cat", S, N, attribute("as"), R, D),
    ],
)
def test_many_arguments_are_computed_for_some_rows_at_a_time(
    expression: Expression, scope: Scope, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = evaluated(expression, scope, rows_of(2))
    monkeypatch.setattr(grouping_limits, "ARGUMENT_VALUES", 1)
    assert evaluated(expression, scope, rows_of(2)) == whole


def test_the_values_of_all_arguments_at_a_time_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grouping_limits, "ARGUMENT_VALUES", 1000)
    sizes: list[tuple[int, int]] = []

    def compute(values: Sequence[Values]) -> Values:
        sizes.append((len(values), len(values[0].data)))
        return values[0]

    scope = scope_of({"i": column(INT, list(range(100)))})
    node = Computed(Kind.LONG, [bind(N, scope)] * 64, compute)
    assert node.values(rows_of(100)).data.tolist() == list(range(100))
    assert sizes == [(64, 15)] * 6 + [(64, 10)]
