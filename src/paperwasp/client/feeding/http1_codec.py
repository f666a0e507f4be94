"""HTTP/1.1 for a connection of the feed client: one request after the other, for servers without HTTP/2."""

from __future__ import annotations

from typing import Final

from paperwasp.base.patterns import compile_later
from paperwasp.client.feeding.operations import Flight
from paperwasp.client.feeding.settings import Endpoint, FeedSettings
from paperwasp.core.http.http2 import Http2Error
from paperwasp.core.http.http2_client import ClientEvent

_MAX_HEAD_BYTES: Final = 1 << 16
_MAX_BODY_BYTES: Final = 1 << 22
_MAX_INPUT_BYTES: Final = 1 << 24
"""Of a whole answer: a body in very small chunks is several times as large as what is in them."""
_MAX_CHUNK_LINE_BYTES: Final = 1024
_STATUS: Final = compile_later(rb"HTTP/1\.[01] ([1-9][0-9]{2})(?: [^\r\n]*)?")
_HEX: Final = compile_later(rb"[0-9A-Fa-f]{1,8}")
_DIGITS: Final = compile_later(rb"[0-9]{1,10}")


class _Broken(Exception):
    """The server has sent something that is no answer."""


class Http1Codec:
    """Requests to bytes, and bytes to events: those of HTTP/2, with the count of the request as its stream."""

    def __init__(self, endpoint: Endpoint, settings: FeedSettings) -> None:
        self._authority = endpoint.authority.encode()
        self._output: list[bytes] = []
        self._input = b""
        self._stream = 0
        self._chunks = _Chunks()
        self._is_open = False
        """A request waits for its answer."""
        self.is_leaving = False

    @property
    def room(self) -> int:
        """1 while no request waits for its answer."""
        return 0 if self._is_open or self.is_leaving else 1

    def request(self, flight: Flight, headers: tuple[tuple[str, str], ...]) -> int:
        """Sends a request; gives its number, or 0 where there is no room. Errors: ValueError for a broken header."""
        if not self.room:
            return 0
        lines = [f"{flight.method} {flight.path} HTTP/1.1".encode(), b"host: " + self._authority]
        lines += [f"{name}: {value}".encode("latin-1") for name, value in headers]
        lines.append(b"accept: application/json")
        if any(b"\r" in line or b"\n" in line or b"\0" in line for line in lines):
            raise ValueError("a header has a line break in it")
        if flight.body:
            lines.append(b"content-type: application/json")
        if flight.is_gzip:
            lines.append(b"content-encoding: gzip")
        lines.append(b"content-length: %d" % len(flight.body))
        self._output += [b"\r\n".join(lines), b"\r\n\r\n", flight.body]
        self._stream += 1
        self._chunks = _Chunks()
        self._is_open = True
        return self._stream

    def take_output(self) -> bytes:
        taken = b"".join(self._output)
        self._output.clear()
        return taken

    def receive(self, data: bytes) -> list[ClientEvent]:
        """Takes what the server sent."""
        self._input += data
        if len(self._input) > _MAX_INPUT_BYTES:
            return self._fail("an answer is too large")
        try:
            return self._read(is_end=False)
        except _Broken as error:
            return self._fail(str(error))

    def end(self) -> list[ClientEvent]:
        """The server has closed the connection, which ends an answer that did not tell its length."""
        self.is_leaving = True
        try:
            return self._read(is_end=True) if self._is_open and self._input else []
        except _Broken as error:
            return self._fail(str(error))

    def give_up(self, stream: int) -> None:
        """An answer that is not wanted any more can only be avoided by closing the connection."""
        self.is_leaving = True

    def _fail(self, message: str) -> list[ClientEvent]:
        self.is_leaving = True
        self._is_open = False
        return [("over", Http2Error.PROTOCOL_ERROR, message)]

    def _read(self, is_end: bool) -> list[ClientEvent]:
        """The answer, if all of it is there. Errors: _Broken."""
        while self._input:
            if not self._is_open:
                raise _Broken("the server sent an answer to no request")
            head_end = self._input.find(b"\r\n\r\n")
            if head_end < 0 or head_end > _MAX_HEAD_BYTES:
                if is_end or len(self._input) > _MAX_HEAD_BYTES:
                    raise _Broken("the head of an answer is cut off, or too large")
                return []
            status, headers = _read_head(self._input[:head_end])
            rest = self._input[head_end + 4 :]
            if status < 200:
                self._input = rest
                continue
            found = self._read_body(status, headers, rest, is_end)
            if found is None:
                return []
            body, self._input = found
            self._is_open = False
            closes = b"close" in headers.get(b"connection", b"").lower() or is_end
            self.is_leaving = self.is_leaving or closes or bool(self._input)
            return [("response", self._stream, status, body)]
        return []

    def _read_body(
        self, status: int, headers: dict[bytes, bytes], rest: bytes, is_end: bool
    ) -> tuple[bytes, bytes] | None:
        """The body and what follows it; None where more must come. Errors: _Broken."""
        if status in (204, 304):
            return b"", rest
        if b"transfer-encoding" in headers:
            return self._chunks.read(rest, is_end)
        length = headers.get(b"content-length")
        if length is None:
            if len(rest) > _MAX_BODY_BYTES:
                raise _Broken("an answer is too large")
            return (rest, b"") if is_end else None
        if not _DIGITS.fullmatch(length) or int(length) > _MAX_BODY_BYTES:
            raise _Broken("the length of an answer is malformed, or too large")
        if len(rest) < int(length):
            if is_end:
                raise _Broken("an answer is cut off")
            return None
        return rest[: int(length)], rest[int(length) :]


