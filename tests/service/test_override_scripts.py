"""Golden scripts of what a query says of ranking: every parameter `ranking.*`, and what it changes.

`ranked_answers.py` says what is asked and answered. In `override_scripts/` are the scripts, the application and its
documents; 1,000 more are made here. PAPERWASP_REWRITE_SCRIPTS=1 writes what the service says into the script.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from paperwasp.container.search.parameters import PARAMETERS
from tests.service.in_process import Deployed, deployed_service
from tests.service.query_scripts import deploy_and_feed, run
from tests.service.ranked_answers import ranked

OVERRIDES = Path(__file__).parent / "override_scripts"


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployed]:
    with deployed_service(tmp_path_factory.mktemp("overrides")) as service, httpx.Client(timeout=30) as client:
        deploy_and_feed(service, OVERRIDES)
        for number in range(1000):
            fields = {"number": number, "half": number // 500}
            path = f"{service.url}/document/v1/n/many/docid/{number}"
            assert client.post(path, json={"fields": fields}).status_code == 200
        yield service


@pytest.mark.parametrize("script", sorted(OVERRIDES.glob("*.txt")), ids=lambda path: path.stem)
def test_script(service: Deployed, script: Path) -> None:
    run(service, script, ranked)


def test_every_parameter_of_ranking_has_a_case() -> None:
    said = "".join(script.read_text() for script in OVERRIDES.glob("*.txt"))
    names = {name for names, *_ in PARAMETERS if names[0].startswith("ranking.") for name in names}
    assert {name for name in names if f"\n{name}=" not in said} <= {"ranking.softtimeout.tailcost"}
