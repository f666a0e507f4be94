"""Embedders that are services elsewhere: what they are asked, what becomes of their answers, what goes wrong."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from paperwasp.components.embedders import http_services
from paperwasp.components.embedders.base import FACTORIES, LocalOrRemote, Settings
from paperwasp.components.embedders.http_batches import BatchSettings
from paperwasp.document.tensor.types import TensorType
from paperwasp.errors import InvalidInput, NotFound, Overload, Unavailable
from paperwasp.indexing.components import Context
from paperwasp.schema.files import Component
from tests.components.stand_in import Asked, Reply, StandIn, stand_in

TYPES = (http_services,)
DOCUMENT, QUERY = Context("music.vector"), Context("query(q)")
FLOATS = TensorType.parse("tensor<float>(x[4])")


def embedder(type_: str, **settings: str) -> LocalOrRemote:
    named = {name.replace("__", "/").replace("_AT_", "@").replace("_", "-"): text for name, text in settings.items()}
    return FACTORIES[type_](Settings(Component("component", "mine", type_, settings=named), {}))


def vector_of(text: str, size: int = 4) -> list[float]:
    """What the stand-in makes of a text: its length, then the codes of its characters, over 256."""
    numbers = [len(text), *map(ord, text), *[0] * size]
    return [number / 256 for number in numbers[:size]]


def as_base64(numbers: list[float]) -> str:
    return base64.b64encode(np.array(numbers, "<f4").tobytes()).decode()


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> Iterator[StandIn]:
    """A service that answers as each of the four does, vectors in the wrong order where there is an index."""
    monkeypatch.setenv("PAPERWASP_SECRET_KEY", "sesame")

    def answer(asked: Asked) -> object:
        body = asked.body
        if asked.path == "/embed":
            inputs = body["inputs"]
            texts = [inputs] if isinstance(inputs, str) else inputs
            return [vector_of(text, body["dimensions"]) for text in texts]
        if asked.path == "/context":
            texts = body["inputs"][0]
        else:
            texts = body["input"] if "input" in body else [each["content"][0]["text"] for each in body["inputs"]]
        data = [{"index": place, "embedding": _sent(text, body)} for place, text in enumerate(texts)]
        return {"data": [{"data": data}] if asked.path == "/context" else data[::-1], "usage": {"total_tokens": 7}}

    with stand_in(answer) as server:
        yield server


def _sent(text: str, body: Any) -> object:
    form = body.get("output_dtype", "float")
    size = body.get("output_dimension", body.get("dimensions", 4))
    if form == "float":
        vector = vector_of(text, size)
        return as_base64(vector) if body.get("encoding_format") == "base64" else vector
    return [len(text)] * (size // 8 if form == "binary" else size)


def made(each: LocalOrRemote, texts: list[str], type_: str | TensorType = FLOATS, context: Context = DOCUMENT) -> Any:
    wanted = TensorType.parse(type_) if isinstance(type_, str) else type_
    tensors = each.embed(texts, wanted, context)
    assert all((tensor.type, tensor.labels) == (wanted, ((),)) for tensor in tensors)
    return [tensor.cells[0].tolist() for tensor in tensors]


def test_openai(service: StandIn) -> None:
    each = embedder(
        "openai-embedder", model="m", dimensions="4", endpoint=f"{service.url}/v1", api_key_secret_ref="key"
    )
    each.check()
    assert made(each, ["a", "bc"]) == [vector_of("a"), vector_of("bc")]
    (asked,) = service.asked
    assert (asked.path, asked.headers["authorization"]) == ("/v1", "Bearer sesame")
    assert asked.body == {"input": ["a", "bc"], "model": "m", "dimensions": 4, "encoding_format": "base64"}
    assert made(each, ["q"], "tensor<bfloat16>(x[4])", QUERY) == [[1 / 256, ord("q") / 256, 0, 0]]


def test_openai_needs_no_key_and_takes_lists(service: StandIn) -> None:
    plain = service.answer
    service.answer = lambda asked: plain(Asked(asked.path, {}, {**asked.body, "encoding_format": "float"}))
    assert made(embedder("openai-embedder", model="m", dimensions="4", endpoint=service.url), ["a"]) == [vector_of("a")]
    assert "authorization" not in service.asked[0].headers


def test_the_model_with_one_size() -> None:
    settings = {"model": "text-embedding-ada-002", "endpoint": "http://127.0.0.1:1"}
    with pytest.raises(
        ValueError, match="'text-embedding-ada-002' has a fixed output size of 1536; configure dimensions"
    ):
        embedder("openai-embedder", dimensions="4", **settings)
    with stand_in(lambda _: {"data": [{"embedding": as_base64([0.5] * 1536)}]}) as server:
        each = embedder("openai-embedder", dimensions="1536", **{**settings, "endpoint": server.url})
        assert made(each, ["a"], "tensor<float>(x[1536])") == [[0.5] * 1536]
        assert server.bodies == [{"input": ["a"], "model": "text-embedding-ada-002", "encoding_format": "base64"}]


def test_what_is_prepended(service: StandIn) -> None:
    settings = {"prepend__query": "query: ", "prepend__document": "passage:"}
    each = embedder("openai-embedder", model="m", dimensions="4", endpoint=service.url, **settings)
    made(each, ["a"])
    made(each, ["a"], context=QUERY)
    made(embedder("openai-embedder", model="m", dimensions="4", endpoint=service.url, prepend__query=" "), ["b"])
    assert [body["input"] for body in service.bodies] == [["passage:a"], ["query: a"], ["b"]]


def test_mistral(service: StandIn) -> None:
    settings = {"dimensions": "16", "endpoint": service.url, "api_key_secret_ref": "key"}
    each = embedder("mistral-embedder", model="codestral-embed", **settings)
    assert made(each, ["ab"], "tensor<float>(x[16])") == [vector_of("ab", 16)]
    assert made(each, ["ab"], "tensor<int8>(x[16])") == [[2] * 16]
    assert made(each, ["ab"], "tensor<int8>(x[2])") == [[2] * 2]
    common = {"input": ["ab"], "model": "codestral-embed", "output_dimension": 16}
    assert service.bodies == [{**common, "output_dtype": form} for form in ("float", "int8", "binary")]
    service.asked.clear()
    fixed = embedder("mistral-embedder", model="mistral-embed-2312", **{**settings, "dimensions": "4"})
    assert made(fixed, ["ab"]) == [vector_of("ab")]
    assert service.bodies == [{"input": ["ab"], "model": "mistral-embed-2312", "output_dtype": "float"}]
    with pytest.raises(ValueError, match="'api-key-secret-ref' must be configured for Mistral embedder"):
        embedder("mistral-embedder", model="m", dimensions="4")


def test_voyage(service: StandIn) -> None:
    settings = {"dimensions": "16", "endpoint": service.url, "api_key_secret_ref": "key"}
    each = embedder("voyage-ai-embedder", model="voyage-4", **settings)
    type_ = "tensor<float>(x[16])"
    assert made(each, ["a", "bc"], type_) == [vector_of("a", 16), vector_of("bc", 16)]
    assert made(each, ["a"], type_, QUERY) == [vector_of("a", 16)]
    common = {"model": "voyage-4", "output_dimension": 16, "output_dtype": "float", "truncation": True}
    document, query = service.bodies
    assert document == {"input": ["a", "bc"], "input_type": "document", **common}
    assert query == {"input": ["a"], "input_type": "query", **common}
    each = embedder("voyage-ai-embedder", model="voyage-4", **settings, truncate="false", quantization="binary")
    assert made(each, ["abc"], "tensor<int8>(x[2])") == [[3, 3]]
    assert (service.bodies[2]["output_dtype"], service.bodies[2]["truncation"]) == ("binary", False)


def test_voyage_in_context(service: StandIn) -> None:
    """The texts of a call are one document: they are asked and remembered together, however many."""
    url = f"{service.url}/context"
    settings = {"dimensions": "4", "endpoint": url, "api_key_secret_ref": "key", "batching_AT_max_size": "2"}
    each = embedder("voyage-ai-embedder", model="voyage-context-3", **settings)
    for _ in range(2):
        assert made(each, ["a", "bc", "a"]) == [vector_of("a"), vector_of("bc"), vector_of("a")]
    made(each, ["a", "bc"])
    common = {"model": "voyage-context-3", "input_type": "document", "output_dimension": 4, "output_dtype": "float"}
    assert service.bodies == [{"inputs": [["a", "bc", "a"]], **common}, {"inputs": [["a", "bc"]], **common}]


def test_voyage_multimodal(service: StandIn) -> None:
    each = embedder(
        "voyage-ai-embedder",
        model="voyage-multimodal-3",
        dimensions="4",
        endpoint=service.url,
        api_key_secret_ref="key",
    )
    assert made(each, ["a"]) == [vector_of("a")]
    assert service.bodies[0]["inputs"] == [{"content": [{"type": "text", "text": "a"}]}]


@pytest.mark.parametrize(
    ("model", "path"),
    [
        ("voyage-4", "embeddings"),
        ("voyage-context-3", "contextualizedembeddings"),
        ("voyage-multimodal-3.5", "multimodalembeddings"),
    ],
)
def test_where_voyage_is(model: str, path: str) -> None:
    own = {"model": model, "dimensions": "4", "api_key_secret_ref": "key"}
    for settings in (own, {**own, "endpoint": "https://api.voyageai.com/v1/embeddings"}):
        each: Any = embedder("voyage-ai-embedder", **settings)
        assert each._client.endpoint.url == f"https://api.voyageai.com/v1/{path}"
    other: Any = embedder("voyage-ai-embedder", **own, endpoint="http://proxy/v")
    assert other._client.endpoint.url == "http://proxy/v"


def test_tei(service: StandIn) -> None:
    each = embedder("hugging-face-tei-embedder", endpoint=f"{service.url}/")
    assert made(each, ["a", "bc"]) == [vector_of("a"), vector_of("bc")]
    assert made(each, ["d"]) == [vector_of("d")]
    common = {"normalize": True, "truncate": False, "truncation_direction": "Right", "dimensions": 4}
    assert service.bodies == [{"inputs": ["a", "bc"], **common}, {"inputs": "d", **common}]
    assert {asked.path for asked in service.asked} == {"/embed"}


def test_settings_of_tei(service: StandIn) -> None:
    settings = {"normalize": "false", "truncate": "true", "truncation_direction": "left", "dimensions": "4"}
    prompts = {"prompt_name": "any", "query_prompt_name": "query"}
    each = embedder("hugging-face-tei-embedder", endpoint=f"{service.url}/embed", **settings, **prompts)
    made(each, ["a"])
    made(each, ["a"], context=QUERY)
    common = {"inputs": "a", "normalize": False, "truncate": True, "truncation_direction": "Left", "dimensions": 4}
    assert service.bodies == [{**common, "prompt_name": "any"}, {**common, "prompt_name": "query"}]


@pytest.mark.parametrize(
    "answer",
    [
        [[1, 2, 3, 4]],
        [1, 2, 3, 4],
        {"data": [{"embedding": [1, 2, 3, 4]}]},
        {"data": [{"embedding": as_base64([1, 2, 3, 4])}]},
    ],
)
def test_forms_of_the_answers_of_tei(answer: object) -> None:
    with stand_in(lambda _: answer) as server:
        assert made(embedder("hugging-face-tei-embedder", endpoint=f"{server.url}/v1/embeddings"), ["a"]) == [
            [1, 2, 3, 4]
        ]


def test_texts_are_remembered(service: StandIn) -> None:
    each = embedder("voyage-ai-embedder", model="v", dimensions="4", endpoint=service.url, api_key_secret_ref="key")
    for texts in (["a", "b", "a"], ["b", "c"], ["a", "c"]):
        assert made(each, texts) == [vector_of(text) for text in texts]
    made(each, ["a"], context=QUERY)
    assert [body["input"] for body in service.bodies] == [["a", "b"], ["c"], ["a"]]
    assert made(each, []) == [] and len(service.asked) == 3


def test_no_more_texts_at_once_than_a_service_takes(service: StandIn) -> None:
    texts = [f"text {number}" for number in range(70)]
    assert made(embedder("hugging-face-tei-embedder", endpoint=service.url), texts) == [
        vector_of(text) for text in texts
    ]
    assert [len(body["inputs"]) for body in service.bodies] == [32, 32, 6]


def test_the_settings_of_batching(service: StandIn) -> None:
    for delay, seconds in (("200ms", 0.2), ("1.5", 1.5), ("2s", 2.0)):
        batching = {"batching_AT_max_size": "2", "batching_AT_max_delay": delay}
        each: Any = embedder("openai-embedder", model="m", dimensions="4", endpoint=service.url, **batching)
        assert each._batches._settings == BatchSettings(2, 2, seconds)
    assert made(each, ["a", "b", "c"]) == [vector_of(text) for text in "abc"]
    assert [body["input"] for body in service.bodies] == [["a", "b"], ["c"]]


# What goes wrong


@pytest.mark.parametrize(
    ("quantization", "dimensions", "type_", "problem"),
    [
        ("auto", "16", "tensor(x{})", r"Error in embedding to type 'tensor\(x\{\}\)': dimension should be indexed"),
        ("auto", "16", "tensor<float>(x[4],y[4])", "should only have one dimension"),
        ("auto", "16", "tensor<float>(x[8])", "Tensor dimension 8 does not match configured dimension 16"),
        (
            "auto",
            "16",
            "tensor<int8>(x[8])",
            "Tensor dimension 8 does not match configured dimension. Expected 16 or 2",
        ),
        ("auto", "20", "tensor<int8>(x[2])", "dimension 20 must be divisible by 8"),
        ("auto", "16", "tensor<double>(x[16])", "Quantization 'auto' is incompatible with tensor type tensor"),
        ("float", "16", "tensor<int8>(x[16])", "Quantization 'float' is incompatible with tensor type tensor<int8>"),
        ("int8", "16", "tensor<float>(x[16])", "Quantization 'int8' is incompatible with tensor type tensor<float>"),
        ("int8", "16", "tensor<int8>(x[2])", "Tensor dimension 2 does not match configured dimension 16"),
        ("binary", "16", "tensor<float>(x[2])", "Quantization 'binary' is incompatible with tensor type tensor<float>"),
        ("binary", "12", "tensor<int8>(x[1])", "dimension 12 must be divisible by 8 for quantization 'binary'"),
        ("binary", "16", "tensor<int8>(x[16])", "Tensor dimension 16 does not match required dimension 2"),
    ],
)
def test_types_that_do_not_fit(quantization: str, dimensions: str, type_: str, problem: str) -> None:
    settings = {"model": "m", "api_key_secret_ref": "key", "dimensions": dimensions, "quantization": quantization}
    for each in (embedder("voyage-ai-embedder", **settings), embedder("mistral-embedder", **settings)):
        with pytest.raises(ValueError, match=problem):
            each.embed(["a"], TensorType.parse(type_), DOCUMENT)


@pytest.mark.parametrize(
    ("type_", "problem"),
    [
        ("tensor<int8>(x[4])", r"only supports tensor<float> and tensor<bfloat16>, got tensor<int8>"),
        ("tensor<float>(x[5])", "Tensor dimension 5 does not match configured dimension 4"),
        ("tensor<float>(x{})", "dimension should be indexed"),
    ],
)
def test_types_that_tei_does_not_make(type_: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        embedder("hugging-face-tei-embedder", dimensions="4").embed(["a"], TensorType.parse(type_), DOCUMENT)


@pytest.mark.parametrize(
    ("embedding", "problem"),
    [
        ([1, 2, 3], "Expected embedding dimension 4, got 3."),
        ([[1, 2], [3, 4]], "Expected embedding dimension 4, got 4."),
        ([1, 2, 3, None], "that has a number that is not finite"),
        ([1, 2, 3, 1e39], "that has a number that is not finite"),
        ([1, 2, 3, "x"], "that is not a vector of float"),
        ({"a": 1}, "that is not a vector of float"),
        ("AAA", "that is not a vector of float"),
        ("not base64!", "that is not a vector of float"),
        (None, "that is not a vector of float"),
    ],
)
def test_embeddings_that_are_none(embedding: object, problem: str) -> None:
    with stand_in(lambda _: {"data": [{"embedding": embedding}]}) as server:
        each = embedder("openai-embedder", model="m", dimensions="4", endpoint=server.url)
        with pytest.raises(Unavailable) as raised:
            each.embed(["a"], FLOATS, DOCUMENT)
    assert raised.value.message.startswith("openai-embedder 'mine'") and problem in raised.value.message


@pytest.mark.parametrize("embedding", [[1, 200], [1, 1.5], [1, "x"], [1, 2**40]])
def test_bytes_that_are_none(embedding: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PAPERWASP_SECRET_KEY", "sesame")
    with stand_in(lambda _: {"data": [{"embedding": embedding}]}) as server:
        each = embedder("mistral-embedder", model="m", dimensions="16", endpoint=server.url, api_key_secret_ref="key")
        with pytest.raises(Unavailable, match="that is not a vector of binary"):
            each.embed(["a"], TensorType.parse("tensor<int8>(x[2])"), DOCUMENT)


@pytest.mark.parametrize(
    "answer", [None, 7, [], {}, {"data": None}, {"data": [7]}, {"data": [{"index": 0}]}, {"data": []}]
)
def test_answers_without_embeddings(answer: object) -> None:
    with stand_in(lambda _: answer) as server:
        for type_ in ("openai-embedder", "hugging-face-tei-embedder"):
            each = embedder(type_, model="m", dimensions="4", endpoint=server.url)
            with pytest.raises(Unavailable, match=r"answered without embeddings|0 embeddings were sent for 1 inputs"):
                each.embed(["a"], FLOATS, DOCUMENT)


def test_a_service_that_fails(service: StandIn) -> None:
    each = embedder("openai-embedder", model="m", dimensions="4", endpoint=service.url, max_retries="0")
    for status, error in ((400, InvalidInput), (401, Unavailable), (429, Overload), (500, Unavailable)):
        service.answer = lambda _, status=status: Reply({"error": {"message": "no"}}, status)  # type: ignore[misc]
        with pytest.raises(error, match=rf"^openai-embedder 'mine': {service.url} answered {status}: no"):
            each.embed(["a"], FLOATS, DOCUMENT)


def test_how_long_and_how_often() -> None:
    common = {"model": "m", "dimensions": "4", "endpoint": "http://127.0.0.1:1"}
    for type_, settings, expected in (
        ("openai-embedder", {}, (60.0, 3)),
        ("openai-embedder", {"config__maxRetries": "5", "config__timeout": "1500"}, (1.5, 5)),
        ("hugging-face-tei-embedder", {"max_retries": "0", "timeout": "250"}, (0.25, 0)),
    ):
        each: Any = embedder(type_, **common, **settings)
        endpoint = each._client.endpoint
        assert (endpoint.timeout_seconds, endpoint.max_retries) == expected


def test_what_a_deployment_tells() -> None:
    with pytest.raises(ValueError, match="'localhost' is not an address such as"):
        embedder("openai-embedder", model="m", dimensions="4", endpoint="localhost")
    each = embedder("openai-embedder", model="m", dimensions="4", api_key_secret_ref="not-there")
    with pytest.raises(NotFound, match=r"^there is no secret 'not-there' \(PAPERWASP_SECRET_NOT_THERE\) yet$"):
        each.check()
    with pytest.raises(Unavailable, match="There is no secret 'not-there'"):
        each.embed(["a"], FLOATS, DOCUMENT)
