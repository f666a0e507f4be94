"""The feed client: its operations and their parameters against the running service, and its circuit breaker."""

from __future__ import annotations

import asyncio
from concurrent.futures import Future
from typing import Any

import pytest

from paperwasp.client import (
    AsyncFeedClient,
    CircuitState,
    FeedClient,
    GracePeriodBreaker,
    OperationParameters,
    OperationType,
    Outcome,
    Result,
    RetryStrategy,
    results_of,
)
from paperwasp.errors import FeedError, InvalidInput
from tests.client.feeding.fake_server import FakeServer
from tests.conformance.conftest import Served

FIELDS = {"fields": {"text": "fed", "stars": 1}}


def stars(served: Served, name: str) -> int | None:
    """Return the field of `id:fed:note::<name>`; None: there is no such document."""
    answer = served.document("GET", f"fed/note/docid/{name}")
    found: int | None = answer.json()["fields"].get("stars") if answer.status_code == 200 else None
    return found


def test_operations_give_results_later(served: Served) -> None:
    with FeedClient(served.url) as client:
        futures = [client.put(f"id:fed:note::{number}", FIELDS) for number in range(100)]
        assert all(isinstance(future, Future) for future in futures)
        results = results_of(futures)
        assert [str(result.document_id.text) for result in results] == [f"id:fed:note::{n}" for n in range(100)]
        assert {result.outcome for result in results} == {Outcome.SUCCESS}
        changed = client.update("id:fed:note::0", {"fields": {"stars": {"assign": 7}}}).result()
        removed = client.remove("id:fed:note::1").result()
    assert (changed.document_id.text, removed.document_id.text) == ("id:fed:note::0", "id:fed:note::1")
    assert [stars(served, str(number)) for number in range(3)] == [7, None, 1]


def test_a_compressed_body_is_read(served: Served) -> None:
    with FeedClient(served.url, compression="gzip") as client:
        client.put("id:fed:note::gzip", {"fields": {"text": "long " * 500, "stars": 3}}).result()
    assert stars(served, "gzip") == 3


def test_several_connections_to_several_endpoints(served: Served) -> None:
    """Two addresses of one container are two endpoints."""
    addresses = [served.url, served.url.replace("127.0.0.1", "localhost")]
    with FeedClient(addresses, connections_per_endpoint=2, max_streams_per_connection=4) as client:
        results_of([client.put(f"id:fed:note::many{number}", FIELDS) for number in range(200)])
        most = client.statistics().max_inflight
    assert most is not None and 1 <= most <= 2 * 2 * 4
    assert [stars(served, f"many{number}") for number in (0, 199)] == [1, 1]


def test_what_is_created_if_it_does_not_exist(served: Served) -> None:
    change = {"fields": {"stars": {"assign": 5}}}
    with FeedClient(served.url) as client:
        client.update("id:fed:note::absent", change).result()
        assert stars(served, "absent") is None
        client.update("id:fed:note::absent", change, OperationParameters(create_if_non_existent=True)).result()
    assert stars(served, "absent") == 5


def test_a_condition(served: Served) -> None:
    def remove_if(client: FeedClient, condition: str) -> Result:
        return client.remove("id:fed:note::if", OperationParameters(test_and_set_condition=condition)).result()

    with FeedClient(served.url) as client:
        client.put("id:fed:note::if", FIELDS).result()
        assert remove_if(client, "note.stars == 2").outcome is Outcome.CONDITION_NOT_MET
        assert stars(served, "if") == 1
        assert remove_if(client, "note.stars == 1").outcome is Outcome.SUCCESS
    assert stars(served, "if") is None


def test_the_timeout_and_the_trace_level(served: Served) -> None:
    with FeedClient(served.url) as client:
        traced = client.put("id:fed:note::1", FIELDS, OperationParameters(timeout_seconds=5, tracelevel=1)).result()
        assert traced.trace is not None and "within 5000 ms" in str(traced.trace)
        assert client.put("id:fed:note::1", FIELDS).result().trace is None
        for wrong in (OperationParameters(tracelevel=10), OperationParameters(timeout_seconds=0)):
            with pytest.raises(InvalidInput):
                client.put("id:fed:note::1", FIELDS, wrong)


def test_a_route(served: Served) -> None:
    with FeedClient(served.url) as client:
        client.put("id:fed:note::routed", FIELDS, OperationParameters(route="records")).result()
        with pytest.raises(FeedError, match="nowhere"):
            client.put("id:fed:note::lost", FIELDS, OperationParameters(route="nowhere")).result()
    assert (stars(served, "routed"), stars(served, "lost")) == (1, None)


def test_statistics_and_their_reset(served: Served) -> None:
    with FeedClient(served.url, verifies_connection=False) as client:
        results_of([client.put(f"id:fed:note::{number}", FIELDS) for number in range(50)])
        found = client.statistics()
        assert (found.requests, found.responses, found.successes) == (50, 50, 50)
        assert found.average_latency_ms is not None and found.average_latency_ms > 0
        assert found.min_inflight is not None and found.max_inflight is not None
        assert 1 <= found.min_inflight <= found.max_inflight <= 50
        client.reset_statistics()
        empty = client.statistics()
        assert (empty.requests, empty.responses, empty.average_latency_ms) == (0, 0, None)
        assert (empty.min_inflight, empty.max_inflight) == (None, None)


