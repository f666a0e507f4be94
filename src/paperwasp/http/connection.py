"""One connection of a client, which `http.server.HttpServer` makes: its socket, its time-outs, what it has not read.
The protocol on it is a `Line`, to which it gives what comes (`Line.receive`).

    first bytes                       line
    the preface of HTTP/2, broken or  `Http2Line`  (also where TLS has agreed on h2)
    not
    anything else                     `Http1Line`, which may become an `Http2Line` by an upgrade

What is sent goes out once a wake-up of the event loop, in one write. When a client does not read, `is_choked` is true:
then no request is taken from it, and no chunk of a stream is made.

All connections of a port read into one buffer, whose bytes are taken before the next one reads: an idle connection has
none of its own.

Everything here runs on the event loop.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import socket
import ssl
import struct
from collections.abc import Callable
from time import monotonic
from typing import Any, Final, Protocol, TypeVar, cast

from paperwasp import limits
from paperwasp.base.asyncio_internals import socket_transport, untie
from paperwasp.core import _core
from paperwasp.http.exchange import PortContext
from paperwasp.http.messages import ClientCertificate
from paperwasp.http.routed_requests import RoutedRequests

PREFACE: Final = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
"""How a client of HTTP/2 begins."""
_HTTP2_METHOD: Final = b"PRI "
"""Nobody else has a method of that name (RFC 9113, 11.6): what goes on otherwise is a broken preface."""
_LOG: Final = logging.getLogger("paperwasp.http")
_RESET: Final = struct.pack("ii", 1, 0)
_Came = TypeVar("_Came")
_NOT_SENT_LOW_WATER: Final[int | None] = getattr(socket, "TCP_NOTSENT_LOWAT", None)


class Line(Protocol):
    """The protocol on a connection, as that calls it."""

    def receive(self, data: bytes) -> None:
        """More has come."""

    def receive_end(self) -> None:
        """The client sends no more."""

    def advance(self) -> None:
        """Takes up what had to wait, because the client did not read."""

    def flush(self) -> None:
        """Writes all that may go out now."""

    def drain(self) -> None:
        """Takes no more requests, and closes the connection when those under way are answered."""

    def lose(self) -> None:
        """The client is gone: nothing that it has asked for is begun, and nobody reads an answer."""

    @property
    def has_handler(self) -> bool:
        """Whether a handler is at work for it."""

    @property
    def is_idle(self) -> bool:
        """Whether no request is under way."""

    @property
    def held_back_bytes(self) -> int:
        """Of answers, what the protocol keeps since the client has given no window for it."""

    def is_overdue(self, now: float) -> bool:
        """Whether the client has taken too long for what is to come from it."""


class Watcher(Protocol):
    """Who keeps the list of connections."""

    def make_line(self, connection: Connection, is_http2: bool) -> Line:
        """The protocol on a connection."""

    def note_unread(self, connection: Connection) -> None:
        """The client of this connection has begun not to read."""

    def remove(self, connection: Connection) -> None:
        """The connection is no more."""


class Connection(asyncio.BufferedProtocol):
    """One connection."""

    __slots__ = (
        "_begin",
        "_buffer",
        "_is_flushing",
        "_progress",
        "_under",
        "_watcher",
        "address",
        "answer_socket",
        "certificate",
        "context",
        "has_asked",
        "is_choked",
        "is_closing",
        "is_draining",
        "is_tls",
        "line",
        "loop",
        "number",
        "port",
        "routed",
        "scheme",
        "since",
        "socket_number",
        "transport",
        "unread_since",
    )

    def __init__(
        self,
        context: PortContext,
        watcher: Watcher,
        buffer: memoryview,
        address: str,
        port: int = 0,
        routed: RoutedRequests | None = None,
    ) -> None:
        """`buffer`: into which all connections read; `address` and `port`: the client's; `routed`: what the core
        answers, if anything."""
        self.routed = routed
        self.context = context
        self.loop = context.loop
        self.address = address
        self.port = port
        context.traffic.connections += 1
        self.number = context.traffic.connections
        self._watcher = watcher
        self._buffer = buffer
        self.transport: asyncio.Transport | None = None
        self._under: object = None
        """The transport of the socket: over TLS another than `transport`."""
        self.line: Line | None = None
        self._begin = b""
        """The bytes that came before the protocol was known."""
        self.since = monotonic()
        """When the connection began, or its last answer was ready, or the head of the next request began to come."""
        self.has_asked = False
        self.is_choked = False
        self.is_closing = False
        self.is_draining = False
        self.is_tls = False
        self.scheme = "http"
        self.certificate: ClientCertificate | None = None
        self.answer_socket: _core.AnswerSocket | None = None
        """By which threads of the core write; None: they do not, since there is TLS, or no socket."""
        self.socket_number = -1
        """Of what the answer socket writes to."""
        self._is_flushing = False
        self._progress = 0
        """How much was unread when it was looked at last."""
        self.unread_since = 0.0

    # From the transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        plain: socket.socket | None = transport.get_extra_info("socket")
        self._under = socket_transport(transport)
        self.transport.set_write_buffer_limits(high=limits.HTTP_WRITE_BUFFER_BYTES)
        _bound_unsent(plain)
        tls: ssl.SSLObject | None = transport.get_extra_info("ssl_object")
        if tls is not None:
            self.is_tls, self.scheme = True, "https"
            self.certificate = _certificate(tls)
            if tls.selected_alpn_protocol() == "h2":
                self._speak(is_http2=True)
        elif plain is not None:
            self.socket_number = plain.fileno()
            self.answer_socket = _core.AnswerSocket(self.socket_number)
        if self.is_draining:
            self.close()

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        data = bytes(self._buffer[:nbytes])
        self.context.traffic.received_bytes += nbytes
        line = self.line or self._recognize(data)
        if line is None or self.is_closing:
            return
        if self._begin:
            data, self._begin = self._begin + data, b""
        self.deliver(line.receive, data)

    def eof_received(self) -> bool:
        if self.line is None:
            return False
        try:
            self.line.receive_end()
            self.flush()
        except Exception as error:
            self._fail(error)
        return not self.is_tls and self.transport is not None and not self.transport.is_closing()

    def pause_writing(self) -> None:
        self.is_choked = True
        if not self.unread_since:
            self.unread_since = monotonic()
        self._watcher.note_unread(self)

    def resume_writing(self) -> None:
        self.is_choked = False
        self.unread_since = self._progress = 0
        self.flush_soon()
        self.advance_soon()
        self.context.return_memory()

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_closing = True
        if self.answer_socket is not None:
            self.answer_socket.close()
        if self.is_choked:
            self.context.return_memory()
        if self.line is not None:
            self.line.lose()
        self._watcher.remove(self)
        untie(self._under)
        self.transport = self._under = None
        self.line = None

    # For the line

    def deliver(self, receive: Callable[[_Came], None], came: _Came) -> None:
        """Has the line receive what has come, and writes what it has to send. A defect ends the connection."""
        self._is_flushing = True
        try:
            receive(came)
            self.flush()
        except Exception as error:
            self._fail(error)

    @property
    def sends_no_more(self) -> bool:
        """Whether what is written goes nowhere. The transport knows that the client is gone before it tells."""
        return self.is_closing or self.transport is None or self.transport.is_closing()

    def write(self, data: bytes) -> None:
        """Sends bytes, at once where the system takes them."""
        if self.transport is not None and not self.transport.is_closing():
            self.context.traffic.sent_bytes += len(data)
            self.transport.write(data)

    @property
    def is_written(self) -> bool:
        """Whether the system has taken all that was written."""
        return self.transport is not None and self.transport.get_write_buffer_size() == 0

    def flush(self) -> None:
        """Writes what the line has to send."""
        self._is_flushing = False
        if self.line is not None:
            self.line.flush()

    def flush_now(self) -> None:
        """As `flush`; a defect ends the connection."""
        try:
            self.flush()
        except Exception as error:
            self._fail(error)

    def flush_soon(self) -> None:
        """The line has something to send: it goes out with what else is made in this round of the event loop."""
        if not self._is_flushing:
            self._is_flushing = True
            self.loop.call_soon(self.flush_now)

    def advance_soon(self) -> None:
        """The line may take up its next request, outside the task that has ended the last one, in its turn."""
        self.context.turns.join(self._advance)

    def _advance(self) -> None:
        if self.line is not None and not self.is_closing:
            self._is_flushing = True
            try:
                self.line.advance()
                self.flush()
            except Exception as error:
                self._fail(error)

    def _fail(self, error: Exception) -> None:
        """A defect of ours ends this connection, and no other."""
        _LOG.error("A connection of %s has failed, and is closed", self.address, exc_info=error)
        self.abort()

    def hold_reading(self, holds: bool) -> None:
        """Reads nothing from the client for the time being, or goes on reading."""
        if self.transport is not None and not self.transport.is_closing():
            if holds:
                self.transport.pause_reading()
            else:
                self.transport.resume_reading()

    def end_writing(self) -> bool:
        """Ends this side of the connection after what was written. Returns False where that is impossible: over
        TLS, or when the client has reset the connection and the event loop has not reported it yet."""
        if self.transport is None or self.transport.is_closing() or not self.transport.can_write_eof():
            return False
        try:
            self.transport.write_eof()
        except OSError:
            return False
        return True

    def close(self) -> None:
        """Closes the connection when what was written has gone out. Nothing that the client sends is read any more."""
        self.is_closing = True
        if self.transport is not None:
            self.transport.close()

    def abort(self) -> None:
        """Closes the connection at once; the client sees that it was broken off."""
        self.is_closing = True
        if self.transport is not None:
            plain: socket.socket | None = self.transport.get_extra_info("socket")
            if plain is not None:
                plain.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            self.transport.abort()

    def leave(self) -> None:
        """Closes the connection, since it was chosen to go."""
        if self.unread_bytes:
            self.abort()
            return
        if self.line is not None:
            self.line.drain()
            self.flush()
        self.close()

    # For the watcher

    @property
    def has_handler(self) -> bool:
        """Whether a handler is at work for it."""
        return self.line is not None and self.line.has_handler

    @property
    def is_idle(self) -> bool:
        """Whether it waits for a request, and has sent every answer."""
        return self.unread_bytes == 0 and (self.line is None or self.line.is_idle)

    @property
    def unread_bytes(self) -> int:
        """Of answers that wait for the client to read."""
        if self.transport is None:
            return 0
        held_bytes = 0 if self.line is None else self.line.held_back_bytes
        return self.transport.get_write_buffer_size() + held_bytes

    def is_overdue(self, now: float) -> bool:
        """Whether the client has taken too long for what it should do next."""
        unread_bytes = self.unread_bytes
        if unread_bytes:
            if not self.unread_since or unread_bytes < self._progress:
                self.unread_since = now
            self._progress = unread_bytes
            return now - self.unread_since > limits.HTTP_UNREAD_SECONDS
        if not self.is_choked:
            self.unread_since = self._progress = 0
        if self.line is not None and (self.has_asked or not self.line.is_idle):
            return self.line.is_overdue(now)
        return now - self.since > limits.HTTP_FIRST_REQUEST_SECONDS

    def drain(self) -> None:
        """Takes no more requests, and closes when those under way are answered."""
        self.is_draining = True
        if self.line is not None:
            self.line.drain()
            self.flush()
        elif self.transport is not None:
            self.close()

    def _recognize(self, data: bytes) -> Line | None:
        """The protocol that the first bytes are of; None: they are too few to tell."""
        begin = self._begin + data
        if len(begin) < len(PREFACE) and PREFACE.startswith(begin):
            self._begin = begin
            return None
        return self._speak(begin.startswith(_HTTP2_METHOD))

    def _speak(self, is_http2: bool) -> Line:
        self.line = self._watcher.make_line(self, is_http2)
        return self.line


def _bound_unsent(plain: socket.socket | None) -> None:
    """Has the system take no more for a client that does not read than is of use to one that does."""
    if plain is not None and _NOT_SENT_LOW_WATER is not None:
        plain.setsockopt(socket.IPPROTO_TCP, _NOT_SENT_LOW_WATER, limits.HTTP_SOCKET_UNSENT_BYTES)


def _certificate(tls: ssl.SSLObject) -> ClientCertificate | None:
    """The client's, which the context has verified; None: it has shown none, or need not."""
    shown: dict[str, Any] | None = tls.getpeercert()
    whole = tls.getpeercert(binary_form=True)
    if not shown or whole is None:
        return None
    names = [value for part in shown.get("subject", ()) for name, value in part if name == "commonName"]
    alternatives = tuple(f"{kind}:{name}" for kind, name in shown.get("subjectAltName", ()))
    return ClientCertificate(names[-1] if names else "", alternatives, hashlib.sha256(whole).hexdigest())
