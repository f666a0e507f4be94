"""The reader of HTTP/1.1: what is a request and what is not, however the bytes are cut; beside llhttp's reading."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise

import httptools
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paperwasp import limits
from paperwasp.core import _core
from paperwasp.errors import LargeHead, LongAddress, PaperwaspError
from paperwasp.http import http1
from paperwasp.http.http1 import BrokenRequest, RequestReader, chunk, head_bytes, length_line
from tests import chance

GET = b"GET /a?b HTTP/1.1\r\nHost: h\r\n"
CHUNKED = b"POST /c HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"


@dataclass
class Found:
    """A request that was read."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes = b""
    is_whole: bool = False


@dataclass
class Reading:
    """Everything that was read of some bytes, and what was wrong with the rest."""

    requests: list[Found] = field(default_factory=list)
    error: PaperwaspError | None = None


def read(pieces: list[bytes]) -> Reading:
    """What the reader makes of bytes that come in these pieces."""
    reader, reading = RequestReader(), Reading()
    try:
        for piece in pieces:
            reader.feed(piece)
            _go_on(reader, reading.requests)
    except PaperwaspError as error:
        reading.error = error
    return reading


def _go_on(reader: RequestReader, found: list[Found]) -> None:
    while True:
        if found and not found[-1].is_whole:
            while piece := reader.read_body():
                found[-1].body += piece
            found[-1].is_whole = reader.is_body_over
            if not found[-1].is_whole:
                return
        if not reader.waiting_bytes or (head := reader.read_head()) is None:
            return
        target = head.raw_path + ("?" + head.query if head.query else "")
        found.append(Found(head.method, target, dict(head.fields.headers)))


def one(data: bytes) -> Found:
    """The one request that the bytes are."""
    reading = read([data])
    assert reading.error is None
    (found,) = reading.requests
    assert found.is_whole
    return found


def test_a_head_is_read_as_it_is() -> None:
    found = one(b"PUT /a%20b/c%2Fd?x=%20y HTTP/1.1\r\nHost: h:1\r\nX-Y: \t a\tb c \t\r\nEmpty:\r\n\r\n")
    assert (found.method, found.target) == ("PUT", "/a%20b/c%2Fd?x=%20y")
    assert found.headers == {"host": "h:1", "x-y": "a\tb c", "empty": ""}


@pytest.mark.parametrize(
    ("target", "path", "host"),
    [
        (b"http://other:8080/p?q", "/p?q", "other:8080"),
        (b"HTTPS://other", "/", "other"),
        (b"http://other?q", "/?q", "other"),
        (b"*", "*", "h"),
        (b"/p#fragment?q", "/p", "h"),
        (b"//a//b", "//a//b", "h"),
        ("/é".encode(), "/%C3%A9", "h"),
    ],
)
def test_targets_have_four_forms_of_which_three_are_ours(target: bytes, path: str, host: str) -> None:
    """RFC 9112, 3.2; the host of an absolute target counts, not the field."""
    reader = RequestReader()
    reader.feed(b"OPTIONS " + target + b" HTTP/1.1\r\nHost: h\r\n\r\n")
    head = reader.read_head()
    assert head is not None
    assert (head.raw_path + ("?" + head.query if head.query else ""), head.host) == (path, host)


def test_the_kernel_reads_first_lines_as_its_twin_does(monkeypatch: pytest.MonkeyPatch) -> None:
    choices, plain = random.Random(chance.SEED), 0
    methods, versions = (
        (b"GET", b"POST", b"a-b", b"", b"G ET"),
        (b" HTTP/1.1", b" HTTP/1.1", b" HTTP/1.0", b"", b" HTTP/2.0"),
    )
    signs = [b"/", b"?", b"&", b"a", b"%41", b"#", b" ", b"\x80", b"http://h/", b"*", b"\x7f", b"~", b"!"]
    for _ in range(3000):
        target = b"".join(choices.choices(signs, k=choices.randint(0, 5)))
        target = b"/" + target if choices.random() < 0.7 else target
        line = choices.choice(methods) + b" " + target + choices.choice(versions) + b"\r\n"
        data = b"xy" + line + b"Host: h\r\n\r\n"
        found = _core.read_request_line(data, 2)
        if found is None:
            continue
        plain += 1
        with monkeypatch.context() as patch:
            patch.setattr(_core, "read_request_line", lambda *_: None)
            reader = RequestReader()
            reader.feed(data[2:])
            head = reader.read_head()
        assert head is not None
        assert found == (*head[:3], 2 + len(line)), line
        assert not head.is_old
    assert plain > 50


