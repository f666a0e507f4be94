"""Whatever is sent to the config port, the answer is an error of the Deploy API, never a defect."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from deploy_fixtures import CLOCK, PACKAGES, ask, config_server
from hypothesis import given, settings
from hypothesis import strategies as st

from paperwasp import limits
from paperwasp.configserver import ConfigServer, ConfigServerApp
from paperwasp.http.messages import Request

UPLOAD = "/application/v2/tenant/default/prepareandactivate"
SEGMENTS = [
    "application",
    "v2",
    "tenant",
    "default",
    "session",
    "1",
    "prepared",
    "active",
    "content",
    "..",
    "",
    "%",
    "%2F",
]
METHODS = ["GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "get", ""]


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConfigServerApp]:
    server = config_server(tmp_path_factory.mktemp("config"))
    server.prepare_and_activate(PACKAGES["music"])
    app = ConfigServerApp(server, environment=CLOCK)
    yield app
    app.close()


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(METHODS), st.lists(st.sampled_from(SEGMENTS), max_size=10), st.text(max_size=20))
def test_any_path_is_answered(app: ConfigServerApp, method: str, segments: list[str], query: str) -> None:
    response = ask(app, Request(method, "/" + "/".join(segments), query))
    assert response.status in (200, 400, 404, 405, 409)
    if response.status != 200:
        assert set(json.loads(response.body)) == {"error-code", "message"}


@settings(max_examples=100, deadline=None)
@given(st.sampled_from(sorted(PACKAGES)), st.lists(st.tuples(st.integers(0, 5000), st.integers(0, 255)), max_size=4))
def test_any_body_is_answered(app: ConfigServerApp, name: str, changes: list[tuple[int, int]]) -> None:
    body = bytearray(PACKAGES[name])
    for place, value in changes:
        body[place % len(body)] = value
    response = ask(app, Request("POST", UPLOAD, "", {"content-type": "application/zip"}, bytes(body)))
    assert response.status in (200, 400, 412)


def test_a_body_over_the_limit_is_refused(app: ConfigServerApp, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "HTTP_PACKAGE_BODY_BYTES", 100)
    response = ask(app, Request("POST", UPLOAD, "", {"content-type": "application/zip"}, PACKAGES["music"]))
    assert response.status == 413


def test_a_defect_is_answered_and_logged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def defect(self: ConfigServer, session_id: int) -> None:
        raise ZeroDivisionError("oops")

    monkeypatch.setattr(ConfigServer, "session", defect)
    app = ConfigServerApp(config_server(tmp_path))
    response = ask(app, Request("GET", "/application/v2/tenant/default/session/1/prepared"))
    app.close()
    assert response.status == 500
    assert json.loads(response.body) == {"error-code": "INTERNAL_SERVER_ERROR", "message": "ZeroDivisionError: oops"}
    assert "ZeroDivisionError" in caplog.text
