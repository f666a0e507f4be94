"""What pyvespa's own integration tests ask of a container about documents, asked of VespaLocal.

The facts (which answer has which fields, statuses, paths) are those that the tests of pyvespa hold Vespa to.
"""

from __future__ import annotations

import asyncio
import io
import json
import time
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest
from vespa.application import Vespa, VespaAsync, VespaSync
from vespa.exceptions import VespaError
from vespa.io import VespaQueryResponse, VespaResponse
from vespa.package import ApplicationPackage, RankProfile

from paperwasp.testing import VespaLocal
from tests.testing.pyvespa_applications import (
    APPLICATIONS,
    deployed,
    mail,
    passages,
    questions,
    slow,
    updates,
)

pytestmark = pytest.mark.clients
EMBEDDING = [number / 512 for number in range(512)]
Fields = dict[str, Any]


def _status(app: Vespa) -> int | None:
    """None: nothing answers, which pyvespa's own method says only after half a minute."""
    try:
        return httpx.get(f"{app.end_point}/ApplicationStatus").status_code
    except httpx.ConnectError:
        return None


@pytest.mark.parametrize("name", APPLICATIONS)
def test_each_application_starts(name: str, record_property: Callable[[str, object], None]) -> None:
    started = time.monotonic()
    with deployed(APPLICATIONS[name]()) as app:
        assert _status(app) == 200
        record_property("seconds", round(time.monotonic() - started, 2))


def test_a_changed_application_has_its_new_profile() -> None:
    package = passages()
    body = {
        "yql": "select * from sources * where default contains 'music'",
        "ranking": "new-rank-profile",
        "timeout": "60s",
    }
    with VespaLocal(port=0, cfgsrv_port=0, output_file=io.StringIO()) as local:
        with pytest.raises(VespaError):
            local.deploy(package).query(body=body)
        package.schema.add_rank_profile(RankProfile("new-rank-profile", inherits="default", first_phase="bm25(title)"))
        answer = local.deploy(package).query(body=body)
        assert isinstance(answer, VespaQueryResponse) and "errors" not in answer.json["root"]


def test_services_start_stop_and_restart() -> None:
    with VespaLocal(port=0, cfgsrv_port=0, output_file=io.StringIO()) as local:
        for method in (local.stop_services, local.start_services):
            with pytest.raises(RuntimeError):
                method()
        app = local.deploy(application_package=passages())

        def is_up() -> tuple[bool, int | None]:
            return local._check_configuration_server(), _status(app)

        assert is_up() == (True, 200)
        local.stop_services()
        assert is_up() == (False, None)
        local.start_services()
        assert is_up() == (True, 200)
        local.restart_services()
        assert is_up() == (True, 200)


def test_a_container_without_models_says_so() -> None:
    with deployed(passages()) as connected:
        app: Any = connected
        for model in (None, "bert_tiny"):
            found = app.get_model_endpoint(model)
            address = f"{app.end_point}/model-evaluation/v1/{model or ''}"
            assert found["status_code"] == 404
            assert json.loads(found["message"]) == {"message": f"No binding for URI '{address}'."}
        with pytest.raises(ValueError, match="Model named bert_tiny not defined in the application package"):
            app.predict("this is a test", model_id="bert_tiny")


PASSAGES = [{"id": str(n), "title": f"this is title {n}", "body": f"this is body {n}"} for n in range(10)]
SENTENCE: Fields = {"id": "0", "text": "what is it", "dataset": "squad", "context_id": 3, "questions": []}
CONTEXT: Fields = {"id": "0", "text": "all of it", "dataset": "squad", "context_id": 3, "questions": [0, 4]}
READ_SENTENCE = {
    **{name: value for name, value in SENTENCE.items() if value != []},
    "sentence_embedding": {"type": "tensor<float>(x[512])", "values": EMBEDDING},
}
CASES: dict[str, tuple[Callable[[], ApplicationPackage], str, Fields, Fields, Fields]] = {
    "msmarco": (passages, "msmarco", PASSAGES[0], PASSAGES[0], {"id": "0", "title": "this is updated"}),
    "sentence": (
        questions,
        "sentence",
        {**SENTENCE, "sentence_embedding": {"values": EMBEDDING}},
        READ_SENTENCE,
        {"id": "0", "text": "updated"},
    ),
    "context": (questions, "context", CONTEXT, CONTEXT, {"id": "0", "text": "updated"}),
}
"""Package, document type, a document as it is fed, as it is read, and fields that change."""


@pytest.fixture(params=CASES)
def case(request: pytest.FixtureRequest) -> Iterator[tuple[Vespa, str, Fields, Fields, Fields]]:
    make, schema, fed, read, changed = CASES[request.param]
    with deployed(make()) as app:
        yield app, schema, dict(fed), dict(read), dict(changed)


