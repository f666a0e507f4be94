"""The connections of HTTP/1.1 that feed, which a thread of the core reads and answers: `core/http/feed_sockets.hpp`.

    thread: requests of known forms, of many connections → one batch a form → begun → answers → thread

Everything here runs on the event loop.
"""

from __future__ import annotations

from asyncio import AbstractEventLoop
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol

from paperwasp import limits
from paperwasp.core import _core
from paperwasp.http.traffic import Traffic


class Form(NamedTuple):
    """All of a request but its name and its body."""

    method: str
    scheme: str
    host: str
    start: str
    """Of the path, up to the last slash."""
    query: str
    headers: Mapping[str, str]
    """But how long and how coded the body is."""
    coding: str | None


class FedLine(Protocol):
    """A connection whose socket the thread reads."""

    def expect_answer(self) -> None:
        """A request has come, and is begun with others."""

    def take_back(self, came: bytes, unsent: bytes) -> None:
        """The thread reads the socket no more: what has come on it, and what is left to be sent."""


BeginAll = Callable[[Form, list[Any], list[str], list[bytes]], None]
"""(form, lines, names, bodies) of requests."""


class FeedReader:
    """The connections of a port that the thread reads."""

    def __init__(self, loop: AbstractEventLoop, traffic: Traffic, begin: BeginAll) -> None:
        self._loop = loop
        self._traffic = traffic
        self._begin = begin
        self._sockets: _core.FeedSockets[Form, Any] | None = None
        """None: nobody has fed yet, or the port has no connections any more."""
        self._is_closed = False

    def close(self) -> None:
        """The port has no connections any more."""
        sockets, self._sockets, self._is_closed = self._sockets, None, True
        if sockets is not None:
            self._loop.remove_reader(sockets.fd)
            sockets.close()

    def __len__(self) -> int:
        """How many sockets the thread reads."""
        return 0 if self._sockets is None else len(self._sockets)

    def learn(self, request: bytes, form: Form) -> bool:
        """Takes requests like this one from now on. False: the thread takes no such requests."""
        sockets = self._open() if self._sockets is None else self._sockets
        return sockets is not None and sockets.learn(request, form)

    def _open(self) -> _core.FeedSockets[Form, Any] | None:
        if self._is_closed:
            return None
        try:
            self._sockets = _core.FeedSockets(limits.HTTP_RECEIVE_BYTES, limits.HTTP_FEED_FORMS)
        except OSError:  # the system has no more descriptors
            return None
        self._loop.add_reader(self._sockets.fd, self._take)
        return self._sockets

    def watch(self, socket: int, line: FedLine) -> bool:
        """Reads a socket from now on. False: it cannot."""
        try:
            if self._sockets is not None:
                self._sockets.watch(socket, line)
        except OSError:  # the system watches no more, or has no more threads
            return False
        return self._sockets is not None

    def unwatch(self, socket: int) -> tuple[bytes, bytes]:
        """Reads it no more: what has come and was not begun, and what is left to be sent."""
        return (b"", b"") if self._sockets is None else self._sockets.unwatch(socket)

    def answer(self, sockets: list[int], head: bytes, bodies: list[bytes]) -> None:
        """Has answers written whose heads begin so; then the next requests are read."""
        if self._sockets is not None:
            self._sockets.answer(sockets, head, bodies)

    def _take(self) -> None:
        assert self._sockets is not None
        batches, back, received_bytes, sent_bytes = self._sockets.take()
        self._traffic.received_bytes += received_bytes
        self._traffic.sent_bytes += sent_bytes
        for form, lines, names, bodies in batches:
            for line in lines:
                line.expect_answer()
            self._begin(form, lines, names, bodies)
        for line, came, unsent in back:
            line.take_back(came, unsent)
