"""The kernel that converts the numbers of a decoded JSON array, beside its plain twin."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paperwasp.core import _core
from tests.oracles import list_numbers

_NUMBERS: st.SearchStrategy[Any] = st.integers(-(2**70), 2**70) | st.floats() | st.sampled_from([-1, -1.0, 10**400])
_VALUES: st.SearchStrategy[Any] = st.lists(_NUMBERS, max_size=8) | st.lists(
    _NUMBERS | st.none() | st.booleans() | st.text(max_size=2) | st.just(np.float64(1.5)), max_size=8
)


@given(_VALUES, st.integers(-1, 1))
def test_numbers_are_converted_as_the_plain_twin_does(values: list[Any], more: int) -> None:
    count = max(0, len(values) + more)
    found, expected = _core.list_numbers(values, count), list_numbers.list_numbers(values, count)
    if expected is None or found is None:
        assert found is expected is None
    else:
        assert found.dtype == np.float64
        assert found.tobytes() == expected.tobytes()


def test_each_item_becomes_the_nearest_double() -> None:
    found = _core.list_numbers([1, -0.0, 2**53 + 1, float("inf"), -1], 5)
    assert found is not None
    assert found.tolist() == [1.0, 0.0, 9007199254740992.0, float("inf"), -1.0]
    assert np.signbit(found[1])


@pytest.mark.parametrize(
    "values", [[1.5], [1.5, True], [1.5, "2"], [1.5, None], [1.5, [2.0]], [1.5, 10**309], [1, 2, 3]]
)
def test_what_is_not_so_many_numbers_is_left_to_others(values: list[Any]) -> None:
    assert _core.list_numbers(values, 2) is None
