"""The client's end of HTTP/2 by the rules of RFC 9113, and the limits of what a server may make it do."""

from __future__ import annotations

import pytest

from paperwasp.core.http.http2 import Http2Error
from paperwasp.core.http.http2_client import ClientEvent, Http2Client
from tests.core.http.http2_frames import (
    ACK,
    END_HEADERS,
    PADDED,
    PREFACE,
    PRIORITY,
    Fields,
    FrameType,
    Setting,
    block,
    data,
    frame,
    frames,
    headers,
    reset,
    settings,
    window,
    word,
)

HEAD = [(b":method", b"POST"), (b":scheme", b"http"), (b":authority", b"a:1"), (b"user-agent", b"u"), (b"x-own", b"v")]
OK: Fields = [(":status", "200"), ("content-type", "application/json")]
HELLO = settings()


def connect(open_requests: int = 1, body: bytes = b"", **limits: int) -> Http2Client:
    """A connection whose server has sent its settings, with requests on the streams 1, 3, …"""
    client = Http2Client(**limits)
    head = client.add_head(HEAD)
    assert client.receive(HELLO) == []
    for number in range(open_requests):
        assert client.request(head, b"/p", body) == 2 * number + 1
    client.take_output()
    return client


def sent_resets(client: Http2Client) -> list[tuple[int, int]]:
    found = frames(client.take_output())
    return [
        (stream, int.from_bytes(payload, "big")) for kind, _, stream, payload in found if kind == FrameType.RST_STREAM
    ]


def test_preface_and_settings_come_first() -> None:
    output = Http2Client(max_body_bytes=100_000, max_header_bytes=5000).take_output()
    assert output.startswith(PREFACE)
    first, second = frames(output[len(PREFACE) :])
    assert first == (FrameType.SETTINGS, 0, 0, settings({2: 0, 4: 100_000, 6: 5000})[9:])
    assert second == (FrameType.WINDOW_UPDATE, 0, 0, word((1 << 24) - 65_535))


@pytest.mark.parametrize("max_body_bytes", [0, 2**31])
def test_limits_that_the_protocol_does_not_allow(max_body_bytes: int) -> None:
    with pytest.raises(ValueError, match="max_body_bytes"):
        Http2Client(max_body_bytes=max_body_bytes)


@pytest.mark.parametrize(
    "field",
    [(b"", b"a"), (b":", b"a"), (b"A", b"a"), (b"a b", b"a"), (b"a", b"\r\n"), (b"a", b"\0"), (b":late", b"a")],
)
def test_heads_that_http_does_not_have(field: tuple[bytes, bytes]) -> None:
    with pytest.raises(ValueError, match="HTTP/2 does not have"):
        Http2Client().add_head([*HEAD, field])


def test_heads_are_bounded() -> None:
    client = Http2Client()
    for _ in range(64):
        client.add_head(HEAD)
    with pytest.raises(ValueError, match="64 heads"):
        client.add_head(HEAD)


@pytest.mark.parametrize("path", [b"", b"a", b"/a\r\n", b"/\0"])
def test_paths_that_http_does_not_have(path: bytes) -> None:
    client = connect(0)
    with pytest.raises(ValueError, match="path"):
        client.request(0, path, b"")


def test_a_head_that_is_not_there() -> None:
    with pytest.raises(ValueError, match="no such head"):
        connect(0).request(1, b"/", b"")


def test_answers_of_several_frames() -> None:
    client = connect(2)
    whole = block([*OK, ("content-length", "4")])
    sent = frame(FrameType.HEADERS, 0, 3, whole[:3]) + frame(FrameType.CONTINUATION, END_HEADERS, 3, whole[3:])
    padded = frame(FrameType.DATA, PADDED, 3, b"\x02bc\0\0")
    assert client.receive(headers(1, [(":status", "103")], False) + sent + data(3, b"a") + padded) == []
    assert client.receive(data(3, b"d", True) + headers(1, OK, False)) == [("response", 3, 200, b"abcd")]
    trailers = headers(1, [("x", "y")])
    assert client.receive(data(1, b"e") + trailers) == [("response", 1, 200, b"e")]
    assert (client.open_streams, client.failure) == (0, None)


