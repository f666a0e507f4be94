"""The messenger and the worker pool: every request is answered once, batches wake the loop once, queues are bounded."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from threading import Barrier, Event, Thread

import pytest

from paperwasp import limits
from paperwasp.coordination.messenger import Answered, EmbeddedMessenger, Reply, answer_all
from paperwasp.coordination.worker_pool import WorkerPool
from paperwasp.errors import Conflict, InvalidInput, NotFound, Overload, Timeout


def test_a_request_is_answered() -> None:
    async def run() -> None:
        messenger = EmbeddedMessenger()
        messenger.serve("a", lambda message, reply: reply(message + 1))
        assert await messenger.request("a", 1) == 2
        with pytest.raises(Conflict):
            messenger.serve("a", lambda message, reply: None)
        messenger.withdraw("a")
        with pytest.raises(NotFound, match="nobody serves 'a'"):
            await messenger.request("a", 1)

    asyncio.run(run())


def test_a_thread_may_wait_for_an_answer() -> None:
    messenger = EmbeddedMessenger()
    messenger.serve("a", lambda message, reply: Thread(target=reply, args=(message + 1,)).start())
    assert messenger.call("a", 1, 10) == 2
    messenger.replace("a", lambda message, reply: reply(InvalidInput("replied")))
    with pytest.raises(InvalidInput, match="replied"):
        messenger.call("a", 1, 10)
    messenger.replace("a", lambda message, reply: None)
    with pytest.raises(Timeout, match="'a' did not answer within 0\\.01 s"):
        messenger.call("a", 1, 0.01)
    for use in (lambda: messenger.call("b", 1, 10), lambda: messenger.replace("b", lambda message, reply: None)):
        with pytest.raises(NotFound, match="nobody serves 'b'"):
            use()


def test_errors_come_back_however_they_are_given() -> None:
    def handler(message: bool, reply: Reply) -> None:
        if message:
            raise InvalidInput("raised")
        reply(InvalidInput("replied"))

    async def run() -> None:
        messenger = EmbeddedMessenger()
        messenger.serve("a", handler)
        for message, text in ((True, "raised"), (False, "replied")):
            with pytest.raises(InvalidInput, match=text):
                await messenger.request("a", message)

    asyncio.run(run())


def test_an_answer_that_came_at_once_is_there() -> None:
    async def run() -> None:
        messenger = EmbeddedMessenger()
        messenger.serve("a", lambda message, reply: reply(message + 1))
        messenger.serve("error", lambda message, reply: reply(InvalidInput("replied")))
        for address in ("a", "error", "nobody"):
            found = messenger.ask(address, 1)
            assert isinstance(found, Answered)
            if address == "a":
                assert found.answer() == await found == 2
            else:
                with pytest.raises(InvalidInput if address == "error" else NotFound):
                    found.answer()

    asyncio.run(run())


def test_an_answer_that_comes_while_its_future_is_made_is_given_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether the thread that replies has seen the future or not."""

    async def run() -> None:
        messenger = EmbeddedMessenger()
        replies: list[Reply] = []
        messenger.serve("a", lambda message, reply: replies.append(reply))
        loop = asyncio.get_running_loop()
        make = loop.create_future

        def answered_meanwhile() -> asyncio.Future[object]:
            future = make()
            futures.append(future)
            replies[-1]("early")
            return future

        futures: list[asyncio.Future[object]] = []
        with monkeypatch.context() as patched:
            patched.setattr(loop, "create_future", answered_meanwhile)
            found = messenger.ask("a", 1)
        assert isinstance(found, Answered) and found.answer() == "early"
        assert futures[0].cancelled()
        later = messenger.ask("a", 2)
        replies[-1]("late")
        assert await later == "late"

    asyncio.run(run())


