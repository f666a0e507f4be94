"""The server's end of HTTP/2, with the client of an independent implementation at the other end."""

from __future__ import annotations

from random import Random

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import DataReceived, Event, ResponseReceived, StreamEnded
from h2.settings import SettingCodes
from hypothesis import given
from hypothesis import strategies as st

from paperwasp.core.http import http2
from paperwasp.core.http.http2 import Http2Connection, Http2Error, http2_header_block
from tests.core.http.http2_frames import GET as FIELDS
from tests.core.http.http2_frames import HELLO, OK, FrameType, frames, headers

HEADERS = [(":method", "POST"), (":scheme", "http"), (":authority", "a:1"), (":path", "/p?q")]
GET = [(":method", "GET"), *HEADERS[1:]]
LARGE = bytes(range(256)) * 1000


def serve(
    max_streams: int = 100,
    max_header_bytes: int = 65536,
    stream_window: int = 1 << 20,
    connection_window: int = 1 << 24,
) -> Http2Connection:
    return Http2Connection(max_streams, max_header_bytes, stream_window, connection_window)


class Pair:
    """A client and our server, with the bytes between them carried at once and whole."""

    def __init__(
        self, server: Http2Connection | None = None, settings: dict[SettingCodes | int, int] | None = None
    ) -> None:
        self.server = serve() if server is None else server
        self.client = H2Connection(H2Configuration(client_side=True))
        self.client.initiate_connection()
        if settings is not None:
            self.client.update_settings(settings)
        self.seen: list[Event] = []
        self.exchange()

    def send(self) -> list[http2.Event]:
        return self.server.receive(self.client.data_to_send())

    def fetch(self, most_bytes: int = 1 << 20) -> list[Event]:
        """What the client makes of our next output."""
        return self.client.receive_data(self.server.take_output(most_bytes))

    def exchange(self) -> list[http2.Event]:
        """Until neither has anything to say; the client reads everything, and its windows go up."""
        events: list[http2.Event] = []
        while True:
            for event in (seen := self.fetch()):
                if isinstance(event, DataReceived) and event.flow_controlled_length:
                    self.client.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
            self.seen += seen
            if not (data := self.client.data_to_send()):
                return events
            events += self.server.receive(data)

    def bodies(self) -> dict[int, bytes]:
        """What has come of each answer."""
        found: dict[int, bytes] = {}
        for event in self.seen:
            if isinstance(event, DataReceived):
                found[event.stream_id] = found.get(event.stream_id, b"") + event.data
        return found


def request(stream: int, body: bytes = b"", headers: dict[str, str] | None = None, ended: bool = True) -> http2.Event:
    """The event of a request with HEADERS."""
    return ("request", stream, "POST", "http", "a:1", "/p", "q", {**(headers or {}), "host": "a:1"}, body, ended)


def test_a_request_and_its_answer() -> None:
    pair = Pair()
    pair.client.send_headers(1, [*HEADERS, ("content-type", "text/plain")])
    pair.client.send_data(1, b"hello ")
    pair.client.send_data(1, b"world", end_stream=True)
    assert pair.send() == [request(1, b"hello world", {"content-type": "text/plain"})]
    assert pair.server.open_streams == 1
    assert pair.server.respond(1, http2_header_block(404, [(b"x-a", b"\xe9")]), b"gone", True)
    answer, data, end = pair.fetch()
    assert isinstance(answer, ResponseReceived)
    assert [tuple(each) for each in answer.headers] == [
        (b":status", b"404"),
        (b"x-a", b"\xe9"),
        (b"content-length", b"4"),
    ]
    assert isinstance(data, DataReceived)
    assert data.data == b"gone"
    assert isinstance(end, StreamEnded)
    assert pair.server.open_streams == 0
    assert not pair.server.is_over


def test_bodies_that_come_later_are_events_of_their_own() -> None:
    pair = Pair()
    pair.client.send_headers(1, HEADERS)
    assert pair.send() == [request(1, ended=False)]
    pair.client.send_data(1, b"a")
    pair.client.send_data(1, b"b")
    assert pair.send() == [("data", 1, b"ab", False)]
    pair.client.send_headers(1, [("x-trailer", "1")], end_stream=True)
    assert pair.send() == [("data", 1, b"", True)]


