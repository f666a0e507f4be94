"""An application changes again and again while clients query and feed it over HTTP: no request fails, documents stay.

Each step deploys the next package of a list, which goes round. After each deployment the service must answer as the new
package says; between two of them, as one of the two.
"""

from __future__ import annotations

import http.client
import itertools
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

import httpx
import orjson
import pytest

from tests import web
from tests.service.in_process import Deployed, active, deployed_service

ROUNDS = int(os.environ.get("PAPERWASP_LIVE_ROUNDS", "1"))
DOCUMENTS = 200
FEEDERS = 2
QUERIERS = 2
SOON_SECONDS = 60
ALLOWED = ("schema-removal", "content-cluster-removal", "indexing-change", "field-type-change")


def services(*types: str, more: str = "", container: str = "<search/><document-api/>") -> str:
    documents = "".join(f'<document type="{name}" mode="index"/>' for name in types)
    nodes = '<nodes><node hostalias="n" distribution-key="0"/></nodes>'
    return (
        f'<services version="1.0"><container id="default" version="1.0">{container}</container>'
        f'<content id="records" version="1.0"><redundancy>1</redundancy><documents>{documents}</documents>{nodes}'
        f"</content>{more}</services>"
    )


def schema(fields: str = "", profile: str = "attribute(year)", extra: str = "", title: str = "") -> str:
    return f"""schema music {{
      document music {{
        field title type string {{ indexing: summary | index {title} }}
        field year type int {{ indexing: summary | attribute }}
        {fields}
      }}
      fieldset default {{ fields: title }}
      rank-profile default {{ first-phase {{ expression: {profile} }} }}
      {extra}
    }}"""


MOOD = "field mood type string { indexing: summary | attribute }"
MOOD_INDEX = "field mood type string { indexing: summary | index }"
MADE = "field made type string { indexing: input title | lowercase | attribute | summary }"
BOOK = "schema book { document book { field title type string { indexing: summary | index } } }"
SHORT = "document-summary short { summary year {} }"
SECOND = (
    '<content id="library" version="1.0"><redundancy>1</redundancy><documents><document type="book" mode="index"/>'
    '</documents><nodes><node hostalias="n" distribution-key="0"/></nodes></content>'
)


def package_files(services_xml: str, music: str, **more: str) -> dict[str, str]:
    return {"services.xml": services_xml, "schemas/music.sd": music, **more}


def overrides() -> dict[str, str]:
    until = (datetime.now(UTC).date() + timedelta(days=20)).isoformat()
    allowed = "".join(f'<allow until="{until}">{name}</allow>' for name in ALLOWED)
    return {"validation-overrides.xml": f"<validation-overrides>{allowed}</validation-overrides>"}


def profile_files(hits: int) -> dict[str, str]:
    profile = f'<query-profile id="default"><field name="hits">{hits}</field></query-profile>'
    return {"search/query-profiles/default.xml": profile}


@dataclass
class Load:
    """Clients that query and feed without a pause, and all that did not go as it should."""

    url: str
    failures: list[str] = field(default_factory=list)
    queries: int = 0
    puts: int = 0
    seen: set[Any] = field(default_factory=set)
    stop: threading.Event = field(default_factory=threading.Event)

    def query(self) -> None:
        parameters = {"yql": "select * from music where year > 0", "hits": "1", "timeout": "20s"}
        path = "/search/?" + urlencode(parameters)

        def once(connection: http.client.HTTPConnection) -> None:
            connection.request("GET", path)
            answer = orjson.loads(connection.getresponse().read())
            root = answer["root"]
            if "errors" in root or root["fields"]["totalCount"] < DOCUMENTS:
                self.failures.append(f"query: {answer}")
            else:
                self.seen.add(root["children"][0]["relevance"])
            self.queries += 1

        self._repeat(once)

    def feed(self, number: int) -> None:
        counter = itertools.count()

        def once(connection: http.client.HTTPConnection) -> None:
            name = f"load-{number}-{next(counter) % 50}"
            body = orjson.dumps({"fields": {"title": f"load {name}", "year": 1}})
            connection.request("POST", f"/document/v1/ns/music/docid/{name}", body)
            response = connection.getresponse()
            content = response.read()
            if response.status != 200:
                self.failures.append(f"put: {response.status} {content!r}")
            self.puts += 1

        self._repeat(once)

    def _repeat(self, once: Callable[[http.client.HTTPConnection], None]) -> None:
        connection = http.client.HTTPConnection(urlsplit(self.url).netloc, timeout=30)
        try:
            while not self.stop.is_set():
                once(connection)
        except Exception as error:  # told by the test
            self.failures.append(repr(error))
        finally:
            connection.close()


