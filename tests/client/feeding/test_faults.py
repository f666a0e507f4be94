"""The feed client and servers that fail: what is sent again, in which order, and that nothing is lost."""

from __future__ import annotations

import asyncio
import random
from collections import defaultdict

import pytest
from h2.errors import ErrorCodes
from h2.settings import SettingCodes
from hypothesis import given, settings
from hypothesis import strategies as st

from paperwasp.client import (
    AsyncFeedClient,
    FeedOperation,
    OperationParameters,
    OperationType,
    Outcome,
    Result,
    RetryStrategy,
)
from paperwasp.document.ids import DocumentId
from paperwasp.errors import FeedError, InvalidInput
from tests.client.feeding.fake_server import FakeServer, Request, accept
from tests.client.feeding.test_feed_client import FIELDS, run


async def put_many(client: AsyncFeedClient, count: int) -> list[Result]:
    return await asyncio.gather(*(client.put(f"id:ns:music::{number}", FIELDS) for number in range(count)))


def test_status_429_is_always_sent_again() -> None:
    async def work() -> None:
        refused: set[str] = set()

        def refuse_at_first(request: Request) -> None:
            is_new = request.path not in refused
            refused.add(request.path)
            request.answer(429 if is_new else 200)

        strategy = RetryStrategy(operations=frozenset(), retries=0)
        async with (
            FakeServer(refuse_at_first) as server,
            AsyncFeedClient(server.url, retry_strategy=strategy) as client,
        ):
            results = await put_many(client, 300)
            statistics = client.statistics()
        assert {result.outcome for result in results} == {Outcome.SUCCESS}
        assert statistics.responses_by_code == {200: 300, 429: 300}

    run(work())


def test_a_storm_of_429_leaves_few_in_flight() -> None:
    async def work() -> None:
        left = 2000

        def storm(request: Request) -> None:
            nonlocal left
            left -= 1
            request.answer(429 if left > 0 else 200)

        async with FakeServer(storm) as server, AsyncFeedClient(server.url, connections_per_endpoint=2) as client:
            await put_many(client, 50)
            client.reset_statistics()
            left = 500
            await put_many(client, 50)
            most = client.statistics().max_inflight
        assert most is not None
        assert most <= 20

    run(work())


@pytest.mark.parametrize("retries", [0, 1, 3])
def test_setting_retry_strategy_bounds_how_often_503_is_sent_again(retries: int) -> None:
    async def work() -> None:
        async with (
            FakeServer(lambda request: request.answer(503, message="soon")) as server,
            AsyncFeedClient(server.url, retry_strategy=RetryStrategy(retries=retries)) as client,
        ):
            with pytest.raises(FeedError, match=r"status 503 of POST .*: soon"):
                await client.put("id:ns:music::1", FIELDS)
        assert len(server.requests) == 1 + retries

    run(work())


@pytest.mark.parametrize("kind", ["put", "update", "remove"])
@pytest.mark.parametrize("fault", ["503", "cut", "reset"])
def test_setting_retry_strategy_by_type_of_operation(kind: str, fault: str) -> None:
    """Only what it names is sent again."""

    async def work() -> None:
        seen: set[str] = set()

        def fail_at_first(request: Request) -> None:
            is_new = request.method not in seen
            seen.add(request.method)
            if not is_new:
                accept(request)
            elif fault == "503":
                request.answer(503)
            elif fault == "cut":
                request.peer.cut()
            else:
                request.peer.reset(request.stream, ErrorCodes.INTERNAL_ERROR)

        strategy = RetryStrategy(operations={OperationType(kind)})
        async with FakeServer(fail_at_first) as server, AsyncFeedClient(server.url, retry_strategy=strategy) as client:
            for each in OperationType:
                body = None if each is OperationType.REMOVE else b'{"fields":{}}'
                future = await client.submit(FeedOperation(each, DocumentId.parse("id:ns:music::1"), body))
                if each.value == kind:
                    assert (await future).outcome is Outcome.SUCCESS
                else:
                    with pytest.raises(FeedError):
                        await future
        assert len(server.requests) == 4

    run(work())


@pytest.mark.parametrize("retries", [-1, -5])
def test_a_negative_number_of_retries_is_refused(retries: int) -> None:
    with pytest.raises(InvalidInput, match="0 or more"):
        RetryStrategy(retries=retries)


