"""Who reads the socket of a connection of HTTP/1.1: its transport, or the core, which answers what it knows
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


class Watch:
    """Whether the core reads the socket of one connection, whose line says when it may."""

    __slots__ = ("_connection", "_line")

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._line: RoutedLine | None = None
        """That of the connection while the core reads. Not longer: the line has this watch, and two that hold each
        other stay until a collection of garbage."""

    def expect_request(self, line: RoutedLine) -> None:
        """Has the core read from now on, or go on, and answer what comes next if it can."""
        connection = self._connection
        routed, answers = connection.routed, connection.answer_socket
        assert routed is not None and answers is not None
        if self._line is not None:
            routed.expect(connection.socket_number, request=True)
        elif routed.watch(connection.socket_number, answers, self, line.end_routed):
            self._line = line
            connection.hold_reading(True)

    def expect_bytes(self) -> None:
        """What comes next, after an answer, is for the line to read."""
        if self._line is not None and self._connection.routed is not None:
            self._connection.routed.expect(self._connection.socket_number, request=False)

    def end(self) -> None:
        """Has the transport read again."""
        if self._line is not None and self._connection.routed is not None:
            self._line = None
            self._connection.routed.unwatch(self._connection.socket_number)
            self._connection.hold_reading(False)

    def receive_watched(self, came: bytes | _core.RoutedText | None) -> None:
        """What the core has read: `WatchedLine`."""
        connection, line = self._connection, self._line
        if line is None:
            return
        if isinstance(came, _core.RoutedText):
            line.wait_for(came)
            if came.is_here:
                connection.deliver(line.end_routed, came)
        elif came is None or connection.is_closing:
            self.end()
        else:
            connection.deliver(line.receive, came)
