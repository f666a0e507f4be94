"""The instruments of a warm query fail where they have measured nothing, and tell what is held otherwise."""

from __future__ import annotations

import contextlib
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

from bench import feed, http_kinds, warm_query
from bench.calls import Calls, InProcess, get, in_process, opened
from bench.layers import NothingMeasured
from bench.report import Report
from bench.service import APPLICATION, Running
from paperwasp.core import _core

SEED = 7
DOCUMENTS = 40
WORDS = ("red", "green", "blue", "white", "black")


def path(text: str) -> str:
    return http_kinds.patient_path(http_kinds.PLAIN, text)


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InProcess]:
    """Documents that were fed, opened again as `warm_query` opens what a service has left."""
    choice, directory = random.Random(SEED), tmp_path_factory.mktemp("content")
    documents: list[dict[str, Any]] = [
        json.loads(feed.document(number, "a title", " ".join(choice.choices(WORDS, k=300))))
        for number in range(DOCUMENTS)
    ]
    with in_process(directory, APPLICATION, documents):
        pass
    with opened(directory, APPLICATION, counts_calls=False) as service:
        yield service


def test_the_lock_is_held_for_a_part_of_the_time(service: InProcess) -> None:
    cpu_us, held_us = warm_query.lock_us(service, [path(word) for word in WORDS], 2)
    assert 0 < held_us <= cpu_us


def test_queries_that_find_nothing_hold_no_lock_worth_telling(service: InProcess) -> None:
    with pytest.raises(NothingMeasured, match="0 of 1 queries find something"):
        warm_query.lock_us(service, [path("purple")], 1)
    with pytest.raises(NothingMeasured, match="0 of 0 queries"):
        warm_query.lock_us(service, [], 1)


def test_a_core_that_does_not_count_is_found_out(monkeypatch: pytest.MonkeyPatch, service: InProcess) -> None:
    monkeypatch.setattr(_core, "count_unlocked", lambda is_counting: None)
    with pytest.raises(NothingMeasured, match="is not counted"):
        warm_query.lock_us(service, [path("red")], 1)


@pytest.mark.parametrize(("cpu_us", "unlocked_us"), [(0, 0), (10, 11), (10, 10), (10, -1)])
def test_times_that_cannot_be_are_no_measurement(cpu_us: float, unlocked_us: float) -> None:
    with pytest.raises(NothingMeasured, match="without the lock are counted"):
        warm_query.held_us(cpu_us, unlocked_us)


class Server:
    """Has used so much more processor time, by thread, each time it is asked."""

    port = 1

    def __init__(self, **spent: float) -> None:
        self._spent, self._asked = spent, 0

    def cpu_seconds_by_thread(self) -> dict[tuple[int, str], float]:
        self._asked += 1
        return {(1, name.replace("_", "-")): seconds * self._asked for name, seconds in self._spent.items()}


def test_over_http_the_threads_of_the_core_hold_no_lock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(warm_query, "load", lambda *_: None)
    server = cast(Running, Server(paperwasp=30e-6, core_queries=50e-6))
    assert warm_query.lock_us_over_http(server, [path("red")], 2) == pytest.approx((80, 30))
    for spent in ({"paperwasp": 1.0}, {"paperwasp": 1.0, "core_queries": 0.0}):
        with pytest.raises(NothingMeasured, match="no thread 'core-queries' has answered"):
            warm_query.lock_us_over_http(cast(Running, Server(**spent)), [path("red")], 1)


def test_what_kernels_do_without_the_lock_is_taken_off() -> None:
    assert warm_query.held_us(100, 70) == 30
    _, unlocked_us = warm_query.spent_us(lambda: _core.check_time())
    assert unlocked_us == 0
    warm_query.check_unlocked()


def test_the_core_counts_no_longer_than_it_is_asked_to() -> None:
    _, before = warm_query.spent_us(much_work), _core.unlocked_ns()
    much_work()
    assert _core.unlocked_ns() == before


def much_work() -> None:
    _core.range_bitmap(np.zeros(1 << 22, np.int32), 0, 1, np.zeros(1 << 16, np.uint64))


def test_calls_that_nobody_counts_are_no_measurement(service: InProcess) -> None:
    with pytest.raises(NothingMeasured, match="calls of /search/ were not counted: 0 Python calls"):
        service.calls(get(path("red")))


class Asked:
    """A service whose queries make as many Python calls as they have letters; those for `red` find something."""

    def calls(self, request: Any) -> Calls:
        return Calls(len(request.query), 1, 1, 1)

    def answer(self, request: Any) -> bytes:
        return json.dumps({"root": {"children": [{"id": "x"}] if "red" in request.query else []}}).encode()


def test_the_median_is_of_queries_that_find_something() -> None:
    service: Any = Asked()
    assert warm_query.median_calls(service, ["/?red", "/?redred", "/?blue", "/?redredred"]).python == 6
    with pytest.raises(NothingMeasured, match="none of 1 queries finds anything"):
        warm_query.median_calls(service, ["/?blue"])


def test_a_run_prints_each_figure_with_its_target(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    report = Report()
    monkeypatch.setattr(warm_query, "feed_file", lambda count: tmp_path)
    monkeypatch.setattr(warm_query, "fill", lambda data, file: 1)
    monkeypatch.setattr(warm_query, "opened", lambda *_, **__: contextlib.nullcontext())
    monkeypatch.setattr(warm_query, "_texts", lambda file, count: [])
    monkeypatch.setattr(warm_query, "lock_us", lambda service, paths, rounds: (50.0, 31.0))
    monkeypatch.setattr(warm_query, "paperwasp", lambda *_: contextlib.nullcontext())
    monkeypatch.setattr(warm_query, "lock_us_over_http", lambda server, paths, rounds: (40.0, 29.0))
    monkeypatch.setattr(warm_query, "warm_calls", lambda file: Calls(60, 5, 4, 3))
    warm_query.run(report, warm_query.Options())
    assert [(row.ours, row.target, row.met) for row in report.rows] == [
        ("31 µs of 50 µs CPU", "≤ 30 µs", False), ("29 µs of 40 µs CPU", "≤ 30 µs", True),
        ("60", "≤ 60", True),
    ]  # fmt: skip
