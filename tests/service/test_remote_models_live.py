"""Applications whose fields and queries are made by models elsewhere, each tried against a stand-in."""

from __future__ import annotations

import concurrent.futures
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import orjson
import pytest

from paperwasp import limits
from tests import web
from tests.components.stand_in import Asked, Reply, StandIn, stand_in
from tests.service.in_process import Deployed, active, deployed_service
from tests.service.music import package
from tests.service.running import RunningService, running_service
from tests.service.test_live_changes import overrides, wait_for_reindexing

SERVICES = """<services version="1.0">
  <container id="default" version="1.0">
    <search/><document-api/>
    <component id="openai" class="ai.vespa.llm.clients.OpenAI">
      <config name="ai.vespa.llm.clients.llm-client"><endpoint>{url}/v1/</endpoint><model>m</model></config>
    </component>
    <component id="questions" class="ai.vespa.llm.generation.LanguageModelFieldGenerator">
      <config name="ai.vespa.llm.generation.language-model-field-generator">
        <providerId>openai</providerId>
        <promptTemplateFile>files/ask.txt</promptTemplateFile>
      </config>
    </component>
    <component id="plain" class="ai.vespa.llm.generation.LanguageModelFieldGenerator">
      <config name="ai.vespa.llm.generation.language-model-field-generator">
        <providerId>openai</providerId>
        <responseFormatType>TEXT</responseFormatType>
      </config>
    </component>
    <component id="vectors" type="voyage-ai-embedder">
      <model>voyage-4</model>
      <api-key-secret-ref>voyage-key</api-key-secret-ref>
      <dimensions>256</dimensions>
      <endpoint>{url}/embeddings</endpoint>
      <config name="ai.vespa.embedding.config.http-embedder"><maxRetries>0</maxRetries></config>
    </component>
  </container>
  <content id="c" version="1.0"><redundancy>1</redundancy><documents><document type="passage" mode="index"/></documents>
  </content>
</services>"""
SCHEMA = """schema passage {
    document passage {
        field text type string { indexing: summary | index }
    }
    field questions type array<string> { indexing: input text | generate questions | summary | index }
    field words type int { indexing: input text | generate questions | attribute | summary }
    field shout type string { indexing: input text | generate plain | summary }
    field vector type tensor<float>(x[256]) { indexing: input text | embed | attribute | index }
    rank-profile near {
        inputs { query(q) tensor<float>(x[256]) }
        first-phase { expression: closeness(field, vector) }
    }
}"""
PROMPT = "Ask: {input}"


def answer(asked: Asked) -> object:
    """The questions and the number of words of a text, the text in capitals, its length as a vector."""
    if asked.path == "/embeddings":
        return {"data": [{"embedding": [len(text)] + [0.0] * 255} for text in asked.body["input"]]}
    prompt = asked.body["messages"][0]["content"]
    if prompt == "too much":
        return Reply({"error": {"message": "slow down"}}, 429, {"Retry-After": "500"})
    if "response_format" not in asked.body:
        return {"choices": [{"message": {"content": prompt.upper()}}]}
    text = prompt.removeprefix("Ask: ")
    (name,) = asked.body["response_format"]["json_schema"]["schema"]["properties"]
    made: object = [f"Why {word}?" for word in text.split()] if name == "passage.questions" else len(text.split())
    return {"choices": [{"message": {"content": orjson.dumps({name: made}).decode()}}]}


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> Iterator[StandIn]:
    monkeypatch.setenv("PAPERWASP_SECRET_VOYAGE_KEY", "sesame")
    with stand_in(answer) as server:
        yield server


@pytest.fixture
def service(tmp_path: Path, model: StandIn) -> Iterator[Deployed]:
    files = {
        "services.xml": SERVICES.format(url=model.url),
        "schemas/passage.sd": SCHEMA,
        "files/ask.txt": "Ask: {input}",
    }
    with deployed_service(tmp_path) as service:
        assert active(service.deploy(files))["log"] == []
        yield service


def put(service: Deployed | RunningService, name: str, text: str) -> httpx.Response:
    url = f"{service.url}/document/v1/ns/passage/docid/{name}"
    return web.post(url, json={"fields": {"text": text}}, timeout=30)


def search(service: Deployed, where: str, **parameters: str) -> httpx.Response:
    body = {"yql": f"select * from passage where {where}", "timeout": "20s", **parameters}
    return web.post(f"{service.url}/search/", json=body, timeout=30)


def hits(service: Deployed, where: str, **parameters: str) -> list[dict[str, Any]]:
    answered = search(service, where, **parameters)
    assert answered.status_code == 200, answered.text
    return list(answered.json()["root"].get("children", []))


