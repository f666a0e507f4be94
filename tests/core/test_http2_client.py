"""The client's end of HTTP/2: against another implementation, by the rules of RFC 9113, and under broken servers.

PAPERWASP_FUZZ says how many inputs the broken ones send; PAPERWASP_SEED where chance starts.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import DataReceived, Event, RequestReceived, StreamEnded
from h2.settings import SettingCodes
from hypothesis import given
from hypothesis import strategies as st

from paperwasp.core.http2 import Http2Error
from paperwasp.core.http2_client import ClientEvent, Http2Client
from tests.chance import SEED
from tests.core.http2_frames import (
    ACK,
    END_HEADERS,
    END_STREAM,
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

INPUTS = int(os.environ.get("PAPERWASP_FUZZ", "6000"))
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


class Pair:
    """The kernel and a server of the package h2, with all bytes passed between them in pieces of random sizes."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.client = Http2Client(max_body_bytes=chance.choice([100_000, 1 << 22]))
        self.heads = [HEAD, [*HEAD, (b"large", b"y" * chance.choice([10, 3000, 5000]))], HEAD[:4]]
        for head in self.heads:
            self.client.add_head(head)
        self.server = H2Connection(H2Configuration(client_side=False, header_encoding=None))
        self.server.initiate_connection()
        self.server.update_settings(self.some_settings())
        self.sent: dict[int, tuple[list[tuple[bytes, bytes]], bytes]] = {}
        self.taken: dict[int, list[Any]] = {}
        self.answers: dict[int, tuple[int, bytes]] = {}
        self.unanswered: list[int] = []

    def some_settings(self) -> dict[Any, int]:
        chance = self.chance
        values = {
            SettingCodes.HEADER_TABLE_SIZE: chance.choice([0, 60, 200, 4096, 65_536]),
            SettingCodes.INITIAL_WINDOW_SIZE: chance.choice([0, 1, 100, 65_535, 1 << 20]),
            SettingCodes.MAX_FRAME_SIZE: chance.choice([16_384, 100_000]),
            SettingCodes.MAX_CONCURRENT_STREAMS: chance.choice([1, 5, 1000]),
        }
        return dict(chance.sample(sorted(values.items()), chance.randrange(5)))

    def ask(self) -> None:
        chance = self.chance
        number, path = chance.randrange(3), b"/" + b"p%C3%A9" * chance.choice([0, 1, 10, 4000])
        body = chance.randbytes(chance.choice([0, 1, 600, 20_000, 200_000]))
        stream = self.client.request(number, path, body)
        if stream:
            pseudo, others = self.heads[number][:3], self.heads[number][3:]
            length = [(b"content-length", str(len(body)).encode())] if body else []
            self.sent[stream] = ([*pseudo, (b":path", path), *others, *length], body)
        else:
            assert self.client.room == 0

    def taken_events(self) -> Iterator[Event]:
        """The server is given a frame at a time: only at the beginning does it look how large frames may be."""
        output = self.client.take_output()
        if output.startswith(PREFACE):
            yield from self.server.receive_data(PREFACE)
        for kind, flags, stream, payload in frames(output.removeprefix(PREFACE)):
            yield from self.server.receive_data(frame(kind, flags, stream, payload))

    def pass_on(self) -> list[ClientEvent]:
        for event in self.taken_events():
            if isinstance(event, RequestReceived):
                self.taken[event.stream_id] = [list(event.headers), b""]
            elif isinstance(event, DataReceived):
                self.taken[event.stream_id][1] += event.data
                self.server.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
            elif isinstance(event, StreamEnded):
                self.unanswered.append(event.stream_id)
        sent = self.server.data_to_send()
        cuts = sorted({self.chance.randrange(len(sent) + 1) for _ in range(4)} | {0, len(sent)})
        return [event for at, end in pairwise(cuts) for event in self.client.receive(sent[at:end])]

    def answer(self) -> None:
        stream = self.unanswered.pop(self.chance.randrange(len(self.unanswered)))
        status = self.chance.choice([200, 404, 429, 503])
        body = self.chance.randbytes(self.chance.choice([0, 1, 300, 9000]))
        self.answers[stream] = (status, body)
        names = [(b"x-number", str(stream % 7).encode()), (b"date", b"today")]
        self.server.send_headers(stream, [(b":status", str(status).encode()), *names], end_stream=not body)
        if body:
            self.server.send_data(stream, body, end_stream=True)


@pytest.mark.parametrize("part", range(20))
def test_another_implementation_reads_what_is_sent_and_is_read(part: int) -> None:
    chance = random.Random(SEED + part)
    pair = Pair(chance)
    events: list[ClientEvent] = []
    for _ in range(150):
        match chance.randrange(8):
            case 0 | 1 | 2:
                pair.ask()
            case 3 | 4:
                events += pair.pass_on()
            case 5 | 6 if pair.unanswered and pair.server.local_settings.initial_window_size:
                pair.answer()
            case 7 if chance.random() < 0.1:
                # That package takes the first acknowledgement for all settings that it has sent: one at a time.
                events += pair.pass_on() + pair.pass_on()
                pair.server.update_settings(pair.some_settings())
                events += pair.pass_on() + pair.pass_on()
    events += pair.pass_on() + pair.pass_on()
    pair.server.update_settings({SettingCodes.INITIAL_WINDOW_SIZE: 1 << 20})
    for _ in range(400):
        events += pair.pass_on()
        while pair.unanswered:
            pair.answer()
        if len(events) == len(pair.sent):
            break
    assert {event[1]: event[2:] for event in events} == pair.answers
    assert {stream: (fields, body) for stream, (fields, body) in pair.taken.items()} == pair.sent
    assert (pair.client.failure, pair.client.open_streams, pair.client.unsent_bytes) == (None, 0, 0)


