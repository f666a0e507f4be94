"""Whatever is sent to the config port, the answer is one of the Deploy API, never a defect.

By default some thousand requests; PAPERWASP_FUZZ says how many else.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

from paperwasp import limits
from paperwasp.configserver import ApplicationId, ConfigServerApp
from paperwasp.configserver.repository import SessionRepository
from paperwasp.http.messages import Request
from tests.chance import SEED
from tests.configserver.config_stores import MemoryStore
from tests.configserver.deploy_fixtures import PACKAGES, Service, answer, ask, config_app, config_server, deploy
from tests.configserver.test_deploy_scripts import BOUNDARY, form

REQUESTS = int(os.environ.get("PAPERWASP_FUZZ", "3000"))
UPLOAD = "/application/v2/tenant/default/prepareandactivate"
APP = "/application/v2/tenant/default/application/default/environment/prod/region/default/instance/default"
STATUSES = frozenset((200, 400, 404, 405, 408, 409, 410, 412, 413))
PATHS = [
    "/",
    "/status",
    "/state/v1/",
    "/state/v1/metrics",
    "/state/v1/health",
    "/application/v2/tenant/",
    "/application/v2/tenant/{}",
    "/application/v2/host/{}",
    "/application/v2/tenant/default/application/",
    "/application/v2/tenant/default/session",
    "/application/v2/tenant/{}/session",
    "/application/v2/tenant/default/session/{}/prepared",
    "/application/v2/tenant/default/session/{}/active",
    "/application/v2/tenant/default/session/{}/content/{}",
    UPLOAD,
    APP,
    APP + "/",
    *(
        f"{APP}/{part}"
        for part in ("content/{}", "reindex", "reindexing", "restart", "serviceconverge", "serviceconverge/{}", "logs")
    ),
    APP.replace("default/environment", "{}/environment"),
    "/{}/{}/{}",
]
WORDS = [
    "",
    "default",
    "music",
    "1",
    "2",
    "99999999999999999999",
    "..",
    ".",
    "a/b",
    "é",
    "\0",
    "%",
    "%zz",
    "+",
    "x" * 300,
]
PARAMETERS = [
    *("timeout", "applicationName", "instance", "speed", "clusterId", "documentType", "indexedOnly", "cause", "from"),
    *("to", "return", "recursive", "force", "dryRun", "debug", "vespaVersion", "format", "hostname", "verbose"),
]
VALUES = [
    "",
    "true",
    "false",
    "0",
    "1",
    "-1",
    "nan",
    "1e9",
    "60s",
    "0.01ms",
    "8.1",
    "9",
    "music,",
    ",",
    "å",
    "%ff",
    *WORDS,
]
METHODS = ["GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "get", ""]
TYPES = [
    "",
    "application/zip",
    "application/x-gzip",
    "text/plain",
    f"multipart/form-data; boundary={BOUNDARY}",
    "multipart/form-data",
]


@pytest.fixture
def app() -> Iterator[ConfigServerApp]:
    service = Service()
    server = config_server(MemoryStore(), service)
    app = config_app(server, service)
    yield app
    app.close()


def test_any_request_is_answered(app: ConfigServerApp) -> None:
    seed = SEED
    chance = random.Random(seed)

    async def talk() -> None:
        for number in range(REQUESTS):
            if not app._server.applications.running:
                deploy(app._server, "music")
            request = any_request(chance)
            response = await answer(app, request)
            told = f"seed {seed}, request {number}: {request.method} {request.raw_path}?{request.query}"
            assert response.status in STATUSES, f"{told}: {response.status} {response.body[:500]!r}"
            if response.status not in (200, 410):
                assert set(json.loads(response.body)) == {"error-code", "message"}, told

    asyncio.run(talk())
    assert sum(ApplicationId() == name for name in app._server.applications.running) <= 1


def any_request(chance: random.Random) -> Request:
    path = chance.choice(PATHS)
    while "{}" in path:
        word = chance.choice(WORDS)
        path = path.replace("{}", word if chance.random() < 0.2 else quote(word, safe=""), 1)
    pairs = (f"{chance.choice(PARAMETERS)}={any_value(chance)}" for _ in range(chance.randrange(4)))
    headers = {"content-type": chance.choice(TYPES)} if chance.random() < 0.8 else {}
    return Request(chance.choice(METHODS), path, "&".join(pairs), headers, any_body(chance))


def any_value(chance: random.Random) -> str:
    value = chance.choice(VALUES)
    return value if chance.random() < 0.2 else quote(value, safe="")


def any_body(chance: random.Random) -> bytes:
    package = PACKAGES[chance.choice(sorted(PACKAGES))]
    body = chance.choice([b"", b"{}", package, package, form(b'{"dryRun": "true"}', package), form(b"[1", b"")])
    if body and chance.random() < 0.5:
        changed = bytearray(body)
        for _ in range(chance.randrange(1, 5)):
            changed[chance.randrange(len(changed))] = chance.randrange(256)
        body = bytes(changed[: chance.randrange(len(changed))]) if chance.random() < 0.2 else bytes(changed)
    return body


def test_a_body_over_the_limit_is_refused(app: ConfigServerApp, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "HTTP_PACKAGE_BODY_BYTES", 100)
    for content_type, body in (
        ("application/zip", PACKAGES["music"]),
        (f"multipart/form-data; boundary={BOUNDARY}", form(b"{}", PACKAGES["music"])),
    ):
        response = ask(app, Request("POST", UPLOAD, "", {"content-type": content_type}, body))
        assert response.status == 413


def test_a_defect_is_answered_and_logged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def defect(self: SessionRepository, tenant: str, session_id: int) -> None:
        raise ZeroDivisionError("oops")

    monkeypatch.setattr(SessionRepository, "get", defect)
    service = Service()
    app = config_app(config_server(tmp_path, service), service)
    path = "/application/v2/tenant/default/session/1/prepared"
    response = ask(app, Request("GET", path))
    debugged = ask(app, Request("GET", path, "debug=true"))
    app.close()
    assert response.status == 500
    assert json.loads(response.body) == {"error-code": "INTERNAL_SERVER_ERROR", "message": "ZeroDivisionError: oops"}
    assert "ZeroDivisionError" in caplog.text
    assert "Traceback" in json.loads(debugged.body)["message"]
