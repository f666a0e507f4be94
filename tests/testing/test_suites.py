"""Vespa's test suites on a service in process: with the same outcome as `vespa test` has on one that serves."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import paperwasp
from paperwasp.testing.suites import BrokenTest, read_suite, read_test, run_suites, run_tests
from tests.children import ROOT
from tests.embedded.music import SCHEMA

FEED = {
    "name": "feed",
    "request": {
        "method": "POST",
        "uri": "/document/v1/n/music/docid/1?timeout=20s",
        "body": {"fields": {"title": "Kind of Blue", "year": 1959}},
    },
}
FIND = {
    "request": {"parameters": {"query": "blue", "yql": "select * from sources * where userQuery()"}},
    "response": {"body": {"root": {"fields": {"totalCount": 1}, "children": [{"fields": {"year": 1959}}]}}},
}
TESTS: dict[str, dict[str, Any]] = {
    "all-is-well.json": {"name": "all is well", "defaults": {"parameters": {"timeout": "20s"}}, "steps": [FEED, FIND]},
    "by-file.json": {"steps": [{"request": {**FEED["request"], "body": "data/body.json"}}, FIND]},  # type: ignore[dict-item]
    "wrong-status.json": {"steps": [FEED, {"name": "none", "request": {"uri": "/document/v1/n/music/docid/9"}}]},
    "right-status.json": {"steps": [{"request": {"uri": "/document/v1/n/music/docid/9"}, "response": {"code": 404}}]},
    "wrong-value.json": {"steps": [FEED, {**FIND, "response": {"body": {"root": {"fields": {"totalCount": 2}}}}}]},
    "missing.json": {"steps": [{**FIND, "response": {"body": {"root": {"absent": {}}}}}]},
    "parameters.json": {
        "defaults": {"parameters": "data/parameters.json"},
        "steps": [{"request": {"uri": "/search/?query=blue"}, "response": {"body": {"root": {"id": "toplevel"}}}}],
    },
}


@pytest.fixture
def application(tmp_path: Path) -> Path:
    """A package with a suite, some of whose tests fail."""
    folder = tmp_path / "app"
    suite = folder / "tests" / "system-test"
    (suite / "data").mkdir(parents=True)
    (folder / "schemas").mkdir()
    (folder / "schemas" / "music.sd").write_text(SCHEMA)
    (folder / "services.xml").write_text(
        '<services version="1.0"><container id="default" version="1.0"><search/><document-api/></container>'
        '<content id="c" version="1.0"><redundancy>1</redundancy><documents><document type="music" mode="index"/>'
        '</documents><nodes><node distribution-key="0" hostalias="h"/></nodes></content></services>'
    )
    (suite / "data" / "body.json").write_text(json.dumps({"fields": {"title": "Blue", "year": 1959}}))
    (suite / "data" / "parameters.json").write_text(json.dumps({"yql": "select * from music where userQuery()"}))
    for name, content in TESTS.items():
        (suite / name).write_text(json.dumps(content))
    return folder


def _paperwasp(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "paperwasp", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=ROOT, check=False)


def test_the_outcome_is_that_of_the_vespa_cli(application: Path, tmp_path: Path) -> None:
    here = _paperwasp("test", application)
    environment = {**os.environ, "VESPA_CLI_HOME": str(tmp_path), "VESPA_CLI_CACHE_DIR": str(tmp_path)}
    with paperwasp.Service(application, port=0) as service:
        command = [
            str(Path(sys.executable).with_name("vespa")),
            "test",
            "--target",
            service.url,
            "--color",
            "never",
            str(application / "tests/system-test"),
        ]
        there = subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment, check=False)
    assert here.returncode == 3, here.stderr + there.stderr  # what PyPI's `vespa` runs ends so; it itself drops it
    assert _outcomes(here.stdout) == _outcomes(there.stdout)
    assert here.stdout.partition("Failure:")[2] == there.stdout.partition("Failure:")[2]
    assert "3 of 7 tests failed" in here.stdout


def _outcomes(shown: str) -> list[tuple[str, ...]]:
    return re.findall(r"^(.*\.json|all is well): (.*)$", shown.partition("Failure:")[0], re.MULTILINE)


def test_what_passes_ends_with_zero(application: Path) -> None:
    done = _paperwasp("test", application, application / "tests/system-test/all-is-well.json")
    assert (done.returncode, done.stdout) == (0, "all is well: .. OK\n\nSuccess: 1 test OK\n")


def test_staging_tests_run_after_an_upgrade(application: Path, tmp_path: Path) -> None:
    for name, steps in (("staging-setup", [FEED]), ("staging-test", [FIND])):
        folder = application / "tests" / name
        folder.mkdir()
        (folder / "one.json").write_text(json.dumps({"steps": steps}))
    for file in (application / "tests/system-test").glob("*.json"):
        if file.name != "right-status.json":
            file.unlink()
    old = tmp_path / "old"
    (old / "schemas").mkdir(parents=True)
    (old / "services.xml").write_text((application / "services.xml").read_text())
    (old / "schemas/music.sd").write_text(SCHEMA.replace("rank-profile near", "rank-profile older"))
    said: list[str] = []
    assert run_suites(application, [], old, said.append)
    assert said == ["right-status.json: . OK", "one.json: . OK", "one.json: . OK", "\nSuccess: 3 tests OK"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "broken.json.*not JSON"),
        ("[]", "at least one step"),
        ('{"steps": []}', "at least one step"),
        ('{"steps": [1]}', "step 1: a step is an object"),
        ('{"steps": 5}', "at least one step in the array"),
        ('{"steps": {"a": {}}}', "at least one step in the array"),
        ('{"name": [1], "steps": [{}]}', r"broken.json: 'name' is a string, and here is \[1\]"),
        ('{"defaults": [1], "steps": [{}]}', "defaults: they are an object"),
        ('{"defaults": {"cluster": 1}, "steps": [{}]}', "defaults: 'cluster' is a string"),
        ('{"steps": [{}, {"name": {}}]}', "step 2: 'name' is a string, and here is {}"),
        ('{"steps": [{"request": {"method": 1}}]}', "step 1: 'method' is a string"),
        ('{"steps": [{"request": {"uri": 5}}]}', "step 1: 'uri' is a string"),
        ('{"steps": [{"request": {"uri": "search/"}}]}', "step 1: a 'uri' is a path, or begins with http.*: 'search/'"),
        ('{"steps": [{"request": {"uri": "file:///etc/passwd"}}]}', "step 1: a 'uri' is a path, or begins with http"),
        ('{"steps": [{"response": {"code": "200"}}]}', 'step 1: a .code. is a number from 100 to 599.*"200"'),
        ('{"steps": [{"response": {"code": 99}}]}', "step 1: a 'code' is a number from 100 to 599.*99"),
        ('{"steps": [{"response": {"code": true}}]}', "step 1: a 'code' is a number from 100 to 599.*true"),
        ("[" * 2000, "broken.json.*not JSON.*line 1 column"),
        ('{"steps": [{"request": 1}]}', "step 1: request and response"),
        ('{"steps": [{"request": {"parameters": {"hits": 1}}}]}', "step 1: parameters .* strings"),
        ('{"defaults": {"parameters": [1]}, "steps": [{}]}', "defaults: parameters"),
        ('{"steps": [{}, {"request": {"body": "absent.json"}}]}', "step 2: could not read .*absent.json"),
        ('{"steps": [{"request": {"body": "/etc/passwd"}}]}', "step 1: '/etc/passwd' is not a file in the folders"),
        ('{"steps": [{"request": {"body": "../../../x.json"}}]}', "is not a file in the folders"),
        ('{"steps": [{"request": {"body": "a/../../b/../../../x.json"}}]}', "is not a file in the folders"),
    ],
)
def test_what_is_no_test_is_refused_with_its_place(tmp_path: Path, content: str, message: str) -> None:
    (tmp_path / "broken.json").write_text(content)
    with pytest.raises(BrokenTest, match=message):
        read_test(tmp_path / "broken.json")


def test_an_application_without_tests_is_refused(application: Path, tmp_path: Path) -> None:
    for wrong, said in ((tmp_path, "has no tests"), (tmp_path / "absent", "There is no application")):
        done = _paperwasp("test", wrong)
        assert done.returncode == 1
        assert said in done.stderr
    (tmp_path / "empty").mkdir()
    with pytest.raises(BrokenTest, match="no test in"):
        read_suite(tmp_path / "empty")


def test_an_answer_that_is_not_json_breaks_the_test(application: Path) -> None:
    path = application / "tests/system-test/html.json"
    path.write_text(json.dumps({"steps": [{"request": {"uri": "/status.html"}, "response": {"body": {}}}]}))
    with paperwasp.Service(application) as service, pytest.raises(BrokenTest, match="not JSON"):
        run_tests(service, [read_test(path)], _ignore)


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        ({"cluster": "other"}, "asks.json, Step 2: There is no container cluster 'other'"),
        ({"uri": "http://[x/"}, r"asks.json, Step 2: no answer from http://\[x/: "),
        ({"uri": "http://127.0.0.1:1/"}, "asks.json, Step 2: no answer from http://127.0.0.1:1/: "),
        ({"uri": "http://127.0.0.1:1/", "method": "A B"}, "asks.json, Step 2: no answer from "),
    ],
)
def test_what_cannot_be_asked_breaks_the_test_with_its_place(
    application: Path, request_: dict[str, str], message: str
) -> None:
    path = application / "asks.json"
    path.write_text(json.dumps({"steps": [FIND, {"request": request_}]}))
    with paperwasp.Service(application) as service, pytest.raises(BrokenTest, match=message):
        service.feed([{"id": "1", "title": "blue", "year": 1959}])
        run_tests(service, [read_test(path)], _ignore)


def _ignore(_: str) -> None:
    pass
