"""The kernels over positions beside their plain twin, on random rows."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paperwasp.core import _core
from paperwasp.storage.index.tokens import ELEMENT_GAP
from tests.oracles.positions import Near, follow, merge_positions

Rows = list[list[list[int]]]
"""By row, by list: positions."""


@st.composite
def rows(draw: st.DrawFn, places: int = 25) -> Rows:
    lists = draw(st.integers(1, 4))
    row = st.lists(st.integers(0, places), max_size=8, unique=True).map(sorted)
    return draw(st.lists(st.lists(row, min_size=lists, max_size=lists), max_size=5))


def as_lists(found: Rows, count: int) -> tuple[list[np.ndarray], list[np.ndarray]]:
    offsets, values = [], []
    for i in range(count):
        offsets.append(np.concatenate([[0], np.cumsum([len(row[i]) for row in found])]).astype(np.uint32))
        values.append(np.array([p for row in found for p in row[i]], np.uint32))
    return offsets, values


def as_rows(offsets: np.ndarray, values: np.ndarray) -> list[list[int]]:
    return [values[a:b].tolist() for a, b in pairwise(offsets.tolist())]


@given(found=rows())
def test_merging_and_following(found: Rows) -> None:
    lists = as_lists(found, len(found[0]) if found else 1)
    assert as_rows(*_core.merge_positions(*lists)) == [merge_positions(row) for row in found]
    assert as_rows(*_core.follow(*lists)) == [follow(row) for row in found]


@given(
    found=rows(),
    lengths=st.lists(st.integers(0, 9), min_size=1, max_size=6),
    wanted=st.integers(1, 4),
    distance=st.integers(0, 12),
    exclusion=st.integers(0, 6),
    ordered=st.booleans(),
    gap=st.integers(-1, 8),
    in_elements=st.booleans(),
)
def test_near(
    found: Rows,
    lengths: list[int],
    wanted: int,
    distance: int,
    exclusion: int,
    ordered: bool,
    gap: int,
    in_elements: bool,
) -> None:
    count = len(found[0]) if found else 1
    wanted = min(wanted, count)
    ends: tuple[int, ...] = ()
    places: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
    if in_elements:
        found = [[_into_elements(row, lengths) for row in lists] for lists in found]
        ends = _ends(lengths)
    offsets, positions = as_lists(found, count)
    near = Near(distance, exclusion, ordered, gap, ends)
    if in_elements:
        places = [_places(near, values) for values in positions]
    kept, *starts = _core.near(offsets, positions, places, wanted, ordered, distance, exclusion, gap)
    windows = [near.windows(row[:wanted], row[wanted:]) for row in found]
    assert as_rows(*starts) == [sorted({first for first, _ in each}) for each in windows]
    for i in range(wanted):
        expected = [
            [any(first <= p <= last for first, last in each) for p in row[i]]
            for row, each in zip(found, windows, strict=True)
        ]
        assert [bool(mark) for mark in kept[i]] == [mark for row in expected for mark in row]


def test_terms_at_one_place_begin_one_window() -> None:
    """The window from 0 ends at 0, where both terms are: what follows is not in it."""
    offsets, positions = as_lists([[[0, 1], [0]]], 2)
    kept, _, _ = _core.near(offsets, positions, [], 2, False, 1, 0, -1)
    assert [marks.tolist() for marks in kept] == [[1, 0], [1]]


def _ends(lengths: list[int]) -> tuple[int, ...]:
    ends, at = [], 0
    for length in lengths:
        ends.append(at + length)
        at += length + ELEMENT_GAP
    return tuple(ends)


def _into_elements(row: list[int], lengths: list[int]) -> list[int]:
    """Of the tokens numbered in `row`, where they stand in elements of these lengths."""
    starts = [end - length for end, length in zip(_ends(lengths), lengths, strict=True)]
    tokens = [start + i for start, length in zip(starts, lengths, strict=True) for i in range(length)]
    return [tokens[number] for number in row if number < len(tokens)]


def _places(near: Near, values: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    numbers = np.array([near.place(p)[0] for p in values.tolist()], np.uint32)
    starts = np.array([p - near.place(p)[1] for p in values.tolist()], np.uint32)
    ends = np.array([near.ends[n] for n in numbers.tolist()], np.uint32)
    return numbers, starts, ends


def test_the_examples_of_the_yql_reference() -> None:
    """https://docs.vespa.ai/en/reference/querying/yql.html#near: only what stands in a window is kept."""
    for text, expected in (("aaaaaabbbbbb", [[5], [6]]), ("abcabcabcabc", [[0, 3, 6, 9], [1, 4, 7, 10]])):
        row = [[i for i, letter in enumerate(text) if letter == word] for word in "ab"]
        offsets, positions = as_lists([row], 2)
        kept, _, _ = _core.near(offsets, positions, [], 2, False, 1, 1, -1)
        assert [values[marks == 1].tolist() for values, marks in zip(positions, kept, strict=True)] == expected


def test_what_is_no_list_is_refused() -> None:
    two, three = np.array([0, 1], np.uint32), np.array([0, 1, 2], np.uint32)
    one, none = np.array([7], np.uint32), np.array([], np.uint32)
    for offsets, positions in (([], []), ([two], []), ([two, three], [one, one]), ([two], [none])):
        with pytest.raises(ValueError, match=r"lists|offsets"):
            _core.follow(offsets, positions)
        with pytest.raises(ValueError, match=r"lists|offsets"):
            _core.merge_positions(offsets, positions)
        with pytest.raises(ValueError, match=r"lists|offsets"):
            _core.near(offsets, positions, [], 1, False, 1, 1, -1)
    with pytest.raises(ValueError, match="element"):
        _core.near([two], [one], [(none, none, none)], 1, False, 1, 1, -1)
    with pytest.raises(ValueError, match="terms"):
        _core.near([two], [one], [], 2, False, 1, 1, -1)
