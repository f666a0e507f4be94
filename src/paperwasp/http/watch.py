"""Who reads the socket of a connection of HTTP/1.1: its transport, or threads of the core, which answer what they know
(`http.routed_requests`).

The core reads on from the first answer that it has written, until the end of the connection, an error, or until no more
is to be read for a while; the transport has paused meanwhile. Runs on the event loop.
"""

from __future__ import annotations

from typing import Protocol

from paperwasp.core import _core
from paperwasp.http.connection import Connection


class RoutedLine(Protocol):
    """HTTP/1.1 on a connection: `http.http1_line.Http1Line`."""

    def receive(self, data: bytes) -> None:
        """More has come."""

    def wait_for(self, routed: _core.RoutedText) -> None:
        """The core is answering a request."""

    def end_routed(self, routed: _core.RoutedText) -> None:
        """The core has answered a request, or left it."""

    @property
    def is_paused(self) -> bool:
        """Whether nothing is to be read."""


class Watch:
    """Whether the core reads the socket of one connection, whose line says when it may."""

    __slots__ = ("_connection", "_line", "_number", "_reads_on", "_waits", "is_ending")

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._line: RoutedLine | None = None
        """That of the connection while the core reads. Not longer: the line has this watch, and two that hold each
        other stay until a collection of garbage."""
        self._number = 0
        """Of the socket, where the core reads it."""
        self._reads_on = False
        """Whether what the core tells now was answered in full: it has gone on, and may have left something since."""
        self._waits = False
        """Whether the core reads nothing before it is said what is expected."""
        self.is_ending = False
        """Whether the core reads no more, but has not told all that it has read."""

    @property
    def is_on(self) -> bool:
        """Whether the core reads."""
        return self._line is not None

    @property
    def is_answering(self) -> bool:
        """Whether the core has read something that the event loop does not know yet."""
        routed = self._connection.routed
        return self.is_ending or (self._line is not None and routed is not None and routed.is_read(self._number))

    def expect_request(self, line: RoutedLine) -> None:
        """Has the core read from now on, or go on, and answer what comes next if it can."""
        connection = self._connection
        routed, answers = connection.routed, connection.answer_socket
        assert routed is not None and answers is not None
        if self._line is not None:
            self._expect(request=True)
        elif number := routed.watch(connection.socket_number, answers, self, line.end_routed):
            self._line, self._number = line, number
            connection.hold_reading(True)

    def expect_bytes(self) -> None:
        """Leave the next request, after an answer, to the line to read."""
        if self._line is not None:
            self._expect(request=False)

    def _expect(self, *, request: bool) -> None:
        self._waits = False
        if not self._reads_on and self._connection.routed is not None:
            self._connection.routed.expect(self._number, request=request)

    def end(self) -> bool:
        """Has the transport read again. False: the core has not told all that it has read, and it will then."""
        if self._line is not None and self._connection.routed is not None and not self.is_ending:
            self.is_ending = not self._connection.routed.unwatch(self._number)
            if not self.is_ending:
                self._line = None
                self._connection.hold_reading(False)
        return not self.is_ending

    def receive_watched(self, came: bytes | _core.RoutedText | None) -> None:
        """Take an event of the core: `WatchedLine`."""
        connection, line = self._connection, self._line
        if line is None:
            return
        if isinstance(came, _core.RoutedText):
            line.wait_for(came)
            if came.is_here:
                self._reads_on = came.is_sent and not came.is_unsent
                connection.deliver(line.end_routed, came)
                self._reads_on = False
        elif came is None and self.is_ending:
            self._line, self.is_ending = None, False
            connection.hold_reading(line.is_paused)
            if connection.is_draining:
                connection.drain()
        elif came is None or connection.is_closing:
            self.end()
        else:
            self._waits = True
            connection.deliver(line.receive, came)
            if self._waits:
                self.expect_bytes()
