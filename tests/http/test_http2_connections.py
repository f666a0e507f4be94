"""HTTP/2 on real sockets: upgrades, refused bodies, answers that are not read, stops."""

from __future__ import annotations

import asyncio

import pytest
from h2.events import (
    ConnectionTerminated,
    InformationalResponseReceived,
    ResponseReceived,
    StreamEnded,
    StreamReset,
)

from paperwasp import limits
from paperwasp.http.messages import Answer, Request, Response
from paperwasp.http.server import HttpServer
from tests.http.http2_client import Client
from tests.http.http_servers import (
    LIMIT_BYTES,
    Held,
    connect,
    connections_of,
    echo,
    get,
    port_of,
    serve_for,
    serve_held,
    until,
    whole_answer,
)


def test_a_request_may_be_upgraded_to_http_2() -> None:
    head = get("/first", "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: SETTINGS\r\n")

    async def test(server: HttpServer) -> None:
        client = Client(server)
        await client.open(upgrade=head)
        status, body = await client.answer(1)
        assert (status, body) == ("200", b'{"path":"/first","size":0,"host":"h"}')
        status, body = await client.answer(client.ask("POST", "/second", b"12345"))
        assert (status, body) == ("200", b'{"path":"/second","size":5,"host":"h"}')
        client.close()

    serve_for(test, echo)


def test_the_answer_to_an_upgrade_waits_for_the_client_to_speak_http_2() -> None:
    """curl takes no more than 32 KiB together with the end of HTTP/1.1."""
    size = 50_000

    async def large(request: Request) -> Answer:
        return Response(200, bytes(size), "application/octet-stream")

    async def test(server: HttpServer) -> None:
        client = Client(server)
        head = get("/", "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: SETTINGS\r\n")
        await client.open(upgrade=head)
        first = await asyncio.wait_for(client.reader.read(1 << 20), 10)
        assert len(first) < 1000
        client.feed(first)
        assert await client.answer(1) == ("200", bytes(size))
        client.close()

    serve_for(test, large)


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        (
            "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\nContent-Length: 3\r\n",
            b"200",
        ),
        ("Connection: Upgrade\r\nUpgrade: websocket\r\nContent-Length: 3\r\n", b"200"),
        ("Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMA\r\n", b"400"),
    ],
    ids=["with a body", "to something else", "with broken settings"],
)
def test_other_upgrades_are_not_made(fields: str, status: bytes) -> None:
    async def test(server: HttpServer) -> None:
        reader, writer = await connect(server)
        writer.write(get("/", fields) + b"abc")
        head, body = await whole_answer(reader)
        assert head.split(b" ")[1] == status
        assert (b'"size":3' in body) == (status == b"200")
        writer.close()

    serve_for(test, echo)


def test_http_2_goes_on_after_a_refused_body() -> None:
    async def test(server: HttpServer) -> None:
        client = Client(server)
        await client.open()
        for ends in (True, False):
            number = client.ask("POST", "/", bytes(1000), ends, {"content-length": str(LIMIT_BYTES + 1)})
            if ends:
                continue
            status, body = await client.answer(number)
            assert status == "413"
            assert b"limit 100000 bytes" in body
            client.h2.send_data(number, bytes(10_000))
        status, _ = await client.answer(client.ask("POST", "/", bytes(1000)))
        assert status == "200"
        client.close()

    serve_for(test, echo)


def test_a_client_of_http_2_may_wait_to_be_asked_for_its_body() -> None:
    async def test(server: HttpServer) -> None:
        client = Client(server)
        await client.open()
        number = client.ask("POST", "/", ends=False, fields={"expect": "100-continue", "content-length": "3"})
        asked = await client.event(number, InformationalResponseReceived)
        assert isinstance(asked, InformationalResponseReceived)
        client.h2.send_data(number, b"abc", end_stream=True)
        assert (await client.answer(number))[1] == b'{"path":"/","size":3,"host":"h"}'
        large = {"expect": "100-continue", "content-length": str(LIMIT_BYTES + 1)}
        number = client.ask("POST", "/", ends=False, fields=large)
        assert (await client.answer(number))[0] == "413"
        await client.event(number, StreamReset)
        client.close()

    serve_for(test, echo)


def test_a_body_of_http_2_that_does_not_come_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "HTTP_BODY_SECONDS", 0.1)
    monkeypatch.setattr(limits, "HTTP_LOOK_SECONDS", 0.02)

    async def test(server: HttpServer) -> None:
        client = Client(server)
        await client.open()
        number = client.ask("POST", "/", b"abc", ends=False)
        status, body = await client.answer(number)
        assert status == "408"
        assert b"HTTP_BODY_SECONDS" in body
        assert (await client.answer(client.ask("GET", "/")))[0] == "200"
        client.close()

    serve_for(test, echo)


def test_requests_of_http_2_wait_while_answers_before_them_are_not_read() -> None:
    begun: list[str] = []

    async def large(request: Request) -> Answer:
        begun.append(request.raw_path)
        return Response(200, bytes(limits.HTTP_UNSENT_BYTES), "application/octet-stream")

    async def test(server: HttpServer) -> None:
        client = Client(server, window=0)
        await client.open()
        numbers = [client.ask("GET", f"/{number}") for number in range(10)]
        for number in numbers[:2]:
            await client.event(number, ResponseReceived)
        assert begun == ["/0", "/1"]
        (connection,) = connections_of(server)
        assert connection.unread_bytes == 2 * limits.HTTP_UNSENT_BYTES
        for number in numbers[:2]:
            client.h2.increment_flow_control_window(limits.HTTP_UNSENT_BYTES, number)
        client.h2.increment_flow_control_window(8 * limits.HTTP_UNSENT_BYTES)
        for number in numbers[:2]:
            await client.event(number, StreamEnded)
        await client.event(numbers[3], ResponseReceived)
        assert begun == ["/0", "/1", "/2", "/3"]
        client.close()

    serve_for(test, large)


def test_http_2_lets_requests_under_way_end_at_a_stop() -> None:
    async def test(server: HttpServer, held: Held) -> None:
        client = Client(server)
        await client.open()
        numbers = [client.ask("GET", f"/wait{number}") for number in range(5)]
        await client.send()
        await until(lambda: len(held.begun) == 5)
        stop = asyncio.create_task(server.stop())
        await asyncio.to_thread(lambda: None)
        held.may_end.set()
        assert [(await client.answer(number))[0] for number in numbers] == ["200"] * 5
        assert isinstance(await client.event(0, ConnectionTerminated), ConnectionTerminated)
        assert await asyncio.wait_for(client.reader.read(), 10) == b""
        await asyncio.wait_for(stop, 4)
        client.close()

    serve_held(test)


def test_more_requests_of_http_2_are_refused_at_a_stop() -> None:
    """The first of them is answered; from then on the client knows."""

    async def test(server: HttpServer, held: Held) -> None:
        client = Client(server)
        await client.open()
        numbers = [client.ask("GET", "/wait")]
        await client.send()
        await until(lambda: len(held.begun) == 1)
        stop = asyncio.create_task(server.stop())
        await until(lambda: port_of(server)._is_draining)
        numbers.append(client.ask("GET", "/late"))
        await client.event(0, ConnectionTerminated)
        held.may_end.set()
        assert await asyncio.wait_for(client.reader.read(), 10) != b""
        assert held.begun == ["/wait", "/late"]
        await asyncio.wait_for(stop, 4)
        client.close()

    serve_held(test)
