"""Sends the operations of files to a service, by the feed client."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from http import HTTPStatus
from typing import Final, NamedTuple, Protocol

import orjson

from paperwasp.base.patterns import compile_later
from paperwasp.base.records import dataclass
from paperwasp.client import (
    FeedClient,
    FeedOperation,
    FeedStatistics,
    OperationParameters,
    OperationType,
    Outcome,
    Result,
)
from paperwasp.client.access import ANYBODY, Access
from paperwasp.client.connection import Connection, Unreachable
from paperwasp.client.feeding.operations import NO_PARAMETERS, document_path
from paperwasp.client.feeding.settings import FeedOptions
from paperwasp.client.sources.operations import SourceOperation
from paperwasp.document.ids import DocumentId
from paperwasp.errors import FeedError, InvalidInput, PaperwaspError

_ANSWERED: Final = "answered the handshake"
_OF_TYPE: Final = compile_later(r"of type '(byte|int|long)'")
"""What a service says of a text that is none of the field's whole numbers."""
_TYPES: Final = {kind.value: kind for kind in OperationType}


@dataclass(frozen=True, slots=True)
class SendOptions:
    """How operations are sent."""

    url: str
    access: Access = ANYBODY
    connections: int = 8
    streams: int = 128
    compression: str = "auto"
    timeout_seconds: float | None = None
    route: str | None = None
    trace: int | None = None
    condition: str | None = None
    """Of operations that bring none."""
    create: bool = False
    """Of all operations."""

    def parameters(self, condition: str | None, create: bool) -> OperationParameters:
        """The parameters of an operation that has this condition, or this `create`, of its own."""
        found = OperationParameters(
            create or self.create, self.timeout_seconds, self.route, self.trace, condition or self.condition
        )
        return NO_PARAMETERS if found == NO_PARAMETERS else found


class Sent(NamedTuple):
    """What came of one operation. `error` is None where it was done, or had a condition that did not hold."""

    error: str | None
    is_met: bool = True
    trace: object = None


Done = Callable[[SourceOperation, Sent], None]
"""Called once for each operation, by any thread."""


class Sender(Protocol):
    """What a feed needs of a client."""

    def send(self, operation: SourceOperation, done: Done) -> None:
        """Sends an operation; waits while as many as may be are under way."""

    def type_of(self, document_id: DocumentId, field: str) -> str | None:
        """The type of a field of whole numbers; "" of another field, None where the service does not say it."""

    def statistics(self) -> FeedStatistics: ...

    def close(self, graceful: bool = True) -> None:
        """Returns when all operations are done, or are given up."""


class ClientSender:
    """Sends by a feed client. Operations of one document are done in their order."""

    def __init__(self, options: SendOptions) -> None:
        """Connects. Errors: Unreachable, InvalidInput."""
        self._options = options
        self._usual = options.parameters(None, False)
        self._usual.check()
        try:
            self._client = FeedClient(options.url, **_client_options(options))
        except FeedError as error:
            raise _refusal(options.url, error) from None

    def send(self, operation: SourceOperation, done: Done) -> None:
        body = None if operation.fields is None else b'{"fields":' + operation.fields + b"}"
        parameters = self._usual
        if operation.condition is not None or operation.create:
            parameters = self._options.parameters(operation.condition, operation.create)
        if operation.kind == "remove" and parameters.create_if_non_existent:
            parameters = parameters._replace(create_if_non_existent=False)
        ready = FeedOperation(_TYPES[operation.kind], operation.document_id, body, parameters)
        self._client.submit(ready).add_done_callback(lambda future: done(operation, _sent(future)))

    def type_of(self, document_id: DocumentId, field: str) -> str | None:
        # No interface of Vespa's containers tells types. An update that nothing is changed by is read all the same.
        connection = Connection(self._options.url, access=self._options.access)
        body = orjson.dumps({"fields": {field: {"assign": "0.5"}}})
        try:
            status, content = connection.request("PUT", f"{document_path(document_id)}?condition=false", body)
        except Unreachable:
            return None
        finally:
            connection.close()
        refused = _OF_TYPE.search(content.decode(errors="replace")) if status == HTTPStatus.BAD_REQUEST else None
        if refused is not None:
            return refused[1]
        return "" if status in (HTTPStatus.OK, HTTPStatus.PRECONDITION_FAILED) else None

    def statistics(self) -> FeedStatistics:
        return self._client.statistics()

    def close(self, graceful: bool = True) -> None:
        self._client.close(graceful)


def _refusal(url: str, error: FeedError) -> PaperwaspError:
    """What is wrong where no feed can begin: nobody answers, or the service wants nothing of us."""
    if _ANSWERED in error.message:
        return InvalidInput(f"{url} takes no documents: {error.message}")
    return Unreachable(f"No answer from {url}: {error.message}. Is `paperwasp serve` running?")


def _sent(future: Future[Result]) -> Sent:
    try:
        result = future.result()
    except FeedError as error:
        return Sent(error.bare_message)
    return Sent(None, result.outcome is Outcome.SUCCESS, result.trace)


def _client_options(options: SendOptions) -> FeedOptions:
    found: FeedOptions = {
        "connections_per_endpoint": options.connections,
        "max_streams_per_connection": options.streams,
        "compression": options.compression,
        "headers": dict(options.access.headers),
    }
    if options.access.token is not None:
        found["token"] = options.access.token
    if options.url.startswith("https:"):
        found["ssl_context"] = options.access.make_tls()
    return found
