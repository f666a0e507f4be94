"""What the server's end of HTTP/2 makes of frames one by one, by RFC 9113, also of those that no client should send."""

from __future__ import annotations

import pytest

from paperwasp.core.http.http2 import Event, Http2Connection, Http2Error, http2_header_block
from tests.core.http.http2_frames import (
    ACK,
    END_HEADERS,
    END_STREAM,
    GET,
    HELLO,
    LARGEST_WINDOW,
    OK,
    PADDED,
    POST,
    PREFACE,
    PRIORITY,
    Fields,
    FrameType,
    Setting,
    block,
    connect,
    data,
    frame,
    frames,
    headers,
    reset,
    resets,
    settings,
    window,
    word,
)

CALM, PROTOCOL, FLOW = Http2Error.ENHANCE_YOUR_CALM, Http2Error.PROTOCOL_ERROR, Http2Error.FLOW_CONTROL_ERROR
SIZE, CLOSED, COMPRESSION = Http2Error.FRAME_SIZE_ERROR, Http2Error.STREAM_CLOSED, Http2Error.COMPRESSION_ERROR


def failure_of(server: Http2Connection, sent: bytes) -> int:
    """The code of the GOAWAY that comes of these bytes, which is the event's too."""
    over = server.receive(sent)[-1]
    assert over[0] == "over"
    _, code, message = over
    *_, (last, _, stream, payload) = frames(server.take_output())
    assert (last, stream) == (FrameType.GOAWAY, 0)
    assert int.from_bytes(payload[4:8], "big") == code
    assert payload[8:].decode() == message == server.failure
    assert server.is_over
    assert server.open_streams == 0
    assert server.receive(headers(99, GET)) == []
    assert server.take_output() == b""
    return code


def given_headers(event: Event) -> dict[str, str]:
    assert event[0] == "request"
    return event[7]


def test_the_settings_come_first() -> None:
    server = Http2Connection(7, 8, 9, 70_000, 20_000)
    first, more = frames(server.take_output())
    pairs = [(Setting.MAX_CONCURRENT_STREAMS, 7), (Setting.INITIAL_WINDOW_SIZE, 9)]
    pairs += [(Setting.MAX_FRAME_SIZE, 20_000), (Setting.MAX_HEADER_LIST_SIZE, 8)]
    assert first == (FrameType.SETTINGS, 0, 0, b"".join(name.to_bytes(2, "big") + word(value) for name, value in pairs))
    assert more == (FrameType.WINDOW_UPDATE, 0, 0, word(70_000 - 65_535))
    assert server.receive(HELLO) == []
    assert frames(server.take_output()) == [(FrameType.SETTINGS, ACK, 0, b"")]


@pytest.mark.parametrize(
    ("sent", "code"),
    [
        (b"GET / HTTP/1.1\r\n", PROTOCOL),
        (b"PRI * HTTP/2.0\r\n\r\nXX", PROTOCOL),
        (PREFACE + frame(FrameType.PING, payload=bytes(8)), PROTOCOL),
        (PREFACE + frame(FrameType.SETTINGS, ACK), PROTOCOL),
    ],
)
def test_a_connection_begins_with_preface_and_settings(sent: bytes, code: int) -> None:
    server = Http2Connection(10, 1000, 65_535, 65_535)
    server.take_output()
    assert failure_of(server, sent) == code


_BLOCK = block(GET)
_TOO_LARGE = bytes(16_385)


