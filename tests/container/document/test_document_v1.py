"""The document API: its scripts, against real content clusters, and what a script cannot show."""

from __future__ import annotations

import asyncio
from pathlib import Path

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paperwasp.container.document.v1 import DocumentApi
from paperwasp.coordination.messenger import EmbeddedMessenger
from paperwasp.http.messages import Request, Response
from tests.container.document.document_scripts import SCRIPTS, model_of, run

APPLICATION = SCRIPTS / "document_application"


@pytest.mark.parametrize("path", sorted(SCRIPTS.glob("document_v1_*.txt")), ids=lambda path: path.stem)
def test_script(path: Path, tmp_path: Path) -> None:
    run(path, tmp_path)


def answered(api: DocumentApi, request: Request) -> Response:
    answer = asyncio.run(api.handle(request))
    assert isinstance(answer, Response)
    return answer


def test_without_an_application_there_is_only_the_handshake() -> None:
    api, model = DocumentApi(EmbeddedMessenger()), model_of(APPLICATION)
    put = Request("POST", "/document/v1/ns/music/docid/1", "dryRun=true", body=b'{"fields":{}}')
    for method in ("GET", "POST", "PUT", "DELETE"):
        found = answered(api, Request(method, "/document/v1/ns/music/docid/1", body=b'{"fields":{}}'))
        message = {"pathId": "/document/v1/ns/music/docid/1", "message": "No application is active yet: deploy one"}
        assert (found.status, orjson.loads(found.body)) == (503, message)
    assert answered(api, Request("POST", "/document/v1/feeder/handshake/docid/dummy", "dryRun=true")).status == 200
    assert answered(api, put).status == 503
    api.configure(model)
    assert answered(api, put).status == 200
    api.configure(None)
    assert answered(api, put).status == 503


@pytest.mark.parametrize(
    "path", ["ns", "ns/music", "ns/music/docids/1", "/music/docid/1", "ns/music/number/", "ns/music/group//x"]
)
def test_other_paths_are_told_what_there_is(path: str) -> None:
    found = answered(DocumentApi(EmbeddedMessenger()), Request("GET", "/document/v1/" + path))
    assert found.status == 404
    message = orjson.loads(found.body)["message"]
    assert message.startswith(f"Nothing at '/document/v1/{path}'. Available paths are:\n/document/v1/\n")


METHODS = st.sampled_from(["GET", "POST", "PUT", "DELETE", "PATCH"])
NAMES = st.sampled_from(
    ["timeout", "tracelevel", "create", "dryRun", "condition", "cluster", "route", "fieldSet", "format.tensors", "x"]
)
TEXTS = st.one_of(
    st.text(max_size=20),
    st.sampled_from(
        ["true", "1ms", "music.year>1", "((((", "records", "default", "[id]", "%C3%A9", "%ff", "+", "9" * 400]
    ),
)
QUERIES = st.lists(st.tuples(NAMES, TEXTS), max_size=4).map(lambda pairs: "&".join(f"{n}={v}" for n, v in pairs))
PARTS = st.one_of(
    st.sampled_from(["ns", "music", "docid", "number", "group", "5", "%2F", "%", ""]), st.text(max_size=5)
)
JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-(2**63), 2**64 - 1), st.floats(), st.text(max_size=5)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.one_of(st.text(max_size=5), st.sampled_from(["fields", "year", "tags", "assign"])), inner),
    ),
    max_leaves=8,
)
BODIES = st.one_of(
    st.binary(max_size=20),
    JSON.map(lambda value: orjson.dumps({"fields": value})),
    JSON.map(lambda value: orjson.dumps({"fields": {"year": value, "tags": value, "labels{x}": value}})),
    st.just(b'{"fields":' + b"[" * 100_000),
)


@settings(deadline=None, max_examples=300)
@given(METHODS, st.lists(PARTS, max_size=6).map("/".join), QUERIES, BODIES)
def test_whatever_a_request_says_there_is_an_answer(method: str, path: str, query: str, body: bytes) -> None:
    """Nobody serves the content clusters here: what gets so far is told 404."""
    found = answered(API, Request(method, "/document/v1/" + path, query, body=body))
    assert found.status in (200, 400, 404, 405)
    content = orjson.loads(found.body)
    assert content["pathId"] == "/document/v1/" + path
    assert found.status == 200 or content["message"]


API = DocumentApi(EmbeddedMessenger())
API.configure(model_of(APPLICATION))
