"""An application with an embedder, deployed: in documents, updates, queries, selections of documents and reindexing.

tests/components/embedders compares what the embedder makes of a text with a plain twin; here whole requests are.
"""

from __future__ import annotations

import concurrent.futures
import io
import threading
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import pytest
from numpy.typing import NDArray

from paperwasp.components.embedders.text_tokenizer import Tokens
from paperwasp.components.embedders.transformer import Output, Transformer
from tests import web
from tests.components.embedders.tiny_models import assert_near, tiny_bert, tiny_tokenizer, tokens_of, twin
from tests.service.in_process import ZIP, Deployed, active, deployed_service

SERVICES = """<services version="1.0">
  <container id="default" version="1.0"><search/><document-api/>
    <component id="tiny" type="hugging-face-embedder">
      <transformer-model path="models/tiny.onnx"/><tokenizer-model path="models/tokenizer.json"/>
      <prepend><query>query:</query></prepend>
    </component>%s
  </container>
  <content id="c" version="1.0"><redundancy>1</redundancy><documents><document type="t" mode="index"/></documents>
  </content>
</services>"""
SCHEMA = """schema t {
    document t {
        field title type string { indexing: summary | index }
        field chunks type array<string> { indexing: summary }
        field n type int { indexing: summary | attribute }
    }
    field embedding type tensor<float>(x[16]) { indexing: input title | embed tiny | attribute | summary }
    field bits type tensor<int8>(x[2]) { indexing: input title | embed | attribute | summary }
    field parts type tensor<float>(p{},x[16]) {
        indexing: input chunks | for_each { (input title || "") . " " . _ } | embed tiny | attribute | summary
    }
    rank-profile near {
        inputs { query(q) tensor<float>(x[16]) }
        first-phase { expression: -euclidean_distance(query(q), attribute(embedding), x) }
        match-features { query(q) }
    }
}"""
DOCUMENTS: Mapping[str, dict[str, Any]] = {
    "1": {"title": "the cat walks", "chunks": ["blue", "red dog"]},
    "2": {"title": "the sky is blue"},
    "3": {"n": 3},
}


def mean(*words: str) -> NDArray[np.float64]:
    return np.asarray(twin(tokens_of(*words)).mean(axis=0))


def package(more: str = "", schema: str = SCHEMA) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        archive.writestr("services.xml", SERVICES % more)
        archive.writestr("schemas/t.sd", schema)
        archive.writestr("models/tiny.onnx", tiny_bert())
        archive.writestr("models/tokenizer.json", tiny_tokenizer())
    return content.getvalue()


def deploy(service: Deployed, content: bytes) -> dict[str, Any]:
    url = f"{service.config_url}/application/v2/tenant/default/prepareandactivate"
    return active(web.post(url, content=content, headers=ZIP, timeout=60))


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployed]:
    with deployed_service(tmp_path_factory.mktemp("data")) as found:
        deploy(found, package())
        for name, fields in DOCUMENTS.items():
            put(found, name, fields)
        yield found


def put(service: Deployed, name: str, fields: Mapping[str, Any]) -> None:
    answer = web.post(f"{service.url}/document/v1/n/t/docid/{name}", json={"fields": fields})
    assert answer.status_code == 200, answer.text


def fields_of(service: Deployed, name: str) -> dict[str, Any]:
    answer = web.get(f"{service.url}/document/v1/n/t/docid/{name}", params={"fieldSet": "[all]"})
    assert answer.status_code == 200, answer.text
    fields: dict[str, Any] = answer.json()["fields"]
    return fields


def search(service: Deployed, **parameters: str) -> dict[str, Any]:
    given = {"yql": "select * from t where true", "ranking": "near", **parameters}
    root: dict[str, Any] = web.get(f"{service.url}/search/", params=given).json()["root"]
    return root


def query_vector(root: Mapping[str, Any]) -> list[float]:
    values: list[float] = root["children"][0]["fields"]["matchfeatures"]["query(q)"]["values"]
    return values


def test_documents_have_what_is_embedded(service: Deployed) -> None:
    fields = fields_of(service, "1")
    values = mean("the", "cat", "walk", "##s")
    assert_near(fields["embedding"]["values"], values)
    bits = "".join("1" if value > 0 else "0" for value in values)
    assert [cell % 256 for cell in fields["bits"]["values"]] == [int(bits[:8], 2), int(bits[8:], 2)]
    blocks = fields["parts"]["blocks"]
    assert_near(blocks["0"], mean("the", "cat", "walk", "##s", "blue"))
    assert_near(blocks["1"], mean("the", "cat", "walk", "##s", "red", "dog"))
    assert set(fields_of(service, "3")) == {"n"}


