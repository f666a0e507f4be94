"""Several applications, containers and content clusters in one process: each has its own documents and ports."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import httpx
import pytest

from paperwasp.cli.serve import _addresses
from paperwasp.client.deploy import status_lines
from paperwasp.configserver import ApplicationId
from paperwasp.container.app import ContainerApp
from paperwasp.container.state import Running
from paperwasp.content.checkpoints.checkpoint_writer import CheckpointWriter
from paperwasp.content.node import ContentNode
from paperwasp.errors import Corruption
from paperwasp.server.roles.content_cluster import RunningCluster
from tests import web
from tests.service.in_process import HOST, Deployed, active, deployed_service
from tests.service.music import SCHEMA

BOOK = SCHEMA.replace("music", "book")
HANDLERS = "<search/><document-api/>"
FIRST, SECOND = "default.default.default", "shop.books.test"


def container(id: str = "default", inside: str = HANDLERS, port: int | None = None) -> str:
    server = f'<http><server id="s" port="{port}"/></http>' if port else ""
    return f'<container id="{id}" version="1.0">{inside}{server}</container>'


def content(id: str = "records", *types: str) -> str:
    documents = "".join(f'<document type="{name}" mode="index"/>' for name in types or ("music",))
    nodes = '<nodes><node hostalias="n" distribution-key="0"/></nodes>'
    inside = f"<redundancy>1</redundancy><documents>{documents}</documents>{nodes}"
    return f'<content id="{id}" version="1.0">{inside}</content>'


def application(*clusters: str) -> dict[str, str]:
    services = f'<services version="1.0">{"".join(clusters)}</services>'
    return {"services.xml": services, "schemas/music.sd": SCHEMA, "schemas/book.sd": BOOK}


def put(url: str, id: int, title: str, type: str = "music", **options: str) -> httpx.Response:
    path = f"{url}/document/v1/ns/{type}/docid/{id}"
    return web.post(path, json={"fields": {"title": title}}, params=options, timeout=30)


def titles(url: str, source: str = "sources *") -> list[str]:
    answer = web.get(f"{url}/search/", params={"yql": f"select title from {source} where true", "hits": 100})
    assert answer.status_code == 200, answer.text
    return sorted(hit["fields"]["title"] for hit in answer.json()["root"].get("children", []))


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        port: int = probe.getsockname()[1]
        return port


def is_closed(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex((HOST, port)) != 0


def create_tenant(service: Deployed, name: str) -> None:
    answer = web.put(f"{service.config_url}/application/v2/tenant/{name}", timeout=30)
    assert answer.status_code == 200, answer.text


def test_what_is_deleted_has_no_last_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It would be a synced file for each field: minutes, for an application with thousands of them."""
    written: list[CheckpointWriter] = []
    monkeypatch.setattr(CheckpointWriter, "write_last", lambda self: written.append(self))
    with deployed_service(tmp_path / "data") as service:
        active(service.deploy(application(container(), content())))
        assert put(service.url, 1, "a").status_code == 200
        assert web.delete(service.application_url(FIRST), timeout=30).status_code == 200
        assert not (tmp_path / "data" / "content" / FIRST).exists()
        assert written == []
        active(service.deploy(application(container(), content())))
        assert titles(service.url) == []


def test_applications_do_not_see_each_other(tmp_path: Path) -> None:
    files = application(container(), content())
    with deployed_service(tmp_path / "data") as service:
        create_tenant(service, "shop")
        active(service.deploy(files, FIRST))
        active(service.deploy(files, SECOND))
        first, second = service.container_url(name=FIRST), service.container_url(name=SECOND)
        assert first == service.url != second
        assert put(first, 1, "Blue Train").status_code == 200
        assert put(second, 1, "Giant Steps").status_code == 200
        assert (titles(first), titles(second)) == (["Blue Train"], ["Giant Steps"])
        assert status_lines(service.url, service.config_url) == (
            True,
            [
                f"Config server at {service.config_url}: serves generation 1",
                f"Container at {first}: up",
                f"Container 'default' of {SECOND} at {second}",
            ],
        )
    with deployed_service(tmp_path / "data") as service:
        first, second = service.container_url(name=FIRST), service.container_url(name=SECOND)
        assert (titles(first), titles(second)) == (["Blue Train"], ["Giant Steps"])
        port = service.ports(FIRST)["default"]
        assert web.delete(service.application_url(FIRST), timeout=30).status_code == 200
        assert web.get(service.application_url(FIRST)).status_code == 404
        assert web.get(f"http://{HOST}:{port}/ApplicationStatus").status_code == 503
        assert titles(second) == ["Giant Steps"]
        assert [folder.name for folder in (tmp_path / "data" / "content").iterdir()] == [SECOND]
        active(service.deploy(files, FIRST))
        assert titles(service.container_url(name=FIRST)) == []


