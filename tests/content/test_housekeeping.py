"""Chores: done when they are due, told of when they fail; tombstones that are too old are forgotten."""

from __future__ import annotations

import logging
import threading
from pathlib import Path

import pytest

from paperwasp import limits
from paperwasp.base.env import Environment
from paperwasp.content.housekeeping import Chore, Housekeeping, prune, refresh_posting_lists
from paperwasp.storage.attributes import posting
from tests.content.nodes import TestNode, put, remove, started


class Clock:
    """A clock that stands still until it is moved."""

    def __init__(self) -> None:
        self.ns = 10**18
        self.environment = Environment(time_ns=lambda: self.ns, monotonic_ns=lambda: self.ns)

    def forward(self, seconds: float) -> None:
        self.ns += round(seconds * 1e9)


def counted(done: list[str], name: str, seconds: float) -> Chore:
    def chore() -> float:
        done.append(name)
        return seconds

    return chore


def test_each_chore_is_done_when_it_is_due() -> None:
    clock, done = Clock(), list[str]()
    house = Housekeeping([counted(done, "a", 1), counted(done, "b", 2.5)], clock.environment)
    assert house.run_due() == 1
    for _ in range(5):
        clock.forward(1)
        house.run_due()
    assert "".join(done) == "abaaabaa"
    assert house.run_due() == pytest.approx(0.5)


def test_a_chore_that_fails_is_told_and_tried_again(caplog: pytest.LogCaptureFixture) -> None:
    clock, done = Clock(), list[str]()

    def fails() -> float:
        done.append("x")
        raise OSError("no")

    house = Housekeeping([fails, counted(done, "a", 1000)], clock.environment)
    assert house.run_due() == limits.CHORE_RETRY_SECONDS
    clock.forward(limits.CHORE_RETRY_SECONDS)
    house.run_due()
    assert "".join(done) == "xax"
    assert [record.levelno for record in caplog.records] == [logging.ERROR] * 2


def test_stop_waits_for_the_chore_under_way() -> None:
    begun, done = threading.Event(), list[str]()

    def chore() -> float:
        begun.set()
        done.append("a")
        return 0

    house = Housekeeping([chore])
    house.start()
    begun.wait()
    house.stop()
    count = len(done)
    assert count >= 1
    house.stop()
    assert len(done) == count


def test_without_chores_or_a_start_there_is_nothing_to_stop() -> None:
    house = Housekeeping(())
    assert house.run_due() > 0
    house.stop()


def tombstones(node: TestNode) -> int:
    return sum(document.is_removed for _, document in node.node.reader.view().store.scan(removes=True))


def test_old_tombstones_are_pruned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "PRUNE_TOMBSTONES", 3)
    clock = Clock()
    clock.ns = 2**60
    with started(tmp_path) as node:
        for name in range(5):
            node.apply(put(name))
            node.apply(remove(name))
        node.apply(put("alive"))
        removed_us = max(document.timestamp_us for _, document in node.node.reader.view().store.scan(removes=True))
        clock.ns = (removed_us + limits.TOMBSTONE_SECONDS * 10**6 - 10**6) * 1000
        clock.forward(-3600)
        assert prune(node.node, clock.environment) == limits.PRUNE_SECONDS
        assert tombstones(node) == 5
        clock.forward(2 * 3600)
        assert prune(node.node, clock.environment) == limits.PRUNE_PAUSE_SECONDS
        assert tombstones(node) == 2
        assert prune(node.node, clock.environment) == limits.PRUNE_SECONDS
        assert tombstones(node) == 0
        assert node.node.reader.view().live_count == 1


def test_posting_lists_are_made_before_a_query_wants_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(posting, "_SMALLEST_COLUMN", 4)
    with started(tmp_path) as node:
        assert refresh_posting_lists(node.node.reader) == limits.PREPARE_SECONDS, "there are no rows"
        for year in range(8):
            node.apply(put(year, year=year))
        assert refresh_posting_lists(node.node.reader) == 0, "and perhaps there is more to do"
        assert refresh_posting_lists(node.node.reader) == limits.PREPARE_SECONDS
        taken: list[object] = []
        monkeypatch.setattr(posting.Posting, "_take", lambda *given: taken.append(given))
        found = node.node.reader.view().columns["music", "year"].equal_bitmap(3)
        assert (found.tolist(), taken) == ([1 << 3], [])
