"""A description as tests and the fuzzer use it: the operation of a request, and what is wrong with an answer."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, Final

import cbor2
import orjson
from jsonschema import Draft202012Validator
from referencing import Registry
from referencing.jsonschema import DRAFT202012

from paperwasp.http.description import FOLDER
from paperwasp.http.messages import Request, Response

METHODS: Final = ("get", "put", "post", "delete")


class Described:
    """The description of a port."""

    def __init__(self, port: str) -> None:
        self.content: dict[str, Any] = orjson.loads((FOLDER / f"{port}.json").read_bytes())
        self._registry: Registry[Any] = Registry().with_resource(
            "urn:description", DRAFT202012.create_resource(self.content)
        )
        self._patterns = {_pattern(path): path for path in self.content["paths"]}

    def resolved(self, part: dict[str, Any]) -> dict[str, Any]:
        """The part, or what it refers to."""
        if "$ref" not in part:
            return part
        found = self.content
        for name in part["$ref"].removeprefix("#/").split("/"):
            found = found[name]
        return found

    def operations(self) -> Iterator[tuple[str, str, dict[str, Any]]]:
        """(path, method in upper case, operation) of all."""
        for path, found in self.content["paths"].items():
            for method in METHODS:
                if method in found:
                    yield path, method.upper(), found[method]

    def parameters(self, path: str, method: str) -> list[dict[str, Any]]:
        """All parameters of an operation, those of its path first."""
        found = self.content["paths"][path]
        listed = [*found.get("parameters", ()), *found[method.lower()].get("parameters", ())]
        return [self.resolved(each) for each in listed]

    def path_of(self, raw_path: str) -> str | None:
        """The described path that a request's path is an instance of: of several the one with most literal text."""
        fitting = [path for pattern, path in self._patterns.items() if pattern.fullmatch(raw_path)]
        return max(fitting, key=lambda path: len(re.sub(r"\{\w+\}", "", path)), default=None)

    def problem_of(self, request: Request, response: Response) -> str:
        """Where an answer is not as described; empty: nowhere. What goes to no described operation is not looked at."""
        path = self.path_of(request.raw_path)
        method = {"HEAD": "get"}.get(request.method, request.method.lower())
        if path is None or method not in self.content["paths"][path]:
            return ""
        operation = self.content["paths"][path][method]
        if response.status == 404 and request.raw_path.endswith("/") and not path.endswith(("/", "}")):
            return ""  # with the slash it is another path
        found = operation["responses"].get(str(response.status))
        if found is None:
            return f"{method} {path}: no answer {response.status} is described"
        if b"format.tensors=string" in request.query.encode() + request.body:
            return ""  # a literal of a tensor, which is called JSON, as in Vespa
        return self._problem_of_body(f"{method} {path} {response.status}", self.resolved(found), response)

    def _problem_of_body(self, where: str, described: Mapping[str, Any], response: Response) -> str:
        media = response.content_type.partition(";")[0].strip()
        content = described.get("content", {})
        if media not in content:
            return "" if "*/*" in content else f"{where}: no {media} is described"
        if media == "application/json":
            bodies = [_json(response.body)]
        elif media == "application/cbor":
            bodies = [cbor2.loads(response.body)]
        elif media == "application/jsonl":
            bodies = [orjson.loads(line) for line in response.body.splitlines()]
        else:
            return ""
        validator = self._validator(orjson.dumps(content[media]["schema"]))
        for body in bodies:
            if (error := next(validator.iter_errors(body), None)) is not None:
                return f"{where}: {error.json_path}: {error.message[:500]}"
        return ""

    @cache  # noqa: B019  # there are two of these objects
    def _validator(self, schema: bytes) -> Draft202012Validator:
        absolute = orjson.loads(schema.replace(b'"#/', b'"urn:description#/'))
        return Draft202012Validator(absolute, registry=self._registry)


def _pattern(path: str) -> re.Pattern[str]:
    parts = re.split(r"(\{\w+\})", path)
    rest = ("{path}", "{docid}", "{function}")
    expressions = ((".+" if part in rest else "[^/]+") if part.startswith("{") else re.escape(part) for part in parts)
    ending = "/*" if path.startswith("/model-evaluation") else "/?"
    return re.compile("".join(expressions).removesuffix("/") + ending)


def _json(body: bytes) -> Any:
    """The JSON of an answer, also that of a call of a function in JavaScript."""
    return orjson.loads(body[body.index(b"(") + 1 : -2] if body.endswith(b");") else body)


@cache
def described(port: str) -> Described:
    """The description of `container` or `configserver`."""
    return Described(port)
