"""Visiting: GET for many documents, answered whole or as a stream.

    request → path and parameters → content cluster, chunk by chunk → JSON

The content cluster keeps nothing between chunks, and the container nothing between requests: a continuation says where
to go on, after a restart too. Streaming, the next chunk is read while one is sent, and no more: a client that reads
slowly, or goes away, costs nothing but two chunks.

Runs on the event loop and never blocks it.
Vespa: https://docs.vespa.ai/en/writing/visiting.html
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import aclosing, suppress
from enum import Enum
from typing import Final, Protocol

import orjson
from msgspec import Struct, structs

from paperwasp import limits
from paperwasp.base.env import Environment
from paperwasp.base.patterns import compile_later
from paperwasp.base.records import replace
from paperwasp.container.document.visit_parameters import Visit
from paperwasp.coordination.messages.documents import VisitedDocument, VisitResponse
from paperwasp.coordination.messenger import Messenger
from paperwasp.errors import InvalidInput, Overload, PaperwaspError, Timeout
from paperwasp.http.messages import Answer, Request, Response, StreamedResponse

_NANOS_PER_MS: Final = 1_000_000


class Visitor:
    """One request's part of a visit: asks for chunks, and knows where the visit is."""

    def __init__(self, visit: Visit, messenger: Messenger, environment: Environment) -> None:
        self.visit = visit
        self.token = visit.start.token
        """Where the last chunk ended."""
        self.is_done = False
        self.count = 0
        """Documents that were visited."""
        self.progress = 0.0
        self._chunks = 0
        self._messenger = messenger
        self._environment = environment
        began_ns = environment.monotonic_ns()
        self.deadline_ns = began_ns + int(visit.visit_ms * _NANOS_PER_MS)
        self._doom_ns = began_ns + int(visit.timeout_ms * _NANOS_PER_MS)

    @property
    def has_moved(self) -> bool:
        """Whether there is any progress."""
        return self._chunks > 0

    @property
    def is_late(self) -> bool:
        """Whether the time for the visit is over. A little is left for the answer."""
        return self._environment.monotonic_ns() >= self.deadline_ns

    @property
    def left_seconds(self) -> float:
        """The seconds that are left for the whole request; 0: its time is over."""
        return max(0.0, (self._doom_ns - self._environment.monotonic_ns()) / 1e9)

    @property
    def continuation(self) -> str | None:
        """For the next request; None: the visit is at its end."""
        return None if self.is_done else str(replace(self.visit.start, token=self.token))

    def end(self, message: str | None = None) -> VisitEnd:
        """How the part ends, now."""
        trace: tuple[str, ...] = ()
        if self.visit.trace_level > 0:
            cluster = self.visit.cluster.id
            trace = (f"Visited {self.count} documents in {self._chunks} chunks of content cluster '{cluster}'",)
        return VisitEnd(self.count, self.continuation, self.progress, message, trace)

    async def next(self, documents: int = limits.VISIT_DOCUMENTS) -> tuple[VisitedDocument, ...]:
        """The next chunk. Errors: as VisitRequest; Overload; Timeout."""
        return self._take(await self._ask(self.token, documents))

    async def chunks(self) -> AsyncGenerator[tuple[VisitedDocument, ...], None]:
        """All chunks until the end, or until the time is over; the next is requested before one is given.

        Errors: as `next`; but after the first chunk, an overloaded cluster is asked again.
        """
        asked: asyncio.Future[VisitResponse] | None = asyncio.ensure_future(self._ask(self.token))
        try:
            while asked is not None:
                response, asked = await asked, None
                if response.token is not None:
                    asked = asyncio.ensure_future(self._ask_again(response.token))
                yield self._take(response)
                if self.is_late:
                    return
        finally:
            if asked is not None:
                asked.cancel()
                with suppress(asyncio.CancelledError, PaperwaspError):
                    await asked

    def _take(self, response: VisitResponse) -> tuple[VisitedDocument, ...]:
        self._chunks += 1
        self.is_done = response.token is None
        self.token = response.token or self.token
        self.progress = response.progress
        self.count += len(response.documents)
        return response.documents

    async def _ask(self, token: bytes, documents: int = limits.VISIT_DOCUMENTS) -> VisitResponse:
        request = structs.replace(
            self.visit.documents,
            token=token,
            documents=documents,
            size_bytes=limits.VISIT_BYTES,
            deadline_ns=self.deadline_ns,
        )
        try:
            async with asyncio.timeout(self.left_seconds):
                response = await self._messenger.request(self.visit.cluster.address, request)
        except TimeoutError:
            raise Timeout(f"Timeout after {self.visit.timeout_ms:.0f}ms") from None
        assert isinstance(response, VisitResponse)
        return response

    async def _ask_again(self, token: bytes) -> VisitResponse:
        while True:
            try:
                return await self._ask(token)
            except Overload:
                if self.is_late:
                    raise
            await asyncio.sleep(limits.VISIT_RETRY_SECONDS)