def test_a_batch_from_another_thread_wakes_the_loop_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Though the loop has its turn while the batch is answered."""
    replies: list[Reply] = []
    woken: list[object] = []
    plain: list[object] = []

    async def run() -> list[int]:
        messenger = EmbeddedMessenger()
        messenger.serve("a", lambda message, reply: replies.append(reply))
        loop = asyncio.get_running_loop()
        wake = loop.call_soon_threadsafe

        def counted(call: Callable[[], object]) -> None:
            woken.append(call)
            wake(call)

        def wait_for_turn(answer: object) -> None:
            turned = Event()
            wake(turned.set)
            assert turned.wait(30)
            plain.append(answer)

        monkeypatch.setattr(loop, "call_soon_threadsafe", counted)
        futures = [messenger.request("a", number) for number in range(1000)]
        replies.insert(500, wait_for_turn)
        answers = [*range(500), "plain", *range(500, 1000)]
        thread = Thread(target=answer_all, args=(replies, answers))
        thread.start()
        found = await asyncio.gather(*futures)
        thread.join()
        return list(found)

    assert asyncio.run(run()) == list(range(1000))
    assert len(woken) == 1 and plain == ["plain"]


def test_other_work_comes_between_the_answers_to_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "ANSWERS_NS", 0)
    replies: list[Reply] = []
    seen: list[object] = []

    async def run() -> None:
        messenger, loop, done = EmbeddedMessenger(), asyncio.get_running_loop(), asyncio.Event()
        messenger.serve("a", lambda message, reply: replies.append(reply))

        def take(answer: object) -> None:
            seen.append(answer)
            loop.call_soon(seen.append, "other")
            if answer == 4:
                done.set()

        messenger.send_all("a", range(5), [take] * 5)
        answer_all(replies, range(5))
        await asyncio.wait_for(done.wait(), 30)

    asyncio.run(run())
    assert seen[:9] == [0, "other", 1, "other", 2, "other", 3, "other", 4]


def test_answers_of_one_batch_may_go_to_several_loops() -> None:
    """Loops of two threads, in turns: each is woken, and has its answers."""
    replies: dict[tuple[str, int], Reply] = {}
    both_have_asked = Barrier(3)
    found: dict[str, list[object]] = {}

    def serve_loop(name: str) -> None:
        async def run() -> None:
            messenger = EmbeddedMessenger()
            messenger.serve("a", lambda message, reply: replies.update({(name, message): reply}))
            futures = [messenger.request("a", number) for number in range(3)]
            both_have_asked.wait(30)
            found[name] = list(await asyncio.wait_for(asyncio.gather(*futures), 30))

        asyncio.run(run())

    threads = [Thread(target=serve_loop, args=(name,)) for name in ("x", "y")]
    for thread in threads:
        thread.start()
    both_have_asked.wait(30)
    asked = [(name, number) for number in range(3) for name in ("x", "y")]
    answer_all([replies[each] for each in asked], [f"{name}{number}" for name, number in asked])
    for thread in threads:
        thread.join()
    assert found == {"x": ["x0", "x1", "x2"], "y": ["y0", "y1", "y2"]}


def test_no_answer_is_lost_between_threads() -> None:
    async def run() -> None:
        messenger = EmbeddedMessenger()
        pool = WorkerPool("test", threads=4, queue_length=10_000)
        messenger.serve("a", lambda message, reply: pool.answer(lambda number: number * 2, message, reply))
        for _ in range(20):
            answers = await asyncio.gather(*(messenger.request("a", number) for number in range(200)))
            assert answers == [number * 2 for number in range(200)]
        pool.shutdown()

    asyncio.run(asyncio.wait_for(run(), 30))


def test_a_full_pool_refuses() -> None:
    entered, release, answers = Barrier(2), Event(), list[object]()
    pool = WorkerPool("test", threads=1, queue_length=2)

    def work(message: int) -> int:
        if message == 0:
            entered.wait()
            release.wait()
        if message == 2:
            raise InvalidInput("two")
        return message

    pool.answer(work, 0, answers.append)
    entered.wait()
    for message in (1, 2):
        pool.answer(work, message, answers.append)
    with pytest.raises(Overload, match="2 queries are waiting"):
        pool.answer(work, 3, answers.append)
    release.set()
    pool.shutdown()
    assert answers[:2] == [0, 1] and isinstance(answers[2], InvalidInput)
    with pytest.raises(Overload):
        pool.answer(work, 4, answers.append)


def test_messages_that_come_together_are_served_together_up_to_the_first_without_room() -> None:
    async def run() -> None:
        messenger, served = EmbeddedMessenger(), list[Sequence[object]]()

        def take_two(messages: Sequence[object], replies: Sequence[Reply]) -> int:
            served.append(messages)
            for reply in replies[:2]:
                reply("taken")
            return 2

        def take_one_by_one(message: object, reply: Reply) -> None:
            if message == "refused":
                raise Overload("full")
            reply(InvalidInput("wrong") if message == "wrong" else message)

        def send_all(texts: Sequence[str]) -> tuple[int, list[list[object]]]:
            answers: list[list[object]] = [[] for _ in texts]
            return messenger.send_all("a", texts, [answer.append for answer in answers]), answers

        async def delivered() -> None:
            last = asyncio.get_running_loop().create_future()
            messenger.send_all("last", ["x"], [last.set_result])
            await last

        messenger.serve("a", take_one_by_one, take_two)
        messenger.serve("last", take_one_by_one)
        sent, found = send_all(["x", "y", "z"])
        assert sent == 2 and found == [[], [], []]  # never before it has returned
        await delivered()
        assert found == [["taken"], ["taken"], []]
        assert served == [["x", "y", "z"]]
        messenger.replace("a", take_one_by_one)
        sent, found = send_all(["wrong", "x", "refused"])
        await delivered()
        assert sent == 2 and isinstance(found[0].pop(), InvalidInput) and found == [[], ["x"], []] and len(served) == 1
        messenger.withdraw("a")
        sent, found = send_all(["x", "y", "z"])
        await delivered()
        assert sent == 3
        for (answer,) in found:
            assert isinstance(answer, NotFound) and str(answer) == "nobody serves 'a'"

    asyncio.run(run())
