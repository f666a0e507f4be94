"""The real Vespa CLI against the Deploy API: prepare, activate, fetch, status, log, test, several applications.

With a URL as target the CLI asks no one where containers are; the last test lets it find out, as `-t local` does, and
is skipped where those ports are taken.
"""

from __future__ import annotations

import json
import re
import socket
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from paperwasp.server.process import ServerProcess
from tests import web
from tests.real_clients.test_vespa_cli import vespa
from tests.service.in_process import Deployed, deployed_service
from tests.service.music import FILES, SERVICES, write_package

pytestmark = pytest.mark.clients
SECOND = "shop.books.test"
EVER = ("--from", "2000-01-01T00:00:00Z", "--to", "2100-01-01T00:00:00Z")
"""A period up to now would leave out the second that has not passed."""
VESPA_PORTS = (8080, 19071)


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployed]:
    with deployed_service(tmp_path_factory.mktemp("cli-deploy") / "data") as running:
        yield running


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("home")


def test_prepare_then_activate(service: Deployed, home: Path, tmp_path: Path) -> None:
    application = write_package(tmp_path / "music")
    prepared = vespa(home, service.config_url, "prepare", str(application))
    assert "Success" in prepared
    assert web.get(service.application_url()).status_code == 404
    assert "Success" in vespa(home, service.config_url, "activate", str(application))
    assert web.get(service.application_url()).status_code == 200
    told = vespa(home, service.config_url, "activate", str(application), fails=True)
    assert "409" in told


def test_deploy_waits_for_convergence_and_status_tells_it(service: Deployed, home: Path, tmp_path: Path) -> None:
    application = write_package(tmp_path / "music")
    told = vespa(home, service.config_url, "deploy", "--wait", "60", str(application))
    session = re.search(r"session ID (\d+)", told)
    assert session is not None, told
    status = vespa(home, service.config_url, "status", "deployment", "--wait", "30")
    assert "is ready on config generation" in status
    assert vespa(home, service.config_url, "status", "deployment", session.group(1))
    assert "ready" in vespa(home, service.config_url, "status", "deploy")


def test_findings_are_shown_as_warnings(service: Deployed, home: Path, tmp_path: Path) -> None:
    application = write_package(tmp_path / "music")
    routing = '<routing version="1.0"/></services>'
    (application / "services.xml").write_text(SERVICES.replace("</services>", routing))
    told = vespa(home, service.config_url, "deploy", str(application))
    assert "WARNING" in told
    assert "services.xml" in told


def test_fetch_gives_back_what_was_deployed(service: Deployed, home: Path, tmp_path: Path) -> None:
    vespa(home, service.config_url, "deploy", str(write_package(tmp_path / "music")))
    fetched = tmp_path / "fetched.zip"
    vespa(home, service.config_url, "fetch", str(fetched))
    with zipfile.ZipFile(fetched) as archive:
        found = {name: archive.read(name).decode() for name in archive.namelist() if not name.endswith("/")}
    assert {name.removeprefix("application/"): content for name, content in found.items()} == FILES


def test_log_shows_what_the_service_did(service: Deployed, home: Path, tmp_path: Path) -> None:
    vespa(home, service.config_url, "deploy", str(write_package(tmp_path / "music")))
    told = vespa(home, service.config_url, "log", *EVER)
    assert "serves generation" in told
    assert "serves generation" not in vespa(home, service.config_url, "log", *EVER, "--level", "error")


def test_a_refused_change_says_what_would_allow_it(service: Deployed, home: Path, tmp_path: Path) -> None:
    application = write_package(tmp_path / "music")
    vespa(home, service.config_url, "deploy", str(application))
    (application / "services.xml").write_text(SERVICES.replace('id="records"', 'id="others"'))
    told = vespa(home, service.config_url, "deploy", str(application), fails=True)
    assert "content-cluster-removal" in told


def test_an_application_of_another_name(service: Deployed, home: Path, tmp_path: Path) -> None:
    application = write_package(tmp_path / "music")
    _, name, instance = SECOND.split(".")
    vespa(home, service.config_url, "deploy", "-a", SECOND, str(application))
    url = service.application_url(f"default.{name}.{instance}")
    assert web.get(url).status_code == 200
    vespa(home, service.config_url, "fetch", "-a", SECOND, str(tmp_path / "second.zip"))
    assert (tmp_path / "second.zip").stat().st_size > 0
    assert web.delete(url, timeout=30).status_code == 200


def system_test(folder: Path, expected: int) -> Path:
    steps: list[dict[str, Any]] = [
        {
            "name": "feed",
            "request": {
                "method": "POST",
                "uri": "/document/v1/test/music/docid/cli",
                "body": {"fields": {"title": "Giant Steps", "year": 1960}},
            },
        },
        {
            "name": "query",
            "request": {"parameters": {"yql": "select * from music where title contains 'giant'"}},
            "response": {"body": {"root": {"fields": {"totalCount": expected}}}},
        },
    ]
    path = folder / "feed-and-query.json"
    path.write_text(json.dumps({"name": "feed and query", "steps": steps}))
    return path


def test_system_tests_run(service: Deployed, home: Path, tmp_path: Path) -> None:
    vespa(home, service.config_url, "deploy", str(write_package(tmp_path / "music")))
    assert "OK" in vespa(home, service.url, "test", str(system_test(tmp_path, 1)))
    told = vespa(home, service.url, "test", str(system_test(tmp_path, 7)), fails=True)
    assert "7" in told


@pytest.fixture
def local(tmp_path: Path) -> Iterator[ServerProcess]:
    """A service on Vespa's own ports."""
    for port in VESPA_PORTS:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                pytest.skip(f"port {port} is taken")
    with deployed_service(tmp_path / "data", VESPA_PORTS[0], VESPA_PORTS[1]) as running:
        yield running.service


def test_the_local_target(local: ServerProcess, home: Path, tmp_path: Path) -> None:
    """The CLI finds the containers by asking the config server."""
    application = write_package(tmp_path / "music")
    two = SERVICES.replace("<content", '<container id="query" version="1.0"><search/></container><content', 1)
    (application / "services.xml").write_text(two)
    assert "Success" in vespa(home, "local", "deploy", "--wait", "60", str(application))
    assert "ready" in vespa(home, "local", "status", "deploy")
    assert "ready" in vespa(home, "local", "status")
    assert "is ready on config generation" in vespa(home, "local", "status", "deployment")
    put = tmp_path / "put.json"
    put.write_text(json.dumps({"put": "id:ns:music::1", "fields": {"title": "Giant Steps"}}))
    assert "Success" in vespa(home, "local", "document", "put", "-C", "default", str(put))
    for cluster in ("default", "query"):
        found = vespa(home, "local", "query", "-C", cluster, "select * from music where true")
        assert json.loads(found)["root"]["fields"]["totalCount"] == 1
    assert "serves generation" in vespa(home, "local", "log", *EVER)
