"""The parts of a description: schemas of values, parameters, bodies, answers and operations.

All of them are JSON objects of OpenAPI 3.1, as dictionaries.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from paperwasp import limits

Json = dict[str, Any]

JSON: Final = "application/json"
CBOR: Final = "application/cbor"
TEXT: Final = "text/plain"
HTML: Final = "text/html"
INT_MAX: Final = 2**31 - 1
LONG_MAX: Final = 2**63 - 1
STRING: Final[Json] = {"type": "string"}
BOOLEAN: Final[Json] = {"type": "boolean"}
INTEGER: Final[Json] = {"type": "integer"}
COUNT: Final[Json] = {"type": "integer", "minimum": 0}
NUMBER: Final[Json] = {"type": "number"}
STRINGS: Final[Json] = {"type": "array", "items": STRING}
DURATION: Final[Json] = {"type": "string", "pattern": r"^[0-9]*\.?[0-9]+ ?(ks|s|ms|µs)?$", "examples": ["5s", "500ms"]}
"""A time of a query or of an operation: a number, and a unit."""
DEPLOY_DURATION: Final[Json] = {
    "type": "string",
    "pattern": r"^[0-9]{1,12}(\.[0-9]{0,9})? ?(ms|s|m|min|h)?$",
    "examples": ["60s", "500ms", "2m"],
}

STATUS_TEXTS: Final[Mapping[int, str]] = {
    204: "The methods of the path, in the header Allow.",
    400: "The request is wrong: its address, a parameter, its body. The message says what is wrong, and where.",
    401: "The client has not shown who it is.",
    403: "The client may not do this.",
    404: "What the path names does not exist.",
    405: "The path has other methods; the header Allow lists them.",
    408: "The request, or a step of a deployment, took longer than it may. Nothing was done.",
    409: "Another request was first, or has what is asked for.",
    410: "The service is no longer part of the application.",
    412: "A condition does not hold; of a deployment: the application package is not valid.",
    413: "More than a limit that the message names.",
    414: f"The address has more than {limits.HTTP_HEADERS_BYTES} bytes.",
    429: "Too much is under way: try again later. Nothing was done.",
    431: f"The head has more than {limits.HTTP_HEADERS_BYTES} bytes or {limits.HTTP_HEADER_FIELDS} fields.",
    500: "A defect, or damaged data; of a visit: what failed after it had begun.",
    502: "A model that runs elsewhere does not answer.",
    503: "No application is active yet, or what serves it is not ready.",
    504: "The time that the request allows is over.",
    507: "Disk or memory is over its limit.",
}
OF_EVERY_REQUEST: Final = (400, 401, 403, 405, 408, 413, 414, 429, 431, 500, 503)
"""What any request can be answered with, whatever it is for."""


def ref(name: str) -> Json:
    """A reference to a schema by its name."""
    return {"$ref": f"#/components/schemas/{name}"}


def with_default(schema: Mapping[str, Any], default: Any) -> Json:
    """A schema with the value that a parameter has where it is not given; none where that is None."""
    return dict(schema) if default is None else {**schema, "default": default}


def enum(*words: str) -> Json:
    """A string that is one of some words."""
    return {"type": "string", "enum": list(words)}


def query(name: str, schema: Mapping[str, Any], text: str, *, required: bool = False) -> Json:
    """A parameter of the query string."""
    found: Json = {"name": name, "in": "query", "description": text, "schema": dict(schema)}
    return {**found, "required": True} if required else found


def in_path(name: str, schema: Mapping[str, Any], text: str) -> Json:
    """A part of the path."""
    return {"name": name, "in": "path", "required": True, "description": text, "schema": dict(schema)}


def answer(text: str, content: Mapping[str, Any] | None = None, headers: Mapping[str, str] | None = None) -> Json:
    """An answer by the schemas of its media types. `headers`: name → description of headers that it may have."""
    found: Json = {"description": text}
    if headers:
        found["headers"] = {name: {"description": said, "schema": STRING} for name, said in headers.items()}
    if content is not None:
        found["content"] = {media: {"schema": schema} for media, schema in content.items()}
    return found


def json_answer(text: str, schema: Mapping[str, Any], headers: Mapping[str, str] | None = None) -> Json:
    """An answer of JSON, or of CBOR for who asks for it."""
    return answer(text, {JSON: schema, CBOR: schema}, headers)


def errors(schema: Mapping[str, Any], *more: int, texts: Mapping[int, str] | None = None) -> dict[str, Json]:
    """The errors of an operation: those of every request, and `more`, all with one schema."""
    said = {**STATUS_TEXTS, **(texts or {})}
    found = {str(status): json_answer(said[status], schema) for status in sorted({*OF_EVERY_REQUEST, *more})}
    found["403"]["content"][TEXT] = {"schema": STRING}  # of a request that no filter is for, where filtering is strict
    return found


def json_body(schema: Mapping[str, Any], text: str, examples: Mapping[str, Any], *, required: bool = True) -> Json:
    """A request body of JSON, or of CBOR. `examples`: name → value."""
    shown = {name: {"value": value} for name, value in examples.items()}
    content = {JSON: {"schema": dict(schema), "examples": shown}, CBOR: {"schema": dict(schema)}}
    return {"description": text, "required": required, "content": content}


def operation(
    name: str,
    summary: str,
    tag: str,
    responses: Mapping[str, Json],
    *,
    parameters: Iterable[Json] = (),
    body: Json | None = None,
    text: str = "",
) -> Json:
    """An operation. `name`: its id, which no other has."""
    found: Json = {"operationId": name, "summary": summary, "tags": [tag]}
    if text:
        found["description"] = text
    if listed := list(parameters):
        found["parameters"] = listed
    if body is not None:
        found["requestBody"] = body
    found["responses"] = dict(sorted(responses.items()))
    return found


def record(required: Sequence[str] = (), /, **members: Json) -> Json:
    """An object with these members and no others."""
    return {**open_record(required, **members), "additionalProperties": False}


def open_record(required: Sequence[str] = (), /, **members: Json) -> Json:
    """An object with these members, and perhaps others."""
    found: Json = {"type": "object", "properties": members}
    return {**found, "required": list(required)} if required else found


def map_of(schema: Mapping[str, Any]) -> Json:
    """An object whose members all have one schema."""
    return {"type": "object", "additionalProperties": dict(schema)}


def list_of(schema: Mapping[str, Any]) -> Json:
    """An array whose items all have one schema."""
    return {"type": "array", "items": dict(schema)}
