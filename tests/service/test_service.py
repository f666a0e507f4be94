"""The whole service as a child process: deploy, put, search, get, restart; and what must be refused."""

from __future__ import annotations

import signal
import socket
import subprocess
from pathlib import Path

import httpx
import pytest

from tests import web
from tests.service.music import SERVICES, package, write_package
from tests.service.running import RunningService, command, running_service

DEPLOY = "/application/v2/tenant/default/prepareandactivate"
APPLICATION = "/application/v2/tenant/default/application/default/environment/prod/region/default/instance/default"
DOCUMENT = "/document/v1/ns/music/docid/1"
SEARCH = {"yql": "select * from music where userQuery()", "query": "blue train"}


def deploy(service: RunningService, content: bytes | None = None) -> httpx.Response:
    zip_type = {"Content-Type": "application/zip"}
    return web.post(service.config_url + DEPLOY, content=content or package(), headers=zip_type, timeout=30)


def hits(service: RunningService) -> list[dict[str, object]]:
    answer = web.get(service.url + "/search/", params=SEARCH)
    assert answer.status_code == 200, answer.text
    found: list[dict[str, object]] = answer.json()["root"].get("children", [])
    return found


def test_the_walk_and_a_restart(tmp_path: Path) -> None:
    with running_service(tmp_path / "data") as service:
        assert web.get(service.url + "/ApplicationStatus").status_code == 503
        assert web.get(service.url + "/status.html").status_code == 404
        assert web.get(service.url + "/state/v1/health").json()["status"]["code"] == "initializing"
        assert web.get(service.url + "/search/", params=SEARCH).status_code == 503
        answer = deploy(service)
        assert (answer.status_code, answer.json().get("activated")) == (200, True), answer.text
        assert web.get(service.url + "/ApplicationStatus").status_code == 200
        assert web.get(service.url + "/status.html").text == "<title>OK</title>\n"
        assert web.get(service.url + "/state/v1/health").json()["status"]["code"] == "up"
        put = web.post(service.url + DOCUMENT, json={"fields": {"title": "Blue Train", "year": 1957, "tags": ["jazz"]}})
        assert (put.status_code, put.json()["id"]) == (200, "id:ns:music::1")
        assert [hit["id"] for hit in hits(service)] == ["id:ns:music::1"]
        update = web.put(service.url + DOCUMENT, json={"fields": {"year": {"assign": 1958}}})
        assert update.status_code == 200
        converged = web.get(service.config_url + APPLICATION + "/serviceconverge").json()
        assert converged["converged"]
        assert f":{converged['services'][0]['port']}" in service.url
        assert service.stop() == 0
    with running_service(tmp_path / "data") as service:
        document = web.get(service.url + DOCUMENT).json()
        assert document["fields"] == {"title": "Blue Train", "year": 1958, "tags": ["jazz"]}
        assert [hit["fields"]["title"] for hit in hits(service)] == ["<hi>Blue</hi> <hi>Train</hi>"]  # type: ignore[index]
        assert web.delete(service.url + DOCUMENT).status_code == 200
        assert web.get(service.url + DOCUMENT).status_code == 404
        assert hits(service) == []
        assert service.stop(signal.SIGINT) == 0


def test_what_is_acknowledged_outlives_a_kill(tmp_path: Path) -> None:
    application = write_package(tmp_path / "music")
    with running_service(tmp_path / "data", str(application)) as service:
        for number in range(20):
            path = DOCUMENT.removesuffix("1") + str(number)
            assert web.post(service.url + path, json={"fields": {"title": f"Blue Train {number}"}}).status_code == 200
        assert service.stop(signal.SIGKILL) == -signal.SIGKILL
    with running_service(tmp_path / "data") as service:
        answer = web.get(service.url + "/search/", params=SEARCH).json()
        assert answer["root"]["fields"]["totalCount"] == 20


def test_a_broken_package_leaves_the_active_one_serving(tmp_path: Path) -> None:
    with running_service(tmp_path / "data", str(write_package(tmp_path / "music"))) as service:
        broken = package({"services.xml": "<services><container", "schemas/music.sd": "schema music {"})
        answer = deploy(service, broken)
        assert answer.status_code in (400, 412)
        assert answer.json()["error-code"] == "INVALID_APPLICATION_PACKAGE"
        assert web.post(service.url + DOCUMENT, json={"fields": {"title": "Blue Train"}}).status_code == 200
        assert len(hits(service)) == 1