def _read_head(head: bytes) -> tuple[int, dict[bytes, bytes]]:
    first, *lines = head.split(b"\r\n")
    status = _STATUS.fullmatch(first)
    if status is None:
        raise _Broken("the server does not answer in HTTP/1.1")
    headers: dict[bytes, bytes] = {}
    for line in lines:
        name, colon, value = line.partition(b":")
        name, value = name.lower(), value.strip()
        if not colon or not name or (name == b"content-length" and headers.get(name, value) != value):
            raise _Broken("a header of an answer is malformed")
        headers[name] = value
    return int(status[1]), headers


class _Chunks:
    """The body of an answer that comes in chunks. What has been read once is not looked at again."""

    def __init__(self) -> None:
        self._at = 0
        """Behind the last whole chunk, from the beginning of the body."""
        self._chunks: list[bytes] = []
        self._bytes = 0

    def read(self, rest: bytes, is_end: bool) -> tuple[bytes, bytes] | None:
        """The body and what follows it; None where more must come. `rest` begins with the body. Errors: _Broken."""
        while (line_end := rest.find(b"\r\n", self._at, self._at + _MAX_CHUNK_LINE_BYTES)) >= 0:
            digits = rest[self._at : line_end].partition(b";")[0].strip()
            if not _HEX.fullmatch(digits):
                raise _Broken("a chunk of an answer is malformed")
            chunk_bytes, start = int(digits, 16), line_end + 2
            if chunk_bytes == 0:
                return _after_trailers(b"".join(self._chunks), rest, line_end, is_end)
            if self._bytes + chunk_bytes > _MAX_BODY_BYTES:
                raise _Broken("an answer is too large")
            behind = start + chunk_bytes + 2
            if len(rest) < behind:
                break
            if rest[behind - 2 : behind] != b"\r\n":
                raise _Broken("a chunk of an answer is malformed")
            self._chunks.append(rest[start : behind - 2])
            self._bytes += chunk_bytes
            self._at = behind
        if is_end or (line_end < 0 and len(rest) - self._at >= _MAX_CHUNK_LINE_BYTES):
            raise _Broken("an answer is cut off, or its chunks are malformed")
        return None


def _after_trailers(body: bytes, rest: bytes, line_end: int, is_end: bool) -> tuple[bytes, bytes] | None:
    end = rest.find(b"\r\n\r\n", line_end)
    if end >= 0:
        return body, rest[end + 4 :]
    if is_end or len(rest) - line_end > _MAX_HEAD_BYTES:
        raise _Broken("the trailers of an answer do not end")
    return None