@pytest.mark.parametrize(
    ("sent", "code"),
    [
        (frame(99, 0, 0, _TOO_LARGE), SIZE),
        (frame(FrameType.DATA, 0, 0, b"x"), PROTOCOL),
        (frame(FrameType.DATA, 0, 1, b"x"), PROTOCOL),
        (headers(1, POST, ended=False) + frame(FrameType.DATA, PADDED, 1), PROTOCOL),
        (headers(1, POST, ended=False) + frame(FrameType.DATA, PADDED, 1, b"\x02a"), PROTOCOL),
        (frame(FrameType.HEADERS, END_HEADERS, 0, _BLOCK), PROTOCOL),
        (frame(FrameType.HEADERS, END_HEADERS, 2, _BLOCK), PROTOCOL),
        (frame(FrameType.HEADERS, END_HEADERS | PADDED, 1, b"\x05" + b"\x82"), PROTOCOL),
        (frame(FrameType.HEADERS, END_HEADERS | PRIORITY, 1, b"\x00\x00"), SIZE),
        (frame(FrameType.HEADERS, END_HEADERS | PRIORITY, 1, word(1) + b"\x10" + _BLOCK), PROTOCOL),
        (frame(FrameType.HEADERS, END_HEADERS, 1, b"\xff"), COMPRESSION),
        (headers(5, GET) + headers(3, GET), PROTOCOL),
        (frame(FrameType.HEADERS, 0, 1, _BLOCK) + frame(FrameType.PING, payload=bytes(8)), PROTOCOL),
        (frame(FrameType.HEADERS, 0, 1, _BLOCK) + frame(FrameType.CONTINUATION, END_HEADERS, 3), PROTOCOL),
        (frame(FrameType.HEADERS, 0, 1, _BLOCK) + headers(3, GET), PROTOCOL),
        (frame(FrameType.CONTINUATION, END_HEADERS, 1, _BLOCK), PROTOCOL),
        (frame(FrameType.PRIORITY, 0, 0, bytes(5)), PROTOCOL),
        (frame(FrameType.PRIORITY, 0, 1, bytes(4)), SIZE),
        (frame(FrameType.PRIORITY, 0, 1, word(1) + b"\x00"), PROTOCOL),
        (frame(FrameType.RST_STREAM, 0, 0, word(8)), PROTOCOL),
        (reset(1), PROTOCOL),
        (headers(1, GET) + frame(FrameType.RST_STREAM, 0, 1, b"\x00"), SIZE),
        (frame(FrameType.SETTINGS, 0, 1), PROTOCOL),
        (frame(FrameType.SETTINGS, 0, 0, b"12345"), SIZE),
        (frame(FrameType.SETTINGS, ACK, 0, bytes(6)), SIZE),
        (settings({Setting.ENABLE_PUSH: 2}), PROTOCOL),
        (settings({Setting.INITIAL_WINDOW_SIZE: LARGEST_WINDOW + 1}), FLOW),
        (settings({Setting.MAX_FRAME_SIZE: 16_383}), PROTOCOL),
        (settings({Setting.MAX_FRAME_SIZE: 1 << 24}), PROTOCOL),
        (frame(FrameType.PUSH_PROMISE, END_HEADERS, 1, word(2) + _BLOCK), PROTOCOL),
        (frame(FrameType.PING, 0, 1, bytes(8)), PROTOCOL),
        (frame(FrameType.PING, 0, 0, bytes(7)), SIZE),
        (frame(FrameType.GOAWAY, 0, 1, bytes(8)), PROTOCOL),
        (frame(FrameType.GOAWAY, 0, 0, bytes(7)), SIZE),
        (frame(FrameType.WINDOW_UPDATE, 0, 0, bytes(3)), SIZE),
        (window(0, 0), PROTOCOL),
        (window(0, LARGEST_WINDOW), FLOW),
        (window(1, 1), PROTOCOL),
        (headers(1, GET) + window(1, 5) + settings({Setting.INITIAL_WINDOW_SIZE: LARGEST_WINDOW}), FLOW),
    ],
)
def test_errors_of_the_connection(sent: bytes, code: int) -> None:
    assert failure_of(connect(), sent) == code


def with_length(size: int) -> Fields:
    return [*POST, ("content-length", str(size))]


