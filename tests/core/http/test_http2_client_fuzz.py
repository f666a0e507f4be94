"""The client's end of HTTP/2 beside another implementation, and under random servers.

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

from paperwasp.core.http.http2_client import ClientEvent, Http2Client
from tests.chance import SEED
from tests.core.http.http2_frames import (
    ACK,
    END_HEADERS,
    END_STREAM,
    PADDED,
    PREFACE,
    PRIORITY,
    FrameType,
    block,
    data,
    frame,
    frames,
    headers,
    reset,
    settings,
    window,
)
from tests.core.http.test_http2_client import HEAD, HELLO, OK, connect

INPUTS = int(os.environ.get("PAPERWASP_FUZZ", "6000"))


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
