"""What searchers of Vespa's native search chains do with queries, through a deployed application: see
query_scripts.py."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.service.in_process import Deployed, deployed_service
from tests.service.query_scripts import deploy_and_feed, in_short, run, script_of, scripts_in

SCRIPTS = Path(__file__).parent / "chain_scripts"


@pytest.fixture(scope="module", params=("index", "streaming"))
def service(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Deployed, str]]:
    with deployed_service(tmp_path_factory.mktemp("chain")) as service:
        deploy_and_feed(service, SCRIPTS, request.param)
        yield service, request.param


@pytest.mark.parametrize("script", scripts_in(SCRIPTS), ids=lambda path: path.stem)
def test_script(service: tuple[Deployed, str], script: Path) -> None:
    deployed, mode = service
    run(deployed, script_of(script, mode), in_both_modes)


def in_both_modes(url: str, statement: str, *parameters: str) -> str:
    """What a case is answered; in streaming mode all documents are searched."""
    return in_short(url, statement, "streaming.selection=true", *parameters)
