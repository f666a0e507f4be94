"""The feed client against a server that does as its script says: requests, results, settings, statistics, closing.

Rows of the specification's table of the feed client's settings have a test of their name each.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import threading
from collections import Counter
from collections.abc import Coroutine
from typing import Any

import pytest

from paperwasp.client import (
    AsyncFeedClient,
    CircuitState,
    FeedClient,
    FeedOperation,
    OperationParameters,
    OperationType,
    Outcome,
    RetryStrategy,
    results_of,
)
from paperwasp.document.ids import DocumentId
from paperwasp.errors import (
    FeedError,
    InvalidInput,
    MultiFeedError,
    OperationAborted,
    ResultError,
    ResultParseError,
)
from tests.client.feeding.fake_server import FakeServer, Request, accept

FIELDS = {"fields": {"title": "a"}}


def run(work: Coroutine[Any, Any, None]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(60):
            await work

    asyncio.run(bounded())


def test_put_update_and_remove_are_requests_of_the_document_api() -> None:
    async def work() -> None:
        async with FakeServer() as server, AsyncFeedClient(server.url) as client:
            put = await client.put("id:ns:music::a b", FIELDS)
            await client.update("id:ns:music:n=5:x", '{"fields":{"n":{"increment":1}}}')
            await client.remove("id:ns:music:g=a/b:x")
        assert (put.outcome, put.message, put.trace) == (Outcome.SUCCESS, None, None)
        assert put.document_id == DocumentId.parse("id:ns:music::a b")
        assert [(request.method, request.path) for request in server.requests] == [
            ("POST", "/document/v1/ns/music/docid/a%20b"),
            ("PUT", "/document/v1/ns/music/number/5/x"),
            ("DELETE", "/document/v1/ns/music/group/a%2Fb/x"),
        ]
        assert server.requests[0].json() == FIELDS
        assert server.requests[1].body == b'{"fields":{"n":{"increment":1}}}'
        assert server.requests[2].body == b""
        heads = [request.headers for request in server.requests]
        assert [head.get("content-type") for head in heads] == ["application/json", "application/json", None]
        assert heads[0][":authority"] == f"127.0.0.1:{server.port}"
        assert heads[0]["user-agent"].startswith("paperwasp-feed-client/")

    run(work())


@pytest.mark.parametrize(
    ("parameters", "query"),
    [
        (OperationParameters(create_if_non_existent=True), "?create=true"),
        (OperationParameters(timeout_seconds=1.5), "?timeout=1500ms"),
        (OperationParameters(route="a b"), "?route=a%20b"),
        (OperationParameters(tracelevel=9), "?tracelevel=9"),
        (OperationParameters(test_and_set_condition="music.n > 1&2"), "?condition=music.n%20%3E%201%262"),
        (OperationParameters(True, 2, "r", 0, "c"), "?create=true&condition=c&timeout=2000ms&route=r&tracelevel=0"),
    ],
    ids=["createIfNonExistent", "timeout", "route", "tracelevel", "testAndSetCondition", "all"],
)
def test_operation_parameter(parameters: OperationParameters, query: str) -> None:
    async def work() -> None:
        async with FakeServer() as server, AsyncFeedClient(server.url) as client:
            await client.update("id:ns:music::1", FIELDS, parameters)
        assert server.requests[0].path == f"/document/v1/ns/music/docid/1{query}"

    run(work())


@pytest.mark.parametrize("parameters", [OperationParameters(tracelevel=10), OperationParameters(timeout_seconds=0)])
def test_parameters_that_cannot_be_are_refused(parameters: OperationParameters) -> None:
    async def work() -> None:
        client = AsyncFeedClient("http://127.0.0.1:1")
        with pytest.raises(InvalidInput):
            await client.put("id:ns:music::1", FIELDS, parameters)
        await client.close()

    run(work())


def test_status_412_is_a_result() -> None:
    async def work() -> None:
        async with (
            FakeServer(lambda request: request.answer(412, message="no")) as server,
            AsyncFeedClient(server.url) as client,
        ):
            result = await client.put("id:ns:music::1", FIELDS)
        assert (result.outcome, result.message) == (Outcome.CONDITION_NOT_MET, "no")
        assert result.outcome.value == "conditionNotMet"

    run(work())


def test_a_trace_is_in_the_result() -> None:
    async def work() -> None:
        trace = [{"message": "a"}, {"fork": [{"message": "b"}]}]
        async with (
            FakeServer(lambda request: request.answer(trace=trace)) as server,
            AsyncFeedClient(server.url) as client,
        ):
            result = await client.put("id:ns:music::1", FIELDS, OperationParameters(tracelevel=1))
        assert result.trace == trace

    run(work())


@pytest.mark.parametrize("status", [502, 504, 507])
def test_a_failure_of_the_service_is_a_result_error(status: int) -> None:
    async def work() -> None:
        async with (
            FakeServer(lambda request: request.answer(status, message="no", trace=[1])) as server,
            AsyncFeedClient(server.url) as client,
        ):
            with pytest.raises(ResultError) as raised:
                await client.put("id:ns:music::1", FIELDS)
        assert (raised.value.bare_message, raised.value.trace) == ("no", [1])
        assert raised.value.document_id == "id:ns:music::1"
        assert len(server.requests) == 1

    run(work())


@pytest.mark.parametrize("status", [201, 204, 302, 400, 404, 413, 500])
def test_any_other_status_is_a_feed_error(status: int) -> None:
    async def work() -> None:
        async with (
            FakeServer(lambda request: request.answer(status, message="no")) as server,
            AsyncFeedClient(server.url) as client,
        ):
            with pytest.raises(FeedError, match=rf"status {status} of PUT /document/v1/ns/music/docid/1: no") as raised:
                await client.update("id:ns:music::1", FIELDS)
        assert type(raised.value) is FeedError
        assert len(server.requests) == 1

    run(work())


@pytest.mark.parametrize("body", [b"", b"<html>", b"[]", b'"a"', b'{"trace": {}}', b"\xff\x00", b'{"a": 1'])
@pytest.mark.parametrize("status", [200, 412, 500])
def test_a_body_that_is_not_one_of_the_document_api_is_a_parse_error(status: int, body: bytes) -> None:
    async def work() -> None:
        async with (
            FakeServer(lambda request: request.answer(status, body)) as server,
            AsyncFeedClient(server.url) as client,
        ):
            with pytest.raises(ResultParseError, match=f"status {status}"):
                await client.put("id:ns:music::1", FIELDS)

    run(work())


@pytest.mark.parametrize(
    ("compression", "body_bytes", "is_gzip"),
    [("auto", 512, False), ("auto", 513, True), ("gzip", 10, True), ("none", 5000, False)],
)
def test_setting_compression(compression: str, body_bytes: int, is_gzip: bool) -> None:
    async def work() -> None:
        body = b"{}".ljust(body_bytes)
        async with FakeServer() as server, AsyncFeedClient(server.url, compression=compression) as client:
            await client.put("id:ns:music::1", body)
        request = server.requests[0]
        assert request.headers.get("content-encoding") == ("gzip" if is_gzip else None)
        assert (gzip.decompress(request.body) if is_gzip else request.body) == body
        assert request.headers["content-length"] == str(len(request.body))

    run(work())


def test_headers_and_tokens_are_sent_with_each_request() -> None:
    async def work() -> None:
        tokens = iter(f"t{number}" for number in range(200))
        headers = {"X-Own": "é", "user-agent": "mine"}
        async with (
            FakeServer() as server,
            AsyncFeedClient(server.url, headers=headers, token=lambda: next(tokens)) as client,
        ):
            for number in range(150):
                await client.put(f"id:ns:music::{number}", FIELDS)
        heads = [request.headers for request in server.requests]
        assert {(head["x-own"], head["user-agent"]) for head in heads} == {("é", "mine")}
        assert len({head["authorization"] for head in heads}) > 100
        assert all(head["authorization"].startswith("Bearer t") for head in heads)

    run(work())


@pytest.mark.parametrize("header", [{"Content-Length": "1"}, {":path": "/"}, {"": "a"}, {"host": "a"}])
def test_headers_of_the_client_itself_are_refused(header: dict[str, str]) -> None:
    with pytest.raises(InvalidInput):
        AsyncFeedClient("http://127.0.0.1:1", headers=header)


@pytest.mark.parametrize("value", ["a\r\nb: c", "a\0", "a\nb"])
def test_a_header_with_a_line_break_fails_its_operation(value: str) -> None:
    async def work() -> None:
        async with FakeServer() as server:
            client = AsyncFeedClient(server.url, headers={"x": value}, verifies_connection=False)
            async with client:
                with pytest.raises(FeedError, match="cannot be sent"):
                    await client.put("id:ns:music::1", FIELDS)
        assert server.requests == []

    run(work())


@pytest.mark.parametrize("url", ["", "127.0.0.1", "ftp://a", "http://", "http://a:b", "http://a/path", "http://a?b"])
def test_other_addresses_are_refused(url: str) -> None:
    with pytest.raises(InvalidInput, match="is not an address"):
        AsyncFeedClient(url)


def test_setting_endpoints_distribute_the_load() -> None:
    async def work() -> None:
        async with FakeServer() as one, FakeServer() as two:
            async with AsyncFeedClient([one.url, two.url]) as client:
                await asyncio.gather(*(client.put(f"id:ns:music::{number}", FIELDS) for number in range(400)))
            counts = len(one.requests), len(two.requests)
        assert sum(counts) == 400
        assert min(counts) > 50

    run(work())


def test_an_endpoint_that_is_down_takes_no_operations() -> None:
    async def work() -> None:
        async with FakeServer() as down:
            pass
        async with FakeServer() as up, AsyncFeedClient([down.url, up.url]) as client:
            await asyncio.gather(*(client.put(f"id:ns:music::{number}", FIELDS) for number in range(100)))
            assert client.statistics().successes == 100
        assert len(up.requests) == 100

    run(work())


@pytest.mark.parametrize(("connections", "streams"), [(2, 1), (1, 2), (5, 2), (1, 1)])
def test_setting_connections_per_endpoint_and_max_streams_per_connection(connections: int, streams: int) -> None:
    """They bound what is in flight, and the client begins with two requests a connection, so that all of it is used."""

    async def work() -> None:
        held: list[Request] = []
        most_of_a_peer = 0

        def hold(request: Request) -> None:
            nonlocal most_of_a_peer
            held.append(request)
            most_of_a_peer = max(most_of_a_peer, *Counter(each.peer.number for each in held).values())
            if len(held) == connections * streams:
                for each in held:
                    each.answer()
                held.clear()

        options: Any = {"connections_per_endpoint": connections, "max_streams_per_connection": streams}
        async with FakeServer(hold) as server, AsyncFeedClient(server.url, **options) as client:
            await asyncio.gather(*(client.put(f"id:ns:music::{number}", FIELDS) for number in range(100)))
            statistics = client.statistics()
        assert len(server.peers) == connections
        assert most_of_a_peer == streams
        assert statistics.max_inflight == connections * streams

    run(work())


def test_statistics_count_and_are_reset() -> None:
    async def work() -> None:
        answers = iter([200, 429, 412, 503, 200])
        async with (
            FakeServer(lambda request: request.answer(next(answers))) as server,
            AsyncFeedClient(server.url) as client,
        ):
            client.reset_statistics()
            for number in range(3):
                await client.put(f"id:ns:music::{number}", FIELDS)
            statistics = client.statistics()
            client.reset_statistics()
            empty = client.statistics()
        assert statistics.requests == statistics.responses == 5
        assert statistics.responses_by_code == {200: 2, 429: 1, 412: 1, 503: 1}
        assert (statistics.successes, statistics.exceptions, statistics.inflight) == (2, 0, 0)
        assert (statistics.min_inflight, statistics.max_inflight) == (1, 1)
        assert statistics.bytes_sent == sum(len(request.body) for request in server.requests)
        assert statistics.bytes_received == sum(
            len(json.dumps({"pathId": request.path})) for request in server.requests
        )
        least, mean, most = statistics.min_latency_ms, statistics.average_latency_ms, statistics.max_latency_ms
        assert least is not None and mean is not None and most is not None
        assert 0 < least <= mean <= most
        assert (empty.requests, empty.responses, empty.average_latency_ms, empty.min_inflight) == (0, 0, None, None)

    run(work())


def test_a_graceful_close_waits_for_what_is_in_flight() -> None:
    async def work() -> None:
        held: list[Request] = []
        has_come = asyncio.Event()

        def hold(request: Request) -> None:
            held.append(request)
            has_come.set()

        async with FakeServer(hold) as server:
            client = AsyncFeedClient(server.url)
            async with client:
                future = await client.submit(_operation(1))
                closing = asyncio.create_task(client.close())
                await has_come.wait()
                assert not closing.done()
                with pytest.raises(OperationAborted):
                    await client.put("id:ns:music::2", FIELDS)
                held[0].answer()
                assert (await future).outcome is Outcome.SUCCESS
                await closing
            assert client.statistics().requests == 1

    run(work())


def test_an_abrupt_close_aborts_what_is_in_flight() -> None:
    async def work() -> None:
        async with FakeServer(lambda request: None) as server:
            client = AsyncFeedClient(server.url)
            async with client:
                futures = [await client.submit(_operation(number % 3)) for number in range(9)]
                await client.close(graceful=False)
                for future in futures:
                    with pytest.raises(OperationAborted):
                        await future

    run(work())


def _operation(number: int) -> FeedOperation:
    return FeedOperation(OperationType.PUT, DocumentId.parse(f"id:ns:music::{number}"), b'{"fields":{}}')


@pytest.mark.parametrize("status", [400, 401, 404, 500])
def test_a_handshake_that_is_refused_is_an_error(status: int) -> None:
    async def work() -> None:
        async with FakeServer(handshake=lambda request: request.answer(status, message="go away")) as server:
            with pytest.raises(FeedError, match=rf"handshake with status {status}: go away"):
                async with AsyncFeedClient(server.url):
                    pass

    run(work())


def test_the_handshake_of_a_server_without_dry_runs_succeeds() -> None:
    async def work() -> None:
        message = "Could not read document, no document?"
        async with (
            FakeServer(handshake=lambda request: request.answer(400, message=message)) as server,
            AsyncFeedClient(server.url) as client,
        ):
            await client.put("id:ns:music::1", FIELDS)
            assert client.statistics().responses_by_code == {200: 1}, "it is no operation, and not counted"

    run(work())


def test_a_server_that_is_not_there_is_an_error() -> None:
    async def work() -> None:
        async with FakeServer() as server:
            pass
        with pytest.raises(FeedError, match=r"no connection to http://127\.0\.0\.1"):
            async with AsyncFeedClient(server.url):
                pass

    run(work())


class Threaded:
    """A fake server on an event loop of a thread."""

    def __init__(self, server: FakeServer) -> None:
        self.server = server

    def __enter__(self) -> FakeServer:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever)
        self._thread.start()
        return asyncio.run_coroutine_threadsafe(self.server.__aenter__(), self.loop).result()

    def __exit__(self, *_: object) -> None:
        asyncio.run_coroutine_threadsafe(self.server.stop(), self.loop).result()
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()
        self.loop.close()


def test_blocking_calls_give_futures() -> None:
    with Threaded(FakeServer()) as server, FeedClient(server.url) as client:
        futures = [client.put(f"id:ns:music::{number}", FIELDS) for number in range(500)]
        futures += [client.update("id:ns:music::1", FIELDS), client.remove("id:ns:music::1")]
        results = results_of(futures)
        assert [result.document_id.text for result in results[:500]] == [f"id:ns:music::{n}" for n in range(500)]
        assert client.statistics().successes == 502
        assert client.circuit_state is CircuitState.CLOSED
        client.reset_statistics()
        assert client.statistics().requests == 0


def test_a_function_of_a_future_may_send_more() -> None:
    with Threaded(FakeServer()) as server, FeedClient(server.url) as client:
        more: list[Any] = []
        first = client.put("id:ns:music::1", FIELDS)
        first.add_done_callback(lambda _: more.append(client.put("id:ns:music::2", FIELDS)))
        first.result()
        client.close()
        assert len(more) == 1
        assert more[0].result().outcome is Outcome.SUCCESS


def test_results_of_several_operations_are_one_error() -> None:
    def odd(request: Request) -> None:
        accept(request) if int(request.path[-1]) % 2 else request.answer(400, message="even")

    with Threaded(FakeServer(odd)) as server, FeedClient(server.url) as client:
        futures = [client.put(f"id:ns:music::{number}", FIELDS) for number in range(6)]
        with pytest.raises(MultiFeedError) as raised:
            results_of(futures)
        assert [error.document_id for error in raised.value.errors] == [f"id:ns:music::{n}" for n in (0, 2, 4)]


def test_closing_ends_the_thread_and_refuses_more() -> None:
    with Threaded(FakeServer(lambda request: None)) as server:
        client = FeedClient(server.url, retry_strategy=RetryStrategy(retries=0))
        future = client.put("id:ns:music::1", FIELDS)
        client.close(graceful=False)
        with pytest.raises(OperationAborted):
            future.result()
        with pytest.raises(OperationAborted):
            client.put("id:ns:music::1", FIELDS)
        client.close()
        assert client.statistics().inflight == 0
