"""The thread that reads puts and updates of HTTP/1.1, without a server: `core/http/feed_sockets.hpp`.

Authority: `http.http1.RequestReader`, which reads the same requests.
"""

from __future__ import annotations

import random
import select
import socket
import struct
from collections.abc import Iterator
from typing import Any, TypeAlias

import pytest

from paperwasp.core import _core
from paperwasp.errors import PaperwaspError
from paperwasp.http.http1 import RequestReader
from tests.chance import SEED

HEAD = b"HTTP/1.1 200 OK\r\n"
MOST_BYTES = 4096
Sockets: TypeAlias = "_core.FeedSockets[str, int]"


def put(name: str, body: bytes, method: str = "POST", query: str = "", fields: str = "") -> bytes:
    target = f"/feed/{name}{query}"
    return f"{method} {target} HTTP/1.1\r\nHost: h\r\n{fields}Content-Length: {len(body)}\r\n\r\n".encode() + body


class Fed:
    """The sockets of some clients, which are the lines 0, 1, …"""

    def __init__(self, clients: int, forms: int = 4) -> None:
        self.sockets: Sockets = _core.FeedSockets(MOST_BYTES, forms)
        self.sockets.learn(put("0", b"a"), "post")
        pairs = [socket.socketpair() for _ in range(clients)]
        self.clients, self.servers = [one for one, _ in pairs], [other for _, other in pairs]
        for line, (client, server) in enumerate(pairs):
            client.settimeout(30)
            server.setblocking(False)
            self.sockets.watch(server.fileno(), line)

    def take(self) -> tuple[list[tuple[str, list[int], list[str], list[bytes]]], list[tuple[int, bytes, bytes]]]:
        """What has come; waits for it."""
        assert select.select([self.sockets.fd], [], [], 30)[0]
        return self.sockets.take()[:2]

    def answer(self, line: int, body: bytes) -> None:
        self.sockets.answer([self.servers[line].fileno()], HEAD, [body])

    def answer_of(self, line: int) -> bytes:
        """The body of the next answer."""
        data = b""
        while b"\r\n\r\n" not in data:
            data += self.clients[line].recv(65536)
        head, _, body = data.partition(b"\r\n\r\n")
        assert head.startswith(HEAD + b"content-length: ")
        length = int(head.split(b"length: ")[1].split(b"\r\n")[0])
        while len(body) < length:
            body += self.clients[line].recv(65536)
        return body

    def close(self) -> None:
        self.sockets.close()
        for each in (*self.clients, *self.servers):
            each.close()


@pytest.fixture
def fed() -> Iterator[Fed]:
    found = Fed(3)
    yield found
    found.close()


def test_requests_are_taken_by_form_and_their_answers_written(fed: Fed) -> None:
    assert fed.sockets.learn(put("0", b"a", "PUT", "?create=true"), "put")
    for turn in range(3):
        taken: dict[int, tuple[str, str, bytes]] = {}
        for line, client in enumerate(fed.clients):
            method, query = ("PUT", "?create=true") if line == 1 else ("POST", "")
            client.sendall(put(f"n{line}-{turn}", b"b" * (line + 1), method, query))
        while len(taken) < 3:
            batches, back = fed.take()
            assert not back
            for form, lines, names, bodies in batches:
                taken |= {line: (form, name, body) for line, name, body in zip(lines, names, bodies, strict=True)}
        expected = {line: ("put" if line == 1 else "post", f"n{line}-{turn}", b"b" * (line + 1)) for line in range(3)}
        assert taken == expected
        fed.sockets.answer([each.fileno() for each in fed.servers], HEAD, [b"x", b"yy", b""])
        assert [fed.answer_of(line) for line in range(3)] == [b"x", b"yy", b""]


