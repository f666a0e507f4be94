"""Feeding is blocked when a content cluster is over its limits, and only feeding; it goes on by itself.

Authority: https://docs.vespa.ai/en/writing/feed-block.html
"""

from __future__ import annotations

import threading
from pathlib import Path

import httpx
import pytest

from paperwasp import limits
from paperwasp.base.records import replace
from paperwasp.content.upkeep.resources import SystemProbe, Usage
from paperwasp.errors import NoSpace
from paperwasp.storage.documents.document_store import DocumentStore, StoreWrites
from tests import web
from tests.service.in_process import Deployed, active, deployed_service
from tests.service.music import FILES, SERVICES

REASON = "External feed is blocked due to resource exhaustion: in content cluster 'records': "
PATH = "/document/v1/ns/music/docid/1"
YEAR = {"fields": {"year": {"assign": 1961}}}
TAGS = {"fields": {"tags": {"add": ["x"]}}}
TITLE = {"fields": {"title": "Blue Train"}}


def files(disk: str) -> dict[str, str]:
    return tuned(f"<resource-limits><disk>{disk}</disk></resource-limits>")


def tuned(tuning: str) -> dict[str, str]:
    return {**FILES, "services.xml": SERVICES.replace("</content>", f"<tuning>{tuning}</tuning></content>")}


def metrics(service: Deployed) -> dict[str, float]:
    answer = web.get(service.url + "/state/v1/metrics").json()
    return {metric["name"]: metric["values"].get("last") for metric in answer["metrics"]["values"]}


def test_a_small_limit_blocks_what_grows(tmp_path: Path) -> None:
    with (
        deployed_service(tmp_path / "data") as service,
        httpx.Client(base_url=service.url, event_hooks={"request": [web.give_time]}) as client,
    ):
        active(service.deploy(FILES))
        assert client.post(PATH, json=TITLE).status_code == 200
        assert metrics(service)["content.proton.resource_usage.feeding_blocked"] == 0
        active(service.deploy(files("0")))
        for method, body in (("POST", TITLE), ("PUT", TAGS)):
            refused = client.request(method, PATH, json=body)
            assert refused.status_code == 507
            content = refused.json()
            assert content.keys() >= {"pathId", "id", "message"}
            assert REASON + "disk on node 0 [localhost] is " in content["message"]
            assert "NO_SPACE" in content["message"]
        assert metrics(service)["content.proton.resource_usage.feeding_blocked"] == 1
        assert client.put(PATH, json=YEAR).status_code == 200
        assert client.get(PATH).json()["fields"] == {"title": "Blue Train", "year": 1961}
        assert client.get("/document/v1/ns/music/docid/?cluster=records").json()["documentCount"] == 1
        found = client.get("/search/", params={"yql": "select * from music where year = 1961"}).json()
        assert found["root"]["fields"]["totalCount"] == 1
        assert client.delete(PATH).status_code == 200
        assert client.post(PATH, json=TITLE).status_code == 507
        active(service.deploy(files("0.9")))
        assert client.post(PATH, json=TITLE).status_code == 200


def test_operations_larger_than_the_content_cluster_takes_are_refused(tmp_path: Path) -> None:
    """Vespa: its distributor refuses them before anything is written (pull request 33609)."""
    large = "x" * 1000
    with (
        deployed_service(tmp_path / "data") as service,
        httpx.Client(base_url=service.url, event_hooks={"request": [web.give_time]}) as client,
    ):
        active(service.deploy(tuned("<max-document-size>1kB</max-document-size>")))
        assert client.post(PATH, json=TITLE).status_code == 200
        for method, body in (("POST", {"title": large}), ("PUT", {"title": {"assign": large}})):
            refused = client.request(method, PATH, json={"fields": body})
            assert refused.status_code == 400
            assert "more than the 1000 that content cluster 'records' takes" in refused.json()["message"]
        assert client.get(PATH).json()["fields"] == TITLE["fields"]
        active(service.deploy(tuned("<max-document-size>2kB</max-document-size>")))
        assert client.put(PATH, json={"fields": {"title": {"assign": large}}}).status_code == 200