def test_fields_and_queries(service: Deployed, model: StandIn) -> None:
    assert put(service, "1", "cats purr").status_code == 200
    assert put(service, "2", "a lion roars loudly").status_code == 200
    (hit,) = hits(service, "questions contains phrase('why', 'purr')")
    assert hit["fields"]["questions"] == ["Why cats?", "Why purr?"]
    assert (hit["fields"]["words"], hit["fields"]["shout"]) == (2, "CATS PURR")
    assert [hit["fields"]["words"] for hit in hits(service, "words > 2")] == [4]
    nearest = hits(
        service, "{targetHits:2}nearestNeighbor(vector, q)", ranking="near", **{"input.query(q)": "embed(ten chars.)"}
    )
    assert [(hit["id"], hit["relevance"]) for hit in nearest] == [("id:ns:passage::1", 0.5), ("id:ns:passage::2", 0.1)]
    kinds = [(asked.body["input_type"], asked.body["input"]) for asked in model.asked if asked.path == "/embeddings"]
    assert kinds == [
        ("document", ["cats purr"]),
        ("document", ["a lion roars loudly"]),
        ("query", ["ten chars."]),
    ]
    assert {each.headers.get("authorization") for each in model.asked} == {None, "Bearer sesame"}
    updated = web.put(
        f"{service.url}/document/v1/ns/passage/docid/1", json={"fields": {"text": {"assign": "one more cat"}}}
    )
    assert updated.status_code == 200
    (hit,) = hits(service, "words = 3")
    assert hit["fields"]["shout"] == "ONE MORE CAT"


def test_one_document_alone_is_refused(service: Deployed, model: StandIn) -> None:
    assert put(service, "1", "cats").status_code == 200
    refused = put(service, "2", "too much")
    assert refused.status_code == 429
    problem = (
        f"Could not index field 'shout': component 'openai': {model.url}/v1/chat/completions answered 429: slow down"
    )
    assert refused.json()["message"] == f"In document 'id:ns:passage::2': {problem}"
    assert put(service, "3", "dogs").status_code == 200
    model.answer = lambda asked: Reply({"detail": "no"}, 500) if asked.path == "/embeddings" else answer(asked)
    refused = put(service, "4", "birds")
    assert refused.status_code == 502
    assert refused.json()["message"].startswith(
        "In document 'id:ns:passage::4': Could not index field 'vector': voyage"
    )
    found = search(service, "true", **{"input.query(q)": "embed(text)"}, ranking="near")
    (error,) = found.json()["root"]["errors"]
    assert found.status_code == 503 and error["code"] == 10
    assert f"{model.url}/embeddings answered 500: no" in error["message"]
    assert len(hits(service, "true")) == 2


def test_documents_wait_beside_each_other(service: Deployed, model: StandIn) -> None:
    """A document whose model is slow does not hold up another one, nor queries."""
    reached, released = threading.Event(), threading.Event()

    def slow(asked: Asked) -> object:
        if "slow" in orjson.dumps(asked.body).decode():
            reached.set()
            assert released.wait(60)
        return answer(asked)

    model.answer = slow
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(put, service, "1", "slow")
        assert reached.wait(60)
        assert put(service, "2", "fast").status_code == 200
        assert [hit["id"] for hit in hits(service, "true")] == ["id:ns:passage::2"]
        released.set()
        assert waiting.result().status_code == 200
    assert len(hits(service, "true")) == 2


def test_a_query_waits_no_longer_than_its_timeout(service: Deployed, model: StandIn) -> None:
    """The thread that asks for its vector gives up then, too: there are more such queries than threads."""
    put(service, "1", "cats")
    released = threading.Event()

    def slow(asked: Asked) -> object:
        if asked.body["input"] != ["other"]:
            assert released.wait(60)
        return answer(asked)

    model.answer = slow
    try:
        for number in range(2 * limits.embedding.QUERY_THREADS):
            text = {"input.query(q)": f"embed(text {number})", "timeout": "20ms"}
            found = search(service, "true", ranking="near", **text)
            (error,) = found.json()["root"]["errors"]
            assert (found.status_code, error["code"]) == (504, 12), found.text
        assert len(hits(service, "true", ranking="near", **{"input.query(q)": "embed(other)"})) == 1
    finally:
        released.set()


def test_a_document_waits_no_longer_than_its_timeout(service: Deployed, model: StandIn) -> None:
    """The thread that asks for its fields gives up then, too: there are more such documents than threads."""
    released = threading.Event()

    def silent(asked: Asked) -> object:
        if "never" in orjson.dumps(asked.body).decode():
            released.wait(60)
        return answer(asked)

    model.answer = silent
    url = f"{service.url}/document/v1/ns/passage/docid"
    fields = {"fields": {"text": {"assign": "never"}}}
    try:
        assert put(service, "1", "cats").status_code == 200
        with concurrent.futures.ThreadPoolExecutor(16) as pool:
            asked = [
                pool.submit(web.put, f"{url}/{number}?timeout=50ms&create=true", json=fields, timeout=30)
                for number in range(2 * limits.embedding.DOCUMENT_THREADS)
            ]
            assert {each.result().status_code for each in asked} == {504}
        bulk = web.put(f"{url}/?cluster=c&selection=true&timeout=1s", json=fields, timeout=30)
        assert bulk.status_code == 504, bulk.text
        assert put(service, "2", "dogs").status_code == 200
        assert sorted(hit["fields"]["shout"] for hit in hits(service, "true")) == ["CATS", "DOGS"]
    finally:
        released.set()


