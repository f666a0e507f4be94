"""Clients that mean harm, in numbers: for a soak, beside honest ones.

They connect to a port over and over and do what holds memory, threads or the port of a server that does not bound it.
What they are answered does not matter; the honest clients' answers and the server's memory do.
"""

from __future__ import annotations

import random
import socket
import struct
import threading
from collections import deque
from collections.abc import Callable
from typing import Final

CONNECTIONS: Final = 300
"""Held at once; the oldest is closed for a new one."""
PAUSE_SECONDS: Final = 0.05
_PREFACE: Final = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_GET: Final = b"GET /search/?yql=select+*+from+item+where+true&hits=400&timeout=5s HTTP/1.1\r\nHost: x\r\n\r\n"
_HEADERS, _RST_STREAM, _SETTINGS, _PING, _CONTINUATION = 1, 3, 4, 6, 9
_END_STREAM, _END_HEADERS = 1, 4
_REQUEST: Final = b"\x82\x86\x84\x01\x01x"  # GET, http, "/", :authority: x; of HPACK's static table


class HostileClients:
    """Connects until it is stopped. Use it as a context."""

    def __init__(self, port: int, seed: int) -> None:
        self._port = port
        self._chance = random.Random(seed)
        self._held: deque[socket.socket] = deque()
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.connected = 0
        """Connections that were accepted."""

    def __enter__(self) -> HostileClients:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        self._thread.join()
        for each in self._held:
            each.close()

    def _run(self) -> None:
        kinds: tuple[Callable[[], bytes], ...] = (
            self._nothing, self._slow_head, self._half_body, self._unread, self._rapid_reset, self._continuations,
            self._zero_window, self._pings, self._noise,
        )  # fmt: skip
        while not self._stopped.wait(PAUSE_SECONDS):
            if len(self._held) >= CONNECTIONS:
                self._held.popleft().close()
            try:
                client = socket.create_connection(("127.0.0.1", self._port), timeout=5)
                self.connected += 1
                self._held.append(client)
                client.setblocking(False)
                client.send(self._chance.choice(kinds)())
                for slow in self._chance.sample(list(self._held), min(3, len(self._held))):
                    slow.send(b"X")  # a byte more of a head, a body or a frame
            except OSError:  # it was closed, or takes no more: just as well
                continue

    def _nothing(self) -> bytes:
        return b""

    def _slow_head(self) -> bytes:
        return b"GET / HTTP/1.1\r\nHost: x\r\nA: "

    def _half_body(self) -> bytes:
        return b"POST /document/v1/soak/item/docid/x HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n{"

    def _unread(self) -> bytes:
        return _GET * 20

    def _rapid_reset(self) -> bytes:
        streams = range(1, 401, 2)
        ends = _END_STREAM | _END_HEADERS
        each = (_frame(_HEADERS, ends, n, _REQUEST) + _frame(_RST_STREAM, 0, n, struct.pack(">I", 8)) for n in streams)
        return _begin() + b"".join(each)

    def _continuations(self) -> bytes:
        more = _frame(_CONTINUATION, 0, 1, b"\x00\x01a\x7f" + bytes(127)) * 500
        return _begin() + _frame(_HEADERS, _END_STREAM, 1, _REQUEST) + more

    def _zero_window(self) -> bytes:
        ends = _END_STREAM | _END_HEADERS
        return _begin(struct.pack(">HI", 4, 0)) + b"".join(
            _frame(_HEADERS, ends, n, _REQUEST) for n in range(1, 201, 2)
        )

    def _pings(self) -> bytes:
        return _begin() + _frame(_PING, 0, 0, bytes(8)) * 2000

    def _noise(self) -> bytes:
        return self._chance.randbytes(self._chance.randrange(1, 2000))


def _begin(settings: bytes = b"") -> bytes:
    return _PREFACE + _frame(_SETTINGS, 0, 0, settings)


def _frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    return struct.pack(">I", len(payload))[1:] + bytes((kind, flags)) + struct.pack(">I", stream) + payload
