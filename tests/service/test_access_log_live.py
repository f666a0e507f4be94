"""The access log of a running service: a line for each answer, over both protocols, and what a kill leaves of it."""

from __future__ import annotations

import signal
from collections import Counter
from pathlib import Path
from typing import Any

import httpx
import orjson
import pytest

from tests import web
from tests.admin.monitoring.test_log_files import files_in, read
from tests.service.music import FILES, write_package
from tests.service.running import RunningService, running_service

ROUNDS = 40
SECRET = "a-very-secret-word"
QUERY = {"yql": 'select * from music where title contains "blue"', "hits": "2", "api_key": SECRET}


def lines_in(directory: Path) -> list[dict[str, Any]]:
    return [orjson.loads(line) for path in files_in(directory) for line in read(path).splitlines()]


def load(service: RunningService, http2: bool, rounds: int = ROUNDS) -> None:
    headers = {"Authorization": f"Bearer {SECRET}", "User-Agent": "test/1"}
    with httpx.Client(http1=not http2, http2=http2, base_url=service.url, headers=headers, timeout=30) as client:
        for number in range(rounds):
            body = {"fields": {"title": f"Blue {number}", "year": 1957}}
            assert client.post(f"/document/v1/ns/music/docid/{number}", json=body).status_code == 200
            assert client.get("/search/", params=QUERY).status_code == 200
        assert client.get("/document/v1/ns/music/docid/none").status_code == 404


def test_every_answer_has_a_line(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with running_service(data, str(write_package(tmp_path / "music")), "--access-log", "on") as service:
        for http2 in (False, True):
            load(service, http2)
        port = int(service.url.rpartition(":")[2])
        assert service.stop() == 0
    lines = lines_in(data / "logs" / "access")
    kinds = Counter((line["version"], line["method"], line["code"]) for line in lines)
    expected = {("POST", 200): ROUNDS, ("GET", 200): ROUNDS, ("GET", 404): 1}
    assert kinds == {
        (version, *kind): count for version in ("HTTP/1.1", "HTTP/2.0") for kind, count in expected.items()
    }
    assert {(line["localport"], line["agent"], line["ip"]) for line in lines} == {(port, "test/1", "127.0.0.1")}
    found = [line["search"] for line in lines if line["uri"].startswith("/search/")]
    assert [each["totalhits"] for each in found] == [*range(1, ROUNDS + 1), *[ROUNDS] * ROUNDS]
    assert found[5]["hits"] == 2
    assert found[5]["coverage"]["coverage"] == 100
    assert len({line["connection"] for line in lines}) == 2
    assert all(line["responsesize"] > 0 for line in lines)
    assert {line["requestsize"] > 0 for line in lines if line["method"] == "POST"} == {True}
    for path in (data / "logs").rglob("*"):
        if path.is_file():
            assert SECRET.encode() not in read(path), path


@pytest.mark.parametrize(
    ("element", "option", "is_logged"),
    [
        ("", "auto", False),
        ('<accesslog type="json"/>', "auto", True),
        ('<accesslog type="json"/>', "off", False),
        ('<accesslog type="disabled"/>', "auto", False),
        ('<accesslog type="disabled"/>', "on", True),
    ],
)
def test_who_says_whether_there_is_one(tmp_path: Path, element: str, option: str, is_logged: bool) -> None:
    folder = write_package(tmp_path / "music")
    services = FILES["services.xml"].replace("<document-api/>", f"<document-api/>{element}")
    assert element in services
    (folder / "services.xml").write_text(services)
    with running_service(tmp_path / "data", str(folder), "--access-log", option) as service:
        assert web.get(service.url + "/state/v1/health").status_code == 200
        assert service.stop() == 0
    directory = tmp_path / "data" / "logs" / "access"
    assert (directory.is_dir() and len(lines_in(directory)) == 1) == is_logged


@pytest.mark.crash
def test_a_kill_cuts_one_line_at_most(tmp_path: Path) -> None:
    data, package = tmp_path / "data", str(write_package(tmp_path / "music"))
    for _ in range(2):
        with running_service(data, package, "--access-log", "on") as service:
            load(service, http2=False, rounds=30)
            service.stop(signal.SIGKILL)
    with running_service(data, package, "--access-log", "on") as service:
        load(service, http2=True, rounds=1)
        assert service.stop() == 0
    files = files_in(data / "logs" / "access")
    assert [path.suffix for path in files[:-1]] == [".zst"] * (len(files) - 1)
    for path in files:
        *whole, last = read(path).split(b"\n")
        assert all(orjson.loads(line)["code"] in (200, 404) for line in whole)
        assert last == b"" or not last.endswith(b"}")
    assert orjson.loads(read(files[-1]).splitlines()[-1])["code"] == 404