@contextmanager
def load(url: str) -> Iterator[Load]:
    running = Load(url)
    threads = [threading.Thread(target=running.query) for _ in range(QUERIERS)]
    threads += [threading.Thread(target=running.feed, args=(number,)) for number in range(FEEDERS)]
    for thread in threads:
        thread.start()
    try:
        yield running
    finally:
        running.stop.set()
        for thread in threads:
            thread.join()


def search(service: Deployed, yql: str, **parameters: str) -> dict[str, Any]:
    answer = web.get(f"{service.url}/search/", params={"yql": yql, "timeout": "20s", **parameters}, timeout=30)
    root: dict[str, Any] = answer.json()["root"]
    return root


def feed(service: Deployed, files: dict[str, str]) -> None:
    active(service.deploy(files))
    with httpx.Client(base_url=service.url, timeout=30) as client:
        for number in range(DOCUMENTS):
            fields = {"title": f"Blue Trains {number}", "year": 1900 + number}
            assert client.post(f"/document/v1/ns/music/docid/{number}", json={"fields": fields}).status_code == 200


def wait_for_reindexing(service: Deployed) -> None:
    """Until no document type is pending or running."""
    end = threading.Event()
    for _ in range(SOON_SECONDS * 10):
        answer = web.get(service.application_url() + "/reindexing", timeout=30).json()
        ready = [status for cluster in answer["clusters"].values() for status in cluster["ready"].values()]
        pending = [name for cluster in answer["clusters"].values() for name in cluster["pending"]]
        assert not any(status.get("state") == "failed" for status in ready), answer
        if not pending and all(status.get("state", "successful") == "successful" for status in ready):
            return
        end.wait(0.1)
    raise AssertionError(f"reindexing did not end: {answer}")


YEARS = "select * from music where year >= 1900"


def check_fields(service: Deployed) -> None:
    answer = web.put(service.url + "/document/v1/ns/music/docid/7", json={"fields": {"mood": {"assign": "calm"}}})
    assert answer.status_code == 200, answer.text
    assert search(service, "select * from music where mood contains 'calm'")["fields"]["totalCount"] == 1


def check_no_field(service: Deployed) -> None:
    assert "errors" in search(service, "select * from music where mood contains 'calm'")
    answer = web.put(service.url + "/document/v1/ns/music/docid/7", json={"fields": {"mood": {"assign": "calm"}}})
    assert answer.status_code == 400


def check_made(service: Deployed) -> None:
    wait_for_reindexing(service)
    found = search(service, "select * from music where made contains 'blue trains 7'")
    assert found["fields"]["totalCount"] == 1


def check_not_made(service: Deployed) -> None:
    assert "errors" in search(service, "select * from music where made contains 'blue trains 7'")


def relevance(expected: float) -> Callable[[Deployed], None]:
    def check(service: Deployed) -> None:
        found = search(service, "select * from music where year = 1950")["children"][0]["relevance"]
        assert found == expected

    return check


def check_summary(service: Deployed) -> None:
    fields = search(service, "select * from music where year = 1950", summary="short")["children"][0]["fields"]
    assert fields.get("year") == 1950
    assert "title" not in fields


def check_no_summary(service: Deployed) -> None:
    assert "errors" in search(service, YEARS, summary="short")


def check_books(service: Deployed) -> None:
    answer = web.post(service.url + "/document/v1/ns/book/docid/1", json={"fields": {"title": "Emma"}})
    assert answer.status_code == 200, answer.text
    assert search(service, "select * from book where title contains 'emma'")["fields"]["totalCount"] == 1


def check_no_books(service: Deployed) -> None:
    assert "errors" in search(service, "select * from book where true")
    assert web.get(service.url + "/document/v1/ns/book/docid/1").status_code == 404


def check_stemming(stemmed: bool) -> Callable[[Deployed], None]:
    def check(service: Deployed) -> None:
        wait_for_reindexing(service)
        found = search(service, "select * from music where title contains 'train'")["fields"]["totalCount"]
        assert found == (DOCUMENTS if stemmed else 0)

    return check


def check_hits(hits: int) -> Callable[[Deployed], None]:
    def check(service: Deployed) -> None:
        assert len(search(service, YEARS)["children"]) == hits

    return check


