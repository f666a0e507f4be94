"""How many operations the writer takes at once."""

from __future__ import annotations

import time
from queue import SimpleQueue
from typing import Any

import pytest

from paperwasp import limits
from paperwasp.content.log.gathering import Control, Gatherer, Items
from tests.content.nodes import remove


def filled(count: int, size_bytes: int = 1) -> Items:
    queue: Items = SimpleQueue()
    for number in range(count):
        queue.put([(remove(number), print, size_bytes)])
    return queue


def pauses(monkeypatch: pytest.MonkeyPatch, queue: SimpleQueue[Any], arriving: list[int]) -> list[float]:
    """What is slept; in each pause so many operations arrive, then none."""
    slept: list[float] = []

    def pause(seconds: float) -> None:
        slept.append(seconds)
        for number in range(arriving.pop(0) if arriving else 0):
            queue.put([(remove(number), print, 1)])

    monkeypatch.setattr(time, "sleep", pause)
    return slept


def test_who_sends_one_after_the_other_never_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    queue = filled(0)
    slept, gatherer = pauses(monkeypatch, queue, []), Gatherer(queue)
    for number in range(10):
        queue.put([(remove(number), print, 1)])
        assert len(gatherer.take()[0]) == 1
    assert not slept


def test_where_operations_come_in_numbers_half_of_them_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    queue = filled(16)
    slept, gatherer = pauses(monkeypatch, queue, [3, 5]), Gatherer(queue)
    assert len(gatherer.take()[0]) == 16 and not slept
    queue.put([(remove(1), print, 1)])
    assert len(gatherer.take()[0]) == 9 and len(slept) == 2
    queue.put([(remove(1), print, 1)])
    assert len(gatherer.take()[0]) == 1 and len(slept) == 3  # nothing came: it goes on with what there is
    for _ in range(16):
        queue.put([(remove(1), print, 1)])
        gatherer.take()
    before = len(slept)
    queue.put([(remove(1), print, 1)])
    gatherer.take()
    assert len(slept) == before  # and expects less from then on


def test_half_of_what_is_under_way_stays_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 100 operations, those of one half come while the writer works on the other."""
    queue = filled(50)
    slept, gatherer = pauses(monkeypatch, queue, [20] * 100), Gatherer(queue)
    lengths = []
    for _ in range(10):
        lengths.append(len(gatherer.take()[0]))
        for _ in range(10):
            queue.put([(remove(1), print, 1)])
    assert lengths == [50, 30, *[50] * 8] and slept


def test_a_batch_has_limits_and_ends_at_a_control(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "LOG_BATCH_OPERATIONS", 5)
    monkeypatch.setattr(limits, "LOG_BATCH_BYTES", 100)
    control = Control(None)
    queue = filled(7)
    queue.put(control)
    assert [len(Gatherer(queue).take()[0]) for _ in range(1)] == [5]
    operations, found = Gatherer(queue).take()
    assert len(operations) == 2 and found is control
    assert len(Gatherer(filled(5, 60)).take()[0]) == 2
