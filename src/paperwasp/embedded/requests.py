"""Requests to the service, as HTTP would bring them; and the errors of its answers."""

from __future__ import annotations

from collections.abc import Iterator, KeysView, Mapping
from types import MappingProxyType
from typing import Any, Final
from urllib.parse import urlencode

import orjson
from msgspec import Struct

from paperwasp.client.query_text import parameters_of_text
from paperwasp.client.sources.values import json_of, plain_value
from paperwasp.errors import InvalidInput, PaperwaspError
from paperwasp.http.messages import Request, Response

_JSON: Final = MappingProxyType({"content-type": "application/json"})
_SHOWN_CHARACTERS: Final = 500
_PLAIN: Final = plain_value("s")
_UPDATES: Final = frozenset(
    ("add", "assign", "decrement", "divide", "increment", "match", "modify", "multiply", "remove")
)


class RequestFailed(PaperwaspError):
    """The service has refused a request, or could not answer it. The answer's status is `status`."""

    def __init__(self, message: str, status: int, content: object) -> None:
        super().__init__(message)
        self.status = status
        self.content = content
        """The body of the answer."""


class HasFields:
    """A mapping of its fields, to look at: `document["title"]`, `"title" in hit`, `dict(hit)`."""

    __slots__ = ()

    fields: Mapping[str, Any]

    def __getitem__(self, name: str) -> Any:
        return self.fields[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.fields)

    def __contains__(self, name: object) -> bool:
        return name in self.fields

    def keys(self) -> KeysView[str]:
        """The names of the fields: `dict(document)` has them with their values."""
        return self.fields.keys()

    def get(self, name: str, default: Any = None) -> Any:
        """A field, or `default` where there is none of that name."""
        return self.fields.get(name, default)


class Document(Struct, HasFields, frozen=True):
    """A document as it is stored."""

    id: str
    fields: Mapping[str, Any]


def to_json(content: object) -> bytes:
    """JSON, also of NumPy arrays and numbers, sets, decimals, infinities, and times, which are seconds as in
    rows. Errors: InvalidInput."""
    try:
        return json_of(content, _PLAIN)
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"A value that is not JSON: {error.__cause__ or error}"[:_SHOWN_CHARACTERS]) from None


def json_request(method: str, path: str, content: object = None, **parameters: object) -> Request:
    """A request with a body of JSON; None: without one. Parameters that are None are left out."""
    return json_text_request(method, path, b"" if content is None else to_json(content), parameters)


def json_text_request(method: str, path: str, body: bytes, parameters: Mapping[str, object]) -> Request:
    """As `json_request`, of a body that is JSON already."""
    return Request(method, path, _query(parameters), _JSON, body)


def _query(parameters: Mapping[str, object]) -> str:
    named = {name: _text(value) for name, value in parameters.items() if value is not None}
    return urlencode(named) if named else ""


def _text(value: object) -> str:
    return ("false", "true")[value] if isinstance(value, bool) else str(value)


def query_parameters(query: str | Mapping[str, object] | None, more: Mapping[str, object]) -> dict[str, object]:
    """The parameters of a query: by name, or YQL, or words for `userQuery()`. Those that are None are left out."""
    asked: dict[str, object] = {}
    if isinstance(query, Mapping):
        asked.update(query)
    elif query is not None:
        asked.update(parameters_of_text(query))
    asked.update((name, value) for name, value in more.items() if value is not None)
    return asked


def query_request(parameters: Mapping[str, object]) -> Request:
    """A request to the search API."""
    return Request("POST", "/search/", "", _JSON, to_json(parameters))


def assignments(fields: Mapping[str, object]) -> dict[str, object]:
    """An update's fields, in which a plain value is one to assign. What has an operation in it stays as it is."""
    return {name: value if _is_update(value) else {"assign": value} for name, value in fields.items()}


def _is_update(value: object) -> bool:
    return isinstance(value, Mapping) and bool(value) and _UPDATES.issuperset(value)


def document_of(response: Response) -> Document | None:
    """The document of an answer; None where there is none. Errors: RequestFailed."""
    if response.status == 404 and _names_document(response.body):
        return None
    content = refuse_failure(response)
    return Document(content["id"], content["fields"])


def _names_document(body: bytes) -> bool:
    """Whether it is an answer of the document API: there may be none where it was asked."""
    try:
        content = orjson.loads(body)
    except orjson.JSONDecodeError:
        return False
    return isinstance(content, dict) and "id" in content


def refuse_failure(response: Response) -> Any:
    """The JSON of an answer that says that all went well. Errors: RequestFailed."""
    try:
        content = orjson.loads(response.body)
    except orjson.JSONDecodeError:
        content = response.body.decode(errors="replace")
    if response.status >= 300:
        raise RequestFailed(_message(content), response.status, content)
    return content


def _message(content: Any) -> str:
    """Return the message of a refusal, in any of the forms of the interfaces."""
    if not isinstance(content, dict):
        return str(content)[:_SHOWN_CHARACTERS]
    errors = content.get("root", {}).get("errors", ())
    if errors:
        return "; ".join(f"{each['summary']}: {each['message']}" for each in errors)
    return str(content.get("message") or content.get("error") or content)[:_SHOWN_CHARACTERS]
