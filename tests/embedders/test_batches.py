"""Runs that threads share: each gets its own values, whatever waits beside them, and errors are those of one text."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paperwasp.embedders.batches import Lane, Remembered


class Model:
    """Doubles numbers; what is negative fails its run. Notes the runs."""

    def __init__(self) -> None:
        self.runs: list[list[int]] = []

    def __call__(self, items: Sequence[int]) -> list[int]:
        self.runs.append(list(items))
        if any(item < 0 for item in items):
            raise ValueError(f"negative: {[item for item in items if item < 0]}")
        return [2 * item for item in items]


@given(st.lists(st.integers(0, 200), max_size=60))
def test_one_value_of_each_item(items: list[int]) -> None:
    model = Model()
    assert Lane(model, lambda item: item + 1, 100).make(items) == [2 * item for item in items]
    assert sorted(item for run in model.runs for item in run) == sorted(items)
    for run in model.runs:
        padded = len(run) * max(item + 1 for item in run)
        assert len(run) == 1 or padded <= 100
        assert padded - sum(item + 1 for item in run) <= 16 + 0.05 * padded


def test_an_error_is_of_the_item_alone() -> None:
    model = Model()
    lane = Lane(model, lambda item: 1)
    with pytest.raises(ValueError, match=r"negative: \[-3\]"):
        lane.make([1, -3, 2])
    assert model.runs == [[1, -3, 2], [1], [-3], [2]]
    assert lane.make([4]) == [8]


def test_a_run_may_be_tried_once_only() -> None:
    model = Model()
    with pytest.raises(ValueError, match="negative"):
        Lane(model, lambda item: 1, tries_alone=False).make([1, -3, 2])
    assert model.runs == [[1, -3, 2]]


def test_threads_share_runs() -> None:
    """What comes while a run is under way is the next one, whoever brought it."""
    begun, go_on = threading.Event(), threading.Event()
    runs: list[list[int]] = []

    def run(items: Sequence[int]) -> list[int]:
        runs.append(sorted(items))
        begun.set()
        assert go_on.wait(30)
        return [2 * item for item in items]

    lane = Lane(run, lambda item: 1)
    found: dict[int, list[int]] = {}

    def ask(number: int) -> None:
        found[number] = lane.make([number])

    first = threading.Thread(target=ask, args=(0,))
    first.start()
    assert begun.wait(30)
    others = [threading.Thread(target=ask, args=(number,)) for number in range(1, 8)]
    for thread in others:
        thread.start()
    while len(lane.waiting()) < len(others):
        pass
    go_on.set()
    for thread in (first, *others):
        thread.join()
    assert found == {number: [2 * number] for number in range(8)}
    assert runs == [[0], list(range(1, 8))]


def test_what_is_remembered_is_bounded() -> None:
    kept = Remembered[bytes](len, 2000)
    for number in range(50):
        kept.put(number, bytes(100), 25)
    assert kept.size_bytes <= 2000
    assert kept.get(0) is None and kept.get(49) == bytes(100)
    before = kept.size_bytes
    kept.put(49, bytes(50), 25)
    assert kept.size_bytes == before - 50
    kept.put("large", bytes(3000), 1)
    assert kept.get("large") is None
