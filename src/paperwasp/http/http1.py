"""HTTP/1.1 without I/O: bytes to heads and bodies of requests, answers to bytes.

The reader gives one request at a time: what a client sends ahead stays as bytes until the request before it is
answered, so that a client that sends many at once costs no more than the bytes of one read.

The syntax is taken strictly, since whatever two servers in a row may read differently lets one request hide inside
another: lines end in CR LF alone, no line is folded, no space stands before a colon, a length is given once, in
digits, and not beside chunks; `chunked` is the only transfer coding.

The lines below the first one are the same in most requests of a client: blocks that come again are looked up as they
are. A request of `vespa feed` over HTTP/1.1 takes 1.1 µs to read that way, and 2.1 with httptools.

Source: RFC 9112; for the upgrade to HTTP/2, RFC 7540, 3.2.
"""

from __future__ import annotations

import re
import time
from base64 import urlsafe_b64decode
from collections.abc import Iterable, Mapping
from email.utils import formatdate
from functools import lru_cache
from http import HTTPStatus
from types import MappingProxyType
from typing import Final, NamedTuple
from urllib.parse import quote

from msgspec import Struct

from paperwasp import limits
from paperwasp.base.patterns import compile_later
from paperwasp.core import _core
from paperwasp.errors import InvalidInput, LargeHead, LongAddress

CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"
SWITCHING: Final = b"HTTP/1.1 101 Switching Protocols\r\nconnection: Upgrade\r\nupgrade: h2c\r\n\r\n"
LAST_CHUNK: Final = b"0\r\n\r\n"
BROKEN_CHUNKS: Final = (
    "The request body could not be read: its chunks are broken, or the client went away before its end"
)
UNKNOWN: Final = -1
"""The length of a body that comes in chunks."""

_TOKEN: Final = rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+"
_LINE: Final = compile_later(rb"(" + _TOKEN + rb") ([!-~\x80-\xff]+) HTTP/1\.([01])\r\n")
_OTHER_PROTOCOL: Final = compile_later(rb"[^ \r\n]+ [^ \r\n]+ (?!HTTP/)[^ \r\n]+\r\n")
_FIELD: Final = compile_later(rb"(" + _TOKEN + rb"):([^\x00-\x08\x0a-\x1f\x7f]*)\r\n")
_BARE_END: Final = compile_later(rb"(?<!\r)\n")
_NO_METHOD: Final = compile_later(rb"[\r\n]*[^!#$%&'*+\-.^_`|~0-9A-Za-z\r\n]")
_QUOTED: Final = rb'"(?:[^"\\\x00-\x08\x0a-\x1f\x7f]|\\[\t -~\x80-\xff])*"'
_EXTENSION: Final = rb";" + _TOKEN + rb"(?:=(?:" + _TOKEN + rb"|" + _QUOTED + rb"))?"
_CHUNK: Final = compile_later(rb"([0-9a-fA-F]{1,15})(?:" + _EXTENSION + rb")*\r\n")
_LENGTH: Final = compile_later(r"[0-9]{1,19}", re.ASCII)
_HOST: Final = compile_later(r"(?:[\w.~!$&'()*+,;=%-]+|\[[0-9a-fA-F:.]+\])(?::[0-9]{0,5})?", re.ASCII)
_ABSOLUTE: Final = compile_later(r"https?://([^/?#]*)", re.ASCII | re.IGNORECASE)
_HEAD_END: Final = b"\r\n\r\n"
_LINE_END: Final = b"\r\n"
_LATIN: Final = "latin-1"
_ASCII: Final = bytes(range(128)).decode()
BODILESS: Final = frozenset((204, 304))
_REASONS: Final = {status.value: status.phrase for status in HTTPStatus} | {413: "Payload Too Large"}


class BrokenRequest(InvalidInput):
    """The bytes are no request of HTTP/1.1; nothing behind them can be read."""


class OtherProtocol(BrokenRequest):
    """The first line names another protocol than HTTP."""


