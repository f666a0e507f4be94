"""A container's port with a limit of its own: bodies that are too large, in whatever form, and what is said then."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import AsyncIterator, Awaitable, Callable
from types import MappingProxyType

import cbor2
import httpx
import pytest

from paperwasp.application.model import ApplicationModel
from paperwasp.application.services_model import Container
from paperwasp.container.app import ContainerApp
from paperwasp.container.state import Running
from paperwasp.coordination.messenger import EmbeddedMessenger
from paperwasp.server.roles.listener import Listener

HOST = "127.0.0.1"
LIMIT_BYTES = 2000
PATH = "/document/v1/ns/music/docid/1"
CONTAINER = Container("default", search=True, document_api=True, max_document_size_bytes=LIMIT_BYTES)
CBOR = {"Accept": "application/cbor", "Content-Type": "application/cbor"}
BOTH = pytest.mark.parametrize("http2", [False, True], ids=["http1", "h2c"])


def serve(http2: bool, test: Callable[[httpx.AsyncClient], Awaitable[None]]) -> None:
    async def run() -> None:
        app = ContainerApp(EmbeddedMessenger())
        model = ApplicationModel((CONTAINER,), (), MappingProxyType({}), (), "abc")
        app.configure(Running(1, model, CONTAINER))
        listener = Listener(HOST, 0, app)
        listener.server.start()
        address = f"http://{HOST}:{listener.port}"
        try:
            async with httpx.AsyncClient(base_url=address, http1=not http2, http2=http2) as client:
                await test(client)
        finally:
            await asyncio.wait_for(listener.server.stop(), 10)

    asyncio.run(run())


async def in_chunks(body: bytes) -> AsyncIterator[bytes]:
    for start in range(0, len(body), 100):
        yield body[start : start + 100]


@BOTH
def test_a_document_larger_than_the_container_takes_is_refused_in_the_words_of_document_v1(http2: bool) -> None:
    async def test(client: httpx.AsyncClient) -> None:
        large, bomb = bytes(LIMIT_BYTES + 1), gzip.compress(bytes(10**6))
        assert len(bomb) < LIMIT_BYTES
        for content, headers in (
            (large, {}),
            (in_chunks(large), {}),
            (bomb, {"Content-Encoding": "gzip"}),
            (in_chunks(bomb), {"Content-Encoding": "gzip"}),
        ):
            answer = await client.post(PATH, content=content, headers=headers)
            assert answer.status_code == 413
            assert answer.json() == {
                "pathId": PATH,
                "message": "Request content size is larger than the limit: at least 2001 bytes, limit 2000 bytes",
            }
        answer = await client.post(PATH, content=b" " * LIMIT_BYTES)
        assert answer.status_code == 400
        assert (await client.post("/search/", content=large)).status_code == 400

    serve(http2, test)


@BOTH
def test_refusals_are_cbor_for_who_speaks_it(http2: bool) -> None:
    async def test(client: httpx.AsyncClient) -> None:
        for path, content, status in (
            (PATH, bytes(LIMIT_BYTES + 1), 413),
            (PATH, b"\xff", 400),
            (PATH, cbor2.dumps({"fields": {}}), 400),
            ("/search/", b"\xff", 400),
            ("/state/v1/health", b"\xff", 400),
        ):
            answer = await client.post(path, content=content, headers=CBOR)
            assert (answer.status_code, answer.headers["content-type"]) == (status, "application/cbor")
            assert "message" in str(cbor2.loads(answer.content))
        health = await client.get("/state/v1/health", headers=CBOR)
        assert cbor2.loads(health.content)["status"] == {"code": "up"}

    serve(http2, test)
