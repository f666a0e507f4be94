"""Visits, and what is done to many documents at once."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from tests import web
from tests.conformance.conftest import Served

HOUR_US = 3600 * 1_000_000


def feed(served: Served, namespace: str, count: int = 5, kind: str = "note") -> None:
    for number in range(count):
        body = {"fields": {"stars": number} if kind == "note" else {"name": f"label {number}"}}
        assert served.document("POST", f"{namespace}/{kind}/docid/{number}", body).status_code == 200


def visit(served: Served, namespace: str, kind: str = "note", **parameters: Any) -> dict[str, Any]:
    """Return the answer to one request of a visit, which must have succeeded."""
    answer = served.document("GET", f"{namespace}/{kind}/docid", **{"cluster": "records", **parameters})
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def ids(answer: dict[str, Any]) -> list[str]:
    return sorted(each["id"].rpartition(":")[2] for each in answer["documents"] if "id" in each)


def refused(served: Served, namespace: str, **parameters: Any) -> str:
    answer = served.document("GET", f"{namespace}/note/docid", **{"cluster": "records", **parameters})
    assert (answer.status_code, sorted(answer.json())) == (400, ["message", "pathId"]), answer.text
    message: str = answer.json()["message"]
    return message


def test_a_visit(served: Served) -> None:
    feed(served, "visits", 3)
    answer = visit(served, "visits")
    assert answer == {
        "pathId": "/document/v1/visits/note/docid",
        "documents": answer["documents"],
        "documentCount": 3,
    }
    by_id = {each["id"]: each for each in answer["documents"]}
    assert by_id == {
        f"id:visits:note::{number}": {"id": f"id:visits:note::{number}", "fields": {"stars": number}}
        for number in range(3)
    }


def test_a_continuation_goes_on_until_there_is_none(served: Served) -> None:
    feed(served, "continued", 5)
    seen: list[str] = []
    parameters: dict[str, Any] = {}
    for _ in range(5):
        answer = visit(served, "continued", wantedDocumentCount=1, **parameters)
        assert answer["documentCount"] == len(answer["documents"])
        seen += ids(answer)
        if "continuation" not in answer:
            break
        assert isinstance(answer["continuation"], str)
        parameters["continuation"] = answer["continuation"]
    assert sorted(seen) == list("01234")
    refused(served, "continued", continuation="nonsense")


def test_the_wanted_count(served: Served) -> None:
    feed(served, "counted", 5)
    assert visit(served, "counted", wantedDocumentCount=2)["documentCount"] == 2
    assert visit(served, "counted", wantedDocumentCount=100)["documentCount"] == 5
    assert visit(served, "counted")["documentCount"] == 5
    for count in ("0", "-1", "x"):
        refused(served, "counted", wantedDocumentCount=count)


def test_a_selection(served: Served) -> None:
    feed(served, "selected", 5)
    assert ids(visit(served, "selected", selection="note.stars > 2")) == ["3", "4"]
    assert len(ids(visit(served, "selected", selection="true"))) == 5
    refused(served, "selected", selection="note.stars >")


def test_concurrency_has_bounds(served: Served) -> None:
    feed(served, "parallel", 3)
    for concurrency in ("1", "1024"):
        assert ids(visit(served, "parallel", concurrency=concurrency)) == ["0", "1", "2"]
    for concurrency in ("0", "1025", "-1", "x"):
        refused(served, "parallel", concurrency=concurrency)


def test_bucket_spaces(served: Served) -> None:
    feed(served, "spaces", 2)
    feed(served, "spaces", 1, "label")
    url = f"{served.url}/document/v1/"
    parameters = {"cluster": "records", "selection": "id.namespace == 'spaces'"}
    for space, types in ((None, {"note"}), ("default", {"note"}), ("global", {"label"})):
        chosen = {} if space is None else {"bucketSpace": space}
        answer = web.get(url, params={**parameters, **chosen}).json()
        assert {each["id"].split(":")[2] for each in answer["documents"]} == types
    assert web.get(url, params={**parameters, "bucketSpace": "other"}).status_code == 400
    assert ids(visit(served, "spaces", "label", bucketSpace="global")) == ["0"]


def test_a_stream_is_lines_of_documents(served: Served) -> None:
    feed(served, "streamed", 4)
    answer = served.document("GET", "streamed/note/docid", cluster="records", stream="true")
    assert answer.status_code == 200
    lines = [json.loads(line) for line in answer.text.splitlines()]
    assert {line["id"]: line["fields"] for line in lines} == {
        f"id:streamed:note::{number}": {"stars": number} for number in range(4)
    }
    assert "documents" in visit(served, "streamed", stream="false")


def test_slices_are_parts_of_the_whole(served: Served) -> None:
    feed(served, "sliced", 12)
    parts = [ids(visit(served, "sliced", slices=3, sliceId=part)) for part in range(3)]
    assert sorted(number for part in parts for number in part) == sorted(map(str, range(12)))
    for wrong in ({"slices": 3}, {"sliceId": 0}, {"slices": 0, "sliceId": 0}):
        refused(served, "sliced", **wrong)
    for slice_id in (-1, 3):
        refused(served, "sliced", slices=3, sliceId=slice_id)


def test_times_of_changes(served: Served) -> None:
    feed(served, "timed", 2)
    now = int(time.time() * 1_000_000)
    assert ids(visit(served, "timed", fromTimestamp=now - HOUR_US, toTimestamp=now + HOUR_US)) == ["0", "1"]
    assert ids(visit(served, "timed", fromTimestamp=now - HOUR_US)) == ["0", "1"]
    assert ids(visit(served, "timed", fromTimestamp=now + HOUR_US)) == []
    assert ids(visit(served, "timed", toTimestamp=now - HOUR_US)) == []
    assert ids(visit(served, "timed", toTimestamp=now + HOUR_US)) == ["0", "1"]
    refused(served, "timed", fromTimestamp=now, toTimestamp=now - 1)
    refused(served, "timed", fromTimestamp="yesterday")


def test_removed_documents(served: Served) -> None:
    feed(served, "removed", 3)
    served.document("DELETE", "removed/note/docid/1")
    for parameters in ({}, {"includeRemoves": "false"}):
        assert ids(visit(served, "removed", **parameters)) == ["0", "2"]
    answer = visit(served, "removed", includeRemoves="true")
    assert ids(answer) == ["0", "2"]
    assert [each for each in answer["documents"] if "remove" in each] == [{"remove": "id:removed:note::1"}]
    assert answer["documentCount"] == 3


def test_the_cluster_of_a_visit(served: Served) -> None:
    feed(served, "clustered", 1)
    refused(served, "clustered", cluster="none")
    assert web.get(f"{served.url}/document/v1/").status_code == 400  # at the root it is required
    answer = served.copies("GET", "clustered/note/docid")
    assert (answer.status_code, "'first'" in answer.json()["message"]) == (400, True)
    assert served.copies("GET", "clustered/note/docid", cluster="first").status_code == 200


def test_many_are_updated(served: Served) -> None:
    feed(served, "changed", 5)
    body = {"fields": {"stars": {"assign": 50}}}
    answer = served.document("PUT", "changed/note/docid/", body, cluster="records", selection="note.stars >= 3")
    expected = {"pathId": "/document/v1/changed/note/docid/", "documentCount": 2}
    assert (answer.status_code, answer.json()) == (200, expected)
    assert ids(visit(served, "changed", selection="note.stars == 50")) == ["3", "4"]


def test_many_are_removed(served: Served) -> None:
    feed(served, "erased", 5)
    answer = served.document("DELETE", "erased/note/docid/", cluster="records", selection="note.stars < 2")
    assert (answer.status_code, answer.json()) == (
        200,
        {"pathId": "/document/v1/erased/note/docid/", "documentCount": 2},
    )
    assert ids(visit(served, "erased")) == ["2", "3", "4"]


def test_many_are_copied(served: Served) -> None:
    for number in range(3):
        body = {"fields": {"stars": number}}
        assert served.copies("POST", f"copied/note/docid/{number}", body, cluster="first").status_code == 200
    parameters = {"cluster": "first", "selection": "note.stars > 0"}
    answer = served.copies("POST", "copied/note/docid/", None, destinationCluster="second", **parameters)
    assert (answer.status_code, answer.json()) == (
        200,
        {"pathId": "/document/v1/copied/note/docid/", "documentCount": 2},
    )
    there = served.copies("GET", "copied/note/docid", cluster="second").json()
    assert ids(there) == ["1", "2"]
    without = served.copies("POST", "copied/note/docid/", None, **parameters)
    assert (without.status_code, "destinationCluster" in without.json()["message"]) == (400, True)
    nowhere = served.copies("POST", "copied/note/docid/", None, destinationCluster="third", **parameters)
    assert nowhere.status_code == 400


@pytest.mark.parametrize(
    ("method", "missing"), [(m, p) for m in ("PUT", "DELETE", "POST") for p in ("cluster", "selection")]
)
def test_what_changes_many_says_which(served: Served, method: str, missing: str) -> None:
    parameters = {"cluster": "first", "selection": "true", "destinationCluster": "second"}
    if method != "POST":
        del parameters["destinationCluster"]
    del parameters[missing]
    body = {"fields": {"stars": {"assign": 1}}} if method == "PUT" else None
    served.copies("POST", "careful/note/docid/1", {"fields": {"stars": 7}})
    answer = served.copies(method, "careful/note/docid/", body, **parameters)
    assert (answer.status_code, missing in answer.json()["message"]) == (400, True)
    assert served.copies("GET", "careful/note/docid/1").json()["fields"] == {"stars": 7}
    for refused_there in ("dryRun", "concurrency", "fieldSet", "route", "wantedDocumentCount"):
        more = {**parameters, missing: "true" if missing == "selection" else "first", refused_there: "1"}
        assert served.copies(method, "careful/note/docid/", body, **more).status_code == 400


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "POST"])
def test_timeout_and_trace_level_of_many(served: Served, method: str) -> None:
    body = {"fields": {"stars": {"assign": 1}}} if method == "PUT" else None
    parameters = {"cluster": "first", "selection": "true"}
    if method == "POST":
        parameters["destinationCluster"] = "second"
    served.copies("POST", "timed/note/docid/1", {"fields": {"stars": 7}}, cluster="first")
    path = "timed/note/docid/"
    assert "trace" not in served.copies(method, path, body, timeout="1000ms", **parameters).json()
    traced = served.copies(method, path, body, timeout="5s", tracelevel=9, **parameters)
    assert (traced.status_code, "message" in traced.json()["trace"][0]) == (200, True)
    for wrong in ({"timeout": "soon"}, {"tracelevel": "10"}, {"tracelevel": "-1"}):
        assert served.copies(method, path, body, **parameters, **wrong).status_code == 400
