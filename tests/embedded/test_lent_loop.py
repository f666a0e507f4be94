"""The loop that is lent: what its own thread and others run on it, and how it ends."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable

import pytest

from paperwasp.embedded.lent_loop import Closed, Given, LentLoop
from paperwasp.http.messages import Answer, Response
from paperwasp.http.pending import Begun, PendingAnswer


@pytest.fixture
def loop() -> object:
    lent = LentLoop()
    yield lent
    lent.close()


async def _later(seconds: float) -> None:
    future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    asyncio.get_running_loop().call_later(seconds, future.set_result, None)
    await future


def _waits_for(seconds: float) -> Callable[[], Begun]:
    async def answer() -> Answer:
        await _later(seconds)
        return Response(200, threading.current_thread().name.encode())

    return answer


def test_what_never_waits_runs_on_the_calling_thread(loop: LentLoop) -> None:
    async def answer() -> Answer:
        assert asyncio.get_running_loop() is not None
        return Response(200, threading.current_thread().name.encode())

    for begin in (answer, lambda: Response(200, threading.current_thread().name.encode())):
        found = loop.answer(begin)
        assert isinstance(found, Response) and found.body.decode() == threading.current_thread().name


def test_what_waits_ends_on_the_loops_thread(loop: LentLoop) -> None:
    found = loop.answer(_waits_for(0.001))
    assert isinstance(found, Response) and found.body == b"paperwasp"


def test_a_pending_answer_is_waited_for(loop: LentLoop) -> None:
    pending = PendingAnswer()

    def begin() -> Begun:
        asyncio.get_running_loop().call_later(0.001, pending.give, Response(201))
        return pending

    found = loop.answer(begin)
    assert isinstance(found, Response) and found.status == 201


def test_errors_of_a_handler_are_raised_at_the_caller(loop: LentLoop) -> None:
    def fail() -> Begun:
        raise ValueError("at once")

    async def fail_later() -> Answer:
        await _later(0)
        raise ValueError("later")

    for begin, message in ((fail, "at once"), (fail_later, "later")):
        with pytest.raises(ValueError, match=message):
            loop.answer(begin)
        with pytest.raises(ValueError, match=message):
            asyncio.run(loop.answer_later(begin))


def test_a_coroutine_keeps_its_own_loop(loop: LentLoop) -> None:
    async def run() -> bytes:
        own = asyncio.get_running_loop()
        at_once = await loop.answer_later(lambda: Response(200, b"at once"))
        assert asyncio.get_running_loop() is own
        later = await asyncio.gather(*(loop.answer_later(_waits_for(0.001)) for _ in range(20)))
        assert asyncio.get_running_loop() is own
        assert all(isinstance(each, Response) and each.body == b"paperwasp" for each in later)
        assert isinstance(at_once, Response)
        return at_once.body

    assert asyncio.run(run()) == b"at once"


def test_many_threads_take_turns_while_the_loop_is_busy(loop: LentLoop) -> None:
    stop = threading.Event()

    async def keep_busy() -> None:
        while not stop.is_set():
            await _later(0)

    busy = threading.Thread(target=lambda: loop.run(keep_busy))
    busy.start()
    found: list[Answer] = []
    threads = [
        threading.Thread(target=lambda: found.extend(loop.answer(_waits_for(0)) for _ in range(50))) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    stop.set()
    busy.join(60)
    assert len(found) == 400


def test_requests_that_begin_together_keep_their_order(loop: LentLoop) -> None:
    order: list[int] = []
    taken: list[Given] = []
    done = threading.Event()

    def begin(number: int) -> Callable[[], Begun]:
        def run() -> Begun:
            order.append(number)
            return Response(200) if number % 2 else _waits_for(0)()

        return run

    def take(given: Given) -> None:
        taken.append(given)
        if len(taken) == 100:
            done.set()

    loop.start_all([(begin(number), take) for number in range(100)])
    assert done.wait(30)
    assert order == list(range(100))


def test_after_the_end_nothing_runs() -> None:
    loop = LentLoop()
    loop.close()
    loop.close()
    with pytest.raises(Closed):
        loop.answer(lambda: Response(200))
    with pytest.raises(Closed):
        loop.start_all([(lambda: Response(200), lambda given: None)])