class Fields(Struct, frozen=True):
    """The header fields of a request, and what they say about the connection."""

    headers: Mapping[str, str]
    """Name in lower case → value; several of one name are one list."""
    common: Mapping[str, str]
    """The same without how long and how coded the body is, which differs between requests that are alike."""
    host: str
    host_problem: str | None
    length_bytes: int
    """Of the body; UNKNOWN where it comes in chunks."""
    closes: bool
    keeps: bool
    expects_continue: bool
    h2_settings: bytes | None
    """The settings of a client that would like to go on in HTTP/2."""


class Head(NamedTuple):
    """A request without its body."""

    method: str
    raw_path: str
    query: str
    fields: Fields
    host: str
    is_old: bool
    """Whether it is HTTP/1.0."""

    @property
    def closes(self) -> bool:
        """Whether the connection ends with the answer."""
        return self.fields.closes or (self.is_old and not self.fields.keeps)


class RequestReader:
    """The bytes of a client. `feed` it, then ask for a head, for its body until that is over, then for a head."""

    __slots__ = ("_at", "_body", "_data", "_seen")

    def __init__(self) -> None:
        self._data = b""
        self._at = 0
        self._seen = 0
        """Bytes behind `_at` in which no end of a head was found."""
        self._body: _Counted | _Chunked | None = None

    def feed_again(self, data: bytes) -> None:
        """These bytes, which were taken for others to read, come before all that waits."""
        self._data = data + self.take_rest()
        self._seen = 0

    def feed(self, data: bytes) -> None:
        """These bytes have come."""
        self._data = self._data[self._at :] + data if self._at < len(self._data) else data
        self._at = 0

    @property
    def waiting_bytes(self) -> int:
        """How much was sent and is not read yet."""
        return len(self._data) - self._at

    @property
    def whole(self) -> bytes:
        """The last request, all of it, if it came alone; else something else."""
        return b"" if self.waiting_bytes else self._data

    def take_rest(self) -> bytes:
        """All that was sent and is not read yet; it is for another reader."""
        rest = self._data[self._at :]
        self._data, self._at = b"", 0
        return rest

    def read_head(self) -> Head | None:
        """The next head; None where it has not come yet. Errors: BrokenRequest, LargeHead, LongAddress."""
        data, at = self._data, self._at
        while data.startswith(_LINE_END, at):  # a line end behind a body is a widespread mistake
            at += 2
            self._at, self._seen = at, 0
        end = data.find(_HEAD_END, at + self._seen - 3 if self._seen > 3 else at)
        if end < 0 or end - at > limits.HTTP_HEADERS_BYTES:
            self._check_partial_head()
            return None
        plain = _core.read_request_line(data, at)
        if plain is None:
            return self._read_any_head(end)
        method, raw_path, query, below = plain
        fields = _fields(data[below : end + 2])
        self._await_body(fields.length_bytes, end)
        return Head(method, raw_path, query, fields, fields.host, False)

    def _read_any_head(self, end: int) -> Head:
        """The head that ends there, whatever its first line is like. Errors: BrokenRequest, LargeHead."""
        data, at = self._data, self._at
        line = _LINE.match(data, at)
        if line is None:
            kind = OtherProtocol if _OTHER_PROTOCOL.match(data, at) else BrokenRequest
            raise kind("The first line of the request is not one of HTTP/1.1")
        method, target, minor = line.groups()
        fields = _fields(data[line.end() : end + 2])
        is_old = minor == b"0"
        if fields.length_bytes == UNKNOWN and is_old:
            raise BrokenRequest("HTTP/1.0 has no Transfer-Encoding")
        self._await_body(fields.length_bytes, end)
        return _head(method.decode(), target, fields, is_old)

    def _await_body(self, length_bytes: int, end: int) -> None:
        """Begin to read the body behind the head that ends there."""
        if length_bytes:
            self._body = _Counted(length_bytes) if length_bytes > 0 else _Chunked()
        self._at, self._seen = end + 4, 0

    def _check_partial_head(self) -> None:
        """Errors: what is wrong already with a head that is not whole, or too large."""
        data, at = self._data, self._at
        size_bytes = len(data) - at
        if _BARE_END.search(data, at + max(self._seen - 1, 0)):
            raise BrokenRequest("A line of the head does not end in CR LF")
        if size_bytes > limits.HTTP_HEADERS_BYTES:
            if data.find(_LINE_END, at, at + limits.HTTP_HEADERS_BYTES) < 0:
                raise LongAddress(f"The address has more than {limits.HTTP_HEADERS_BYTES} bytes")
            raise LargeHead(f"The head of the request has more than {limits.HTTP_HEADERS_BYTES} bytes")
        if not self._seen and _NO_METHOD.match(data, at):
            raise BrokenRequest("The first line of the request is not one of HTTP/1.1")
        self._seen = size_bytes

    @property
    def is_body_over(self) -> bool:
        """Whether all of the body has been read."""
        return self._body is None

    def read_body(self) -> bytes:
        """Take what has come of the body since the last time; of many small chunks only some. Errors: BrokenRequest."""
        body = self._body
        if body is None:
            return b""
        piece, self._at = body.read(self._data, self._at)
        if body.is_over:
            self._body = None
        return piece


