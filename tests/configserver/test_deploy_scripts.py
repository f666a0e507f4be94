"""Conversations with the config server, without sockets: every file in `scripts/` is one, on a fresh server.

A case is a request, `---`, and the answer: status, content type, body (JSON is compared as JSON, keys in
order). `@name` is the body of a package of `deploy_fixtures`. Cases are divided by `===`. To write the answers anew:
`PAPERWASP_WRITE_SCRIPTS=1 pytest tests/configserver` and read the difference.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from deploy_fixtures import CLOCK, PACKAGES, ask, config_server

from paperwasp.configserver import ConfigServerApp
from paperwasp.http.messages import Request, Response

SCRIPTS = Path(__file__).parent / "scripts"


@pytest.mark.parametrize("path", sorted(SCRIPTS.glob("*.txt")), ids=lambda path: path.stem)
def test_script(path: Path, tmp_path: Path) -> None:
    app = ConfigServerApp(config_server(tmp_path), environment=CLOCK)
    told: list[str] = []
    expected: list[str] = []
    try:
        for case in path.read_text().split("\n===\n"):
            asked, _, answer = case.partition("\n---\n")
            told.append(f"{asked}\n---\n{written(ask(app, request_of(asked)))}")
            expected.append(f"{asked}\n---\n{answer.strip()}")
    finally:
        app.close()
    if os.environ.get("PAPERWASP_WRITE_SCRIPTS"):
        path.write_text("\n===\n".join(told) + "\n")
    assert told == expected


def request_of(text: str) -> Request:
    lines = [line for line in text.strip().splitlines() if not line.startswith("#")]
    method, _, target = lines[0].partition(" ")
    path, _, query = target.partition("?")
    headers: dict[str, str] = {}
    body = b""
    for line in lines[1:]:
        if line.startswith("@"):
            body = PACKAGES[line[1:]]
            headers.setdefault("content-type", "application/zip")
        else:
            name, _, value = line.partition(":")
            headers[name.strip().lower()] = value.strip()
    return Request(method, path, query, headers, body, host="localhost:19071")


def written(response: Response) -> str:
    body = response.body.decode().strip()
    if response.content_type == "application/json":
        body = json.dumps(json.loads(body), indent=1, ensure_ascii=False)
    return f"{response.status} {response.content_type}\n{body}".strip()
