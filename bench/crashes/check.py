"""What must be there after a crash: each document as it may be, and the same wherever it is seen."""

from __future__ import annotations

import http.client
import json
import random
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode

from bench.crashes import application
from bench.crashes.state import State, distinct
from paperwasp.content.node import ContentNode
from paperwasp.coordination.operation_log import FileOperationLog
from tests.content.document_checks import SEARCHES, build_graphs, check_columns, check_graphs, stored_of
from tests.content.document_model import Fields, shown
from tests.content.document_schemas import MADE, VARIANTS, parts_of
from tests.content.nodes import TestNode
from tests.content.row_checks import check_rows

APPLICATION: Final = (
    "/application/v2/tenant/default/application/default/environment/prod/region/default/instance/default"
)
CLUSTER: Final = "content/default.default.default/things"
REINDEX_SECONDS: Final = 20
VECTORS: Final = 60
"""Documents that are looked for by their own vectors over HTTP; all are where the data is opened."""
_YQL: Final = (
    'title contains "two"', 'lower contains "words"', 'lyrics contains "one"', 'predicate(rule, {"a":"b"}, {"x":3})',
    "range(count, -5, 5)", "range(echo, -5, 5)", "range(tenfold, -90, 30)", 'copied contains "x"', 'votes contains "b"',
    "range(pairs.a, 2, 4)", 'pairs contains sameElement(range(a, 1, 5), b contains "x")',
    'sizes contains sameElement(key contains "a", range(value, -9, 9))', 'sizes.key contains "c"',
    'named contains sameElement(key contains "b", range(value.a, 0, 5))', 'named.value.b contains "one"',
)  # fmt: skip
"""The queries of `SEARCHES`."""
assert len(_YQL) == len(SEARCHES)


