"""Applications change, restart and go while hundreds of queries that compiled plans answer are under way over HTTP.

Every answer is whole: of one application or the other, never of a half of each, and none is lost.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.client import HTTPException, HTTPResponse
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import urlencode, urlsplit

import httpx
import orjson

from tests import web
from tests.messengers import WITHIN_PROCESS
from tests.service.in_process import Deployed, active, deployed_service
from tests.service.test_live_changes import overrides, package_files, services

pytestmark = WITHIN_PROCESS
CONNECTIONS = 6
AT_ONCE = 40
"""Requests that a connection sends before it reads an answer."""
DOCUMENTS = 60
QUERIES = ("blue", "blue train", "train", "kind of blue", "three", "naima blue")
ALL = "select * from music where userQuery()"
ASKED = {"yql": ALL, "type": "any", "ranking": "words", "summary": "shown", "nocache": "true", "timeout": "25s"}


def schema(fields: str, searched: str, b: float, shown: Sequence[str]) -> str:
    summaries = "\n".join(f"summary {name} {{ }}" for name in shown)
    return f"""schema music {{
      document music {{
        field title type string {{ indexing: summary | index
          index: enable-bm25 }}
        field body type string {{ indexing: summary | index
          index: enable-bm25 }}
        field year type int {{ indexing: summary | attribute }}
        {fields}
      }}
      fieldset default {{ fields: {searched} }}
      rank-profile words {{ first-phase {{ expression: bm25(title) }}
        rank-properties {{ bm25(title).b: {b} }} }}
      document-summary shown {{ {summaries} }}
    }}"""


MOOD = "field mood type string { indexing: summary | attribute }"
FILES = {
    "one": package_files(services("music"), schema("", "title", 0.75, ["title"])),
    "other": package_files(services("music"), schema(MOOD, "title, body", 0.1, ["title", "year"])),
}
"""Two applications: what matches, how it is ranked and what is shown of it are different."""
BOOK = package_files(
    services("book"),
    "",
    **{"schemas/book.sd": "schema book { document book { field title type string { indexing: index } } }"},
)
del BOOK["schemas/music.sd"]


def path_of(text: str) -> str:
    return "/search/?" + urlencode({**ASKED, "query": text})


class _Shared:
    """A socket as `HTTPResponse` wants it, whose answers are read one behind the other."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def makefile(self, mode: str) -> BinaryIO:
        return _Open(self._file)  # type: ignore[return-value]


