"""The examples of pages that need a model: one of the package, or one at another address."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Final

import numpy as np
import orjson
import pytest
from onnx import TensorProto, helper, numpy_helper

from tests.components.embedders.tiny_models import SPECIAL, tiny_tokenizer
from tests.components.stand_in import Asked, stand_in
from tests.docs.examples import reader_of
from tests.docs.pages import DOCS

STAND_IN: Final = "http://127.0.0.1:8000"
"""The model elsewhere, on the pages."""


def chat(asked: Asked) -> object:
    """What docs/reference/generate.md says that a model is asked and answers."""
    assert asked.path == "/v1/chat/completions"
    page = (DOCS / "reference" / "generate.md").read_text()
    (schema,) = re.findall(r"```json\n(\{\"type\".*)\n```", page)
    assert asked.body["response_format"]["json_schema"]["schema"] == orjson.loads(schema)
    (said,) = re.findall(r"It answers `(.*?)`", page)
    return {"choices": [{"message": {"content": said}}]}


def vectors(asked: Asked) -> object:
    """The vector of a text that is asked at the address of docs/reference/remote-embedders.md."""
    assert asked.path == "/v1/embeddings" and asked.body["model"] == "text-embedding-3-small"
    return {"data": [{"embedding": [len(text), 0, 0, 0]} for text in asked.body["input"]]}


def models_for(page: str) -> dict[str, bytes]:
    """A model with the dimensions of docs/reference/embedding.md. Each word of the page is a token, which has a vector
    that is drawn by chance: texts that have words in common are near."""
    tokens = [*SPECIAL, *sorted({*re.findall(r"[\w.:]+", page.lower())})]
    known = np.random.default_rng(20).normal(size=(len(tokens), 384)).astype(np.float32)
    made = helper.make_model(
        helper.make_graph(
            [helper.make_node("Gather", ["known", "input_ids"], ["last_hidden_state"])],
            "words",
            [
                helper.make_tensor_value_info(name, TensorProto.INT64, ["texts", "tokens"])
                for name in ("input_ids", "attention_mask", "token_type_ids")
            ],
            [helper.make_tensor_value_info("last_hidden_state", TensorProto.FLOAT, ["texts", "tokens", 384])],
            [numpy_helper.from_array(known, "known")],
        ),
        opset_imports=[helper.make_opsetid("", 17)],
        ir_version=8,
    )
    return {"models/model.onnx": made.SerializeToString(), "models/tokenizer.json": tiny_tokenizer(tokens)}


def test_embedding(tmp_path: Path) -> None:
    page = DOCS / "reference" / "embedding.md"
    with reader_of(page, tmp_path) as reader:
        reader.package |= models_for(page.read_text())
        reader.read()
        assert reader.runs > 3


@pytest.mark.parametrize(("name", "model"), [("generate", chat), ("remote-embedders", vectors)])
def test_models_elsewhere(name: str, model: Callable[[Asked], object], tmp_path: Path) -> None:
    with stand_in(model) as elsewhere, reader_of(DOCS / "reference" / f"{name}.md", tmp_path) as reader:
        reader.replaced[STAND_IN] = elsewhere.url
        reader.read()
        assert reader.runs > 1
