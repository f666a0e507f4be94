"""Who is connected to a port, and who has to go: silent and slow connections, and those that are too many.

The HTTP library has time-outs for a few states of a connection, and takes no more of them once it has as many as it
may. So this looks at the process's sockets itself, once a second, and shuts down, below the library, those that

* have not sent a first request in time, or sent nothing since their last answer for too long
* are idle, where their address has too many, or all of them together are nearly as many as there may be: first
  those that never asked anything, and of these the longest idle
* have not read large answers, where those of all connections take too much memory: first the longest unread. Of
  HTTP/2 that is not known, since the library keeps what a client gives no window for, and the socket is empty.

A body that comes too slowly is ended where it is read. Nothing here depends on which library it is: all that is asked
of it is the address of the client of each request.

`SocketTable` may be used on any thread, everything else on the event loop.
"""

from __future__ import annotations

import asyncio
import fcntl
import logging
import os
import socket
import stat
import struct
import termios
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import Any, Final

from paperwasp import limits

Client = tuple[str, str]
"""Address and port, as the library writes them."""

_LOG: Final = logging.getLogger("paperwasp.http")
_DESCRIPTORS: Final = Path("/dev/fd")
_HANDOVER_SECONDS: Final = 2.0
"""How long an answer may take from here to the socket."""


@dataclass(slots=True, eq=False)
class Reading:
    """A body that is being read."""

    task: asyncio.Task[Any]
    since: float = field(default_factory=monotonic)
    size_bytes: int = 0
    is_overdue: bool = False

    def seconds(self) -> float:
        """How long it takes already."""
        return monotonic() - self.since

    def end_if_slow(self) -> None:
        """Wakes who reads it, with a cancellation, where it has taken longer than it may."""
        may_seconds = limits.HTTP_BODY_SECONDS + self.size_bytes / limits.HTTP_BODY_BYTES_A_SECOND
        if not self.is_overdue and self.seconds() > may_seconds:
            self.is_overdue = True
            self.task.cancel()


@dataclass(slots=True, eq=False)
class Connection:
    """The state of one connection."""

    since: float
    """When it was seen first, or its last answer was ready."""
    in_flight: int = 0
    has_asked: bool = False
    unread_bytes: int = 0
    """Of large answers of which something may not have arrived."""


