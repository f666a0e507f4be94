"""The whole service against a plain model: mixed operations over HTTP, with kills and restarts in between.

Workers have documents of their own and send one request after the other, so that each knows what its documents are. A
request without an answer may have been executed or not, each document of a bulk operation for itself: after a restart,
what is read must be one of these. PAPERWASP_MODEL_OPERATIONS says how many operations (default 3000; millions find
more), PAPERWASP_SEED which ones; failures tell the seed.
"""

from __future__ import annotations

import http.client
import itertools
import os
import random
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

import orjson
import pytest

from tests.chance import SEED
from tests.service.music import SERVICES
from tests.service.running import RunningService, running_service
from tests.service.service_model import SCHEMA, Document, Draw, changed, same, shown

OPERATIONS = int(os.environ.get("PAPERWASP_MODEL_OPERATIONS", "3000"))
WORKERS = 8
KEYS = 25
"""Documents of one worker."""
ROUND_OPERATIONS = max(1000, OPERATIONS // 200)
"""Between two kills, on the average."""
Possible = dict[str, list[Document | None]]
"""Document id → what it may be."""


class Client:
    """One connection, and the requests of the test on it."""

    def __init__(self, url: str) -> None:
        self._connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=60)

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def ask(self, method: str, path: str, parameters: Any = (), body: Any = None) -> tuple[int, Any]:
        """Errors: OSError and HTTPException when nobody answers."""
        query = f"?{urlencode(parameters)}" if parameters else ""
        self._connection.request(method, path + query, None if body is None else orjson.dumps(body))
        response = self._connection.getresponse()
        content = response.read()
        lines = content.splitlines() if "jsonl" in response.headers["Content-Type"] else [content]
        return response.status, [orjson.loads(line) for line in lines]

    def get(self, path: str) -> Document | None:
        status, (answer,) = self.ask("GET", path)
        assert status in (200, 404), answer
        return answer["fields"] if status == 200 else None

    def visit(self, path: str, **parameters: Any) -> dict[str, Document]:
        """All documents, by id. Each may come only once."""
        found: dict[str, Document] = {}
        for document in self._visited(path, {"cluster": "records", **parameters}):
            assert document["id"] not in found, f"{document['id']} was visited twice: seed {SEED}"
            found[document["id"]] = document["fields"]
        return found

    def _visited(self, path: str, parameters: dict[str, Any]) -> Iterator[dict[str, Any]]:
        while True:
            status, (answer,) = self.ask("GET", path, parameters)
            assert status == 200, answer
            assert answer["documentCount"] == len(answer["documents"])
            yield from answer["documents"]
            if "continuation" not in answer:
                return
            parameters["continuation"] = answer["continuation"]

    def streamed(self, path: str, **parameters: Any) -> dict[str, Document]:
        """All documents by a visit that is streamed, in slices."""
        found: dict[str, Document] = {}
        for place in range(2):
            sliced = {"cluster": "records", "stream": "true", "slices": 2, "sliceId": place, **parameters}
            status, lines = self.ask("GET", path, sliced)
            assert status == 200, lines
            for line in lines:
                for document in line.get("documents", [line] if "put" in line else []):
                    assert document["id"] not in found, f"{document['id']} was visited twice: seed {SEED}"
                    found[document["id"]] = document["fields"]
        return found


class Worker(threading.Thread):
    """Changes and reads documents of its own until nobody answers or there is enough. Documents of even workers are a
    group, those of odd ones have a common prefix."""

    def __init__(self, url: str, number: int, round_number: int, known: dict[str, Document | None], run: Run) -> None:
        super().__init__()
        self._draw = Draw(f"{SEED} {round_number} {number}")
        self._client = Client(url)
        self._run = run
        is_group = number % 2 == 0
        self._place = f"/document/v1/ns/music/group/w{number}/" if is_group else "/document/v1/ns/music/docid/"
        self._prefix, self._name = (f"id:ns:music:g=w{number}:", "") if is_group else ("id:ns:music::", f"w{number}-")
        self._all = "music" if is_group else f'id.specific =~ "^{self._name}"'
        self.known = known
        self.possible: Possible = {}
        """What the documents of the request that is under way may be, unless it is answered."""
        self.error: BaseException | None = None

    def run(self) -> None:
        kinds = (self._change, self._read, self._visit, self._bulk)
        try:
            with self._client:
                while self._run.goes_on():
                    self._draw.chance.choices(kinds, (88, 8, 2, 2))[0]()
        except (OSError, http.client.HTTPException):
            self._run.ended.set()
        except BaseException as error:
            self.error = error
            self._run.ended.set()

    def _key(self) -> tuple[str, str]:
        """The path and the id of one of its documents."""
        name = f"{self._name}{self._draw.chance.randrange(KEYS)}"
        return self._place + name, self._prefix + name

    def _change(self) -> None:
        path, id = self._key()
        before = self.known.get(id)
        operation = self._draw.operation(before)
        expected, after = operation.apply(before)
        self.possible = {id: [before, after]}
        status, answer = self._client.ask(operation.method, path, operation.parameters, operation.body)
        said = (operation.method, operation.parameters, operation.body, before)
        assert status == expected, f"{id}: {status} {answer}, not {expected}: {said}: seed {SEED}"
        self.known[id] = after
        self.possible = {}

    def _read(self) -> None:
        path, id = self._key()
        check_same(id, self._client.get(path), self.known.get(id))

    def _visit(self) -> None:
        draw = self._draw
        text, holds = draw.condition() if draw.chance.random() < 0.5 else ("true", lambda _: True)
        expected = {id: document for id, document in self.known.items() if document is not None and holds(document)}
        selection = f"({text}) and ({self._all})"
        if draw.chance.random() < 0.5:
            found = self._client.streamed(self._place, selection=selection)
        else:
            count = draw.chance.choice((1, 7, 1000))
            found = self._client.visit(self._place, selection=selection, wantedDocumentCount=count)
        check_all_same(found, expected, selection)

    def _bulk(self) -> None:
        """Updates or removes all its documents that a selection matches."""
        draw = self._draw
        text, holds = draw.condition()
        chosen = {id: document for id, document in self.known.items() if document is not None and holds(document)}
        if draw.chance.random() < 0.3:
            method, body = "DELETE", None
            after: dict[str, Document | None] = dict.fromkeys(chosen)
        else:
            name = draw.chance.choice(("n", "title", "label", "flag", "ws", "m"))
            changes = [draw.change(name, None)]
            method, body = "PUT", {"fields": {path: operation for path, operation, _ in changes}}
            after = {id: changed(document, changes) for id, document in chosen.items()}
        self.possible = {id: [document, after[id]] for id, document in chosen.items()}
        parameters = {"cluster": "records", "selection": f"({text}) and ({self._all})"}
        while True:
            status, (answer,) = self._client.ask(method, self._place, parameters, body)
            assert status == 200, f"{answer}: {method} {parameters} {body}: seed {SEED}"
            if "continuation" not in answer:
                break
            parameters["continuation"] = answer["continuation"]
        self.known.update(after)
        self.possible = {}


