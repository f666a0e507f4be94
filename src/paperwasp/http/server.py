"""A listening port with a handler behind it: HTTP/1.1 and HTTP/2 on one port, with TLS or without.

Every connection is bounded: in its time, by state; in its memory, by what it sends and by what it does not read; and
in number. What a connection is made of stands in `connection`, what a request goes through in `exchange`.

Everything here runs on the event loop.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections import Counter
from collections.abc import Callable
from time import monotonic
from typing import Final

from paperwasp import limits
from paperwasp.errors import PaperwaspError
from paperwasp.http.bodies import BODIES
from paperwasp.http.cbor import error_as_accepted
from paperwasp.http.connection import Connection, Line
from paperwasp.http.eager import run_eagerly
from paperwasp.http.eviction import choose_leaving, choose_unread
from paperwasp.http.exchange import BodyLimit, ErrorResponse, Handler, Observer, PortContext
from paperwasp.http.http1_line import Http1Line
from paperwasp.http.http2_line import Http2Line
from paperwasp.http.listening import Acceptor, bind
from paperwasp.http.memory_return import MemoryReturn
from paperwasp.http.messages import Request, Response, json_response
from paperwasp.http.request_batch import Batches
from paperwasp.http.routed_requests import RoutedRequests, Routing
from paperwasp.http.tls import ALPN, ServerContext
from paperwasp.http.tls_files import TlsSource
from paperwasp.http.traffic import Traffic
from paperwasp.http.turns import Turns

_LOG: Final = logging.getLogger("paperwasp.http")


def default_error_response(request: Request, error: PaperwaspError) -> Response:
    """`{"error-code", "message"}`, as the Deploy API answers."""
    answer = json_response(error.http_status, {"error-code": error.deploy_code, "message": error.message})
    return error_as_accepted(request, answer)


class HttpServer:
    """One port. Binds when made, listens when started."""

    def __init__(
        self,
        handler: Handler,
        host: str,
        port: int,
        *,
        error_response: ErrorResponse = default_error_response,
        body_limit_bytes: BodyLimit = lambda _: limits.HTTP_PACKAGE_BODY_BYTES,
        observe: Observer | None = None,
        batches: Batches | None = None,
        tls: ServerContext | None = None,
        routing: Routing | None = None,
    ) -> None:
        """`routing`: who says which requests the core answers; None: none. `tls`: its `alpn_protocols` are set here.
        Errors: Conflict (PortTaken) where the port cannot be had."""
        self._handler = handler
        self._error_response = error_response
        self._body_limit_bytes = body_limit_bytes
        self._observe = observe
        self._batches = batches
        self._routing = routing
        self._tls: TlsSource | None = None
        if tls is not None:
            tls.set_alpn_protocols(list(ALPN))
            self.secure(lambda: tls)
        self._listener = bind(host, port)
        self.host = host
        self.port: int = self._listener.getsockname()[1]
        self.traffic: Final = Traffic()
        self._port: _OpenPort | None = None

    @property
    def is_secure(self) -> bool:
        """Whether the port speaks TLS."""
        return self._tls is not None

    def secure(self, tls: TlsSource | None) -> None:
        """Speaks TLS by that source, or none, on connections that are accepted from now on. Any thread."""
        self._tls = tls

    def start(self) -> None:
        """Accepts connections from now on. Call it in the event loop. Errors: PortTaken."""
        loop = asyncio.get_running_loop()
        memory = MemoryReturn(loop)
        context = PortContext(
            self._handler,
            self._error_response,
            self._body_limit_bytes,
            self._observe,
            BODIES,
            memory.return_soon,
            loop,
            Turns(loop),
            self.traffic,
            together=self._batches,
        )
        routed = None if self._routing is None else RoutedRequests(self._routing, context.loop, context.traffic)
        port = _OpenPort(context, self._listener, self._context_of_tls, memory, routed)
        port.open()
        self._port = port

    def _context_of_tls(self) -> ServerContext | None:
        tls = self._tls
        return None if tls is None else tls()

    async def restart(self) -> None:
        """Lets requests in flight finish and goes on; who connects meanwhile waits for it."""
        if self._port is not None:
            await self._port.drain()
            self.start()

    async def stop(self) -> None:
        """Accepts no more, lets requests in flight finish, closes the port. Streams that take longer are cut."""
        if self._port is not None:
            self._port.close()
        self._listener.close()
        if self._port is not None:
            await self._port.drain()

    def close(self) -> None:
        """Gives up the port of a server that was never started, or that has stopped."""
        self._listener.close()


class _OpenPort:
    """A port between its start and its stop, or restart."""

    def __init__(
        self,
        context: PortContext,
        listener: socket.socket,
        tls: Callable[[], ServerContext | None],
        memory: MemoryReturn,
        routed: RoutedRequests | None,
    ) -> None:
        """`tls` gives the settings of the next connection; None: it has no TLS. `routed`: as of `Connection`."""
        self._routed = routed
        self._context = context
        self._loop = context.loop
        self._tls = tls
        self._memory = memory
        self._acceptor = Acceptor(listener, self._take)
        self._buffer = memoryview(bytearray(limits.HTTP_RECEIVE_BYTES))
        self._connections: set[Connection] = set()
        self._counts: Counter[str] = Counter()
        """Connections by address."""
        self._unread: set[Connection] = set()
        """The connections whose clients have begun not to read."""
        self._opening: dict[Connection, asyncio.Task[None]] = {}
        """The connections that are not yet ready for requests: TLS shakes hands."""
        self._looking: asyncio.TimerHandle | None = None
        self._is_draining = False
        self._is_cutting = False
        self._left = asyncio.Event()
        """Set when the last connection has gone."""

    def open(self) -> None:
        """Accepts connections. Errors: PortTaken."""
        self._acceptor.listen()
        self._look_at(limits.HTTP_LOOK_SECONDS)

    def close(self) -> None:
        """Accepts no more connections."""
        self._is_draining = True
        self._acceptor.pause()

    async def drain(self) -> None:
        """Accepts no more, and returns when all that was under way has ended. After a while only handlers go on."""
        self.close()
        for task in self._opening.values():
            task.cancel()
        for connection in list(self._connections):
            connection.drain()
        cutting = self._loop.call_later(limits.HTTP_STREAM_STOP_SECONDS, self._cut)
        try:
            while self._connections or self._context.running:
                waited = self._left if self._connections else self._context.became_idle
                waited.clear()
                await waited.wait()
        finally:
            cutting.cancel()
            if self._looking is not None:
                self._looking.cancel()
            if self._routed is not None:
                self._routed.close()
            if self._context.batches is not None:
                self._context.batches.close()

    def _cut(self) -> None:
        """Ends what is not a handler."""
        self._is_cutting = True
        for exchange in list(self._context.streams):
            _LOG.warning("The answer to %s is cut: the server stops", exchange.peer.address)
            exchange.cut()
        self._look()

    # For the acceptor

    def _take(self, accepted: socket.socket, address: str, port: int) -> None:
        if self._is_draining or self._counts[address] >= limits.HTTP_ADDRESS_CONNECTIONS_MOST:
            accepted.close()
            return
        connection = Connection(self._context, self, self._buffer, address, port, self._routed)
        self._connections.add(connection)
        self._context.traffic.open_connections += 1
        self._counts[address] += 1
        if self._counts[address] > limits.HTTP_ADDRESS_CONNECTIONS:
            self._look_at(limits.HTTP_LOOK_SECONDS / 10)
        if len(self._connections) >= limits.HTTP_CONNECTIONS:
            self._acceptor.pause()
        opening = run_eagerly(self._loop, self._make_transport(connection, accepted))
        if opening is not None:
            self._opening[connection] = opening

    async def _make_transport(self, connection: Connection, accepted: socket.socket) -> None:
        tls = self._tls()
        try:
            await self._loop.connect_accepted_socket(
                lambda: connection,
                accepted,
                ssl=tls,
                ssl_handshake_timeout=limits.HTTP_TLS_HANDSHAKE_SECONDS if tls is not None else None,
                ssl_shutdown_timeout=limits.HTTP_TLS_SHUTDOWN_SECONDS if tls is not None else None,
            )
        except (OSError, asyncio.CancelledError) as error:  # a handshake that failed, or took too long, too
            _LOG.debug("A connection of %s was not established: %r", connection.address, error)
            self.remove(connection)
        finally:
            self._opening.pop(connection, None)

    # For connections

    def make_line(self, connection: Connection, is_http2: bool) -> Line:
        return Http2Line(connection) if is_http2 else Http1Line(connection)

    def note_unread(self, connection: Connection) -> None:
        self._unread = {each for each in self._unread if each.is_choked}
        self._unread.add(connection)
        for each in choose_unread(self._unread):
            _LOG.warning("A connection of %s is closed: its answers are the longest unread", each.address)
            self._unread.discard(each)
            each.abort()

    def remove(self, connection: Connection) -> None:
        if connection not in self._connections:
            return
        self._connections.discard(connection)
        self._context.traffic.open_connections -= 1
        self._unread.discard(connection)
        self._counts[connection.address] -= 1
        if not self._counts[connection.address]:
            del self._counts[connection.address]
        if not self._connections:
            self._left.set()
        if not self._is_draining:
            self._acceptor.resume()

    # Looking at connections

    def _look_at(self, seconds: float) -> None:
        """Looks at the connections after this number of seconds, or when it is due if that is sooner."""
        due = self._loop.time() + seconds
        if self._looking is None or self._looking.when() > due:
            if self._looking is not None:
                self._looking.cancel()
            self._looking = self._loop.call_at(due, self._look_on)

    def _look_on(self) -> None:
        self._looking = None
        try:
            self._look()
        except Exception:
            _LOG.exception("the connections could not be looked at")
        self._memory.look()
        self._look_at(limits.HTTP_LOOK_SECONDS)

    def _look(self) -> None:
        ready = [each for each in self._connections if each not in self._opening]
        for connection in choose_leaving(ready, monotonic()):
            connection.leave()
        if self._is_cutting:
            for connection in list(self._connections):
                if not connection.has_handler:
                    connection.abort()
