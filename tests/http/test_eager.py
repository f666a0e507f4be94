"""Coroutines that are run up to their first wait at once: whatever ends the wait, the rest of them runs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator

import pytest

from paperwasp.http.eager import run_eagerly


class _BareYield:
    """Gives the loop a turn, as asyncio does where there is nothing to wait for."""

    def __await__(self) -> Generator[None, None, None]:
        yield


async def _run(work: Callable[[list[str]], asyncio.Future[None] | None], noted: list[str], *, cancels: bool) -> None:
    """Runs a coroutine that waits for what `work` gives, from a callback of the loop, and notes how the wait ended."""
    loop = asyncio.get_running_loop()
    ended = loop.create_future()

    async def waiting() -> None:
        try:
            waited = work(noted)
            await (_BareYield() if waited is None else waited)
            noted.append("answered")
        except asyncio.CancelledError:
            noted.append("cancelled")
            raise
        finally:
            ended.set_result(None)

    def begin() -> None:
        task = run_eagerly(loop, waiting())
        assert task is not None
        if cancels:
            task.cancel()

    loop.call_soon(begin)
    async with asyncio.timeout(10):
        await ended


def _answer(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


def test_the_rest_runs_when_what_it_waits_for_is_there() -> None:
    noted: list[str] = []

    def answered_soon(_: list[str]) -> asyncio.Future[None]:
        loop = asyncio.get_running_loop()
        future: asyncio.Future[None] = loop.create_future()
        loop.call_soon(future.set_result, None)
        return future

    asyncio.run(_run(answered_soon, noted, cancels=False))
    assert noted == ["answered"]


@pytest.mark.parametrize("is_done", [False, True])
def test_a_cancellation_before_the_first_step_of_the_task_reaches_the_work(is_done: bool) -> None:
    noted: list[str] = []

    def never_answered(_: list[str]) -> asyncio.Future[None]:
        loop = asyncio.get_running_loop()
        future: asyncio.Future[None] = loop.create_future()
        if is_done:  # by the time of the task's first step
            loop.call_soon(_answer, future)
        return future

    asyncio.run(_run(never_answered, noted, cancels=True))
    assert noted == ["cancelled"]


def test_a_cancellation_of_a_bare_yield_reaches_the_work() -> None:
    noted: list[str] = []
    asyncio.run(_run(lambda _: None, noted, cancels=True))
    assert noted == ["cancelled"]


def test_a_timeout_that_is_over_at_once_ends_the_wait() -> None:
    async def all_of_it() -> str:
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[str] = loop.create_future()

        async def work() -> None:
            try:
                async with asyncio.timeout(0):
                    await loop.create_future()
            except TimeoutError:
                answer.set_result("over")

        loop.call_soon(run_eagerly, loop, work())
        async with asyncio.timeout(10):
            return await answer

    assert asyncio.run(all_of_it()) == "over"