def test_a_document_is_fed_read_visited_changed_and_removed(
    case: tuple[Any, str, Fields, Fields, Fields],
) -> None:
    app, schema, fed, read, changed = case
    full = f"id:{schema}:{schema}::0"
    path = f"/document/v1/{schema}/{schema}/docid/"

    def shown() -> Any:
        return app.get_data(schema=schema, data_id="0")

    assert (shown().status_code, shown().is_successful()) == (404, False)
    assert app.feed_data_point(schema=schema, data_id="0", fields=fed).json["id"] == full
    assert (shown().status_code, shown().json) == (200, {"id": full, "pathId": f"{path}0", "fields": read})

    slices = app.visit(schema=schema, content_cluster_name=f"{app.application_package.name}_content", timeout="200s")
    first = next(page for each in slices for page in each)
    assert first.json == {"pathId": path, "documents": [{"id": full, "fields": read}], "documentCount": 1}

    assert app.update_data(schema=schema, data_id="0", fields=changed).json["id"] == full
    assert shown().json["fields"] == {**read, **changed}
    assert app.delete_data(schema=schema, data_id="0").json["id"] == full
    assert not shown().is_successful()
    assert app.update_data(schema=schema, data_id="0", fields=changed, create=True).json["id"] == full
    assert shown().json == {"id": full, "pathId": f"{path}0", "fields": changed}
    with VespaSync(app=app) as client:
        assert client.delete_data(schema=schema, data_id="0").json["id"] == full
    with app.http(pool_maxsize=20) as client:
        answer = client.feed_data_point(schema=schema, data_id="0", fields=fed, tracelevel=9)
    assert answer.is_successful() and answer.json["id"] == full and "trace" in answer.json
    app.delete_all_docs(content_cluster_name=f"{app.application_package.name}_content", schema=schema)
    assert shown().status_code == 404


@pytest.mark.parametrize("compress", [True, False, "auto"])
def test_large_bodies_are_compressed_or_not(compress: bool | str) -> None:
    with deployed(passages()) as app, app.syncio(compress=compress) as client:
        assert (
            client.feed_data_point("msmarco", "1", {"title": "t", "body": "this is a body" * 1000}).status_code == 200
        )
        body = {"yql": "select * from msmarco where userQuery();", "hits": 10, "query": "asdf" * 1000, "timeout": "60s"}
        assert client.query(body=body).status_code == 200


@pytest.mark.parametrize(("where", "count"), [("true", 1), ("false", 0)])
def test_answers_are_compressed_for_who_takes_it(where: str, count: int) -> None:
    with deployed(passages()) as app:
        app.feed_data_point("msmarco", "1", {"title": "t", "body": "this is a body" * 1000})
        body = {"yql": f"select * from sources * where {where}", "hits": 10, "timeout": "60s"}
        answer = httpx.post(app.search_end_point, json=body, headers={"Accept-Encoding": "gzip"})
        assert (answer.status_code, answer.headers["content-encoding"]) == (200, "gzip")
        assert answer.json()["root"]["fields"]["totalCount"] == count


def test_requests_at_the_same_time() -> None:
    with deployed(passages()) as app:
        asyncio.run(_at_the_same_time(app))


async def _at_the_same_time(app: Vespa) -> None:
    async with app.asyncio(connections=12) as client:
        absent = await client.get_data(schema="msmarco", data_id="0", tracelevel=9)
        assert absent.status_code == 404 and "trace" in absent.json
        puts = [client.feed_data_point("msmarco", each["id"], each, timeout=10) for each in PASSAGES]
        assert [put.json["id"] for put in await asyncio.gather(*puts)] == [
            f"id:msmarco:msmarco::{n}" for n in range(10)
        ]
        later = await client.feed_data_point(schema="msmarco", data_id="1", fields=PASSAGES[9])
        assert later == app.feed_data_point(schema="msmarco", data_id="1", fields=PASSAGES[9])

        found = await client.get_data(schema="msmarco", data_id="0", timeout=180)
        path = "/document/v1/msmarco/msmarco/docid/0"
        assert found.json == {"id": "id:msmarco:msmarco::0", "pathId": path, "fields": PASSAGES[0]}
        changed = await client.update_data("msmarco", "0", {"title": "updated"}, tracelevel=9)
        assert changed.json["id"] == "id:msmarco:msmarco::0" and "trace" in changed.json
        assert (await client.get_data("msmarco", "0")).json["fields"] == {**PASSAGES[0], "title": "updated"}
        removed = await client.delete_data(schema="msmarco", data_id="0", tracelevel=9)
        assert removed.json["id"] == "id:msmarco:msmarco::0" and "trace" in removed.json
        absent = await client.get_data(schema="msmarco", data_id="0", tracelevel=9)
        assert absent.status_code == 404 and "trace" in absent.json
        await _queries(client)


