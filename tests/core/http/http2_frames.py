"""Frames of HTTP/2 as bytes, written and read by their definition alone: for peers that break the rules."""

from __future__ import annotations

from enum import IntEnum
from typing import Any

import hpack

from paperwasp.core.http.http2 import Http2Connection, http2_header_block

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
ACK, END_STREAM, END_HEADERS, PADDED, PRIORITY = 0x1, 0x1, 0x4, 0x8, 0x20
LARGEST_WINDOW = 2**31 - 1


class FrameType(IntEnum):
    """RFC 9113, section 6."""

    DATA = 0
    HEADERS = 1
    PRIORITY = 2
    RST_STREAM = 3
    SETTINGS = 4
    PUSH_PROMISE = 5
    PING = 6
    GOAWAY = 7
    WINDOW_UPDATE = 8
    CONTINUATION = 9


class Setting(IntEnum):
    """RFC 9113, section 6.5.2."""

    HEADER_TABLE_SIZE = 1
    ENABLE_PUSH = 2
    MAX_CONCURRENT_STREAMS = 3
    INITIAL_WINDOW_SIZE = 4
    MAX_FRAME_SIZE = 5
    MAX_HEADER_LIST_SIZE = 6


Frame = tuple[int, int, int, bytes]
"""type, flags, stream, payload"""
Fields = list[tuple[str, str]]

GET: Fields = [(":method", "GET"), (":scheme", "http"), (":authority", "a:1"), (":path", "/")]
POST: Fields = [(":method", "POST"), *GET[1:]]


def frame(kind: int, flags: int = 0, stream: int = 0, payload: bytes = b"") -> bytes:
    return len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + payload


def frames(output: bytes) -> list[Frame]:
    """The frames of an output, which must be whole."""
    found = []
    while output:
        end = 9 + int.from_bytes(output[:3], "big")
        assert len(output) >= end
        found.append((output[3], output[4], int.from_bytes(output[5:9], "big"), output[9:end]))
        output = output[end:]
    return found


def word(number: int) -> bytes:
    return number.to_bytes(4, "big")


def settings(values: dict[int, int] | None = None) -> bytes:
    pairs = (values or {}).items()
    return frame(FrameType.SETTINGS, payload=b"".join(name.to_bytes(2, "big") + word(value) for name, value in pairs))


def block(fields: Fields) -> bytes:
    """Fields that are not added to the table of the connection: the same bytes whenever they are sent."""
    sent = [hpack.NeverIndexedHeaderTuple(name.encode("latin-1"), value.encode("latin-1")) for name, value in fields]
    return hpack.Encoder().encode(sent)


def headers(stream: int, fields: Fields, ended: bool = True) -> bytes:
    return frame(FrameType.HEADERS, END_HEADERS | (END_STREAM if ended else 0), stream, block(fields))


def data(stream: int, body: bytes, ended: bool = False) -> bytes:
    return frame(FrameType.DATA, END_STREAM if ended else 0, stream, body)


def reset(stream: int, code: int = 8) -> bytes:
    return frame(FrameType.RST_STREAM, 0, stream, word(code))


def window(stream: int, more: int) -> bytes:
    return frame(FrameType.WINDOW_UPDATE, 0, stream, word(more))


HELLO = PREFACE + settings()


OK = http2_header_block(200, [])


def connect(
    stream_window: int = 65_535, max_header_bytes: int = 65_536, peer: bytes = HELLO, **budgets: Any
) -> Http2Connection:
    """A connection that has seen the preface and the settings of the peer, and whose own settings it knows."""
    server = Http2Connection(10, max_header_bytes, stream_window, 65_535, **budgets)
    assert server.receive(peer + frame(FrameType.SETTINGS, ACK)) == []
    server.take_output()
    return server


def resets(server: Http2Connection) -> list[tuple[int, int]]:
    """The streams that the output resets, and why."""
    sent = frames(server.take_output())
    return [
        (stream, int.from_bytes(payload, "big")) for kind, _, stream, payload in sent if kind == FrameType.RST_STREAM
    ]
