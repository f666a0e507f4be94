"""The one place that knows granian: a listening socket, a worker on the running event loop, a scheduler.

granian speaks HTTP/1.1 and h2c with prior knowledge on one port. Its embedded server class is left aside for its
worker, because we want our own socket (a taken port is an error instead of a shared port; port 0 finds a free one)
and no layers between its scheduler and our handler. Of its interfaces we take ASGI, because RSGI gives only the decoded
path, where `%2F` is lost; that costs 7 µs of the about 55 µs CPU that a request of `vespa feed` costs here.

Threads: granian's runtime threads do the socket work and call `_schedule`; everything else here runs in the event loop.
"""

from __future__ import annotations

import asyncio
import errno
import socket
import sys
from collections import deque
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Final

import granian._granian
from granian.constants import HTTPModes
from granian.http import HTTP1Settings, HTTP2Settings

from paperwasp import limits
from paperwasp.errors import Conflict

Application = Callable[[Any, Any], Coroutine[Any, Any, None]]
"""(ASGI scope, protocol with `receive` and `send`) → answers the request. Never raises."""

_native: Final[Any] = granian._granian
"""The compiled part; its type stubs describe an older version of it."""
_EAGERLY: Final[Mapping[str, Any]] = {"eager_start": True} if sys.version_info >= (3, 12) else {}
"""A request that never waits is answered without a second round through the event loop, where Python can do that."""
_RUNTIME_THREADS: Final = 1
_BLOCKING_THREADS: Final = 512
_PYTHON_THREADS: Final = 1
_IDLE_SECONDS: Final = 30
_WEBSOCKETS: Final = False
_UNIX_SOCKET: Final = False
_STATIC_FILES: Final = None
_NO_TLS: Final[tuple[Any, ...]] = (False, None, None, None, "tls1.3", None, [], False)
_NO_METRICS: Final = (None, None)


class PortTaken(Conflict):
    """Another process listens where we want to."""


def bind(host: str, port: int) -> socket.socket:
    """A socket bound to `host`:`port` (0: any free port), not listening yet. Errors: PortTaken, Conflict."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
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


class Worker:
    """Serves one listening socket with one application until it is stopped. The socket is its owner's to close."""

    def __init__(self, application: Application, listener: socket.socket) -> None:
        self._application = application
        self._listener = listener
        self._loop = asyncio.get_running_loop()
        self._signal = _native.WorkerSignal()
        self._stopped = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self._waiting: deque[Any] = deque()
        self._is_woken = False

    def start(self) -> None:
        """Listens. When this returns, connections are accepted."""
        try:
            self._listener.listen(limits.HTTP_BACKLOG)
        except OSError as error:  # another process has bound the port too, and was faster to listen
            host, port = self._listener.getsockname()[:2]
            raise PortTaken(f"Port {port} on {host} is taken by another process: {error.strerror or error}") from None
        holder = _native.SocketHolder(self._listener.dup().detach(), _UNIX_SOCKET, limits.HTTP_BACKLOG)
        self._signal.add_cb(self._report_stopped)
        scheduler = _Scheduler(self._loop, self._schedule, None, None, None)
        _worker(holder).serve_async(scheduler, self._loop, self._signal)

    async def stop(self) -> None:
        """Takes no more connections, waits for the answers to requests in flight.

        Who connects while the socket stays open waits for the next worker.
        """
        self._signal.set()
        await self._stopped.wait()

    def _report_stopped(self) -> None:
        self._loop.call_soon_threadsafe(self._stopped.set)

    def _schedule(self, watcher: Any) -> None:
        """Wakes the event loop for the first of the requests that come together: waking costs more than a request."""
        self._waiting.append(watcher)
        if not self._is_woken:
            self._is_woken = True
            self._loop.call_soon_threadsafe(self._begin)

    def _begin(self) -> None:
        # Before the requests are taken: one that comes from here on is taken below or wakes the loop again.
        self._is_woken = False
        while self._waiting:
            watcher = self._waiting.popleft()
            task = asyncio.Task(self._application(watcher.scope, watcher.proto), loop=self._loop, **_EAGERLY)
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)


class _Scheduler(_native.CallbackScheduler):  # type: ignore[misc]
    """Hands every request to `schedule`, on a thread of granian's."""

    def __init__(self, _loop: object, schedule: Callable[[Any], None], *_: object) -> None:
        super().__init__()
        self._schedule_fn = schedule


def _worker(holder: Any) -> Any:
    http1 = HTTP1Settings(header_read_timeout=limits.HTTP_IDLE_MS)
    http2 = HTTP2Settings(max_concurrent_streams=limits.HTTP_STREAMS, max_headers_size=limits.HTTP_HEADERS_BYTES)
    threads = (_RUNTIME_THREADS, _BLOCKING_THREADS, _PYTHON_THREADS, _IDLE_SECONDS)
    protocol = (HTTPModes.auto, http1, http2, _WEBSOCKETS, _STATIC_FILES)
    limited = (*threads, limits.HTTP_CONNECTIONS)
    return _native.ASGIWorker(1, (None, holder), None, *limited, *protocol, *_NO_TLS, _NO_METRICS)