class Checker:
    """Asks a service that has come back."""

    def __init__(self, port: int, config_port: int, known: State, reindexes: bool = True) -> None:
        """`reindexes`: waits for the end of reindexing."""
        self._reindexes = reindexes
        self._config_port, self._state, self._chance = config_port, known, random.Random(port)
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
        self.wrong: list[str] = []
        self.compared = 0

    def run(self) -> None:
        """Compares, and lets the state know what was found."""
        self._find_version()
        (version,) = self._state.versions
        if self._reindexes:
            self._await_reindexing()
        things = self._documents(
            "thing", self._state.things, lambda fields: without_made(shown(fields, application.attributes(version)))
        )
        bases = self._documents(
            "base", self._state.bases, lambda fields: {key: value for key, value in fields.items() if value != ""}
        )
        self._check_summaries(things, bases, version)
        self._check_searches(things, version)
        self._check_vectors(things, version)

    def _ask(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        self._connection.request(
            method, path, None if body is None else json.dumps(body), {"Content-Type": "application/json"}
        )
        answer = self._connection.getresponse()
        return answer.status, json.loads(answer.read())

    def _find_version(self) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", self._config_port, timeout=60)
        connection.request("GET", f"{APPLICATION}/content/schemas/thing.sd")
        text = connection.getresponse().read().decode()
        found = re.match(r"# version (\d+)", text)
        version = int(found[1]) if found else -1
        if version not in self._state.versions:
            self.wrong.append(f"version {version} is active, not one of {self._state.versions}: {text[:100]}")
        self._state.versions = (version,)

    def _await_reindexing(self) -> None:
        for _ in range(REINDEX_SECONDS * 10):
            connection = http.client.HTTPConnection("127.0.0.1", self._config_port, timeout=60)
            connection.request("GET", f"{APPLICATION}/reindexing")
            cluster = json.loads(connection.getresponse().read()).get("clusters", {}).get("things", {})
            states = [each.get("state") for each in cluster.get("ready", {}).values()]
            if not cluster.get("pending") and all(state in (None, "successful") for state in states):
                return
            time.sleep(0.1)
        self.wrong.append(f"reindexing does not end: {cluster}")

    def _documents(self, kind: str, known: dict[int, Any], seen: Callable[[Fields], Fields]) -> dict[int, Fields]:
        """The documents as they are stored, each compared with what it may be, by a visit and by GET."""
        visited = {int(each["id"].rsplit(":", 1)[1]): each["fields"] for each in self._visit(kind)}
        found: dict[int, Fields] = {}
        for name, values in known.items():
            status, answer = self._ask("GET", f"/document/v1/n/{kind}/docid/{name}")
            there = answer["fields"] if status == 200 else None
            if there != visited.get(name):
                self.wrong.append(f"{kind} {name}: GET {there}, visit {visited.get(name)}")
            if kind == "base" and there is not None:
                there.pop("more", None)
            plain = None if there is None else _without_text(there)
            fitting = distinct(
                [value for value in values if (None if value is None else _without_text(seen(value))) == plain]
            )
            self.compared += 1
            if not fitting:
                self.wrong.append(f"{kind} {name}: {there} is none of {values}")
                fitting = [there if there is None else {name: there[name] for name in there if name != "rule"}]
            known[name] = fitting
            if fitting[0] is not None:
                found[name] = fitting[0]
        if extra := visited.keys() - known.keys():
            self.wrong.append(f"{kind}: {extra} were never put")
        return found

    def _visit(self, kind: str) -> Iterator[Any]:
        space = "global" if kind == "base" else "default"
        parameters = {"cluster": "things", "wantedDocumentCount": "1000", "selection": kind, "bucketSpace": space}
        while True:
            status, answer = self._ask("GET", f"/document/v1/?{urlencode(parameters)}")
            assert status == 200, answer
            yield from answer["documents"]
            if "continuation" not in answer:
                return
            parameters["continuation"] = answer["continuation"]

    def _search(self, where: str, **more: Any) -> list[Any]:
        body = {"yql": f"select * from thing where {where}", "hits": 400, "timeout": "20s", **more}
        _, answer = self._ask("POST", "/search/", body)
        if "errors" in answer["root"]:
            self.wrong.append(f"{where}: {answer['root']['errors']}")
        hits: list[Any] = answer["root"].get("children", [])
        return hits

    def _check_summaries(self, things: dict[int, Fields], bases: dict[int, Fields], version: int) -> None:
        hits = {name_of(hit): hit["fields"] for hit in self._search("true", **{"presentation.format.tensors": "short"})}
        if hits.keys() != things.keys():
            self.wrong.append(f"`true` finds {hits.keys() - things.keys()} more, {things.keys() - hits.keys()} less")
        for name in hits.keys() & things.keys():
            found = {key: value for key, value in hits[name].items() if key not in ("documentid", "sddocname")}
            take_made(things[name], found)
            expected = summary_of(things[name], bases)
            if _plain(found) != _plain(expected):
                differing = {key: (found.get(key), expected.get(key)) for key in found.keys() | expected.keys()
                             if found.get(key) != expected.get(key)}  # fmt: skip
                self.wrong.append(f"thing {name}: summary (found, stored) {differing}")

    def _check_searches(self, things: dict[int, Fields], version: int) -> None:
        searched = {*application.attributes(version), *parts_of(version % VARIANTS), "title", "lower", "lyrics"}
        for (field, _, is_found), yql in zip(SEARCHES, _YQL, strict=True):
            if field in searched:
                self._check_found(yql, things, is_found)
        if version % 2 == 0 or "artist" in application.attributes(version):
            self._check_found('artist contains "one"', things, lambda fields: fields.get("artist") == "one")

    def _check_found(self, yql: str, things: dict[int, Fields], is_found: Callable[[Fields], bool]) -> None:
        """Of a document that may have one of several predicates, which are not compared, the search says which."""
        found = {name_of(hit) for hit in self._search(yql, summary="default")}
        wrong = {}
        for name, fields in things.items():
            values = [value for value in self._state.things[name] if value is not None] or [fields]
            if fitting := [value for value in values if is_found(value) == (name in found)]:
                self._state.things[name] = [*fitting]
            else:
                wrong[name] = values
        if found <= things.keys() and not wrong:
            return
        too_many = sorted(found - things.keys() | found & wrong.keys())
        self.wrong.append(f"{yql}: {too_many} too many, {sorted(wrong.keys() - found)} missing, of {wrong}")

    def _check_vectors(self, things: dict[int, Fields], version: int) -> None:
        """Each document is found by its own vector."""
        for field in application.graphs(version):
            for name in self._chance.sample(sorted(things), min(len(things), VECTORS)):
                value = things[name].get(field)
                if value is None or not (
                    vectors := [value["values"]] if field == "dense" else list(value["blocks"].values())
                ):
                    continue
                query = {"input.query(q)": vectors[0], "ranking": "near", "hits": 400}
                hits = self._search(f"{{targetHits:20}}nearestNeighbor({field}, q)", **query)
                if name not in map(name_of, hits):
                    self.wrong.append(f"thing {name} is not found by its own {field} {vectors[0]}")


def name_of(hit: Any) -> int:
    return int(hit["fields"]["documentid"].rsplit(":", 1)[1])


def summary_of(fields: Fields, bases: dict[int, Fields]) -> Fields:
    """The fields of a hit, of a document and those that it refers to."""
    found = dict(fields)
    base = bases.get(int(str(fields.get("parent", ":-1")).rsplit(":", 1)[1]), {})
    for name in ("year", "name"):
        if name in base:
            found[f"parent_{name}"] = base[name]
    return found


def take_made(fields: Fields, found: Fields) -> None:
    """What was made of other fields is what a hit has: reindexing makes it again, at any time. Copies are always those
    of their sources."""
    for name, made in MADE.items():
        fields.pop(name, None)
        if name in ("lower", "copied"):
            if made.source in fields:
                fields[name] = made.make(fields[made.source])
        elif name in found:
            fields[name] = found[name]


def _without_text(fields: Fields) -> Fields:
    """Predicates are shown in other words than they were put: only whether there is one is compared."""
    return fields | ({"rule": True} if "rule" in fields else {})


def without_made(fields: Fields) -> Fields:
    return {name: value for name, value in fields.items() if name not in MADE}


def _plain(fields: Fields) -> Fields:
    """What hits and documents have in common: hits have no empty values, and write predicates in another way."""
    found = {name: value for name, value in fields.items() if value is not False and value not in ("", [], {}, None)}
    return found | ({"rule": True} if "rule" in found else {})


def check_deeply(data: Path, known: State) -> None:
    """Opens the data in this process, as a start does, and compares all that the node has. Errors: AssertionError."""
    log = FileOperationLog(data / CLUSTER / "log")
    try:
        node = TestNode(ContentNode(data / CLUSTER / "node", log), log)
    except BaseException:
        log.close()
        raise
    try:
        found: dict[int, Fields | None] = {}
        for name, values in known.things.items():
            found[name] = stored_of(node, name)
            possible = [value and without_made(value) for value in values]
            there = found[name]
            assert (there and without_made(there)) in possible, f"thing {name}: {there} is none of {values}"
        check_node(node, found)
        node.node.compact()
        check_node(node, found)
    finally:
        node.crash()


def check_node(node: TestNode, found: dict[int, Fields | None]) -> None:
    view = node.node.reader.view()
    check_columns(view, found)
    view.rows.open(view.gids[: view.limit])
    check_rows(view)
    build_graphs(node)
    check_graphs(node.node.reader.view())
