"""The page about ranking expressions in queries, run: its package, its documents, its requests and their answers."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import orjson
from typer.testing import CliRunner

from paperwasp.cli import app
from tests import web
from tests.docs.pages import DOCS
from tests.service.in_process import Deployed, active, deployed_service

BLOCK = re.compile(
    r"^(?:`([^`\n]+)`|(Relevance|Match-features|Error)):\n\n```\w*\n(.*?)^```$", re.MULTILINE | re.DOTALL
)
FILE = re.compile(r"[\w/]+\.\w+")
PAGE = DOCS / "reference" / "ranking-in-queries.md"


def test_the_page(tmp_path: Path) -> None:
    blocks = [(name or said, text) for name, said, text in BLOCK.findall(PAGE.read_text())]
    with deployed_service(tmp_path) as service:
        active(service.deploy(files_of(blocks)))
        root: dict[str, Any] = {}
        compared = 0
        application = written(tmp_path / "package", blocks)
        for name, text in blocks:
            if name.startswith("paperwasp "):
                assert printed(name, application) == text
                compared += 1
            elif name.startswith("POST "):
                root = posted(service, name.removeprefix("POST "), text)
            elif name in ("Relevance", "Match-features", "Error"):
                assert shown(name, root) == orjson.loads(text), orjson.dumps(root).decode()
                compared += 1
        assert compared == 7


def files_of(blocks: list[tuple[str, str]]) -> dict[str, str]:
    return {name: text for name, text in blocks if FILE.fullmatch(name)}


def written(folder: Path, blocks: list[tuple[str, str]]) -> Path:
    """The package in a folder."""
    for name, text in files_of(blocks).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def printed(command: str, application: Path) -> str:
    """What a command prints about the package."""
    arguments = [str(application) if word == "APPLICATION" else word for word in shlex.split(command)[1:]]
    return CliRunner().invoke(app, arguments).output


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
