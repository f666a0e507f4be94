"""`splade-embedder`: weights of word pieces, from logits that a model of the test makes, against the definition."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
from onnx import TensorProto, helper

from paperwasp.components.embedders.registry import check_components, embedders_of
from paperwasp.document.tensor.types import TensorType
from paperwasp.document.tensor.value import Tensor
from paperwasp.indexing.components import Context
from paperwasp.schema.files import Component, PackageFiles
from tests.components.embedders.test_hugging_face import sums
from tests.components.embedders.tiny_models import VOCABULARY, tiny_tokenizer, tokens_of
from tests.ranking.onnx.onnx_models import model

LOGITS = np.random.default_rng(20).normal(0, 2, (len(VOCABULARY), len(VOCABULARY))).astype(np.float32)
"""For each token of the text, the logit of each entry of the vocabulary."""


def table() -> bytes:
    """A model whose logits are rows of a table; the mask is an input that it does not look at."""
    nodes = [
        helper.make_node("Gather", ["table", "input_ids"], ["rows"]),
        helper.make_node("Cast", ["attention_mask"], ["seen"], to=TensorProto.FLOAT),
        helper.make_node("Unsqueeze", ["seen", "axis"], ["shown"]),
        helper.make_node("Mul", ["rows", "shown"], ["logits"]),
    ]
    inputs = dict.fromkeys(("input_ids", "attention_mask"), (TensorProto.INT64, ("batch", "tokens")))
    outputs = {"logits": (TensorProto.FLOAT, ("batch", "tokens", len(VOCABULARY)))}
    return model(nodes, inputs, outputs, {"table": LOGITS, "axis": np.array([2], np.int64)})


FILES = PackageFiles({"m.onnx": table(), "t.json": tiny_tokenizer()})
MODELS = {"transformer-model@path": "m.onnx", "tokenizer-model@path": "t.json"}


def component(**settings: str) -> Component:
    said = MODELS | {name.replace("_", "-"): value for name, value in settings.items()}
    return Component("component", "s", "splade-embedder", settings=said)


def embedded(texts: Sequence[str], type_: str = "tensor<float>(t{})", **settings: str) -> Sequence[Tensor]:
    (found,) = embedders_of([component(**settings)], FILES).values()
    return found.embed(texts, TensorType.parse(type_), Context("v"))


def weights(*words: str) -> dict[str, float]:
    """By the definition."""
    tokens = tokens_of(*words)
    largest = {word: max(float(LOGITS[token, n]) for token in tokens) for n, word in enumerate(VOCABULARY)}
    return {word: math.log(1 + max(0.0, logit)) for word, logit in largest.items()}


@pytest.mark.parametrize("threshold", [None, 1.2])
def test_weights_above_the_threshold(threshold: float | None) -> None:
    assert list(check_components([component()], FILES)) == []
    settings = {} if threshold is None else {"term_score_threshold": str(threshold)}
    said = (("the", "cat"), ("blue", "sky", "is"))
    for tensor, words in zip(embedded([" ".join(each) for each in said], **settings), said, strict=True):
        expected = {word: weight for word, weight in weights(*words).items() if weight > (threshold or 0.0)}
        found = {label: float(cell) for (label,), cell in zip(tensor.labels, tensor.cells, strict=True)}
        assert found == pytest.approx(expected, rel=1e-6)
        assert len(found) < len(VOCABULARY)


@pytest.mark.parametrize("type_", ["tensor<float>(t[4])", "tensor<float>(t{},x[2])", "tensor<float>(t{},u{})"])
def test_types_that_it_does_not_make(type_: str) -> None:
    with pytest.raises(ValueError, match="Wanted a mapped 1-d tensor, got tensor<float>"):
        embedded(["the"], type_)


def test_a_model_that_pools_is_refused() -> None:
    content = sums(("input_ids", "attention_mask"), "logits", pools=True)
    files = PackageFiles({"m.onnx": content, "t.json": tiny_tokenizer()})
    (found,) = check_components([component()], files)
    assert found.message == "component 's': The indexed tensor must be 3-dimensional"