class _Counted:
    """A body of known length."""

    __slots__ = ("_left_bytes",)

    def __init__(self, length_bytes: int) -> None:
        self._left_bytes = length_bytes

    @property
    def is_over(self) -> bool:
        return self._left_bytes == 0

    def read(self, data: bytes, at: int) -> tuple[bytes, int]:
        """The bytes of the body from `at` on, and where they end."""
        piece = data[at : at + self._left_bytes]
        self._left_bytes -= len(piece)
        return piece, at + len(piece)


class _Chunked:
    """A body in chunks. Extensions of chunks and the fields behind the last one are read and dropped."""

    __slots__ = ("_left_bytes", "_step", "_trailer_bytes", "is_over")

    def __init__(self) -> None:
        self.is_over = False
        self._step = self._read_size
        self._left_bytes = 0
        self._trailer_bytes = 0

    def read(self, data: bytes, at: int) -> tuple[bytes, int]:
        """The same as `_Counted.read`, of at most that number of chunks. Errors: BrokenRequest."""
        pieces: list[bytes] = []
        while not self.is_over and len(pieces) < limits.HTTP_TURN_CHUNKS:
            end = self._step(data, at, pieces)
            if end == at:
                break
            at = end
        return pieces[0] if len(pieces) == 1 else b"".join(pieces), at

    def _read_size(self, data: bytes, at: int, pieces: list[bytes]) -> int:
        line = _CHUNK.match(data, at)
        if line is None:
            return _check_partial_line(data, at)
        self._left_bytes = int(line.group(1), 16)
        self._step = self._read_bytes if self._left_bytes else self._read_trailer
        return line.end()

    def _read_bytes(self, data: bytes, at: int, pieces: list[bytes]) -> int:
        piece = data[at : at + self._left_bytes]
        if piece:
            pieces.append(piece)
        self._left_bytes -= len(piece)
        if not self._left_bytes:
            self._step = self._read_end
        return at + len(piece) if self._left_bytes else self._read_end(data, at + len(piece), pieces)

    def _read_end(self, data: bytes, at: int, pieces: list[bytes]) -> int:
        end = data[at : at + 2]
        if end == _LINE_END:
            self._step = self._read_size
            return at + 2
        if end not in (b"", b"\r"):
            raise BrokenRequest(BROKEN_CHUNKS)
        return at

    def _read_trailer(self, data: bytes, at: int, pieces: list[bytes]) -> int:
        if data.startswith(_LINE_END, at):
            self.is_over = True
            return at + 2
        line = _FIELD.match(data, at)
        if line is None:
            return _check_partial_line(data, at)
        self._trailer_bytes += line.end() - at
        frames = line.group(1).lower() in (b"content-length", b"transfer-encoding")
        if frames or self._trailer_bytes > limits.HTTP_HEADERS_BYTES:
            raise BrokenRequest(BROKEN_CHUNKS)
        return line.end()


