"""Known abuses of HTTP/2: each is cut off at its budget with ENHANCE_YOUR_CALM, and who stays within it is served."""

from __future__ import annotations

import pytest

from paperwasp.core.http.http2 import Http2Connection, Http2Error, http2_header_block
from tests.core.http.http2_frames import (
    ACK,
    END_HEADERS,
    END_STREAM,
    GET,
    HELLO,
    OK,
    POST,
    PREFACE,
    FrameType,
    Setting,
    block,
    connect,
    data,
    frame,
    frames,
    headers,
    reset,
    settings,
    window,
    word,
)

RESETS, CONTROLS, CONTINUATIONS, UNREAD_BYTES, HEADER_BYTES = 20, 50, 4, 2000, 4000


def budgeted(peer: bytes = HELLO) -> Http2Connection:
    server = connect(
        max_header_bytes=HEADER_BYTES,
        peer=peer,
        max_resets=RESETS,
        max_control_frames=CONTROLS,
        max_continuations=CONTINUATIONS,
        max_unread_bytes=UNREAD_BYTES,
    )
    server.refill_budgets()
    return server


def steps_until_calm(server: Http2Connection, *steps: bytes, most: int = 1000, is_read: bool = True) -> int:
    """How many of these, again and again, are taken before the connection is cut off for them."""
    for count in range(most):
        for event in server.receive(steps[count % len(steps)]):
            if event[0] == "over":
                assert event[1] == Http2Error.ENHANCE_YOUR_CALM
                assert frames(server.take_output())[-1][0] == FrameType.GOAWAY
                return count
        if is_read:
            server.take_output()
    return most


def test_rapid_resets() -> None:
    """CVE-2023-44487. Python sees none of them where request and reset come together."""
    server = budgeted()
    streams = range(1, 1001, 2)
    assert steps_until_calm(server, *(headers(stream, GET) + reset(stream) for stream in streams)) == RESETS
    server = budgeted()
    assert (
        steps_until_calm(server, *(part for stream in streams for part in (headers(stream, GET), reset(stream)))) // 2
        == RESETS
    )


def test_resets_among_answers_are_those_of_a_client_that_lost_patience() -> None:
    """Each answer that is sent gives one back."""
    server = budgeted()
    for stream in range(1, 1001, 4):
        server.receive(headers(stream, GET) + headers(stream + 2, GET))
        server.respond(stream, OK, b"x", True)
        assert server.receive(reset(stream + 2)) == [("reset", stream + 2, 8)]
        server.take_output()
    assert not server.is_over


def test_budgets_are_for_a_time() -> None:
    server = budgeted()
    for stream in range(1, 1001, 2):
        server.receive(headers(stream, GET) + reset(stream) + frame(FrameType.PING, ACK, 0, bytes(8)))
        if stream % 20 == 1:
            server.refill_budgets()
    assert not server.is_over


def test_streams_that_the_server_must_reset() -> None:
    """The peer makes us do the resetting, by errors of streams, or by streams that are too many (MadeYouReset)."""
    streams = range(1, 1001, 2)
    assert steps_until_calm(budgeted(), *(headers(stream, [*GET, ("A", "x")]) for stream in streams)) == RESETS
    assert steps_until_calm(budgeted(), *(headers(stream, GET) + window(stream, 0) for stream in streams)) == RESETS
    assert steps_until_calm(budgeted(), *(headers(stream, GET) + data(stream, b"") for stream in streams)) == RESETS
    assert steps_until_calm(budgeted(), *(headers(stream, GET) for stream in streams)) == 10 + RESETS


def test_headers_that_are_always_too_large() -> None:
    large = [*GET, ("a", "x" * HEADER_BYTES)]
    assert steps_until_calm(budgeted(), *(headers(stream, large) for stream in range(1, 1001, 2))) == RESETS


@pytest.mark.parametrize("part", [b"", b"\x00\x01a\x01b"], ids=["empty", "small"])
def test_headers_without_an_end_in_small_frames(part: bytes) -> None:
    server = budgeted()
    server.receive(frame(FrameType.HEADERS, END_STREAM, 1, block(GET)))
    assert steps_until_calm(server, frame(FrameType.CONTINUATION, 0, 1, part)) == CONTINUATIONS


