"""The circuit breaker of the feed client, row by row of the specification's table, and the client under it."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paperwasp.client import (
    AsyncFeedClient,
    CircuitBreaker,
    CircuitState,
    FusedBreaker,
    GracePeriodBreaker,
    Outcome,
    RetryStrategy,
)
from paperwasp.errors import InvalidInput, OperationAborted
from tests.client.feeding.fake_server import FakeServer, Request
from tests.client.feeding.test_feed_client import FIELDS, run


def state_of(breaker: CircuitBreaker) -> CircuitState:
    return breaker.state


class Clock:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_closed_becomes_half_open_when_failures_persist_for_the_grace_period() -> None:
    clock = Clock()
    breaker = GracePeriodBreaker(10, clock=clock)
    breaker.failure("first")
    clock.now += 10
    breaker.failure("second")
    assert state_of(breaker) is CircuitState.CLOSED
    clock.now += 0.001
    assert state_of(breaker) is CircuitState.HALF_OPEN
    assert breaker.first_failure == "first"


def test_half_open_becomes_open_when_failures_persist_for_the_doom_period() -> None:
    clock = Clock()
    breaker = GracePeriodBreaker(10, 60, clock)
    breaker.failure("first")
    clock.now += 60
    assert state_of(breaker) is CircuitState.HALF_OPEN
    clock.now += 0.001
    assert state_of(breaker) is CircuitState.OPEN
    breaker.success()
    assert state_of(breaker) is CircuitState.OPEN


def test_a_success_closes_a_circuit_that_is_half_open() -> None:
    clock = Clock()
    breaker = GracePeriodBreaker(10, 60, clock)
    breaker.failure("first")
    clock.now += 30
    assert state_of(breaker) is CircuitState.HALF_OPEN
    breaker.success()
    assert state_of(breaker) is CircuitState.CLOSED
    clock.now += 100
    breaker.failure("another")
    clock.now += 10
    assert state_of(breaker) is CircuitState.CLOSED


def test_the_grace_period_is_ten_seconds_and_there_is_no_doom() -> None:
    clock = Clock()
    breaker = GracePeriodBreaker(clock=clock)
    breaker.failure("first")
    clock.now += 10.001
    assert state_of(breaker) is CircuitState.HALF_OPEN
    clock.now += 1e9
    assert state_of(breaker) is CircuitState.HALF_OPEN


@pytest.mark.parametrize("periods", [(-1, None), (1, -1)])
def test_negative_periods_are_refused(periods: tuple[float, float | None]) -> None:
    with pytest.raises(InvalidInput):
        GracePeriodBreaker(*periods)


_STEPS = st.lists(st.one_of(st.sampled_from(["success", "failure", "look"]), st.integers(0, 30)), max_size=40)


@given(_STEPS, st.integers(0, 20), st.none() | st.integers(0, 40))
def test_the_breaker_does_as_its_definition_says(steps: list[str | int], grace: int, doom: int | None) -> None:
    """Looked at after each step, the state is that which follows from the time since the first failure in a row."""
    clock = Clock()
    breaker = GracePeriodBreaker(grace, doom, clock)
    failing_since: float | None = None
    is_open = False
    for step in steps:
        if isinstance(step, int):
            clock.now += step
        elif step == "failure":
            breaker.failure("x")
            failing_since = clock.now if failing_since is None else failing_since
        elif step == "success":
            breaker.success()
            failing_since = None
        failing = -1.0 if failing_since is None else clock.now - failing_since
        is_open = is_open or (doom is not None and failing > grace and failing > doom)
        expected = CircuitState.OPEN if is_open else CircuitState.HALF_OPEN if failing > grace else CircuitState.CLOSED
        assert state_of(breaker) is expected


def test_a_fused_breaker_never_breaks() -> None:
    breaker = FusedBreaker()
    breaker.failure("x")
    breaker.success()
    assert state_of(breaker) is CircuitState.CLOSED


def test_setting_circuit_breaker_probes_a_service_that_fails_and_goes_on_when_it_works() -> None:
    async def work() -> None:
        is_well = False
        states = []

        def fail_at_first(request: Request) -> None:
            states.append(client.circuit_state)
            request.answer(200 if is_well or states.count(CircuitState.HALF_OPEN) >= 3 else 503)

        async with FakeServer(fail_at_first) as server:
            strategy = RetryStrategy(retries=30)
            client = AsyncFeedClient(server.url, circuit_breaker=GracePeriodBreaker(0.005), retry_strategy=strategy)
            async with client:
                results = await asyncio.gather(*(client.put(f"id:ns:music::{n}", FIELDS) for n in range(10)))
                assert client.circuit_state is CircuitState.CLOSED
        assert {result.outcome for result in results} == {Outcome.SUCCESS}
        first = states.index(CircuitState.HALF_OPEN)
        # Those that were in flight when it became half open have an answer before the first of three probes.
        assert len(server.requests) >= first + 3
        assert len({request.peer.number for request in server.requests}) > 1

    run(work())


def test_an_open_circuit_fails_all_operations_at_once() -> None:
    async def work() -> None:
        async with FakeServer(lambda request: request.answer(503, message="no")) as server:
            client = AsyncFeedClient(server.url, circuit_breaker=GracePeriodBreaker(0.01, 0.05))
            async with client:
                futures = [client.put(f"id:ns:music::{number % 7}", FIELDS) for number in range(30)]
                results = await asyncio.gather(*futures, return_exceptions=True)
                assert client.circuit_state is CircuitState.OPEN
                count = len(server.requests)
                with pytest.raises(OperationAborted):
                    await client.put("id:ns:music::1", FIELDS)
            assert len(server.requests) == count
        assert {type(result) for result in results} == {OperationAborted}
        assert any("503" in str(result) for result in results)

    run(work())


def test_a_client_whose_server_went_away_gives_up_by_the_doom_period() -> None:
    async def work() -> None:
        async with FakeServer(lambda request: request.peer.cut()) as server:
            client = AsyncFeedClient(server.url, circuit_breaker=GracePeriodBreaker(0.01, 0.05))
            async with client:
                await server.stop()
                with pytest.raises(OperationAborted, match="connect"):
                    await client.put("id:ns:music::1", FIELDS)

    run(work())
