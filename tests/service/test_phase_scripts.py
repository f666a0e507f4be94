"""Golden scripts of the phases of ranking and of what a rank profile says beside its expressions.

Cases are parted by blank lines; lines that begin with `#` before a case are remarks. A case is a YQL statement, or
`where …` for `select * from music where …`; lines `name=value` are further parameters. After a line `---` comes the
answer: the HTTP status and the total count, then for each hit the last part of its id, its relevance, and the features
that it shows; or `400 error CODE: message`. In `phase_scripts/` are the scripts, the application and its documents.
PAPERWASP_REWRITE_SCRIPTS=1 writes what the service says into the script instead of comparing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import httpx
import orjson
import pytest
from in_process import Deployed, deployed_service
from query_scripts import deploy_and_feed, run

PHASES = Path(__file__).parent / "phase_scripts"


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployed]:
    with deployed_service(tmp_path_factory.mktemp("phases")) as service:
        deploy_and_feed(service, PHASES)
        yield service


@pytest.mark.parametrize("script", sorted(PHASES.glob("*.txt")), ids=lambda path: path.stem)
def test_script(service: Deployed, script: Path) -> None:
    run(service, script, _asked)


def _asked(url: str, statement: str, *parameters: str) -> str:
    yql = f"select * from music {statement}" if statement.startswith("where") else statement
    body = {"timeout": "20s", "yql": yql, **dict(line.split("=", 1) for line in parameters)}
    answer = httpx.post(url, json=body, timeout=30)
    return f"{answer.status_code} {_told(answer.json()['root'])}"


def _told(root: Mapping[str, Any]) -> str:
    if errors := root.get("errors"):
        return "\n".join(f"error {error['code']}: {error['message']}" for error in errors)
    return "\n".join([str(root["fields"]["totalCount"]), *(_hit(hit) for hit in root.get("children", []))])


def _hit(hit: Mapping[str, Any]) -> str:
    relevance = hit["relevance"] if isinstance(hit["relevance"], str) else f"{hit['relevance']:.10g}"
    shown = [orjson.dumps(hit["fields"][name]).decode() for name in _FEATURES if name in hit["fields"]]
    return " ".join([str(hit["id"]).rpartition(":")[2], relevance, *shown])


_FEATURES = ("matchfeatures", "summaryfeatures", "rankfeatures")


def test_all_default_features_are_listed(service: Deployed) -> None:
    """Those that Vespa's families dump, for a type with a text and two numbers."""
    body = {"yql": "select * from papers where title contains 'blue'", "ranking": "turned", "hits": 1}
    answer = httpx.post(f"{service.url}/search/", json={**body, "ranking.listFeatures": True, "timeout": "20s"})
    [hit] = answer.json()["root"]["children"]
    names = set(hit["fields"]["rankfeatures"])
    for feature in ("bm25(title)", "nativeRank", "nativeFieldMatch", "nativeProximity", "nativeAttributeMatch", "now"):
        assert feature in names
    for number in range(5):
        assert {f"term({number}).{name}" for name in ("connectedness", "significance", "weight")} <= names
        assert {f"fieldTermMatch(title,{number}).{name}" for name in ("firstPosition", "occurrences")} <= names
    for output in ("", ".completeness", ".queryCompleteness", ".significance", ".longestSequence", ".segmentDistance"):
        assert f"fieldMatch(title){output}" in names
    for output in ("score", "proximity", "order", "queryCoverage", "fieldCoverage"):
        assert f"textSimilarity(title).{output}" in names
    for output in ("completeness", "fieldCompleteness", "queryCompleteness", "elementWeight"):
        assert f"elementCompleteness(title).{output}" in names
    for field in ("low", "high"):
        assert {f"attributeMatch({field}){output}" for output in ("", ".completeness", ".weight", ".matches")} <= names
    assert {"firstPhase", "queryTermCount"} <= names
    assert not {name for name in names if name.startswith(("match", "closeness", "random", "freshness", "age"))}