def _check_partial_line(data: bytes, at: int) -> int:
    """Where a line begins whose end has not come. Errors: BrokenRequest where it has, or where it is too long."""
    if data.find(b"\n", at) >= 0 or len(data) - at > limits.HTTP_CHUNK_LINE_BYTES:
        raise BrokenRequest(BROKEN_CHUNKS)
    return at


def _head(method: str, target: bytes, fields: Fields, is_old: bool) -> Head:
    """The head with that target. Errors: BrokenRequest."""
    text, host = escaped(target), fields.host
    if not text.startswith("/"):
        absolute = _ABSOLUTE.match(text)
        if absolute is not None:
            host, text = absolute.group(1), text[absolute.end() :]
            if not _HOST.fullmatch(host):
                raise BrokenRequest("Bad Host")
            text = text if text.startswith("/") else "/" + text
        elif text != "*":
            raise BrokenRequest("The target of the request is no path")
    if "#" in text:
        text = text.partition("#")[0]
    raw_path, _, query = text.partition("?")
    return Head(method, raw_path, query, fields, host, is_old)


def escaped(sent: bytes) -> str:
    """A path or query string as text. Bytes beyond ASCII have no place there; some clients send UTF-8 all the same."""
    return sent.decode() if sent.isascii() else quote(sent, safe=_ASCII)


_known: dict[bytes, Fields] = {}
"""Blocks of header fields that came before; emptied when it is full."""


def _fields(block: bytes) -> Fields:
    """The fields of a head: the lines below its first one. Errors: BrokenRequest, LargeHead.

    Those before a large body are not remembered. They seldom come again; and they would stay among the many objects
    that are made of such bodies, so that Python could not give back the memory of these.
    """
    found = _known.get(block)
    if found is None:
        found = _parse_fields(block)
        if len(block) <= limits.HTTP_KNOWN_HEADERS_BYTES and found.length_bytes <= limits.JSON_PIECE_BYTES:
            if len(_known) >= limits.HTTP_KNOWN_HEADERS:
                _known.clear()
            _known[block] = found
    return found


def _parse_fields(block: bytes) -> Fields:
    headers: dict[str, str] = {}
    all_of: dict[str, list[str]] = {}
    at = count = 0
    while at < len(block):
        line = _FIELD.match(block, at)
        if line is None:
            raise BrokenRequest("A header field of the request is broken")
        at, count = line.end(), count + 1
        name = line.group(1).decode(_LATIN).lower()
        value = line.group(2).strip(b" \t").decode(_LATIN)
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
        if name in _CONTROLS:
            all_of.setdefault(name, []).append(value)
    if count > limits.HTTP_HEADER_FIELDS:
        raise LargeHead(f"The request has {count} header fields; at most {limits.HTTP_HEADER_FIELDS}")
    hosts = all_of.get("host", [])
    headers.setdefault("host", "")
    connection = _words(all_of.get("connection", ()))
    return Fields(
        headers=MappingProxyType(headers),
        common=MappingProxyType({name: value for name, value in headers.items() if name not in _OF_BODIES}),
        host=headers["host"],
        host_problem=host_problem(hosts),
        length_bytes=_length_bytes(all_of.get("content-length"), all_of.get("transfer-encoding")),
        closes="close" in connection,
        keeps="keep-alive" in connection,
        expects_continue="100-continue" in _words(all_of.get("expect", ())),
        h2_settings=_h2_settings(connection, all_of),
    )


_CONTROLS: Final = frozenset(
    ("connection", "content-length", "expect", "host", "http2-settings", "transfer-encoding", "upgrade")
)
"""Fields that say something about the connection, of which all count."""
_OF_BODIES: Final = frozenset(("content-length", "content-encoding"))


