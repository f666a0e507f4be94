"""The bytes that a connection of HTTP/1.1 has to write, until they go out in one write.

Everything here runs on the event loop.
"""

from __future__ import annotations

from paperwasp import limits
from paperwasp.http import http1
from paperwasp.http.connection import Connection
from paperwasp.http.messages import Answer


class Output:
    """Heads and bodies of answers, in their order."""

    __slots__ = ("_body_bytes", "_connection", "parts")

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self.parts: list[bytes] = []
        """Bytes to be written. The line looks here itself, since a call for nothing would be made for each answer."""
        self._body_bytes = 0
        """Of bodies in it."""

    def add(self, data: bytes) -> None:
        self.parts.append(data)

    def add_head(self, answer: Answer, framing: bytes, *, closes: bool, is_old: bool) -> None:
        """Adds the head of an answer. `framing`: lines about its body; `closes`: the connection ends with it."""
        connection = b""
        if closes or self._connection.is_draining:
            connection = http1.CLOSE
        elif is_old:
            connection = http1.KEEP
        self.add(http1.head_bytes(answer.status, answer.content_type, answer.headers, connection + framing, is_old))

    def add_body(self, body: bytes) -> None:
        """Adds a whole body. Where much waits, it is written before the next one is made."""
        self.parts.append(body)
        self._body_bytes += len(body)
        if self._body_bytes >= limits.HTTP_WRITE_BUFFER_BYTES:
            self.flush()

    def clear(self) -> None:
        """Drops what was not written."""
        self.parts.clear()

    def flush(self) -> None:
        """Writes all of it."""
        parts = self.parts
        if len(parts) > 1 and self._body_bytes <= limits.HTTP_JOINED_BYTES:
            parts = [b"".join(parts)]
        self.parts, self._body_bytes = [], 0
        for data in parts:
            self._connection.write(data)
