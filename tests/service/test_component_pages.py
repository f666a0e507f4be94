"""The examples of the pages about components, run: files, documents and queries as a reader would copy them.

A block of code belongs to what the line before it names between backquotes: a file of the package, or a request. A
block after "Hits:" has the fields of the hits of the query before it, which may have more.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import orjson
import pytest

from tests import web
from tests.remote.stand_in import Asked, stand_in
from tests.service.in_process import Deployed, active, deployed_service

DOCS: Final = Path(__file__).parents[2] / "docs"
STAND_IN: Final = "http://127.0.0.1:8000"
"""The model elsewhere, on the pages."""
_BLOCK: Final = re.compile(r"^(?:`([^`\n]+)`:|([^\n]*Hits:))\n\n```\w*\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def chat(asked: Asked) -> object:
    """What docs/generate.md says that a model is asked and answers."""
    assert asked.path == "/v1/chat/completions"
    page = (DOCS / "generate.md").read_text()
    (schema,) = re.findall(r"```json\n(\{\"type\".*)\n```", page)
    assert asked.body["response_format"]["json_schema"]["schema"] == orjson.loads(schema)
    (said,) = re.findall(r"It answers `(.*?)`", page)
    return {"choices": [{"message": {"content": said}}]}


def vectors(asked: Asked) -> object:
    """The vector of a text that is asked at the address of docs/remote-embedders.md."""
    assert asked.path == "/v1/embeddings" and asked.body["model"] == "text-embedding-3-small"
    return {"data": [{"embedding": [len(text), 0, 0, 0]} for text in asked.body["input"]]}


def nobody(asked: Asked) -> object:
    raise AssertionError("no model is asked")


@pytest.mark.parametrize(
    ("page", "model"),
    [("chunks", nobody), ("python-components", nobody), ("generate", chat), ("remote-embedders", vectors)],
)
def test_page(page: str, model: Callable[[Asked], object], tmp_path: Path) -> None:
    blocks = [(name or "Hits", text) for name, _, text in _BLOCK.findall((DOCS / f"{page}.md").read_text())]
    with stand_in(model) as elsewhere, deployed_service(tmp_path, allow_python_components=True) as service:
        files = {name: text.replace(STAND_IN, elsewhere.url) for name, text in blocks if "/" in name or "." in name}
        active(service.deploy({name: text for name, text in files.items() if " " not in name}))
        hits: list[Mapping[str, Any]] = []
        compared = 0
        for name, text in blocks:
            if name.startswith("POST "):
                hits = ask(service, name.removeprefix("POST "), text)
            elif name == "Hits":
                expected = orjson.loads(text)
                pairs = zip(expected, hits, strict=True)
                assert [{field: hit["fields"][field] for field in said} for said, hit in pairs] == expected
                compared += 1
        assert compared == 1


def ask(service: Deployed, path: str, body: str) -> list[Mapping[str, Any]]:
    """The hits of a search; none for a document, which must be taken."""
    answered = web.post(service.url + path, json={"timeout": "20s", **orjson.loads(body)}, timeout=30)
    assert answered.status_code == 200, answered.text
    root = answered.json().get("root", {})
    assert "errors" not in root, root
    return list(root.get("children", []))