def test_each_container_has_its_port_and_its_interfaces(tmp_path: Path) -> None:
    port = free_port()
    files = application(
        container("feed", "<document-api/>", port=8080),
        container("query", "<search/>"),
        container("both", port=port),
        content(),
    )
    with deployed_service(tmp_path / "data") as service:
        active(service.deploy(files))
        ports = service.ports()
        assert ports["feed"] == service.service.containers.front_port
        assert ports["both"] == port
        assert len(set(ports.values())) == 3
        assert put(service.container_url("feed"), 1, "Blue Train").status_code == 200
        assert put(service.container_url("query"), 2, "Blue Train").status_code == 404
        assert web.get(service.container_url("feed") + "/search/", params={"query": "x"}).status_code == 404
        assert titles(service.container_url("query")) == titles(service.container_url("both")) == ["Blue Train"]
        for name in ports:
            status = web.get(service.container_url(name) + "/ApplicationStatus").json()
            handlers = [handler["class"].rpartition(".")[2] for handler in status["handlers"]]
            assert ("SearchHandler" in handlers) == (name != "feed")
            assert ("DocumentV1ApiHandler" in handlers) == (name != "query")
    with deployed_service(tmp_path / "data", ports["feed"]) as service:
        assert service.ports() == ports
        removed = application(container("query", "<search/>"), container("both", port=port), content())
        active(service.deploy(removed))
        assert service.ports() == {name: ports[name] for name in ("query", "both")}
        assert web.get(service.url + "/ApplicationStatus").status_code == 503
        active(service.deploy(application(container("query", "<search/>"), content())))
        assert is_closed(port)


def test_a_port_may_change_while_documents_are_kept(tmp_path: Path) -> None:
    port, other = free_port(), free_port()
    with deployed_service(tmp_path / "data") as service:
        active(service.deploy(application(container(port=port), content())))
        assert put(service.container_url(), 1, "Blue Train").status_code == 200
        active(service.deploy(application(container(port=other), content())))
        assert service.ports() == {"default": other}
        assert is_closed(port)
        assert titles(service.container_url()) == ["Blue Train"]
        for path in ("/", "/search/?query=blue", "/document/v1/ns/music/docid/1", "/status.html"):
            assert f"containers listen on {other}" in web.get(service.url + path).text
        told = _addresses(HOST, service.service.containers)
        active(service.deploy(application(container(), container("more", port=other), content())))
        again = _addresses(HOST, service.service.containers)
    assert told == [f"http://{HOST}:{other}"]
    assert again == [
        service.url,
        f"Container cluster 'more' of application default.default.default on http://{HOST}:{other}",
    ]


def test_a_port_that_another_process_has_changes_nothing(tmp_path: Path) -> None:
    files = application(container(), content())
    with deployed_service(tmp_path / "data") as service, socket.socket() as other:
        other.bind((HOST, 0))
        other.listen()
        taken = other.getsockname()[1]
        active(service.deploy(files))
        assert put(service.url, 1, "Blue Train").status_code == 200
        answer = service.deploy(application(container(), container("more", port=taken), content(), content("other")))
        assert answer.status_code == 409, answer.text
        assert f"Port {taken} on {HOST} is taken by another process" in answer.json()["message"]
        assert service.ports() == {"default": service.service.containers.front_port}
        assert titles(service.url) == ["Blue Train"]


def test_a_port_that_another_application_has_is_refused_with_its_name(tmp_path: Path) -> None:
    with deployed_service(tmp_path / "data") as service:
        create_tenant(service, "shop")
        active(service.deploy(application(container(port=8080), content()), FIRST))
        answer = service.deploy(application(container("books", port=8080), content()), SECOND)
        assert answer.status_code == 409, answer.text
        assert f"container cluster 'default' of application '{FIRST}' has it" in answer.json()["message"]
        config_port = service.service.config_server.port
        answer = service.deploy(application(container("books", port=config_port), content()), SECOND)
        assert "the config server has it" in answer.json()["message"]
        assert web.get(service.application_url(SECOND)).status_code == 404
        assert titles(service.url) == []