def test_large_answers_take_turns_within_the_windows() -> None:
    pair = Pair()
    for stream in (1, 3, 5):
        pair.client.send_headers(stream, GET, end_stream=True)
    pair.send()
    for stream in (1, 3, 5):
        pair.server.respond(stream, OK, LARGE, True)
    seen = pair.fetch()
    order = [event.stream_id for event in seen if isinstance(event, DataReceived)]
    assert order == [1, 3, 5, 1]  # frames of 16,384 bytes within the first window of the connection, 65,535
    assert pair.server.unsent_bytes() == 3 * len(LARGE) - 65535
    for event in seen:
        if isinstance(event, DataReceived):
            pair.client.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
    pair.seen += seen
    pair.exchange()
    assert pair.bodies() == {1: LARGE, 3: LARGE, 5: LARGE}
    assert pair.server.unsent_bytes() == pair.server.open_streams == 0


def test_output_is_taken_in_parts() -> None:
    pair = Pair(settings={SettingCodes.INITIAL_WINDOW_SIZE: 1 << 20})
    pair.client.increment_flow_control_window(1 << 20)
    pair.client.send_headers(1, GET, end_stream=True)
    pair.exchange()
    pair.server.respond(1, OK, LARGE, True)
    sizes = [len(part) for part in iter(lambda: pair.server.take_output(50_000), b"")]
    assert sum(sizes) > len(LARGE)
    assert max(sizes) < 50_100


def test_a_stream_that_has_sent_what_waited_is_listed() -> None:
    pair = Pair()
    pair.client.send_headers(1, GET, end_stream=True)
    pair.send()
    pair.server.respond(1, OK, b"", False)
    pair.server.send_data(1, LARGE, False)
    pair.fetch(40_000)
    assert pair.server.take_drained() == []
    assert pair.server.unsent_bytes(1) == len(LARGE) - 40_000
    pair.client.acknowledge_received_data(40_000, 1)
    pair.exchange()
    assert pair.server.take_drained() == [1]
    assert pair.server.take_drained() == []
    pair.server.send_data(1, b"", True)
    pair.exchange()
    assert any(isinstance(event, StreamEnded) for event in pair.seen)


def test_a_reset_reaches_python_and_answers_go_nowhere() -> None:
    pair = Pair()
    pair.client.send_headers(1, GET, end_stream=True)
    pair.send()
    pair.client.reset_stream(1, Http2Error.CANCEL)
    assert pair.send() == [("reset", 1, Http2Error.CANCEL)]
    assert not pair.server.respond(1, OK, b"x", True)
    assert not pair.server.respond(99, OK, b"x", True)
    assert pair.server.take_output() == b""


def test_a_request_that_is_reset_at_once_is_not_delivered() -> None:
    pair = Pair()
    pair.client.send_headers(1, GET, end_stream=True)
    pair.client.reset_stream(1)
    assert pair.send() == []


def test_a_server_that_leaves_finishes_what_it_has() -> None:
    pair = Pair()
    pair.client.send_headers(1, GET, end_stream=True)
    pair.send()
    pair.server.go_away()
    pair.client.send_headers(3, GET, end_stream=True)
    assert pair.send() == []
    assert not pair.server.is_over
    pair.server.respond(1, OK, b"x", True)
    away, refused, *answer = frames(pair.server.take_output())
    assert away == (FrameType.GOAWAY, 0, 0, (1).to_bytes(4, "big") + bytes(4))
    assert refused == (FrameType.RST_STREAM, 0, 3, Http2Error.REFUSED_STREAM.to_bytes(4, "big"))
    assert [(kind, stream) for kind, _, stream, _ in answer] == [(FrameType.HEADERS, 1), (FrameType.DATA, 1)]
    assert (pair.server.is_over, pair.server.failure) == (True, None)


def test_an_upgraded_connection_has_stream_1() -> None:
    server = serve()
    assert server.upgrade(bytes.fromhex("000400000005"))  # a first window of five bytes
    client = H2Connection(H2Configuration(client_side=True))
    client.initiate_upgrade_connection()
    server.respond(1, OK, b"hello!", True)
    assert [event.data for event in client.receive_data(server.take_output()) if isinstance(event, DataReceived)] == [
        b"hello"
    ]
    assert server.receive(client.data_to_send()) == []  # among it the settings of the client: a larger window
    assert [event.data for event in client.receive_data(server.take_output()) if isinstance(event, DataReceived)] == [
        b"!"
    ]
    assert server.open_streams == 0
    client.send_headers(3, GET, end_stream=True)
    assert [event[:3] for event in server.receive(client.data_to_send())] == [("request", 3, "GET")]


