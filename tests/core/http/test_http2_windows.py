"""The windows of HTTP/2 in both directions, and in which frames answers go."""

from __future__ import annotations

from paperwasp.core.http.http2 import Http2Connection, Http2Error, http2_header_block
from tests.core.http.http2_frames import (
    ACK,
    END_HEADERS,
    END_STREAM,
    GET,
    HELLO,
    OK,
    PADDED,
    POST,
    PREFACE,
    FrameType,
    Setting,
    connect,
    data,
    frame,
    frames,
    headers,
    resets,
    settings,
    window,
    word,
)

FLOW = Http2Error.FLOW_CONTROL_ERROR


def test_data_of_a_stream_that_is_reset_counts_in_the_window_of_the_connection() -> None:
    server = connect()
    server.receive(headers(1, POST, ended=False))
    server.reset(1, Http2Error.CANCEL)
    server.take_output()
    server.receive(data(1, bytes(16_384)) * 2)
    assert frames(server.take_output()) == [(FrameType.WINDOW_UPDATE, 0, 0, word(32_768))]


def test_windows_are_kept_and_go_up_by_what_is_consumed() -> None:
    server = connect(stream_window=1000)
    server.receive(headers(1, POST, ended=False) + data(1, bytes(1000)))
    assert server.take_output() == b""
    server.consume(1, 400)
    assert server.take_output() == b""  # less than half a window
    server.consume(1, 400)
    assert frames(server.take_output()) == [(FrameType.WINDOW_UPDATE, 0, 1, word(800))]
    assert server.receive(data(1, bytes(800))) == [("data", 1, bytes(800), False)]
    server.consume(1, 10_000)  # no more than has come
    assert frames(server.take_output()) == [(FrameType.WINDOW_UPDATE, 0, 1, word(1000))]
    assert server.receive(data(1, bytes(1001))) == [("reset", 1, FLOW)]
    assert resets(server) == [(1, FLOW)]


def test_padding_counts_in_the_windows_and_is_consumed_at_once() -> None:
    server = connect(stream_window=300)
    server.receive(headers(1, POST, ended=False) + frame(FrameType.DATA, PADDED, 1, b"\xc8" + b"x" * 50 + bytes(200)))
    assert frames(server.take_output()) == [(FrameType.WINDOW_UPDATE, 0, 1, word(201))]
    assert server.receive(data(1, bytes(251))) == [("reset", 1, FLOW)]


def test_the_window_of_the_connection_is_kept() -> None:
    server = connect()
    sent = b"".join(headers(stream, POST, ended=False) + data(stream, bytes(16_383)) for stream in (1, 3, 5, 7))
    assert len(server.receive(sent)) == 4
    assert server.receive(data(1, bytes(4)))[-1][:2] == ("over", FLOW)


def test_bodies_that_are_answered_make_room() -> None:
    server = connect()
    sent = b"".join(
        headers(stream, POST, ended=False) + data(stream, bytes(16_383), ended=True) for stream in (1, 3, 5, 7)
    )
    server.receive(sent)
    server.respond(1, OK, b"", True)
    server.reset(3, Http2Error.CANCEL)
    server.take_output()
    server.respond(5, OK, b"", True)
    updates = [each for each in frames(server.take_output()) if each[0] == FrameType.WINDOW_UPDATE]
    assert updates == [(FrameType.WINDOW_UPDATE, 0, 0, word(3 * 16_383))]


def test_before_our_settings_are_known_a_stream_has_the_first_window() -> None:
    server = Http2Connection(10, 65_536, 100, 65_535)
    assert server.receive(HELLO + headers(1, POST, ended=False) + data(1, bytes(200)))[0][0] == "request"
    assert server.receive(frame(FrameType.SETTINGS, ACK) + data(1, b"x")) == [("reset", 1, FLOW)]


def answer_sizes(output: bytes) -> list[int]:
    return [len(payload) for kind, _, _, payload in frames(output) if kind == FrameType.DATA]


