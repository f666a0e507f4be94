"""TLS: both protocols by ALPN, who a client is, handshakes that do not come, streams, stops."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
from cryptography import x509

from paperwasp import limits
from paperwasp.http.messages import Answer, Request, StreamedResponse, json_response
from paperwasp.http.server import HttpServer
from paperwasp.http.tls import ServerContext
from tests.http.certificates import Authority, Owner
from tests.http.http_servers import BOTH, HOST, client_of, serve_for

CHUNK = bytes(range(256)) * 256


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


def serve(context: ServerContext, test: Callable[[HttpServer], Awaitable[None]]) -> None:
    serve_for(test, answer, tls=context)


def client(server: HttpServer, authority: Authority, http2: bool, owner: Owner | None = None) -> httpx.AsyncClient:
    return client_of(server, http2, authority.client_context(owner))


@BOTH
def test_both_protocols_are_spoken(http2: bool, authority: Authority) -> None:
    async def test(server: HttpServer) -> None:
        async with client(server, authority, http2) as http:
            for body in (b"", b"small", CHUNK):
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
            with pytest.raises((httpx.TransportError, ssl.SSLError)):
                async with client(server, authority, False, owner) as http:
                    await http.get("/")
        async with client(server, authority, False, authority.sign("known")) as http:
            assert (await http.get("/")).json()["client"][0] == "known"

    serve(authority.server_context(ssl.CERT_REQUIRED), test)


@dataclass(frozen=True)
class Refusal:
    """A client that is refused in the handshake, and how OpenSSL names the alert that it gets."""

    name: str
    alert: str
    verify: ssl.VerifyMode = ssl.CERT_REQUIRED
    is_stranger: bool = False
    """It shows a certificate of another authority; else none."""
    most: ssl.TLSVersion = ssl.TLSVersion.TLSv1_3
    least_of_server: ssl.TLSVersion = ssl.TLSVersion.TLSv1_2
    ciphers_of_server: str | None = None

    def __str__(self) -> str:
        return self.name


TLS12 = ssl.TLSVersion.TLSv1_2
REFUSALS = (
    Refusal("no certificate", "TLSV13_ALERT_CERTIFICATE_REQUIRED"),
    Refusal("no certificate, TLS 1.2", "SSLV3_ALERT_HANDSHAKE_FAILURE", most=TLS12),
    Refusal("another authority", "TLSV1_ALERT_UNKNOWN_CA", is_stranger=True),
    Refusal("another authority, TLS 1.2", "TLSV1_ALERT_UNKNOWN_CA", is_stranger=True, most=TLS12),
    Refusal(
        "no common version", "TLSV1_ALERT_PROTOCOL_VERSION", ssl.CERT_NONE, most=TLS12,
        least_of_server=ssl.TLSVersion.TLSv1_3,
    ),
    Refusal(
        "no common cipher", "SSLV3_ALERT_HANDSHAKE_FAILURE", ssl.CERT_NONE, most=TLS12,
        ciphers_of_server="ECDHE-RSA-AES256-GCM-SHA384",  # the server's key is of an elliptic curve
    ),
)  # fmt: skip


@pytest.mark.parametrize("size_bytes", [0, 1_000_000])
@pytest.mark.parametrize("refusal", REFUSALS, ids=str)
def test_who_is_refused_in_the_handshake_gets_the_alert(
    refusal: Refusal, size_bytes: int, authority: Authority, tmp_path: Path
) -> None:
    """Also where it goes on sending: in TLS 1.3 its handshake ends before the server has seen the certificate."""
    (tmp_path / "other").mkdir()
    stranger = Authority(tmp_path / "other", "stranger").sign("somebody") if refusal.is_stranger else None
    theirs = authority.client_context(stranger)
    theirs.maximum_version = refusal.most
    ours = authority.server_context(refusal.verify)
    ours.minimum_version = refusal.least_of_server
    if refusal.ciphers_of_server is not None:
        ours.set_ciphers(refusal.ciphers_of_server)

    def ask(port: int) -> None:
        with (
            socket.create_connection((HOST, port), 10) as plain,
            theirs.wrap_socket(plain, server_hostname=HOST) as tls,
        ):
            tls.sendall(bytes(size_bytes))
            tls.recv(1)

    async def test(server: HttpServer) -> None:
        with pytest.raises(ssl.SSLError) as refused:
            await asyncio.to_thread(ask, server.port)
        assert refused.value.reason == refusal.alert

    serve(ours, test)


def test_what_a_refused_client_sends_on_is_dropped_up_to_a_limit(
    authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "HTTP_DISCARDED_BYTES", 1000)
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    connection = authority.server_context().wrap_bio(incoming, outgoing, server_side=True)
    incoming.write(b"\x16\x03\x01\0\5\1\0\0\1\0")  # a ClientHello of one byte
    with pytest.raises(ssl.SSLWantReadError):
        connection.do_handshake()
    assert outgoing.read() == b"\x15\x03\x03\0\2\2\x32"  # fatal: decode_error (RFC 8446, B.2)
    for _ in range(2):
        incoming.write(bytes(500))
        with pytest.raises(ssl.SSLWantReadError):
            connection.do_handshake()
        assert not incoming.pending
    incoming.write(b"!")
    with pytest.raises(ssl.SSLError) as failure:
        connection.do_handshake()
    assert not isinstance(failure.value, ssl.SSLWantReadError)
    assert not outgoing.pending


def test_what_is_not_tls_is_closed_at_once(authority: Authority) -> None:
    async def test(server: HttpServer) -> None:
        reader, writer = await asyncio.open_connection(HOST, server.port)
        writer.write(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n")
        assert await asyncio.wait_for(reader.read(), limits.HTTP_TLS_HANDSHAKE_SECONDS / 2) == b""
        writer.close()

    serve(authority.server_context(), test)


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
