"""Changes whose texts are embedded: on threads, in the order in which they came for each document."""

from __future__ import annotations

import asyncio
import threading

import pytest

from paperwasp.container.document.sequencer import Sequenced, Sequencer
from paperwasp.container.threads import EmbeddingThreads
from paperwasp.errors import Overload


async def loop_rounds() -> None:
    """Lets all run that is ready, and what that makes ready."""
    loop = asyncio.get_running_loop()
    for _ in range(5):
        reached = loop.create_future()
        loop.call_soon(reached.set_result, None)
        await reached


def test_changes_of_a_document_are_sent_in_their_order() -> None:
    async def run() -> None:
        sequencer, sent = Sequencer(), list[str]()
        first, second, other = sequencer.join("x"), sequencer.join("x"), sequencer.join("y")

        async def send(one: Sequenced, name: str) -> None:
            await one.wait()
            sent.append(name)
            one.end_soon()

        waiting = asyncio.create_task(send(second, "second"))
        await send(other, "other")
        await loop_rounds()
        assert sent == ["other"] and "x" in sequencer and "y" not in sequencer
        await send(first, "first")
        await waiting
        await loop_rounds()
        assert sent == ["other", "first", "second"] and "x" not in sequencer

    asyncio.run(run())


def test_a_change_that_is_cancelled_lets_the_next_one_wait_for_those_before() -> None:
    async def run() -> None:
        sequencer = Sequencer()
        first, second, third = (sequencer.join("x") for _ in range(3))

        async def wait(one: Sequenced) -> None:
            try:
                await one.wait()
            finally:
                one.end_soon()

        waiting = [asyncio.create_task(wait(turn)) for turn in (second, third)]
        await loop_rounds()
        waiting[0].cancel()
        await loop_rounds()
        assert waiting[0].cancelled() and not waiting[1].done()
        first.end_soon()
        await waiting[1]
        await loop_rounds()
        assert "x" not in sequencer

    asyncio.run(run())


def test_the_event_loop_goes_on_and_too_much_is_refused() -> None:
    go_on = threading.Event()

    async def run() -> None:
        threads = EmbeddingThreads("test", threads=1, waiting=2)
        work = [asyncio.create_task(threads.run(go_on.wait, 30)) for _ in range(2)]
        await loop_rounds()
        with pytest.raises(Overload, match="2 requests already wait for embedding"):
            await threads.run(go_on.wait, 30)
        assert not any(task.done() for task in work)
        go_on.set()
        assert await asyncio.gather(*work) == [True, True]
        assert await threads.run(lambda: threading.current_thread() is not threading.main_thread())

    asyncio.run(run())


def test_what_nobody_waits_for_keeps_its_room_until_a_thread_has_met_it() -> None:
    """Else ever more of it waits, with its requests, while the threads are held up."""
    begun, go_on = threading.Event(), threading.Event()

    def hold() -> bool:
        begun.set()
        return go_on.wait(30)

    async def run() -> None:
        threads = EmbeddingThreads("test", threads=1, waiting=3)
        first = asyncio.create_task(threads.run(hold))
        others = [asyncio.create_task(threads.run(int)) for _ in range(2)]
        await loop_rounds()
        assert begun.wait(30)
        for task in others:
            task.cancel()
        await loop_rounds()
        assert all(task.cancelled() for task in others)
        with pytest.raises(Overload, match="3 requests already wait for embedding"):
            await threads.run(int)
        go_on.set()
        assert await first
        while threads.undone():
            pass
        assert await threads.run(int) == 0

    asyncio.run(run())
