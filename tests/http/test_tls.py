"""TLS: both protocols by ALPN, who a client is, handshakes that do not come, streams, stops."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import httpx
import pytest
from cryptography import x509

from paperwasp import limits
from paperwasp.http.messages import Answer, Request, StreamedResponse, json_response
from paperwasp.http.server import HttpServer
from tests.http.certificates import Authority, Owner

HOST = "127.0.0.1"
CHUNK = bytes(range(256)) * 256
BOTH = pytest.mark.parametrize("http2", [False, True], ids=["http1", "h2"])


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


async def answer(request: Request) -> Answer:
    if request.raw_path == "/stream":
        return StreamedResponse(200, _chunks(), "application/octet-stream")
    client = request.client
    who = None if client is None else [client.common_name, list(client.alternative_names), client.sha256]
    return json_response(200, {"url": request.url, "client": who, "size": len(request.body)})


async def _chunks() -> AsyncIterator[bytes]:
    for _ in range(50):
        yield CHUNK


def serve(context: ssl.SSLContext, test: Callable[[HttpServer], Awaitable[None]]) -> None:
    async def run() -> None:
        server = HttpServer(answer, HOST, 0, tls=context)
        server.start()
        try:
            await test(server)
        finally:
            await asyncio.wait_for(server.stop(), 10)

    asyncio.run(run())


def client(server: HttpServer, authority: Authority, http2: bool, owner: Owner | None = None) -> httpx.AsyncClient:
    context = authority.client_context(owner)
    return httpx.AsyncClient(base_url=f"https://{HOST}:{server.port}", verify=context, http1=not http2, http2=http2)


@BOTH
def test_both_protocols_are_spoken(http2: bool, authority: Authority) -> None:
    async def test(server: HttpServer) -> None:
        async with client(server, authority, http2) as http:
            for body in (b"", b"small", CHUNK * 20):
                found = await http.post("/a", content=body)
                assert found.http_version == ("HTTP/2" if http2 else "HTTP/1.1")
                content = {"url": f"https://{HOST}:{server.port}/a", "client": None, "size": len(body)}
                assert found.json() == content
            streamed = await http.get("/stream")
            assert streamed.content == CHUNK * 50

    serve(authority.server_context(), test)


@BOTH
@pytest.mark.parametrize("verify", [ssl.CERT_OPTIONAL, ssl.CERT_REQUIRED])
def test_who_shows_a_certificate_is_known_to_the_handler(
    http2: bool, verify: ssl.VerifyMode, authority: Authority
) -> None:
    names = x509.DNSName("client.example"), x509.UniformResourceIdentifier("spiffe://example/client")
    owner = authority.sign("somebody", *names)

    async def test(server: HttpServer) -> None:
        async with client(server, authority, http2, owner) as http:
            expected = ["somebody", ["DNS:client.example", "URI:spiffe://example/client"], owner.sha256]
            assert (await http.get("/")).json()["client"] == expected

    serve(authority.server_context(verify), test)


def test_who_must_show_a_certificate_and_does_not_gets_no_answer(authority: Authority, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    stranger = Authority(tmp_path / "other", "stranger").sign("somebody")

    async def test(server: HttpServer) -> None:
        for owner in (None, stranger):
            with pytest.raises(httpx.TransportError):
                async with client(server, authority, False, owner) as http:
                    await http.get("/")
        async with client(server, authority, False, authority.sign("known")) as http:
            assert (await http.get("/")).json()["client"][0] == "known"

    serve(authority.server_context(ssl.CERT_REQUIRED), test)


@pytest.mark.parametrize("sent", [b"", b"\x16\x03\x01", b"GET / HTTP/1.1\r\nHost: h\r\n\r\n"], ids=repr)
def test_a_handshake_that_does_not_come_is_given_up(
    sent: bytes, authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "HTTP_TLS_HANDSHAKE_SECONDS", 0.1)

    async def test(server: HttpServer) -> None:
        reader, writer = await asyncio.open_connection(HOST, server.port)
        writer.write(sent)
        assert b"HTTP" not in await asyncio.wait_for(reader.read(), 10)
        writer.close()

    serve(authority.server_context(), test)


def test_a_client_that_asks_nothing_after_the_handshake_is_closed(
    authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "HTTP_FIRST_REQUEST_SECONDS", 0.1)
    monkeypatch.setattr(limits, "HTTP_LOOK_SECONDS", 0.02)

    async def test(server: HttpServer) -> None:
        reader, writer = await asyncio.open_connection(HOST, server.port, ssl=authority.client_context())
        assert await asyncio.wait_for(reader.read(), 10) == b""
        writer.close()

    serve(authority.server_context(), test)


def test_a_stop_ends_handshakes_and_idle_connections(authority: Authority) -> None:
    async def test(server: HttpServer) -> None:
        silent, writer = await asyncio.open_connection(HOST, server.port)
        async with client(server, authority, False) as http:
            assert (await http.get("/")).status_code == 200
            await asyncio.wait_for(server.stop(), 4)
        assert await asyncio.wait_for(silent.read(), 10) == b""
        writer.close()

    serve(authority.server_context(), test)
