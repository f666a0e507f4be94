"""The examples of pages about components and vectors, run: files, documents and queries as a reader would copy them.

A block of code belongs to what the line before it names between backquotes: a file of the package, or a request. A
block after "Hits:" has the fields of the hits of the query before it, which may have more.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
import orjson
import pytest
from onnx import TensorProto, helper, numpy_helper

from tests import web
from tests.embedders.tiny_models import SPECIAL, tiny_tokenizer
from tests.remote.stand_in import Asked, stand_in
from tests.service.in_process import Deployed, active, deployed_service

DOCS: Final = Path(__file__).parents[2] / "docs"
STAND_IN: Final = "http://127.0.0.1:8000"
"""The model elsewhere, on the pages."""
_BLOCK: Final = re.compile(r"^(?:`([^`\n]+)`:|([^\n]*Hits:))\n\n```\w*\n(.*?)^```$", re.MULTILINE | re.DOTALL)


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


def nobody(asked: Asked) -> object:
    raise AssertionError("no model is asked")


@pytest.mark.parametrize(
    ("page", "model"),
    [
        ("chunks", nobody),
        ("embedding", nobody),
        ("generate", chat),
        ("nearest-neighbors", nobody),
        ("python-components", nobody),
        ("remote-embedders", vectors),
    ],
)
def test_page(page: str, model: Callable[[Asked], object], tmp_path: Path) -> None:
    written = (DOCS / "reference" / f"{page}.md").read_text()
    blocks = [(name or "Hits", text) for name, _, text in _BLOCK.findall(written)]
    with stand_in(model) as elsewhere, deployed_service(tmp_path, allow_python_components=True) as service:
        files = {name: text.replace(STAND_IN, elsewhere.url) for name, text in blocks if "/" in name or "." in name}
        files = {name: text for name, text in files.items() if " " not in name}
        active(service.deploy(files | (models_for(written) if page == "embedding" else {})))
        hits: list[Mapping[str, Any]] = []
        for name, text in blocks:
            if name.startswith("POST "):
                hits = ask(service, name.removeprefix("POST "), text)
            elif name == "Hits":
                expected = orjson.loads(text)
                pairs = zip(expected, hits, strict=True)
                assert [{field: hit["fields"][field] for field in said} for said, hit in pairs] == expected
        assert "Hits" in dict(blocks)


def ask(service: Deployed, path: str, body: str) -> list[Mapping[str, Any]]:
    """The hits of a search; none for a document, which must be taken."""
    answered = web.post(service.url + path, json={"timeout": "20s", **orjson.loads(body)}, timeout=30)
    assert answered.status_code == 200, answered.text
    root = answered.json().get("root", {})
    assert "errors" not in root, root
    return list(root.get("children", []))
