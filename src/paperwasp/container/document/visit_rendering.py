"""The answer to a visit: one JSON object, or lines of JSON. Stored documents are JSON already and are not parsed.

One object, whether it is streamed or not:

    {"pathId", "documents": [{"id", "fields"} or {"remove"}, …], "documentCount", "trace"?, "message"?,
"continuation"?}

Lines: `{"put", "id", "fields"}` or `{"remove"}` for each document, and where the client asked for them, lines with
`continuation`, `sessionTrace`, `message` and `sessionStats`. Without those, a visit that is not at its end says so
all the same.

Vespa: https://docs.vespa.ai/en/reference/api/document-v1.html#response-formats
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Final, Protocol

import orjson
from msgspec import Struct

from paperwasp.base.patterns import compile_later
from paperwasp.coordination.messages.documents import VisitedDocument
from paperwasp.errors import InvalidInput
from paperwasp.http.messages import Request

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