def test_an_application_whose_port_is_taken_at_the_start_is_left_out_alone(tmp_path: Path) -> None:
    data, port = tmp_path / "data", free_port()
    files = application(container(port=port), content())
    with deployed_service(data) as service:
        create_tenant(service, "shop")
        active(service.deploy(files, FIRST))
        active(service.deploy(application(container(), content()), SECOND))
        assert put(service.container_url(name=FIRST), 1, "Blue Train").status_code == 200
        assert put(service.container_url(name=SECOND), 1, "Giant Steps").status_code == 200
    with socket.socket() as other:
        other.bind((HOST, port))
        other.listen()
        with deployed_service(data) as service:
            assert titles(service.container_url(name=SECOND)) == ["Giant Steps"]
            answer = web.get(service.application_url(FIRST) + "/serviceconverge", params={"timeout": "0"}).json()
            assert (answer["converged"], answer["wantedGeneration"]) == (False, 1)
            health = web.get(service.config_url + "/state/v1/health").json()["status"]
            assert f"{FIRST} does not run: Port {port} on {HOST} is taken" in health["message"]
            lines = web.get(service.application_url(SECOND) + "/logs").text
            assert f"Application {FIRST} could not be restored" in lines
            active(service.deploy(application(container(), content()), FIRST))
            assert titles(service.container_url(name=FIRST)) == ["Blue Train"]
    with deployed_service(data) as service:
        assert titles(service.container_url(name=FIRST)) == ["Blue Train"]


@pytest.mark.parametrize("cluster_type", ["content", "container", None])
def test_a_restart_loses_nothing(tmp_path: Path, cluster_type: str | None) -> None:
    with deployed_service(tmp_path / "data") as service:
        active(service.deploy(application(container(), content(), content("other", "book"))))
        for number in range(50):
            assert put(service.url, number, f"Blue Train {number}").status_code == 200
            assert put(service.url, number, f"Emma {number}", "book").status_code == 200
        before = titles(service.url)
        parameters = {"clusterType": cluster_type} if cluster_type else {}
        answer = web.post(service.application_url() + "/restart", params=parameters, timeout=30)
        assert (answer.status_code, answer.json()) == (200, {"message": "Success"})
        assert titles(service.url) == before
        metrics = web.get(service.url + "/state/v1/metrics").json()["metrics"]["values"]
        puts = sum(m["values"]["count"] for m in metrics if m["dimensions"].get("httpMethod") == "POST")
        assert puts == (100 if cluster_type == "content" else 0)
        assert web.post(service.application_url(SECOND) + "/restart").status_code == 404


def test_a_cluster_whose_restart_failed_refuses_until_it_is_opened_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def damaged(*arguments: object, **options: object) -> ContentNode:
        raise Corruption("a file is damaged")

    def restart() -> httpx.Response:
        return web.post(service.application_url() + "/restart", timeout=30)

    files = application(container(), content())
    with deployed_service(tmp_path / "data") as service:
        active(service.deploy(files))
        assert put(service.url, 1, "Blue Train").status_code == 200
        for mend in (restart, lambda: service.deploy(files), None):
            monkeypatch.setattr("paperwasp.server.roles.content_cluster.ContentNode", damaged)
            assert restart().status_code == 500
            assert put(service.url, 2, "Giant Steps").status_code == 500
            assert web.get(service.url + "/document/v1/ns/music/docid/1").status_code == 500
            monkeypatch.undo()
            if mend is not None:
                assert mend().status_code == 200
                assert titles(service.url) == ["Blue Train"]
    with deployed_service(tmp_path / "data") as service:
        assert titles(service.url) == ["Blue Train"]


@pytest.mark.parametrize("step", ["configure", "stop"])
def test_what_cannot_go_does_not_take_the_change_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    before = application(container(), content("records", "music", "book"), content("other", "book"))
    real, calls = getattr(RunningCluster, step), iter(range(100))

    def failing(*arguments: object) -> None:
        real(*arguments)
        if step == "stop" or next(calls) == 1:  # to configure is first to take what is new, then to drop what goes
            raise OSError("the disk is broken")

    with deployed_service(tmp_path / "data") as service:
        active(service.deploy(before))
        monkeypatch.setattr(RunningCluster, step, failing)
        after = active(service.deploy(application(container(), content()), ignoreValidationErrors="true"))
        monkeypatch.undo()
        assert service.service.config.applications.current_generation(ApplicationId()) == int(after["session-id"]) == 2
        assert put(service.url, 1, "Blue Train").status_code == 200
        ignored = put(service.url, 1, "Emma", "book")
        assert (ignored.status_code, ignored.headers.get("X-Vespa-Ignored-Operation")) == (200, "true")


