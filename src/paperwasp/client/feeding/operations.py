"""What the feed client sends: operations, their parameters, and the requests of the document API that they become.

Vespa: https://docs.vespa.ai/en/reference/api/document-v1.html
"""

from __future__ import annotations

import enum
from functools import lru_cache
from typing import Final, NamedTuple
from urllib.parse import quote, urlencode

from paperwasp.base.patterns import compile_later
from paperwasp.document.ids import DocumentId
from paperwasp.errors import InvalidInput

MAX_TRACE_LEVEL: Final = 9
_PLAIN: Final = compile_later(r"[A-Za-z0-9._~-]+")


class OperationType(enum.Enum):
    """What is done to a document. The value is how a feed file names it."""

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