def test_an_answer_before_the_request_has_gone_out() -> None:
    client = connect(1, bytes(100_000))
    assert client.unsent_bytes == 100_000 - 65_535
    assert client.receive(headers(1, [(":status", "413")])) == [("response", 1, 413, b"")]
    assert sent_resets(client) == [(1, Http2Error.CANCEL)]
    assert client.unsent_bytes == 0


def test_a_request_that_is_given_up() -> None:
    client = connect(1, bytes(100_000))
    client.reset(1, Http2Error.CANCEL)
    client.reset(7, Http2Error.CANCEL)
    assert sent_resets(client) == [(1, Http2Error.CANCEL)]
    assert client.receive(headers(1, OK) + data(1, b"late") + reset(1)) == []
    assert (client.open_streams, client.unsent_bytes, client.failure) == (0, 0, None)


def test_resets_and_refusals() -> None:
    client = connect(3)
    assert client.receive(reset(3, Http2Error.REFUSED_STREAM)) == [("reset", 3, Http2Error.REFUSED_STREAM, True)]
    assert client.receive(reset(1, Http2Error.INTERNAL_ERROR)) == [("reset", 1, Http2Error.INTERNAL_ERROR, False)]
    assert client.receive(headers(5, OK)) == [("response", 5, 200, b"")]


def test_go_away_names_what_will_not_be_worked_on() -> None:
    client = connect(4)
    assert not client.is_leaving
    events = client.receive(frame(FrameType.GOAWAY, 0, 0, word(3) + word(0)))
    assert events == [("reset", 5, 0, True), ("reset", 7, 0, True)]
    assert (client.is_leaving, client.room, client.request(0, b"/", b"")) == (True, 0, 0)
    assert client.receive(headers(3, OK)) == [("response", 3, 200, b"")]
    # A server may begin by "I shall leave", and name the last one later.
    assert client.receive(frame(FrameType.GOAWAY, 0, 0, word(0) + word(0) + b"text")) == [("reset", 1, 0, True)]


def test_the_server_says_how_many_requests_it_takes() -> None:
    client = Http2Client()
    head = client.add_head(HEAD)
    assert client.room == 100
    client.receive(settings({Setting.MAX_CONCURRENT_STREAMS: 2}))
    assert [client.request(head, b"/", b"") for _ in range(3)] == [1, 3, 0]
    client.receive(settings({Setting.MAX_CONCURRENT_STREAMS: 0}))
    assert client.receive(headers(1, OK)) == [("response", 1, 200, b"")]
    assert client.room == 0
    client.receive(settings({Setting.MAX_CONCURRENT_STREAMS: 2**32 - 1}))
    assert client.room == 2**32 - 2


def test_pings_and_settings_are_acknowledged() -> None:
    client = connect(0)
    client.receive(frame(FrameType.PING, 0, 0, b"12345678") + settings() + frame(FrameType.PING, ACK, 0, bytes(8)))
    assert frames(client.take_output()) == [
        (FrameType.PING, ACK, 0, b"12345678"),
        (FrameType.SETTINGS, ACK, 0, b""),
    ]


def test_the_window_of_the_connection_is_given_back() -> None:
    client = connect(100, max_body_bytes=1 << 20)
    for stream in range(1, 200, 2):
        client.receive(headers(stream, OK, False) + data(stream, bytes(16_384)) * 20)
        client.receive(data(stream, b"", True))
    given = [
        int.from_bytes(payload, "big")
        for kind, _, stream, payload in frames(client.take_output())
        if (kind, stream) == (FrameType.WINDOW_UPDATE, 0)
    ]
    assert 0 <= 100 * 20 * 16_384 - sum(given) < 1 << 20


