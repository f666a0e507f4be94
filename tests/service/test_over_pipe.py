"""A service whose messages go as bytes through another process answers as any other.

This is a sample: with PAPERWASP_MESSENGER=pipe in the environment all tests run so.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from tests import web
from tests.messengers import over_pipe
from tests.service import query_scripts
from tests.service.in_process import Deployed, deployed_service
from tests.service.test_grouping_scripts import GROUPING, grouped

QUERIES = ("answers", "errors", "results", "sorting", "tensors", "yql_near", "yql_sets", "yql_text", "yql_values")


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployed]:
    with over_pipe(), deployed_service(tmp_path_factory.mktemp("queries")) as service:
        query_scripts.deploy_and_feed(service)
        yield service


@pytest.fixture(scope="module")
def grouping(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployed]:
    with over_pipe(), deployed_service(tmp_path_factory.mktemp("grouping")) as service:
        query_scripts.deploy_and_feed(service, GROUPING)
        yield service


@pytest.mark.parametrize("name", QUERIES)
def test_queries(service: Deployed, name: str) -> None:
    query_scripts.run(service, query_scripts.SCRIPTS / f"{name}.txt")


@pytest.mark.parametrize("name", ["aggregates", "levels"])
def test_groups(grouping: Deployed, name: str) -> None:
    query_scripts.run(grouping, GROUPING / f"{name}.txt", grouped)


def test_documents(service: Deployed) -> None:
    assert any(thread.name == "messenger-read" for thread in threading.enumerate())
    document = f"{service.url}/document/v1/n/music/docid/over-pipe"
    fields = {"title": "Größe \U0001f3b7", "year": 1959, "alive": False}
    assert web.post(document, json={"fields": fields}, timeout=30).status_code == 200
    assert web.get(document, timeout=30).json()["fields"] == fields
    refused = web.put(f"{document}?condition=music.year>2000", json={"fields": {"year": {"assign": 1}}}, timeout=30)
    assert refused.status_code == 412
    added = {"fields": {"year": {"increment": 1}}}
    assert web.put(f"{document}?condition=music.year==1959", json=added, timeout=30).status_code == 200
    assert web.get(document, timeout=30).json()["fields"]["year"] == 1960
    selected = {"selection": "music.year == 1960 and id.user == 5 or id = 'id:n:music::over-pipe'"}
    visited = web.get(f"{service.url}/document/v1/n/music/docid", params=selected, timeout=30).json()
    assert [each["id"] for each in visited["documents"]] == ["id:n:music::over-pipe"]
    wrong = web.get(f"{service.url}/document/v1/n/music/docid", params={"selection": "music.year =="}, timeout=30)
    assert wrong.status_code == 400
    assert web.delete(document, timeout=30).status_code == 200
    assert web.get(document, timeout=30).status_code == 404


def test_figures(service: Deployed) -> None:
    metrics = web.get(f"{service.url}/state/v1/metrics", timeout=30).json()["metrics"]["values"]
    assert "content.proton.documentdb.documents.total" in {each["name"] for each in metrics}