@pytest.mark.parametrize("code", [ErrorCodes.REFUSED_STREAM, ErrorCodes.INTERNAL_ERROR, ErrorCodes.ENHANCE_YOUR_CALM])
def test_a_stream_that_is_reset_is_sent_again(code: ErrorCodes) -> None:
    async def work() -> None:
        count = 0

        def reset_some(request: Request) -> None:
            nonlocal count
            count += 1
            if count % 3 == 0:
                request.peer.reset(request.stream, code)
            else:
                accept(request)

        async with FakeServer(reset_some) as server, AsyncFeedClient(server.url) as client:
            results = await put_many(client, 200)
            statistics = client.statistics()
        assert len(results) == 200
        assert statistics.exceptions == statistics.requests - statistics.responses > 90

    run(work())


def test_a_server_that_goes_away_answers_what_it_has_and_gets_the_rest_elsewhere() -> None:
    async def work() -> None:
        def leave(request: Request) -> None:
            if request.peer.number <= 8 and request.stream >= 9:
                if request.stream == 9:
                    request.peer.go_away(7)
                return  # above the last one: not worked on
            accept(request)

        async with FakeServer(leave) as server, AsyncFeedClient(server.url) as client:
            results = await put_many(client, 300)
        assert {result.outcome for result in results} == {Outcome.SUCCESS}
        assert len(server.peers) > 8

    run(work())


def test_a_connection_that_is_cut_in_the_middle_of_an_answer() -> None:
    async def work() -> None:
        def cut_some(request: Request) -> None:
            if request.peer.number % 2 and request.stream > 5:
                request.peer.h2.send_headers(request.stream, [(":status", "200"), ("content-length", "20")])
                request.peer.h2.send_data(request.stream, b'{"pathId":')
                request.peer.flush()
                request.peer.transport.close()
            else:
                accept(request)

        async with FakeServer(cut_some) as server, AsyncFeedClient(server.url) as client:
            results = await put_many(client, 300)
        assert {result.outcome for result in results} == {Outcome.SUCCESS}

    run(work())


