"""Requests, made of the descriptions of both ports and of the seeds."""

from __future__ import annotations

import gzip
import random
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote

import cbor2
import orjson

from tools.fuzz import values
from tools.fuzz.client import Draft
from tools.fuzz.seeds import Seed, package
from tools.openapi.described import Described, described

JSON: Final = ("Content-Type", "application/json")
_FORM: Final = ("Content-Type", "application/x-www-form-urlencoded")
_ACCEPT: Final = ("*/*", "application/json", "application/cbor", "application/jsonl", "text/xml", "a/b;q=", "x", "")
_HARD: Final = {
    "deploy": 0.05,
    "createSession": 0.3,
    "restart": 0.03,
    "removeApplication": 0.1,
    "removeTenant": 0.5,
    "removeApplicationOfDefault": 0.1,
    "prepare": 0.3,
    "activate": 0.3,
    "createTenant": 0.3,
    "reindex": 0.3,
}
"""Operations that take long → how often they are asked for, beside 1 for others."""
_WEIGHTS: Final = {
    "search": 90.0,
    "documents": 3.0,
    "model evaluation": 3.0,
    "deploy": 0.7,
    "state": 0.7,
    "backups": 0.05,
}
_MODELS: Final = ("example", "add_mul", "layer", "words", "trees", "light", "nothing")
_TENANTS: Final = ("default", "default", "default", "other", "none")
_SELECTIONS: Final = (
    *("true", "false", "music", "music.year > 1950", 'id = "id:n:music::1"', "id.user = 3", "music.title =~ '(a+)+$'"),
    *("not (music.year < 3 and true) or false", 'id.group == "x"', 'music.title = "*a*b*c*"', "id.hash() % 3 == 1"),
    *("now() - 10 > music.year", "music.tags[$x] = music.numbers[$x]", "music.persons[0].first_name == null"),
)


