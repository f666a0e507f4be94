"""Several of the same request at once, as streams of one HTTP/2 connection."""

from __future__ import annotations

import contextlib
import socket
from typing import Final

from bench.attack import ANSWER_SECONDS, Attack
from paperwasp.core.http.http2_client import Http2Client

COPIES: Final = 4
_READ_BYTES: Final = 1 << 20
_MOST_ANSWER_BYTES: Final = 1 << 28


def send_together(port: int, attack: Attack, copies: int = COPIES) -> int:
    """The worst status of all answers; 0: some request got none."""
    client = Http2Client(max_body_bytes=_MOST_ANSWER_BYTES, max_buffered_bytes=copies * _MOST_ANSWER_BYTES)
    fields = [(name.lower().encode(), value.encode()) for name, value in attack.headers.items()]
    first = [(b":method", attack.method.encode()), (b":scheme", b"http"), (b":authority", b"bench")]
    head = client.add_head([*first, *fields])
    statuses: list[int] = []
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), ANSWER_SECONDS) as plain:
        open_ = sum(client.request(head, attack.path.encode(), attack.body) > 0 for _ in range(copies))
        while len(statuses) < open_:
            while data := client.take_output():
                plain.sendall(data)
            received = plain.recv(_READ_BYTES)
            if not received:
                break
            for event in client.receive(received):
                if event[0] == "over":
                    return 0
                statuses.append(event[2] if event[0] == "response" else 0)
    return max(statuses) if len(statuses) == copies and all(statuses) else 0
