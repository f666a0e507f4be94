"""`colbert-embedder`: a vector for each token of queries and documents, against a plain twin."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pytest

from paperwasp.components.embedders.registry import check_components, embedders_of
from paperwasp.document.tensor.types import TensorType
from paperwasp.document.tensor.value import Tensor
from paperwasp.indexing.components import Context
from paperwasp.schema.files import Component, PackageFiles
from tests.components.embedders.test_hugging_face import sums
from tests.components.embedders.tiny_models import (
    END,
    MASK,
    START,
    VOCABULARY,
    assert_near,
    tiny_masked_bert,
    tiny_tokenizer,
    twin,
)

FILES = PackageFiles({"m.onnx": tiny_masked_bert(), "t.json": tiny_tokenizer()})
MODELS = {
    "transformer-model@path": "m.onnx",
    "tokenizer-model@path": "t.json",
    "transformer-output": "last_hidden_state",
    "transformer-start-sequence-token": str(START),
    "transformer-end-sequence-token": str(END),
    "transformer-mask-token": str(MASK),
    "query-token-id": "5",
    "document-token-id": "6",
    "max-query-tokens": "8",
}
QUERY, DOCUMENT = Context("query(q)"), Context("v")
FLOATS = "tensor<float>(t{},x[16])"


def component(settings: Mapping[str, str]) -> Component:
    said = MODELS | {name.replace("_", "-"): value for name, value in settings.items()}
    return Component("component", "c", "colbert-embedder", settings=said)


def embedded(texts: Sequence[str], context: Context, type_: str = FLOATS, **settings: str) -> Sequence[Tensor]:
    (found,) = embedders_of([component(settings)], FILES).values()
    return found.embed(texts, TensorType.parse(type_), context)


def ids(*words: str) -> list[int]:
    return [VOCABULARY.index(word) for word in words]


def test_documents() -> None:
    """Without punctuation; one row for each token, whatever else is embedded with it."""
    assert list(check_components([component({})], FILES)) == []
    found = embedded(["the cat , walks .", "blue"], DOCUMENT)
    for tensor, words in zip(found, (("the", "cat", "walk", "##s"), ("blue",)), strict=True):
        expected = twin([START, 6, *ids(*words), END])
        assert tensor.labels == tuple((str(place),) for place in range(len(expected)))
        assert_near(tensor.cells, expected)


@pytest.mark.parametrize("attends", [False, True])
def test_queries_are_filled_with_mask_tokens(attends: bool) -> None:
    settings = {"attend_to_expansion_tokens": "true"} if attends else {}
    (tensor,) = embedded(["the cat ."], QUERY, **settings)
    tokens = [START, 5, *ids("the", "cat", "."), END]
    added = 8 - len(tokens)
    expected = twin([*tokens, *[MASK] * added], [1] * len(tokens) + [int(attends)] * added)
    assert len(tensor.labels) == 8
    assert_near(tensor.cells, expected)


def test_long_texts_are_cut() -> None:
    (query,) = embedded(["the cat is a blue dog sky red walk"], QUERY)
    assert_near(query.cells, twin([START, 5, *ids("the", "cat", "is", "a", "blue"), END]))
    (document,) = embedded(["the cat is a blue dog"], DOCUMENT, max_document_tokens="5")
    assert_near(document.cells, twin([START, 6, *ids("the", "cat"), END]))
    (document,) = embedded(["the cat is a blue dog"], DOCUMENT, max_tokens="4")
    assert_near(document.cells, twin([START, 6, *ids("the"), END]))


def test_bits() -> None:
    (tensor,) = embedded(["the cat"], DOCUMENT, "tensor<int8>(t{},x[2])")
    for row, values in zip(tensor.cells, twin([START, 6, *ids("the", "cat"), END]), strict=True):
        bits = "".join("1" if value > 0 else "0" for value in values)
        assert [int(cell) % 256 for cell in row] == [int(bits[:8], 2), int(bits[8:], 2)]


def test_bfloat16() -> None:
    (tensor,) = embedded(["the cat"], DOCUMENT, "tensor<bfloat16>(t{},x[16])")
    np.testing.assert_allclose(tensor.cells, twin([START, 6, *ids("the", "cat"), END]), rtol=2**-7, atol=1e-4)


@pytest.mark.parametrize(
    ("context", "type_", "problem"),
    [
        (DOCUMENT, "tensor<float>(x[16])", "Wanted a mixed 2-d mapped-indexed tensor, got tensor<float>"),
        (DOCUMENT, "tensor<float>(t{},x[8])", "Not possible to map token vector embedding with 16 dimensions into"),
        (DOCUMENT, "tensor<int8>(t{},x[16])", r"Not possible to pack 16 \+ dimensions into 16 dimensions"),
        (QUERY, "tensor<float>(t{},x[8])", "Token vector dimensionality does not match indexed dimensionality of 8"),
        (QUERY, "tensor<int8>(t{},x[2])", "ColBert query embed does not accept int8 tensor value type"),
    ],
)
def test_types_that_it_does_not_make(context: Context, type_: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        embedded(["the"], context, type_)


def test_a_model_that_pools_is_refused() -> None:
    content = sums(("input_ids", "attention_mask"), "last_hidden_state", pools=True)
    files = PackageFiles({"m.onnx": content, "t.json": tiny_tokenizer()})
    (found,) = check_components([component({})], files)
    assert found.message == "component 'c': Expected onnx result to have 3-dimensions [batch, sequence, dim]"