@pytest.mark.parametrize(
    ("sent", "code"),
    [
        (headers(1, GET) + data(1, b"x"), CLOSED),
        (headers(1, GET) + headers(1, GET), CLOSED),
        (headers(1, GET) + window(1, 0), PROTOCOL),
        (headers(1, GET) + window(1, LARGEST_WINDOW), FLOW),
        (headers(1, POST, ended=False) + headers(1, [("a", "b")], ended=False), PROTOCOL),
        (headers(1, POST, ended=False) + headers(1, [(":path", "/")]), PROTOCOL),
        (headers(1, POST, ended=False) + headers(1, [("connection", "close")]), PROTOCOL),
        (headers(1, with_length(3), ended=False) + data(1, b"ab", ended=True), PROTOCOL),
        (headers(1, with_length(3), ended=False) + data(1, b"abcd"), PROTOCOL),
        (headers(1, with_length(3), ended=False) + headers(1, [("a", "b")]), PROTOCOL),
        (headers(1, with_length(3)), PROTOCOL),
    ],
)
def test_errors_of_a_stream(sent: bytes, code: int) -> None:
    """Others go on. A request that came in the same call is not delivered; one from before is reported as reset."""
    server = connect()
    assert server.receive(sent) == []
    assert resets(server) == [(1, code)]
    assert server.receive(headers(3, GET))[0][:2] == ("request", 3)
    if sent == headers(1, with_length(3)):
        return  # there is no later one
    first = 9 + int.from_bytes(sent[:3], "big")
    server = connect()
    assert server.receive(sent[:first])[0][0] == "request"
    assert server.receive(sent[first:]) == [("reset", 1, code)]
    assert not server.respond(1, OK, b"", True)


def changed(name: str, value: str | None) -> Fields:
    """GET with another value of a field, or without it."""
    return [(key, value if key == name else was) for key, was in GET if key != name or value is not None]  # type: ignore[misc]


@pytest.mark.parametrize(
    "fields",
    [
        changed(":method", None),
        changed(":scheme", None),
        changed(":path", None),
        changed(":path", ""),
        changed(":path", "p"),
        changed(":path", "*"),
        changed(":path", "/a b"),
        changed(":method", "GE T"),
        changed(":scheme", "ht/tp"),
        changed(":authority", "user@host"),
        [*GET, (":path", "/")],
        [*GET, (":status", "200")],
        [*GET, (":protocol", "websocket")],
        [("a", "b"), *GET],
        [*GET, ("Upper", "x")],
        [*GET, ("a b", "x")],
        [*GET, ("", "x")],
        [*GET, ("a", "x\ny")],
        [*GET, ("a", "x\x00y")],
        [*GET, ("a", " x")],
        [*GET, ("a", "x\t")],
        [*GET, ("connection", "keep-alive")],
        [*GET, ("keep-alive", "1")],
        [*GET, ("proxy-connection", "x")],
        [*GET, ("transfer-encoding", "chunked")],
        [*GET, ("upgrade", "h2c")],
        [*GET, ("te", "gzip")],
        [*GET, ("host", "b:1")],
        [*changed(":authority", None), ("host", "a"), ("host", "a")],
        [*GET, ("content-length", "1x")],
        [*GET, ("content-length", "-1")],
        [*GET, ("content-length", "")],
        [*GET, ("content-length", "1" * 19)],
        [*GET, ("content-length", "0"), ("content-length", "1")],
        [(":method", "CONNECT"), (":authority", "a:1"), (":path", "/")],
        [(":method", "CONNECT")],
    ],
)
def test_malformed_requests_are_reset(fields: Fields) -> None:
    server = connect()
    assert server.receive(headers(1, fields)) == []
    assert resets(server) == [(1, PROTOCOL)]
    assert server.open_streams == 0


def test_the_head_of_a_request_is_given_as_it_was_sent() -> None:
    fields = [
        (":method", "OPTIONS"),
        (":scheme", "https"),
        (":path", "/a%2Fb/+\xe9?x=%20&y#part"),
        ("host", "Example.com:80"),
        ("te", "trailers"),
        ("x-a", "1"),
        ("cookie", "a=1"),
        ("x-a", "\xe9"),
        ("cookie", "b=2"),
        ("x-a", ""),
        ("content-length", "0"),
        ("content-length", "0"),
    ]
    event = connect().receive(headers(1, fields))
    given = {
        "host": "Example.com:80",
        "te": "trailers",
        "x-a": "1, \xe9, ",
        "cookie": "a=1; b=2",
        "content-length": "0",
    }
    path, query = "/a%2Fb/+%E9", "x=%20&y"
    assert event == [("request", 1, "OPTIONS", "https", "Example.com:80", path, query, given, b"", True)]


