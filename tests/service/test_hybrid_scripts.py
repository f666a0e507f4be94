"""Golden scripts of words and vectors in one query: how hits are found by both, and how they are ranked.

Cases are parted by blank lines; lines that begin with `#` before a case are remarks; answers come after a line `---`.
`ranked_answers.py` says what is asked and answered. In `hybrid_scripts/` are the scripts, the application and its
documents. Authority: https://docs.vespa.ai/en/learn/tutorials/hybrid-search.html; values are worked by hand.
PAPERWASP_REWRITE_SCRIPTS=1 writes what the service says into the script instead of comparing.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.service.in_process import Deployed, deployed_service
from tests.service.query_scripts import deploy_and_feed, run
from tests.service.ranked_answers import ranked

HYBRID = Path(__file__).parent / "hybrid_scripts"


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployed]:
    with deployed_service(tmp_path_factory.mktemp("hybrid")) as service:
        deploy_and_feed(service, HYBRID)
        yield service


@pytest.mark.parametrize("script", sorted(HYBRID.glob("*.txt")), ids=lambda path: path.stem)
def test_script(service: Deployed, script: Path) -> None:
    run(service, script, ranked)