async def _queries(client: VespaAsync) -> None:
    """`listFeatures` is a text, `timeout` a number: as JSON has them."""
    body = {"ranking": {"profile": "default", "listFeatures": "false"}, "timeout": 60}
    asked = [client.query(yql="select * from sources * where true", body=body) for _ in range(10)]
    for answer in await asyncio.gather(*asked):
        assert (answer.status_code, answer.is_successful(), answer.number_documents_indexed) == (200, True, 9)


def test_streaming() -> None:
    words = {"title": "this is a title", "body": "this is a body"}
    documents: list[Fields] = [
        {"id": 1, "groupname": "a@hotmail.com", "fields": words},
        {"id": 1, "groupname": "b@hotmail.com", "fields": words},
        {"id": 2, "groupname": "b@hotmail.com", "fields": {"title": "another title", "body": "another body"}},
    ]
    refused: list[VespaResponse] = []

    def check(answer: VespaResponse, _: str) -> None:
        if not answer.is_successful():
            refused.append(answer)

    with deployed(mail()) as app:

        def count(word: str, **parameters: Any) -> int:
            answer = app.query(
                yql=f"select * from sources * where title contains '{word}'", timeout="60s", **parameters
            )
            assert isinstance(answer, VespaQueryResponse) and answer.is_successful()
            return answer.number_documents_retrieved

        app.feed_iterable(documents, schema="mail", namespace="test", callback=check)
        assert not refused
        assert [count("title", groupname=f"{name}@hotmail.com") for name in "ab"] == [1, 2]
        with pytest.raises(VespaError):
            count("title")
        app.delete_data(schema="mail", namespace="test", data_id="2", groupname="b@hotmail.com")
        assert count("title", groupname="b@hotmail.com") == 1
        named: Fields = {"schema": "mail", "namespace": "test", "data_id": "1", "groupname": "b@hotmail.com"}
        app.update_data(**named, fields={"title": "this is a new foo"})
        assert count("foo", groupname="b@hotmail.com") == 1
        assert app.get_data(**named).json == {
            "pathId": "/document/v1/test/mail/group/b@hotmail.com/1",
            "id": "id:test:mail:g=b@hotmail.com:1",
            "fields": {**words, "title": "this is a new foo"},
        }


FED: list[Fields] = [
    {
        "id": str(number),
        "title": f"title {number}",
        "tensorfield": {"x": cells},
        "contact": {"first_name": first, "last_name": "Doe"},
        "price": number * 100,
    }
    for number, first, cells in (
        (1, "John", list(range(1, 11))),
        (2, "Jane", list(range(1, 11))),
        (3, "Paul", list(range(21, 31))),
    )
]
CHANGES: list[tuple[Fields, bool]] = [
    ({"title": "this is an updated title"}, True),
    ({"tensorfield": {"cells": [{"address": {"x": cell}, "value": 42} for cell in (0, 9)]}}, True),
    ({"price": {"increment": 1000}}, False),
]
"""Of each document: the fields that change, and whether they are to be assigned."""
CHANGED: list[Fields] = [
    {"title": "this is an updated title"},
    {"tensorfield": {"type": "tensor<int8>(x[10])", "values": [42, 0, 0, 0, 0, 0, 0, 0, 0, 42]}},
    {"price": 1300},
]


def test_parts_of_documents_change() -> None:
    read = [
        {**each, "tensorfield": {"type": "tensor<int8>(x[10])", "values": each["tensorfield"]["x"]}} for each in FED
    ]
    numbers = ["1", "2", "3"]
    with deployed(updates()) as app, app.syncio(connections=8) as client:

        def shown() -> list[Fields]:
            return [client.get_data(schema="testupdates", data_id=number).json["fields"] for number in numbers]

        for each in FED:
            assert client.feed_data_point("testupdates", str(each["id"]), each).status_code == 200
        assert shown() == read
        for number, (fields, assigned) in zip(numbers, CHANGES, strict=True):
            assert client.update_data("testupdates", number, fields, auto_assign=assigned).status_code == 200
        assert shown() == [{**before, **after} for before, after in zip(read, CHANGED, strict=True)]
        for number in numbers:
            assert client.delete_data(schema="testupdates", data_id=number).status_code == 200
            assert client.get_data(schema="testupdates", data_id=number).status_code == 404


def test_documents_whose_indexing_sleeps_are_all_there() -> None:
    """Here it does not sleep, so that nothing is refused by 429; pyvespa would try those again.

    The numbers are ones that the client's reader of JSON does not round.
    """
    fed = [{"id": str(n), "fields": {"id": str(n), "latency": 3 + n / 128}} for n in range(100)]
    with deployed(slow()) as app:
        app.feed_iterable(fed, schema="retryapplication")
        pages = app.visit(
            content_cluster_name="retryapplication_content",
            schema="retryapplication",
            namespace="retryapplication",
            selection="true",
            slices=4,
            max_workers=32,
            max_connections=32,
            wanted_document_count=25,
        )
        found = [document["fields"] for each in pages for page in each for document in page.documents]
    assert sorted(found, key=lambda fields: int(fields["id"])) == [each["fields"] for each in fed]
