"""Messages through another process: what is answered, in which order, where there is no room, and no process."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from queue import SimpleQueue
from typing import Any

import pytest

from paperwasp import limits
from paperwasp.coordination.messages import documents
from paperwasp.coordination.messages.documents import (
    ApplyChanges,
    ApplyRequest,
    GetRequest,
    GetResponse,
    HealthRequest,
    StampRequest,
    VisitRequest,
)
from paperwasp.coordination.messages.envelope import Codec
from paperwasp.coordination.messages.message import Sent
from paperwasp.coordination.messages.operations import CONVERSIONS
from paperwasp.coordination.messenger import Reply
from paperwasp.coordination.pipe_messenger import PipeMessenger, _Parcel
from paperwasp.document.ids import DocumentId
from paperwasp.document.operations import Outcome, Put, Remove
from paperwasp.errors import (
    Conflict,
    InternalError,
    InvalidInput,
    NotFound,
    Overload,
    Timeout,
    Unavailable,
    UnreadableMessage,
)

NAMES = [DocumentId.parse(f"id:n:music::{number}") for number in range(6)]


@pytest.fixture
def messenger() -> Iterator[PipeMessenger]:
    made = PipeMessenger(Codec(CONVERSIONS))
    yield made
    made.close()


def test_request_and_answer(messenger: PipeMessenger) -> None:
    asked: list[object] = []

    def serve(message: GetRequest, reply: Reply) -> None:
        asked.append((message, threading.current_thread().name))
        if message.tensor_form == "wrong":
            raise InvalidInput("no such form")
        threading.Thread(target=reply, args=(GetResponse(message.id.text.encode()),)).start()

    async def run() -> None:
        request = GetRequest(NAMES[0])
        assert await messenger.request("a", request) == GetResponse(b"id:n:music::0")
        assert await messenger.ask("a", request) == GetResponse(b"id:n:music::0")
        with pytest.raises(InvalidInput, match="no such form"):
            await messenger.ask("a", GetRequest(NAMES[0], tensor_form="wrong"))
        with pytest.raises(NotFound, match="nobody serves 'b'"):
            await messenger.request("b", request)
        with pytest.raises(InvalidInput, match="cannot go to another process"):
            await messenger.request("a", object())
        found: Future[object] = Future()
        messenger.hand("a", request, found.set_result)
        assert await asyncio.wrap_future(found) == GetResponse(b"id:n:music::0")
        assert asked == [(request, "messenger-read")] * 2 + [asked[2], (request, "messenger-read")]
        messenger.notify("a", request)
        assert await messenger.request("a", request) == GetResponse(b"id:n:music::0")
        assert len(asked) == 6

    messenger.serve("a", serve)
    asyncio.run(run())
    assert messenger.call("a", GetRequest(NAMES[1]), 30) == GetResponse(b"id:n:music::1")
    with pytest.raises(InvalidInput, match="no such form"):
        messenger.call("a", GetRequest(NAMES[0], tensor_form="wrong"), 30)


def test_what_is_of_this_process_is_asked_in_another_way(messenger: PipeMessenger) -> None:
    found: list[object] = []
    messenger.hand("a", object(), found.append)
    assert found == [None]


def test_nobody_answers_in_time(messenger: PipeMessenger) -> None:
    replies: list[Reply] = []
    messenger.serve("a", lambda message, reply: replies.append(reply))
    with pytest.raises(Timeout, match="'a' did not answer"):
        messenger.call("a", HealthRequest(), 0.001)
    with pytest.raises(Conflict):
        messenger.serve("a", lambda message, reply: None)


class Cluster:
    """Takes as many operations as there is room for, and keeps them."""

    def __init__(self) -> None:
        self.room = 2
        self.taken: list[str] = []
        self.replies: SimpleQueue[Reply] = SimpleQueue()
        self.is_refused = threading.Event()

    def serve(self, message: Any, reply: Reply) -> None:
        if self.serve_all([message], [reply]) == 0:
            raise Overload("full")

    def serve_all(self, messages: Sequence[Any], replies: Sequence[Reply]) -> int:
        count = min(self.room, len(messages))
        if count:
            self.room -= count  # never where there is none, which a test changes meanwhile
        for message in messages[:count]:
            operations: Sequence[Any] = message.changes if isinstance(message, ApplyChanges) else [message.operation]
            self.taken += [operation.id.user_specified for operation in operations]
        for reply in replies[:count]:
            self.replies.put(reply)
        if count < len(messages):
            self.is_refused.set()
        return count


def removes(first: int, last: int) -> list[ApplyRequest]:
    return [ApplyRequest(Remove(name)) for name in NAMES[first:last]]


def test_what_there_is_no_room_for_waits_in_its_order(messenger: PipeMessenger) -> None:
    cluster = Cluster()

    async def run() -> None:
        answers: asyncio.Queue[object] = asyncio.Queue()
        assert messenger.send_all("a", removes(0, 4), [answers.put_nowait] * 4) == 4
        assert messenger.send_all("a", removes(4, 6), [answers.put_nowait] * 2) == 2
        await asyncio.to_thread(cluster.is_refused.wait)
        assert cluster.taken == ["0", "1"]
        cluster.room = 4
        for number in range(6):
            reply = await asyncio.to_thread(cluster.replies.get)
            reply(Outcome(number % 2 == 0))
            assert await answers.get() == Outcome(number % 2 == 0)

    messenger.serve("a", cluster.serve, cluster.serve_all)
    asyncio.run(run())
    assert cluster.taken == ["0", "1", "2", "3", "4", "5"]


def test_operations_of_all_kinds_wait_in_one_line(messenger: PipeMessenger) -> None:
    cluster = Cluster()
    cluster.room = 0

    async def run() -> None:
        answers: asyncio.Queue[object] = asyncio.Queue()
        changes = ApplyChanges()
        changes.add([Put(NAMES[0], {})], [1])
        assert messenger.send_all("a", [changes, *removes(1, 2)], [answers.put_nowait] * 2) == 2
        await asyncio.to_thread(cluster.is_refused.wait)
        cluster.room = 6
        assert messenger.send_all("a", removes(2, 3), [answers.put_nowait]) == 1
        for _ in range(3):
            (await asyncio.to_thread(cluster.replies.get))(Outcome(False))
        assert [await answers.get() for _ in range(3)] == [Outcome(False)] * 3

    messenger.serve("a", cluster.serve, cluster.serve_all)
    asyncio.run(run())
    assert cluster.taken == ["0", "1", "2"]


def test_one_operation_waits_for_room_where_it_may(messenger: PipeMessenger) -> None:
    cluster = Cluster()
    cluster.room = 0

    async def run() -> None:
        answers: asyncio.Queue[object] = asyncio.Queue()
        assert messenger.send_all("a", removes(0, 1), [answers.put_nowait]) == 1
        await asyncio.to_thread(cluster.is_refused.wait)
        with pytest.raises(Overload, match="full"):
            await messenger.request("a", removes(1, 2)[0])
        cluster.room = 1
        (await asyncio.to_thread(cluster.replies.get))(Outcome(True))
        assert await answers.get() == Outcome(True)

    messenger.serve("a", cluster.serve, cluster.serve_all)
    asyncio.run(run())
    assert cluster.taken == ["0"]


def test_no_more_is_sent_than_a_cluster_has_room_for(messenger: PipeMessenger, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "OPERATION_QUEUE_LENGTH", 3)
    cluster = Cluster()
    cluster.room = 6

    async def run() -> None:
        answers: asyncio.Queue[object] = asyncio.Queue()
        wrong = ApplyRequest(Remove(NAMES[0], "half \ud800"))
        replies = [answers.put_nowait] * 5
        asked = [messenger.request("a", StampRequest()) for _ in range(5)]  # what is asked alone takes no room
        assert await asyncio.gather(*asked) == [7] * 5
        assert messenger.send_all("a", [*removes(0, 2), wrong, *removes(2, 4)], replies) == 4
        assert isinstance(await answers.get(), InvalidInput)
        assert messenger.send_all("a", removes(3, 4), replies[:1]) == 0
        assert await messenger.request("a", StampRequest()) == 7
        cluster.replies.get()(Outcome(False))
        assert await answers.get() == Outcome(False)
        assert messenger.send_all("a", removes(3, 4), replies[:1]) == 1

    def serve(message: Any, reply: Reply) -> None:
        reply(7) if isinstance(message, StampRequest) else cluster.serve(message, reply)

    messenger.serve("a", serve, cluster.serve_all)
    asyncio.run(run())


def test_a_defect_is_an_error(messenger: PipeMessenger) -> None:
    messenger.serve("a", lambda message, reply: reply(object()))
    with pytest.raises(InvalidInput, match="object cannot go to another process"):
        messenger.call("a", HealthRequest(), 30)


def test_a_defect_costs_its_own_messages(caplog: pytest.LogCaptureFixture) -> None:
    def fail(*_: object) -> Any:
        raise KeyError("defect")

    wrong: dict[type, dict[str, Any]] = {
        documents.StatusRequest: {"from_message": fail},
        documents.HealthResponse: {"to_message": fail},
        VisitRequest: {"to_message": fail},
    }
    messenger = PipeMessenger(Codec(each._replace(**wrong.get(each.value, {})) for each in CONVERSIONS))
    messenger.serve("a", lambda message, reply: reply(documents.HealthResponse("")), fail)
    messenger.serve("b", lambda message, reply: reply(7))

    async def run() -> None:
        answers: asyncio.Queue[object] = asyncio.Queue()
        with pytest.raises(UnreadableMessage, match="no message: KeyError: 'defect'"):
            await messenger.request("a", documents.StatusRequest())
        with pytest.raises(InternalError, match="KeyError: 'defect'"):
            await messenger.request("a", HealthRequest())
        with pytest.raises(KeyError, match="defect"):
            await messenger.request("a", VisitRequest(()))
        assert messenger.send_all("a", removes(0, 2), [answers.put_nowait] * 2) == 2
        assert [str(await answers.get()) for _ in range(2)] == ["KeyError: 'defect'"] * 2
        messenger.hand("b", StampRequest(), fail)
        messenger.notify("b", documents.StatusRequest())
        messenger._send(_Parcel("", messenger._next_number, []))
        assert await messenger.request("b", StampRequest()) == 7

    asyncio.run(run())
    messenger.close()
    for said in (
        "an answer was lost",
        "messages to 'a' cannot be served",
        "that nobody awaits the answer to has failed",
    ):
        assert said in caplog.text


def test_nothing_is_encoded_while_answers_wait(messenger: PipeMessenger) -> None:
    is_free: list[bool] = []

    def to_message(message: Any) -> Sent:
        is_free.append(not messenger._lock.locked())
        return stamp.to_message(message)

    stamp = messenger._codec._of_value[StampRequest]
    messenger._codec._of_value[StampRequest] = stamp._replace(to_message=to_message)
    messenger.serve("a", lambda message, reply: reply(7))
    assert messenger.call("a", StampRequest(), 30) == 7
    assert is_free == [True]


def test_a_process_that_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    messenger = PipeMessenger(Codec(CONVERSIONS))
    is_asked = threading.Event()
    messenger.serve("a", lambda message, reply: is_asked.set())

    async def run() -> None:
        waiting = messenger.request("a", documents.StatusRequest())
        await asyncio.to_thread(is_asked.wait)
        messenger._relay.kill()
        with pytest.raises(Unavailable, match="has ended"):
            await waiting
        with pytest.raises(Unavailable, match="has ended"):
            await messenger.request("a", documents.StatusRequest())
        with monkeypatch.context() as patch:
            patch.setattr(messenger, "_outgoing", SimpleQueue())
            messenger.notify("a", documents.StatusRequest())
            assert messenger._outgoing.empty()  # nobody would take it

    asyncio.run(run())
    messenger.close()
