"""The endpoints of a feed client and their connections, over HTTP/2 or HTTP/1.1, whichever the server chose."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from typing import Final, Protocol

from paperwasp.base.patterns import compile_later
from paperwasp.client.feeding.operations import Flight
from paperwasp.client.feeding.settings import Endpoint, FeedSettings
from paperwasp.core.http.http2 import Http2Error
from paperwasp.core.http.http2_client import ClientEvent, Http2Client

# HTTP/2 for a connection of the feed client: the compiled connection, with heads for the requests that it sends.


_MOST_HEADS: Final = 60
"""Headers that change with time make more heads. Beyond this number a connection is replaced: the kernel holds 64."""


class Http2Codec:
    """Requests to bytes, and bytes to events."""

    def __init__(self, endpoint: Endpoint, settings: FeedSettings) -> None:
        self._client = Http2Client()
        self._scheme = endpoint.scheme.encode()
        self._authority = endpoint.authority.encode()
        self._settings = settings
        self._heads: dict[tuple[str, bool, bool, tuple[tuple[str, str], ...]], int] = {}
        self.receive = self._client.receive
        self.take_output = self._client.take_output

    @property
    def room(self) -> int:
        """How many requests more may be sent now."""
        return self._client.room

    @property
    def is_leaving(self) -> bool:
        """Whether no more requests will be taken, so that the connection is to be replaced."""
        return self._client.is_leaving or len(self._heads) >= _MOST_HEADS

    def request(self, flight: Flight, headers: tuple[tuple[str, str], ...]) -> int:
        """Sends a request; gives its stream, or 0 where there is no room. Errors: ValueError for a broken header."""
        key = (flight.method, flight.is_gzip, bool(flight.body), headers)
        head = self._heads.get(key)
        if head is None:
            head = self._heads[key] = self._client.add_head(self._fields(*key))
        return self._client.request(head, flight.path.encode(), flight.body)

    def _fields(
        self, method: str, is_gzip: bool, has_body: bool, headers: tuple[tuple[str, str], ...]
    ) -> list[tuple[bytes, bytes]]:
        fields = [(b":method", method.encode()), (b":scheme", self._scheme), (b":authority", self._authority)]
        fields += [(name.encode(), value.encode("latin-1")) for name, value in headers]
        fields.append((b"accept", b"application/json"))
        if has_body:
            fields.append((b"content-type", b"application/json"))
        if is_gzip:
            fields.append((b"content-encoding", b"gzip"))
        return fields

    def give_up(self, stream: int) -> None:
        """Wants no answer to a request any more."""
        self._client.reset(stream, Http2Error.CANCEL)

    def end(self) -> list[ClientEvent]:
        """The connection was closed by the server: what that means to open requests."""
        return []


# HTTP/1.1 for a connection of the feed client: one request after the other, for servers without HTTP/2.


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


# One connection of the feed client: what is in flight on it, over the protocol that the server chose.


_MOST_UNREAD_BYTES: Final = 1 << 24
"""Of output that the server makes us send, by pings for instance, and does not read."""


class Listener(Protocol):
    """Told by a line of the outcomes of its requests."""

    def line_opened(self, line: Line) -> None: ...
    def line_closed(self, line: Line, reason: str) -> None: ...
    def answered(self, flight: Flight, status: int, body: bytes) -> None: ...
    def failed(self, flight: Flight, reason: str) -> None: ...
    def batch_ended(self) -> None:
        """All that has come at once was reported."""


class Line(asyncio.Protocol):
    """A connection. It takes requests from `line_opened` on."""

    def __init__(self, endpoint: Endpoint, settings: FeedSettings, listener: Listener) -> None:
        self.endpoint = endpoint
        self.flights: dict[int, Flight] = {}
        """By stream: what waits for its answer."""
        self.is_retired = False
        """It takes no more requests, and is closed behind the last answer."""
        self.has_answered = False
        self._settings = settings
        self._listener = listener
        self._transport: asyncio.Transport | None = None
        self._codec: Http2Codec | Http1Codec | None = None
        self._is_paused = False
        self._failure = "the connection was closed"

    @property
    def room(self) -> int:
        """How many requests more it takes now."""
        if self._codec is None or self._is_paused or self.is_retired:
            return 0
        return min(self._codec.room, self._settings.max_streams_per_connection - len(self.flights))

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        tls = transport.get_extra_info("ssl_object")
        is_http2 = tls is None or tls.selected_alpn_protocol() == "h2"
        self._codec = (Http2Codec if is_http2 else Http1Codec)(self.endpoint, self._settings)
        self._listener.line_opened(self)
        self.flush()

    def send(self, flight: Flight, headers: tuple[tuple[str, str], ...]) -> bool:
        """Puts a request into what `flush` sends. False: there is no room. Errors: ValueError for a broken header."""
        assert self._codec is not None
        stream = self._codec.request(flight, headers)
        if not stream:
            return False
        self.flights[stream] = flight
        return True

    def flush(self) -> None:
        """Sends what waits, and closes a retired connection that has nothing in flight."""
        if self._codec is None or self._transport is None or self._transport.is_closing():
            return
        while output := self._codec.take_output():
            self._transport.write(output)
            if self._is_paused:
                break  # the rest goes when the server has read
        if self._is_paused and self._transport.get_write_buffer_size() > _MOST_UNREAD_BYTES:
            self.abort("the server does not read")
        if (self.is_retired or self._codec.is_leaving) and not self.flights:
            self._transport.close()

    def data_received(self, data: bytes) -> None:
        if self._codec is not None:
            self._tell(self._codec.receive(data))

    def eof_received(self) -> bool:
        if self._codec is not None:
            self._tell(self._codec.end())
        return False

    def _tell(self, events: list[ClientEvent]) -> None:
        for event in events:
            if event[0] == "over":
                self.abort(event[2])
                break
            flight = self.flights.pop(event[1], None)
            if flight is None:
                continue
            if event[0] == "response":
                self.has_answered = True
                self._listener.answered(flight, event[2], event[3])
            else:
                self._listener.failed(flight, f"the server reset the request: {_name(event[2])}")
        if self._codec is not None and self._codec.is_leaving:
            self.is_retired = True
        self._listener.batch_ended()
        self.flush()

    def give_up_late(self, now: float) -> list[Flight]:
        """Takes the requests whose time is over off the line."""
        late = [(stream, flight) for stream, flight in self.flights.items() if flight.deadline <= now]
        for stream, _ in late:
            del self.flights[stream]
            if self._codec is not None:
                self._codec.give_up(stream)
        if late:
            self.flush()
        return [flight for _, flight in late]

    def retire(self) -> None:
        """Takes no more requests."""
        self.is_retired = True
        self.flush()

    def abort(self, reason: str) -> None:
        """Ends the connection now. What is in flight is reported as failed by `line_closed`."""
        self._failure = reason
        self.is_retired = True
        if self._transport is not None:
            if self._codec is not None and (output := self._codec.take_output()):
                self._transport.write(output)
            self._transport.abort()

    def pause_writing(self) -> None:
        self._is_paused = True

    def resume_writing(self) -> None:
        self._is_paused = False
        self.flush()
        self._listener.batch_ended()

    def connection_lost(self, exc: Exception | None) -> None:
        self._codec = None
        reason = f"the connection broke: {exc}" if exc is not None else self._failure
        self._listener.line_closed(self, reason)


def _name(code: int) -> str:
    return Http2Error(code).name if code in Http2Error.__members__.values() else str(code)


# The endpoints of a feed client and their connections: opened when there is something to send, closed when old.
#
# A request goes to the endpoint with the fewest in flight, and there to the connection whose turn it is: several
# requests in a row to one connection, since each connection that is written to costs a call of the system.


_CONNECT_SECONDS: Final = 10.0
_FIRST_WAIT_SECONDS: Final = 0.05
_LONGEST_WAIT_SECONDS: Final = 1.0
_SPREAD: Final = 0.1
"""The part of its life by which a connection may live shorter, so that not all are replaced at once."""


class ClusterListener(Listener, Protocol):
    """Told by a cluster, too, whether it can be reached."""

    def unreachable(self, reason: str) -> None:
        """No endpoint has a connection, and none could be made."""

    def may_connect(self) -> None:
        """A wait before the next attempt to connect is over."""


class _Site:
    """An endpoint and its connections."""

    def __init__(self, endpoint: Endpoint) -> None:
        self.endpoint = endpoint
        self.lines: list[Line] = []
        """Those that are open, in the order of their turns."""
        self.connecting = 0
        self.failures = 0
        """Connections that could not be made, or broke unused, since the last one that was answered."""
        self.is_waiting = False
        """Before the next attempt."""

    @property
    def in_flight(self) -> int:
        return sum(len(line.flights) for line in self.lines)


class Cluster:
    """All connections. On the event loop."""

    def __init__(self, settings: FeedSettings, listener: ClusterListener, loop: asyncio.AbstractEventLoop) -> None:
        self._settings = settings
        self._listener = listener
        self._loop = loop
        self._sites = [_Site(endpoint) for endpoint in settings.endpoints]
        self._tasks: set[asyncio.Task[None]] = set()
        self._is_closed = False
        self._gone: asyncio.Future[None] | None = None
        """Done when a closed cluster has no connections any more."""

    def next_line(self) -> Line | None:
        """A connection with room for a request, or None. Opens connections where some are missing."""
        for site in sorted(self._sites, key=lambda site: site.in_flight) if len(self._sites) > 1 else self._sites:
            self._connect_missing(site)
            for place, line in enumerate(site.lines):
                if line.room > 0:
                    site.lines.append(site.lines.pop(place))
                    return line
        return None

    def lines(self) -> list[Line]:
        """All open connections, retired ones too."""
        return [line for site in self._sites for line in site.lines]

    def flush(self) -> None:
        for line in self.lines():
            line.flush()

    def refresh(self) -> None:
        """Has all further requests go over connections that are made from now on."""
        for line in self.lines():
            line.retire()

    def close(self) -> None:
        """Ends all connections. What is in flight is reported as failed."""
        self._is_closed = True
        for task in self._tasks:
            task.cancel()
        for line in self.lines():
            line.abort("the client was closed")

    async def wait_until_closed(self) -> None:
        """Until all connections are gone, after `close`."""
        if self._tasks:
            await asyncio.wait(self._tasks)
        if self.lines():
            self._gone = self._loop.create_future()
            await self._gone

    def opened(self, line: Line) -> None:
        """A connection was made."""
        self._site_of(line).lines.append(line)
        if (seconds := self._settings.connection_time_to_live_seconds) is not None:
            self._loop.call_later(seconds * (1 - _SPREAD * random.random()), line.retire)
        if self._is_closed:
            line.abort("the client was closed")

    def closed(self, line: Line) -> None:
        """A connection is gone."""
        site = self._site_of(line)
        if line in site.lines:
            site.lines.remove(line)
        if line.has_answered:
            site.failures = 0
        else:
            self._wait(site)
        if self._gone is not None and not self._gone.done() and not self.lines():
            self._gone.set_result(None)

    def _site_of(self, line: Line) -> _Site:
        return next(site for site in self._sites if site.endpoint is line.endpoint)

    def _connect_missing(self, site: _Site) -> None:
        """Retired connections do not count: they are on their way out."""
        if self._is_closed or site.is_waiting:
            return
        open_lines = sum(1 for line in site.lines if not line.is_retired)
        for _ in range(self._settings.connections_per_endpoint - open_lines - site.connecting):
            site.connecting += 1
            task = self._loop.create_task(self._connect(site))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _connect(self, site: _Site) -> None:
        endpoint = site.endpoint
        make: Callable[[], Line] = lambda: Line(endpoint, self._settings, self._listener)  # noqa: E731
        tls = self._settings.tls if endpoint.is_secure else None
        try:
            async with asyncio.timeout(_CONNECT_SECONDS):
                await self._loop.create_connection(make, endpoint.host, endpoint.port, ssl=tls)
        except (OSError, TimeoutError, UnicodeError) as error:
            site.connecting -= 1
            self._connect_failed(site, f"no connection to {endpoint}: {error or 'it takes too long'}")
        else:
            site.connecting -= 1

    def _connect_failed(self, site: _Site, reason: str) -> None:
        if site.connecting > 0 or self._is_closed:
            return  # others of the same attempt may still succeed
        self._wait(site)
        if not any(site.lines or site.connecting for site in self._sites):
            self._listener.unreachable(reason)

    def _wait(self, site: _Site) -> None:
        """Makes no connection for a while: longer each time, until one is answered."""
        if site.is_waiting or self._is_closed:
            return
        site.is_waiting = True
        wait_seconds = min(_FIRST_WAIT_SECONDS * 2**site.failures, _LONGEST_WAIT_SECONDS)
        site.failures = min(site.failures + 1, 16)
        self._loop.call_later(wait_seconds, self._end_wait, site)

    def _end_wait(self, site: _Site) -> None:
        site.is_waiting = False
        if not self._is_closed:
            self._listener.may_connect()