def test_a_request_without_a_host_is_left_to_the_front() -> None:
    event = connect().receive(headers(1, changed(":authority", None)))
    assert event == [("request", 1, "GET", "http", "", "/", "", {"host": ""}, b"", True)]


def test_options_of_the_server_have_a_path_of_their_own() -> None:
    (event,) = connect().receive(headers(1, [(":method", "OPTIONS"), *GET[1:3], (":path", "*")]))
    assert event[5:7] == ("*", "")


def test_the_host_may_come_twice_in_any_case() -> None:
    (event,) = connect().receive(headers(1, [*GET, ("host", "A:1")]))
    assert given_headers(event) == {"host": "a:1"}


def test_padding_and_priority_are_taken_away() -> None:
    server = connect()
    flags = END_HEADERS | PADDED | PRIORITY
    sent = frame(FrameType.HEADERS, flags, 1, b"\x03" + word(0) + b"\x10" + block(POST) + bytes(3))
    sent += frame(FrameType.DATA, PADDED, 1, b"\x02ab" + bytes(2)) + frame(
        FrameType.DATA, PADDED | END_STREAM, 1, b"\x00c"
    )
    (event,) = server.receive(sent)
    assert event[8:] == (b"abc", True)


def test_headers_may_come_in_many_frames() -> None:
    sent, (first, *rest) = b"", [block(POST)[i : i + 3] for i in range(0, len(block(POST)), 3)]
    sent = frame(FrameType.HEADERS, END_STREAM, 1, first)
    sent += b"".join(frame(FrameType.CONTINUATION, 0, 1, part) for part in rest)
    (event,) = connect().receive(sent + frame(FrameType.CONTINUATION, END_HEADERS, 1))
    assert event[:3] == ("request", 1, "POST")


def test_what_is_unknown_is_ignored() -> None:
    server = connect()
    sent = frame(0x42, 0xFF, 7, b"what") + settings({99: 5}) + frame(FrameType.PING, ACK, 0, bytes(8))
    assert server.receive(sent + frame(FrameType.PRIORITY, 0, 7, bytes(5))) == []
    assert frames(server.take_output()) == [(FrameType.SETTINGS, ACK, 0, b"")]


def test_pings_are_answered() -> None:
    server = connect()
    server.receive(frame(FrameType.PING, 0, 0, b"12345678"))
    assert frames(server.take_output()) == [(FrameType.PING, ACK, 0, b"12345678")]


def test_too_many_streams_are_refused_and_their_headers_decoded() -> None:
    """A field that a refused request adds to the table is there for the next."""
    server = connect()
    sent = b"".join(headers(stream, GET) for stream in range(1, 21, 2))
    assert len(server.receive(sent)) == server.open_streams == 10
    added = block(GET) + b"\x40\x01a\x01b"
    assert server.receive(frame(FrameType.HEADERS, END_HEADERS | END_STREAM, 21, added)) == []
    assert resets(server) == [(21, Http2Error.REFUSED_STREAM)]
    server.respond(1, OK, b"", True)
    (event,) = server.receive(frame(FrameType.HEADERS, END_HEADERS | END_STREAM, 23, block(GET) + b"\xbe"))
    assert given_headers(event) == {"a": "b", "host": "a:1"}


@pytest.mark.parametrize("ended", [True, False])
def test_large_headers_are_answered_by_431_and_connect_by_501(ended: bool) -> None:
    server = connect(max_header_bytes=200)
    for stream, fields, status in ((1, [*GET, ("a", "x" * 60)], 431), (3, [GET[2], (":method", "CONNECT")], 501)):
        assert server.receive(headers(stream, fields, ended)) == []
        (kind, flags, answered, sent), *rest = frames(server.take_output())
        assert (kind, flags, answered) == (FrameType.HEADERS, END_HEADERS | END_STREAM, stream)
        assert sent.removeprefix(b"\x20") == http2_header_block(status, [])
        assert rest == ([] if ended else [(FrameType.RST_STREAM, 0, stream, word(0))])
        assert server.open_streams == 0
    assert server.receive(headers(5, GET))[0][0] == "request"