def test_a_broken_upgrade_is_refused() -> None:
    server = serve()
    assert not server.upgrade(b"12345")
    assert (server.is_over, server.failure) == (True, "HTTP2-Settings of a broken length")


@given(
    st.lists(st.tuples(st.sampled_from([2, 4, 16, 32, 34, 64]), st.sampled_from([0, 0, 1, 1, 5])), max_size=150),
    st.randoms(),
)
def test_streams_are_found_whichever_end_first(steps: list[tuple[int, int]], chance: Random) -> None:
    """With numbers that leave gaps, and are alike in their last bits."""
    server, open_streams, last = serve(), list[int](), 1
    server.receive(HELLO)
    for gap, ended in steps:
        last += gap
        if len(open_streams) < 100:
            assert [event[:2] for event in server.receive(headers(last, FIELDS))] == [("request", last)]
            open_streams.append(last)
        for _ in range(min(ended, len(open_streams))):
            stream = open_streams.pop(chance.randrange(len(open_streams)))
            assert server.respond(stream, OK, b"", True)
            assert not server.respond(stream, OK, b"", True)
        assert server.open_streams == len(open_streams)
        server.take_output()
    assert all(server.respond(stream, OK, b"", True) for stream in open_streams)


@given(st.lists(st.sampled_from([0, 1, 100, 4096, 10_000]), min_size=1, max_size=6))
def test_heads_of_answers_need_no_table_of_the_client(sizes: list[int]) -> None:
    """Its settings may take the table away or make it larger at any time."""
    pair = Pair(settings={SettingCodes.HEADER_TABLE_SIZE: sizes[0]})
    head = http2_header_block(200, [(b"content-type", b"application/json"), (b"x-a", b"some value")])
    for i, size in enumerate(sizes):
        pair.client.send_headers(1 + 2 * i, GET, end_stream=True)
        pair.exchange()
        pair.server.respond(1 + 2 * i, head, b"", True)
        pair.client.update_settings({SettingCodes.HEADER_TABLE_SIZE: size})
        pair.exchange()
    answers = [event.headers for event in pair.seen if isinstance(event, ResponseReceived)]
    assert [tuple(map(tuple, answer)) for answer in answers] == len(sizes) * [
        ((b":status", b"200"), (b"content-type", b"application/json"), (b"x-a", b"some value"))
    ]


@given(st.lists(st.integers(0, 70_000), min_size=1, max_size=5), st.integers(1_000, 80_000))
def test_bodies_arrive_whole_in_both_directions(sizes: list[int], step: int) -> None:
    """Beyond all windows, with our server fed in pieces that are no whole frames."""
    pair = Pair(serve(stream_window=30_000, connection_window=65_535))
    bodies = {1 + 2 * i: bytes([i]) * size for i, size in enumerate(sizes)}
    left, got, pending = dict(bodies), dict.fromkeys(bodies, b""), b""
    for stream in bodies:
        pair.client.send_headers(stream, HEADERS)
    while left or pending or pair.server.open_streams:
        for stream in list(left):
            room = min(pair.client.local_flow_control_window(stream), 16_384)
            pair.client.send_data(stream, left[stream][:room], end_stream=len(left[stream]) <= room)
            left[stream] = left[stream][room:]
            if len(left[stream]) == 0 and pair.client.streams[stream].state_machine.state.name != "OPEN":
                del left[stream]
        pending += pair.client.data_to_send()
        for came in pair.server.receive(pending[:step]):
            assert came[0] in ("request", "data")
            body, ended = (came[8], came[9]) if came[0] == "request" else (came[2], came[3])
            got[came[1]] += body
            pair.server.consume(came[1], len(body))
            if ended:
                pair.server.respond(came[1], OK, got[came[1]], True)
        pending = pending[step:]
        for event in (seen := pair.fetch()):
            if isinstance(event, DataReceived) and event.flow_controlled_length:
                pair.client.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
        pair.seen += seen
    assert got == bodies
    assert pair.bodies() == {stream: body for stream, body in bodies.items() if body}
