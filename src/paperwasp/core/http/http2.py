"""An HTTP/2 connection of a server without input and output: bytes in, events and bytes out (http2.hpp).

    connection = Http2Connection(…)                  its settings are the first output
    for event in connection.receive(data): …         requests, more of their bodies, resets, the end of the connection
    connection.respond(stream, block, body, True)    or `respond` without the end, and `send_data`
    transport.write(connection.take_output())        after each `receive` and each batch of answers, unless the
                                                     transport is paused: a peer that does not read what it makes us
                                                     answer is cut off then

Nothing that the peer sends raises. An answer to a stream that is gone (`respond` gives False) is no error either.

Whole requests that are alike come as one event where `batch_start` says how their paths begin (`BatchEvent`);
`http2_respond_all` answers streams of several connections at once.

Windows. A peer may send `stream_window` bytes of a body, and `connection_window` of all bodies, before they are read.
`consume` makes room for more, after that number of bytes has been read. Bodies that fit need no such call: what a
request still holds is given back to the window of the connection when its answer begins, or when the stream is gone.

Answers go out as far as the peer's windows allow, a frame a stream in turn; the rest waits (`unsent_bytes`). Streams
whose waiting data has gone out, and whose answers have not ended, are listed by `take_drained`.

What bounds a peer, beside the windows:

    max_streams          streams that are open; more are refused
    max_header_bytes     of the headers of a request, each with 32 bytes more; also of a block of them as it is sent
    max_frame_bytes      of a frame that it may send
    max_resets           streams that it resets or makes us reset, between two calls of `refill_budgets`
    max_control_frames   frames that ask for nothing, between two calls
    max_continuations    frames in which the headers of a request go on
    max_unread_bytes     of what we must answer to such frames, between two calls of `take_output`

An answer that is sent gives back a reset and some control frames, so only abuse needs the timer that calls
`refill_budgets`, and connections that rest for days.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import Literal, TypeAlias

from paperwasp.core._core import Http2Connection, http2_header_block, http2_respond_all


class Http2Error(IntEnum):
    """The codes of RST_STREAM and GOAWAY: RFC 9113, section 7."""

    NO_ERROR = 0
    PROTOCOL_ERROR = 1
    INTERNAL_ERROR = 2
    FLOW_CONTROL_ERROR = 3
    SETTINGS_TIMEOUT = 4
    STREAM_CLOSED = 5
    FRAME_SIZE_ERROR = 6
    REFUSED_STREAM = 7
    CANCEL = 8
    COMPRESSION_ERROR = 9
    CONNECT_ERROR = 10
    ENHANCE_YOUR_CALM = 11
    INADEQUATE_SECURITY = 12
    HTTP_1_1_REQUIRED = 13


RequestEvent: TypeAlias = tuple[Literal["request"], int, str, str, str, str, str, dict[str, str], bytes, bool]
"""stream, method, scheme, authority, raw path, query, headers, body, whether it has ended. The headers are the
receiver's own: names in lower case, values in Latin-1, values of one name joined by ", " (of cookie by "; "), `host` is
the authority. Path and query are as sent, but that bytes beyond ASCII are escaped; the query is empty where there is
none. The body is what came of it in one call of `receive`."""
BatchEvent: TypeAlias = tuple[
    Literal["batch"],
    list[int],
    str,
    str,
    str,
    str,
    str,
    Mapping[str, str],
    list[str],
    list[bytes],
    list[str | None],
]
"""streams, method, scheme, authority, raw path up to the last slash, query, headers without content-length and
content-encoding, what each path has behind that slash, whole bodies, how each is coded. POST and PUT requests that came
whole, one behind the other, differ in nothing else, and have paths that begin with `batch_start`."""
DataEvent: TypeAlias = tuple[Literal["data"], int, bytes, bool]
"""stream, more of its body (all that came in one call of `receive`), whether it has ended."""
ResetEvent: TypeAlias = tuple[Literal["reset"], int, int]
"""stream, code: the peer gave it up, or broke the rules on it. Nobody reads an answer."""
OverEvent: TypeAlias = tuple[Literal["over"], int, str]
"""code, message: the connection has failed. The last event: all streams are gone. The output tells the peer."""
Event: TypeAlias = RequestEvent | BatchEvent | DataEvent | ResetEvent | OverEvent

__all__ = [
    "BatchEvent",
    "DataEvent",
    "Event",
    "Http2Connection",
    "Http2Error",
    "OverEvent",
    "RequestEvent",
    "ResetEvent",
    "http2_header_block",
    "http2_respond_all",
]
