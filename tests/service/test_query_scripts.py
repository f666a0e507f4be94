"""Every operator of YQL, and what is around it, through a deployed application: see query_scripts.py."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.service.in_process import Deployed, deployed_service
from tests.service.query_scripts import SCRIPTS, deploy_and_feed, run


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployed]:
    with deployed_service(tmp_path_factory.mktemp("queries")) as service:
        deploy_and_feed(service)
        yield service


@pytest.mark.parametrize("script", sorted(SCRIPTS.glob("*.txt")), ids=lambda path: path.stem)
def test_script(service: Deployed, script: Path) -> None:
    run(service, script)