def test_closing_waits_for_what_is_in_flight(served: Served) -> None:
    client = FeedClient(served.url)
    futures = [client.put(f"id:fed:note::closed{number}", FIELDS) for number in range(100)]
    client.close()
    assert all(future.done() for future in futures)
    assert {result.outcome for result in results_of(futures)} == {Outcome.SUCCESS}
    assert stars(served, "closed99") == 1
    with pytest.raises(FeedError):
        client.put("id:fed:note::late", FIELDS)


def test_an_abrupt_close_leaves_nothing_open(served: Served) -> None:
    """An operation is done or aborted, and its future says which."""
    client = FeedClient(served.url)
    futures = [client.put(f"id:fed:note::cut{number}", FIELDS) for number in range(100)]
    client.close(graceful=False)
    assert all(future.done() for future in futures)
    for number, future in enumerate(futures):
        if future.exception() is None:
            assert stars(served, f"cut{number}") == 1


@pytest.mark.parametrize("kind", OperationType)
def test_a_strategy_says_for_each_kind_whether_and_how_often(kind: OperationType) -> None:
    strategy = RetryStrategy(operations=frozenset({kind}), retries=2)
    assert [strategy.allows(kind, attempts) for attempts in (1, 2, 3)] == [True, True, False]
    assert [strategy.allows(other, 1) for other in OperationType if other is not kind] == [False, False]


@pytest.mark.parametrize("kind", OperationType)
def test_what_is_sent_again(kind: OperationType) -> None:
    """A server that is never ready is asked once, and as often again as the strategy says for that kind."""

    async def send(retries: int, operations: frozenset[OperationType]) -> int:
        strategy = RetryStrategy(operations=operations, retries=retries)
        async with (
            FakeServer(lambda request: request.answer(503, message="not now")) as server,
            AsyncFeedClient(server.url, retry_strategy=strategy) as client,
        ):
            with pytest.raises(FeedError):
                if kind is OperationType.REMOVE:
                    await client.remove("id:fed:note::1")
                elif kind is OperationType.PUT:
                    await client.put("id:fed:note::1", FIELDS)
                else:
                    await client.update("id:fed:note::1", {"fields": {"stars": {"assign": 1}}})
            return len(server.requests)

    assert asyncio.run(send(2, frozenset({kind}))) == 3
    assert asyncio.run(send(0, frozenset({kind}))) == 1
    assert asyncio.run(send(2, frozenset(OperationType) - {kind})) == 1


def test_connections_are_replaced_when_their_time_is_over() -> None:
    async def work(seconds: float) -> int:
        async with FakeServer() as server:
            options: Any = {"connections_per_endpoint": 1, "connection_time_to_live_seconds": seconds}
            async with AsyncFeedClient(server.url, verifies_connection=False, **options) as client:
                for number in range(300):
                    await client.put(f"id:fed:note::{number}", FIELDS)
                    if len(server.peers) == 3:
                        break
            return len(server.peers)

    assert asyncio.run(work(0.001)) == 3
    assert asyncio.run(work(3600)) == 1


def breaker(seconds: list[float]) -> GracePeriodBreaker:
    """A breaker with a grace period of 10 s and a doom period of 60 s, by the clock in the list."""
    return GracePeriodBreaker(grace_seconds=10, doom_seconds=60, clock=lambda: seconds[0])


def state_of(circuit: GracePeriodBreaker) -> CircuitState:
    """Return the state as of now: it changes with the clock."""
    return circuit.state


def test_failures_for_the_grace_period_half_open_the_circuit() -> None:
    clock = [100.0]
    circuit = breaker(clock)
    assert state_of(circuit) is CircuitState.CLOSED
    clock[0] += 1000  # without failures nothing happens
    assert state_of(circuit) is CircuitState.CLOSED
    circuit.failure("refused")
    clock[0] += 10
    assert state_of(circuit) is CircuitState.CLOSED
    clock[0] += 0.1
    assert state_of(circuit) is CircuitState.HALF_OPEN


def test_failures_for_the_doom_period_open_it() -> None:
    clock = [0.0]
    circuit = breaker(clock)
    circuit.failure("refused")
    clock[0] = 60.0
    assert state_of(circuit) is CircuitState.HALF_OPEN
    clock[0] = 60.1
    assert state_of(circuit) is CircuitState.OPEN
    circuit.success()
    assert state_of(circuit) is CircuitState.OPEN


def test_a_success_closes_it() -> None:
    clock = [0.0]
    circuit = breaker(clock)
    circuit.failure("refused")
    clock[0] = 30.0
    assert state_of(circuit) is CircuitState.HALF_OPEN
    circuit.success()
    assert state_of(circuit) is CircuitState.CLOSED
    clock[0] = 35.0
    circuit.failure("refused")  # both periods begin again
    clock[0] = 44.0
    assert state_of(circuit) is CircuitState.CLOSED
