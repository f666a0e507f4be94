"""Single documents through the real clients: conditions, create, groups and every kind of change.

pyvespa in its three ways (one by one, threads, asyncio over HTTP/2), and the Vespa CLI with `document` and `feed`.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from vespa.application import Vespa
from vespa.exceptions import VespaError
from vespa.io import VespaResponse

from tests import web
from tests.real_clients.test_vespa_cli import vespa as run_cli
from tests.service.music import package
from tests.service.running import RunningService, running_service

pytestmark = pytest.mark.clients
DEPLOY = "/application/v2/tenant/default/prepareandactivate"
TOKEN = "TEST_AND_SET_CONDITION_FAILED"


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    with running_service(tmp_path_factory.mktemp("documents") / "data") as running:
        answer = web.post(
            running.config_url + DEPLOY, content=package(), headers={"Content-Type": "application/zip"}, timeout=60
        )
        assert answer.status_code == 200, answer.text
        yield running


@pytest.fixture
def app(service: RunningService) -> Vespa:
    host, _, port = service.url.rpartition(":")
    connected = Vespa(url=host, port=int(port))
    connected.wait_for_application_up(max_wait=30)
    return connected


def fields(app: Vespa, name: str, **options: Any) -> Any:
    return app.get_data("music", name, **options).json.get("fields")


def test_conditions_and_create_with_pyvespa(app: Vespa) -> None:
    assert app.feed_data_point("music", "c", {"year": 1957}, create=True).is_successful()
    with pytest.raises(VespaError, match=TOKEN):
        app.feed_data_point("music", "c", {"year": 1958}, create=True)
    assert app.update_data("music", "c", {"year": 1958}, condition="music.year==1957").is_successful()
    with pytest.raises(VespaError, match=TOKEN):
        app.update_data("music", "c", {"year": 1959}, condition="music.year==1957")
    with pytest.raises(VespaError, match="line 1, column 1"):
        app.update_data("music", "c", {"year": 1959}, condition="musik.year==1957")
    assert fields(app, "c") == {"year": 1958}
    with pytest.raises(VespaError, match=TOKEN):
        app.delete_data("music", "c", condition="music.year < 1900")
    assert app.delete_data("music", "c", condition="music.year > 1900").is_successful()
    assert fields(app, "c") is None


def test_updates_with_pyvespa(app: Vespa) -> None:
    assert app.update_data("music", "u", {"year": 1957}).is_successful()
    assert fields(app, "u") is None
    assert app.update_data("music", "u", {"year": 1957, "tags": ["a"]}, create=True).is_successful()
    with app.syncio() as session:
        changes = {"year": {"increment": 3}, "tags": {"add": ["b"]}}
        assert session.update_data("music", "u", changes, auto_assign=False).is_successful()
        assert session.update_data("music", "u", {"tags[0]": {"assign": "c"}}, auto_assign=False).is_successful()
    assert fields(app, "u") == {"year": 1960, "tags": ["c", "b"]}
    assert fields(app, "u", fieldSet="music:year") == {"year": 1960}


def test_groups_with_pyvespa(app: Vespa) -> None:
    assert app.feed_data_point("music", "g", {"year": 1}, groupname="one").is_successful()
    assert app.feed_data_point("music", "g", {"year": 2}, groupname="other").is_successful()
    assert app.update_data("music", "g", {"year": 3}, groupname="one").is_successful()
    assert app.get_data("music", "g", groupname="one").json["id"] == "id:music:music:g=one:g"
    assert fields(app, "g", groupname="one") == {"year": 3}
    assert app.delete_data("music", "g", groupname="one").is_successful()
    assert fields(app, "g", groupname="one") is None
    assert fields(app, "g", groupname="other") == {"year": 2}


@pytest.mark.parametrize("method", ["feed_iterable", "feed_async_iterable"])
def test_all_operations_of_feeding_with_pyvespa(app: Vespa, method: str) -> None:
    def feed(operation: str, documents: list[dict[str, Any]], **options: Any) -> list[VespaResponse]:
        answers: list[VespaResponse] = []
        getattr(app, method)(
            documents,
            schema="music",
            operation_type=operation,
            callback=lambda answer, _: answers.append(answer),
            **options,
        )
        return answers

    names = [f"{method} {number}" for number in range(20)]
    puts = [{"id": name, "fields": {"year": number}, "groupname": "g"} for number, name in enumerate(names)]
    assert [answer.status_code for answer in feed("feed", puts)] == [200] * 20
    updates = [{"id": name, "fields": {"year": 100}, "groupname": "g"} for name in names]
    answers = feed("update", updates, condition="music.year < 5")
    assert sorted(answer.status_code for answer in answers) == [200] * 5 + [412] * 15
    assert sum(TOKEN in answer.json.get("message", "") for answer in answers) == 15
    assert fields(app, names[4], groupname="g") == {"year": 100}
    assert fields(app, names[5], groupname="g") == {"year": 5}
    removes = [{"id": name, "groupname": "g"} for name in names]
    assert [answer.status_code for answer in feed("delete", removes)] == [200] * 20
    assert fields(app, names[5], groupname="g") is None


def test_all_operations_over_http2_with_pyvespa(app: Vespa) -> None:
    async def run() -> None:
        async with app.asyncio(connections=1) as session:
            puts = (session.feed_data_point("music", f"h{number}", {"year": number}) for number in range(50))
            assert {answer.status_code for answer in await asyncio.gather(*puts)} == {200}
            assert (await session.feed_data_point("music", "h1", {"year": 7}, create=True)).status_code == 412
            assert (await session.update_data("music", "h1", {"year": 8}, create=True)).status_code == 200
            assert (await session.update_data("music", "new", {"year": 9}, create=True)).status_code == 200
            changed = await session.update_data(
                "music", "h2", {"year": {"multiply": 4}}, auto_assign=False, condition="music.year == 2"
            )
            assert changed.status_code == 200
            found = [(await session.get_data("music", name)).json["fields"]["year"] for name in ("h1", "h2", "new")]
            assert found == [8, 8, 9]
            assert (await session.delete_data("music", "h1", condition="music.year == 7")).status_code == 412
            assert (await session.delete_data("music", "h1")).status_code == 200
            assert (await session.get_data("music", "h1")).status_code == 404

    asyncio.run(run())


def test_one_document_after_the_other_with_the_cli(service: RunningService, tmp_path: Path) -> None:
    def document(command: str, operation: dict[str, Any], fails: bool = False) -> str:
        path = tmp_path / "operation.json"
        path.write_text(json.dumps(operation))
        return run_cli(tmp_path, service.url, "document", command, str(path), fails=fails)

    def year() -> int:
        told = run_cli(tmp_path, service.url, "document", "get", "id:ns:music:n=5:x", "--field-set", "music:year")
        return int(json.loads(told)["fields"]["year"])

    id_ = "id:ns:music:n=5:x"
    document("put", {"put": id_, "create": True, "fields": {"year": 1957}})
    document("put", {"put": id_, "create": True, "fields": {"year": 1}}, fails=True)
    assert year() == 1957
    document("put", {"put": id_, "condition": "music.year == 1957", "fields": {"year": 1958}})
    document("put", {"put": id_, "condition": "music.year == 1957", "fields": {"year": 1}}, fails=True)
    document("update", {"update": id_, "condition": "music.year == 1958", "fields": {"year": {"increment": 2}}})
    document("update", {"update": id_, "condition": "music.year == 1", "fields": {"year": {"assign": 1}}}, fails=True)
    assert year() == 1960
    document("remove", {"remove": id_, "condition": "music.year == 1"}, fails=True)
    assert year() == 1960
    document("remove", {"remove": id_, "condition": "music.year == 1960"})
    document("update", {"update": id_, "create": True, "fields": {"year": {"assign": 3}}})
    assert year() == 3
    document("remove", {"remove": id_})
    run_cli(tmp_path, service.url, "document", "get", id_, fails=True)
    run_cli(tmp_path, service.url, "document", "get", id_, "--ignore-missing")


def test_all_operations_of_feeding_with_the_cli(service: RunningService, app: Vespa, tmp_path: Path) -> None:
    """Operations on one document are sent in the order of the file."""
    operations: list[dict[str, Any]] = []
    for number in range(200):
        id_ = f"id:music:music::cli {number}"
        operations += [
            {"put": id_, "fields": {"year": number}},
            {"update": id_, "fields": {"year": {"increment": 1000}, "tags": {"add": ["x"]}}},
            {"update": id_, "condition": f"music.year == {1000 + number}", "fields": {"year": {"multiply": 2}}},
            {"update": id_ + " new", "create": True, "fields": {"year": {"assign": number}}},
        ]
        if number % 2:
            operations.append({"remove": id_, "condition": "music.year > 0"})
    feed = tmp_path / "feed.jsonl"
    feed.write_text("\n".join(map(json.dumps, operations)))
    summary = json.loads(run_cli(tmp_path, service.url, "feed", str(feed)))
    assert summary["feeder.ok.count"] == len(operations), summary
    assert fields(app, "cli 10") == {"year": 2020, "tags": ["x"]}
    assert fields(app, "cli 11") is None
    assert fields(app, "cli 11 new") == {"year": 11}
    lines = [{"put": f"id:music:music::cli {number}", "create": True, "fields": {"year": 1}} for number in (10, 11)]
    feed.write_text("\n".join(map(json.dumps, lines)))
    counts = json.loads(run_cli(tmp_path, service.url, "feed", str(feed)))["http.response.code.counts"]
    assert counts == {"200": 1, "412": 1}
