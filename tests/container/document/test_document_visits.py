"""Visits and bulk operations over the document API: golden scripts against real content nodes, and what goes wrong."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paperwasp import limits
from paperwasp.base.env import SYSTEM, Environment
from paperwasp.base.records import replace
from paperwasp.container.document.continuations import Continuation, fingerprint
from paperwasp.container.document.v1 import DocumentApi
from paperwasp.container.document.visit_rendering import media_ranges
from paperwasp.coordination.messages.documents import ApplyRequest, VisitedDocument, VisitRequest, VisitResponse
from paperwasp.coordination.messenger import Reply
from paperwasp.document.operations import Outcome, Refusal
from paperwasp.errors import Corruption, InvalidInput, NoSpace, Overload, PaperwaspError
from paperwasp.http.messages import Request, Response, StreamedResponse
from tests.container.document.clusters import cluster, model, run_script, running, whole

SCRIPTS = Path(__file__).parent / "scripts"
CLUSTERS = (cluster("records", "music", "rock", "artist"), cluster("archive", "music", "book"))
LINES = {"accept": "application/jsonl"}
CHANGED_US = 1_700_000_000_000_000
DOCID = "/document/v1/ns/music/docid"


@pytest.mark.parametrize("name", ["visit", "bulk"])
def test_the_script(name: str, tmp_path: Path) -> None:
    with running(tmp_path, *CLUSTERS) as service:
        run_script(SCRIPTS / f"{name}.txt", service)


def test_a_visit_goes_on_after_a_restart(tmp_path: Path) -> None:
    """Also with what was not applied when it began."""
    only = cluster("records", "music")

    async def put(service: Any, *names: int) -> None:
        for name in names:
            assert (await service.send("POST", f"{DOCID}/{name}", '{"fields":{"year":1}}')).status == 200

    async def piece(service: Any, query: str) -> dict[str, Any]:
        response = await service.send("GET", f"{DOCID}?wantedDocumentCount=10&fieldSet=[id]{query}")
        found: dict[str, Any] = orjson.loads(response.body)
        return found

    with running(tmp_path, only) as service:
        asyncio.run(put(service, *range(25)))
        first = asyncio.run(piece(service, ""))
    with running(tmp_path, only) as service:
        second = asyncio.run(piece(service, f"&continuation={first['continuation']}"))
        third = asyncio.run(piece(service, f"&continuation={second['continuation']}"))
    found = [document["id"] for part in (first, second, third) for document in part["documents"]]
    assert sorted(found) == sorted(f"id:ns:music::{name}" for name in range(25))
    assert "continuation" not in third
    assert first["continuation"].isalnum()


def test_copies_are_exact(tmp_path: Path) -> None:
    """What JSON says with difficulty arrives as it was."""
    fields = {
        "title": 'Schrödinger "𝄞" \\ \t',
        "year": -(2**31),
        "plays": 2**63 - 1,
        "tags": ["", "a", "é"],
        "rating": "NaN",
        "vector": [1.5, "-Infinity"],
    }

    async def run(service: Any) -> None:
        put = await service.send("POST", f"{DOCID}/1?cluster=records", orjson.dumps({"fields": fields}))
        assert put.status == 200, put.body
        target = f"{DOCID}?cluster=records&destinationCluster=archive&selection=true"
        assert orjson.loads((await service.send("POST", target)).body)["documentCount"] == 1
        here, there = [(await service.send("GET", f"{DOCID}/1?cluster={name}")).body for name in ("records", "archive")]
        assert here == there
        assert orjson.loads(here)["fields"]["plays"] == 2**63 - 1

    with running(tmp_path, *CLUSTERS) as service:
        asyncio.run(run(service))


class FakeCluster:
    """A messenger whose content cluster answers as it is told, request by request, and has room for so many operations
    at once."""

    def __init__(
        self,
        *answers: object,
        apply: Callable[[ApplyRequest], object] = lambda _: Outcome(True),
        room: int = limits.BULK_OPERATIONS,
    ) -> None:
        self.answers = list(answers)
        self.apply = apply
        self.room = room
        self.asked: list[VisitRequest] = []
        self.applied: list[ApplyRequest] = []
        self.sent: list[int] = []
        """How many operations were sent, call by call."""
        self.in_flight = 0
        self.most_in_flight = 0
        self.pending: list[asyncio.Future[Any]] = []

    def serve(self, *_: object) -> None:
        raise NotImplementedError

    withdraw = notify = replace = call = serve

    def send_all(self, address: str, messages: Sequence[ApplyRequest], replies: Sequence[Reply]) -> int:
        assert address == "content/records"
        self.sent.append(len(messages))
        taken = messages[: self.room - self.in_flight]
        self.applied += taken
        self.in_flight += len(taken)
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        for message, reply in zip(taken, replies, strict=False):
            asyncio.get_running_loop().call_soon(self._apply, reply, message)
        return len(taken)

    def request(self, address: str, message: object) -> asyncio.Future[Any]:
        assert address == "content/records"
        assert isinstance(message, VisitRequest)
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self.asked.append(message)
        self._answer(future, self.answers.pop(0) if self.answers else None)
        return future

    ask = request

    def hand(self, address: str, message: object, reply: Callable[[object], None]) -> None:
        raise AssertionError("documents are sent and asked for")

    def _apply(self, reply: Reply, message: ApplyRequest) -> None:
        self.in_flight -= 1
        if (answer := self.apply(message)) is not None:
            reply(answer)

    def _answer(self, future: asyncio.Future[Any], answer: object) -> None:
        if isinstance(answer, BaseException):
            future.set_exception(answer)
        elif answer is None:
            self.pending.append(future)
        else:
            future.set_result(answer)


def chunk(*names: object, token: bytes | None = None) -> VisitResponse:
    documents = tuple(VisitedDocument(f"id:ns:music::{name}", b'{"year":1}', CHANGED_US) for name in names)
    return VisitResponse(documents, token, 1.0 if token is None else 0.25)


def place(number: int) -> bytes:
    return number.to_bytes(12, "big")


def api_of(fake: FakeCluster, environment: Environment = SYSTEM) -> DocumentApi:
    api = DocumentApi(fake, environment=environment)
    api.configure(model(cluster("records", "music")))
    return api


def answer(
    fake: FakeCluster,
    method: str,
    query: str,
    headers: dict[str, str] | None = None,
    body: bytes = b"",
    environment: Environment = SYSTEM,
) -> Response:
    async def run() -> Response:
        return await whole(await api_of(fake, environment).handle(Request(method, DOCID, query, headers or {}, body)))

    return asyncio.run(run())


def members(response: Response) -> dict[str, Any]:
    found: dict[str, Any] = orjson.loads(response.body)
    return found


def test_before_an_application_is_active() -> None:
    async def run() -> None:
        api = DocumentApi(FakeCluster())
        for method in ("GET", "PUT", "POST", "DELETE"):
            answer = await api.handle(Request(method, DOCID))
            assert answer.status == 503

    asyncio.run(run())


def test_no_answer_in_time() -> None:
    """504 while there is no progress; after some, what there is, with a continuation."""
    slow = answer(FakeCluster(), "GET", "timeout=20ms")
    assert slow.status == 504
    assert members(slow)["documents"] == []
    assert members(slow)["message"].startswith("No buckets visited within timeout of")
    late = answer(FakeCluster(chunk("a", token=place(1))), "GET", "timeout=50ms&wantedDocumentCount=2")
    assert late.status == 200
    assert members(late)["documentCount"] == 1
    assert members(late)["continuation"]


def test_overload() -> None:
    refused = answer(FakeCluster(Overload("256 visits are waiting already")), "GET", "")
    assert (refused.status, members(refused)["message"]) == (429, "256 visits are waiting already")
    some = answer(FakeCluster(chunk("a", token=place(1)), Overload("full")), "GET", "wantedDocumentCount=9")
    assert some.status == 200
    assert members(some)["continuation"]


def test_a_visit_that_fails() -> None:
    failed = answer(FakeCluster(Corruption("the store is damaged")), "GET", "")
    assert (failed.status, members(failed)["message"]) == (500, "the store is damaged")
    later = answer(FakeCluster(chunk("a", token=place(1)), Corruption("damaged")), "GET", "wantedDocumentCount=9")
    assert later.status == 500
    assert members(later)["documentCount"] == 1
    assert members(later)["message"] == "damaged"
    assert "continuation" not in members(later)


def test_a_stream_that_fails() -> None:
    """The status is told where nothing was sent; later, the failure and where to go on are the last that is sent."""

    def fake() -> FakeCluster:
        return FakeCluster(chunk("a", token=place(1)), chunk("b", token=place(2)), Corruption("damaged"))

    assert answer(FakeCluster(Corruption("damaged")), "GET", "stream=true").status == 500
    whole_object = answer(fake(), "GET", "stream=true", {"accept": "application/json"})
    assert whole_object.status == 200
    assert members(whole_object)["message"] == "damaged"
    assert Continuation.parse(members(whole_object)["continuation"]).token == place(2)
    lines = [orjson.loads(line) for line in answer(fake(), "GET", "stream=true", LINES).body.splitlines()]
    assert [next(iter(line)) for line in lines] == ["put", "continuation"] * 2 + [
        "message",
        "sessionStats",
        "continuation",
    ]
    assert lines[4]["message"] == {"text": "damaged", "severity": "error"}
    assert lines[5]["sessionStats"] == {"documentCount": 2}
    assert lines[6]["continuation"]["percentFinished"] == 25.0
    plain = [orjson.loads(line) for line in answer(fake(), "GET", "stream=true").body.splitlines()]
    assert [next(iter(line)) for line in plain] == ["put", "put", "message", "continuation"]


def test_a_stream_waits_for_an_overloaded_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "VISIT_RETRY_SECONDS", 0)
    fake = FakeCluster(chunk("a", token=place(1)), Overload("full"), Overload("full"), chunk("b"))
    assert members(answer(fake, "GET", "stream=true", {"accept": "application/json"}))["documentCount"] == 2


def test_a_stream_ends_when_its_time_is_over() -> None:
    """The clock stands still until the third chunk, which never comes, is asked for."""
    fake = FakeCluster(*(chunk(number, token=place(number)) for number in range(1, 3)))
    clock = Environment(monotonic_ns=lambda: 10**9 * (len(fake.asked) // 3))
    accepted = {"accept": "application/json"}
    found = members(answer(fake, "GET", "stream=true&timeout=30ms", accepted, environment=clock))
    assert found["documentCount"] == 2
    assert "message" not in found
    assert Continuation.parse(found["continuation"]).token == place(2)


async def others() -> None:
    """Returns when all that could run has run."""
    ran = asyncio.Event()
    asyncio.get_running_loop().call_soon(ran.set)
    await ran.wait()


def test_a_stream_reads_one_chunk_ahead_and_ends_with_its_client() -> None:
    async def run() -> None:
        fake = FakeCluster(*(chunk(number, token=place(number)) for number in range(1, 4)))
        response = await api_of(fake).handle(Request("GET", DOCID, "stream=true"))
        assert isinstance(response, StreamedResponse)
        await others()
        assert len(fake.asked) == 1 + 1
        chunks = response.chunks
        await anext(chunks)
        await others()
        assert len(fake.asked) == 2
        await anext(chunks)
        await anext(chunks)
        await others()
        assert len(fake.asked) == 4
        assert [request.token for request in fake.asked] == [b"", place(1), place(2), place(3)]
        await chunks.aclose()  # type: ignore[attr-defined]
        assert fake.pending[0].cancelled()

    asyncio.run(run())


def test_an_unread_stream_ends_too() -> None:
    async def run() -> None:
        fake = FakeCluster(chunk(1, token=place(1)))
        response = await api_of(fake).handle(Request("GET", DOCID, "stream=true"))
        assert isinstance(response, StreamedResponse)
        await others()
        await response.chunks.aclose()  # type: ignore[attr-defined]
        assert fake.pending[0].cancelled()

    asyncio.run(run())


UPDATE = b'{"fields":{"plays":{"increment":1}},"create":true}'
SELECTED = "cluster=records&selection=music.year==1"


def test_operations_require_the_time_of_the_visited_document() -> None:
    fake = FakeCluster(chunk("a", token=place(1)), chunk("b"))
    assert members(answer(fake, "PUT", SELECTED, body=UPDATE))["documentCount"] == 2
    operations: list[Any] = [message.operation for message in fake.applied]
    assert [operation.id.text for operation in operations] == ["id:ns:music::a", "id:ns:music::b"]
    assert {(operation.required_us, operation.condition, operation.create) for operation in operations} == {
        (CHANGED_US, None, True)
    }
    fake = FakeCluster(chunk("a"), apply=lambda _: Outcome(False, Refusal.NO_DOCUMENT))
    assert members(answer(fake, "DELETE", SELECTED)) == {"pathId": DOCID, "documentCount": 1}
    removed: Any = fake.applied[0].operation
    assert (removed.required_us, removed.condition) == (CHANGED_US, None)


def test_operations_in_flight_are_bounded() -> None:
    fake = FakeCluster(chunk(*range(1000)))
    assert members(answer(fake, "DELETE", SELECTED))["documentCount"] == 1000
    assert len(fake.applied) == 1000
    assert fake.most_in_flight == limits.BULK_OPERATIONS
    assert sum(fake.sent) == 1000
    assert set(fake.sent[:-1]) == {limits.BULK_OPERATIONS}


def test_what_there_is_no_room_for_is_sent_again_in_its_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "VISIT_RETRY_SECONDS", 0)
    fake = FakeCluster(chunk(*range(10)), room=4)
    assert members(answer(fake, "DELETE", SELECTED))["documentCount"] == 10
    assert fake.sent == [10, 6, 2]
    assert [message.operation.id.text for message in fake.applied] == [f"id:ns:music::{name}" for name in range(10)]


def test_full_queues_are_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "VISIT_RETRY_SECONDS", 0)
    tried: dict[str, int] = {}

    def apply(message: ApplyRequest) -> object:
        name = message.operation.id.text
        tried[name] = tried.get(name, 0) + 1
        return Overload("full") if tried[name] < 3 and name.endswith(("3", "7")) else Outcome(True)

    found = members(answer(FakeCluster(chunk(*range(100)), apply=apply), "DELETE", SELECTED))
    assert found == {"pathId": DOCID, "documentCount": 100}
    assert {count for name, count in tried.items() if name.endswith("7")} == {3}
    assert {count for name, count in tried.items() if name.endswith("5")} == {1}


@pytest.mark.parametrize("error", [NoSpace("the disk is full"), Corruption("damaged"), InvalidInput("no such type")])
def test_a_change_that_fails(error: PaperwaspError) -> None:
    """What is counted was done; there is no continuation, since nobody should go on."""

    def apply(message: ApplyRequest) -> object:
        return error if message.operation.id.text.endswith("b") else Outcome(True)

    fake = FakeCluster(chunk("a", token=place(1)), chunk("b", "c", token=place(2)), apply=apply)
    response = answer(fake, "PUT", SELECTED, body=UPDATE)
    assert response.status == 500
    assert members(response) == {"pathId": DOCID, "documentCount": 1, "message": error.message}


def test_a_change_that_no_field_has_room_for() -> None:
    fake = FakeCluster(chunk("a"), apply=lambda _: Outcome(True, Refusal.TOO_LARGE))
    response = answer(fake, "PUT", SELECTED, body=UPDATE)
    assert response.status == 500
    assert members(response)["message"].endswith(":a: A value would be more than its field can hold")


def test_bulk_work_stops_when_its_time_is_over() -> None:
    """With the place up to which everything is done; or 504 when nothing is."""
    fake = FakeCluster(chunk("a", token=place(1)))
    found = members(answer(fake, "DELETE", SELECTED + "&timeout=30ms"))
    assert found["documentCount"] == 1
    assert Continuation.parse(found["continuation"]).token == place(1)
    assert answer(FakeCluster(), "DELETE", SELECTED + "&timeout=20ms").status == 504
    stuck = FakeCluster(chunk("a", token=place(1)), apply=lambda _: None)
    assert answer(stuck, "DELETE", SELECTED + "&timeout=20ms").status == 504


def test_time_chunks() -> None:
    """One chunk is always worked off, and then the clock decides."""
    fake = FakeCluster(*(chunk(number, token=place(number)) for number in range(1, 9)))
    now = iter(range(0, 10**12, 40_000_000))
    api = DocumentApi(fake, environment=replace(SYSTEM, monotonic_ns=lambda: next(now)))
    api.configure(model(cluster("records", "music")))

    async def run() -> Response:
        return await whole(await api.handle(Request("DELETE", DOCID, SELECTED + "&timeChunk=200ms")))

    found = members(asyncio.run(run()))
    assert 1 <= found["documentCount"] < 8
    assert Continuation.parse(found["continuation"]).token == place(found["documentCount"])


@settings(max_examples=300, deadline=None)
@given(st.integers(0, 2**63), st.binary(max_size=12), st.text())
def test_continuations_round_trip(now_us: int, token: bytes, what: str) -> None:
    found = Continuation(now_us, fingerprint(what), token)
    assert Continuation.parse(str(found)) == found
    assert str(found).isalnum() and str(found).isascii()


@settings(max_examples=300, deadline=None)
@given(st.one_of(st.text(), st.text("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", max_size=80)))
def test_other_text_is_no_continuation(text: str) -> None:
    with pytest.raises(InvalidInput):
        Continuation.parse(text)


@settings(max_examples=300, deadline=None)
@given(st.text(), st.text('application/jsonl;q=01.,*"\\ '))
def test_accept_headers_never_crash(text: str, near: str) -> None:
    for header in (text, near):
        with suppress(InvalidInput):
            assert all(0 <= quality <= 1 for quality in media_ranges(header).values())


def test_accept_headers() -> None:
    assert media_ranges("") == {}
    assert media_ranges(' , a/b;q=0.5 ,, a/B;q=0.25, */*;x="a,b;q=9" ; q=0 ') == {"a/b": 0.5, "*/*": 0.0}
    for wrong in ("a", "a/", "a/b c/d", "a/b;q", "a/b;q=1.1", "a/b;q=0.1234", 'a/b;x="', "a/b;;q=1"):
        with pytest.raises(InvalidInput):
            media_ranges(wrong)
