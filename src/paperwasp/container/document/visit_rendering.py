"""The answer to a visit: one JSON object, or lines of JSON. Stored documents are JSON already and are not parsed.

One object, whether it is streamed or not:

    {"pathId", "documents": [{"id", "fields"} or {"remove"}, …], "documentCount", "trace"?, "message"?, "continuation"?}

Lines: `{"put", "id", "fields"}` or `{"remove"}` for each document, and where the client asked for them, lines with
`continuation`, `sessionTrace`, `message` and `sessionStats`. Without those, a visit that is not at its end says so all
the same.

Vespa: https://docs.vespa.ai/en/reference/api/document-v1.html#response-formats
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol

import orjson

from paperwasp.base.records import dataclass
from paperwasp.cluster.messages.documents import VisitedDocument
from paperwasp.container.accept import StreamForm

JSON: Final = "application/json; charset=UTF-8"
Trace = Sequence[str]


@dataclass(frozen=True, slots=True)
class VisitEnd:
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
        return _line({"continuation": _place(continuation, progress)}) if self._is_controlled else b""

    def end(self, end: VisitEnd) -> bytes:
        lines = b""
        if end.trace and self._is_controlled:
            lines += _line({"sessionTrace": {"trace": [{"message": message} for message in end.trace]}})
        if end.message is not None:
            lines += _line({"message": {"text": end.message, "severity": "error"}})
        if self._is_controlled:
            lines += _line({"sessionStats": {"documentCount": end.count}})
        if self._is_controlled or end.continuation is not None:
            lines += _line({"continuation": _place(end.continuation, end.progress)})
        return lines


def rendering(form: StreamForm, raw_path: str) -> Rendering:
    """The rendering of a streamed visit."""
    if form is StreamForm.OBJECT:
        return ObjectRendering(raw_path)
    return LinesRendering(form is StreamForm.CONTROLLED_LINES)


def _place(continuation: str | None, progress: float) -> dict[str, object]:
    if continuation is None:
        return {"percentFinished": 100.0}
    return {"token": continuation, "percentFinished": round(100 * progress, 2)}


def _line(content: object) -> bytes:
    return orjson.dumps(content, option=orjson.OPT_APPEND_NEWLINE)