def test_bytes_that_are_no_http2_fail_the_handshake() -> None:
    async def work() -> None:
        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.read(10)
            writer.write(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
            writer.close()

        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        with pytest.raises(FeedError, match="does not speak HTTP/2"):
            async with AsyncFeedClient(f"http://127.0.0.1:{port}"):
                pass
        server.close()

    run(work())


def test_an_operation_without_an_answer_ends_by_its_timeout() -> None:
    async def work() -> None:
        def answer_others(request: Request) -> None:
            if "timeout" not in request.path:
                accept(request)

        async with FakeServer(answer_others) as server, AsyncFeedClient(server.url) as client:
            late = client.put("id:ns:music::1", FIELDS, OperationParameters(timeout_seconds=0.01))
            behind = asyncio.create_task(client.put("id:ns:music::1", FIELDS))
            other = asyncio.create_task(client.put("id:ns:music::2", FIELDS))
            started = asyncio.get_running_loop().time()
            with pytest.raises(FeedError, match="no answer in time"):
                await late
            assert asyncio.get_running_loop().time() - started >= 1.01
            assert (await behind).outcome is Outcome.SUCCESS
            assert (await other).outcome is Outcome.SUCCESS
            # The request before the last one on its connection: the server has learnt of its end by then.
            assert (server.resets[0][1], len(server.requests)) == (ErrorCodes.CANCEL, 3)

    run(work())


def test_setting_connection_time_to_live() -> None:
    async def work() -> None:
        options = {"connections_per_endpoint": 1, "connection_time_to_live_seconds": 0.02}
        async with FakeServer() as server, AsyncFeedClient(server.url, **options) as client:  # type: ignore[arg-type]
            while len(server.peers) < 4:
                await client.put("id:ns:music::1", FIELDS)
            statistics = client.statistics()
        assert statistics.exceptions == 0
        assert statistics.responses_by_code == {200: statistics.requests}

    run(work())


@pytest.mark.parametrize("value", [0, -1])
def test_a_time_to_live_that_cannot_be(value: float) -> None:
    with pytest.raises(InvalidInput, match="connection_time_to_live_seconds"):
        AsyncFeedClient("http://127.0.0.1:1", connection_time_to_live_seconds=value)


def test_a_server_that_comes_back_gets_everything() -> None:
    async def work() -> None:
        first = FakeServer(lambda request: request.peer.cut())
        async with first, AsyncFeedClient(first.url) as client:
            tasks = [asyncio.create_task(client.put(f"id:ns:music::{number}", FIELDS)) for number in range(50)]
            while not first.requests:
                await asyncio.wait(tasks, timeout=0.001)
            await first.stop()
            await asyncio.wait(tasks, timeout=0.02)
            async with FakeServer(port=first.port) as second:
                results = await asyncio.gather(*tasks)
                assert len(second.requests) == 50
        assert {result.outcome for result in results} == {Outcome.SUCCESS}

    run(work())


@pytest.mark.parametrize(
    "values",
    [
        {SettingCodes.INITIAL_WINDOW_SIZE: 20_000},
        {SettingCodes.MAX_CONCURRENT_STREAMS: 1},
        {SettingCodes.HEADER_TABLE_SIZE: 0},
    ],
)
def test_settings_of_servers(values: dict[SettingCodes | int, int]) -> None:
    async def work() -> None:
        body = b'{"fields":{"a":"' + b"b" * 100_000 + b'"}}'
        async with (
            FakeServer(settings=values) as server,
            AsyncFeedClient(server.url, compression="none", connections_per_endpoint=2) as client,
        ):
            await asyncio.gather(*(client.put(f"id:ns:music::{number}", body) for number in range(20)))
        assert {request.body for request in server.requests} == {body}

    run(work())


@pytest.mark.parametrize("reads", [True, False])
def test_bodies_that_are_larger_than_windows_and_buffers(reads: bool) -> None:
    """They go out in parts, as the server reads; where it reads nothing, they wait until their time is over."""

    async def work() -> None:
        bodies = [str(number).encode() * 3_000_000 for number in range(8)]
        parameters = OperationParameters(timeout_seconds=30 if reads else 0.01)
        async with (
            FakeServer(reads=reads) as server,
            AsyncFeedClient(server.url, compression="none", connections_per_endpoint=2) as client,
        ):
            puts = (client.put(f"id:ns:music::{body[0]}", body, parameters) for body in bodies)
            results = await asyncio.gather(*puts, return_exceptions=True)
        if reads:
            assert sorted(request.body for request in server.requests) == bodies
        else:
            assert {type(result) for result in results} == {FeedError}

    run(work())


class Unruly:
    """A server that fails by chance, and keeps what it has taken of each document."""

    def __init__(self, seed: int, faults: list[str]) -> None:
        self.chance = random.Random(seed)
        self.faults = faults
        self.taken: dict[str, list[int]] = defaultdict(list)

    def __call__(self, request: Request) -> None:
        path = request.path.partition("?")[0]
        fault = self.chance.choice([*self.faults, "none", "none", "none"])
        if fault == "refuse":
            request.peer.reset(request.stream, ErrorCodes.REFUSED_STREAM)
            return
        if fault in ("429", "503"):
            request.answer(int(fault))
            return
        if fault == "cut before":
            request.peer.cut()
            return
        self.taken[path].append(int(request.body))
        if fault == "cut after":
            request.peer.cut()
        elif fault == "late":
            asyncio.get_running_loop().call_later(self.chance.random() * 0.01, request.answer)
        elif fault == "garbage":
            request.peer.transport.write(self.chance.randbytes(20))
        elif fault == "leave":
            request.answer()
            request.peer.go_away(request.stream)
        else:
            request.answer()


@settings(max_examples=25)
@given(
    st.integers(0, 2**32),
    st.lists(
        st.sampled_from(["refuse", "429", "503", "cut before", "cut after", "late", "garbage", "leave"]), max_size=3
    ),
    st.lists(st.integers(0, 8), min_size=1, max_size=120),
)
def test_operations_on_one_document_keep_their_order_and_none_is_lost(
    seed: int, faults: list[str], documents: list[int]
) -> None:
    """Whatever is sent again: what a server takes of a document never goes back, and each operation has its result."""

    async def work() -> None:
        unruly = Unruly(seed, faults)
        async with FakeServer(unruly) as server, AsyncFeedClient(server.url, connections_per_endpoint=3) as client:
            tasks = [
                asyncio.create_task(client.put(f"id:ns:music::{document}", str(number)))
                for number, document in enumerate(documents)
            ]
            results = await asyncio.gather(*tasks)
        assert [result.document_id.user_specified for result in results] == [str(each) for each in documents]
        assert {result.outcome for result in results} == {Outcome.SUCCESS}
        for path, taken in unruly.taken.items():
            assert taken == sorted(taken), path
            document = int(path.rpartition("/")[2])
            assert sorted(set(taken)) == [number for number, each in enumerate(documents) if each == document]

    run(work())
