"""Operations and results of the feed client, and how the caller's values become the one and the other.

Vespa: https://docs.vespa.ai/en/reference/api/document-v1.html
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final, NamedTuple
from urllib.parse import quote, urlencode

import orjson

from paperwasp.base.patterns import compile_later
from paperwasp.document.ids import DocumentId
from paperwasp.errors import FeedError, InvalidInput, ResultError, ResultParseError

MAX_TRACE_LEVEL: Final = 9
_PLAIN: Final = compile_later(r"[A-Za-z0-9._~-]+")


class OperationType(enum.Enum):
    """Put, update or remove. The value is how a feed file names it."""

    PUT = "put"
    UPDATE = "update"
    REMOVE = "remove"


METHODS: Final = {OperationType.PUT: "POST", OperationType.UPDATE: "PUT", OperationType.REMOVE: "DELETE"}


class OperationParameters(NamedTuple):
    """Parameters of one operation. Errors of values that the document API does not have come from `check`."""

    create_if_non_existent: bool = False
    """Whether an update of a document that is not there makes one, and a put with a condition as well."""
    timeout_seconds: float | None = None
    """For the service, which is sent it; the client waits a little longer. None: the service's own, and 15 minutes."""
    route: str | None = None
    tracelevel: int | None = None
    """From 0 to 9: how much the answer tells of what was done."""
    test_and_set_condition: str | None = None
    """A document selection: the operation is done only if the document fits it."""

    def check(self) -> None:
        """Errors: InvalidInput naming the value that cannot be."""
        if self.tracelevel is not None and not 0 <= self.tracelevel <= MAX_TRACE_LEVEL:
            raise InvalidInput(f"tracelevel is from 0 to {MAX_TRACE_LEVEL}, not {self.tracelevel}")
        if self.timeout_seconds is not None and not self.timeout_seconds > 0:
            raise InvalidInput(f"timeout_seconds is more than 0, not {self.timeout_seconds}")

    def query(self, is_dry: bool = False) -> str:
        """The query string of a request, with its question mark; empty where nothing is set."""
        fields = {
            "create": "true" if self.create_if_non_existent else None,
            "condition": self.test_and_set_condition,
            "timeout": None if self.timeout_seconds is None else f"{max(1, round(self.timeout_seconds * 1000))}ms",
            "route": self.route,
            "tracelevel": self.tracelevel,
            "dryRun": "true" if is_dry else None,
        }
        given = {name: value for name, value in fields.items() if value is not None}
        return f"?{urlencode(given, quote_via=quote)}" if given else ""


NO_PARAMETERS: Final = OperationParameters()


class FeedOperation(NamedTuple):
    """One operation, ready to be sent."""

    kind: OperationType
    document_id: DocumentId
    body: bytes | None = None
    """The JSON object with the member `fields`; None for a remove."""
    parameters: OperationParameters = NO_PARAMETERS

    def path(self, is_dry: bool = False) -> str:
        """The path and query of its request."""
        path = document_path(self.document_id)
        return path if self.parameters is NO_PARAMETERS and not is_dry else path + self.parameters.query(is_dry)


def document_path(document_id: DocumentId) -> str:
    """The path of a document in the document API."""
    start = _start(document_id.namespace, document_id.document_type)
    user = document_id.user_specified
    last = user if _PLAIN.fullmatch(user) else quote(user, safe="")
    if document_id.number is not None:
        return f"{start}number/{document_id.number}/{last}"
    if document_id.group is not None:
        return f"{start}group/{quote(document_id.group, safe='')}/{last}"
    return f"{start}docid/{last}"


@lru_cache(1024)
def _start(namespace: str, document_type: str) -> str:
    return f"/document/v1/{quote(namespace, safe='')}/{quote(document_type, safe='')}/"


# One operation on its way: the request that it is sent as, and what has come of it so far.


class Flight:
    """An operation from when it is accepted to when it is done. Used by one thread at a time."""

    __slots__ = (
        "attempts",
        "body",
        "deadline",
        "done",
        "error",
        "id_text",
        "is_aborted",
        "is_gzip",
        "is_timed_out",
        "kind",
        "method",
        "next",
        "path",
        "response",
        "sent_at",
    )

    def __init__(
        self,
        kind: OperationType,
        method: str,
        path: str,
        body: bytes,
        is_gzip: bool,
        id_text: str,
        deadline: float,
        done: Callable[[Flight], None],
    ) -> None:
        self.kind = kind
        self.method = method
        self.path = path
        self.body = body
        self.is_gzip = is_gzip
        self.id_text = id_text
        """Of the document: operations with one id are done in their order."""
        self.deadline = deadline
        """On the event loop's clock."""
        self.done = done
        """Called once, on the event loop, when `response` or `error` is what came of the operation."""
        self.attempts = 0
        """How often it has failed."""
        self.response: tuple[int, bytes] | None = None
        """Status and body of the last answer, where the last attempt was answered."""
        self.error: str | None = None
        """Why the last attempt failed, where it was not answered."""
        self.is_timed_out = False
        self.is_aborted = False
        """The client was closed, or its circuit breaker opened."""
        self.sent_at = 0.0
        self.next: Flight | None = None
        """The operation that waits for this one, since it is for the same document."""

    def request_line(self) -> str:
        return f"{self.method} {self.path}"


# Results: what an answer of the document API means to the feed client.
#
#     200              success
#     412              the condition did not hold
#     502, 504, 507    ResultError: the service says that the operation failed
#     all others       FeedError: no answer to the operation


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
    """The trace of the service, with a `tracelevel` above 0."""


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