@pytest.mark.parametrize(
    "other",
    [
        b"GET /feed/1 HTTP/1.1\r\nHost: h\r\n\r\n",
        put("1", b"a", fields="X: y\r\n"),
        put("1", b"a")[:-1],
        put("1", b"a") + b"POST",
        put("", b"a"),
        put("1", b"a").replace(b"Content-Length: 1", b"Content-Length: 01, 1"),
        b"\r\n" + put("1", b"a"),
    ],
)
def test_what_is_no_request_of_a_known_form_gives_the_socket_back(fed: Fed, other: bytes) -> None:
    fed.clients[0].sendall(other)
    assert fed.take() == ([], [(0, other, b"")])
    assert len(fed.sockets) == 2
    fed.clients[0].sendall(put("1", b"a"))  # nobody reads it but whoever has the socket
    fed.clients[1].sendall(put("2", b"b"))
    assert fed.take() == ([("post", [1], ["2"], [b"b"])], [])
    assert fed.servers[0].recv(1000) == put("1", b"a")
    fed.sockets.watch(fed.servers[0].fileno(), 0)
    fed.clients[0].sendall(put("3", b"c"))
    assert fed.take() == ([("post", [0], ["3"], [b"c"])], [])


def test_ends_and_errors_are_left_to_whoever_reads_the_socket(fed: Fed) -> None:
    fed.clients[0].sendall(put("1", b"a"))
    fed.clients[0].shutdown(socket.SHUT_WR)
    batches, back = fed.take()
    if batches:  # the end has come behind the request
        fed.answer(0, b"done")
        _, back = fed.take()
        assert back == [(0, b"", b"")]
    else:
        assert back == [(0, b"", b"")] and fed.servers[0].recv(1000) == put("1", b"a")
    assert fed.servers[0].recv(1000) == b""
    fed.clients[1].close()
    assert fed.take() == ([], [(1, b"", b"")])


def test_nothing_is_read_while_a_request_waits_for_its_answer(fed: Fed) -> None:
    fed.clients[0].sendall(put("1", b"a"))
    assert fed.take() == ([("post", [0], ["1"], [b"a"])], [])
    fed.clients[0].sendall(put("2", b"b"))
    fed.clients[1].sendall(put("3", b"c"))
    assert fed.take() == ([("post", [1], ["3"], [b"c"])], [])
    fed.answer(0, b"first")
    assert fed.take() == ([("post", [0], ["2"], [b"b"])], [])
    assert fed.answer_of(0) == b"first"


def test_a_socket_that_is_unwatched_gives_what_has_come_and_what_is_left(fed: Fed) -> None:
    numbers = [each.fileno() for each in fed.servers]
    fed.clients[0].sendall(put("1", b"a"))
    assert select.select([fed.sockets.fd], [], [], 30)[0]
    assert fed.sockets.unwatch(numbers[0]) == (put("1", b"a"), b"")
    assert fed.sockets.take()[:2] == ([], [])
    assert fed.sockets.unwatch(numbers[0]) == (b"", b"")
    fed.answer(0, b"nowhere")
    fed.clients[1].sendall(put("2", b"b"))
    assert fed.take() == ([("post", [1], ["2"], [b"b"])], [])
    fed.answer(1, b"done")
    assert fed.sockets.unwatch(numbers[1]) == (b"", b"")  # whoever of both has written it
    assert fed.answer_of(1) == b"done"
    assert len(fed.sockets) == 1


def test_what_the_system_does_not_take_of_an_answer_is_given_back(fed: Fed) -> None:
    fed.clients[0].sendall(put("1", b"a"))
    fed.take()
    body = bytes(range(256)) * 40_000
    fed.answer(0, body)
    (line, came, unsent) = fed.take()[1][0]
    assert (line, came) == (0, b"") and 0 < len(unsent) < len(body) and body.endswith(unsent)
    assert len(fed.sockets) == 2