def test_headers_without_an_end_in_large_frames() -> None:
    server = budgeted()
    server.receive(frame(FrameType.HEADERS, END_STREAM, 1, block(GET)))
    assert steps_until_calm(server, frame(FrameType.CONTINUATION, 0, 1, b"\x00\x01a\x50" + b"x" * 0x50 * 16)) == 3


def test_headers_that_grow_by_decoding() -> None:
    """A field of 3,000 bytes by its number, 4,000 times: 12 MB of headers in a frame. They are read to the end, since
    the table must stay right, and answered by 431."""
    server = budgeted()
    field = b"\x40\x01a\x7f\xb9\x16" + b"x" * 3000
    (event,) = server.receive(frame(FrameType.HEADERS, END_HEADERS | END_STREAM, 1, block(GET) + field))
    assert event[0] == "request"
    bomb = block(GET) + b"\xbe" * 4000 + b"\x40\x01b\x01c"
    assert server.receive(frame(FrameType.HEADERS, END_HEADERS | END_STREAM, 3, bomb)) == []
    *_, (kind, _, stream, sent) = frames(server.take_output())
    assert (kind, stream) == (FrameType.HEADERS, 3)
    assert sent.endswith(http2_header_block(431, []))
    (event,) = server.receive(frame(FrameType.HEADERS, END_HEADERS | END_STREAM, 5, block(GET) + b"\xbe"))
    assert event[0] == "request"
    assert event[7] == {"b": "c", "host": "a:1"}


@pytest.mark.parametrize(
    "flood",
    [
        frame(FrameType.PING, 0, 0, bytes(8)),
        frame(FrameType.PING, ACK, 0, bytes(8)),
        frame(FrameType.SETTINGS),
        frame(FrameType.SETTINGS, ACK),
        frame(FrameType.PRIORITY, 0, 9, bytes(5)),
        frame(FrameType.GOAWAY, 0, 0, bytes(8)),
        frame(0x77, 0, 0, bytes(30)),
        window(0, 1),
        window(1, 1),
        data(1, b""),
        frame(FrameType.DATA, 0x8, 1, b"\x03" + bytes(3)),
    ],
    ids=["ping", "pong", "settings", "ack", "priority", "goaway", "unknown", "window", "stream", "empty", "padded"],
)
def test_frames_that_ask_for_nothing(flood: bytes) -> None:
    server = budgeted()
    server.receive(headers(1, POST, ended=False))
    assert steps_until_calm(server, flood) == CONTROLS


def test_frames_for_a_stream_that_is_gone() -> None:
    server = budgeted()
    server.receive(headers(1, POST, ended=False))
    server.reset(1, Http2Error.CANCEL)
    assert steps_until_calm(server, data(1, b"x"), headers(1, GET), window(1, 1), reset(1)) == CONTROLS


def test_settings_in_one_frame_count_by_their_number() -> None:
    flood = frame(FrameType.SETTINGS, 0, 0, (b"\x00\x04" + word(5) + b"\x00\x04" + word(6)) * 80)
    assert steps_until_calm(budgeted(), flood) == CONTROLS // 10


def test_windows_that_go_up_as_data_is_read_are_no_abuse() -> None:
    server = budgeted()
    server.receive(headers(1, GET))
    server.respond(1, OK, bytes(4_000_000), True)
    while server.unsent_bytes():
        size = sum(len(payload) for kind, _, _, payload in frames(server.take_output(16_384)) if kind == FrameType.DATA)
        assert size > 0
        assert server.receive(window(0, size) + window(1, size)) == []
    assert server.open_streams == 0


def test_small_frames_are_no_abuse_where_they_are_ours() -> None:
    """A stream of short lines, each of which the peer acknowledges."""
    server = budgeted()
    server.receive(headers(1, GET))
    server.respond(1, OK, b"", False)
    for _ in range(10 * CONTROLS):
        server.send_data(1, b"line", False)
        assert [payload for *_, payload in frames(server.take_output())][-1] == b"line"
        assert server.receive(window(0, 4) + window(1, 4)) == []
    assert not server.is_over


