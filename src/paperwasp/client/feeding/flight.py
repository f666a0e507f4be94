"""One operation on its way: the request that it is sent as, and what has come of it so far."""

from __future__ import annotations

from collections.abc import Callable

from paperwasp.client.feeding.operations import OperationType


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