def test_no_more_forms_are_known_than_there_may_be() -> None:
    fed = Fed(2, forms=2)
    fed.clients[0].sendall(put("1", b"a"))
    assert select.select([fed.sockets.fd], [], [], 30)[0]
    for number in range(2):
        assert fed.sockets.learn(put("1", b"a", query=f"?{number}"), f"query {number}")
    assert fed.take() == ([], [(0, put("1", b"a"), b"")])  # its form was forgotten before it was taken
    fed.clients[1].sendall(put("1", b"a", query="?1"))
    assert fed.take() == ([("query 1", [1], ["1"], [b"a"])], [])
    fed.close()


def test_what_is_closed_reads_no_more() -> None:
    fed = Fed(1)
    fed.close()
    fed.sockets.close()
    one, other = socket.socketpair()
    with pytest.raises(OSError, match="Bad file descriptor"):
        fed.sockets.watch(one.fileno(), 0)
    one.close()
    other.close()
    with pytest.raises(ValueError):
        _core.FeedSockets(0, 1)


def test_a_client_that_resets_its_connection_is_given_back() -> None:
    listener = socket.create_server(("127.0.0.1", 0))
    client = socket.create_connection(listener.getsockname())
    server, _ = listener.accept()
    sockets: Sockets = _core.FeedSockets(MOST_BYTES, 4)
    sockets.learn(put("0", b"a"), "post")
    sockets.watch(server.fileno(), 7)
    client.sendall(put("1", b"a"))
    assert select.select([sockets.fd], [], [], 30)[0]
    assert sockets.take()[0] == [("post", [7], ["1"], [b"a"])]
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    client.close()
    assert select.select([sockets.fd], [], [], 30)[0]
    assert sockets.take()[1] == [(7, b"", b"")]
    sockets.answer([server.fileno()], HEAD, [b"nowhere"])
    sockets.close()
    server.close()
    listener.close()


PIECES = (b"POST", b"PUT", b" ", b"/feed/", b"/", b"1", b"?a=b", b"#", b"%20", b" HTTP/1.1", b"\r\n", b"\n", b"Host: h")
ENDS = (
    b"Content-Length: 1",
    b"content-length:\t1",
    b"CONTENT-LENGTH:  2",
    b"X-Content-Length: 1",
    b"\r\n\r\n",
    b"a",
    b"bb",
)


def test_what_is_cut_is_read_the_same_way_by_the_general_reader() -> None:
    choice = random.Random(SEED)
    cut_count = 0
    for _ in range(20_000):
        data = bytearray(put(choice.choice(("1", "a%20b", "x/y", "")), choice.choice((b"a", b"bb")), fields="X: y\r\n"))
        for _ in range(choice.choice((0, 1, 1, 2))):
            at = choice.randrange(len(data) + 1)
            data[at : at + choice.choice((0, 1, 5))] = choice.choice((*PIECES, *ENDS))
        cut, request = _core.cut_change(bytes(data)), general(bytes(data))
        if cut is not None and request is not None:
            form, name, body = cut
            head, whole = request
            cut_count += 1
            assert head.raw_path.endswith("/" + name.decode()), (SEED, data)
            assert whole == body, (SEED, data)
            start, middle, end = form.split(b"\0")
            other = general(start + b"other" + middle + b"3" + end + b"\r\n\r\nccc")
            assert other is not None and other[1] == b"ccc", (SEED, data)
            assert other[0].raw_path == head.raw_path.removesuffix(name.decode()) + "other", (SEED, data)
            assert [other[0].method, other[0].query, other[0].host] == [head.method, head.query, head.host], (
                SEED,
                data,
            )
            assert other[0].fields.common == head.fields.common, (SEED, data)
    assert cut_count > 1000, SEED


def general(data: bytes) -> Any:
    """(head, body) of a whole request that is alone."""
    reader = RequestReader()
    reader.feed(data)
    try:
        head = reader.read_head()
        body = reader.read_body()
    except PaperwaspError:
        return None
    return (head, body) if head is not None and body and reader.is_body_over and not reader.waiting_bytes else None
