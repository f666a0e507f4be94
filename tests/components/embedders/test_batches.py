"""Runs that threads share: each gets its own values, whatever waits beside them, and errors are those of one text."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paperwasp.components.embedders.base import Remembered
from paperwasp.components.embedders.batches import Lane
from tests.base.test_threads import refuse_threads


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


def test_a_lane_without_a_thread_refuses_and_goes_on_later(monkeypatch: pytest.MonkeyPatch) -> None:
    runs: list[list[int]] = []

    def run(items: Sequence[int]) -> list[int]:
        runs.append(list(items))
        return list(items)

    lane = Lane(run, lambda item: 1)
    with monkeypatch.context() as patch:
        refuse_threads(patch)
        for number in range(2):
            with pytest.raises(RuntimeError, match="can't start new thread"):
                lane.make([number])
        assert lane.waiting() == []
    assert lane.make([2], 60) == [2]
    assert runs == [[2]]


class Stepped:
    """Doubles numbers, a run for each call of `step`."""

    def __init__(self) -> None:
        self.runs: list[list[int]] = []
        self._begun, self._steps = threading.Semaphore(0), threading.Semaphore(0)

    def __call__(self, items: Sequence[int]) -> list[int]:
        self.runs.append(sorted(items))
        self._begun.release()
        assert self._steps.acquire(timeout=30)
        return [2 * item for item in items]

    def begun(self) -> None:
        """Returns when one more run is under way."""
        assert self._begun.acquire(timeout=30)

    def step(self) -> None:
        """Ends a run."""
        self._steps.release()


def test_a_caller_waits_no_longer_than_its_time() -> None:
    """What waited for its turn is in no run then."""
    model = Stepped()
    lane = Lane(model, lambda item: 1)
    with ThreadPoolExecutor() as pool:
        first = pool.submit(lane.make, [1])
        model.begun()
        other = pool.submit(lane.make, [2])
        while not lane.waiting():
            pass
        with pytest.raises(TimeoutError):
            lane.make([3], 0.0)
        model.step()
        model.begun()
        model.step()
        assert (first.result(30), other.result(30)) == ([2], [4])
    assert model.runs == [[1], [2]]


def test_a_caller_does_not_wait_for_the_run_that_it_is_in() -> None:
    has_left = threading.Event()

    def run(items: Sequence[int]) -> list[int]:
        assert has_left.wait(30)
        return [2 * item for item in items]

    lane = Lane(run, lambda item: 1)
    with pytest.raises(TimeoutError):
        lane.make([1], 0.01)
    has_left.set()
    assert lane.make([2]) == [4]


def test_a_caller_has_its_values_before_the_runs_of_others_end() -> None:
    """Short texts are run before long ones, in runs of their own."""
    model = Stepped()
    lane = Lane(model, lambda item: item, 100)
    with ThreadPoolExecutor() as pool:
        first = pool.submit(lane.make, [1])
        model.begun()
        long, short = pool.submit(lane.make, [90]), pool.submit(lane.make, [2])
        while len(lane.waiting()) < 2:
            pass
        model.step()
        model.begun()
        model.step()
        model.begun()
        assert (first.result(30), short.result(30), long.done()) == ([2], [4], False)
        model.step()
        assert long.result(30) == [180]
    assert model.runs == [[1], [2], [90]]


def test_what_comes_meanwhile_joins_those_of_its_length_and_waits_for_two_rounds_at_most() -> None:
    """Runs go from short to long: whoever keeps sending long texts does not keep short ones waiting."""
    model = Stepped()
    lane = Lane(model, lambda item: item, 100)
    with ThreadPoolExecutor(8) as pool:
        made = [pool.submit(lane.make, [10])]
        model.begun()

        def come(*lengths: int) -> None:
            """More callers come; then the run under way ends, and the next begins."""
            made.extend(pool.submit(lane.make, [length]) for length in lengths)
            while len(lane.waiting()) < len(lengths):
                pass
            model.step()
            model.begun()

        come(20, 40)
        come(39, 20)  # 39 is run with 40; the other 20 is no longer than what is run now
        come(80, 5)
        come(80)
        come()
        for _ in range(2):
            model.step()
        assert [each.result(30) for each in made] == [[2 * n] for n in (10, 20, 40, 39, 20, 80, 5, 80)]
    assert model.runs == [[10], [20], [39, 40], [80], [5, 20], [80]]


def test_a_lane_goes_on_after_what_no_run_should_raise() -> None:
    def run(items: Sequence[int]) -> list[int]:
        if 0 in items:
            raise SystemExit("over")
        return [2 * item for item in items]

    lane = Lane(run, lambda item: 1)
    with pytest.raises(RuntimeError, match="the run of the model was broken off: over"):
        lane.make([0])
    assert lane.make([1]) == [2]


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
