"""The interpreter of rank programs against its NumPy twin."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paperwasp.core import _core
from paperwasp.core.rank.rank_program import OPCODES, OPERATIONS
from tests.oracles.rank_program import evaluate

# NumPy's own versions of these may differ from the C library in the last places.
BY_LIBRARY = frozenset(
    (
        "acos",
        "asin",
        "atan",
        "atan2",
        "cos",
        "cosh",
        "elu",
        "erf",
        "exp",
        "log",
        "log10",
        "power",
        "sigmoid",
        "sin",
        "sinh",
    )
) | {"tan", "tanh"}
SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, 2.0, 7.0, 255.0, 2.0**31, -(2.0**31), 2.0**32, 2.0**63, 1e300, 5e-324]
NUMBERS = st.one_of(st.sampled_from([*SPECIAL, math.inf, -math.inf, math.nan]), st.floats(), st.floats(-100, 100))


def run(
    code: Sequence[int] | np.ndarray,
    constants: Sequence[float] | np.ndarray,
    columns: Sequence[Sequence[float] | np.ndarray],
    temporaries: int,
    result: int,
    n: int,
) -> np.ndarray:
    out = np.empty(n)
    arrays = [np.array(column, np.float64) for column in columns]
    _core.rank_program_evaluate(np.array(code, np.int32), np.array(constants), arrays, temporaries, result, out)
    return out


def test_the_kernel_has_the_same_operations_in_the_same_order() -> None:
    assert _core.rank_program_operations() == list(OPERATIONS)


Rows = list[tuple[float, float, float]]


@cache
def drawn_rows() -> list[Rows]:
    """Random operands, drawn once for all operations."""
    drawn: list[Rows] = []

    @given(rows=st.lists(st.tuples(NUMBERS, NUMBERS, NUMBERS), min_size=1, max_size=20))
    def draw(rows: Rows) -> None:
        drawn.append(rows)

    draw()
    return drawn


@pytest.mark.parametrize("name", OPERATIONS)
def test_each_operation_is_that_of_the_twin(name: str) -> None:
    assert len(drawn_rows()) >= 100
    for rows in drawn_rows():
        columns = [np.array(column) for column in zip(*rows, strict=True)]
        code = np.array([OPCODES[name], 3, 0, 1, 2], np.int32)
        actual = run(code, np.empty(0), columns, 1, 3, len(rows))
        expected = evaluate(code, np.empty(0), columns, 1, 3, len(rows))
        if name in BY_LIBRARY:
            np.testing.assert_allclose(actual, expected, rtol=1e-12, atol=1e-15, err_msg=str(rows))
        else:
            np.testing.assert_array_equal(actual, expected, err_msg=str(rows))


def test_the_logarithm_is_within_an_ulp() -> None:
    rng = np.random.default_rng(7)
    spread = np.exp(rng.uniform(-745, 709, 20_000))
    near = np.concatenate([1 + rng.standard_normal(10_000) * scale for scale in (1e-12, 1e-6, 1e-3, 0.2)])
    edges = np.array([5e-324, 1e-310, 2.0**-1022, 0.5**0.5, 1.0, 2.0**0.5, 2.0, 1.7e308])
    values = np.concatenate([spread[spread > 0], near[near > 0], edges])
    wanted = np.log(values.astype(np.longdouble))
    actual = run([OPCODES["log"], 1, 0, 0, 0], [], [values], 1, 1, len(values))
    step = np.spacing(np.abs(wanted.astype(np.float64)))
    assert float(np.abs((actual - wanted) / step).max()) < 1


def test_logarithms_that_are_no_numbers() -> None:
    values = np.array([0.0, -0.0, -1.0, -math.inf, math.inf, math.nan, 1.0])
    wanted = [-math.inf, -math.inf, math.nan, math.nan, math.inf, math.nan, 0.0]
    np.testing.assert_array_equal(run([OPCODES["log"], 1, 0, 0, 0], [], [values], 1, 1, 7), wanted)


EXACT = [name for name in OPERATIONS if name not in BY_LIBRARY]


SomeProgram = tuple[list[int], list[float], int, int, int]
"""Code, constants, the number of columns, that of temporaries, the place of the result."""


@st.composite
def programs(draw: st.DrawFn) -> SomeProgram:
    """Code over some columns, constants and temporaries that uses only what was written before."""
    columns, constants = draw(st.integers(0, 3)), draw(st.lists(NUMBERS, min_size=1, max_size=3))
    temporaries = draw(st.integers(1, 4))
    first = columns + len(constants)
    code: list[int] = []
    written = list(range(first))
    for _ in range(draw(st.integers(1, 12))):
        name, target = draw(st.sampled_from(EXACT)), first + draw(st.integers(0, temporaries - 1))
        code += [OPCODES[name], target, *(draw(st.sampled_from(written)) for _ in range(3))]
        written.append(target)
    return code, constants, columns, temporaries, draw(st.sampled_from(written))


@given(program=programs(), n=st.sampled_from([0, 1, 2, 255, 256, 257, 1500]), data=st.data())
def test_programs_give_what_the_twin_gives(program: SomeProgram, n: int, data: st.DataObject) -> None:
    code, constants, count, temporaries, result = program
    values = [data.draw(st.lists(NUMBERS, min_size=1, max_size=7)) for _ in range(count)]
    columns = [np.resize(np.array(value), 1 if data.draw(st.booleans()) else n) for value in values]
    actual = run(code, constants, columns, temporaries, result, n)
    expected = evaluate(np.array(code, np.int32), np.array(constants), columns, temporaries, result, n)
    np.testing.assert_array_equal(actual, expected)


@pytest.mark.parametrize(
    ("code", "columns", "temporaries", "result"),
    [
        ([0, 1, 0, 0], [[1.0]], 1, 0),
        ([len(OPERATIONS), 1, 0, 0, 0], [[1.0]], 1, 1),
        ([-1, 1, 0, 0, 0], [[1.0]], 1, 1),
        ([0, 0, 0, 0, 0], [[1.0]], 1, 1),
        ([0, 2, 0, 0, 0], [[1.0]], 1, 1),
        ([0, 1, 2, 0, 0], [[1.0]], 1, 1),
        ([0, 1, -1, 0, 0], [[1.0]], 1, 1),
        ([], [[1.0]], 0, 1),
        ([], [[1.0, 2.0]], 0, 0),
        ([], [[1.0]], 1 << 60, 0),
    ],
)
def test_wrong_programs_are_refused(code: list[int], columns: list[list[float]], temporaries: int, result: int) -> None:
    with pytest.raises(ValueError):
        run(code, np.empty(0), columns, temporaries, result, 3)
