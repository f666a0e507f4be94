"""The real Vespa CLI against the whole service: deploy, status, documents, feed, query.

The binary inside the wheel is run, because the wheel's wrapper swallows exit codes.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import vespacli

from tests.service.music import write_package
from tests.service.running import RunningService, running_service

pytestmark = pytest.mark.clients
DOCUMENTS = 500


def binary() -> Path:
    machine = {"x86_64": "amd64", "aarch64": "arm64", "arm64": "arm64"}[platform.machine()]
    folder = Path(vespacli.__file__).parent / "go-binaries"
    found = sorted(folder.glob(f"*_{platform.system().lower()}_{machine}/bin/vespa"))
    if not found:
        pytest.skip("the wheel has no Vespa CLI for this machine")
    return found[0]


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    with running_service(tmp_path_factory.mktemp("cli") / "data") as running:
        yield running


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("home")


def vespa(home: Path, target: str, *arguments: str, fails: bool = False) -> str:
    environment = {**os.environ, "VESPA_CLI_HOME": str(home), "VESPA_CLI_QUIET": "false", "NO_COLOR": "1"}
    run = subprocess.run(
        [str(binary()), *arguments, "-t", target], capture_output=True, text=True, timeout=120, env=environment
    )
    assert (run.returncode != 0) == fails, run.stdout + run.stderr
    return run.stdout + run.stderr


def test_the_tour(service: RunningService, home: Path, tmp_path: Path) -> None:
    application = write_package(tmp_path / "music")
    assert "Success" in vespa(home, service.config_url, "deploy", "--wait", "60", str(application))
    assert "ready" in vespa(home, service.config_url, "status", "deploy")
    assert "ready" in vespa(home, service.url, "status")

    put = json.dumps({"put": "id:ns:music::a/b c", "fields": {"title": "Giant Steps", "year": 1960}})
    (tmp_path / "put.json").write_text(put)
    assert "Success" in vespa(home, service.url, "document", "put", str(tmp_path / "put.json"))
    assert "Giant Steps" in vespa(home, service.url, "document", "get", "id:ns:music::a/b c")
    update = json.dumps({"update": "id:ns:music::a/b c", "fields": {"year": {"assign": 1959}}})
    (tmp_path / "update.json").write_text(update)
    vespa(home, service.url, "document", "update", str(tmp_path / "update.json"))
    assert "1959" in vespa(home, service.url, "document", "get", "id:ns:music::a/b c")
    found = vespa(home, service.url, "query", "select * from music where userQuery()", "query=giant")
    assert json.loads(found)["root"]["fields"]["totalCount"] == 1
    assert "Success" in vespa(home, service.url, "document", "remove", "id:ns:music::a/b c")
    assert "Success" in vespa(home, service.url, "document", "remove", "id:ns:music::a/b c")
    vespa(home, service.url, "document", "get", "id:ns:music::a/b c", fails=True)
    assert "400" in vespa(home, service.url, "query", "select * from music where nothere contains 'x'", fails=True)


def test_feeding(service: RunningService, home: Path, tmp_path: Path) -> None:
    application = write_package(tmp_path / "music")
    vespa(home, service.config_url, "deploy", "--wait", "60", str(application))
    lines = [
        {
            "put": f"id:ns:music:{'' if n % 3 else f'g=group {n}'}:{n}/é x",
            "fields": {"title": f"Song {n} " * 100, "year": n},
        }
        for n in range(DOCUMENTS)
    ]
    feed = tmp_path / "feed.jsonl"
    feed.write_text("\n".join(map(json.dumps, lines)))
    summary = json.loads(vespa(home, service.url, "feed", str(feed)))
    assert summary["feeder.ok.count"] == DOCUMENTS
    assert summary["feeder.error.count"] == 0
    assert summary["http.response.error.count"] == 0
    found = json.loads(vespa(home, service.url, "query", "select * from music where true", "hits=1"))
    assert found["root"]["fields"]["totalCount"] == DOCUMENTS
    by_year = "all(group(year % 2) order(max(year % 2)) each(output(count())))"
    grouped = json.loads(vespa(home, service.url, "query", f"select * from music where true limit 0 | {by_year}"))
    (years,) = grouped["root"]["children"][0]["children"]
    assert [(year["value"], year["fields"]["count()"]) for year in years["children"]] == [("0", 250), ("1", 250)]
    broken = tmp_path / "broken.jsonl"
    broken.write_text(json.dumps({"put": "id:ns:music::1", "fields": {"year": "soon"}}))
    told = vespa(home, service.url, "feed", str(broken))
    assert '"http.response.code.counts": {\n    "400": 1' in told


def test_profiles_are_read_and_explanations_passed_on(service: RunningService, home: Path, tmp_path: Path) -> None:
    application = write_package(tmp_path / "music")
    vespa(home, service.config_url, "deploy", "--wait", "60", str(application))
    (tmp_path / "put.json").write_text(json.dumps({"put": "id:ns:music::why", "fields": {"title": "why", "year": 1}}))
    vespa(home, service.url, "document", "put", str(tmp_path / "put.json"))
    file = str(tmp_path / "profile.json")
    yql = "select * from music where title contains 'why' and year < 2"
    vespa(home, service.url, "query", "--profile", "--profile-file", file, yql, "timeout=20s")
    told = vespa(home, service.url, "inspect", "profile", "-f", file)
    assert "first phase rank profiling for thread #0" in told
    assert "top_k" in told
    explained = vespa(home, service.url, "query", yql, "timeout=20s", "trace.level=1", "trace.explainLevel=1")
    [hit] = json.loads(explained)["root"]["children"]
    assert hit["explanation"]["phases"][0]["score"] == hit["relevance"]


def test_a_broken_package_is_explained(service: RunningService, home: Path, tmp_path: Path) -> None:
    application = write_package(tmp_path / "music")
    (application / "schemas" / "music.sd").write_text(
        "schema music {\n  document music {\n    fied x type int {}\n  }\n}"
    )
    told = vespa(home, service.config_url, "deploy", str(application), fails=True)
    assert "invalid application package" in told
    assert "line 3" in told


def test_visiting(service: RunningService, home: Path, tmp_path: Path) -> None:
    """`vespa visit` in both forms; what it writes, fed to a second service, is the same corpus there."""
    application = write_package(tmp_path / "music")
    vespa(home, service.config_url, "deploy", "--wait", "60", str(application))
    names = [f"{'' if n % 3 else f'g=group {n}'}:{n}/é x" for n in range(DOCUMENTS)]
    lines = [
        {"put": f"id:visits:music:{name}", "fields": {"title": f"Song {name}", "year": n, "tags": ["a", "é"]}}
        for n, name in enumerate(names)
    ]
    (tmp_path / "feed.jsonl").write_text("\n".join(map(json.dumps, lines)))
    vespa(home, service.url, "feed", str(tmp_path / "feed.jsonl"))
    selection = ("--selection", "id.namespace == 'visits'")

    def visited(target: str, *arguments: str) -> dict[str, object]:
        written = vespa(home, target, "visit", *arguments, *selection).splitlines()
        documents = [json.loads(line) for line in written]
        found = {document["id"]: document["fields"] for document in documents}
        assert len(found) == len(documents)
        return found

    whole = visited(service.url)
    assert whole == {line["put"]: line["fields"] for line in lines}
    assert visited(service.url, "--chunk-count", "37") == whole
    assert visited(service.url, "--stream") == whole
    assert visited(service.url, "--stream", "--chunk-count", "37", "--content-cluster", "records") == whole
    slices = [visited(service.url, "--slices", "3", "--slice-id", str(number)) for number in range(3)]
    assert {id: fields for part in slices for id, fields in part.items()} == whole
    assert sum(map(len, slices)) == len(whole)
    assert visited(service.url, "--field-set", "music:year")[f"id:visits:music:{names[1]}"] == {"year": 1}
    assert "no content cluster" in vespa(home, service.url, "visit", "--content-cluster", "nothing", fails=True)

    with running_service(tmp_path / "second") as second:
        vespa(home, second.config_url, "deploy", "--wait", "60", str(application))
        (tmp_path / "copy.jsonl").write_text(vespa(home, service.url, "visit", *selection))
        vespa(home, second.url, "feed", str(tmp_path / "copy.jsonl"))
        assert visited(second.url) == whole