def test_answers_keep_to_the_windows_of_the_peer_as_they_change() -> None:
    server = connect(peer=PREFACE + settings({Setting.INITIAL_WINDOW_SIZE: 10}))
    server.receive(headers(1, GET))
    server.respond(1, OK, bytes(100), True)
    assert answer_sizes(server.take_output()) == [10]
    server.receive(settings({Setting.INITIAL_WINDOW_SIZE: 30}))
    assert answer_sizes(server.take_output()) == [20]
    server.receive(settings({Setting.INITIAL_WINDOW_SIZE: 20}) + window(1, 9))
    assert answer_sizes(server.take_output()) == []  # the window is -1
    server.receive(window(1, 6))
    assert answer_sizes(server.take_output()) == [5]
    assert server.unsent_bytes(1) == 65
    server.receive(window(1, 70) + settings({Setting.INITIAL_WINDOW_SIZE: 0}))
    assert answer_sizes(server.take_output()) == [50]
    server.receive(window(1, 15))
    ((*_, flags, _, _),) = [each for each in frames(server.take_output()) if each[0] == FrameType.DATA]
    assert flags == END_STREAM
    assert server.open_streams == 0


def test_a_stream_whose_window_became_smaller_waits_without_a_turn() -> None:
    """It has its turn when settings take its window away, before it has sent anything."""
    server = connect()
    server.receive(headers(1, GET))
    server.respond(1, OK, bytes(60_000), True)
    server.receive(settings({Setting.INITIAL_WINDOW_SIZE: 0}))
    assert answer_sizes(server.take_output()) == []
    server.receive(window(1, 60_000))
    assert sum(answer_sizes(server.take_output())) == 60_000


def test_frames_are_as_large_as_the_peer_takes_them() -> None:
    server = connect(peer=PREFACE + settings({Setting.MAX_FRAME_SIZE: 50_000}))
    server.receive(headers(1, GET))
    server.respond(1, OK, bytes(60_000), True)
    assert answer_sizes(server.take_output()) == [50_000, 10_000]


def test_large_heads_of_answers_are_continued() -> None:
    server = connect()
    server.receive(headers(1, GET))
    head = http2_header_block(200, [(b"x", bytes([0xE9]) * 40_000)])
    server.respond(1, head, b"body", True)
    *parts, end = frames(server.take_output())
    assert [(kind, flags, len(payload)) for kind, flags, _, payload in parts] == [
        (FrameType.HEADERS, 0, 16_384),
        (FrameType.CONTINUATION, 0, 16_384),
        (FrameType.CONTINUATION, END_HEADERS, 1 + len(head) + 4 - 2 * 16_384),
    ]
    assert b"".join(part[3] for part in parts) == b"\x20" + head + b"\x0f\x0d\x014"
    assert end == (FrameType.DATA, END_STREAM, 1, b"body")


def test_an_answer_may_come_before_the_end_of_its_request() -> None:
    server = connect()
    server.receive(headers(1, POST, ended=False))
    server.respond(1, OK, b"enough", True)
    assert server.open_streams == 1
    assert server.receive(data(1, b"more")) == [("data", 1, b"more", False)]
    server.reset(1, Http2Error.NO_ERROR)
    assert [each[0] for each in frames(server.take_output())] == [
        FrameType.HEADERS,
        FrameType.DATA,
        FrameType.RST_STREAM,
    ]
    assert server.receive(data(1, b"more")) == []


def test_a_reset_without_an_error_waits_for_the_answer() -> None:
    server = connect()
    server.receive(headers(1, POST, ended=False))
    server.respond(1, OK, bytes(70_000), True)
    server.reset(1, Http2Error.NO_ERROR)
    assert sum(answer_sizes(server.take_output())) == 65_535
    server.receive(window(0, 70_000) + window(1, 70_000))
    assert frames(server.take_output()) == [
        (FrameType.DATA, END_STREAM, 1, bytes(70_000 - 65_535)),
        (FrameType.RST_STREAM, 0, 1, word(0)),
    ]


def test_interim_answers_come_before_the_answer() -> None:
    server = connect()
    server.receive(headers(1, POST, ended=False))
    assert server.inform(1, http2_header_block(100, []))
    server.respond(1, OK, b"", True)
    assert [each[:2] for each in frames(server.take_output())] == [
        (FrameType.HEADERS, END_HEADERS),
        (FrameType.HEADERS, END_HEADERS | END_STREAM),
    ]
    assert not server.inform(7, OK)
