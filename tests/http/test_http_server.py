"""The server on real sockets: both protocols, bodies of every kind, stopping."""

from __future__ import annotations

import asyncio
import gzip
import socket
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from paperwasp.errors import InvalidInput, NotFound, TooLarge
from paperwasp.http.compression import gunzip
from paperwasp.http.exchange import Handler
from paperwasp.http.listening import PortTaken
from paperwasp.http.messages import Request, Response, json_response, text_response
from paperwasp.http.server import HttpServer
from tests.http.http_servers import BOTH, HOST, client_of, serve_for

LIMIT_BYTES = 1000


async def echo(request: Request) -> Response:
    if request.raw_path == "/fail":
        raise ZeroDivisionError("secret")
    if request.raw_path == "/absent":
        raise NotFound("not here")
    content = {
        "method": request.method,
        "path": request.raw_path,
        "query": request.query,
        "body": request.body.decode(),
        "host": request.host,
        "type": request.content_type,
    }
    return json_response(200, content, {"X-Test": "yes"})


def serve(test: Callable[[HttpServer], Awaitable[None]], handler: Handler = echo) -> None:
    """Runs `test` against a server that is there only for it."""
    serve_for(test, handler, LIMIT_BYTES)


@BOTH
def test_a_request_reaches_the_handler_as_it_was_sent(http2: bool) -> None:
    async def test(server: HttpServer) -> None:
        async with client_of(server, http2) as http:
            answer = await http.post(
                "/a%20b/c%2Fd?x=%20y", content=b"text", headers={"Content-Type": "text/plain; a=b"}
            )
            assert answer.http_version == ("HTTP/2" if http2 else "HTTP/1.1")
            assert answer.status_code == 200
            assert answer.reason_phrase == "OK"
            assert answer.headers["x-test"] == "yes"
            assert answer.headers["content-type"] == "application/json"
            assert answer.json() == {
                "method": "POST",
                "path": "/a%20b/c%2Fd",
                "query": "x=%20y",
                "body": "text",
                "host": f"{HOST}:{server.port}",
                "type": "text/plain",
            }

    serve(test)


def test_bytes_beyond_ascii_in_an_address_are_what_their_escapes_would_be() -> None:
    """As in Jetty, which takes them for UTF-8; `%C3%A9` is é."""

    async def test(server: HttpServer) -> None:
        reader, writer = await asyncio.open_connection(HOST, server.port)
        writer.write("GET /é/%41?x=é HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n".encode())
        answer = await reader.read()
        writer.close()
        assert b'"path":"/%C3%A9/%41","query":"x=%C3%A9"' in answer

    serve(test)


@BOTH
def test_bodies_may_be_compressed_chunked_or_absent(http2: bool) -> None:
    async def chunks() -> AsyncIterator[bytes]:
        for part in (b"one ", b"two ", b"three"):
            yield part

    async def test(server: HttpServer) -> None:
        async with client_of(server, http2) as http:
            answer = await http.post("/", content=gzip.compress(b"squeezed"), headers={"Content-Encoding": "gzip"})
            assert answer.json()["body"] == "squeezed"
            assert (await http.put("/", content=chunks())).json()["body"] == "one two three"
            assert (await http.post("/")).json()["body"] == ""
            assert (await http.get("/")).json()["body"] == ""
            assert (await http.request("DELETE", "/", content=b"x")).json()["body"] == "x"

    serve(test)


@BOTH
def test_a_body_over_the_limit_is_refused_however_it_comes(http2: bool) -> None:
    async def chunks() -> AsyncIterator[bytes]:
        for _ in range(10):
            yield b"x" * 200

    async def test(server: HttpServer) -> None:
        async with client_of(server, http2) as http:
            assert (await http.post("/", content=b"x" * LIMIT_BYTES)).status_code == 200
            assert (await http.post("/", content=b"x" * (LIMIT_BYTES + 1))).status_code == 413
            assert (await http.post("/", content=chunks())).status_code == 413
            bomb = gzip.compress(b"x" * 100_000)
            answer = await http.post("/", content=bomb, headers={"Content-Encoding": "gzip"})
            assert answer.status_code == 413
            assert str(LIMIT_BYTES) in answer.json()["message"]

    serve(test)