async def answer_visit(request: Request, visit: Visit, messenger: Messenger, environment: Environment) -> Answer:
    """The answer to a GET for many documents, which asks for `visit`. Errors: as VisitRequest; Overload; Timeout."""
    visitor = Visitor(visit, messenger, environment)
    if not visit.stream:
        return await _whole(request, visitor)
    form = stream_form(request)
    chunks = _stream(visitor, rendering(form, request.raw_path))
    first = await anext(chunks)  # an error at the beginning is answered by the status
    return StreamedResponse(200, _Begun(first, chunks), form.content_type)


async def _whole(request: Request, visitor: Visitor) -> Response:
    written = ObjectRendering(request.raw_path)
    pieces = [written.start()]
    size_bytes, status, message = 0, 200, None
    try:
        while not visitor.is_done and not _is_enough(visitor, size_bytes):
            pieces.append(written.documents(await visitor.next(_documents(visitor))))
            size_bytes += len(pieces[-1])
    except Timeout:
        if not visitor.has_moved:
            status, message = 504, f"No buckets visited within timeout of {visitor.visit.visit_ms:.0f}ms"
    except PaperwaspError as error:
        if not visitor.has_moved:
            raise
        if not isinstance(error, Overload):
            status, message = 500, error.message
    end = visitor.end(message)
    pieces.append(written.end(end if status == 200 else replace(end, continuation=None)))
    return Response(status, b"".join(pieces), JSON)


def _is_enough(visitor: Visitor, size_bytes: int) -> bool:
    """Whether there is an answer: at least one document, where the request does not say how many it wants."""
    wanted = min(visitor.visit.wanted or 1, limits.VISIT_ANSWER_DOCUMENTS)
    return visitor.count >= wanted or size_bytes >= limits.VISIT_ANSWER_BYTES or (visitor.has_moved and visitor.is_late)


def _documents(visitor: Visitor) -> int:
    """How many to ask for next."""
    wanted = visitor.visit.wanted
    return limits.VISIT_DOCUMENTS if wanted is None else min(wanted - visitor.count, limits.VISIT_DOCUMENTS)


async def _stream(visitor: Visitor, written: Rendering) -> AsyncGenerator[bytes, None]:
    """The pieces of the answer. Errors: only those of the first chunk; later ones stand at the end of the answer."""
    message = None
    try:
        async with aclosing(visitor.chunks()) as chunks:
            head = written.start()
            async for documents in chunks:
                continuation = visitor.continuation
                place = b"" if continuation is None else written.place(continuation, visitor.progress)
                yield head + written.documents(documents) + place
                head = b""
    except PaperwaspError as error:
        if not visitor.has_moved:
            raise
        message = None if isinstance(error, Timeout | Overload) else error.message
    yield written.end(visitor.end(message))


