"""The page about ranking expressions in queries, run: its package, its documents, its requests and their answers."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import orjson

from tests import web
from tests.service.in_process import Deployed, active, deployed_service
from tests.service.test_component_pages import DOCS

BLOCK = re.compile(
    r"^(?:`([^`\n]+)`|(Relevance|Match-features|Error)):\n\n```\w*\n(.*?)^```$", re.MULTILINE | re.DOTALL
)
PAGE = DOCS / "ranking-in-queries.md"


def test_the_page(tmp_path: Path) -> None:
    blocks = [(name or said, text) for name, said, text in BLOCK.findall(PAGE.read_text())]
    with deployed_service(tmp_path) as service:
        active(service.deploy({name: text for name, text in blocks if "." in name and not name.startswith("POST")}))
        root: dict[str, Any] = {}
        compared = 0
        for name, text in blocks:
            if name.startswith("POST "):
                root = posted(service, name.removeprefix("POST "), text)
            elif name in ("Relevance", "Match-features", "Error"):
                assert shown(name, root) == orjson.loads(text), orjson.dumps(root).decode()
                compared += 1
        assert compared == 5


def posted(service: Deployed, path: str, text: str) -> dict[str, Any]:
    """What is answered to a document; the root of the answer to a search."""
    headers = {"content-type": "application/json"}
    answer: dict[str, Any] = web.post(f"{service.url}{path}", content=text, headers=headers, timeout=30).json()
    root: dict[str, Any] = answer.get("root", answer)
    return root


def shown(name: str, root: dict[str, Any]) -> object:
    if name == "Error":
        return root["errors"][0]
    if name == "Relevance":
        return [[hit["fields"]["title"], hit["relevance"]] for hit in root["children"]]
    return [hit["fields"]["matchfeatures"] for hit in root["children"]]