class _Open:
    """The file, which an answer that was read does not close."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def close(self) -> None: ...


Judge = Callable[[str, str, int, bytes], bool]
"""Whether an answer may be: (text, what was settled from its request to its answer, status, body)."""


@dataclass
class Load:
    """Connections that ask without a pause."""

    url: str
    judge: Judge
    settled: str = ""
    """What every answer must be of that is asked for now; empty: the application changes."""
    changes: int = 0
    wrong: list[str] = field(default_factory=list)
    asked: int = 0
    stop: threading.Event = field(default_factory=threading.Event)

    def change_to(self, name: str) -> None:
        self.changes += 1
        self.settled = name

    def run(self) -> None:
        while not self.stop.is_set():
            try:
                self._connect()
            except (OSError, HTTPException) as error:
                self.wrong.append(repr(error))
                return

    def _connect(self) -> None:
        where = urlsplit(self.url)
        assert where.hostname is not None
        with socket.create_connection((where.hostname, where.port or 0), 30) as connection:
            file = connection.makefile("rb")
            while not self.stop.is_set():
                texts = [QUERIES[number % len(QUERIES)] for number in range(AT_ONCE)]
                before = self.changes, self.settled
                connection.sendall(
                    b"".join(f"GET {path_of(text)} HTTP/1.1\r\nHost: a\r\n\r\n".encode() for text in texts)
                )
                answers = [self._read(file) for _ in texts]
                settled = self.settled if (self.changes, self.settled) == before else ""
                for text, (status, body) in zip(texts, answers, strict=True):
                    self.asked += 1
                    if not self.judge(text, settled, status, body):
                        self.wrong.append(f"{text} of '{settled}': {status} {body!r}")

    def _read(self, file: BinaryIO) -> tuple[int, bytes]:
        answer = HTTPResponse(_Shared(file))  # type: ignore[arg-type]
        answer.begin()
        return answer.status, answer.read()


@contextmanager
def load(url: str, judge: Judge, settled: str) -> Iterator[Load]:
    running = Load(url, judge, settled)
    with ThreadPoolExecutor(CONNECTIONS) as pool:
        ends = [pool.submit(running.run) for _ in range(CONNECTIONS)]
        try:
            yield running
        finally:
            running.stop.set()
    for end in ends:
        end.result()
    assert running.wrong == []


def until_asked(clients: Load, more: int) -> None:
    """Waits until `more` requests are asked, or something is wrong."""
    wanted = clients.asked + more
    while clients.asked < wanted and not clients.wrong:
        clients.stop.wait(0.005)


def feed(service: Deployed) -> None:
    titles = ("blue train", "kind of blue", "giant steps", "train three", "blue blue naima and more of it")
    with httpx.Client(base_url=service.url, timeout=30) as client:
        for number in range(DOCUMENTS):
            fields = {"title": titles[number % 5], "body": f"three {'train ' * (number % 4)}", "year": number}
            assert client.post(f"/document/v1/ns/music/docid/{number}", json={"fields": fields}).status_code == 200


def answers_of(service: Deployed) -> dict[str, bytes]:
    return {text: web.get(service.url + path_of(text), timeout=30).content for text in QUERIES}


def by_plans(service: Deployed) -> int:
    """How many queries of the content cluster plans have answered since it was opened."""
    (cluster,) = service.service.applications._content._running.values()
    return cluster._service._runs.answered


def test_a_deployment_while_plans_run(tmp_path: Path) -> None:
    """Before it, answers are the old application's; after it, the new one's; meanwhile, each is one of the two."""
    with deployed_service(tmp_path / "data") as service:
        active(service.deploy(FILES["other"]))
        feed(service)
        expected: dict[str, Mapping[str, bytes]] = {"other": answers_of(service)}
        active(service.deploy({**FILES["one"], **overrides()}))
        expected["one"] = answers_of(service)
        for text in QUERIES:
            assert orjson.loads(expected["one"][text])["root"]["fields"]["totalCount"], text
            assert expected["one"][text] != expected["other"][text]

        def judge(text: str, settled: str, status: int, body: bytes) -> bool:
            names = [settled] if settled else list(expected)
            return status == 200 and any(body == expected[name][text] for name in names)

        with load(service.url, judge, "one") as clients:
            for name in ("other", "one", "other"):
                planned = by_plans(service)
                until_asked(clients, CONNECTIONS * AT_ONCE)
                assert by_plans(service) > planned
                clients.change_to("")
                active(service.deploy({**FILES[name], **overrides()}))
                clients.change_to(name)
            planned = by_plans(service)
            until_asked(clients, CONNECTIONS * AT_ONCE)
            assert by_plans(service) > planned


def test_a_restart_while_plans_run(tmp_path: Path) -> None:
    """Every answer is what it is at other times."""
    with deployed_service(tmp_path / "data") as service:
        active(service.deploy(FILES["one"]))
        feed(service)
        expected = answers_of(service)
        with load(service.url, lambda text, _, status, body: (status, body) == (200, expected[text]), "") as clients:
            for _ in range(3):
                url = service.application_url() + "/restart"
                assert web.post(url, params={"clusterType": "content"}, timeout=60).status_code == 200
                until_asked(clients, CONNECTIONS * AT_ONCE)
                assert by_plans(service) > 0


def judge_of_what_goes(expected: Mapping[str, bytes], *refusals: int) -> Judge:
    """Answers are the expected ones while all is as it was, and refusals when it is gone; either of them between.

    Documents that are removed between being found and being shown are then hits without fields, as they always are.
    """

    def judge(text: str, settled: str, status: int, body: bytes) -> bool:
        if settled == "one":
            return (status, body) == (200, expected[text])
        if status in refusals:
            return True
        return settled != "gone" and status == 200 and ranked(body) == ranked(expected[text])

    return judge


def ranked(body: bytes) -> object:
    """What an answer says but for the fields of its hits."""
    root = orjson.loads(body)["root"]
    hits = [hit["relevance"] for hit in root.get("children", ())]
    return root.get("errors"), root["fields"], root.get("coverage"), hits


def test_a_document_type_goes_while_plans_search_it(tmp_path: Path) -> None:
    """Queries for it have the answer of before, or the error that it is not there."""
    with deployed_service(tmp_path / "data") as service:
        active(service.deploy(FILES["one"]))
        feed(service)
        with load(service.url, judge_of_what_goes(answers_of(service), 400), "one") as clients:
            until_asked(clients, CONNECTIONS * AT_ONCE)
            assert by_plans(service) > 0
            clients.change_to("")
            active(service.deploy({**BOOK, **overrides()}))
            clients.change_to("gone")
            until_asked(clients, CONNECTIONS * AT_ONCE)


def test_an_application_is_deleted_while_plans_search_it(tmp_path: Path) -> None:
    """Queries have the answer of before, or the error that no application is there. It can be deployed again."""
    with deployed_service(tmp_path / "data") as service:
        active(service.deploy(FILES["one"]))
        feed(service)
        expected = answers_of(service)
        with load(service.url, judge_of_what_goes(expected, 404, 503), "one") as clients:
            until_asked(clients, CONNECTIONS * AT_ONCE)
            assert by_plans(service) > 0
            clients.change_to("")
            url = f"{service.config_url}/application/v2/tenant/default/application/default"
            assert web.delete(url, timeout=60).status_code == 200
            clients.change_to("gone")
            until_asked(clients, CONNECTIONS * AT_ONCE)
        active(service.deploy(FILES["one"]))
        feed(service)
        assert answers_of(service) == expected
