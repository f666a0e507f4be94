"""The golden scripts of queries, asked in process and over HTTP: all but times is the same."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import orjson
import pytest

import paperwasp
from paperwasp.http.messages import Request
from tests.service.query_scripts import SCRIPTS, TIMES


@pytest.fixture(scope="module")
def service() -> Iterator[paperwasp.Service]:
    with paperwasp.Service(SCRIPTS / "application", port=0) as service:
        operations = [orjson.loads(line) for line in (SCRIPTS / "documents.jsonl").read_text().splitlines()]
        assert service.feed(operations).failed == 0
        yield service


def _requests(script: Path) -> Iterator[Request]:
    for case in script.read_text().strip().split("\n\n"):
        lines = [line for line in case.partition("\n---")[0].splitlines() if not line.startswith("#")]
        if not lines or lines[0].split()[0] in ("GET", "POST"):
            continue
        body = {"timeout": "20s", **dict(line.split("=", 1) for line in lines[1:])}
        if lines[0] != "query":
            body["yql"] = f"select * from music {lines[0]}" if lines[0].startswith("where") else lines[0]
        yield Request("POST", "/search/", "", {"content-type": "application/json"}, orjson.dumps(body))


@pytest.mark.parametrize("script", sorted(SCRIPTS.glob("*.txt")), ids=lambda path: path.stem)
def test_script(service: paperwasp.Service, script: Path) -> None:
    asked = 0
    with httpx.Client(base_url=service.url, timeout=30) as client:
        for request in _requests(script):
            here = service.request(request)
            there = client.request(
                request.method, request.raw_path, content=request.body, headers=dict(request.headers)
            )
            assert (here.status, here.content_type) == (there.status_code, there.headers["content-type"])
            assert _timeless(orjson.loads(here.body)) == _timeless(there.json())
            asked += 1
    assert asked or "GET" in script.read_text()
    assert urlsplit(service.url).hostname == "127.0.0.1"


def _timeless(value: object) -> object:
    if isinstance(value, dict):
        return {name: "…" if name in TIMES else _timeless(each) for name, each in value.items()}
    return [_timeless(each) for each in value] if isinstance(value, list) else value
