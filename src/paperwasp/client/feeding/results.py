"""What an answer of the document API means to the feed client.

200              success
412              the condition did not hold
502, 504, 507    ResultError: the service says that the operation failed
all others       FeedError: no answer to the operation
"""

from __future__ import annotations

import enum
from typing import Any, Final, NamedTuple

import orjson

from paperwasp.document.ids import DocumentId
from paperwasp.errors import FeedError, ResultError, ResultParseError

_SHOWN_BYTES: Final = 500


class Outcome(enum.Enum):
    """How an operation ended that has ended as it should. The value is Vespa's name."""

    SUCCESS = "success"
    CONDITION_NOT_MET = "conditionNotMet"


class Result(NamedTuple):
    """The result of an operation."""

    document_id: DocumentId
    outcome: Outcome
    message: str | None = None
    trace: list[Any] | None = None
    """What the service tells of its work, with a `tracelevel` above 0."""


_OUTCOMES: Final = {200: Outcome.SUCCESS, 412: Outcome.CONDITION_NOT_MET}
_FAILURES: Final = frozenset((502, 504, 507))


def result_of(document_id: DocumentId, request: str, status: int, body: bytes) -> Result:
    """The result that an answer stands for. `request` names the request. Errors: FeedError and those below it."""
    message, trace = _read(document_id, status, body)
    outcome = _OUTCOMES.get(status)
    if outcome is not None:
        return Result(document_id, outcome, message, trace)
    if status in _FAILURES:
        raise ResultError(message or f"status {status}", document_id.text, trace)
    raise FeedError(f"status {status} of {request}: {message or _shown(body)}", document_id.text)


def _read(document_id: DocumentId, status: int, body: bytes) -> tuple[str | None, list[Any] | None]:
    try:
        content = orjson.loads(body)
    except orjson.JSONDecodeError:
        content = None
    if not isinstance(content, dict):
        raise ResultParseError(
            f"status {status} with a body that is not a JSON object: {_shown(body)}", document_id.text
        )
    message, trace = content.get("message"), content.get("trace")
    if trace is not None and not isinstance(trace, list):
        raise ResultParseError(f"status {status} with a trace that is not a list: {_shown(body)}", document_id.text)
    return (message if isinstance(message, str) else None), trace


def message_of(body: bytes) -> str:
    """The message of an answer, or all of it where it has none."""
    try:
        content = orjson.loads(body)
    except orjson.JSONDecodeError:
        content = None
    message = content.get("message") if isinstance(content, dict) else None
    return message if isinstance(message, str) else _shown(body)


def _shown(body: bytes) -> str:
    text = body[:_SHOWN_BYTES].decode(errors="replace")
    return f"'{text}'" + (" …" if len(body) > _SHOWN_BYTES else "")
