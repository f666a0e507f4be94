"""Requests that the core answers, at a container's port: they are counted and logged as all others, in few steps."""

from __future__ import annotations

import asyncio
import itertools
import socket
import sys
from collections.abc import Awaitable, Callable, Iterator
from types import FrameType
from typing import Any, Final

import orjson
import pytest

from bench import http_kinds
from bench.calls import InProcess, opened, put
from bench.service import APPLICATION
from paperwasp.admin.monitoring.access_log import AccessLog
from paperwasp.http.messages import Answer, Request
from paperwasp.http.observing import Exchanged
from paperwasp.http.routed_requests import SentAnswer
from paperwasp.server.roles.listener import Listener

HOST: Final = "127.0.0.1"
WORDS: Final = tuple(map("".join, itertools.product(("ba", "do", "fu"), ("ki", "lo", "mu"), ("n", "r"))))
MOST_PYTHON_CALLS: Final = 22
"""Of functions of ours, for a request that the core answers where it comes. Goes down only."""
WARM: Final = 8
"""Requests until the route is known, and what their words are."""
GROUP: Final = 8


class Noting(AccessLog):
    """Keeps what it is told in place of writing it."""

    def __init__(self) -> None:
        self.noted: list[tuple[str, int, int, int, object]] = []
        self.sent = 0

    def note(self, port: int, exchange: Exchanged, request: Request, answer: Answer, elapsed_ns: int) -> None:
        assert exchange.peer.address == HOST and exchange.line.version == "HTTP/1.1" and elapsed_ns > 0
        self.sent += isinstance(exchange, SentAnswer)
        self.noted.append(
            (request.query, exchange.sent_bytes, exchange.received_bytes, answer.status, answer.about[:2])  # type: ignore[index]
        )


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InProcess]:
    directory = tmp_path_factory.mktemp("content")
    with opened(directory, APPLICATION, counts_calls=False) as feeding:
        for number, words in enumerate(itertools.product(WORDS[:12], repeat=2)):
            fields = {"title": " ".join(words), "body": " ".join((*words, *WORDS[:3])), "category": "c", "year": 2000}
            feeding.answer(put({"put": f"id:bench:article::{number}", "fields": fields}))
    with opened(directory, APPLICATION, counts_calls=False) as asking:
        yield asking


def request_of(text: str, **more: str) -> bytes:
    path = http_kinds.patient_path(http_kinds.PLAIN, text)
    return f"GET {path} HTTP/1.1\r\nHost: {HOST}\r\n\r\n".encode()


def serve(service: InProcess, test: Callable[[Listener], Awaitable[None]]) -> Listener:
    async def run() -> Listener:
        listener = Listener(HOST, 0, service._app)
        listener.server.start()
        try:
            await test(listener)
        finally:
            await asyncio.wait_for(listener.server.stop(), 20)
        return listener

    return service._loop.run_until_complete(run())


class Client:
    """One connection, of a thread beside the event loop."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection((HOST, port), timeout=60)

    def close(self) -> None:
        self._socket.close()

    def ask(self, request: bytes) -> bytes:
        """The body of the answer."""
        self._socket.sendall(request)
        found = b""
        while b"\r\n\r\n" not in found:
            found += self._socket.recv(1 << 16)
        head, _, body = found.partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200 ")
        size_bytes = int(head.split(b"content-length: ")[1].split(b"\r\n")[0])
        while len(body) < size_bytes:
            body += self._socket.recv(1 << 16)
        return body


def test_what_the_core_answers_is_counted_and_logged_as_all_others(service: InProcess) -> None:
    texts = [" ".join(words) for words in itertools.combinations(WORDS[:6], 2)]
    log = Noting()
    metrics = service._app.metrics
    metrics.access_log = log
    bodies: list[bytes] = []

    async def ask(listener: Listener) -> None:
        client = await asyncio.to_thread(Client, listener.port)
        bodies.extend([await asyncio.to_thread(client.ask, request_of(text)) for text in texts])
        client.close()

    def counts() -> tuple[int, int]:
        found = metrics.of("query")
        return found.count, sum(answers.sent_bytes for _, _, answers in metrics.statuses("query"))

    before = counts()
    serve(service, ask)
    metrics.access_log = None
    assert len(log.noted) == len(texts) > log.sent >= len(texts) - WARM
    assert counts() == (before[0] + len(texts), before[1] + sum(map(len, bodies)))
    for text, body, (query, sent_bytes, received_bytes, status, about) in zip(texts, bodies, log.noted, strict=True):
        assert query == http_kinds.patient_path(http_kinds.PLAIN, text).partition("?")[2]
        root = orjson.loads(body)["root"]
        assert (sent_bytes, received_bytes, status) == (len(body), 0, 200)
        assert about == (root["fields"]["totalCount"], len(root["children"]))


def test_what_the_core_answers_takes_few_steps_of_python(service: InProcess) -> None:
    """Counted over some requests, since the event loop is told of them together: of many such groups the one with the
    fewest, since routes are forgotten, and found again, when rows are written behind."""
    texts = [" ".join(words) for words in itertools.combinations(WORDS[:8], 3)]
    calls: list[str] = []
    counted: list[int] = []

    def note(frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and "/paperwasp/" in frame.f_code.co_filename:
            calls.append(f"{frame.f_code.co_filename}:{frame.f_code.co_name}")

    async def ask(listener: Listener) -> None:
        client = await asyncio.to_thread(Client, listener.port)
        for text in texts:
            wait = asyncio.get_running_loop().run_in_executor(None, client.ask, request_of(text))
            sys.setprofile(note)
            await wait
            sys.setprofile(None)
            counted.append(len(calls))
        client.close()

    serve(service, ask)
    least = min(counted[end] - counted[end - GROUP] for end in range(WARM + GROUP, len(counted)))
    print("\n".join(calls))  # noqa: T201
    assert 0 < least / GROUP <= MOST_PYTHON_CALLS