def test_feeding_goes_on_by_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The disk is full, and has room again, without anybody telling the service."""
    monkeypatch.setattr(limits, "RESOURCE_SAMPLE_SECONDS", 0.01)
    measure = SystemProbe.__call__
    is_full, measured = threading.Event(), threading.Semaphore(0)

    def probe(self: SystemProbe) -> Usage:
        found = measure(self)
        if not self._directory.is_relative_to(tmp_path):  # a service that other tests share measures, too
            return found
        measured.release()
        free_bytes = 0 if is_full.is_set() else found.disk.free_bytes
        return replace(found, disk=replace(found.disk, free_bytes=free_bytes))

    def wait() -> None:
        """For a measurement that began after this, and for the one after it: then the first has had its effect."""
        while measured.acquire(blocking=False):
            pass
        for _ in range(3):
            assert measured.acquire(timeout=30)

    monkeypatch.setattr(SystemProbe, "__call__", probe)
    with (
        deployed_service(tmp_path / "data") as service,
        httpx.Client(base_url=service.url, event_hooks={"request": [web.give_time]}) as client,
    ):
        active(service.deploy(FILES))
        for _ in range(2):
            assert client.post(PATH, json=TITLE).status_code == 200
            is_full.set()
            wait()
            refused = client.post(PATH, json=TITLE)
            assert (refused.status_code, refused.json()["id"]) == (507, "id:ns:music::1")
            is_full.clear()
            wait()
        assert client.post(PATH, json=TITLE).status_code == 200


def test_a_store_that_fails_is_told_of_and_goes_on_by_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is logged cannot be applied: writes get 507, reads go on, health says why; then all goes on."""
    monkeypatch.setattr(limits, "RECOVERY_FIRST_SECONDS", 0.01)
    monkeypatch.setattr(limits, "RECOVERY_LONGEST_SECONDS", 0.02)

    def health(client: httpx.Client) -> dict[str, str]:
        status: dict[str, str] = client.get("/state/v1/health").json()["status"]
        return status

    def fail(store: DocumentStore, writes: StoreWrites) -> None:
        raise NoSpace("no space left for the document store")

    with (
        deployed_service(tmp_path / "data") as service,
        httpx.Client(base_url=service.url, event_hooks={"request": [web.give_time]}) as client,
    ):
        active(service.deploy(FILES))
        assert client.post(PATH, json=TITLE).status_code == 200
        assert health(client) == {"code": "up"}
        with monkeypatch.context() as patch:
            patch.setattr(DocumentStore, "write", fail)
            for body, said in (({"fields": {"title": "Giant Steps"}}, "is logged"), (TITLE, "takes no operations")):
                refused = client.post(PATH, json=body)
                assert refused.status_code == 507, refused.text
                message = refused.json()["message"]
                assert said in message and "no space left for the document store" in message
            assert client.delete(PATH).status_code == 507
            assert client.get(PATH).json()["fields"] == {"title": "Blue Train"}
            status = health(client)
            assert status["code"] == "down" and status == client.get("/state/v1/metrics").json()["status"]
            assert "content cluster 'records'" in status["message"] and "no space left" in status["message"]
            found = metrics(service)
            assert found["cluster-controller.down.count"] == 1 and found["cluster-controller.up.count"] == 0
            assert found["content.proton.resource_usage.feeding_blocked"] == 1
        while health(client)["code"] == "down":
            pass
        assert metrics(service)["cluster-controller.down.count"] == 0
        assert client.get(PATH).json()["fields"] == {"title": "Giant Steps"}, "what was logged is applied"
        assert client.post(PATH, json=TITLE).status_code == 200


def test_expired_documents_go_by_themselves(tmp_path: Path) -> None:
    documents = (
        '<documents garbage-collection="true" garbage-collection-interval="1">'
        '<document type="music" mode="index" selection="music.year &gt; 1960"/></documents>'
    )
    plain = '<documents><document type="music" mode="index"/></documents>'
    collected = {**FILES, "services.xml": SERVICES.replace(plain, documents)}
    with (
        deployed_service(tmp_path / "data") as service,
        httpx.Client(base_url=service.url, event_hooks={"request": [web.give_time]}) as client,
    ):
        active(service.deploy(FILES))
        for year in range(1950, 1970):
            path = f"/document/v1/ns/music/docid/{year}"
            assert client.post(path, json={"fields": {"year": year}}).status_code == 200
        active(service.deploy(collected))
        query = {"yql": "select * from music where true", "timeout": "20s"}
        while (left := client.get("/search/", params=query).json()["root"]["fields"]["totalCount"]) > 9:
            assert left <= 20
        assert left == 9
        assert client.get("/document/v1/ns/music/docid/1960").status_code == 404
        assert client.get("/document/v1/ns/music/docid/1961").status_code == 200


def test_documents_go_with_what_their_parent_says(tmp_path: Path) -> None:
    """When a document is fed its imported field is not known, and null; garbage collection knows it.

    Authority: https://docs.vespa.ai/en/reference/document-select-language.html#null-behavior-with-imported-fields
    """
    documents = (
        '<documents garbage-collection="true" garbage-collection-interval="1">'
        '<document type="parent" mode="index" global="true"/>'
        '<document type="child" mode="index" selection="child.a == null or child.a &gt; 5"/></documents>'
    )
    plain = '<documents><document type="music" mode="index"/></documents>'
    attribute = "{ indexing: summary | attribute }"
    child = f"field ref type reference<parent> {attribute} }} import field ref.a as a {{}}"
    package = {
        "services.xml": SERVICES.replace(plain, documents),
        "schemas/parent.sd": f"schema parent {{ document parent {{ field a type int {attribute} }} }}",
        "schemas/child.sd": f"schema child {{ document child {{ {child} }}",
    }
    with (
        deployed_service(tmp_path / "data") as service,
        httpx.Client(base_url=service.url, event_hooks={"request": [web.give_time]}) as client,
    ):
        active(service.deploy(package))
        for number in (3, 8):
            parent = {"fields": {"a": number}}
            assert client.post(f"/document/v1/ns/parent/docid/{number}", json=parent).status_code == 200
        for number in (8, 9, 3):
            body = {"fields": {"ref": f"id:ns:parent::{number}"}}
            assert client.post(f"/document/v1/ns/child/docid/{number}", json=body).status_code == 200
        while client.get("/document/v1/ns/child/docid/3").status_code == 200:
            pass
        assert [client.get(f"/document/v1/ns/child/docid/{number}").status_code for number in (8, 9)] == [200, 200]