class _Begun:
    """A stream whose first piece has been looked at already."""

    def __init__(self, first: bytes, rest: AsyncGenerator[bytes, None]) -> None:
        self._first: bytes | None = first
        self._rest = rest

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        if self._first is not None:
            first, self._first = self._first, None
            return first
        return await anext(self._rest)

    async def aclose(self) -> None:
        """Ends the visit."""
        await self._rest.aclose()


# The answer to a visit: one JSON object, or lines of JSON. Stored documents are JSON already and are not parsed.
#
# One object, whether it is streamed or not:
#
#     {"pathId", "documents": [{"id", "fields"} or {"remove"}, …], "documentCount", "trace"?, "message"?,
# "continuation"?}
#
# Lines: `{"put", "id", "fields"}` or `{"remove"}` for each document, and where the client asked for them, lines with
# `continuation`, `sessionTrace`, `message` and `sessionStats`. Without those, a visit that is not at its end says so
# all the same.
#
# Vespa: https://docs.vespa.ai/en/reference/api/document-v1.html#response-formats


JSON: Final = "application/json; charset=UTF-8"
Trace = Sequence[str]


class VisitEnd(Struct, frozen=True):
    """How a request's part of a visit ended. `continuation` None: there is no more; `message`: what went wrong."""

    count: int
    continuation: str | None = None
    progress: float = 1.0
    message: str | None = None
    trace: Trace = ()


class Rendering(Protocol):
    """How a visit is written, piece by piece."""

    def start(self) -> bytes: ...

    def documents(self, documents: Sequence[VisitedDocument]) -> bytes: ...

    def place(self, continuation: str, progress: float) -> bytes:
        """Said between two chunks."""

    def end(self, end: VisitEnd) -> bytes: ...


class ObjectRendering:
    """One JSON object."""

    def __init__(self, raw_path: str) -> None:
        self._raw_path = raw_path
        self._is_first = True

    def start(self) -> bytes:
        return orjson.dumps({"pathId": self._raw_path})[:-1] + b',"documents":['

    def documents(self, documents: Sequence[VisitedDocument]) -> bytes:
        if not documents:
            return b""
        dumps = orjson.dumps
        pieces = [
            b'{"remove":%b}' % dumps(id) if fields is None else b'{"id":%b,"fields":%b}' % (dumps(id), fields)
            for id, fields, _ in documents
        ]
        separator, self._is_first = b"" if self._is_first else b",", False
        return separator + b",".join(pieces)

    def place(self, continuation: str, progress: float) -> bytes:
        return b""

    def end(self, end: VisitEnd) -> bytes:
        return b"]," + orjson.dumps(end_members(end))[1:]


def end_members(end: VisitEnd) -> dict[str, object]:
    """The members that follow the documents, or the path, in their order."""
    members: dict[str, object] = {"documentCount": end.count}
    if end.trace:
        members["trace"] = [{"message": message} for message in end.trace]
    if end.message is not None:
        members["message"] = end.message
    if end.continuation is not None:
        members["continuation"] = end.continuation
    return members


class LinesRendering:
    """A line of JSON for each document, and if asked for, of control."""

    def __init__(self, is_controlled: bool) -> None:
        self._is_controlled = is_controlled

    def start(self) -> bytes:
        return b""

    def documents(self, documents: Sequence[VisitedDocument]) -> bytes:
        dumps = orjson.dumps
        return b"".join(
            [
                b'{"remove":%b}\n' % dumps(id)
                if fields is None
                else b'{"put":%b,"id":%b,"fields":%b}\n' % (quoted := dumps(id), quoted, fields)
                for id, fields, _ in documents
            ]
        )

    def place(self, continuation: str, progress: float) -> bytes:
        return _line({"continuation": _continuation(continuation, progress)}) if self._is_controlled else b""

    def end(self, end: VisitEnd) -> bytes:
        lines = b""
        if end.trace and self._is_controlled:
            lines += _line({"sessionTrace": {"trace": [{"message": message} for message in end.trace]}})
        if end.message is not None:
            lines += _line({"message": {"text": end.message, "severity": "error"}})
        if self._is_controlled:
            lines += _line({"sessionStats": {"documentCount": end.count}})
        if self._is_controlled or end.continuation is not None:
            lines += _line({"continuation": _continuation(end.continuation, end.progress)})
        return lines


