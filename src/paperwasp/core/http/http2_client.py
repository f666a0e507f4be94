"""The client's end of an HTTP/2 connection without input and output (http2_client.hpp): bytes in, events and bytes out.

    connection = Http2Client()                       preface and settings are the first output
    head = connection.add_head([(b":method", b"POST"), …])
    stream = connection.request(head, b"/path", body)       0 where there is no room
    for event in connection.receive(data): …         answers, requests that get none, the end of the connection
    transport.write(connection.take_output())        after each `receive` and each batch of requests

A head is what many requests have in common; its fields are sent once a connection and by number from then on. Nothing
that a server sends raises. What bounds a server:

    max_body_bytes       of an answer, which is also the window of a stream
    max_buffered_bytes   of all answers that have begun and not ended
    max_header_bytes     of the headers of an answer, each with 32 bytes more; also of a block of them as it is sent
    max_control_frames   frames that ask for nothing; each whole answer gives some back
    max_continuations    frames in which headers go on
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from paperwasp.core._core import Http2Client

ResponseEvent: TypeAlias = tuple[Literal["response"], int, int, bytes]
"""stream, status, body: the whole answer."""
RefusalEvent: TypeAlias = tuple[Literal["reset"], int, int, bool]
"""stream, code, whether the server promises that it has not worked on the request. There will be no answer."""
FailureEvent: TypeAlias = tuple[Literal["over"], int, str]
"""code, message: the connection has failed, and with it all requests that were open. The last event."""
ClientEvent: TypeAlias = ResponseEvent | RefusalEvent | FailureEvent

__all__ = ["ClientEvent", "FailureEvent", "Http2Client", "RefusalEvent", "ResponseEvent"]
