"""Golden scripts of the phases of ranking and of what a rank profile says beside its expressions.

Cases are parted by blank lines; lines that begin with `#` before a case are remarks; answers come after a line `---`.
`ranked_answers.py` says what is asked and answered. In `phase_scripts/` are the scripts, the application and its
documents.
PAPERWASP_REWRITE_SCRIPTS=1 writes what the service says into the script instead of comparing.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import web
from tests.service.in_process import Deployed, deployed_service
from tests.service.query_scripts import deploy_and_feed, run
from tests.service.ranked_answers import ranked

PHASES = Path(__file__).parent / "phase_scripts"


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployed]:
    with deployed_service(tmp_path_factory.mktemp("phases")) as service:
        deploy_and_feed(service, PHASES)
        yield service


@pytest.mark.parametrize("script", sorted(PHASES.glob("*.txt")), ids=lambda path: path.stem)
def test_script(service: Deployed, script: Path) -> None:
    run(service, script, ranked)


def test_all_default_features_are_listed(service: Deployed) -> None:
    """Those that Vespa's families dump, for a type with a text and two numbers."""
    body = {"yql": "select * from papers where title contains 'blue'", "ranking": "turned", "hits": 1}
    answer = web.post(f"{service.url}/search/", json={**body, "ranking.listFeatures": True, "timeout": "20s"})
    [hit] = answer.json()["root"]["children"]
    names = set(hit["fields"]["rankfeatures"])
    for feature in ("bm25(title)", "nativeRank", "nativeFieldMatch", "nativeProximity", "nativeAttributeMatch"):
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
    left = names - {f"matches({field})" for field in ("title", "low", "high")}
    assert len(left) == len(names) - 3
    assert not {name for name in left if name.startswith(("match", "closeness", "random", "freshness", "age"))}