@pytest.mark.parametrize("name", ["input.query(q)", "ranking.features.query(q)"])
@pytest.mark.parametrize(
    "value", ['embed(tiny, "the cat")', "embed(tiny,'the cat')", "embed(the cat)", "embed(tiny, @text)", "embed(@text)"]
)
def test_queries_have_what_is_embedded(service: Deployed, name: str, value: str) -> None:
    root = search(service, **{name: value, "text": "the cat"})
    values = mean("query:", "the", "cat")
    assert_near(query_vector(root), values)
    best = min(("1", "2"), key=lambda name: float(np.linalg.norm(values - DOCUMENT_VECTORS[name])))
    assert root["children"][0]["id"] == f"id:n:t::{best}"


DOCUMENT_VECTORS = {"1": mean("the", "cat", "walk", "##s"), "2": mean("the", "sky", "is", "blue")}


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ("embed(other, 'a')", "Can't find embedder 'other'. Available embedder ids are 'tiny'."),
        ("embed(tiny, @none)", "Could not resolve query parameter reference 'none' used in an embed() argument"),
        ("embed(a", "Expected any string enclosed in embed(), but the argument does not end by ')'"),
    ],
)
def test_what_is_wrong_with_a_call(service: Deployed, value: str, problem: str) -> None:
    (error,) = search(service, **{"input.query(q)": value})["errors"]
    assert error["code"] == 3
    assert error["message"] == f"Could not set 'ranking.features.query(q)' to '{value}': {problem}"


def test_updates(service: Deployed) -> None:
    url = f"{service.url}/document/v1/n/t/docid/update"
    put(service, "update", {"title": "the cat", "chunks": ["red"], "n": 1})
    before = fields_of(service, "update")
    assert web.put(url, json={"fields": {"n": {"increment": 1}}}).status_code == 200
    assert fields_of(service, "update") == before | {"n": 2}
    assert web.put(url, json={"fields": {"title": {"assign": "a dog"}}}).status_code == 200
    after = fields_of(service, "update")
    assert_near(after["embedding"]["values"], mean("a", "dog"))
    assert after["parts"] == before["parts"]
    chosen = f"{service.url}/document/v1/n/t/docid?cluster=c&selection={quote('t.n == 2')}"
    assert web.put(chosen, json={"fields": {"title": {"assign": "blue"}}}).json()["documentCount"] == 1
    assert_near(fields_of(service, "update")["embedding"]["values"], mean("blue"))


def test_a_text_that_the_model_does_not_take_is_an_error_of_its_document_or_query(service: Deployed) -> None:
    answer = web.post(f"{service.url}/document/v1/n/t/docid/long", json={"fields": {"title": "a " * 100}})
    assert answer.status_code == 400
    problem = "Could not index field 'embedding': models/tiny.onnx does not run with this text"
    assert problem in answer.json()["message"]
    (error,) = search(service, **{"input.query(q)": f"embed({'a ' * 100})"})["errors"]
    assert error["code"] == 3 and "models/tiny.onnx does not run with this text" in error["message"]


