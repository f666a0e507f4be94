"""The real pyvespa against the whole service: deploy, wait, feed in three ways, query, errors."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest
from vespa.application import Vespa
from vespa.exceptions import VespaError
from vespa.io import VespaQueryResponse, VespaResponse
from vespa.package import ApplicationPackage, Document, Field, FieldSet, RankProfile, Schema

from tests import web
from tests.service.running import RunningService, running_service

pytestmark = pytest.mark.clients
DEPLOY = "/application/v2/tenant/default/prepareandactivate"
DOCUMENTS = 50


def application_package() -> ApplicationPackage:
    title = Field("title", "string", ["index", "summary"], index="enable-bm25", bolding=True)
    year = Field("year", "int", ["attribute", "summary"])
    schema = Schema(
        "music",
        Document([title, year]),
        fieldsets=[FieldSet("default", ["title"])],
        rank_profiles=[RankProfile("bm25", first_phase="bm25(title)")],
    )
    return ApplicationPackage("music", schema=[schema])


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    """Deployed as VespaDocker does it: HEAD /ApplicationStatus, then the package, then waiting."""
    with running_service(tmp_path_factory.mktemp("pyvespa") / "data") as running:
        assert web.head(running.config_url + "/ApplicationStatus").status_code == 200
        zip_bytes: io.BytesIO = application_package().to_zip()
        answer = web.post(
            running.config_url + DEPLOY,
            content=zip_bytes.getvalue(),
            headers={"Content-Type": "application/zip"},
            timeout=30,
        )
        assert answer.status_code == 200, answer.text
        yield running


@pytest.fixture
def vespa(service: RunningService) -> Vespa:
    host, _, port = service.url.rpartition(":")
    connected = Vespa(url=host, port=int(port))
    connected.wait_for_application_up(max_wait=30)
    return connected


def documents(prefix: str) -> Iterator[dict[str, Any]]:
    for number in range(DOCUMENTS):
        # Long enough for pyvespa to compress some of them.
        fields = {"title": f"{prefix} song number {number} " * (1 + number % 60), "year": 1900 + number}
        yield {"id": f"{prefix}/{number} é+", "fields": fields}


def test_one_document_after_the_other(vespa: Vespa) -> None:
    answer = vespa.feed_data_point("music", "one", {"title": "Blue Train", "year": 1957})
    assert answer.is_successful()
    assert vespa.get_data("music", "one").json["fields"] == {"title": "Blue Train", "year": 1957}
    assert vespa.update_data("music", "one", {"year": 1958}).is_successful()
    assert vespa.get_data("music", "one").json["fields"]["year"] == 1958
    assert vespa.delete_data("music", "one").is_successful()
    assert vespa.get_data("music", "one").status_code == 404
    with pytest.raises(VespaError):
        vespa.feed_data_point("music", "two", {"year": "soon"})


def test_feed_iterable(vespa: Vespa) -> None:
    answers = feed(vespa, "feed_iterable", "threads")
    assert [answer.status_code for answer in answers] == [200] * DOCUMENTS


def test_feed_async_iterable(vespa: Vespa) -> None:
    answers = feed(vespa, "feed_async_iterable", "async")
    assert [answer.status_code for answer in answers] == [200] * DOCUMENTS


def query(vespa: Vespa, **parameters: Any) -> VespaQueryResponse:
    """An answer that is not streamed."""
    found = vespa.query(**parameters)
    assert isinstance(found, VespaQueryResponse)
    return found


def feed(vespa: Vespa, method: str, prefix: str) -> list[VespaResponse]:
    answers: list[VespaResponse] = []
    getattr(vespa, method)(documents(prefix), schema="music", callback=lambda answer, _: answers.append(answer))
    found = query(vespa, yql="select * from music where userQuery()", query=prefix, ranking="bm25", hits=1)
    assert found.number_documents_retrieved == DOCUMENTS
    return answers


def test_queries(vespa: Vespa) -> None:
    vespa.feed_data_point("music", "giant", {"title": "Giant Steps", "year": 1960})
    answer = query(vespa, yql="select * from music where userQuery()", query="giant", ranking="bm25")
    assert [hit["id"] for hit in answer.hits] == ["id:music:music::giant"]
    assert answer.hits[0]["fields"]["title"] == "<hi>Giant</hi> Steps"
    assert answer.hits[0]["relevance"] > 0
    body = {"yql": "select title from music where year = 1960", "hits": 3}
    assert [hit["fields"] for hit in query(vespa, body=body).hits] == [{"title": "Giant Steps"}]
    assert query(vespa, query="sddocname:music").number_documents_retrieved > 0
    with pytest.raises(VespaError):
        vespa.query(yql="select nonsense")


def test_many_queries_over_http2(vespa: Vespa) -> None:
    queries = [{"yql": f"select * from music where year = {1900 + number}"} for number in range(20)]
    answers = vespa.query_many(queries)
    assert [answer.status_code for answer in answers] == [200] * len(queries)


def test_visits(vespa: Vespa) -> None:
    """Page by page, slice by slice, with and without a schema in the path, whole and streamed."""
    ids = {f"id:shelf:music::{number}" for number in range(DOCUMENTS)}
    fed = [{"id": str(number), "fields": {"title": f"song {number}", "year": number}} for number in range(DOCUMENTS)]
    vespa.feed_iterable(fed, schema="music", namespace="shelf")

    def visited(**wishes: Any) -> list[str]:
        wishes = {"schema": "music", "namespace": "shelf", "wanted_document_count": 7, **wishes}
        # Closed here where a page is an error: its pool of threads would be waited for by whichever thread collects it.
        with closing(vespa.visit("music_content", **wishes)) as parts:
            pages = [page for part in parts for page in part]
        assert all(page.number_documents_retrieved == len(page.documents) for page in pages)
        return [document["id"] for page in pages for document in page.documents]

    assert sorted(visited()) == sorted(ids)
    assert sorted(visited(slices=5)) == sorted(ids)
    assert sorted(visited(slices=2, slice_id=0) + visited(slices=2, slice_id=1)) == sorted(ids)
    assert ids <= set(visited(schema=None, namespace=None, wanted_document_count=500))
    assert sorted(visited(stream="true")) == sorted(ids)
    assert sorted(visited(selection="music.year < 3")) == [f"id:shelf:music::{number}" for number in range(3)]
    with pytest.raises(VespaError, match="No field 'yeer' in document type 'music'"):
        visited(selection="music.yeer < 3")


def test_delete_all_documents(vespa: Vespa) -> None:
    fed = [{"id": str(number), "fields": {"year": number}} for number in range(DOCUMENTS)]
    vespa.feed_iterable(fed, schema="music", namespace="gone")
    vespa.delete_all_docs("music_content", "music", namespace="gone", slices=4)
    pages = [page for part in vespa.visit("music_content", "music", "gone") for page in part]
    assert [page.documents for page in pages] == [[]]
    with pytest.raises(VespaError, match="no content cluster 'nothing'"):
        vespa.delete_all_docs("nothing", "music")