@pytest.mark.parametrize(
    "data",
    [
        b"GET / HTTP/1.1\nHost: h\n\n",
        b"GET / HTTP/1.1\r\nHost: h\n\r\n",
        b"GET / HTTP/1.1\r\nHost: h\r\nX: a\rb\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: h\r\nX: a\r\n b\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: h\r\nX : a\r\n\r\n",
        b"GET / HTTP/1.1\r\n X: a\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: h\r\nX\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: h\r\n: a\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: h\r\nX: a\0b\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: h\r\nX\xe9: a\r\n\r\n",
        b"GET  / HTTP/1.1\r\nHost: h\r\n\r\n",
        b"GET / HTTP/1.1 \r\nHost: h\r\n\r\n",
        b"GET /a b HTTP/1.1\r\nHost: h\r\n\r\n",
        b" GET / HTTP/1.1\r\nHost: h\r\n\r\n",
        b"GET / HTTP/1.2\r\nHost: h\r\n\r\n",
        b"GET / HTTP/2.0\r\nHost: h\r\n\r\n",
        b"GET / http/1.1\r\nHost: h\r\n\r\n",
        b"GET /\r\nHost: h\r\n\r\n",
        b"GET a HTTP/1.1\r\nHost: h\r\n\r\n",
        b"GET http://a b/ HTTP/1.1\r\nHost: h\r\n\r\n",
        b"GET http:/// HTTP/1.1\r\nHost: h\r\n\r\n",
        b"CONNECT h:80 HTTP/1.1\r\nHost: h\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01",
        b"G(T / HTTP/1.1\r\nHost: h\r\n\r\n",
    ],
    ids=repr,
)
def test_what_is_no_head_is_refused(data: bytes) -> None:
    reading = read([data])
    assert isinstance(reading.error, BrokenRequest)
    assert reading.requests == []


@pytest.mark.parametrize(
    "fields",
    [
        b"Content-Length: 5\r\nContent-Length: 5",
        b"Content-Length: 5\r\nContent-Length: 6",
        b"Content-Length: 5, 5",
        b"Content-Length: +5",
        b"Content-Length: -5",
        b"Content-Length: 0x5",
        b"Content-Length: 5 5",
        b"Content-Length:",
        b"Content-Length: 12345678901234567890",
        b"Content-Length: 5\r\nTransfer-Encoding: chunked",
        b"Transfer-Encoding: chunked\r\nContent-Length: 0",
        b"Transfer-Encoding: gzip",
        b"Transfer-Encoding: gzip, chunked",
        b"Transfer-Encoding: chunked, gzip",
        b"Transfer-Encoding: chunked, chunked",
        b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
        b"Transfer-Encoding: identity",
        b"Transfer-Encoding: xchunked",
        b"Transfer-Encoding:",
    ],
    ids=repr,
)
def test_what_leaves_the_length_open_is_refused(fields: bytes) -> None:
    """RFC 9112, 6.1 and 6.3: whatever one server may take for the end of a body, and another not."""
    assert isinstance(read([b"POST / HTTP/1.1\r\nHost: h\r\n" + fields + b"\r\n\r\nhello"]).error, BrokenRequest)


def test_chunks_are_of_http_1_1() -> None:
    reading = read([b"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"])
    assert isinstance(reading.error, BrokenRequest)