def test_many_at_once_and_one_document_in_order(service: Deployed) -> None:
    """Each document has the vector of its own text, and the last of many operations on one document wins."""
    words = ("a", "blue", "cat", "dog", "is", "red", "sky", "the", "walk")
    texts = {str(n): (*words[: n % 9 + 1], words[n // 9]) for n in range(40)}
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        list(pool.map(lambda n: put(service, f"many-{n}", {"title": " ".join(texts[n])}), texts))
    for name, said in texts.items():
        assert_near(fields_of(service, f"many-{name}")["embedding"]["values"], mean(*said))


def test_who_has_no_time_left_is_answered_while_the_model_runs(
    service: Deployed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And the texts of those that were answered are in no later run."""
    begun, go_on = threading.Event(), threading.Event()
    texts: list[int] = []
    run = Transformer.run

    def blocked(self: Transformer, items: Sequence[Tokens]) -> list[Output]:
        texts.extend(len(item.ids) for item in items)
        begun.set()
        assert go_on.wait(60)
        return run(self, items)

    monkeypatch.setattr(Transformer, "run", blocked)
    document = f"{service.url}/document/v1/n/t/docid/late"
    with concurrent.futures.ThreadPoolExecutor() as pool:
        first = pool.submit(search, service, **{"input.query(q)": "embed(dog)", "timeout": "60s"})
        assert begun.wait(30)
        late = search(service, **{"input.query(q)": "embed(dog dog dog)", "timeout": "50ms"})
        assert [error["code"] for error in late["errors"]] == [12]
        answer = web.post(document, params={"timeout": "50ms"}, json={"fields": {"title": "dog dog"}})
        assert answer.status_code == 504
        go_on.set()
        assert_near(query_vector(first.result(30)), mean("query:", "dog"))
    assert_near(query_vector(search(service, **{"input.query(q)": "embed(sky)"})), mean("query:", "sky"))
    assert len(tokens_of("query:", "dog", "dog", "dog")) not in texts
    assert web.get(document).status_code == 404


def test_an_embedder_that_is_not_there_is_told_at_the_deployment(service: Deployed) -> None:
    content = package(schema=SCHEMA.replace("embed tiny", "embed other"))
    url = f"{service.config_url}/application/v2/tenant/default/prepareandactivate"
    answer = web.post(url, content=content, headers=ZIP, timeout=60)
    assert answer.status_code == 412
    said = "The 'embed' expression for field 'embedding' refers to an embedder with id 'other'. "
    assert said + "No component with that id is configured." in answer.json()["message"]


def test_a_type_that_no_text_fits_is_told_at_the_deployment(tmp_path: Path) -> None:
    """The model makes 16 dimensions: 17 are too many, also of a query's input."""
    problem = "Cannot quantize 16 dimensions into tensor<float>(x[17])"
    with deployed_service(tmp_path) as service:
        schema = SCHEMA
        for tensor in ("embedding type", "query(q)"):
            schema = schema.replace(f"{tensor} tensor<float>(x[16])", f"{tensor} tensor<float>(x[17])")
        told = deploy(service, package(schema=schema))
        (warning,) = (each for each in told["log"] if problem in each["message"])
        assert warning["level"] == "WARNING"
        said = "schema 't', field 'embedding': For expression 'embed tiny': no text can be embedded: " + problem
        assert said in warning["message"]
        answer = web.post(f"{service.url}/document/v1/n/t/docid/1", json={"fields": {"title": "blue"}})
        assert answer.status_code == 400
        assert f"Could not index field 'embedding': {problem}" in answer.json()["message"]
        put(service, "2", {"title": " "})
        assert set(fields_of(service, "2")) == {"title"}
        (error,) = search(service, **{"input.query(q)": "embed(tiny, 'blue')"})["errors"]
        assert error["message"].endswith(problem)


def test_two_embedders_and_one_that_waits_for_its_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PAPERWASP_MODEL_CACHE", "/nowhere")
    with deployed_service(tmp_path) as service:
        check_two_embedders(service)


def check_two_embedders(service: Deployed) -> None:
    more = """<component id="far" type="hugging-face-embedder">
      <transformer-model url="https://some.place/m.onnx"/><tokenizer-model path="models/tokenizer.json"/>
    </component>"""
    told = deploy(service, package(more, SCHEMA.replace("| embed |", "| embed far |")))
    put(service, "without", {"n": 1})
    missing = "url 'https://some.place/m.onnx' is not fetched, and there is no file '/nowhere/some.place/m.onnx'"
    assert any(missing in each["message"] for each in told["log"])
    ids = "Available embedder ids are 'far', 'tiny'."
    for value, problem in (
        ("embed(blue)", "Multiple embedders are provided but the string to embed is not quoted. "),
        ("embed('blue')", "Multiple embedders are provided but no embedder id is given. "),
        ("embed(near, 'blue')", "Can't find embedder 'near'. "),
    ):
        (error,) = search(service, **{"input.query(q)": value})["errors"]
        usage = "Usage: embed(embedder-id, 'text'). " if "Multiple" in problem else ""
        assert error["message"] == f"Could not set 'ranking.features.query(q)' to '{value}': {problem}{usage}{ids}"
    (error,) = search(service, **{"input.query(q)": "embed(far, 'blue')"})["errors"]
    assert missing in error["message"]
    answer = web.post(f"{service.url}/document/v1/n/t/docid/far", json={"fields": {"title": "blue"}})
    assert answer.status_code == 400
    assert "Could not index field 'bits': component 'far': transformer-model: url" in answer.json()["message"]