class Drafts:
    """Makes requests to one application after the other; `seed` is the one that is asked now."""

    def __init__(self, chance: random.Random, seeds: list[Seed]) -> None:
        self._chance = chance
        self._seeds = seeds
        self.seed = seeds[0]
        self.instance = "default"
        self.session = 1
        self._operations: list[tuple[str, str, str, str, float]] = []
        for port in ("container", "configserver"):
            for path, method, operation in described(port).operations():
                weight = _WEIGHTS[operation["tags"][0]] * _HARD.get(operation["operationId"], 1.0)
                self._operations.append((port, path, method, operation["operationId"], weight))
        self._weights = [weight for *_, weight in self._operations]

    def next(self) -> Draft:
        """A request."""
        chance = self._chance
        port, path, method, name, _ = chance.choices(self._operations, self._weights)[0]
        description = described(port)
        target = self._path(path, description.parameters(path, method))
        query = self._query(description, path, method, name)
        headers, body = self._body(name, method)
        if chance.random() < 0.02:
            method = chance.choice(("GET", "POST", "PUT", "DELETE", "HEAD", "OPTIONS", "PATCH", "TRACE", "X"))
        if chance.random() < 0.15:
            headers.append(("Accept", chance.choice(_ACCEPT)))
        headers, body = self._coded(headers, body)
        return Draft(port, method, target + (f"?{query}" if query else ""), tuple(headers), body, name)

    def _path(self, path: str, parameters: list[dict[str, Any]]) -> str:
        for parameter in parameters:
            if parameter["in"] == "path":
                value = self._of_path(parameter["name"])
                path = path.replace(f"{{{parameter['name']}}}", value)
        if self._chance.random() < 0.01:
            path += quote(values.text(self._chance), safe="/%?")
        return _sendable(path)

    def _of_path(self, name: str) -> str:
        chance = self._chance
        if chance.random() < 0.08:
            found = quote(values.text(chance), safe="/" * (chance.random() < 0.5))
            return found if found.strip("/") else "x"  # slashes alone would make it another resource
        document = chance.choice(self.seed.documents)["put"].split(":", 4)
        known: dict[str, tuple[str, ...]] = {
            "namespace": (document[1],) * 5 + ("ns",),
            "documentType": (document[2],) * 8 + ("nothing",),
            "docid": (quote(document[4], safe=""), str(chance.randrange(200))),
            "number": ("1", "2", "18446744073709551615"),
            "group": (document[3].removeprefix("g=") or "a", "b"),
            "model": _MODELS,
            "function": ("scaled", "calling", "mapped", "serving/y", "y", "default/output", "sum_of"),
            "tenant": _TENANTS,
            "application": ("default",) * 5 + ("shop",),
            "environment": ("prod",),
            "region": ("default",),
            "instance": (self.instance,) * 4 + ("spare", "none"),
            "session": (*tuple(str(max(1, self.session - back)) for back in (0, 0, 1, 2, 30)), "999999"),
            "path": ("services.xml", "schemas", "schemas/", "schemas/music.sd", "x.txt", "a/b/", "../x", "models/"),
            "service": ("localhost:8080", "127.0.0.1:1", "x"),
            "host": ("localhost", "127.0.0.1", "none"),
        }
        return chance.choice(known[name])

    def _query(self, description: Described, path: str, method: str, name: str) -> str:
        chance, given = self._chance, dict[str, str]()
        if name == "search":
            given |= self._search()
        for parameter in description.parameters(path, method):
            wanted = 0.9 if parameter.get("required") else 0.012 if name.startswith("search") else 0.12
            if parameter["in"] == "query" and chance.random() < wanted:
                given[parameter["name"]] = self._value(parameter)
        parts = [f"{_quoted(key)}={_quoted(value)}" for key, value in given.items()]
        if chance.random() < 0.02:
            parts.append(chance.choice(("&", "=", "%", "%zz", "a=%ff", "=x", "a&b", "%00=%00")))
        return _sendable("&".join(parts))[:30_000]

    def _value(self, parameter: Mapping[str, Any]) -> str:
        chance, name, schema = self._chance, parameter["name"], parameter["schema"]
        if name in ("selection", "condition", "streaming.selection"):
            found = chance.choice(_SELECTIONS).replace("music", chance.choice(self.seed.types or ["music"]))
            return found if chance.random() < 0.5 else values.mutated(found, chance, _SELECTIONS)
        if name == "cluster" and chance.random() < 0.9:
            return chance.choice(("content", "content", "mails", "none"))
        kind = chance.random()
        if kind < 0.75:
            found = values.of_schema(schema, chance)
        elif kind < 0.9:
            found = values.beside_schema(schema, chance)
        else:
            found = values.text(chance)
        return "2s" if name == "timeout" and _is_long(found) else found

    def _search(self) -> dict[str, str]:
        """The parameters of a query: one of the scripts, as it is or changed."""
        chance = self._chance
        given = dict(chance.choice(self.seed.queries))
        if chance.random() < 0.5:
            name = chance.choice(list(given)) if given else "yql"
            given[name] = values.mutated(given.get(name, ""), chance, self.seed.texts)
        if chance.random() < 0.1:
            given |= chance.choice(self.seed.queries)
        if chance.random() < 0.1:
            given["query"] = values.mutated(chance.choice(self.seed.texts), chance, self.seed.texts)
        if _is_long(given.get("timeout", "1")):
            given["timeout"] = "2s"
        return given

    def _body(self, name: str, method: str) -> tuple[list[tuple[str, str]], bytes]:
        chance = self._chance
        if name == "searchByBody":
            given: dict[str, Any] = dict(self._search())
            if chance.random() < 0.2:
                return [_FORM], "&".join(f"{_quoted(key)}={_quoted(each)}" for key, each in given.items()).encode()
            return [JSON], _dumped(values.mutated_json(given, chance, 0.05))
        if name.startswith("putDocument"):
            fields = chance.choice(self.seed.documents)["fields"]
            body = {"fields": values.mutated_json(fields, chance, chance.choice((0, 0.02, 0.1)))}
            return [JSON], _dumped(body if chance.random() < 0.95 else values.mutated_json(body, chance))
        if name.startswith("updateDocument"):
            return [JSON], _dumped({"fields": self._updates()})
        if name.endswith("ByForm"):
            return [_FORM], self._arguments().encode()
        if name in ("createSession", "deploy"):
            return self._package(name)
        if name == "writeFile":
            return [], self._file()
        if method in ("POST", "PUT", "DELETE") and chance.random() < 0.1:
            return [JSON], _dumped(values.json_value(chance))
        return [], b""

    def _updates(self) -> dict[str, Any]:
        chance = self._chance
        fields = chance.choice(self.seed.documents)["fields"]
        found: dict[str, Any] = {}
        for name in chance.sample(list(fields), min(len(fields), chance.randrange(1, 4))):
            operation = chance.choice(
                ("assign", "assign", "add", "remove", "increment", "multiply", "divide", "match", "modify", "x")
            )
            value = fields[name] if operation in ("assign", "add", "remove") else chance.choice((1, 2.5, 0, "x"))
            if operation == "match":
                value = {"element": chance.choice((0, "a", -1)), chance.choice(("increment", "assign")): 1}
            if operation == "modify":
                value = {"operation": chance.choice(("replace", "add", "multiply", "x")), "cells": fields[name]}
            place = name + chance.choice(("", "", "", "[0]", "{a}", ".key", "[$x]", "{" * 100, ".lat"))
            found[place] = {operation: values.mutated_json(value, chance, 0.1)}
        return found

    def _arguments(self) -> str:
        chance = self._chance
        tensors = ("tensor(x[3]):[1,2,3]", "{a:[1,2,3]}", "[[1,2,3,4]]", "1", "tensor(name{},x[3]):{a:[1,2,3]}", "{}")
        names = ("x", "input1", "input2", "c", "d", "ids", "f1", "numerical", "categorical", "format.tensors")
        given = {
            chance.choice(names): chance.choice((*tensors, "short", values.text(chance)))
            for _ in range(chance.randrange(4))
        }
        return "&".join(f"{_quoted(name)}={_quoted(value)}" for name, value in given.items())

    def _package(self, name: str) -> tuple[list[tuple[str, str]], bytes]:
        """An application package, as it is or with a file changed, or an archive with some of its bytes changed."""
        chance = self._chance
        files = dict(chance.choice(self._seeds).files)
        if chance.random() < 0.7:
            path = chance.choice([each for each in files if each.endswith((".sd", ".xml", ".sr", ".json"))])
            files[path] = values.mutated(files[path].decode(), chance, ()).encode("utf-8", "replace")
        archive = bytearray(package(files))
        if chance.random() < 0.3:
            for _ in range(chance.randrange(1, 8)):
                archive[chance.randrange(len(archive))] = chance.randrange(256)
        kind = chance.choice(("application/zip",) * 8 + ("application/x-gzip", "text/plain", ""))
        return [("Content-Type", kind)], bytes(archive[: chance.choice((None, None, None, 100))])

    def _file(self) -> bytes:
        files = self.seed.files
        content = files[self._chance.choice(list(files))]
        return content if self._chance.random() < 0.7 else values.text(self._chance).encode()

    def _coded(self, headers: list[tuple[str, str]], body: bytes) -> tuple[list[tuple[str, str]], bytes]:
        """Some bodies in CBOR or compressed, and some broken."""
        chance = self._chance
        if JSON in headers and chance.random() < 0.06:
            try:
                return [each for each in headers if each != JSON] + [("Content-Type", "application/cbor")], cbor2.dumps(
                    orjson.loads(body)
                )
            except ValueError:
                return headers, body
        if body and chance.random() < 0.04:
            return [*headers, ("Content-Encoding", "gzip")], gzip.compress(body, 1)
        if body and chance.random() < 0.03:
            place = chance.randrange(len(body))
            return headers, body[:place] + bytes([chance.randrange(256)]) + body[place + chance.randrange(2) :]
        return headers, body


def _is_long(timeout: str) -> bool:
    """Whether a timeout may be longer than a few seconds: then the service may work that long."""
    digits = "".join(each for each in timeout if each.isdigit())
    return len(digits) > 3 or "k" in timeout or "e" in timeout or (len(digits) > 1 and "ms" not in timeout)


def _dumped(value: Any) -> bytes:
    try:
        return orjson.dumps(value)
    except (TypeError, ValueError):  # integers of more than 64 bits
        import json

        return json.dumps(value).encode("utf-8", "replace")


def _quoted(text: str) -> str:
    return quote(text.encode("utf-8", "replace"), safe="()*:,'")


def _sendable(target: str) -> str:
    """What may stand in a request line: no spaces, and nothing beyond Latin-1."""
    return quote(target, safe="/%?&=#[]()*:;,'!@+$~|{}<>^`\\\"")