CASES: list[tuple[str, bytes, int | None, int | None]] = [
    ("ended", data(1, b"x"), CLOSED, None),
    ("ended", headers(1, GET), CLOSED, None),
    ("ended", reset(1), None, None),
    ("ended", window(1, 5), None, None),
    ("reset by the peer", data(1, b"x"), None, CLOSED),
    ("reset by the peer", headers(1, GET), CLOSED, None),
    ("reset by the peer", window(1, 5), None, None),
    ("reset by us", data(1, b"x"), None, None),
    ("reset by us", headers(1, [("a", "b")]), None, None),
    ("reset by us", reset(1), None, None),
    ("reset by us", window(1, 5), None, None),
    ("long ago", data(1, b"x"), None, CLOSED),
    ("long ago", headers(1, GET), PROTOCOL, None),
    ("long ago", reset(1), None, None),
    ("long ago", window(1, 5), None, None),
]


@pytest.mark.parametrize(("how", "sent", "of_connection", "of_stream"), CASES)
def test_frames_for_a_stream_that_is_closed(
    how: str, sent: bytes, of_connection: int | None, of_stream: int | None
) -> None:
    server = connect()
    server.receive(headers(1, POST, ended=how in ("ended", "long ago")))
    if how in ("ended", "long ago"):
        server.respond(1, OK, b"", True)
        for stream in range(3, 201 if how == "long ago" else 3, 2):
            server.receive(headers(stream, GET))
            server.respond(stream, OK, b"", True)
    elif how == "reset by us":
        server.reset(1, Http2Error.CANCEL)
    else:
        server.receive(reset(1))
    server.take_output()
    if of_connection is not None:
        assert failure_of(server, sent) == of_connection
    else:
        assert server.receive(sent) == []
        assert resets(server) == ([] if of_stream is None else [(1, of_stream)])
        assert not server.is_over


def test_mistakes_of_the_program_are_errors() -> None:
    server = connect()
    server.receive(headers(1, POST, ended=False))
    with pytest.raises(ValueError, match="before the head"):
        server.send_data(1, b"x", False)
    server.respond(1, OK, b"", False)
    with pytest.raises(ValueError, match="answered already"):
        server.respond(1, OK, b"", True)
    with pytest.raises(ValueError, match="answered already"):
        server.inform(1, OK)
    server.send_data(1, b"x", True)
    with pytest.raises(ValueError, match="behind its end"):
        server.send_data(1, b"x", True)
    with pytest.raises(ValueError, match="before all else"):
        server.upgrade(b"")
    for streams, stream_window, connection_window, frame_bytes in (
        (0, 1, 65_535, 16_384),
        (1, 2**31, 65_535, 16_384),
        (1, 1, 65_534, 16_384),
        (1, 1, 2**31, 16_384),
        (1, 1, 65_535, 16_383),
        (1, 1, 65_535, 2**24),
    ):
        with pytest.raises(ValueError, match=r"2\^"):
            Http2Connection(streams, 1, stream_window, connection_window, frame_bytes)


def test_a_peer_that_leaves_is_served_to_the_end() -> None:
    server = connect()
    server.receive(headers(1, GET) + frame(FrameType.GOAWAY, 0, 0, bytes(8)))
    assert (server.is_over, server.open_streams) == (False, 1)
    server.respond(1, OK, b"", True)
    assert (server.is_over, server.open_streams) == (True, 0)
    assert [each[0] for each in frames(server.take_output())] == [FrameType.HEADERS]


def test_what_a_frame_is_made_of_is_read_from_any_buffer() -> None:
    for kind in (bytes, bytearray, memoryview):
        server = Http2Connection(10, 65_536, 65_535, 65_535)
        assert server.receive(kind(HELLO + headers(1, GET)))[0][:3] == ("request", 1, "GET")
