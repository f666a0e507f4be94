"""Golden scripts of grouping: statements, and the trees of groups that they are answered with.

A case is a statement over all documents, a whole query, or `query` where parameters say all; then lines `name=value` of
further parameters. The answer is the HTTP status, then a line for each group, list of groups, list of hits and hit, as
deep as it stands in the tree: of a group its id, relevance and outputs, of a list its label and which pages there are
beside this one; or `400 error CODE: message`, of which one line is shown. Cases are parted by blank lines; lines that
begin with `#` are remarks. A case `GET parameters` is as those of `query_scripts.py`.

In `grouping_scripts/` and `purchase_scripts/` are the scripts, an application and its documents: of the first ranked by
price; of the second those of Vespa's guide (https://docs.vespa.ai/en/querying/grouping.html), which are searched by
streaming, too. Authority: https://docs.vespa.ai/en/reference/querying/grouping-language.html; values are worked by hand
from the documents, or are those of the guide.
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
from tests.service.query_scripts import deploy_and_feed, run, script_of, scripts_in, whole

HERE = Path(__file__).parent
GROUPING = HERE / "grouping_scripts"
PURCHASES = HERE / "purchase_scripts"


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployed]:
    with deployed_service(tmp_path_factory.mktemp("grouping")) as service:
        deploy_and_feed(service, GROUPING)
        yield service


@pytest.fixture(scope="module", params=["index", "streaming"])
def shop(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Deployed, str]]:
    with deployed_service(tmp_path_factory.mktemp(request.param)) as service:
        deploy_and_feed(service, PURCHASES, request.param)
        yield service, request.param


@pytest.mark.parametrize("script", scripts_in(GROUPING), ids=lambda path: path.stem)
def test_script(service: Deployed, script: Path) -> None:
    run(service, script, grouped)


@pytest.mark.parametrize("script", scripts_in(PURCHASES), ids=lambda path: path.stem)
def test_purchases(shop: tuple[Deployed, str], script: Path) -> None:
    service, mode = shop
    added = ["streaming.groupname=all"] if mode == "streaming" else []
    run(service, script_of(script, mode), lambda url, *lines: grouped(url, *lines, *added))


def test_memory_is_limited(service: Deployed, monkeypatch: pytest.MonkeyPatch) -> None:
    """A group takes 4 bytes for its parent, 4 for its id, 8 for its relevance, 8 for its count; the root takes 16."""
    monkeypatch.setattr("paperwasp.limits.grouping.MEMORY_BYTES", 3 * 24 + 16 - 1)
    assert grouped(f"{service.url}/search/", "all(group(item) each(output(count())) as(limited))") == (
        "400 error 4: grouping takes more than 87 bytes of memory: use filter(), max(), precision() or fewer values"
    )


def grouped(url: str, statement: str, *parameters: str) -> str:
    """The answer to a statement over all documents."""
    if statement.startswith("GET "):
        return whole(url, "&".join([statement, *parameters]))
    body = {"timeout": "20s", "hits": "0", **dict(line.split("=", 1) for line in parameters)}
    if statement.startswith("select "):
        body["yql"] = statement
    elif statement != "query":
        body["yql"] = f"select * from purchase where true | {statement}"
    answer = web.post(url, json=body, timeout=30)
    root = answer.json()["root"]
    if errors := root.get("errors"):
        messages = [(error["code"], error["message"].partition("\n")[0]) for error in errors]
        return "\n".join(f"{answer.status_code} error {code}: {message}" for code, message in messages)
    return "\n".join([str(answer.status_code), *(line for child in root.get("children", ()) for line in _tree(child))])


def _tree(node: dict[str, Any], depth: int = 0) -> Iterator[str]:
    yield "  " * depth + " ".join(_described(node))
    for child in node.get("children", ()):
        yield from _tree(child, depth + 1)


def _described(node: dict[str, Any]) -> Iterator[str]:
    name = str(node["id"])
    if "source" in node:  # a hit: its relevance says which
        yield f"hit {node['relevance']:g}"
    elif "label" in node:
        yield name
        yield from sorted(node.get("continuation", ()))
    else:
        yield name
        yield f"{node['relevance']:g}"
        yield from sorted(set(node.get("continuation", ())) - {"this"})
    if fields := node.get("fields"):
        yield orjson.dumps(fields).decode()
