"""What searchers of Vespa's native search chains do with queries, through a deployed application: see
query_scripts.py."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.service.in_process import Deployed, deployed_service
from tests.service.query_scripts import deploy_and_feed, in_short, run

SCRIPTS = Path(__file__).parent / "chain_scripts"


@pytest.fixture(scope="module", params=("index", "streaming"))
def service(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployed]:
    with deployed_service(tmp_path_factory.mktemp("chain")) as service:
        deploy_and_feed(service, SCRIPTS, request.param)
        yield service


@pytest.mark.parametrize("script", sorted(SCRIPTS.glob("*.txt")), ids=lambda path: path.stem)
def test_script(service: Deployed, script: Path) -> None:
    run(service, script, in_both_modes)


def in_both_modes(url: str, statement: str, *parameters: str) -> str:
    """What a case is answered; in streaming mode all documents are searched."""
    return in_short(url, statement, "streaming.selection=true", *parameters)
