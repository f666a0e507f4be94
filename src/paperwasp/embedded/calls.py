"""The calls of a service, for both of its faces: which document is meant, the request, and what its answer is."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Final, Generic, TypeVar

from msgspec import Struct

from paperwasp.client.feeding.operations import document_path
from paperwasp.container.app import ContainerApp, error_response
from paperwasp.document.ids import DocumentId
from paperwasp.embedded.lent_loop import Closed, LentLoop
from paperwasp.embedded.requests import (
    Document,
    assignments,
    document_of,
    json_request,
    query_parameters,
    query_request,
    refuse_failure,
)
from paperwasp.embedded.results import QueryResult
from paperwasp.errors import InternalError, InvalidInput, NotFound, PaperwaspError
from paperwasp.http.compression import too_large
from paperwasp.http.messages import Answer, Request, Response

# Which document is meant: a whole id, or the last part of one where the rest is understood.


_MOST_NAMED = 10


class IdDefaults(Struct, frozen=True):
    """The document type and namespace of ids that do not say theirs."""

    schema: str
    namespace: str

    def id_of(self, text: object) -> DocumentId:
        """The id: `text` where that is a whole one, else the last part of it. Errors: InvalidInput."""
        shown = str(text)
        return DocumentId.parse(shown) if shown.startswith("id:") else DocumentId(self.namespace, self.schema, shown)


class NoIdDefaults(Struct, frozen=True):
    """There are several document types, and nobody has said which: ids must be whole."""

    known: tuple[str, ...]

    def id_of(self, text: object) -> DocumentId:
        """Errors: InvalidInput, also for an id that is not whole."""
        shown = str(text)
        if shown.startswith("id:"):
            return DocumentId.parse(shown)
        names = ", ".join(self.known[:_MOST_NAMED])
        raise InvalidInput(f"'{shown}' is not a whole document id: name its schema, which is one of {names}")


def place_of(known: tuple[str, ...], schema: str | None, namespace: str | None) -> IdDefaults | NoIdDefaults:
    """Where documents belong. The namespace is that of the schema where none is named. Errors: InvalidInput."""
    if schema is None:
        if len(known) != 1:
            return NoIdDefaults(known)
        schema = known[0]
    if schema not in known:
        names = ", ".join(known[:_MOST_NAMED])
        raise InvalidInput(f"There is no schema '{schema}': the application has {names}")
    return IdDefaults(schema, schema if namespace is None else namespace)


Read_co = TypeVar("Read_co", covariant=True)
Query = str | Mapping[str, object] | None
"""YQL, or words to search for, or all parameters by name."""
Options = Mapping[str, object]
AskAgain = Callable[[Mapping[str, object]], QueryResult]


class ServiceCall(Struct, Generic[Read_co], frozen=True):
    """A request, and how its answer is read. Errors of reading: RequestFailed."""

    request: Request
    read: Callable[[Response], Read_co]


class Named(Struct, frozen=True):
    """Which document is meant."""

    id: object
    known: tuple[str, ...]
    """The document types that there are."""
    schema: str | None
    namespace: str | None

    @property
    def path(self) -> str:
        """Errors: InvalidInput."""
        return document_path(place_of(self.known, self.schema, self.namespace).id_of(self.id))


def query_call(
    query: Query, parameters: Options, ask: Callable[[Mapping[str, object]], QueryResult]
) -> ServiceCall[QueryResult]:
    """A search. `ask` asks again with other parameters."""
    asked = query_parameters(query, parameters)

    def read(response: Response) -> QueryResult:
        if response.status >= 300:
            refuse_failure(response)
        return QueryResult(response.body, lambda more: ask({**asked, **more}))

    return ServiceCall(query_request(asked), read)


def get_call(named: Named, options: Options) -> ServiceCall[Document | None]:
    """Reads a document; None where there is none."""
    return ServiceCall(json_request("GET", named.path, **options), document_of)


def put_call(named: Named, fields: Mapping[str, object], options: Options) -> ServiceCall[None]:
    """Writes a document."""
    return ServiceCall(json_request("POST", named.path, {"fields": fields}, **options), _read_nothing)


def update_call(named: Named, fields: Mapping[str, object], options: Options) -> ServiceCall[None]:
    """Changes fields of a document."""
    return ServiceCall(json_request("PUT", named.path, {"fields": assignments(fields)}, **options), _read_nothing)


def remove_call(named: Named, options: Options) -> ServiceCall[None]:
    """Removes a document."""
    return ServiceCall(json_request("DELETE", named.path, **options), _read_nothing)


def _read_nothing(response: Response) -> None:
    refuse_failure(response)


# Asking a container, with errors and limits as HTTP has them.


_LOG: Final = logging.getLogger("paperwasp.http")


def answer(loop: LentLoop, container: ContainerApp, request: Request) -> Response:
    """The answer, also where handling the request fails. Errors: Closed; NotFound for a streamed answer."""
    try:
        _check_size(container, request)
        return _whole(loop.answer(lambda: container.admit(request)))
    except Exception as error:
        return _failure(request, error)


async def answer_later(loop: LentLoop, container: ContainerApp, request: Request) -> Response:
    """As `answer`, for a coroutine of another event loop."""
    try:
        _check_size(container, request)
        return _whole(await loop.answer_later(lambda: container.admit(request)))
    except Exception as error:
        return _failure(request, error)


def _check_size(container: ContainerApp, request: Request) -> None:
    limit_bytes = container.body_limit_bytes(request.raw_path)
    if len(request.body) > limit_bytes:
        raise too_large(len(request.body), limit_bytes)


def _whole(answered: Answer) -> Response:
    if not isinstance(answered, Response):
        raise NotFound("Streamed answers are not to be had here: leave stream=true out")
    return answered


def _failure(request: Request, error: Exception) -> Response:
    if isinstance(error, Closed):
        raise error
    if isinstance(error, PaperwaspError):
        return error_response(request, error)
    _LOG.error("%s %s failed", request.method, request.raw_path, exc_info=error)
    return error_response(request, InternalError("Internal server error"))
