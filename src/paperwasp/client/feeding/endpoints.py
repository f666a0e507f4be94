"""The endpoints of a feed client and their connections: opened when there is something to send, closed when old.

A request goes to the endpoint with the fewest in flight, and there to the connection whose turn it is: several
requests in a row to one connection, since each connection that is written to costs a call of the system.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from typing import Final, Protocol

from paperwasp.client.feeding.connections import Line, Listener
from paperwasp.client.feeding.settings import Endpoint, FeedSettings

_CONNECT_SECONDS: Final = 10.0
_FIRST_WAIT_SECONDS: Final = 0.05
_LONGEST_WAIT_SECONDS: Final = 1.0
_SPREAD: Final = 0.1
"""The part of its life by which a connection may live shorter, so that not all are replaced at once."""


class ClusterListener(Listener, Protocol):
    """Told by a cluster, too, whether it can be reached."""

    def unreachable(self, reason: str) -> None:
        """No endpoint has a connection, and none could be made."""

    def may_connect(self) -> None:
        """A wait before the next attempt to connect is over."""


class _Site:
    """An endpoint and its connections."""

    def __init__(self, endpoint: Endpoint) -> None:
        self.endpoint = endpoint
        self.lines: list[Line] = []
        """The open connections, in the order of their turns."""
        self.connecting = 0
        self.failures = 0
        """Connections that could not be made, or broke unused, since the last one that was answered."""
        self.is_waiting = False
        """Before the next attempt."""

    @property
    def in_flight(self) -> int:
        return sum(len(line.flights) for line in self.lines)


class Cluster:
    """All connections. On the event loop."""

    def __init__(self, settings: FeedSettings, listener: ClusterListener, loop: asyncio.AbstractEventLoop) -> None:
        self._settings = settings
        self._listener = listener
        self._loop = loop
        self._sites = [_Site(endpoint) for endpoint in settings.endpoints]
        self._tasks: set[asyncio.Task[None]] = set()
        self._is_closed = False
        self._gone: asyncio.Future[None] | None = None
        """Done when a closed cluster has no connections any more."""

    def next_line(self) -> Line | None:
        """A connection with room for a request, or None. Opens connections where some are missing."""
        for site in sorted(self._sites, key=lambda site: site.in_flight) if len(self._sites) > 1 else self._sites:
            self._connect_missing(site)
            for place, line in enumerate(site.lines):
                if line.room > 0:
                    site.lines.append(site.lines.pop(place))
                    return line
        return None

    def lines(self) -> list[Line]:
        """All open connections, retired ones too."""
        return [line for site in self._sites for line in site.lines]

    def flush(self) -> None:
        for line in self.lines():
            line.flush()

    def refresh(self) -> None:
        """Has all further requests go over connections that are made from now on."""
        for line in self.lines():
            line.retire()

    def close(self) -> None:
        """Ends all connections. What is in flight is reported as failed."""
        self._is_closed = True
        for task in self._tasks:
            task.cancel()
        for line in self.lines():
            line.abort("the client was closed")

    async def wait_until_closed(self) -> None:
        """Until all connections are gone, after `close`."""
        if self._tasks:
            await asyncio.wait(self._tasks)
        if self.lines():
            self._gone = self._loop.create_future()
            await self._gone

    def opened(self, line: Line) -> None:
        """A connection was made."""
        self._site_of(line).lines.append(line)
        if (seconds := self._settings.connection_time_to_live_seconds) is not None:
            self._loop.call_later(seconds * (1 - _SPREAD * random.random()), line.retire)
        if self._is_closed:
            line.abort("the client was closed")

    def closed(self, line: Line) -> None:
        """A connection is gone."""
        site = self._site_of(line)
        if line in site.lines:
            site.lines.remove(line)
        if line.has_answered:
            site.failures = 0
        else:
            self._wait(site)
        if self._gone is not None and not self._gone.done() and not self.lines():
            self._gone.set_result(None)

    def _site_of(self, line: Line) -> _Site:
        return next(site for site in self._sites if site.endpoint is line.endpoint)

    def _connect_missing(self, site: _Site) -> None:
        """Retired connections do not count: they are on their way out."""
        if self._is_closed or site.is_waiting:
            return
        open_lines = sum(1 for line in site.lines if not line.is_retired)
        for _ in range(self._settings.connections_per_endpoint - open_lines - site.connecting):
            site.connecting += 1
            task = self._loop.create_task(self._connect(site))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _connect(self, site: _Site) -> None:
        endpoint = site.endpoint
        make: Callable[[], Line] = lambda: Line(endpoint, self._settings, self._listener)  # noqa: E731
        tls = self._settings.tls if endpoint.is_secure else None
        try:
            async with asyncio.timeout(_CONNECT_SECONDS):
                await self._loop.create_connection(make, endpoint.host, endpoint.port, ssl=tls)
        except (OSError, TimeoutError, UnicodeError) as error:
            site.connecting -= 1
            self._connect_failed(site, f"no connection to {endpoint}: {error or 'it takes too long'}")
        else:
            site.connecting -= 1

    def _connect_failed(self, site: _Site, reason: str) -> None:
        if site.connecting > 0 or self._is_closed:
            return  # others of the same attempt may still succeed
        self._wait(site)
        if not any(site.lines or site.connecting for site in self._sites):
            self._listener.unreachable(reason)

    def _wait(self, site: _Site) -> None:
        """Makes no connection for a while: longer each time, until one is answered."""
        if site.is_waiting or self._is_closed:
            return
        site.is_waiting = True
        wait_seconds = min(_FIRST_WAIT_SECONDS * 2**site.failures, _LONGEST_WAIT_SECONDS)
        site.failures = min(site.failures + 1, 16)
        self._loop.call_later(wait_seconds, self._end_wait, site)

    def _end_wait(self, site: _Site) -> None:
        site.is_waiting = False
        if not self._is_closed:
            self._listener.may_connect()