class Run:
    """The operations of one round: so many, then the process is ended while requests are under way."""

    def __init__(self, operations: int) -> None:
        self._count = itertools.count()
        self._operations = operations
        self.ended = threading.Event()

    def goes_on(self) -> bool:
        if next(self._count) >= self._operations:
            self.ended.set()
        return True


def check_same(id: str, found: Document | None, expected: Document | None) -> None:
    assert same(found, expected), f"{id}: {found} is not {shown(expected)}: seed {SEED}"


def check_all_same(found: dict[str, Document], expected: dict[str, Document], what: str) -> None:
    assert found.keys() == expected.keys(), f"{what}: {found.keys() ^ expected.keys()}: seed {SEED}"
    for id, document in found.items():
        check_same(id, document, expected[id])


def settle(service: RunningService, workers: list[Worker]) -> None:
    """Finds out what became of the requests without an answer."""
    with Client(service.url) as client:
        for worker in workers:
            for id, candidates in worker.possible.items():
                found = client.get(_path(id))
                fitting = [candidate for candidate in candidates if same(found, candidate)]
                assert fitting, f"{id}: {found} is none of {candidates}: seed {SEED}"
                worker.known[id] = fitting[0]


def _path(id: str) -> str:
    _, namespace, document_type, place, name = id.split(":", 4)
    kind = f"group/{place.removeprefix('g=')}" if place else "docid"
    return f"/document/v1/{namespace}/{document_type}/{kind}/{quote(name)}"


def check(service: RunningService, known: list[dict[str, Document | None]]) -> None:
    """Gets, a full visit and queries find what the model has, and nothing else."""
    with Client(service.url) as client:
        for id, document in itertools.chain.from_iterable(documents.items() for documents in known):
            check_same(id, client.get(_path(id)), document)
        check_many(client, known)


def check_many(client: Client, known: list[dict[str, Document | None]]) -> None:
    alive = {id: found for documents in known for id, found in documents.items() if found is not None}
    check_all_same(client.visit("/document/v1/", wantedDocumentCount=100), alive, "full visit")
    check_all_same(client.streamed("/document/v1/"), alive, "streamed visit")
    for yql, holds in QUERIES.items():
        _, (answer,) = client.ask("POST", "/search/", body={"yql": yql, "hits": 0, "timeout": "20s"})
        total = answer["root"]["fields"]["totalCount"]
        assert total == sum(map(holds, alive.values())), f"{yql}: {total}: seed {SEED}"


QUERIES: dict[str, Any] = {
    "select * from music where true": lambda _: True,
    "select * from music where title contains 'blue'": lambda found: "blue" in (found.get("title") or "").split(),
    "select * from music where tags contains 'train'": lambda found: "train" in (found.get("tags") or ()),
    "select * from music where n > 0": lambda found: (found.get("n") or 0) > 0,
    "select * from music where flag = true": lambda found: found.get("flag") is True,
}


def write_application(folder: Path) -> Path:
    (folder / "schemas").mkdir(parents=True)
    (folder / "services.xml").write_text(SERVICES)
    (folder / "schemas" / "music.sd").write_text(SCHEMA)
    return folder


@pytest.mark.crash
def test_the_service_is_as_the_model_whatever_ends_it(tmp_path: Path) -> None:
    known: list[dict[str, Document | None]] = [{} for _ in range(WORKERS)]
    arguments = [str(write_application(tmp_path / "music"))]
    chance = random.Random(SEED)
    workers: list[Worker] = []
    left, round_number = OPERATIONS, 0
    while left > 0:
        with running_service(tmp_path / "data", *arguments) as service:
            settle(service, workers)
            check(service, known)
            run = Run(operations := min(left, chance.randrange(1, 2 * ROUND_OPERATIONS)))
            workers = [Worker(service.url, number, round_number, known[number], run) for number in range(WORKERS)]
            for worker in workers:
                worker.start()
            run.ended.wait()
            service.process.send_signal(chance.choices((signal.SIGKILL, signal.SIGTERM), (4, 1))[0])
            for worker in workers:
                worker.join()
            for error in (worker.error for worker in workers if worker.error is not None):
                raise error
        arguments, left, round_number = [], left - operations, round_number + 1
    with running_service(tmp_path / "data") as service:
        settle(service, workers)
        check(service, known)
