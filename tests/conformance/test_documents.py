"""Documents: their ids and paths, the four operations with their states and parameters, and what is answered."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from paperwasp import limits
from tests import web
from tests.conformance.conftest import Served

PATHS = {
    "docid/a": "id:{}:note::a",
    "number/5/a": "id:{}:note:n=5:a",
    "group/g/a": "id:{}:note:g=g:a",
}
"""The three forms of a path below namespace and type, and the ids that they address."""


def put(served: Served, path: str, text: str = "first", **parameters: Any) -> httpx.Response:
    return served.document("POST", path, {"fields": {"text": text, "stars": 3}}, **parameters)


def update(served: Served, path: str, stars: int, **parameters: Any) -> httpx.Response:
    return served.document("PUT", path, {"fields": {"stars": {"assign": stars}}}, **parameters)


def fields(served: Served, path: str) -> dict[str, Any] | None:
    """Return the fields of a document; None: there is none."""
    answer = served.document("GET", path)
    assert answer.status_code in (200, 404), answer.text
    found: dict[str, Any] | None = answer.json().get("fields")
    return found


@pytest.mark.parametrize(("path", "of_id"), PATHS.items())
def test_a_path_addresses_an_id(served: Served, path: str, of_id: str) -> None:
    expected = {"pathId": f"/document/v1/paths/note/{path}", "id": of_id.format("paths")}
    answer = put(served, f"paths/note/{path}")
    assert (answer.status_code, answer.json()) == (200, expected)
    answer = served.document("GET", f"paths/note/{path}")
    assert (answer.status_code, answer.json()) == (200, {**expected, "fields": {"text": "first", "stars": 3}})


def test_documents_of_a_number_or_group_lie_together(served: Served) -> None:
    for path in ("number/7/a", "number/7/b", "group/x/a", "group/x/b", "docid/c"):
        assert put(served, f"together/note/{path}").status_code == 200
    for place, of_id in (("number/7", "n=7"), ("group/x", "g=x")):
        visited = served.document("GET", f"together/note/{place}", cluster="records").json()
        assert sorted(each["id"] for each in visited["documents"]) == [f"id:together:note:{of_id}:{x}" for x in "ab"]
    assert served.document("POST", "together/note/number/seven/a", {"fields": {}}).status_code == 400


@pytest.mark.parametrize("path", PATHS)
def test_the_four_operations(served: Served, path: str) -> None:
    whole = f"operations/note/{path}"
    place = {"pathId": f"/document/v1/{whole}", "id": PATHS[path].format("operations")}
    missing = served.document("GET", whole)
    assert (missing.status_code, missing.json()) == (404, place)
    for text in ("created", "replaced"):
        answer = put(served, whole, text)
        assert (answer.status_code, answer.json()) == (200, place)
        assert fields(served, whole) == {"text": text, "stars": 3}
    answer = update(served, whole, 4)
    assert (answer.status_code, answer.json()) == (200, place)
    assert fields(served, whole) == {"text": "replaced", "stars": 4}
    answer = served.document("DELETE", whole)
    assert (answer.status_code, answer.json()) == (200, place)
    assert fields(served, whole) is None


def test_a_put_replaces_the_whole_document(served: Served) -> None:
    put(served, "whole/note/docid/1", "first")
    served.document("POST", "whole/note/docid/1", {"fields": {"text": "second"}})
    assert fields(served, "whole/note/docid/1") == {"text": "second"}


def test_a_body_has_fields(served: Served) -> None:
    wrong: tuple[object, ...] = ({}, {"text": "x"}, [])
    for method in ("POST", "PUT"):
        for body in wrong:
            answer = served.document(method, "bodies/note/docid/1", body)
            assert (answer.status_code, sorted(answer.json())) == (400, ["message", "pathId"]), answer.text
    assert served.document("POST", "bodies/note/docid/1", {"fields": {"other": 1}}).status_code == 400
    assert served.document("POST", "bodies/note/docid/1", {"fields": {"stars": "x"}}).status_code == 400
    assert served.document("POST", "bodies/other/docid/1", {"fields": {}}).status_code == 400
    assert fields(served, "bodies/note/docid/1") is None


def test_what_is_absent_is_changed_by_no_update_or_remove(served: Served) -> None:
    """Vespa answers 200 and does nothing; its clients rely on it."""
    for answer in (update(served, "absent/note/docid/1", 1), served.document("DELETE", "absent/note/docid/1")):
        assert (answer.status_code, sorted(answer.json())) == (200, ["id", "pathId"])
    assert fields(served, "absent/note/docid/1") is None


@pytest.mark.parametrize("operation", ["POST", "PUT", "DELETE"])
def test_a_condition_decides(served: Served, operation: str) -> None:
    path = f"conditions/note/docid/{operation}"
    body: Any = {"POST": {"fields": {"stars": 9}}, "PUT": {"fields": {"stars": {"assign": 9}}}, "DELETE": None}[
        operation
    ]
    absent = served.document(operation, path, body, condition="note.stars == 3")
    assert absent.status_code == 412
    put(served, path)
    for condition in ("note.stars == 4", "note.stars < 3", 'note.text == "other"'):
        answer = served.document(operation, path, body, condition=condition)
        assert answer.status_code == 412, answer.text
        assert {"pathId", "message"} <= set(answer.json())
        assert answer.json()["message"].startswith("TEST_AND_SET_CONDITION_FAILED")
        assert fields(served, path) == {"text": "first", "stars": 3}
    assert served.document(operation, path, body, condition="note.nothing == 3").status_code == 400
    assert served.document(operation, path, body, condition="note.stars == 3").status_code == 200
    expected = {"POST": {"stars": 9}, "PUT": {"text": "first", "stars": 9}, "DELETE": None}[operation]
    assert fields(served, path) == expected


def test_create_of_a_put_is_for_what_is_absent(served: Served) -> None:
    path = "creating/note/docid/put"
    assert put(served, path, "one", create="true").status_code == 200
    answer = put(served, path, "two", create="true")
    assert (answer.status_code, "message" in answer.json()) == (412, True)
    assert fields(served, path) == {"text": "one", "stars": 3}
    for parameters in ({}, {"create": "false"}):
        assert put(served, path, "three", **parameters).status_code == 200
    assert fields(served, path) == {"text": "three", "stars": 3}


def test_create_of_an_update_makes_what_is_absent(served: Served) -> None:
    path = "creating/note/docid/update"
    for parameters in ({}, {"create": "false"}):
        assert update(served, path, 1, **parameters).status_code == 200
        assert fields(served, path) is None
    assert update(served, path, 2, create="true").status_code == 200
    assert fields(served, path) == {"stars": 2}
    assert update(served, path, 3, create="true").status_code == 200
    assert fields(served, path) == {"stars": 3}


def test_a_dry_run_checks_and_does_nothing(served: Served) -> None:
    path = "dry/note/docid/1"
    assert put(served, path, dryRun="true").status_code == 200
    assert fields(served, path) is None
    put(served, path, dryRun="false")
    assert update(served, path, 9, dryRun="true").status_code == 200
    assert served.document("DELETE", path, dryRun="true").status_code == 200
    assert fields(served, path) == {"text": "first", "stars": 3}
    wrong = served.document("POST", path, {"fields": {"stars": "many"}}, dryRun="true")
    assert (wrong.status_code, "stars" in wrong.json()["message"]) == (400, True)
    assert served.document("GET", path, dryRun="true").status_code == 400
    handshake = served.document("POST", "feeder/handshake/docid/dummy", dryRun="true")
    assert handshake.status_code == 200


def test_routes(served: Served) -> None:
    for number, route in enumerate(("default", "indexing", "records")):
        assert put(served, f"routes/note/docid/{number}", route=route).status_code == 200
        assert fields(served, f"routes/note/docid/{number}") is not None
    answer = put(served, "routes/note/docid/9", route="nowhere")
    assert (answer.status_code, "'nowhere'" in answer.json()["message"]) == (400, True)
    assert fields(served, "routes/note/docid/9") is None
    # A route leads to one of several clusters.
    assert served.copies("POST", "routes/note/docid/1", {"fields": {"stars": 1}}, route="second").status_code == 200
    found = [
        served.copies("GET", "routes/note/docid/1", cluster=cluster).status_code for cluster in ("first", "second")
    ]
    assert found == [404, 200]


def test_the_cluster_of_a_get(served: Served) -> None:
    put(served, "clusters/note/docid/1")
    path = "clusters/note/docid/1"
    assert served.document("GET", path, cluster="records").status_code == 200
    answer = served.document("GET", path, cluster="none")
    assert (answer.status_code, "'records'" in answer.json()["message"]) == (400, True)
    # Of several clusters with the type, the first that has the document answers where none is named.
    served.copies("POST", path, {"fields": {"stars": 2}}, cluster="second")
    assert served.copies("GET", path, cluster="first").status_code == 404
    assert served.copies("GET", path, cluster="second").json()["fields"] == {"stars": 2}
    assert served.copies("GET", path).json()["fields"] == {"stars": 2}


@pytest.mark.parametrize(
    ("field_set", "expected"),
    [
        (None, {"text": "first", "stars": 3}),
        ("[document]", {"text": "first", "stars": 3}),
        ("note:[document]", {"text": "first", "stars": 3}),
        ("[id]", {}),
        ("stars", {"stars": 3}),
        ("text,stars", {"text": "first", "stars": 3}),
        ("note:text", {"text": "first"}),
    ],
)
def test_field_sets(served: Served, field_set: str | None, expected: dict[str, Any]) -> None:
    put(served, "sets/note/docid/1")
    parameters = {} if field_set is None else {"fieldSet": field_set}
    answer = served.document("GET", "sets/note/docid/1", **parameters)
    assert (answer.status_code, answer.json()["fields"]) == (200, expected)
    (visited,) = served.document("GET", "sets/note/docid", cluster="records", **parameters).json()["documents"]
    assert visited == {"id": "id:sets:note::1", "fields": expected}
    assert served.document("GET", "sets/note/docid/1", fieldSet="nothing").status_code == 400


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "DELETE"])
def test_the_timeout(served: Served, method: str) -> None:
    body: Any = {"POST": {"fields": {}}, "PUT": {"fields": {}}}.get(method)
    path = f"timeouts/note/docid/{method}"
    put(served, path)
    for timeout in ("5s", "1000ms", "5", "180s"):
        assert served.document(method, path, body, timeout=timeout).status_code in (200, 404)
    assert served.document(method, path, body, timeout="soon").status_code == 400
    traced = served.document(method, path, body, tracelevel="1").json()["trace"]
    assert "within 180000 ms" in traced[0]["message"]
    assert limits.DOCUMENT_TIMEOUT_MS == 180_000


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "DELETE"])
def test_the_trace_level(served: Served, method: str) -> None:
    body: Any = {"POST": {"fields": {}}, "PUT": {"fields": {}}}.get(method)
    path = f"traces/note/docid/{method}"
    put(served, path)
    for parameters in ({}, {"tracelevel": "0"}):
        assert "trace" not in served.document(method, path, body, **parameters).json()
    for level in ("1", "9"):
        trace = served.document(method, path, body, tracelevel=level).json()["trace"]
        assert trace and all("message" in each or "fork" in each for each in trace)
    for level in ("-1", "10", "x"):
        assert served.document(method, path, body, tracelevel=level).status_code == 400


def test_documents_are_searchable_as_soon_as_they_are_fed(served: Served) -> None:
    for number in range(20):
        word = f"word{number}"
        assert put(served, f"fresh/note/docid/{number}", word).status_code == 200
        assert served.ids(f"select * from note where text contains '{word}'") == [str(number)]
        assert update(served, f"fresh/note/docid/{number}", 100 + number).status_code == 200
        assert served.ids(f"select * from note where stars = {100 + number}") == [str(number)]
        assert served.document("DELETE", f"fresh/note/docid/{number}").status_code == 200
        assert served.ids(f"select * from note where text contains '{word}'") == []


def test_updates_beside_assign(served: Served) -> None:
    path = "arithmetic/note/docid/1"
    put(served, path)
    for operation, value, expected in (("increment", 4, 7), ("decrement", 1, 6), ("multiply", 3, 18), ("divide", 2, 9)):
        answer = served.document("PUT", path, {"fields": {"stars": {operation: value}}})
        assert answer.status_code == 200, answer.text
        assert fields(served, path) == {"text": "first", "stars": expected}
    assert served.document("PUT", path, {"fields": {"stars": {"square": 1}}}).status_code == 400


def test_a_document_of_json_and_of_cbor_are_one(served: Served) -> None:
    body = b"\xa1ffields\xa1estars\x07"  # {"fields": {"stars": 7}}
    url = f"{served.url}/document/v1/cbor/note/docid/1"
    as_cbor = {"Content-Type": "application/cbor"}
    assert web.post(url, content=body, headers=as_cbor).status_code == 200
    assert web.post(url, content=body).status_code == 400  # without a type, a body is JSON
    answer = web.get(url)
    assert answer.headers["content-type"].startswith("application/json")
    assert answer.json()["fields"] == {"stars": 7}
    answer = web.get(url, headers={"Accept": "application/cbor"})
    assert (answer.headers["content-type"], b"ffields\xa1estars\x07" in answer.content) == ("application/cbor", True)
