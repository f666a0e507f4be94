"""Decides when each operation is sent: order on one document, throttling, retries and the circuit breaker.

An accepted operation waits for the one before it on the same document, then in the queue for its turn. What fails and
may be sent again waits a moment and goes to the end of the queue. Each operation is done exactly once, whatever servers
do: by an answer, by a failure that is not sent again, by its deadline, or by the end of the client.

    answer                        what follows
    2xx, 404, 412                 done; the breaker closes, the throttler may allow more
    429                           sent again, always; the throttler allows less
    503, a connection that broke  sent again if the retry strategy allows it; counts for the breaker
    500 and above                 done; counts for the breaker
    all others                    done
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from itertools import chain
from typing import Final

from paperwasp.client.feeding.circuit_breaker import CircuitState
from paperwasp.client.feeding.connections import Line
from paperwasp.client.feeding.endpoints import Cluster
from paperwasp.client.feeding.operations import Flight
from paperwasp.client.feeding.settings import FeedSettings
from paperwasp.client.feeding.statistics import Counters, FeedStatistics
from paperwasp.client.feeding.throttling import Throttler

_PROBE_SECONDS: Final = 0.1
"""Between two requests while the breaker is half open."""
_RETRY_SECONDS: Final = 0.001
_LEAST_SWEEP_SECONDS: Final = 0.01
_LEAST_OF_A_LINE: Final = 8
"""Requests that one connection is given in a row."""
_THROTTLED: Final = 429
_UNAVAILABLE: Final = 503
_WELL: Final = frozenset((*range(200, 300), 404, 412))


class Engine:
    """All operations of a client. On the event loop."""

    def __init__(
        self, settings: FeedSettings, loop: asyncio.AbstractEventLoop, on_room: Callable[[], None] = lambda: None
    ) -> None:
        """`on_room` is called whenever operations are done, or more may be in flight."""
        self._settings = settings
        self._loop = loop
        self._on_room = on_room
        self._circuit = settings.circuit_breaker
        self._cluster = Cluster(settings, self, loop)
        self._throttler = Throttler(
            settings.connections_per_endpoint * len(settings.endpoints), settings.capacity, loop.time
        )
        self._counters = Counters()
        self._queue: deque[Flight] = deque()
        self._retries: deque[Flight] = deque()
        """They go to the queue after a moment."""
        self._last: dict[str, Flight] = {}
        """By document id: the operation that was accepted last, of those that are not done."""
        self._on_wire = 0
        self._sweep_at = float("inf")
        self._has_retry_timer = False
        self._has_probe_timer = False
        self._has_refreshed = False
        self._is_closed = False
        self._handshake: Flight | None = None
        self._idle: list[asyncio.Future[None]] = []
        self.pending = 0
        """Operations that are accepted and not done."""

    @property
    def target(self) -> int:
        """How many operations the throttler wants to be in flight."""
        return self._throttler.target

    @property
    def circuit_state(self) -> CircuitState:
        return self._circuit.state

    def statistics(self) -> FeedStatistics:
        return self._counters.snapshot(self._on_wire)

    def reset_statistics(self) -> None:
        self._counters.reset()

    def accept(self, flight: Flight) -> None:
        """Takes an operation, whose `done` will be called. `send` begins with what was accepted."""
        self.pending += 1
        before = self._last.get(flight.id_text)
        self._last[flight.id_text] = flight
        if before is not None:
            before.next = flight
        elif self._is_closed:
            self._abort(flight)
        else:
            self._queue.append(flight)
            self._throttler.sent()
            self._watch(flight.deadline)

    def shake_hands(self, flight: Flight) -> None:
        """Sends a request that is no operation. It is tried once, and neither throttled nor counted."""
        self._handshake = flight
        self.accept(flight)
        self.send()

    def send(self) -> None:
        """Sends what may be sent now."""
        if self._is_closed:
            return
        state = self._circuit.state
        if state is CircuitState.OPEN:
            self.abort_all()
        elif state is CircuitState.HALF_OPEN:
            self._begin_probing()
        else:
            self._has_refreshed = False
            self._send_most(self._throttler.target - self._on_wire)

    def _send_most(self, most: int) -> None:
        """Sends at most `most` operations from the queue, as far as connections have room."""
        if not self._queue or most <= 0:
            return
        try:
            headers = self._settings.header_values()
        except Exception as error:  # a callable of the user's
            self._fail_queue(f"a header has no value: {error!r}")
            return
        touched: list[Line] = []
        now = self._loop.time()
        while self._queue and most > 0 and (line := self._cluster.next_line()) is not None:
            touched.append(line)
            share = max(_LEAST_OF_A_LINE, len(self._queue) // self._settings.connections_per_endpoint)
            for _ in range(min(line.room, share, most)):
                most -= self._send_next(line, headers, now)
                if not self._queue:
                    break
        for line in touched:
            line.flush()

    def _send_next(self, line: Line, headers: tuple[tuple[str, str], ...], now: float) -> int:
        """Sends the first operation of the queue. 1, or 0 where it was over before."""
        flight = self._queue.popleft()
        if flight.deadline <= now:
            self._time_out(flight)
            return 0
        try:
            is_sent = line.send(flight, headers)
        except ValueError as error:
            flight.error = f"the request cannot be sent: {error}"
            self._complete(flight)
            return 0
        if not is_sent:
            line.is_retired = True
            self._queue.appendleft(flight)
            return 0
        self._on_wire += 1
        flight.sent_at = now
        if flight is not self._handshake:
            self._counters.sent(len(flight.body), self._on_wire)
        return 1

    def answered(self, flight: Flight, status: int, body: bytes) -> None:
        """An answer came. Called by lines."""
        self._on_wire -= 1
        if flight is not self._handshake:
            self._counters.answered(status, len(body), self._loop.time() - flight.sent_at)
        flight.response, flight.error = (status, body), None
        if status in _WELL:
            self._circuit.success()
            self._throttler.success()
            self._complete(flight)
        elif status == _THROTTLED:
            self._throttler.throttled(self._on_wire + 1)
            self._send_again(flight)
        elif status == _UNAVAILABLE:
            self._attempt_failed(flight, f"status {status} of {flight.request_line()}")
        else:
            if status >= 500:
                self._circuit.failure(f"status {status} of {flight.request_line()}")
            self._complete(flight)

    def failed(self, flight: Flight, reason: str) -> None:
        """A request has no answer. Called by lines."""
        self._on_wire -= 1
        self._counters.exceptions += flight is not self._handshake
        flight.response, flight.error = None, reason
        self._attempt_failed(flight, reason)

    def _attempt_failed(self, flight: Flight, reason: str) -> None:
        self._circuit.failure(reason)
        if self._may_try_again(flight):
            self._send_again(flight)
        else:
            self._complete(flight)

    def _may_try_again(self, flight: Flight) -> bool:
        """Counts a failed attempt. Probes of a service that is known to fail are not counted."""
        if flight is self._handshake:
            return False
        if self._circuit.state is not CircuitState.HALF_OPEN:
            flight.attempts += 1
        return self._settings.retry_strategy.allows(flight.kind, flight.attempts)

    def _send_again(self, flight: Flight) -> None:
        if self._is_closed:
            self._abort(flight)
            return
        self._retries.append(flight)
        if not self._has_retry_timer:
            self._has_retry_timer = True
            self._loop.call_later(_RETRY_SECONDS, self._end_retry_wait)

    def _end_retry_wait(self) -> None:
        self._has_retry_timer = False
        self._queue.extend(self._retries)
        self._retries.clear()
        self.send()

    def batch_ended(self) -> None:
        """All that came at once was reported. Called by lines."""
        self.send()
        self._on_room()

    def line_opened(self, line: Line) -> None:
        self._cluster.opened(line)
        self.send()

    def line_closed(self, line: Line, reason: str) -> None:
        self._cluster.closed(line)
        flights = list(line.flights.values())
        line.flights.clear()
        for flight in flights:
            self.failed(flight, reason)
        self.batch_ended()

    def may_connect(self) -> None:
        self.send()

    def unreachable(self, reason: str) -> None:
        """No server can be reached: an attempt has failed of all operations that wait to be sent."""
        self._circuit.failure(reason)
        waiting = list(self._queue)
        self._queue.clear()
        for flight in waiting:
            flight.response, flight.error = None, reason
            if self._may_try_again(flight):
                self._queue.append(flight)
            else:
                self._complete(flight)
        self.batch_ended()

    def _fail_queue(self, reason: str) -> None:
        waiting = list(self._queue)
        self._queue.clear()
        for flight in waiting:
            flight.response, flight.error = None, reason
            self._complete(flight)

    def _begin_probing(self) -> None:
        """Once for each time that the breaker opens by half: what follows goes over new connections."""
        if not self._has_refreshed:
            self._has_refreshed = True
            self._cluster.refresh()
        if not self._has_probe_timer and self.pending:
            self._has_probe_timer = True
            self._loop.call_later(_PROBE_SECONDS, self._probe)

    def _probe(self) -> None:
        self._has_probe_timer = False
        if self._circuit.state is CircuitState.HALF_OPEN:
            self._send_most(1)
        self.send()

    def _watch(self, deadline: float) -> None:
        """Looks for operations whose time is over when the next deadline is."""
        if deadline < self._sweep_at:
            self._sweep_at = deadline
            self._loop.call_at(max(deadline, self._loop.time() + _LEAST_SWEEP_SECONDS), self._sweep, deadline)

    def _sweep(self, deadline: float) -> None:
        if deadline != self._sweep_at:
            return  # there is an earlier one
        now = self._loop.time()
        late = [flight for line in self._cluster.lines() for flight in line.give_up_late(now)]
        self._on_wire -= len(late)
        self._counters.exceptions += len(late)
        late += [flight for flights in (self._queue, self._retries) for flight in flights if flight.deadline <= now]
        for flights in (self._queue, self._retries):
            kept = [flight for flight in flights if flight.deadline > now]
            flights.clear()
            flights.extend(kept)
        for flight in late:
            self._time_out(flight)
        self._sweep_at = float("inf")
        on_wire = (flight for line in self._cluster.lines() for flight in line.flights.values())
        for flight in chain(self._queue, self._retries, on_wire):
            self._watch(flight.deadline)
        self.batch_ended()

    def _time_out(self, flight: Flight) -> None:
        flight.is_timed_out = True
        self._complete(flight)

    def _complete(self, flight: Flight) -> None:
        """Ends an operation, and lets the next one on its document go."""
        self.pending -= 1
        if flight.next is None:
            del self._last[flight.id_text]
        elif self._is_closed:
            self._retries.append(flight.next)
        else:
            self._queue.append(flight.next)
            self._watch(flight.next.deadline)
        flight.done(flight)
        if not self.pending:
            for waiter in self._idle:
                waiter.set_result(None)
            self._idle.clear()

    def _abort(self, flight: Flight) -> None:
        flight.is_aborted = True
        self._complete(flight)

    def abort_all(self) -> None:
        """Ends all operations, and takes no more."""
        self._is_closed = True
        flights = [*self._queue, *self._retries]
        self._queue.clear()
        self._retries.clear()
        for line in self._cluster.lines():
            flights += line.flights.values()
            self._on_wire -= len(line.flights)
            line.flights.clear()
        self._cluster.close()
        for flight in flights:
            self._abort(flight)
        while self._retries:
            self._abort(self._retries.popleft())
        self._on_room()

    async def wait_until_idle(self) -> None:
        """Until all operations are done."""
        if self.pending:
            waiter = self._loop.create_future()
            self._idle.append(waiter)
            await waiter

    async def wait_until_closed(self) -> None:
        """Until all connections are gone, after `abort_all`."""
        await self._cluster.wait_until_closed()