def test_windows_of_a_byte() -> None:
    """An answer that is fetched byte by byte is a frame each."""
    server = budgeted(PREFACE + settings({Setting.INITIAL_WINDOW_SIZE: 0}))
    server.receive(headers(1, GET))
    server.respond(1, OK, bytes(10_000), True)
    assert steps_until_calm(server, window(1, 1)) == CONTROLS
    assert server.unsent_bytes() == 0  # dropped with the connection


def test_answers_for_which_there_is_no_window_are_known() -> None:
    """They are Python's objects: whoever answers must look at how much waits, and for how long."""
    server = budgeted(PREFACE + settings({Setting.INITIAL_WINDOW_SIZE: 0}))
    for stream in range(1, 21, 2):
        server.receive(headers(stream, GET))
        server.respond(stream, OK, bytes(100_000), True)
    server.take_output()
    assert server.unsent_bytes() == 1_000_000
    server.reset(3, Http2Error.CANCEL)
    assert server.unsent_bytes() == 900_000
    assert server.receive(reset(5)) == [("reset", 5, 8)]
    assert server.unsent_bytes() == 800_000


@pytest.mark.parametrize("asking", [frame(FrameType.PING, 0, 0, bytes(8)), frame(FrameType.SETTINGS)])
def test_who_asks_and_does_not_read(asking: bytes) -> None:
    """The front takes no output while the transport is paused. Even a large budget of frames does not help."""
    server = Http2Connection(10, HEADER_BYTES, 65_535, 65_535, max_unread_bytes=UNREAD_BYTES)
    server.receive(HELLO)
    server.take_output()
    each = 17 if asking[3] == FrameType.PING else 9
    assert steps_until_calm(server, asking, is_read=False) == UNREAD_BYTES // each


def test_small_answers_that_nobody_reads_stay_in_their_streams() -> None:
    """The windows are as large as can be, and still no more answers wait than there may be streams."""
    server = budgeted(PREFACE + settings({Setting.INITIAL_WINDOW_SIZE: 2**31 - 1}) + window(0, 2**31 - 65_536))
    for stream in range(1, 2001, 2):
        for event in server.receive(headers(stream, GET)):
            if event[0] == "over":
                assert event[1] == Http2Error.ENHANCE_YOUR_CALM  # too many streams were refused
                break
            server.respond(stream, OK, bytes(10_000), True)
        if server.is_over:
            break
    assert server.is_over
    assert len(server.take_output()) < 300_000


def test_heads_of_answers_that_nobody_reads() -> None:
    server = budgeted()
    head = http2_header_block(404, [(b"x", b"a" * 1000)])
    for stream in range(1, 10_001, 2):
        for event in server.receive(headers(stream, GET)):
            server.respond(stream, head, b"", True)
            if event[0] == "over":
                assert event[1:] == (Http2Error.ENHANCE_YOUR_CALM, "what is answered is not read")
        if server.is_over:
            break
    assert server.is_over
    assert 500_000 < len(server.take_output()) < 600_000


def test_who_reads_may_ask() -> None:
    server = budgeted()
    for stream in range(1, 2001, 2):
        server.receive(frame(FrameType.PING, 0, 0, bytes(8)) + frame(FrameType.SETTINGS) + headers(stream, GET))
        server.respond(stream, OK, b"", True)
        server.take_output()
    assert not server.is_over


def test_bodies_that_nobody_reads_stop_at_the_windows() -> None:
    """A peer that sends on all the same has broken the protocol."""
    server = budgeted()
    held = 0
    for event in server.receive(headers(1, POST, ended=False) + data(1, bytes(16_383)) * 4):
        assert event[0] == "request"
        held += len(event[8])
    assert held == 4 * 16_383
    assert server.receive(data(1, bytes(4)))[-1][:2] == ("over", Http2Error.FLOW_CONTROL_ERROR)