def _words(values: Iterable[str]) -> frozenset[str]:
    """The members of lists, in lower case."""
    return frozenset(word.strip().lower() for value in values for word in value.split(","))


def host_problem(hosts: list[str]) -> str | None:
    """The problem with the hosts that a request names."""
    if not any(hosts):
        return "No Host"
    return None if len(hosts) == 1 and _HOST.fullmatch(hosts[0]) else "Bad Host"


def _length_bytes(lengths: list[str] | None, codings: list[str] | None) -> int:
    """Of the body, or UNKNOWN. Errors: BrokenRequest."""
    if codings is not None:
        if lengths is not None:
            raise BrokenRequest("The request has both Content-Length and Transfer-Encoding")
        if [coding.lower() for coding in codings] != ["chunked"]:
            raise BrokenRequest("The only Transfer-Encoding is chunked")
        return UNKNOWN
    if lengths is None:
        return 0
    if len(lengths) > 1 or not _LENGTH.fullmatch(lengths[0]):
        raise BrokenRequest("The Content-Length is not one number")
    return int(lengths[0])


def _h2_settings(connection: frozenset[str], all_of: Mapping[str, list[str]]) -> bytes | None:
    """The settings with which the client would go on in HTTP/2; None where it would not, or is wrong."""
    settings = all_of.get("http2-settings", ())
    if (
        len(settings) != 1
        or not {"upgrade", "http2-settings"} <= connection
        or "h2c" not in _words(all_of.get("upgrade", ()))
    ):
        return None
    try:
        return urlsafe_b64decode(settings[0] + "=" * (-len(settings[0]) % 4))
    except ValueError:
        return None


# Answers


def head_bytes(status: int, content_type: str, fields: Mapping[str, str], framing: bytes, is_old: bool) -> bytes:
    """The head of an answer. `framing`: lines about the connection. Errors: ValueError where a value would end its
    line."""
    return b"".join((first_lines(status, content_type, fields, is_old), framing, _date(), _LINE_END))


def first_lines(status: int, content_type: str, fields: Mapping[str, str], is_old: bool) -> bytes:
    """The lines of a head that say nothing of the body, the connection or the time. Errors: as `head_bytes`."""
    extra = b"".join(_field_line(name, value) for name, value in fields.items()) if fields else b""
    return b"".join((start_of_head(status, content_type, is_old), extra, SERVER))


def length_line(status: int, length_bytes: int) -> bytes:
    """How long the body is, for an answer that may have one."""
    return b"" if status in BODILESS else b"content-length: %d\r\n" % length_bytes


def chunk(data: bytes) -> bytes:
    """A piece of a body that is sent in chunks; none where it is empty, since that would be the last one."""
    return b"%x\r\n%b\r\n" % (len(data), data) if data else b""


SERVER: Final = b"server: paperwasp\r\n"
CLOSE: Final = b"connection: close\r\n"
KEEP: Final = b"connection: keep-alive\r\n"
CHUNKED: Final = b"transfer-encoding: chunked\r\n"


@lru_cache(maxsize=256)
def start_of_head(status: int, content_type: str, is_old: bool) -> bytes:
    """The first two lines of the head of an answer."""
    line = f"HTTP/1.{0 if is_old else 1} {status} {_REASONS.get(status, '')}\r\n".encode()
    return line + _field_line("content-type", content_type)


def _field_line(name: str, value: str) -> bytes:
    if "\r" in value or "\n" in value:
        raise ValueError(f"a line break in the header field {name}")
    return f"{name.lower()}: {value}\r\n".encode(_LATIN)


_last_date: tuple[int, bytes] = (0, b"")


def _date() -> bytes:
    """The field that tells the time, formatted once a second."""
    global _last_date
    now = int(time.time())
    if now != _last_date[0]:
        _last_date = (now, f"date: {formatdate(now, usegmt=True)}\r\n".encode())
    return _last_date[1]


def date_value() -> bytes:
    """The time, as HTTP tells it."""
    return _date()[6:-2]