def test_what_there_is_to_tell_of_the_package_is_told_at_the_start(tmp_path: Path) -> None:
    application = write_package(tmp_path / "music")
    (application / "services.xml").write_text(SERVICES.replace("<redundancy>1</redundancy>", ""))
    (application / "deployment.xml").write_text('<deployment version="1.0"><prod/></deployment>')
    with running_service(tmp_path / "data", str(application)) as service:
        told = web.get(f"{service.config_url}{APPLICATION}/logs").text
        assert "redundancy" in told and "deployment.xml has no effect" in told
    shown = (tmp_path / "data.log").read_text()
    assert "WARNING" in shown and "redundancy" in shown and "deployment.xml" not in shown


def test_deleting_the_application_deletes_its_documents(tmp_path: Path) -> None:
    with running_service(tmp_path / "data", str(write_package(tmp_path / "music"))) as service:
        assert web.post(service.url + DOCUMENT, json={"fields": {"title": "Blue Train"}}).status_code == 200
        assert web.delete(service.config_url + APPLICATION, timeout=30).status_code == 200
        assert web.get(service.url + "/ApplicationStatus").status_code == 503
        assert deploy(service).status_code == 200
        assert web.get(service.url + DOCUMENT).status_code == 404


def test_a_second_process_on_the_same_data_is_refused(tmp_path: Path) -> None:
    with running_service(tmp_path / "data") as service:
        second = subprocess.run(command(tmp_path / "data"), capture_output=True, text=True, timeout=30)
        assert second.returncode == 1
        assert f"in use by process {service.process.pid}" in second.stderr
        assert "Traceback" not in second.stderr


def test_a_taken_port_is_named_in_one_line(tmp_path: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = str(other.getsockname()[1])
        refused = subprocess.run(
            [*command(tmp_path / "data"), "--port", port], capture_output=True, text=True, timeout=30
        )
    assert refused.returncode == 1
    assert refused.stderr.strip() == f"Error: Port {port} on 127.0.0.1 is taken by another process"


def test_an_application_that_is_not_there_is_named(tmp_path: Path) -> None:
    refused = subprocess.run(command(tmp_path / "data", "nowhere"), capture_output=True, text=True, timeout=30)
    assert refused.returncode == 1
    assert "Could not find an application package in 'nowhere'" in refused.stderr
    assert "Traceback" not in refused.stderr


def refusal_of(data: Path, *options: str) -> str:
    """What `serve` says where it cannot start; its words with single spaces, without the frame around them."""
    refused = subprocess.run([*command(data), *options], capture_output=True, text=True, timeout=60)
    assert refused.returncode != 0
    assert "Traceback" not in refused.stderr
    return " ".join(refused.stderr.replace("│", " ").split())


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--port", "99999"), "Invalid value for '--port'"),
        (("--port", "-1"), "Invalid value for '--port'"),
        (("--config-port", "70000"), "Invalid value for '--config-port'"),
        (("--port", "8080", "--config-port", "8080"), "8080 is the port of both --port and --config-port"),
        (("--host", "256.1.1.1"), "Error: Cannot listen on 256.1.1.1:0: "),
    ],
)
def test_an_address_that_cannot_be_listened_on_is_named(tmp_path: Path, options: tuple[str, ...], told: str) -> None:
    assert told in refusal_of(tmp_path / "data", *options)


def test_a_data_directory_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for path in (tmp_path / "file", tmp_path / "file" / "below"):
        assert refusal_of(path) == f"Error: The data directory '{path}' cannot be used: Not a directory"


@pytest.mark.parametrize("url", ["", "/state/v1", "/state/v1/metrics", "/state/v1/version", "/state/v1/config"])
def test_state_pages_are_json(tmp_path: Path, url: str) -> None:
    with running_service(tmp_path / "data", str(write_package(tmp_path / "music"))) as service:
        for base in (service.url, service.config_url):
            if url != "/state/v1/metrics" or base == service.url:
                answer = web.get(base + (url or "/"))
                assert (answer.status_code, answer.headers["content-type"].split(";")[0]) == (200, "application/json")
                assert answer.json()