_STREAMS = st.sampled_from([1, 3, 5, 7, 9])
_FRAMES = st.one_of(
    st.builds(headers, _STREAMS, st.sampled_from([OK, [("a", "b")], [*OK, ("content-length", "5")]]), st.booleans()),
    st.builds(data, _STREAMS, st.sampled_from([b"", b"x", b"hello", bytes(16_384)]), st.booleans()),
    st.builds(reset, _STREAMS),
    st.builds(window, st.sampled_from([0, 1, 3, 5]), st.sampled_from([0, 1, 1000, 2**31 - 1])),
    st.builds(settings, st.dictionaries(st.sampled_from([1, 3, 4, 5, 9]), st.sampled_from([0, 1, 20_000]), max_size=2)),
    st.builds(frame, st.sampled_from([6, 7]), st.sampled_from([0, ACK]), st.just(0), st.just(bytes(8))),
    st.builds(frame, st.integers(0, 12), st.integers(0, 255), st.sampled_from([0, 1, 3]), st.binary(max_size=20)),
)


@given(st.lists(_FRAMES, max_size=30).map(b"".join), st.lists(st.integers(0, 40_000), max_size=20))
def test_how_bytes_are_cut_makes_no_difference(sent: bytes, cuts: list[int]) -> None:
    whole, split = connect(4, bytes(30_000)), connect(4, bytes(30_000))
    first = whole.receive(sent)
    places = sorted({cut % (len(sent) + 1) for cut in cuts} | {0, len(sent)})
    second = [event for at, end in pairwise(places) for event in split.receive(sent[at:end])]
    assert first == second
    assert whole.take_output() == split.take_output()
    assert (whole.open_streams, whole.unsent_bytes) == (split.open_streams, split.unsent_bytes)


def some_frame(chance: random.Random, stream: int) -> bytes:
    """A frame as a server may send it, of any kind."""
    match chance.randrange(9):
        case 0 | 1 | 2:
            fields = chance.choice([OK, OK, [*OK, ("content-length", "70")], [(":status", "103")], [("x", "y" * 500)]])
            return headers(stream, fields, chance.random() < 0.5)
        case 3 | 4:
            return data(stream, bytes(chance.choice([0, 1, 70, 16_384])), chance.random() < 0.4)
        case 5:
            flags = chance.choice([END_HEADERS, END_HEADERS | END_STREAM, 0]) | chance.choice([0, PADDED, PRIORITY])
            return frame(FrameType.HEADERS, flags, stream, chance.choice([b"", bytes(5)]) + block(OK))
        case 6:
            return settings({chance.randrange(1, 8): chance.choice([0, 1, 20_000, 2**31 - 1, 2**32 - 1])})
        case 7:
            return window(chance.choice([0, stream]), chance.choice([0, 1, 20_000, 2**31 - 1]))
    return frame(chance.randrange(11), chance.randrange(256), stream, chance.randbytes(chance.randrange(20)))


def damaged(chance: random.Random, sent: bytes) -> bytes:
    changed = bytearray(sent)
    for _ in range(chance.choice([0, 0, 0, 0, 1, 2])):
        at = chance.randrange(len(changed))
        if chance.random() < 0.5:
            changed[at] = chance.randrange(256)
        else:
            changed[at : at + chance.randrange(4)] = chance.randbytes(chance.randrange(3))
        if not changed:
            break
    return bytes(changed)


@pytest.mark.parametrize("part", range(10))
def test_broken_servers(part: int) -> None:
    """Whatever comes, each request has one end at most, and what has none is open still, or its connection over."""
    chance = random.Random(SEED + part)
    left = INPUTS // 10
    while left > 0:
        client = Http2Client(max_body_bytes=chance.choice([100, 70_000]), max_buffered_bytes=200_000)
        head = client.add_head(HEAD)
        client.receive(HELLO)
        open_streams: set[int] = set()
        for _ in range(min(left, chance.choice([3, 30, 300]))):
            left -= 1
            if chance.random() < 0.5 and (stream := client.request(head, b"/p", bytes(chance.choice([0, 5, 90_000])))):
                open_streams.add(stream)
            if open_streams and chance.random() < 0.05:
                given_up = chance.choice(sorted(open_streams))
                client.reset(given_up, 8)
                open_streams.remove(given_up)
            stream = chance.choice([*sorted(open_streams), 1, 2, 99])
            for event in client.receive(damaged(chance, some_frame(chance, stream))):
                if event[0] == "over":
                    open_streams.clear()
                else:
                    open_streams.remove(event[1])
            assert client.open_streams == len(open_streams)
            if chance.random() < 0.5:
                frames(client.take_output().removeprefix(PREFACE))
            if client.failure:
                break