def test_a_gzip_body_within_the_limit_may_not_inflate_beyond_it_when_chunked_either() -> None:
    async def bomb() -> AsyncIterator[bytes]:
        data = gzip.compress(bytes(10**7))[:900]
        for start in range(0, len(data), 100):
            yield data[start : start + 100]

    async def test(server: HttpServer) -> None:
        async with client_of(server, False) as http:
            answer = await http.post("/", content=bomb(), headers={"Content-Encoding": "gzip"})
            assert answer.status_code == 413
            assert answer.json()["message"] == (
                "Request content size is larger than the limit: at least 1001 bytes, limit 1000 bytes"
            )

    serve(test)


async def raw(server: HttpServer, sent: bytes, then: bytes = b"") -> bytes:
    """All that the server answers to `sent`, and to `then`, sent once something has come."""
    reader, writer = await asyncio.open_connection(HOST, server.port)
    writer.write(sent)
    answer = await asyncio.wait_for(reader.read(65536), 10) if then else b""
    writer.write(then)
    if b"Connection: close" not in sent:
        writer.write_eof()
    answer += await asyncio.wait_for(reader.read(), 10)
    writer.close()
    return answer


def test_a_client_that_waits_to_be_asked_is_told_to_continue() -> None:
    async def test(server: HttpServer) -> None:
        head = b"POST / HTTP/1.1\r\nHost: h\r\nConnection: close\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n"
        answer = await raw(server, head, b"text")
        assert answer.startswith(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n")
        assert b'"body":"text"' in answer

    serve(test)


def test_a_body_shorter_than_announced_reaches_no_handler() -> None:
    reached = asyncio.Event()

    async def handler(_: Request) -> Response:
        reached.set()
        return json_response(200, {})

    async def test(server: HttpServer) -> None:
        assert b" 200 " not in await raw(server, b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\nshort")
        assert not reached.is_set()

    serve(test, handler)


@pytest.mark.parametrize(
    "head",
    [
        b"Content-Length: 5\r\nContent-Length: 6",
        b"Content-Length: x",
        b"Content-Length: -1",
        b"Content-Length: 99999999999999999999999",
    ],
)
def test_a_length_that_is_none_is_refused(head: bytes) -> None:
    async def test(server: HttpServer) -> None:
        answer = await raw(server, b"POST / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n" + head + b"\r\n\r\ntext!")
        assert answer.startswith((b"HTTP/1.1 400 ", b"HTTP/1.1 413 "))

    serve(test)


@BOTH
def test_answers_are_compressed_for_who_takes_gzip(http2: bool) -> None:
    async def handler(request: Request) -> Response:
        size = int(request.query)
        return text_response(200, "x" * size) if request.raw_path == "/text" else Response(200, bytes(size), "a/b")

    async def test(server: HttpServer) -> None:
        async with client_of(server, http2) as http:
            for path, size, accepted, encoding in (
                ("/text", 10_000, "zstd,gzip,deflate,br", "gzip"),
                ("/text", 1_000_000, "gzip", "gzip"),
                ("/text", 10_000, "identity", None),
                ("/text", 10_000, "gzip;q=0", None),
                ("/text", 100, "gzip", None),
                ("/bytes", 10_000, "gzip", None),
            ):
                answer = await http.get(f"{path}?{size}", headers={"Accept-Encoding": accepted})
                assert answer.headers.get("content-encoding") == encoding
                assert len(answer.content) == size
                assert answer.headers.get("vary") == ("Accept-Encoding" if encoding else None)
                assert (int(answer.headers["content-length"]) < size) == (encoding is not None)

    serve(test, handler)


def test_broken_encodings_are_the_clients_fault() -> None:
    async def test(server: HttpServer) -> None:
        async with client_of(server, False) as http:
            for encoding, body in (("gzip", b"not gzip"), ("gzip", gzip.compress(b"cut off")[:-3]), ("br", b"x")):
                answer = await http.post("/", content=body, headers={"Content-Encoding": encoding})
                assert answer.status_code == 400, answer.text

    serve(test)


def test_head_has_the_headers_of_get_and_no_body() -> None:
    async def test(server: HttpServer) -> None:
        async with client_of(server, False) as http:
            answer = await http.head("/x")
            assert (answer.status_code, answer.content) == (200, b"")
            assert int(answer.headers["content-length"]) > 0

    serve(test)


def test_the_status_line_is_what_grep_expects() -> None:
    async def test(server: HttpServer) -> None:
        reader, writer = await asyncio.open_connection(HOST, server.port)
        writer.write(b"HEAD /ApplicationStatus HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
        assert (await reader.readline()) == b"HTTP/1.1 200 OK\r\n"
        writer.close()
        await writer.wait_closed()

    serve(test)


def test_failures_become_answers_without_a_trace() -> None:
    async def test(server: HttpServer) -> None:
        async with client_of(server, False) as http:
            answer = await http.get("/fail")
            assert answer.status_code == 500
            assert answer.json()["message"] == "Internal server error"
            assert (await http.get("/absent")).json() == {"error-code": "NOT_FOUND", "message": "not here"}

    serve(test)


@BOTH
@pytest.mark.parametrize("value", ["a\r\nSet-Cookie: b", "a\nb", "\u20ac"], ids=repr)
def test_a_header_that_may_not_be_sent_is_our_fault(http2: bool, value: str) -> None:
    async def handler(_: Request) -> Response:
        return json_response(200, {}, {"X-Test": value})

    async def test(server: HttpServer) -> None:
        async with client_of(server, http2) as http:
            answer = await http.get("/")
            assert (answer.status_code, answer.json()["message"]) == (500, "Internal server error")
            assert "x-test" not in answer.headers

    serve(test, handler)


def test_stopping_waits_for_requests_in_flight() -> None:
    async def run() -> None:
        arrived, may_end = asyncio.Event(), asyncio.Event()

        async def slow(_: Request) -> Response:
            arrived.set()
            await may_end.wait()
            return json_response(200, {"done": True})

        server = HttpServer(slow, HOST, 0)
        server.start()
        async with client_of(server, False) as http:
            request = asyncio.create_task(http.get("/"))
            await arrived.wait()
            stop = asyncio.create_task(server.stop())
            may_end.set()
            assert (await request).json() == {"done": True}
            await asyncio.wait_for(stop, 10)
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection(HOST, server.port)

    asyncio.run(run())


def test_a_taken_port_is_named() -> None:
    with socket.socket() as other:
        other.bind((HOST, 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(PortTaken, match=str(port)):
            HttpServer(echo, HOST, port)


def test_gunzip_reads_members_and_holds_its_limit() -> None:
    assert gunzip(gzip.compress(b"ab") + gzip.compress(b"cd"), 4) == b"abcd"
    with pytest.raises(TooLarge):
        gunzip(gzip.compress(b"ab") + gzip.compress(b"cd"), 3)
    with pytest.raises(InvalidInput):
        gunzip(gzip.compress(b"ab") + b"junk", 100)


def test_a_restart_keeps_the_port_and_who_waits_for_it() -> None:
    async def test(server: HttpServer) -> None:
        async with client_of(server, http2=False) as before:
            assert (await before.get("/")).status_code == 200
            restart = asyncio.ensure_future(server.restart())
            with socket.create_connection((HOST, server.port)) as waiting:
                await restart
                waiting.close()
            assert (await before.get("/")).status_code == 200

    serve(test)


def test_a_port_that_another_took_before_listening_is_told() -> None:
    """Two sockets may be bound to one port while neither listens."""

    async def test() -> None:
        first, second = HttpServer(echo, HOST, 0), None
        try:
            second = HttpServer(echo, HOST, first.port)
            first.start()
            with pytest.raises(PortTaken, match=f"Port {first.port} on {HOST} is taken"):
                second.start()
        finally:
            if second is not None:
                await second.stop()
            await asyncio.wait_for(first.stop(), 10)

    asyncio.run(test())
