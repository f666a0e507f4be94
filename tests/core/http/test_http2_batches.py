"""Requests that are alike come as one event: as many, in the same order and with the same content as without batches.

The peer is the connection that knows no batches, and the grouping of `tests.http.batched`.
"""

from __future__ import annotations

import random

from paperwasp.core.http.http2 import Event, Http2Connection, http2_respond_all
from paperwasp.http.messages import Request
from tests.chance import SEED
from tests.core.http.http2_frames import ACK, HELLO, OK, FrameType, data, frame, frames, headers, reset
from tests.http.batched import alike

START = "/document/v1/"
POST = [(":method", "POST"), (":scheme", "http"), (":authority", "h"), (":path", "/document/v1/n/t/docid/1?a=b")]


def connect(batch_start: str = START) -> Http2Connection:
    server = Http2Connection(1000, 65_536, 65_535, 65_535, batch_start=batch_start)
    assert server.receive(HELLO + frame(FrameType.SETTINGS, ACK)) == []
    server.take_output()
    return server


def test_requests_that_are_alike_are_one_event() -> None:
    server = connect()
    sent = b""
    for stream, name, fields in (
        (1, "1", [("content-length", "1"), ("user-agent", "u"), ("accept", "*/*")]),
        (3, "two", [("accept", "*/*"), ("user-agent", "u"), ("content-encoding", "gzip")]),
        (5, "a/3", [("user-agent", "u"), ("accept", "*/*")]),
        (7, "b/3", [("user-agent", "u"), ("accept", "*/*")]),
    ):
        path = (":path", f"/document/v1/n/t/docid/{name}?a=b")
        sent += headers(stream, [*POST[:3], path, *fields], False) + data(stream, b"%d" % stream, True)
    common = {"user-agent": "u", "accept": "*/*", "host": "h"}
    start = "/document/v1/n/t/docid/"
    wanted: list[Event] = [
        ("batch", [1, 3], "POST", "http", "h", start, "a=b", common, ["1", "two"], [b"1", b"3"], [None, "gzip"]),
        ("batch", [5], "POST", "http", "h", f"{start}a/", "a=b", common, ["3"], [b"5"], [None]),
        ("batch", [7], "POST", "http", "h", f"{start}b/", "a=b", common, ["3"], [b"7"], [None]),
    ]
    assert server.receive(sent) == wanted


def test_what_is_not_whole_or_no_change_with_a_body_comes_alone() -> None:
    server = connect()
    alone = [
        headers(1, POST, False),  # its body comes later
        headers(3, [(":method", "GET"), *POST[1:]]),
        headers(5, POST),  # no body
        headers(7, [*POST[:3], (":path", "/document/v1/n/t/docid/")], False) + data(7, b"{}", True),
        headers(9, [*POST[:3], (":path", "/search/?query=a")], False) + data(9, b"{}", True),
    ]
    assert [event[0] for event in server.receive(b"".join(alone))] == ["request"] * 5
    assert server.receive(data(1, b"{}", True)) == [("data", 1, b"{}", True)]
    assert connect("").receive(headers(1, POST, False) + data(1, b"{}", True))[0][0] == "request"


def test_a_request_that_is_reset_at_once_is_not_in_the_batch() -> None:
    server = connect()
    sent = b"".join(headers(stream, POST, False) + data(stream, b"{}", True) for stream in (1, 3, 5))
    (event,) = server.receive(sent + reset(3))
    assert event[0] == "batch" and event[1] == [1, 5]


def test_all_are_answered_by_one_call() -> None:
    server, bodies = connect(), [b"one", b"three", b""]
    server.receive(b"".join(headers(stream, POST, False) + data(stream, b"{}", True) for stream in (1, 3, 5)))
    assert http2_respond_all([server] * 4, [1, 3, 5, 99], OK, [*bodies, b"gone"]) == 3
    together = server.take_output()
    server = connect("")
    server.receive(b"".join(headers(stream, POST, False) + data(stream, b"{}", True) for stream in (1, 3, 5)))
    for stream, body in zip((1, 3, 5), bodies, strict=True):
        server.respond(stream, OK, body, True)
    assert together == server.take_output()
    kinds = [each[0] for each in frames(together)]
    assert kinds == [FrameType.HEADERS, FrameType.DATA] * 2 + [FrameType.HEADERS]


def some_request(choice: random.Random) -> Request:
    """Mostly one that is like the others."""

    def mostly(usual: str, *others: str) -> str:
        return usual if choice.random() < 0.9 else choice.choice(others)

    path = mostly(
        f"/document/v1/n/t/docid/{choice.choice(('1', '%41'))}", "/document/v1/n/t/docid/", "/document/v1/a/b"
    )
    fields = {"user-agent": mostly("u", "v"), "accept": "*/*"}
    if choice.random() < 0.2:
        fields["content-encoding"] = choice.choice(("gzip", "identity"))
    in_any_order = {name: fields[name] for name in choice.sample(sorted(fields), len(fields))}
    body = mostly("{}" * choice.randrange(1, 2000), "").encode()
    return Request(mostly("POST", "PUT", "GET"), path, mostly("", "a=b"), in_any_order, body)


def as_bytes(stream: int, request: Request, choice: random.Random) -> bytes:
    target = request.raw_path + (f"?{request.query}" if request.query else "")
    head = [(":method", request.method), (":scheme", "http"), (":authority", "h"), (":path", target)]
    head += list(request.headers.items())
    if not request.body:
        return headers(stream, head)
    if choice.random() < 0.5:
        head.append(("content-length", str(len(request.body))))
    cut = choice.randrange(len(request.body) + 1)
    return headers(stream, head, False) + data(stream, request.body[:cut]) + data(stream, request.body[cut:], True)


def test_random_requests_are_grouped_as_their_definition_says() -> None:
    choice = random.Random(SEED)
    together = 0
    for _ in range(200):
        requests = [some_request(choice) for _ in range(choice.choice((1, 3, 12)))]
        sent = b"".join(as_bytes(2 * number + 1, each, choice) for number, each in enumerate(requests))
        batched, alone = connect().receive(sent), connect("").receive(sent)
        runs = list(alike(requests, START))
        assert len(batched) == len(runs)
        left = iter(alone)
        for event, run in zip(batched, runs, strict=True):
            for number, request in enumerate(run):
                own = next(left)
                assert own[0] == "request" and own[8] == request.body
                if event[0] != "batch":
                    assert event == own
                    continue
                _, streams, method, scheme, host, start, query, common, names, bodies, codings = event
                length, coding = own[7].get("content-length"), codings[number]
                fields = dict(common)
                if length is not None:
                    fields["content-length"] = length
                if coding is not None:
                    fields["content-encoding"] = coding
                path = start + names[number]
                made = ("request", streams[number], method, scheme, host, path, query, fields, bodies[number], True)
                assert own == made
                together += number
    assert together > 100
