"""Every status of the specification at every interface that it is for, and the bodies of errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import httpx
import pytest

from paperwasp import limits
from paperwasp.configserver import deploy_api
from paperwasp.container.document.v1 import DocumentApi
from paperwasp.container.model_evaluation import EvaluationHandler
from paperwasp.container.search.handler import SearchHandler
from paperwasp.coordination.worker_pool import WorkerPool
from tests import web
from tests.conformance.conftest import Served
from tests.conformance.deploying import SMALL, application_url, deploy, ok, refused, tenant_url

DOCUMENT = "/document/v1/errors/note/docid/1"
LIMITED = "<document-api><max-document-size>1kB</max-document-size></document-api>"


def document_error(answer: httpx.Response, status: int) -> str:
    """Return the message of an error of the Document v1 API; its body is what the specification says."""
    body = answer.json()
    assert answer.status_code == status, answer.text
    assert {"pathId", "message"} <= set(body) <= {"pathId", "id", "message"}
    assert (body["pathId"], type(body["message"])) == (answer.request.url.raw_path.decode().partition("?")[0], str)
    message: str = body["message"]
    return message


def search_error(answer: httpx.Response, status: int) -> dict[str, Any]:
    """Return the first error of an answer of the Search API; it is what the specification says."""
    assert answer.status_code == status, answer.text
    error: dict[str, Any] = answer.json()["root"]["errors"][0]
    assert {"code", "summary", "message"} <= set(error) <= {"code", "summary", "source", "message"}
    assert (type(error["code"]), type(error["summary"]), type(error["message"])) == (int, str, str)
    return error


def test_success_is_200(served: Served) -> None:
    for answer in (
        served.document("POST", "errors/note/docid/ok", {"fields": {}}),
        served.document("GET", "errors/note/docid/ok"),
        served.search(),
        web.get(f"{served.url}/model-evaluation/v1/"),
        web.get(application_url(served)),
    ):
        assert answer.status_code == 200


def test_hits_beside_an_error_are_200(served: Served) -> None:
    """One content cluster of two cannot execute the query: the hits of the other are shown with its error."""
    answer = served.search("select * from sources * where default contains 'giant'")
    error = search_error(answer, 200)
    assert error["source"] == "letters"
    assert [hit["source"] for hit in answer.json()["root"]["children"]] == ["records"]


@pytest.mark.parametrize("method", ["POST", "PUT"])
def test_what_is_created_is_answered_with_200(served: Served, method: str) -> None:
    """201 would be taken for a failure by Vespa's clients: no operation answers with it."""
    body = {"fields": {"stars": {"assign": 1} if method == "PUT" else 1}}
    path = f"errors/note/docid/created-{method}"
    for _ in range(2):
        assert served.document(method, path, body, **({"create": "true"} if method == "PUT" else {})).status_code == 200
    assert served.document("GET", path).status_code == 200


def test_requests_that_cannot_be_read(served: Served) -> None:
    broken = b'{"fields": {'
    document_error(web.post(served.url + DOCUMENT, content=broken), 400)
    document_error(served.document("GET", "errors/note/docid/1", tracelevel="x"), 400)
    search_error(web.post(f"{served.url}/search/", content=broken, headers={"Content-Type": "application/json"}), 400)
    search_error(served.search(hits="x"), 400)
    assert web.get(f"{served.url}/model-evaluation/v1/layer/eval").status_code == 400
    other = {"x": "[1,0,0,0]", "format.tensors": "x"}
    assert web.get(f"{served.url}/model-evaluation/v1/layer/eval", params=other).status_code == 400
    zip_type = {"Content-Type": "application/zip"}
    refused(
        web.post(f"{tenant_url(served)}/session", content=b"x", headers=zip_type), 400, "INVALID_APPLICATION_PACKAGE"
    )
    refused(web.get(application_url(served) + "/serviceconverge", params={"timeout": "x"}), 400, "BAD_REQUEST")


@pytest.mark.parametrize(
    "yql", ["select", "select * from music", "select * from music where", "select * from music where title contains"]
)
def test_a_query_with_a_mistake(served: Served, yql: str) -> None:
    error = search_error(served.search(yql), 400)
    assert (error["code"], error["summary"]) == (4, "Invalid query parameter")
    assert "line 1, column" in error["message"]


