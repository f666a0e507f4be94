"""Conversations with the config server, without sockets: every file in `scripts/` is one, on a fresh server.

A case is a request, `---`, and the answer: status, content type, body (JSON is compared as JSON, keys in
order). Cases are divided by `===`. TENANT and APP stand for the paths of the default tenant and application. After the
first line of a request come headers, and its body: `@name` is a package of `deploy_fixtures`, `@form name {…}` the same
as a form with parameters, `> …` a line of text. `* reindex` is no request: one chunk is reindexed of all types whose
turn it is; `* fail …` has that and activations fail from there on, `* fail` no more. To write the answers anew:
`PAPERWASP_WRITE_SCRIPTS=1 pytest tests/configserver` and read the difference.
"""

from __future__ import annotations

import json
import logging
import os
import re
from pathlib import Path

import pytest

from paperwasp.configserver import ConfigServerApp, ServiceLog
from paperwasp.errors import NoSpace
from paperwasp.http.messages import Request, Response
from tests.configserver.deploy_fixtures import PACKAGES, Service, ask, config_app, config_server

SCRIPTS = Path(__file__).parent / "scripts"
BOUNDARY = "b"
TENANT = "/application/v2/tenant/default"
APP = f"{TENANT}/application/default/environment/prod/region/default/instance/default"


@pytest.mark.parametrize("path", sorted(SCRIPTS.glob("*.txt")), ids=lambda path: path.stem)
def test_script(path: Path, tmp_path: Path) -> None:
    talk = Talk(tmp_path)
    told: list[str] = []
    expected: list[str] = []
    try:
        for case in path.read_text().split("\n===\n"):
            asked, _, answer = case.partition("\n---\n")
            told.append(f"{asked}\n---\n{talk.answer(asked)}")
            expected.append(f"{asked}\n---\n{answer.strip()}")
    finally:
        talk.close()
    if os.environ.get("PAPERWASP_WRITE_SCRIPTS"):
        path.write_text("\n===\n".join(told) + "\n")
    assert told == expected


class Talk:
    """A config server with everything around it, and what is said to it."""

    def __init__(self, directory: Path) -> None:
        self.service = Service(chunks=2)
        self.server = config_server(directory / "config", self.service)
        self.logs = ServiceLog(directory / "logs", "myhost")
        for second, message in enumerate(("one", "two\nlines", "three")):
            record = logging.LogRecord("paperwasp.container.app", logging.WARNING, "", 0, message, (), None)
            record.created, record.process, record.thread = 1_763_633_000.5 + second, 7, 8
            self.logs.handle(record)
        self.app: ConfigServerApp = config_app(self.server, self.service, self.logs)

    def answer(self, asked: str) -> str:
        lines = [line for line in asked.strip().splitlines() if not line.startswith("#")]
        command, _, rest = lines[0].partition(" ")
        if command != "*":
            return written(ask(self.app, request_of(lines)))
        if rest == "reindex":
            self.server._reindexer.step()
        else:
            message = rest.removeprefix("fail").strip()
            self.service.error = self.service.chunk_error = NoSpace(message) if message else None
        return "done"

    def close(self) -> None:
        self.app.close()
        self.logs.close()


def request_of(lines: list[str]) -> Request:
    method, _, target = lines[0].partition(" ")
    target = re.sub("^APP", APP, re.sub("^TENANT", TENANT, target))
    path, _, query = target.partition("?")
    headers: dict[str, str] = {}
    body = b""
    for line in lines[1:]:
        if line.startswith("@form "):
            _, name, parameters = line.split(" ", 2)
            body = form(parameters.encode(), PACKAGES[name])
            headers.setdefault("content-type", f"multipart/form-data; boundary={BOUNDARY}")
        elif line.startswith("@"):
            body = PACKAGES[line[1:]]
            headers.setdefault("content-type", "application/zip")
        elif line.startswith(">"):
            body += line[2:].encode() + b"\n"
        else:
            name, _, value = line.partition(":")
            headers[name.strip().lower()] = value.strip()
    return Request(method, path, query, headers, body, host="localhost:19071")


def form(parameters: bytes, package: bytes) -> bytes:
    parts = (("prepareParams", b"application/json", parameters), ("applicationPackage", b"application/zip", package))
    body = b""
    for name, content_type, content in parts:
        head = f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="{name}"\r\n'.encode()
        body += head + b"Content-Type: " + content_type + b"\r\n\r\n" + content + b"\r\n"
    return body + f"--{BOUNDARY}--\r\n".encode()


def written(response: Response) -> str:
    body = response.body.decode().strip()
    if response.content_type == "application/json":
        body = json.dumps(json.loads(body), indent=1, ensure_ascii=False)
    return f"{response.status} {response.content_type}\n{body}".strip()
