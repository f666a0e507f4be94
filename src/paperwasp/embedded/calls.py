"""The calls of a service, for both of its faces: the request of each, and what its answer is read as."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Generic, TypeVar

from paperwasp.base.records import dataclass
from paperwasp.client.feeding.operations import document_path
from paperwasp.embedded.addresses import place_of
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
from paperwasp.http.messages import Request, Response

Read_co = TypeVar("Read_co", covariant=True)
Query = str | Mapping[str, object] | None
"""YQL, or words to search for, or all parameters by name."""
Options = Mapping[str, object]
AskAgain = Callable[[Mapping[str, object]], QueryResult]


@dataclass(frozen=True, slots=True)
class Call(Generic[Read_co]):
    """A request, and how its answer is read. Errors of reading: RequestFailed."""

    request: Request
    read: Callable[[Response], Read_co]


@dataclass(frozen=True, slots=True)
class Named:
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
) -> Call[QueryResult]:
    """A search. `ask` asks again with other parameters."""
    asked = query_parameters(query, parameters)

    def read(response: Response) -> QueryResult:
        if response.status >= 300:
            refuse_failure(response)
        return QueryResult(response.body, lambda more: ask({**asked, **more}))

    return Call(query_request(asked), read)


def get_call(named: Named, options: Options) -> Call[Document | None]:
    """Reads a document; None where there is none."""
    return Call(json_request("GET", named.path, **options), document_of)


def put_call(named: Named, fields: Mapping[str, object], options: Options) -> Call[None]:
    """Writes a document."""
    return Call(json_request("POST", named.path, {"fields": fields}, **options), _read_nothing)


def update_call(named: Named, fields: Mapping[str, object], options: Options) -> Call[None]:
    """Changes fields of a document."""
    return Call(json_request("PUT", named.path, {"fields": assignments(fields)}, **options), _read_nothing)


def remove_call(named: Named, options: Options) -> Call[None]:
    """Removes a document."""
    return Call(json_request("DELETE", named.path, **options), _read_nothing)


def _read_nothing(response: Response) -> None:
    refuse_failure(response)