def rendering(form: StreamForm, raw_path: str) -> Rendering:
    """The rendering of a streamed visit."""
    if form is StreamForm.OBJECT:
        return ObjectRendering(raw_path)
    return LinesRendering(form is StreamForm.CONTROLLED_LINES)


def _continuation(continuation: str | None, progress: float) -> dict[str, object]:
    if continuation is None:
        return {"percentFinished": 100.0}
    return {"token": continuation, "percentFinished": round(100 * progress, 2)}


def _line(content: object) -> bytes:
    return orjson.dumps(content, option=orjson.OPT_APPEND_NEWLINE)


# The Accept header, and the form in which a visit is streamed to who sends it.
#
# Vespa: https://docs.vespa.ai/en/reference/api/document-v1.html#accept
# Differs: without an Accept header, and where anything is accepted, the answer is JSON Lines of documents alone.


_LARGEST: Final = 4096
_TOKEN: Final = r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+"
_QUOTED: Final = r'"(?:[^"\\]|\\.)*"'
_RANGE: Final = compile_later(rf"({_TOKEN})/({_TOKEN})((?:[ \t]*;[ \t]*{_TOKEN}=(?:{_TOKEN}|{_QUOTED}))*)[ \t]*")
_PARAMETER: Final = compile_later(rf";[ \t]*({_TOKEN})=({_TOKEN}|{_QUOTED})")
_QUALITY: Final = compile_later(r"0(?:\.[0-9]{0,3})?|1(?:\.0{0,3})?")
_SEPARATORS: Final = " \t,"


class StreamForm(Enum):
    """How the documents of a streamed visit are written."""

    OBJECT = "one JSON object"
    LINES = "a line of JSON for each document"
    CONTROLLED_LINES = "the same, and lines that say how far the visit is"

    @property
    def content_type(self) -> str:
        return f"application/{'json' if self is StreamForm.OBJECT else 'jsonl'}; charset=UTF-8"


def media_ranges(header: str) -> Mapping[str, float]:
    """Media range in lower case → quality; of equal ones the best. Errors: InvalidInput."""
    if len(header) > _LARGEST:
        raise InvalidInput(f"The Accept header has more than {_LARGEST} characters")
    found: dict[str, float] = {}
    place = _skip(header, 0)
    while place < len(header):
        match = _RANGE.match(header, place)
        if match is None or (match.end() < len(header) and header[match.end()] != ","):
            raise InvalidInput(f"Accept header could not be parsed at position {place}: '{header}'")
        name = f"{match[1]}/{match[2]}".lower()
        found[name] = max(found.get(name, 0.0), _quality(match[3], header))
        place = _skip(header, match.end())
    return found


def _skip(header: str, place: int) -> int:
    while place < len(header) and header[place] in _SEPARATORS:
        place += 1
    return place


def _quality(parameters: str, header: str) -> float:
    quality = "1"
    for name, value in _PARAMETER.findall(parameters):
        if name.lower() == "q":
            quality = value
    if _QUALITY.fullmatch(quality) is None:
        raise InvalidInput(f"Accept header has a bad quality '{quality}': '{header}'")
    return float(quality)


def stream_form(request: Request) -> StreamForm:
    """The form that the client wants, or can read. Errors: InvalidInput for an Accept header that is none."""
    accepted = media_ranges(request.header("accept"))
    lines, whole = accepted.get("application/jsonl", 0.0), accepted.get("application/json", 0.0)
    if lines > 0 and lines >= max(accepted.values()):
        return StreamForm.CONTROLLED_LINES
    if whole > 0 or (accepted and not accepted.keys() & {"*/*", "application/*"}):
        return StreamForm.OBJECT
    # pyvespa accepts anything, and reads one object.
    return StreamForm.OBJECT if request.header("user-agent").startswith("pyvespa/") else StreamForm.LINES
