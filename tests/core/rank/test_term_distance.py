"""Distances between terms: the kernel against its twin."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paperwasp.core import _core
from paperwasp.search.features.term_distance import UNDEFINED
from tests.oracles.native_rank import term_distance

POSITIONS = st.lists(st.sets(st.integers(0, 30), max_size=6).map(sorted), min_size=1, max_size=5)


Lists = tuple[np.ndarray, np.ndarray]
"""Offsets, and what is between them."""


def lists(hits: list[list[int]]) -> Lists:
    offsets = np.cumsum([0, *map(len, hits)]).astype(np.uint32)
    return offsets, np.array([at for hit in hits for at in hit], np.uint32)


def run(first: Lists, length: int, second: Lists) -> tuple[list[int], list[int]]:
    distances, places = np.empty((2, len(first[0]) - 1), np.uint32)
    _core.term_distance(*first, length, *second, distances, places)
    return distances.tolist(), places.tolist()


@given(pairs=st.lists(st.tuples(POSITIONS, POSITIONS), min_size=1, max_size=3), length=st.integers(1, 3))
def test_the_kernel_is_its_twin(pairs: list[tuple[list[list[int]], list[list[int]]]], length: int) -> None:
    for first, second in pairs:
        count = min(len(first), len(second))
        a, b = lists(first[:count]), lists(second[:count])
        distances, places = term_distance(*a, length, *b)
        assert run(a, length, b) == (distances.tolist(), places.tolist())


def test_the_example_of_the_reference() -> None:
    # a at 0 and 3, b at 1, in "a b x a": forward 1 at 0, reverse 2 at 1.
    a, b = lists([[0, 3]]), lists([[1]])
    assert run(a, 1, b) == ([1], [0])
    assert run(b, 1, a) == ([2], [1])
    assert run(a, 1, lists([[]])) == ([UNDEFINED], [UNDEFINED])


def test_wrong_lists_are_refused() -> None:
    offsets, positions = lists([[0, 3]])
    for wrong in (np.array([0, 3], np.uint32), np.array([1, 0], np.uint32), np.array([0], np.uint32)):
        with pytest.raises(ValueError):
            run((offsets, positions), 1, (wrong, positions))
