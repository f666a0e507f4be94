"""What deployment work asks of the interpreter while it runs, and that everything is as before afterwards."""

from __future__ import annotations

import gc
import sys
import threading
from collections.abc import Iterator

import pytest

from paperwasp.base.yielding import SWITCH_SECONDS, without_collections, yielding_to_requests


def settings() -> tuple[float, tuple[int, int, int]]:
    return sys.getswitchinterval(), gc.get_threshold()


def test_the_lock_is_let_go_sooner_and_nothing_is_collected_fully() -> None:
    before = settings()
    with yielding_to_requests():
        interval_seconds, (young, middle, full) = settings()
        assert interval_seconds <= SWITCH_SECONDS * 1.01
        assert (young, middle) == before[1][:2]
        assert full > 1_000_000
    assert settings() == before


def test_the_last_of_several_threads_sets_it_back() -> None:
    before = settings()
    entered, may_leave = threading.Event(), threading.Event()

    def work() -> None:
        with yielding_to_requests():
            entered.set()
            assert may_leave.wait(20)

    other = threading.Thread(target=work)
    with yielding_to_requests():
        within = settings()
        other.start()
        assert entered.wait(20)
    assert settings() == within
    may_leave.set()
    other.join()
    assert settings() == before


def test_an_error_leaves_nothing_behind() -> None:
    before = settings()
    try:
        with yielding_to_requests():
            raise ValueError
    except ValueError:
        pass
    assert settings() == before


@pytest.fixture(params=[True, False], ids=["on", "off"])
def is_collecting(request: pytest.FixtureRequest) -> Iterator[bool]:
    before = gc.isenabled()
    (gc.enable if request.param else gc.disable)()
    yield request.param
    (gc.enable if before else gc.disable)()


def test_nothing_is_collected_until_the_last_has_left_and_the_choice_comes_back(
    is_collecting: bool,
) -> None:
    with without_collections():
        with without_collections():
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled() is is_collecting