class SocketTable:
    """The connected sockets of this process at one of its ports."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._known: dict[tuple[int, int], Client | None] = {}
        """(descriptor, number of the file) → who is at the other end; None: it is none of these sockets."""

    def look(self) -> dict[Client, int]:
        """Who is connected, and the descriptor."""
        known: dict[tuple[int, int], Client | None] = {}
        for path in list(_DESCRIPTORS.iterdir()):
            with suppress(OSError):  # closed since
                descriptor = int(path.name)
                status = os.fstat(descriptor)
                if stat.S_ISSOCK(status.st_mode):
                    key = (descriptor, status.st_ino)
                    known[key] = self._known[key] if key in self._known else _client_of(descriptor, self._port)
        self._known = known
        return {client: descriptor for (descriptor, _), client in known.items() if client is not None}

    def unread(self, connections: Mapping[Client, int]) -> set[Client]:
        """To which of these connections (client → descriptor) something that was written has not arrived."""
        return {client for client, descriptor in connections.items() if _is_unread(descriptor)}

    def shut(self, client: Client, descriptor: int) -> None:
        """Shuts the connection down, if it is still there: what was sent arrives, and no end of it."""
        with suppress(OSError), socket.socket(fileno=os.dup(descriptor)) as connection:
            if _client_at(connection, self._port) == client:
                connection.shutdown(socket.SHUT_RDWR)

    def shut_all(self, clients: Iterable[Client]) -> None:
        """Shuts down what is still there of these connections."""
        there = self.look()
        for client in clients:
            if client in there:
                self.shut(client, there[client])


def _is_unread(descriptor: int) -> bool:
    """Whether the system still has bytes to send; where it does not tell, it has none."""
    try:
        return bool(struct.unpack("i", fcntl.ioctl(descriptor, termios.TIOCOUTQ, bytes(4)))[0])
    except OSError:
        return False


def _client_of(descriptor: int, port: int) -> Client | None:
    with socket.socket(fileno=os.dup(descriptor)) as connection:
        return _client_at(connection, port)


def _client_at(connection: socket.socket, port: int) -> Client | None:
    try:
        own, other = connection.getsockname(), connection.getpeername()
    except OSError:  # it listens
        return None
    return (str(other[0]), str(other[1])) if isinstance(own, tuple) and own[1] == port else None


class ConnectionGuard:
    """The connections of one port. `begin` and `end` are called for each request, `begin_reading` and
    `end_reading` for each body."""

    def __init__(self, port: int, now: Callable[[], float] = monotonic) -> None:
        self._table = SocketTable(port)
        self._now = now
        self._connections: dict[Client, Connection] = {}
        self._readings: set[Reading] = set()
        self._looking: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Looks at the connections from now on, until `stop`."""
        self._looking = asyncio.get_running_loop().create_task(self._look_on())

    async def stop(self) -> None:
        if self._looking is not None:
            self._looking.cancel()
            with suppress(asyncio.CancelledError):
                await self._looking
            self._looking = None

    def begin(self, client: Client) -> Connection:
        """A request of this client is there."""
        connection = self._connections.get(client)
        if connection is None:
            connection = self._connections[client] = Connection(self._now())
        connection.in_flight += 1
        connection.has_asked = True
        return connection

    def end(self, connection: Connection) -> None:
        """One of its requests is answered."""
        connection.in_flight -= 1
        connection.since = self._now()

    def note_answer(self, connection: Connection, size_bytes: int) -> None:
        """An answer of that size was given to the library, over HTTP/1."""
        if size_bytes >= limits.HTTP_LARGE_ANSWER_BYTES:
            connection.unread_bytes += size_bytes

    def begin_reading(self) -> Reading:
        """The body of a request is being read, by the task that calls this."""
        task = asyncio.current_task()
        assert task is not None
        reading = Reading(task)
        self._readings.add(reading)
        return reading

    def end_reading(self, reading: Reading) -> None:
        self._readings.discard(reading)

    def shut(self, client: Client) -> None:
        """Shuts down the connection of a client: what was sent of an answer arrives, and no end of it."""
        self._table.shut_all((client,))

    async def _look_on(self) -> None:
        while True:
            await asyncio.sleep(limits.HTTP_LOOK_SECONDS)
            for reading in list(self._readings):
                reading.end_if_slow()
            try:
                began = self._now()
                there = await asyncio.to_thread(self._table.look)
                self.forget_gone(there, began)
                await self._note_read(there)
                if leaving := self.choose(there):
                    await asyncio.to_thread(self._table.shut_all, leaving)
            except Exception:
                _LOG.exception("the connections could not be looked at")

    def forget_gone(self, there: Mapping[Client, object], began: float) -> None:
        """Forgets the connections that a look no longer saw. A connection that is younger than the look stays."""
        for client, connection in list(self._connections.items()):
            if client not in there and not connection.in_flight and connection.since < began:
                del self._connections[client]

    async def _note_read(self, there: Mapping[Client, int]) -> None:
        """Forgets large answers that have arrived. What was given to the library just now may not be on its way yet."""
        before = self._now() - _HANDOVER_SECONDS
        large = [(client, each) for client, each in self._connections.items() if each.unread_bytes]
        sent = {client: there[client] for client, each in large if client in there and each.since < before}
        unread = await asyncio.to_thread(self._table.unread, sent) if sent else set()
        for client, connection in large:
            if client in sent and client not in unread and connection.since < before:
                connection.unread_bytes = 0

    def choose(self, there: Mapping[Client, object]) -> list[Client]:
        """Which of the connections that are there have to go."""
        now = self._now()
        for client in there:
            if client not in self._connections:
                self._connections[client] = Connection(now)
        idle = sorted(
            (connection.has_asked, connection.since, client)
            for client, connection in self._connections.items()
            if client in there and not connection.in_flight
        )
        late = [client for has_asked, since, client in idle if now - since > _idle_seconds(has_asked)]
        many = _too_many(there, [client for _, _, client in idle])
        return list(dict.fromkeys((*late, *many, *_too_much_unread(self._connections))))


def _idle_seconds(has_asked: bool) -> float:
    return limits.HTTP_IDLE_MS / 1000 if has_asked else limits.HTTP_FIRST_REQUEST_SECONDS


def _too_much_unread(connections: Mapping[Client, Connection]) -> list[Client]:
    """Those with the longest unread of their large answers, where these are too much memory together."""
    unread = [(client, each) for client, each in connections.items() if each.unread_bytes]
    excess_bytes = sum(each.unread_bytes for _, each in unread) - limits.HTTP_UNREAD_ANSWERS_BYTES
    gone: list[Client] = []
    for client, each in sorted(unread, key=lambda one: one[1].since):
        if excess_bytes <= 0:
            break
        gone.append(client)
        excess_bytes -= each.unread_bytes
    return gone


def _too_many(there: Mapping[Client, object], idle: list[Client]) -> list[Client]:
    """The idle ones, in this order, that are more than their address, or all together, may have."""
    counts = Counter(address for address, _ in there)
    gone: list[Client] = []
    for client in idle:
        if counts[client[0]] > limits.HTTP_ADDRESS_CONNECTIONS:
            counts[client[0]] -= 1
            gone.append(client)
    left = len(there) - len(gone)
    if left <= limits.HTTP_CONNECTIONS_CROWDED:
        return gone
    rest = [client for client in idle if client not in set(gone)]
    return gone + rest[: left - limits.HTTP_CONNECTIONS_CALM]