def test_what_there_is_not(served: Served) -> None:
    answer = served.document("GET", "errors/note/docid/absent")
    assert (answer.status_code, sorted(answer.json())) == (404, ["id", "pathId"])
    document_error(web.get(f"{served.url}/document/v1/errors/note/other/1"), 404)
    refused(web.get(application_url(served, "nothing")), 404, "NOT_FOUND")
    assert web.get(f"{served.url}/model-evaluation/v1/nothing").status_code == 404
    assert web.get(f"{served.url}/nothing").status_code == 404


def test_a_condition_that_is_not_met(served: Served) -> None:
    served.document("POST", "errors/note/docid/1", {"fields": {"stars": 1}})
    condition = {"condition": "note.stars == 2"}
    for method, body in (("POST", {"fields": {}}), ("PUT", {"fields": {"stars": {"assign": 3}}}), ("DELETE", None)):
        message = document_error(served.document(method, "errors/note/docid/1", body, **condition), 412)
        assert "TEST_AND_SET_CONDITION_FAILED" in message
    assert served.document("GET", "errors/note/docid/1").json()["fields"] == {"stars": 1}


def test_a_body_that_is_too_large(served: Served) -> None:
    """The limit of documents is of the deployment; there are others for the other interfaces."""
    services = str(SMALL["services.xml"]).replace("<document-api/>", LIMITED)
    ok(deploy(served, "limited", {**SMALL, "services.xml": services}))
    url = served.service.container_url(name="default.limited.default") + DOCUMENT
    assert web.post(url, json={"fields": {"text": "x" * 900}}).status_code == 200
    assert "limit 1000 bytes" in document_error(web.post(url, json={"fields": {"text": "x" * 1000}}), 413)
    assert web.post(served.url + DOCUMENT, json={"fields": {"text": "x" * 1000}}).status_code == 200
    large = b'{"yql": "' + b"x" * (17 << 20) + b'"}'
    search_error(web.post(f"{served.url}/search/", content=large), 413)
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    assert web.post(f"{served.url}/model-evaluation/v1/layer/eval", content=large, headers=form).status_code == 413


def test_queries_that_would_wait_behind_too_many(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """In an application whose queue of queries holds none, what no thread is free for is refused."""
    with monkeypatch.context() as patched:
        patched.setattr(WorkerPool.__init__, "__defaults__", (limits.QUERY_THREADS, 0))
        ok(deploy(served, "crowded"))
    url = served.service.container_url(name="default.crowded.default")
    for number in range(2):
        web.post(f"{url}/document/v1/ns/note/docid/{number}", json={"fields": {"stars": number}})
    query = {"yql": "select * from note where true", "timeout": "20s"}
    assert web.get(f"{url}/search/", params={**query, "hits": 1}).status_code == 200  # a small one needs no thread
    error = search_error(web.get(f"{url}/search/", params={**query, "hits": 400}), 429)
    assert (error["code"], error["summary"]) == (429, "Too many requests")


def defect(*_: object) -> None:
    raise RuntimeError("on purpose")


INTERNAL = "Internal server error"
SEARCH_DEFECT = {"code": 18, "summary": "Internal server error.", "message": INTERNAL}
DEFECTS: tuple[tuple[object, str, Callable[[Served], httpx.Response], dict[str, Any]], ...] = (
    (
        DocumentApi,
        "begin",
        lambda served: served.document("GET", "errors/note/docid/1"),
        {"pathId": DOCUMENT, "message": INTERNAL},
    ),
    (
        SearchHandler,
        "begin",
        lambda served: served.search(),
        {"root": {"id": "toplevel", "relevance": 1.0, "fields": {"totalCount": 0}, "errors": [SEARCH_DEFECT]}},
    ),
    (
        EvaluationHandler,
        "handle",
        lambda served: web.get(f"{served.url}/model-evaluation/v1/"),
        {"error": INTERNAL},
    ),
    (
        deploy_api,
        "archive_in",
        lambda served: web.post(f"{tenant_url(served)}/session"),
        {"error-code": "INTERNAL_SERVER_ERROR", "message": "RuntimeError: on purpose"},
    ),
)


@pytest.mark.parametrize(("of", "method", "ask", "body"), DEFECTS, ids=["document", "search", "models", "deploy"])
def test_a_defect_is_500(
    served: Served,
    monkeypatch: pytest.MonkeyPatch,
    of: object,
    method: str,
    ask: Callable[[Served], httpx.Response],
    body: dict[str, Any],
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(of, method, defect)
        answer = ask(served)
    assert (answer.status_code, answer.json()) == (500, body)
    assert ask(served).status_code < 500  # the service goes on
