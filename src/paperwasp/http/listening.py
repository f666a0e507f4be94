"""The listening socket of a port, and accepting connections from it."""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
from collections.abc import Callable
from typing import Final

from paperwasp import limits
from paperwasp.errors import Conflict, InvalidInput
from paperwasp.http.loop_socket import LoopSocket

_MOST_PORT: Final = 65_535
_LOG: Final = logging.getLogger("paperwasp.http")
_EXHAUSTED: Final = frozenset((errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM))
"""The system has no more descriptors or memory: to try again at once would only take time."""


class PortTaken(Conflict):
    """Another process listens where we want to."""


def bind(host: str, port: int) -> socket.socket:
    """A socket bound to `host`:`port` (0: any free port), not listening yet. Errors: PortTaken, Conflict; InvalidInput
    for a number that is not a port's."""
    if not 0 <= port <= _MOST_PORT:
        raise InvalidInput(f"A port is a number from 0 to {_MOST_PORT}, and here is {port}")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setblocking(False)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    try:
        listener.bind((host, port))
    except OSError as error:
        listener.close()
        if error.errno == errno.EADDRINUSE:
            raise PortTaken(f"Port {port} on {host} is taken by another process") from None
        raise Conflict(f"Cannot listen on {host}:{port}: {error.strerror or error}") from None
    return listener


class Acceptor:
    """Accepts connections while it is neither paused nor stopped. Everything here runs on the event loop."""

    def __init__(self, listener: socket.socket, take: Callable[[socket.socket, str, int], None]) -> None:
        """`take` gets each connection and the address and port of its client. The listener is its owner's to close."""
        self._listener = listener
        self._take = take
        self._loop = asyncio.get_running_loop()
        self._is_accepting = False
        self._retry: asyncio.TimerHandle | None = None

    def listen(self) -> None:
        """Errors: PortTaken where another process has bound the port too, and was faster to listen."""
        try:
            self._listener.listen(limits.HTTP_BACKLOG)
        except OSError as error:
            host, port = self._listener.getsockname()[:2]
            raise PortTaken(f"Port {port} on {host} is taken by another process: {error.strerror or error}") from None
        self.resume()

    def resume(self) -> None:
        """Accepts from now on, if it does not already, and has not just found that the system has no room."""
        if not self._is_accepting and self._retry is None:
            self._is_accepting = True
            self._loop.add_reader(self._listener.fileno(), self._accept)

    def pause(self) -> None:
        """Accepts nothing until `resume`. Who connects meanwhile waits in the system's queue."""
        if self._is_accepting:
            self._is_accepting = False
            self._loop.remove_reader(self._listener.fileno())
        if self._retry is not None:
            self._retry.cancel()
            self._retry = None

    def _accept(self) -> None:
        for _ in range(limits.HTTP_ACCEPTED):
            if not self._is_accepting:
                return
            try:
                connection, address = self._listener.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                self._retreat(error)
                return
            self._take(LoopSocket.of(connection), str(address[0]), int(address[1]))

    def _retreat(self, error: OSError) -> None:
        if error.errno not in _EXHAUSTED:
            _LOG.warning("A connection could not be accepted: %s", error)
            return
        _LOG.error("No connections are accepted for %g s: %s", limits.HTTP_ACCEPT_SECONDS, error)
        self.pause()
        self._retry = self._loop.call_later(limits.HTTP_ACCEPT_SECONDS, self._try_again)

    def _try_again(self) -> None:
        self._retry = None
        self.resume()
