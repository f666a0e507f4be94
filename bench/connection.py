"""One connection of HTTP/1.1 that costs as little as it can: `bench.load` asks from several at once."""

from __future__ import annotations

import socket

_PIECE_BYTES = 1 << 18


class Connection:
    """One connection, kept open. An answer has a length, and the status 200."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._data = b""

    def answer(self, path: str) -> bytes:
        """The body of the answer to a GET. Errors: AssertionError for another status than 200."""
        self.send(request_of(path))
        while (body := self.receive()) is None:
            pass
        return body

    def send(self, request: bytes) -> None:
        self._data = b""
        self.socket.sendall(request)

    def receive(self) -> bytes | None:
        """Waits for the next bytes; the body once all of it is there. Errors: as `answer`."""
        piece = self.socket.recv(_PIECE_BYTES)
        self._data = data = self._data + piece if self._data else piece
        end = data.find(b"\r\n\r\n")
        if end >= 0:
            head = data[:end].lower()
            if b" 200 " not in head.split(b"\r\n", 1)[0]:
                raise AssertionError(data[:500])
            size = int(head.partition(b"content-length:")[2].split(b"\r\n", 1)[0])
            if len(data) >= end + 4 + size:
                return data[end + 4 :]
        if not piece:
            raise AssertionError(f"the server has closed the connection after {data[:500]!r}")
        return None

    def close(self) -> None:
        self.socket.close()


def request_of(path: str) -> bytes:
    """A GET of a path with its query string."""
    return f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()