@pytest.mark.parametrize(
    ("sent", "body"),
    [
        (b"0\r\n\r\n", b""),
        (b"5\r\nhello\r\n0\r\n\r\n", b"hello"),
        (b'5;a=b;c="d"\r\nhello\r\n1;x\r\n!\r\n000\r\n\r\n', b"hello!"),
        (b"a\r\n0123456789\r\nA\r\n0123456789\r\n0;last\r\nTrailer: x\r\nOther: y\r\n\r\n", b"0123456789" * 2),
        (b"2\r\n\r\n\r\n0\r\n\r\n", b"\r\n"),
    ],
    ids=repr,
)
def test_chunks_are_joined_and_what_is_beside_them_dropped(sent: bytes, body: bytes) -> None:
    assert one(CHUNKED + sent).body == body
    reading = read([bytes((byte,)) for byte in CHUNKED + sent + GET + b"\r\n"])
    assert [found.body for found in reading.requests] == [body, b""]


@pytest.mark.parametrize(
    "sent",
    [
        b"zz\r\nhello\r\n0\r\n\r\n",
        b"5\nhello\r\n0\r\n\r\n",
        b"5 \r\nhello\r\n0\r\n\r\n",
        b"5 ;x\r\nhello\r\n0\r\n\r\n",
        b" 5\r\nhello\r\n0\r\n\r\n",
        b"+5\r\nhello\r\n0\r\n\r\n",
        b"0x5\r\nhello\r\n0\r\n\r\n",
        b"-0\r\n\r\n",
        b"\r\n0\r\n\r\n",
        b"5\r\nhello!\r\n0\r\n\r\n",
        b"5\r\nhello0\r\n\r\n",
        b"5\r\nhello\n0\r\n\r\n",
        b"1000000000000000\r\nhello",
        b"5;a\0\r\nhello\r\n0\r\n\r\n",
        b"0\r\nTrailer : x\r\n\r\n",
        b"0\r\nTrailer: x\n\r\n",
        b"0\r\ncontent-length: 5\r\n\r\n",
        b"0\r\n\n",
        b"1;" + b"x" * (limits.HTTP_CHUNK_LINE_BYTES + 1),
    ],
    ids=lambda sent: repr(sent[:30]),
)
def test_broken_chunks_are_refused(sent: bytes) -> None:
    whole, byte_by_byte = read([CHUNKED + sent]), read([CHUNKED, *(bytes((byte,)) for byte in sent)])
    for reading in (whole, byte_by_byte):
        assert isinstance(reading.error, BrokenRequest)
        assert "its chunks are broken" in str(reading.error)


def test_many_small_chunks_are_read_in_turns() -> None:
    reader, turn = RequestReader(), limits.HTTP_TURN_CHUNKS
    reader.feed(CHUNKED + chunk(b"ab") * (2 * turn + 1) + b"0\r\n\r\n")
    assert reader.read_head() is not None
    assert [len(reader.read_body()) for _ in range(3)] == [2 * turn, 2 * turn, 2]
    assert reader.is_body_over


def test_heads_have_bounds() -> None:
    size = limits.HTTP_HEADERS_BYTES
    assert isinstance(read([GET + b"X: " + b"a" * size]).error, LargeHead)
    assert isinstance(read([GET + b"X: " + b"a" * size + b"\r\n\r\n"]).error, LargeHead)
    assert isinstance(read([b"GET /" + b"a" * size]).error, LongAddress)
    assert isinstance(read([GET + b"X: y\r\n" * limits.HTTP_HEADER_FIELDS + b"\r\n"]).error, LargeHead)
    fitting = GET + b"X: y\r\n" * (limits.HTTP_HEADER_FIELDS - 1)
    assert read([fitting + b"\r\n"]).error is None
    long = GET + b"X: " + b"a" * (size - len(GET) - 10) + b"\r\n\r\n"
    assert len(one(long).headers["x"]) == size - len(GET) - 10


def test_fields_before_a_large_body_are_not_remembered() -> None:
    """They would lie among the objects that are made of it."""
    for size_bytes in (limits.JSON_PIECE_BYTES, limits.JSON_PIECE_BYTES + 1):
        fields = f"Host: remembered\r\nContent-Length: {size_bytes}\r\n"
        one(f"POST / HTTP/1.1\r\n{fields}\r\n".encode() + bytes(size_bytes))
        remembered = [known for known in http1._known if known.startswith(fields.encode())]
        assert len(remembered) == (size_bytes == limits.JSON_PIECE_BYTES)


