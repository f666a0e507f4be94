"""The feed client over TLS: ALPN, certificates of servers and clients, and servers without HTTP/2."""

from __future__ import annotations

import asyncio
import ssl
from pathlib import Path
from typing import Any

import pytest

from paperwasp.client import AsyncFeedClient, FeedClient, Outcome
from paperwasp.errors import FeedError, InvalidInput
from tests.client.feeding.fake_server import FakeServer, OldPeer, Peer, Request
from tests.client.feeding.test_feed_client import FIELDS, run
from tests.http.certificates import Authority


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


def context_of(authority: Authority, protocols: list[str], verify: ssl.VerifyMode = ssl.CERT_NONE) -> ssl.SSLContext:
    context = authority.server_context(verify)
    if protocols:
        context.set_alpn_protocols(protocols)
    return context


def test_setting_certificate_and_key(authority: Authority) -> None:
    owner = authority.sign("feeder")
    found: list[Any] = []

    def look(peer: Peer) -> None:
        tls = peer.transport.get_extra_info("ssl_object")
        found.append((tls.selected_alpn_protocol(), dict(part[0] for part in tls.getpeercert()["subject"])))

    async def work() -> None:
        context = context_of(authority, ["h2"], ssl.CERT_REQUIRED)
        files: Any = {"certificate": owner.path, "private_key": str(owner.path), "ca_certificates": authority.path}
        async with FakeServer(tls=context, on_connection=look) as server:
            async with AsyncFeedClient(server.url, connections_per_endpoint=2, **files) as client:
                result = await client.put("id:ns:music::1", FIELDS)
            with pytest.raises(FeedError, match="handshake"):
                async with AsyncFeedClient(server.url, ca_certificates=authority.path):
                    pass
        assert result.outcome is Outcome.SUCCESS

    run(work())
    assert found[0] == ("h2", {"commonName": "feeder"})


def test_a_server_of_an_unknown_authority_is_not_fed(authority: Authority, tmp_path: Path) -> None:
    async def work() -> None:
        other = Authority(tmp_path, "other")
        async with FakeServer(tls=context_of(authority, ["h2"])) as server:
            with pytest.raises(FeedError, match="certificate"):
                async with AsyncFeedClient(server.url, ca_certificates=other.path):
                    pass
        assert server.requests == []

    run(work())


@pytest.mark.parametrize("protocols", [[], ["http/1.1"], ["spdy/3"]])
@pytest.mark.parametrize("framing", ["length", "chunks", "end"])
def test_a_server_whose_alpn_does_not_choose_http2_is_fed_over_http1(
    authority: Authority, protocols: list[str], framing: str
) -> None:
    async def work() -> None:
        statuses = {"1": 412, "2": 507}

        def answer(request: Request) -> None:
            request.answer(statuses.get(request.path.rpartition("/")[2], 200), message="é")

        tls = context_of(authority, protocols)
        server = FakeServer(answer, tls=tls, protocol=OldPeer, framing=framing)
        async with server, AsyncFeedClient(server.url, ca_certificates=authority.path, token="secret") as client:
            puts = (client.put(f"id:ns:music::{number}", {"fields": {"a": "b" * 700}}) for number in range(40))
            results = await asyncio.gather(*puts, client.remove("id:ns:music::x"), return_exceptions=True)
            statistics = client.statistics()
        assert statistics.responses_by_code == {200: 39, 412: 1, 507: 1}
        assert statistics.exceptions == 0
        assert [getattr(result, "outcome", None) for result in results[:4]] == [
            Outcome.SUCCESS,
            Outcome.CONDITION_NOT_MET,
            None,
            Outcome.SUCCESS,
        ]
        assert {request.headers["authorization"] for request in server.requests} == {"Bearer secret"}
        assert server.requests[0].json() == {"fields": {"a": "b" * 700}}
        assert len(server.peers) == 8 or framing == "end"

    run(work())


@pytest.mark.parametrize(
    "garbage", [b"HTTP/1.1 2x0 OK\r\n\r\n", b"\0" * 70_000, b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n"]
)
def test_garbage_over_http1_is_a_failed_attempt(authority: Authority, garbage: bytes) -> None:
    async def work() -> None:
        count = 0

        def answer(request: Request) -> None:
            nonlocal count
            count += 1
            if count % 2:
                request.peer.transport.write(garbage)
            else:
                request.answer()

        server = FakeServer(answer, tls=context_of(authority, []), protocol=OldPeer)
        async with server, AsyncFeedClient(server.url, ca_certificates=authority.path) as client:
            for number in range(5):
                await client.put(f"id:ns:music::{number}", FIELDS)
            assert client.statistics().exceptions == 5

    run(work())


def test_a_context_of_the_callers_own(authority: Authority) -> None:
    async def work() -> None:
        async with (
            FakeServer(tls=context_of(authority, ["h2"])) as server,
            AsyncFeedClient(server.url, ssl_context=authority.client_context()) as client,
        ):
            await client.put("id:ns:music::1", FIELDS)
        assert server.requests[0].headers[":scheme"] == "https"

    run(work())


def test_certificates_that_cannot_be(authority: Authority, tmp_path: Path) -> None:
    for options in (
        {"certificate": "a"},
        {"private_key": "a"},
        {"certificate": tmp_path / "missing", "private_key": tmp_path / "missing"},
        {"ca_certificates": tmp_path / "missing"},
        {"ssl_context": authority.client_context(), "ca_certificates": authority.path},
    ):
        with pytest.raises(InvalidInput):
            FeedClient("https://127.0.0.1:1", **options)
