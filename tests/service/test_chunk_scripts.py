"""Golden scripts of chunks: each example of Vespa's page about them, and what a client is shown.

Cases are as in `query_scripts.py`. The answer is the HTTP status and the total count, then for each hit the last part
of its id, its relevance and its fields.

Vespa: https://docs.vespa.ai/en/rag/working-with-chunks.html
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import orjson
import pytest

from tests import web
from tests.service.in_process import Deployed, deployed_service
from tests.service.query_scripts import deploy_and_feed, run

CHUNKS: Final = Path(__file__).parent / "chunk_scripts"
_UNSHOWN: Final = ("sddocname", "documentid")


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployed]:
    with deployed_service(tmp_path_factory.mktemp("chunks"), allow_python_components=True) as service:
        deploy_and_feed(service, CHUNKS)
        yield service


@pytest.mark.parametrize("script", sorted(CHUNKS.glob("*.txt")), ids=lambda path: path.stem)
def test_script(service: Deployed, script: Path) -> None:
    run(service, script, shown)


def shown(url: str, statement: str, *parameters: str) -> str:
    body = {"timeout": "20s", "yql": statement, **dict(line.split("=", 1) for line in parameters)}
    answer = web.post(url, json=body, timeout=30)
    root = answer.json()["root"]
    if errors := root.get("errors"):
        lines = [f"error {error['code']}: {error['message']}" for error in errors]
    else:
        lines = [str(root["fields"]["totalCount"]), *map(_hit, root.get("children", []))]
    return "\n".join([f"{answer.status_code} {lines[0]}", *lines[1:]])


def _hit(hit: Mapping[str, Any]) -> str:
    fields = {name: value for name, value in hit.get("fields", {}).items() if name not in _UNSHOWN}
    for features in (each for name, each in fields.items() if name.endswith("features")):
        features.pop("vespa.summaryFeatures.cached", None)
    name = str(hit["id"]).rpartition(":")[2]
    return f"{name} {hit['relevance']:.7g} {orjson.dumps(fields).decode()}"
