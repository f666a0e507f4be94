"""Both descriptions, whole."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, Final

import orjson

from paperwasp.base.version import VERSION, VESPA_VERSION
from paperwasp.http.description import FOLDER
from tools.openapi import backup, deploy, documents, evaluation, schemas, search, state
from tools.openapi.parts import Json

_TAGS: Final = {
    "documents": "Document v1: documents one by one, visits, and changes of many.",
    "search": "The Search API.",
    "model evaluation": "Models evaluated by themselves; where services.xml has `model-evaluation`.",
    "deploy": "The Deploy API: application packages, sessions, applications.",
    "backups": "All that the service has, as a stream.",
    "state": "Health, versions, metrics.",
}
_SCHEMES: Final[dict[str, Json]] = {
    "key": {"type": "http", "scheme": "bearer", "description": "A key of `paperwasp key create`."},
    "certificate": {"type": "mutualTLS", "description": "A client certificate that services.xml names."},
}
"""How a client says who it is, where the service asks for that."""
_SPOKEN: Final = (
    "Search and documents over HTTP, in the interfaces of Vespa. Wherever JSON is read or answered, CBOR is, too."
    " Errors have the shape of the interface that the request was for."
)


def _description(title: str, url: str, paths: Mapping[str, Any], shown: Mapping[str, Json]) -> Json:
    used = {each["tags"][0] for path in paths.values() for each in path.values() if isinstance(each, dict)}
    info = {
        "title": title,
        "version": VERSION,
        "description": f"{_SPOKEN} Spoken are those of Vespa {VESPA_VERSION}.",
        "license": {"name": "Apache 2.0", "identifier": "Apache-2.0"},
    }
    components: dict[str, dict[str, Json]] = {
        "schemas": dict(shown),
        "parameters": {},
        "responses": {},
        "securitySchemes": _SCHEMES,
    }
    return {
        "openapi": "3.1.0",
        "info": info,
        "servers": [{"url": url}],
        "security": [{}, *({name: []} for name in _SCHEMES)],
        "tags": [{"name": name, "description": text} for name, text in _TAGS.items() if name in used],
        "paths": _with_references(paths, components),
        "components": components,
    }


def _with_references(paths: Mapping[str, Any], components: dict[str, dict[str, Json]]) -> Json:
    """The paths with references to the parameters and answers that are there more than once, which become
    components."""
    counts: Counter[bytes] = Counter(orjson.dumps(part) for _, part, _ in _parts(paths))
    names: dict[bytes, str] = {}

    def shared(kind: str, part: Json, name: str) -> Json:
        key = orjson.dumps(part)
        if counts[key] < 2:
            return part
        if key not in names:
            taken = components[kind]
            names[key] = next(n for n in (name, *(f"{name}{number}" for number in range(2, 99))) if n not in taken)
            taken[names[key]] = part
        return {"$ref": f"#/components/{kind}/{names[key]}"}

    found: Json = {}
    for path, operations in paths.items():
        found[path] = {}
        for method, each in operations.items():
            if method == "parameters":
                found[path][method] = [shared("parameters", part, _name_of(part)) for part in each]
                continue
            found[path][method] = dict(each)
            if "parameters" in each:
                listed = [shared("parameters", part, _name_of(part)) for part in each["parameters"]]
                found[path][method]["parameters"] = listed
            answers = {code: shared("responses", part, _name(part, code)) for code, part in each["responses"].items()}
            found[path][method]["responses"] = answers
    return found


def _parts(paths: Mapping[str, Any]) -> Iterator[tuple[str, Json, str]]:
    """(kind, parameter or answer, status) wherever there is one."""
    for operations in paths.values():
        for method, each in operations.items():
            listed = each if method == "parameters" else each.get("parameters", ())
            yield from (("parameters", part, "") for part in listed)
            if method != "parameters":
                yield from (("responses", part, status) for status, part in each["responses"].items())


def _name_of(parameter: Json) -> str:
    return str(parameter["name"]).replace("$", "_")


def _name(part: Json, status: str) -> str:
    """A name by the schema and the status of an answer."""
    found = re.search(r"#/components/schemas/(\w+)", orjson.dumps(part).decode())
    return f"{found[1] if found else 'Answer'}{status}"


def descriptions() -> dict[str, Json]:
    """Name of the file → the description."""
    container = {**documents.paths(), **search.paths(), **evaluation.paths(), **state.container_paths()}
    config = {**deploy.paths(), **backup.paths(), **state.config_server_paths()}
    return {
        "container": _description("paperwasp: a container", "http://localhost:8080", container, schemas.CONTAINER),
        "configserver": _description(
            "paperwasp: the config server", "http://localhost:19071", config, schemas.CONFIG_SERVER
        ),
    }


def written(description: Json) -> bytes:
    """The text of a file."""
    return orjson.dumps(description, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)


def write() -> None:
    """Writes both files."""
    for name, description in descriptions().items():
        (FOLDER / f"{name}.json").write_bytes(written(description))