BROKEN: list[tuple[str, bytes, str]] = [
    ("HTTP/1.1", b"HTTP/1.1 400 Bad Request\r\n\r\n", "does not speak HTTP/2"),
    ("no settings", frame(FrameType.PING, 0, 0, bytes(8)), "first frame"),
    ("settings that begin with ACK", frame(FrameType.SETTINGS, ACK), "first frame"),
    ("settings of a stream", HELLO + frame(FrameType.SETTINGS, 0, 1), "SETTINGS with a stream"),
    ("settings of five bytes", HELLO + frame(FrameType.SETTINGS, 0, 0, bytes(5)), "broken length"),
    ("settings with ACK and payload", HELLO + frame(FrameType.SETTINGS, ACK, 0, bytes(6)), "broken length"),
    ("push", HELLO + frame(FrameType.PUSH_PROMISE, END_HEADERS, 1, word(2)), "PUSH_PROMISE"),
    ("push is switched on", settings({Setting.ENABLE_PUSH: 1}), "ENABLE_PUSH"),
    ("a window of 2^31", settings({Setting.INITIAL_WINDOW_SIZE: 2**31}), "INITIAL_WINDOW_SIZE"),
    ("windows beyond 2^31", HELLO + window(1, 2**31 - 65_536) + settings({4: 65_536}), "window"),
    ("small frames", settings({Setting.MAX_FRAME_SIZE: 16_383}), "MAX_FRAME_SIZE"),
    ("large frames", settings({Setting.MAX_FRAME_SIZE: 2**24}), "MAX_FRAME_SIZE"),
    ("a frame that is too large", HELLO + (16_385).to_bytes(3, "big") + bytes(6), "larger"),
    ("data of stream 0", HELLO + data(0, b"a"), "DATA without"),
    ("data of an idle stream", HELLO + data(9, b"a"), "not open"),
    ("data of a stream of the server", HELLO + data(2, b"a"), "not open"),
    ("headers of stream 0", HELLO + headers(0, OK), "not open"),
    ("headers of an idle stream", HELLO + headers(9, OK), "not open"),
    ("reset of an idle stream", HELLO + reset(9), "not open"),
    ("reset of three bytes", HELLO + frame(FrameType.RST_STREAM, 0, 1, bytes(3)), "broken length"),
    ("window of an idle stream", HELLO + window(9, 1), "not open"),
    ("window of five bytes", HELLO + frame(FrameType.WINDOW_UPDATE, 0, 1, bytes(5)), "broken length"),
    ("window of nothing", HELLO + window(0, 0), "of nothing"),
    ("window that is too large", HELLO + window(0, 2**31 - 1), "too large"),
    ("padding", HELLO + frame(FrameType.DATA, PADDED, 1, b"\x01"), "padding"),
    ("padding of headers", HELLO + frame(FrameType.HEADERS, PADDED | END_HEADERS, 1, b"\x05a"), "padding"),
    ("priority", HELLO + frame(FrameType.HEADERS, PRIORITY | END_HEADERS, 1, b"abc"), "priority"),
    ("ping of a stream", HELLO + frame(FrameType.PING, 0, 1, bytes(8)), "PING with"),
    ("ping of nine bytes", HELLO + frame(FrameType.PING, 0, 0, bytes(9)), "broken length"),
    ("goaway of a stream", HELLO + frame(FrameType.GOAWAY, 0, 1, bytes(8)), "GOAWAY with"),
    ("goaway of seven bytes", HELLO + frame(FrameType.GOAWAY, 0, 0, bytes(7)), "broken length"),
    ("continuation alone", HELLO + frame(FrameType.CONTINUATION, END_HEADERS, 1), "CONTINUATION without"),
    ("a frame between", HELLO + frame(FrameType.HEADERS, 0, 1, b"\x88") + settings(), "between"),
    ("a broken block", HELLO + frame(FrameType.HEADERS, END_HEADERS, 1, b"\xff\xff\xff\xff\xff\xff"), "block"),
]


@pytest.mark.parametrize(("sent", "message"), [case[1:] for case in BROKEN], ids=[case[0] for case in BROKEN])
def test_what_ends_the_connection(sent: bytes, message: str) -> None:
    client = Http2Client()
    client.request(client.add_head(HEAD), b"/", b"")
    client.take_output()
    events = client.receive(sent)
    assert len(events) == 1
    assert events[0][0] == "over"
    assert message in str(events[0][2])
    assert client.failure == events[0][2]
    assert (client.room, client.open_streams, client.is_leaving) == (0, 0, True)
    assert [kind for kind, *_ in frames(client.take_output())][-1] == FrameType.GOAWAY
    assert client.receive(headers(1, OK)) == []
    assert client.take_output() == b""