def test_trailers_have_a_bound() -> None:
    trailer = b"T: " + b"x" * 1000 + b"\r\n"
    sent = [CHUNKED + b"0\r\n", *([trailer] * (limits.HTTP_HEADERS_BYTES // len(trailer) + 1))]
    assert isinstance(read(sent).error, BrokenRequest)


def test_one_request_is_read_at_a_time() -> None:
    reader = RequestReader()
    reader.feed((GET + b"\r\n") * 3 + b"\r\nGET /las")
    for waiting in (2, 1, 0):
        assert reader.read_head() is not None
        assert reader.waiting_bytes == waiting * (len(GET) + 2) + 10
    assert reader.read_head() is None
    reader.feed(b"t HTTP/1.1\r\n\r\n")
    head = reader.read_head()
    assert head is not None
    assert head.raw_path == "/last"
    assert head.fields.host_problem == "No Host"
    reader.feed(b"rest")
    assert reader.take_rest() == b"rest"
    assert reader.waiting_bytes == 0


@pytest.mark.parametrize(
    ("head", "closes"),
    [
        (GET, False),
        (GET + b"Connection: close\r\n", True),
        (GET + b"Connection: x, Close\r\n", True),
        (GET + b"Connection: x\r\nConnection: close\r\n", True),
        (b"GET / HTTP/1.0\r\n", True),
        (b"GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n", False),
    ],
)
def test_who_closes_the_connection(head: bytes, closes: bool) -> None:
    reader = RequestReader()
    reader.feed(head + b"\r\n")
    found = reader.read_head()
    assert found is not None
    assert found.closes == closes


def test_fields_of_one_name_are_one_list() -> None:
    assert one(GET + b"X: a\r\nY: b\r\nx: c\r\n\r\n").headers["x"] == "a, c"


@pytest.mark.parametrize(
    ("fields", "settings"),
    [
        (b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk", b"\0\x03\0\0\0d"),
        (b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: websocket, h2c\r\nHTTP2-Settings:", b""),
        (b"Connection: Upgrade\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk", None),
        (b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2\r\nHTTP2-Settings: AAMAAABk", None),
        (b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c", None),
        (b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: A\r\nHTTP2-Settings: B", None),
        (b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: A", None),
    ],
)
def test_an_upgrade_is_wanted_by_three_fields(fields: bytes, settings: bytes | None) -> None:
    reader = RequestReader()
    reader.feed(GET + fields + b"\r\n\r\n")
    head = reader.read_head()
    assert head is not None
    assert head.fields.h2_settings == settings


def test_a_value_of_an_answer_cannot_end_its_line() -> None:
    for value in ("a\r\nX: b", "a\nb", "a\rb"):
        with pytest.raises(ValueError, match="line break"):
            head_bytes(200, "text/plain", {"X-Test": value}, b"", False)


def test_lengths_and_chunks_of_answers() -> None:
    assert length_line(200, 5) == b"content-length: 5\r\n"
    assert length_line(204, 0) == length_line(304, 0) == b""
    assert chunk(b"x" * 16) == b"10\r\n" + b"x" * 16 + b"\r\n"
    assert chunk(b"") == b""


# Beside llhttp


class Peer:
    """What llhttp makes of the same bytes."""

    def __init__(self) -> None:
        self.reading = Reading()
        self._parser = httptools.HttpRequestParser(self)

    def read(self, pieces: list[bytes]) -> Reading:
        try:
            for piece in pieces:
                self._parser.feed_data(piece)
        except httptools.HttpParserError as error:
            self.reading.error = PaperwaspError(str(error))
        return self.reading

    def on_message_begin(self) -> None:
        self._url, self._headers, self._is_head = b"", dict[str, str](), True

    def on_url(self, url: bytes) -> None:
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._is_head:
            key, text = name.decode("latin-1").lower(), value.decode("latin-1").strip(" \t")
            self._headers[key] = f"{self._headers[key]}, {text}" if key in self._headers else text

    def on_headers_complete(self) -> None:
        self._is_head = False
        target = self._url.decode("latin-1").removesuffix("?")
        found = Found(self._parser.get_method().decode(), target, self._headers)
        self.reading.requests.append(found)

    def on_body(self, body: bytes) -> None:
        self.reading.requests[-1].body += body

    def on_message_complete(self) -> None:
        self.reading.requests[-1].is_whole = True


def cut(data: bytes, cuts: list[int]) -> list[bytes]:
    places = sorted({0, len(data), *(place % (len(data) + 1) for place in cuts)})
    return [data[start:end] for start, end in pairwise(places)]


NAMES = st.sampled_from(["X", "Accept", "content-type", "X-a.b"])
VALUES = st.text(st.characters(min_codepoint=33, max_codepoint=126), max_size=20)
BODIES = st.binary(max_size=60)


@st.composite
def requests(draw: st.DrawFn) -> bytes:
    """A request that is right, of one of the kinds that clients send."""
    path = "/" + draw(st.text(st.characters(min_codepoint=33, max_codepoint=126, exclude_characters="#"), max_size=20))
    fields = draw(st.lists(st.tuples(NAMES, VALUES), max_size=4))
    lines = "".join(f"{name}: {value}\r\n" for name, value in fields)
    body = draw(BODIES)
    kind = draw(st.sampled_from(["none", "counted", "chunked"]))
    method = "GET" if kind == "none" else draw(st.sampled_from(["POST", "PUT", "DELETE"]))
    head = f"{method} {path} HTTP/1.1\r\nHost: h\r\n{lines}".encode()
    if kind == "none":
        return head + b"\r\n"
    if kind == "counted":
        return head + b"Content-Length: %d\r\n\r\n%b" % (len(body), body)
    pieces = [piece for piece in cut(body, draw(st.lists(st.integers(0, 60), max_size=4))) if piece]
    return head + b"Transfer-Encoding: chunked\r\n\r\n" + b"".join(map(chunk, pieces)) + b"0\r\n\r\n"


@given(st.lists(requests(), min_size=1, max_size=4), st.lists(st.integers(0, 1 << 20), max_size=8))
def test_right_requests_are_read_as_llhttp_reads_them_however_they_are_cut(sent: list[bytes], cuts: list[int]) -> None:
    data = b"".join(sent)
    ours, theirs = read(cut(data, cuts)), Peer().read([data])
    assert ours.error is None
    assert theirs.error is None
    assert ours.requests == theirs.requests
    assert len(ours.requests) == len(sent)


def damaged(choices: random.Random) -> Iterator[bytes]:
    """Requests in which something is put in, taken out or repeated."""
    bases = [
        b"POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\nX: y\r\n\r\nhello" + GET + b"\r\n",
        CHUNKED + b"5\r\nhello\r\n3;x=y\r\nabc\r\n0\r\nT: u\r\n\r\n" + GET + b"\r\n",
        GET + b"Connection: close\r\n\r\n",
    ]
    parts = [b"\r", b"\n", b"\r\n", b" ", b"\t", b":", b"0", b"5", b"\0", b";", b",", b"\r\nContent-Length: 5"]
    parts += [b"\r\nTransfer-Encoding: chunked", b"+", b"-", b"_", b"x"]
    while True:
        data = bytearray(choices.choice(bases))
        for _ in range(choices.randint(1, 3)):
            at = choices.randrange(len(data))
            data[at : at + choices.choice((0, 0, 1, 2))] = choices.choice(parts)
        yield bytes(data)


def test_what_llhttp_refuses_is_refused_and_what_both_take_is_the_same() -> None:
    """We refuse more than llhttp does; of what we take, nothing may be read otherwise."""
    taken = 0
    for _, data in zip(range(5000), damaged(random.Random(chance.SEED)), strict=False):
        ours, theirs = read([data]), Peer().read([data])
        whole = [found for found in ours.requests if found.is_whole]
        if theirs.error is not None and "method" in str(theirs.error).lower():
            continue  # llhttp has a list of methods; here any token is one
        assert len(whole) <= len(theirs.requests), data
        if ours.error is None and theirs.error is None:
            assert _plain(whole) == _plain([found for found in theirs.requests if found.is_whole]), data
            taken += bool(whole)
    assert taken > 100


def _plain(requests: list[Found]) -> list[tuple[str, bytes]]:
    return [(found.method, found.body) for found in requests]