MUSIC = services("music")
CHANGES: dict[str, list[tuple[dict[str, str], Callable[[Deployed], None]]]] = {
    "rank profile": [
        (package_files(MUSIC, schema(profile="attribute(year) * 2")), relevance(3900)),
        (package_files(MUSIC, schema()), relevance(1950)),
    ],
    "field and attribute": [
        (package_files(MUSIC, schema(MOOD)), check_fields),
        (package_files(MUSIC, schema()), check_no_field),
    ],
    "index": [
        (package_files(MUSIC, schema(MOOD_INDEX)), check_fields),
        (package_files(MUSIC, schema()), check_no_field),
    ],
    "attribute and index of one field": [
        (package_files(MUSIC, schema(MOOD)), check_fields),
        (package_files(MUSIC, schema(MOOD_INDEX)), wait_for_reindexing),
    ],
    "field outside the document": [
        (package_files(MUSIC, schema(extra=MADE)), check_made),
        (package_files(MUSIC, schema()), check_not_made),
    ],
    "summary": [
        (package_files(MUSIC, schema(extra=SHORT)), check_summary),
        (package_files(MUSIC, schema()), check_no_summary),
    ],
    "reindexing": [
        (package_files(MUSIC, schema(title="\nstemming: none")), check_stemming(False)),
        (package_files(MUSIC, schema()), check_stemming(True)),
    ],
    "document type": [
        (package_files(services("music", "book"), schema(), **{"schemas/book.sd": BOOK}), check_books),
        (package_files(MUSIC, schema()), check_no_books),
    ],
    "content cluster": [
        (package_files(services("music", more=SECOND), schema(), **{"schemas/book.sd": BOOK}), check_books),
        (package_files(MUSIC, schema()), check_no_books),
    ],
    "query profile": [
        (package_files(MUSIC, schema(), **profile_files(3)), check_hits(3)),
        (package_files(MUSIC, schema(), **profile_files(7)), check_hits(7)),
        (package_files(MUSIC, schema()), check_hits(10)),
    ],
}


@pytest.mark.parametrize("kind", CHANGES)
def test_no_request_fails_while_an_application_changes(tmp_path: Path, kind: str) -> None:
    with deployed_service(tmp_path / "data") as service:
        feed(service, package_files(MUSIC, schema()))
        with load(service.url) as clients:
            for files, check in CHANGES[kind] * (ROUNDS + 1):
                active(service.deploy({**files, **overrides()}))
                check(service)
                assert search(service, YEARS)["fields"]["totalCount"] == DOCUMENTS
                before = clients.queries, clients.puts
                while not clients.failures and (clients.queries == before[0] or clients.puts == before[1]):
                    clients.stop.wait(0.01)
        assert clients.failures == []
        if kind == "rank profile":
            assert len(clients.seen) > 1
    with deployed_service(tmp_path / "data") as service:
        assert search(service, YEARS)["fields"]["totalCount"] == DOCUMENTS
        answer = web.get(service.url + "/document/v1/ns/music/docid/3").json()
        assert (answer["fields"]["title"], answer["fields"]["year"]) == ("Blue Trains 3", 1903)


def test_requests_for_what_goes_are_answered_or_refused_but_never_fail(tmp_path: Path) -> None:
    """Clients that go on using a field, an index and a document type while these come and go."""
    with_all = package_files(services("music", "book"), schema(MOOD_INDEX), **{"schemas/book.sd": BOOK})
    without = package_files(MUSIC, schema())
    requests = [
        ("POST", "/document/v1/ns/music/docid/x", {"fields": {"title": "x", "mood": "calm"}}),
        ("PUT", "/document/v1/ns/music/docid/x", {"fields": {"mood": {"assign": "calm"}}}),
        ("POST", "/document/v1/ns/book/docid/x", {"fields": {"title": "Emma"}}),
        ("GET", "/document/v1/ns/book/docid/x", None),
        ("POST", "/search/", {"yql": "select * from music where mood contains 'calm'", "timeout": "20s"}),
        ("POST", "/search/", {"yql": "select * from sources * where title contains 'emma'", "timeout": "20s"}),
        ("POST", "/search/", {"yql": "select * from book where true", "timeout": "20s"}),
    ]
    with deployed_service(tmp_path / "data") as service:
        active(service.deploy({**without, **overrides()}))
        done = threading.Event()
        wrong: list[str] = []
        seen: set[int] = set()

        def ask(method: str, path: str, body: dict[str, Any] | None) -> None:
            with httpx.Client(base_url=service.url, timeout=60) as client:
                while not done.is_set():
                    answer = client.request(method, path, json=body)
                    seen.add(answer.status_code)
                    if answer.status_code not in (200, 400, 404):
                        wrong.append(f"{method} {path} {body}: {answer.status_code} {answer.text}")

        threads = [threading.Thread(target=ask, args=request) for request in requests]
        for thread in threads:
            thread.start()
        for _ in range(4 * ROUNDS):
            active(service.deploy({**with_all, **overrides()}))
            active(service.deploy({**without, **overrides()}))
        done.set()
        for thread in threads:
            thread.join()
        assert wrong == []
        assert {200, 400} <= seen