def test_a_stop_does_not_wait_for_a_model_that_never_answers(tmp_path: Path, model: StandIn) -> None:
    """Neither for a document that is put, nor for those that are indexed again."""
    reached, released = threading.Semaphore(0), threading.Event()

    def silent(asked: Asked) -> object:
        if "never" in orjson.dumps(asked.body).decode():
            reached.release()
            released.wait(60)
        return answer(asked)

    model.answer = silent
    files = {"services.xml": SERVICES.format(url=model.url), "files/ask.txt": PROMPT, **overrides()}
    plain = "schema passage { document passage { field text type string { indexing: summary } } }"
    data = tmp_path / "data"
    first = "from paperwasp import limits\nlimits.STOP_SECONDS = 1"
    try:
        with running_service(data, first=first) as service, concurrent.futures.ThreadPoolExecutor(1) as pool:
            deploy(service, {**files, "schemas/passage.sd": plain})
            assert put(service, "1", "never").status_code == 200
            deploy(service, {**files, "schemas/passage.sd": SCHEMA})
            assert reached.acquire(timeout=60)  # by reindexing
            waiting = pool.submit(put, service, "2", "never again")
            assert reached.acquire(timeout=60)
            assert service.stop() == 0
            assert waiting.exception() is not None or waiting.result().status_code >= 500
        with running_service(data, first=first) as service:
            found = web.get(f"{service.url}/document/v1/ns/passage/docid/1", timeout=30)
            assert found.json()["fields"]["text"] == "never"
            assert web.get(f"{service.url}/document/v1/ns/passage/docid/2", timeout=30).status_code == 404
    finally:
        released.set()


def deploy(service: RunningService, files: dict[str, str]) -> None:
    url = f"{service.config_url}/application/v2/tenant/default/prepareandactivate"
    answered = web.post(url, content=package(files), headers={"Content-Type": "application/zip"}, timeout=60)
    assert answered.status_code == 200, answered.text


def test_documents_that_are_there_are_generated_beside_each_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two at a time, in three chunks: the first two are only answered together."""
    monkeypatch.setattr(limits.embedding, "DOCUMENT_THREADS", 2)
    monkeypatch.setattr(limits, "REINDEX_SLOW_SECONDS", 0.0)
    both = threading.Barrier(2)
    begun: list[Asked] = []

    def together(asked: Asked) -> object:
        begun.append(asked)
        if len(begun) <= 2:
            both.wait(60)
        return answer(asked)

    field = "field words type int { indexing: input text | generate questions | attribute | summary }"
    before = "schema passage { document passage { field text type string { indexing: summary } } }"
    with stand_in(together) as elsewhere, deployed_service(tmp_path) as service:
        services = SERVICES.format(url=elsewhere.url)
        files = {"services.xml": services, "schemas/passage.sd": before, "files/ask.txt": PROMPT, **overrides()}
        active(service.deploy(files))
        for number in range(5):
            assert put(service, str(number), "word " * (number + 1)).status_code == 200
        active(service.deploy({**files, "schemas/passage.sd": before[:-1] + field + "}"}))
        wait_for_reindexing(service)
        assert sorted(hit["fields"]["words"] for hit in hits(service, "words > 0")) == [1, 2, 3, 4, 5]
        assert len(elsewhere.asked) == 5


def test_what_a_deployment_refuses(tmp_path: Path) -> None:
    services = SERVICES.format(url="http://127.0.0.1:1")
    files = {"services.xml": services, "schemas/passage.sd": SCHEMA, "files/ask.txt": PROMPT}
    with deployed_service(tmp_path) as service:
        for name, before, after, problem in (
            ("schemas/passage.sd", "generate plain", "generate other", "Can't find generator 'other'"),
            ("schemas/passage.sd", "words type int", "words type position", "cannot be generated"),
            ("schemas/passage.sd", "questions | attribute", "plain | attribute", "TEXT makes a string, but"),
            ("services.xml", "<providerId>openai", "<providerId>other", "No component with id 'other'"),
            ("services.xml", "http://127.0.0.1:1/v1/", "ftp://h", "'ftp://h/chat/completions' is not an"),
        ):
            text = files[name].replace(before, after)
            answered = service.deploy({**files, name: text})
            assert answered.status_code == 412 and problem in answered.json()["message"], answered.text
        told = [entry["message"] for entry in active(service.deploy(files))["log"]]
        assert any("there is no secret 'voyage-key' (PAPERWASP_SECRET_VOYAGE_KEY) yet" in message for message in told)
