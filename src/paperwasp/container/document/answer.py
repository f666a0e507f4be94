"""Answers of /document/v1/ as JSON: `pathId` first, then `id`, `trace`, and `fields` or `message`.

Errors in a request are answered without the document's id, and so are overload and timeouts, which are the container's
own; the answers of a content cluster have it.

Vespa: https://docs.vespa.ai/en/reference/api/document-v1.html#response-formats
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import orjson

from paperwasp.document.ids import DocumentId
from paperwasp.document.operations import Refusal
from paperwasp.errors import ConditionNotMet, InvalidInput, Overload, PaperwaspError, Timeout
from paperwasp.http.messages import Request, Response

JSON: Final = "application/json; charset=UTF-8"
IGNORED_FIELDS: Final = "X-Vespa-Ignored-Fields"
IGNORED_OPERATION: Final = "X-Vespa-Ignored-Operation"

NO_HEADERS: Final[Mapping[str, str]] = MappingProxyType({})
_OF_THE_CONTAINER: Final = (Overload, Timeout)


def document_response(
    status: int,
    request: Request,
    document_id: DocumentId,
    members: bytes = b"",
    headers: Mapping[str, str] = NO_HEADERS,
) -> Response:
    """`{"pathId", "id"}` and more members, JSON already: a stored document is shown without being parsed."""
    return Response(status, document_json(request.raw_path, document_id.text)[:-1] + members + b"}", JSON, headers)


def document_json(raw_path: str, id_text: str) -> bytes:
    """`{"pathId", "id"}`."""
    return orjson.dumps({"pathId": raw_path, "id": id_text})


def error_response(
    request: Request, error: PaperwaspError, document_id: DocumentId | None = None, members: bytes = b""
) -> Response:
    """The error with its status; `document_id` where the answer may be a content cluster's."""
    if document_id is None or isinstance(error, _OF_THE_CONTAINER):
        return message_response(error.http_status, request, error.message)
    message = members + b',"message":' + orjson.dumps(error.message)
    return document_response(error.http_status, request, document_id, message)


def message_response(status: int, request: Request, message: str, headers: Mapping[str, str] = NO_HEADERS) -> Response:
    """`{"pathId", "message"}`."""
    return Response(status, orjson.dumps({"pathId": request.raw_path, "message": message}), JSON, headers)


def other_method(request: Request, methods: tuple[str, ...]) -> Response:
    """The answer to a method that the path does not have; to OPTIONS, the methods that it has."""
    allowed = {"Allow": ",".join(methods)}
    if request.method == "OPTIONS":
        return Response(204, b"", JSON, allowed)
    known = ", ".join(methods)
    message = f"'{request.method}' not allowed at '{request.raw_path}'. Allowed methods are: {known}"
    return message_response(405, request, message, allowed)


def error_of(refusal: Refusal) -> PaperwaspError:
    """Why an operation was not applied, as clients meet it."""
    if refusal in (Refusal.TOO_LARGE, Refusal.UNFIT):
        return InvalidInput(refusal.value)
    return ConditionNotMet(f"TEST_AND_SET_CONDITION_FAILED: {refusal.value}")