def test_no_cluster_goes_back_where_another_cannot_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of three clusters the third cannot change to what is chosen; the others keep it, and do not change again."""
    clusters = [content(name) for name in ("one", "two", "three")]
    port = free_port()
    configured: list[tuple[str, int]] = []
    real = RunningCluster.configure

    def failing(cluster: RunningCluster, generation: int, *arguments: Any) -> None:
        name = cluster.directory.name
        configured.append((name, generation))
        if (name, generation) == ("three", 2):
            raise OSError(f"the disk of {name} is broken")
        real(cluster, generation, *arguments)

    with deployed_service(tmp_path / "data") as service:
        active(service.deploy(application(container(), *clusters)))
        monkeypatch.setattr(RunningCluster, "configure", failing)
        answer = service.deploy(application(container(), container("new", port=port), *clusters))
        assert (answer.json()["activated"], "the disk of three" in answer.text) == (False, True)
        assert configured[:3] == [("one", 2), ("two", 2), ("three", 2)]
        assert set(configured[3:]) <= {("three", 2)}  # it may be tried again meanwhile
        assert is_closed(port)
        monkeypatch.undo()
        assert put(service.url, 1, "Blue Train").status_code == 200
        active(service.deploy(application(container(), container("new", port=port), *clusters)))
        assert titles(service.url, "one") == ["Blue Train"]


def test_a_container_that_cannot_change_keeps_the_others_from_changing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = ContainerApp.configure

    def failing(app: ContainerApp, running: Running | None) -> None:
        real(app, running)
        if running is not None and (running.generation, running.container.id) == (2, "second"):
            raise OSError("the disk is broken")

    clusters = [container("first"), container("second"), content()]
    with deployed_service(tmp_path / "data") as service:
        active(service.deploy(application(*clusters)))
        monkeypatch.setattr(ContainerApp, "configure", failing)
        answer = service.deploy(application(*clusters, content("other", "book"))).json()
        monkeypatch.undo()
        assert answer["activated"] is False
        assert "Generation 2 is active but not served yet: the service tries again until it is" in str(answer)
        assert {generation for _, generation in service.service.containers.serving().values()} == {1}
        assert put(service.url, 1, "Blue Train").status_code == 200
    with deployed_service(tmp_path / "data") as service:
        assert {generation for _, generation in service.service.containers.serving().values()} == {2}
        assert put(service.url, 1, "Emma", "book").status_code == 200
        assert titles(service.url) == ["Blue Train", "Emma"]


def test_a_document_type_in_two_clusters(tmp_path: Path) -> None:
    with deployed_service(tmp_path / "data") as service:
        active(service.deploy(application(container(), content("one", "music", "book"), content("two", "music"))))
        assert put(service.url, 1, "In both").status_code == 200
        assert put(service.url, 2, "In two", cluster="two").status_code == 200
        assert put(service.url, 1, "Emma", "book").status_code == 200
        assert titles(service.url, "one") == ["Emma", "In both"]
        assert titles(service.url, "two") == ["In both", "In two"]
        path = service.url + "/document/v1/ns/music/docid/2"
        assert web.get(path).json()["fields"] == {"title": "In two"}
        assert web.get(path, params={"cluster": "one"}).status_code == 404
        refused = put(service.url, 1, "Emma", "book", cluster="two")
        assert (refused.status_code, "does not have it" in refused.json()["message"]) == (400, True)
        assert web.delete(service.url + "/document/v1/ns/music/docid/1").status_code == 200
        assert titles(service.url) == ["Emma", "In two"]


def test_options_of_the_document_api(tmp_path: Path) -> None:
    options = "<ignore-undefined-fields>true</ignore-undefined-fields><max-document-size>1kB</max-document-size>"
    files = application(container("default", f"<search/><document-api>{options}</document-api>"), content())
    with deployed_service(tmp_path / "data") as service:
        assert {line["level"] for line in active(service.deploy(files))["log"]} == {"INFO"}
        path = service.url + "/document/v1/ns/music/docid/1"
        answer = web.post(path, json={"fields": {"title": "Blue Train", "titel": "x"}})
        assert (answer.status_code, answer.headers.get("X-Vespa-Ignored-Fields")) == (200, "true")
        answer = web.put(path, json={"fields": {"yaer": {"assign": 1}, "year": {"assign": 1957}}})
        assert (answer.status_code, answer.headers.get("X-Vespa-Ignored-Fields")) == (200, "true")
        answer = web.put(path, json={"fields": {"year": {"assign": 1958}}})
        assert (answer.status_code, "X-Vespa-Ignored-Fields" in answer.headers) == (200, False)
        assert web.get(path).json()["fields"] == {"title": "Blue Train", "year": 1958}
        answer = web.post(path, json={"fields": {"title": "x" * 2000}})
        assert answer.status_code == 413
        assert "limit 1000 bytes" in answer.json()["message"]
