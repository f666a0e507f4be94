"""Golden scripts of grouping: statements, and the trees of groups that they are answered with.

A case is a statement, then lines `name=value` of further parameters. The answer is the HTTP status, then a line for
each group, list of groups, list of hits and hit, as deep as it stands in the tree: of a group its id, relevance and
outputs, of a list its label and which pages there are beside this one; or `400 error CODE: message`. Cases are parted
by blank lines; lines that begin with `#` are remarks. In `grouping_scripts/` are the scripts, the application and its
documents, which are ranked by price. Authority: https://docs.vespa.ai/en/reference/querying/grouping-language.html;
values are worked by hand from the documents.
PAPERWASP_REWRITE_SCRIPTS=1 writes what the service says into the script instead of comparing.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from tests import web
from tests.service.in_process import Deployed, deployed_service
from tests.service.query_scripts import deploy_and_feed, run

GROUPING = Path(__file__).parent / "grouping_scripts"


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployed]:
    with deployed_service(tmp_path_factory.mktemp("grouping")) as service:
        deploy_and_feed(service, GROUPING)
        yield service


@pytest.mark.parametrize("script", sorted(GROUPING.glob("*.txt")), ids=lambda path: path.stem)
def test_script(service: Deployed, script: Path) -> None:
    run(service, script, grouped)


def grouped(url: str, statement: str, *parameters: str) -> str:
    """The answer to a statement over all documents."""
    body = {"timeout": "20s", "hits": "0", **dict(line.split("=", 1) for line in parameters)}
    body["yql"] = f"select * from purchase where true | {statement}"
    answer = web.post(url, json=body, timeout=30)
    root = answer.json()["root"]
    if errors := root.get("errors"):
        return "\n".join(f"{answer.status_code} error {error['code']}: {error['message']}" for error in errors)
    return "\n".join([str(answer.status_code), *(line for child in root.get("children", ()) for line in _tree(child))])


def _tree(node: dict[str, Any], depth: int = 0) -> Iterator[str]:
    yield "  " * depth + " ".join(_described(node))
    for child in node.get("children", ()):
        yield from _tree(child, depth + 1)


def _described(node: dict[str, Any]) -> Iterator[str]:
    name = str(node["id"])
    if name.startswith("index:"):  # a hit: its relevance says which
        yield f"hit {node['relevance']:g}"
    elif "label" in node:
        yield name
        yield from sorted(node.get("continuation", ()))
    else:
        yield name
        yield f"{node['relevance']:g}"
    if fields := node.get("fields"):
        yield orjson.dumps(fields).decode()
