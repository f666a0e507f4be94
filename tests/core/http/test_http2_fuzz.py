"""The server's end of HTTP/2 under random peers: broken ones, and ones that keep the rules by another implementation.

PAPERWASP_FUZZ says how many inputs the broken ones send; PAPERWASP_SEED where chance starts.
"""

from __future__ import annotations

import os
import random
from itertools import pairwise

import pytest
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import DataReceived, ResponseReceived, StreamEnded, StreamReset
from h2.exceptions import FlowControlError, NoAvailableStreamIDError, ProtocolError, StreamClosedError
from h2.settings import SettingCodes
from hypothesis import given
from hypothesis import strategies as st

from paperwasp.core.http.http2 import Event, Http2Connection, http2_header_block
from tests.chance import SEED
from tests.core.http.http2_frames import (
    ACK,
    END_HEADERS,
    END_STREAM,
    GET,
    HELLO,
    PADDED,
    POST,
    PRIORITY,
    Frame,
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

INPUTS = int(os.environ.get("PAPERWASP_FUZZ", "6000"))
"""Frames that broken peers send, damaged or not."""
PARTS = 10
OK = http2_header_block(200, [(b"content-type", b"text/plain")])
MANY = (1, 2, 3, 5, 8, 100, 16_384, 70_000)

_STREAMS = st.sampled_from([1, 3, 5, 7, 9])
_FRAMES = st.one_of(
    st.builds(
        headers, _STREAMS, st.sampled_from([GET, POST, [("a", "b")], [*POST, ("content-length", "5")]]), st.booleans()
    ),
    st.builds(data, _STREAMS, st.sampled_from([b"", b"x", b"hello", bytes(20_000)[:16_384]]), st.booleans()),
    st.builds(reset, _STREAMS),
    st.builds(window, st.sampled_from([0, 1, 3, 5]), st.sampled_from([0, 1, 1000, 2**31 - 1])),
    st.builds(settings, st.dictionaries(st.sampled_from([1, 3, 4, 5, 9]), st.sampled_from([0, 1, 20_000]), max_size=2)),
    st.builds(frame, st.sampled_from([6, 7]), st.sampled_from([0, ACK]), st.just(0), st.just(bytes(8))),
    st.builds(frame, st.integers(0, 12), st.integers(0, 255), st.sampled_from([0, 1, 3]), st.binary(max_size=20)),
)


def serve(max_streams: int = 20) -> Http2Connection:
    return Http2Connection(max_streams, 20_000, 65_535, 100_000, max_resets=10, max_control_frames=100)


Summary = dict[int, tuple[object, bytes, bool]]


def summarize(events: list[Event]) -> tuple[Summary, set[int], Event | None]:
    """What is known of each stream in the end, however the events were cut; the streams that are gone; the failure."""
    streams: Summary = {}
    gone: set[int] = set()
    over = None
    for event in events:
        assert over is None
        if event[0] == "request":
            assert event[1] not in streams
            streams[event[1]] = (event[2:8], event[8], event[9])
        elif event[0] == "data":
            head, body, ended = streams[event[1]]
            assert not ended
            assert event[1] not in gone
            streams[event[1]] = (head, body + event[2], event[3])
        elif event[0] == "reset":
            assert event[1] in streams
            gone.add(event[1])
        else:
            over = event
    return streams, gone, over


@given(st.lists(_FRAMES, max_size=30).map(b"".join), st.lists(st.integers(0, 40_000), max_size=20))
def test_how_bytes_are_cut_makes_no_difference(sent: bytes, cuts: list[int]) -> None:
    """The output is the same, and so are the events, but for requests that are reset in the call they come in."""
    whole, split = serve(), serve()
    sent = HELLO + frame(FrameType.SETTINGS, ACK) + sent
    first = summarize(whole.receive(sent))
    places = sorted({cut % (len(sent) + 1) for cut in cuts} | {0, len(sent)})
    events = [event for at, end in pairwise(places) for event in split.receive(sent[at:end])]
    second = summarize(events)
    for stream in second[1] - first[1]:
        assert stream not in first[0]
        del second[0][stream]
    assert {stream: content for stream, content in second[0].items() if stream not in first[1]} == {
        stream: content for stream, content in first[0].items() if stream not in first[1]
    }
    assert first[2] == second[2]
    assert whole.take_output() == split.take_output()


@given(st.lists(_FRAMES, max_size=8).map(b"".join))
def test_byte_by_byte(sent: bytes) -> None:
    whole, split = serve(), serve()
    whole.receive(HELLO + sent[:3000])
    for byte in HELLO + sent[:3000]:
        split.receive(bytes([byte]))
    assert whole.take_output() == split.take_output()
    assert (whole.open_streams, whole.failure) == (split.open_streams, split.failure)


def some_frame(chance: random.Random, stream: int) -> bytes:
    """A frame as a client may send it, of any kind."""
    fields = chance.choice([GET, POST, POST, [*POST, ("content-length", "70")], [("x", "y" * chance.choice(MANY[:6]))]])
    kind = chance.randrange(12)
    if kind < 4:
        return headers(stream, fields, chance.random() < 0.5)
    if kind < 7:
        return data(stream, bytes(min(chance.choice(MANY), 16_384)), chance.random() < 0.3)
    if kind == 7:
        flags = chance.choice([END_HEADERS, END_HEADERS | END_STREAM, 0]) | chance.choice([0, PADDED, PRIORITY])
        return frame(
            FrameType.HEADERS, flags, stream, chance.choice([b"", b"\x01", bytes(5)]) + block(GET) + chance.randbytes(3)
        )
    if kind == 8:
        return frame(
            FrameType.CONTINUATION, chance.choice([0, END_HEADERS]), stream, chance.randbytes(chance.randrange(9))
        )
    if kind == 9:
        return settings({chance.randrange(1, 8): chance.choice([0, 1, 5, 20_000, 2**31 - 1, 2**32 - 1])})
    if kind == 10:
        return window(chance.choice([0, stream]), chance.choice([0, *MANY, 2**31 - 1]))
    return frame(chance.randrange(11), chance.randrange(256), stream, chance.randbytes(chance.randrange(20)))


def damaged(chance: random.Random, sent: bytes) -> bytes:
    """Bytes changed, cut out or doubled."""
    changed = bytearray(sent)
    for _ in range(chance.choice([0, 0, 0, 0, 1, 1, 3])):
        at = chance.randrange(len(changed))
        match chance.randrange(4):
            case 0:
                changed[at] = chance.randrange(256)
            case 1:
                changed[at] ^= 1 << chance.randrange(8)
            case 2:
                del changed[at : at + chance.randrange(4)]
            case 3:
                changed[at:at] = changed[at : at + chance.randrange(20)]
        if not changed:
            break
    return bytes(changed)


def act(chance: random.Random, server: Http2Connection, known: set[int]) -> None:
    """Anything that a front may do, for streams that are there, that are gone, or that never were."""
    stream = chance.choice([*known, 1, 99])
    body = bytes(chance.choice([0, *MANY]))
    try:
        match chance.randrange(9):
            case 0 | 1 | 2:
                server.respond(stream, OK, body, chance.random() < 0.7)
            case 3 | 4:
                server.send_data(stream, body, chance.random() < 0.3)
            case 5:
                server.consume(stream, chance.choice(MANY))
            case 6:
                server.reset(stream, chance.choice([0, 8]))
            case 7:
                server.inform(stream, OK)
            case 8 if chance.random() < 0.05:
                server.go_away()
    except ValueError as mistake:
        assert "answered" in str(mistake) or "before the head" in str(mistake)


class BrokenPeer:
    """A connection of which one end sends anything, and the other does anything, in any order."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.server = Http2Connection(chance.choice([1, 5, 300]), chance.choice([100, 20_000]), 70_000, 200_000)
        self.events: list[Event] = []
        self.output: list[Frame] = []

    def run(self, inputs: int) -> None:
        chance, stream = self.chance, 1
        sent = HELLO if chance.random() < 0.95 else chance.randbytes(40)
        for _ in range(inputs):
            stream = chance.choice([stream, stream, stream + 2, max(stream - 2, 1), chance.randrange(12)])
            sent += damaged(chance, some_frame(chance, stream))
            if chance.random() < 0.6:
                cut = chance.randrange(len(sent) + 1) if chance.random() < 0.5 else len(sent)
                self.events += self.server.receive(sent[:cut])
                sent = sent[cut:]
            if chance.random() < 0.5:
                act(chance, self.server, {event[1] for event in self.events[-5:] if event[0] != "batch"})
            if chance.random() < 0.3:
                self.output += frames(self.server.take_output(chance.choice([0, 10, 1 << 20])))
        self.events += self.server.receive(sent)
        self.output += frames(self.server.take_output())

    def check(self) -> None:
        """Events and output make sense, and a connection that has failed has nothing left."""
        _, _, over = summarize(self.events)
        assert (over is None) == (self.server.failure is None)
        assert all(len(payload) <= 16_384 or kind == FrameType.DATA for kind, _, _, payload in self.output)
        if over is not None:
            assert (self.server.open_streams, self.server.unsent_bytes(), self.server.is_over) == (0, 0, True)
            assert self.output[-1][0] == FrameType.GOAWAY
            assert self.output[-1][3][8:].decode() == over[2] == self.server.failure


@pytest.mark.parametrize("part", range(PARTS))
def test_broken_peers_do_no_harm(part: int) -> None:
    chance = random.Random(SEED + part)
    left = INPUTS // PARTS
    while left > 0:
        inputs = chance.randrange(1, 60)
        left -= inputs
        peer = BrokenPeer(chance)
        peer.run(inputs)
        peer.check()


class Conversation:
    """A client that keeps the rules, by another implementation, and a server that answers in random ways and pieces."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.server = Http2Connection(8, 20_000, chance.choice([100, 3000, 70_000]), 70_000)
        self.client = H2Connection(H2Configuration(client_side=True, validate_outbound_headers=False))
        self.client.initiate_connection()
        self.client.update_settings({SettingCodes.INITIAL_WINDOW_SIZE: chance.choice([0, 7, 5000, 100_000])})
        self.wire = b""
        self.asked: dict[int, bytes] = {}
        self.open: dict[int, bytes] = {}
        self.got: dict[int, bytes] = {}
        self.ended: set[int] = set()
        self.answers: dict[int, list[bytes]] = {}
        self.answered: dict[int, bytes] = {}
        self.reset: set[int] = set()
        self.whole: set[int] = set()

    def ask(self) -> None:
        try:
            stream = self.client.get_next_available_stream_id()
            self.client.send_headers(stream, [*POST, ("x", str(self.chance.randrange(5)))])
        except (NoAvailableStreamIDError, ProtocolError):
            return  # as many as the server wants at once
        self.open[stream] = self.asked[stream] = self.chance.randbytes(self.chance.choice([0, 1, 50, 9000, 60_000]))
        self.answered[stream] = b""

    def send_bodies(self) -> None:
        for stream in list(self.open):
            room = min(self.client.local_flow_control_window(stream), 16_384, self.chance.choice(MANY))
            body = self.open[stream]
            ended = len(body) <= room
            padding = self.chance.choice([None, 0, 3]) if room > len(body) + 4 else None
            self.client.send_data(stream, body[:room], end_stream=ended, pad_length=padding)
            self.open[stream] = body[room:]
            if ended:
                del self.open[stream]

    def give_up(self) -> None:
        for stream in list(self.asked):
            if stream not in self.whole | self.reset and self.chance.random() < 0.02:
                try:
                    self.client.reset_stream(stream)
                except StreamClosedError:
                    continue
                self.reset.add(stream)
                self.open.pop(stream, None)

    def carry(self) -> None:
        self.wire += self.client.data_to_send()
        cut = self.chance.randrange(len(self.wire) + 1)
        for event in self.server.receive(self.wire[:cut]):
            self.take(event)
        self.wire = self.wire[cut:]

    def take(self, event: Event) -> None:
        assert event[0] != "over" and event[0] != "batch", event
        if event[0] == "reset":
            self.answers.pop(event[1], None)
            return
        body, ended = (event[8], event[9]) if event[0] == "request" else (event[2], event[3])
        self.got[event[1]] = self.got.get(event[1], b"") + body
        self.server.consume(event[1], len(body))
        if ended:
            self.ended.add(event[1])
            self.answers[event[1]] = [
                self.got[event[1]][i : i + 20_000] for i in range(0, len(self.got[event[1]]) + 1, 20_000)
            ]
            self.server.respond(event[1], OK, b"", False)

    def answer(self) -> None:
        for stream, parts in list(self.answers.items()):
            if self.chance.random() < 0.5:
                self.server.send_data(stream, parts.pop(0), not parts)
                if not parts:
                    del self.answers[stream]

    def fetch(self) -> None:
        output = self.server.take_output(self.chance.choice([10, 30_000, 1 << 20]))
        for event in self.client.receive_data(output):
            assert not isinstance(event, StreamReset)
            if isinstance(event, ResponseReceived):
                assert event.stream_id in self.answered
            elif isinstance(event, DataReceived):
                self.answered[event.stream_id] += event.data
                if event.flow_controlled_length:
                    self.client.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
            elif isinstance(event, StreamEnded):
                self.whole.add(event.stream_id)

    def widen(self) -> None:
        """The window of a stream may be too small for the client to acknowledge anything by itself."""
        for stream in self.asked:
            if stream not in self.whole | self.reset:
                self.client.increment_flow_control_window(self.chance.choice([1, 3000]), stream)
        if self.chance.random() < 0.1:
            self.client.update_settings({SettingCodes.INITIAL_WINDOW_SIZE: self.chance.choice([0, 9, 9000])})

    def is_done(self) -> bool:
        return self.whole | self.reset == set(self.asked)

    def run(self) -> None:
        for _ in range(60):
            chosen = self.chance.choice([self.ask, self.ask, self.send_bodies, self.give_up, self.answer, self.widen])
            chosen()
            self.carry()
            self.fetch()
        for _ in range(5000):
            if self.is_done() and not self.wire:
                break
            for step in (self.send_bodies, self.carry, self.answer, self.widen, self.fetch):
                step()
            self.server.refill_budgets()


@pytest.mark.parametrize("part", range(20))
def test_random_conversations_end_with_every_answer(part: int) -> None:
    """The other end raises where the server breaks a rule: a window, a state of a stream, the size of a frame."""
    conversation = Conversation(random.Random(SEED + part))
    try:
        conversation.run()
    except FlowControlError as error:
        raise AssertionError("the server sent more than a window") from error
    assert conversation.is_done()
    for stream in conversation.whole - conversation.reset:
        assert conversation.answered[stream] == conversation.got[stream] == conversation.asked[stream]
    assert conversation.server.unsent_bytes() == 0
    assert conversation.server.failure is None