@pytest.mark.parametrize(
    "sent",
    [
        data(1, b"before the head"),
        headers(1, [("a", "b")]),
        headers(1, [("a", "b"), (":status", "200")]),
        headers(1, [(":status", "200"), (":status", "200")]),
        headers(1, [(":status", "20")]),
        headers(1, [(":status", "2000")]),
        headers(1, [(":status", "abc")]),
        headers(1, [(":status", "099")]),
        headers(1, [(":path", "/")]),
        headers(1, [(":status", "100")]),
        headers(1, [*OK, ("content-length", "1")]),
        headers(1, [*OK, ("content-length", "-1")], False),
        headers(1, [*OK, ("content-length", "1x")], False),
        headers(1, [*OK, ("content-length", "1")], False) + data(1, b"ab"),
        headers(1, [*OK, ("content-length", "3")], False) + data(1, b"ab", True),
        headers(1, [*OK, ("content-length", "3")], False) + headers(1, [("a", "b")]),
        headers(1, OK, False) + headers(1, OK, False),
        headers(1, OK, False) + headers(1, [("a", "b")], False),
        window(1, 0),
    ],
)
def test_what_ends_one_request(sent: bytes) -> None:
    client = connect(2)
    assert client.receive(sent) == [("reset", 1, Http2Error.PROTOCOL_ERROR, False)]
    assert sent_resets(client) == [(1, Http2Error.PROTOCOL_ERROR)]
    assert client.receive(headers(3, OK)) == [("response", 3, 200, b"")]


def test_an_answer_that_is_too_large() -> None:
    client = connect(2, max_body_bytes=20_000)
    assert client.receive(headers(1, OK, False) + data(1, bytes(16_384))) == []
    events = client.receive(data(1, bytes(3616)))
    assert events == [("reset", 1, Http2Error.ENHANCE_YOUR_CALM, False)]
    beyond = headers(3, OK, False) + data(3, bytes(16_384)) * 2
    assert client.receive(beyond) == [("reset", 3, Http2Error.FLOW_CONTROL_ERROR, False)]
    whole = connect(1, max_body_bytes=20_000)
    assert whole.receive(headers(1, OK, False) + data(1, bytes(10_000)) + data(1, bytes(10_000), True)) == [
        ("response", 1, 200, bytes(20_000))
    ]


def over(events: list[ClientEvent]) -> str:
    assert events[-1][0] == "over"
    return str(events[-1][2])


def test_answers_that_do_not_end_are_bounded() -> None:
    client = connect(10, max_buffered_bytes=100_000)
    sent = b"".join(headers(stream, OK, False) + data(stream, bytes(16_384)) for stream in range(1, 21, 2))
    assert "do not end" in over(client.receive(sent))


@pytest.mark.parametrize(
    "nothing",
    [
        frame(FrameType.PING, 0, 0, bytes(8)),
        settings(),
        settings({9: 1}) * 2,
        window(1, 1),
        data(1, b""),
        headers(1, [(":status", "103")], False),
        frame(FrameType.PRIORITY, 0, 1, bytes(5)),
        frame(99, 0, 0, b"unknown"),
        frame(FrameType.GOAWAY, 0, 0, word(2**31 - 1) + word(0)),
    ],
)
def test_frames_that_ask_for_nothing_are_bounded(nothing: bytes) -> None:
    client = connect(1, max_control_frames=100)
    client.receive(b"" if nothing[3] == FrameType.HEADERS else headers(1, OK, False))
    assert "ask for nothing" in over(client.receive(nothing * 101))


def test_frames_of_a_stream_that_is_gone_are_bounded() -> None:
    client = connect(1, max_control_frames=100)
    client.reset(1, Http2Error.CANCEL)
    assert "ask for nothing" in over(client.receive(data(1, b"a") * 101))


def test_answers_give_room_for_control_frames_back() -> None:
    client = connect(0, max_control_frames=100)
    for number in range(1000):
        client.request(0, b"/", b"")
        ping = frame(FrameType.PING, 0, 0, bytes(8))
        assert client.receive(ping * 3 + headers(2 * number + 1, OK)) == [("response", 2 * number + 1, 200, b"")]


def test_headers_are_bounded() -> None:
    large = [*OK, *((f"a{number}", "b" * 1000) for number in range(10))]
    client = connect(2, max_header_bytes=8000)
    assert client.receive(headers(1, large)) == [("reset", 1, Http2Error.PROTOCOL_ERROR, False)]
    endless = frame(FrameType.HEADERS, 0, 3, block(OK)) + frame(FrameType.CONTINUATION, 0, 3, bytes(1000)) * 9
    assert "do not end" in over(client.receive(endless))
    many = connect(1, max_continuations=5)
    endless = frame(FrameType.HEADERS, 0, 1, block(OK)) + frame(FrameType.CONTINUATION, 0, 1) * 6
    assert "do not end" in over(many.receive(endless))
