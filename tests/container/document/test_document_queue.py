"""The queue of a container: in line, in order, woken by replies, refused when full or old, forgotten when late.

The content cluster is a fake with a window of its own; the last test has a whole service, whose log is held up.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from time import monotonic
from typing import Any

import httpx
import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paperwasp import limits
from paperwasp.container.document.queue import DocumentQueue
from paperwasp.container.document.v1 import DocumentApi
from paperwasp.coordination.messages.documents import ApplyChanges, ApplyRequest, GetRequest, GetResponse
from paperwasp.coordination.messenger import BatchHandler, Handler, Reply, answered_together
from paperwasp.coordination.operation_log import FileOperationLog
from paperwasp.document.ids import DocumentId
from paperwasp.document.operations import Outcome, Refusal, Remove
from paperwasp.errors import NoSpace, Overload, Timeout
from paperwasp.http.messages import Request
from tests.container.document.document_scripts import SCRIPTS, model_of
from tests.exchanges import whole
from tests.service.in_process import active, deployed_service
from tests.service.music import FILES

DONE = Outcome(True)


class FakeCluster:
    """A messenger to content clusters that take `window` messages each, until they are told to answer."""

    def __init__(self, window: int) -> None:
        self.window = window
        self.sent: list[tuple[str, str]] = []
        """Address and document of what was taken."""
        self._in_flight: dict[str, deque[Reply]] = {}

    def request(self, address: str, message: object) -> asyncio.Future[Any]:
        assert isinstance(message, ApplyRequest | GetRequest)
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        in_flight = self._in_flight.setdefault(address, deque())
        if len(in_flight) >= self.window:
            answer.set_exception(Overload("too many"))
            return answer
        in_flight.append(partial(_settle, answer))
        document = message.operation.id if isinstance(message, ApplyRequest) else message.id
        self.sent.append((address, document.user_specified))
        return answer

    ask = request

    def hand(self, address: str, message: object, reply: Callable[[object], None]) -> None:
        raise AssertionError("documents are sent and asked for")

    def send_all(self, address: str, messages: Sequence[Any], replies: Sequence[Reply]) -> int:
        in_flight = self._in_flight.setdefault(address, deque())
        for number, (message, reply) in enumerate(zip(messages, replies, strict=True)):
            names = _names_in(message)
            if len(in_flight) + len(names) > self.window:
                return number
            is_together = isinstance(message, ApplyChanges)
            in_flight.extend(answered_together(reply, len(names)) if is_together else [reply])
            self.sent.extend((address, name) for name in names)
        return len(messages)

    def answer(self, address: str = "a", answer: object = DONE) -> None:
        """Answers what was taken first."""
        self._in_flight[address].popleft()(answer)

    def serve(self, address: str, handler: Handler, batch_handler: BatchHandler | None = None) -> None:
        raise NotImplementedError

    def replace(self, address: str, handler: Handler, batch_handler: BatchHandler | None = None) -> None:
        raise NotImplementedError

    def withdraw(self, address: str) -> None:
        raise NotImplementedError

    def call(self, address: str, message: object, timeout_seconds: float) -> Any:
        raise NotImplementedError

    def notify(self, address: str, message: object) -> None:
        raise NotImplementedError


def _names_in(message: Any) -> list[str]:
    """The documents of a message, by the last parts of their ids."""
    if isinstance(message, ApplyChanges):
        return [DocumentId.parse(str(change.id)).user_specified for change in message.changes]
    return [(message.operation if isinstance(message, ApplyRequest) else message).id.user_specified]


def _settle(future: asyncio.Future[Any], answer: object) -> None:
    if not future.done():
        future.set_exception(answer) if isinstance(answer, Exception) else future.set_result(answer)


def remove(name: object, size_bytes: int = 0) -> ApplyRequest:
    return ApplyRequest(Remove(DocumentId("ns", "music", str(name))), size_bytes)


async def settled() -> None:
    """Lets everything run that can."""
    loop = asyncio.get_running_loop()
    for _ in range(10):
        turn = loop.create_future()
        loop.call_soon(turn.set_result, None)
        await turn


def asked(queue: DocumentQueue, names: Sequence[object], address: str = "a") -> list[asyncio.Task[Any]]:
    return [asyncio.ensure_future(queue.ask(address, remove(name), 60_000)) for name in names]


def names(cluster: FakeCluster, address: str = "a") -> list[str]:
    return [name for to, name in cluster.sent if to == address]


def test_what_there_is_no_room_for_is_sent_in_its_order_when_replies_come() -> None:
    async def run() -> None:
        cluster = FakeCluster(2)
        queue = DocumentQueue(cluster)
        tasks = asked(queue, range(5))
        await settled()
        assert names(cluster) == ["0", "1"] and len(queue) == 3
        cluster.answer()
        await settled()
        assert names(cluster) == ["0", "1", "2"] and len(queue) == 2
        cluster.window = 100
        cluster.answer()
        await settled()
        assert names(cluster) == ["0", "1", "2", "3", "4"] and len(queue) == 0
        for _ in range(3):
            cluster.answer()
        assert await asyncio.gather(*tasks) == [DONE] * 5

    asyncio.run(run())


def test_a_newcomer_does_not_overtake_what_is_in_line() -> None:
    async def run() -> None:
        cluster = FakeCluster(1)
        queue = DocumentQueue(cluster)
        tasks = asked(queue, ["first", "second"])
        await settled()
        cluster.window = 100  # there is room again, and nobody has noticed
        tasks += asked(queue, ["third"])
        await settled()
        cluster.answer()
        await settled()
        assert names(cluster) == ["first", "second", "third"]
        for task in tasks[1:]:
            cluster.answer()
            assert await task is DONE

    asyncio.run(run())


def test_clusters_and_kinds_of_messages_do_not_wait_for_each_other() -> None:
    async def run() -> None:
        cluster = FakeCluster(1)
        queue = DocumentQueue(cluster)
        tasks = asked(queue, [1, 2], "a") + asked(queue, [3], "b")
        await settled()
        assert cluster.sent == [("a", "1"), ("b", "3")]
        get = asyncio.ensure_future(queue.ask("b", GetRequest(DocumentId("ns", "music", "4")), 60_000))
        await settled()
        assert len(queue) == 2
        cluster.answer("b")
        await settled()
        assert cluster.sent[2:] == [("b", "4")]
        cluster.answer("b", GetResponse(None))
        assert await get == GetResponse(None)
        cluster.answer("a")
        await settled()
        cluster.answer("a", NoSpace("full"))
        with pytest.raises(NoSpace):
            await asyncio.gather(*tasks)

    asyncio.run(run())


def test_a_tick_sends_what_no_reply_of_ours_will_wake() -> None:
    async def run() -> None:
        cluster = FakeCluster(0)  # somebody else's operations fill it
        queue = DocumentQueue(cluster)
        (task,) = asked(queue, [1])
        await settled()
        assert cluster.sent == []
        cluster.window = 1
        while not cluster.sent:
            await settled()
        cluster.answer()
        assert await task is DONE

    asyncio.run(run())


def test_one_more_than_the_line_holds_is_refused_and_all_recovers() -> None:
    async def run() -> None:
        cluster = FakeCluster(1)
        queue = DocumentQueue(cluster)
        tasks = asked(queue, range(1 + limits.DOCUMENT_QUEUE_LENGTH))
        await settled()
        with pytest.raises(Overload, match=r"^Rejecting execution due to overload: 256 requests already enqueued$"):
            await queue.ask("a", remove("more"), 60_000)
        cluster.window = 1000
        while not all(task.done() for task in tasks):
            cluster.answer()
            await settled()
        assert [task.result() for task in tasks] == [DONE] * 257
        assert names(cluster) == [str(name) for name in range(257)]
        assert len(queue) == 0
        (last,) = asked(queue, ["more"])
        await settled()
        cluster.answer()
        assert await last is DONE

    asyncio.run(run())


def test_nothing_joins_a_line_whose_first_has_waited_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> None:
        queue = DocumentQueue(FakeCluster(0))
        tasks = asked(queue, [1])
        await settled()
        monkeypatch.setattr(limits, "DOCUMENT_QUEUE_SECONDS", -1.0)
        with pytest.raises(Overload, match=r"overload: -1.0 seconds worth of work enqueued$"):
            await queue.ask("a", remove(2), 60_000)
        tasks[0].cancel()

    asyncio.run(run())


def test_the_line_has_a_limit_in_bytes() -> None:
    async def run() -> None:
        queue, half = DocumentQueue(FakeCluster(0)), limits.DOCUMENT_QUEUE_BYTES // 2
        tasks = [asyncio.ensure_future(queue.ask("a", remove(name, half), 60_000)) for name in range(2)]
        await settled()
        with pytest.raises(Overload, match="bytes already enqueued"):
            await queue.ask("a", remove(2, 1), 60_000)
        for task in tasks:
            task.cancel()

    asyncio.run(run())


def test_time_that_has_passed_before_a_message_is_sent_counts() -> None:
    """Otherwise this would take a minute: the cluster never answers."""

    async def run() -> None:
        queue = DocumentQueue(FakeCluster(1))
        with pytest.raises(Timeout, match=r"^Timeout after 60000ms$"):
            await queue.ask("a", remove(1), 60_000, monotonic() - 60)

    asyncio.run(asyncio.wait_for(run(), 30))


def test_what_waits_longer_than_its_timeout_is_told_so_and_never_sent() -> None:
    async def run() -> None:
        cluster = FakeCluster(1)
        queue = DocumentQueue(cluster)
        first = asyncio.ensure_future(queue.ask("a", remove(1), 60_000))
        await settled()
        with pytest.raises(Timeout, match=r"^Timeout after 1ms$"):
            await queue.ask("a", remove("late"), 1)
        last = asyncio.ensure_future(queue.ask("a", remove(2), 60_000))
        await settled()
        assert len(queue) == 1  # the late one holds no place
        cluster.answer()
        await settled()
        cluster.answer()
        assert [await first, await last] == [DONE, DONE]
        assert names(cluster) == ["1", "2"]

    asyncio.run(run())


def test_what_a_client_gave_up_is_never_sent() -> None:
    async def run() -> None:
        cluster = FakeCluster(1)
        queue = DocumentQueue(cluster)
        tasks = asked(queue, [1, "gone", 2])
        await settled()
        tasks[1].cancel()
        cluster.answer()
        await settled()
        assert names(cluster) == ["1", "2"]
        cluster.answer()
        assert [await tasks[0], await tasks[2]] == [DONE, DONE]

    asyncio.run(run())


@settings(deadline=None, max_examples=50)
@given(st.lists(st.one_of(st.integers(0, 3), st.just("answer"), st.sampled_from(["close", "open"])), max_size=60))
def test_of_one_document_nothing_is_reordered(steps: list[object]) -> None:
    async def run() -> None:
        cluster = FakeCluster(2)
        queue = DocumentQueue(cluster)
        tasks: list[asyncio.Task[Any]] = []
        wanted: list[str] = []
        for number, step in enumerate(steps):
            if isinstance(step, int):
                wanted.append(f"{step}.{number}")
                tasks += asked(queue, wanted[-1:])
            elif step == "answer":
                if cluster._in_flight.get("a"):
                    cluster.answer()
            else:
                cluster.window = 0 if step == "close" else 3
            await settled()
        cluster.window = 100
        while not all(task.done() for task in tasks):
            if cluster._in_flight.get("a"):
                cluster.answer()
            else:
                queue.send_waiting()
            await settled()
        assert names(cluster) == wanted
        assert len(queue) == 0

    asyncio.run(run())


def test_overload_timeout_and_no_space_over_http() -> None:
    async def ask(api: DocumentApi, name: str, query: str = "") -> tuple[int, dict[str, Any]]:
        response = whole(await api.handle(Request("DELETE", f"/document/v1/ns/music/docid/{name}", query)))
        return response.status, orjson.loads(response.body)

    async def run() -> None:
        cluster = FakeCluster(1)
        model = model_of(SCRIPTS / "document_application")
        api = DocumentApi(cluster)
        api.configure(model, model.containers[0])
        path = "/document/v1/ns/music/docid/"
        full = asyncio.ensure_future(ask(api, "full"))
        await settled()
        assert await ask(api, "late", "timeout=1ms") == (504, {"pathId": path + "late", "message": "Timeout after 1ms"})
        in_line = [asyncio.ensure_future(ask(api, str(name))) for name in range(limits.DOCUMENT_QUEUE_LENGTH)]
        await settled()
        message = "Rejecting execution due to overload: 256 requests already enqueued"
        assert await ask(api, "more") == (429, {"pathId": path + "more", "message": message})
        cluster.answer("content/records", NoSpace("External feed is blocked"))
        message = "External feed is blocked"
        told = {"pathId": path + "full", "id": "id:ns:music::full", "message": message}
        assert await full == (507, told)
        for task in in_line:
            task.cancel()

    asyncio.run(run())


def test_a_value_that_no_field_has_room_for_is_no_failed_condition() -> None:
    async def run() -> None:
        cluster = FakeCluster(1)
        model = model_of(SCRIPTS / "document_application")
        api = DocumentApi(cluster)
        api.configure(model, model.containers[0])
        asked = asyncio.ensure_future(api.handle(Request("DELETE", "/document/v1/ns/music/docid/a")))
        await settled()
        cluster.answer("content/records", Outcome(True, Refusal.TOO_LARGE))
        response = whole(await asked)
        assert response.status == 400
        assert orjson.loads(response.body)["message"] == "A value would be more than its field can hold"

    asyncio.run(run())


def test_a_service_that_is_overloaded_says_so_and_recovers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    go_on, append = threading.Event(), FileOperationLog.append

    def held_up(self: FileOperationLog, records: Any) -> Any:
        go_on.wait()
        return append(self, records)

    async def run(url: str) -> list[int]:
        async with httpx.AsyncClient(base_url=url, timeout=60, limits=httpx.Limits(max_connections=None)) as client:

            async def put(number: int) -> int:
                answer = await client.post(f"/document/v1/ns/music/docid/{number}", json={"fields": {"year": number}})
                assert answer.status_code == 200 or "requests already enqueued" in answer.json()["message"]
                return answer.status_code

            puts = [asyncio.ensure_future(put(number)) for number in range(40)]
            await asyncio.wait(puts, return_when=asyncio.FIRST_COMPLETED)  # only a refusal comes while nothing moves
            go_on.set()
            statuses = await asyncio.gather(*puts)
            assert await asyncio.gather(*(put(number) for number in range(4))) == [200] * 4
            for number, status in enumerate(statuses[4:], 4):
                found = await client.get(f"/document/v1/ns/music/docid/{number}")
                assert found.status_code == (200 if status == 200 else 404)
            return statuses

    with deployed_service(tmp_path / "data") as service:
        active(service.deploy(FILES))
        monkeypatch.setattr(limits, "OPERATION_QUEUE_LENGTH", 4)
        monkeypatch.setattr(limits, "DOCUMENT_QUEUE_LENGTH", 8)
        monkeypatch.setattr(limits, "CHANGES_TOGETHER", 2)
        monkeypatch.setattr(FileOperationLog, "append", held_up)
        try:
            statuses = asyncio.run(run(service.container_url()))
        finally:
            go_on.set()
    assert set(statuses) == {200, 429}
    assert statuses.count(200) >= 3 + 7  # a place is left where two come together and there is room for one
