"""From what a caller gives to what the engine sends, and from what came of it to a result."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import deflate
import orjson

from paperwasp.client.feeding.operations import (
    METHODS,
    NO_PARAMETERS,
    FeedOperation,
    Flight,
    OperationParameters,
    OperationType,
    Result,
    message_of,
    result_of,
)
from paperwasp.client.feeding.settings import FeedSettings
from paperwasp.document.ids import DocumentId
from paperwasp.errors import FeedError, InvalidInput, OperationAborted

_LONGEST_SECONDS: Final = 900.0
"""How long an operation may take that has no timeout of its own."""
_EXTRA_PART: Final = 1.1
_EXTRA_SECONDS: Final = 1.0
"""The client waits longer than the timeout that it tells the service, by this part and these seconds."""
_GZIP_LEVEL: Final = 1
_HANDSHAKE: Final = "/document/v1/feeder/handshake/docid/dummy?dryRun=true"
_HANDSHAKE_SECONDS: Final = 20.0
_OLD_SERVER: Final = "Could not read document, no document?"
"""The message of servers that do not know `dryRun`, by which they say that all else is well."""

Document = Mapping[str, Any] | str | bytes
"""A body for the document API: an object with the member `fields`, or its JSON."""


def make_operation(
    kind: OperationType,
    document_id: DocumentId | str,
    document: Document | None,
    parameters: OperationParameters = NO_PARAMETERS,
) -> FeedOperation:
    """An operation that is ready to be sent. Errors: InvalidInput for what cannot be one."""
    parameters.check()
    parsed = DocumentId.parse(document_id) if isinstance(document_id, str) else document_id
    return FeedOperation(kind, parsed, None if document is None else _body(document), parameters)


def _body(document: Document) -> bytes:
    if isinstance(document, bytes):
        return document
    if isinstance(document, str):
        return document.encode()
    if "fields" not in document:
        raise InvalidInput('expected an object with the member "fields"')
    try:
        return orjson.dumps(document, option=orjson.OPT_SERIALIZE_NUMPY)
    except TypeError as error:
        raise InvalidInput(f"the document is not JSON: {error}") from None


def make_flight(operation: FeedOperation, settings: FeedSettings, now: float, done: Callable[[Flight], None]) -> Flight:
    """The request of an operation. `now` is the time of the event loop's clock."""
    kind, document_id, body, parameters = operation
    body = body or b""
    is_gzip = settings.compresses(len(body))
    if is_gzip:
        body = bytes(deflate.gzip_compress(body, _GZIP_LEVEL))
    timeout = parameters.timeout_seconds
    seconds = _LONGEST_SECONDS if timeout is None else timeout * _EXTRA_PART + _EXTRA_SECONDS
    path = operation.path(settings.is_speed_test)
    return Flight(kind, METHODS[kind], path, body, is_gzip, document_id.text, now + seconds, done)


def make_handshake(now: float, done: Callable[[Flight], None]) -> Flight:
    """The request that shows whether there is a document API."""
    return Flight(OperationType.PUT, "POST", _HANDSHAKE, b"", False, "", now + _HANDSHAKE_SECONDS, done)


def check_handshake(flight: Flight) -> None:
    """Errors: FeedError if what came of it says that nothing can be fed."""
    if flight.response is None:
        raise FeedError(f"the handshake with the server failed: {flight.error or 'there was no answer in time'}")
    status, body = flight.response
    if status == 200 or (status == 400 and message_of(body) == _OLD_SERVER):
        return
    raise FeedError(f"the server answered the handshake with status {status}: {message_of(body)}")


def finish(operation: FeedOperation, flight: Flight) -> Result:
    """The result of an operation that is done. Errors: FeedError and those below it."""
    document_id = operation.document_id
    last = flight.error
    if flight.response is not None:
        status, body = flight.response
        if not flight.is_aborted and not flight.is_timed_out:
            return result_of(document_id, flight.request_line(), status, body)
        last = f"status {status}: {message_of(body)}"
    because = f"; the last attempt: {last}" if last else ""
    if flight.is_aborted:
        raise OperationAborted(f"the operation was aborted{because}", document_id.text)
    if flight.is_timed_out:
        raise FeedError(f"no answer in time{because}", document_id.text)
    raise FeedError(last or "there was no answer", document_id.text)
