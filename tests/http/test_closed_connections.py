"""Nothing of a closed connection stays: no cycle of objects waits for a collection of garbage, which comes seldom."""

from __future__ import annotations

import asyncio
import gc
import socket
import ssl
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from paperwasp import limits
from paperwasp.http.server import HttpServer
from tests.core.http.http2_frames import GET, PREFACE, Setting, headers, settings
from tests.http.certificates import Authority
from tests.http.http_servers import HOST, connections_of, echo, get, serve_for, until

_STREAMS = range(1, 41, 2)
_NO_WINDOW = PREFACE + settings({Setting.INITIAL_WINDOW_SIZE: 0})
_MODULES = ("asyncio.selector_events", "asyncio.sslproto", "asyncio.trsock", "paperwasp.http")


@contextmanager
def without_collections() -> Iterator[None]:
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def left() -> Counter[str]:
    """How many objects of connections there are, by their names."""
    kinds = [type(each) for each in gc.get_objects()]
    names = [f"{kind.__module__}.{kind.__qualname__}" for kind in kinds if isinstance(kind, type)]
    return Counter(name for name in names if name.startswith(_MODULES))


def ask_and_go(port: int, sent: bytes, tls: ssl.SSLContext | None) -> None:
    with socket.create_connection((HOST, port)) as plain:
        if tls is None:
            plain.sendall(sent)
            plain.recv(1) if sent.endswith(b"\r\n\r\n") else None
            return
        with tls.wrap_socket(plain, server_hostname=HOST) as wrapped:
            wrapped.sendall(sent)
            wrapped.recv(1)


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        get("/a"),
        b"GET / HTTP/1.1\r\nHost: x\r\nA: ",
        b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n{",
        _NO_WINDOW + b"".join(headers(n, GET) for n in _STREAMS),
        _NO_WINDOW + b"".join(headers(n, GET, False) for n in _STREAMS),
    ],
    ids=["nothing", "answered", "half a head", "half a body", "waiting streams", "bodies to come"],
)
def test_nothing_is_left_of_a_closed_connection(sent: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """CPython: asyncio's `_SelectorSocketTransport` keeps a method of its own."""
    monkeypatch.setattr(limits, "HTTP_UNSENT_BYTES", 0)
    _check(sent, None)


def test_nothing_is_left_of_a_closed_connection_with_tls(tmp_path: Path) -> None:
    _check(get("/a"), Authority(tmp_path))


def _check(sent: bytes, authority: Authority | None) -> None:
    tls = None if authority is None else authority.client_context()
    gc.collect()
    gc.freeze()  # what many tests keep takes long to look at: of the collector's objects, only this test's are left

    async def test(server: HttpServer) -> None:
        async def one() -> None:
            before = server.traffic.connections
            await asyncio.to_thread(ask_and_go, server.port, sent, tls)
            await until(lambda: server.traffic.connections > before and not connections_of(server))

        await one()
        with without_collections():
            before = left()
            for _ in range(3):
                await one()
            # What the event loop still has to call may hold an object of a connection, before as well: fewer may stay.
            await until(lambda: left() <= before)

    serve_for(test, echo, tls=None if authority is None else authority.server_context())
