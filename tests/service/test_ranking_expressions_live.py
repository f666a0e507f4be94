"""Ranking expressions of a deployed application: in memory, after a start from the disk, and in streaming search."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.service.expression_scripts import SCRIPTS, deploy_and_feed, run
from tests.service.in_process import Deployed, deployed_service
from tests.service.query_scripts import script_of, scripts_in


@pytest.fixture(scope="module", params=["memory", "disk", "streaming"])
def service(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployed]:
    folder = tmp_path_factory.mktemp("ranking")
    with deployed_service(folder) as service:
        deploy_and_feed(service, "streaming" if request.param == "streaming" else "index")
        service.mode = request.param  # type: ignore[attr-defined]
        if request.param != "disk":
            yield service
            return
    with deployed_service(folder) as service:
        service.mode = request.param  # type: ignore[attr-defined]
        yield service


@pytest.mark.parametrize("script", scripts_in(SCRIPTS), ids=lambda path: path.stem)
def test_script(service: Deployed, script: Path) -> None:
    script = script_of(script, service.mode)  # type: ignore[attr-defined]
    streamed = service.mode == "streaming"  # type: ignore[attr-defined]
    run(service, script, False, **({"streaming.selection": "true"} if streamed else {}))


@pytest.fixture(scope="module", params=["index", "streaming"])
def bare(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployed]:
    """The same application, whose rank profiles lack the expressions."""
    with deployed_service(tmp_path_factory.mktemp("bare")) as service:
        deploy_and_feed(service, request.param, are_given=True)
        service.mode = "streaming" if request.param == "streaming" else "memory"  # type: ignore[attr-defined]
        yield service


@pytest.mark.parametrize("script", scripts_in(SCRIPTS), ids=lambda path: path.stem)
def test_script_with_expressions_in_queries(bare: Deployed, script: Path) -> None:
    script = script_of(script, bare.mode)  # type: ignore[attr-defined]
    streamed = bare.mode == "streaming"  # type: ignore[attr-defined]
    run(bare, script, True, **({"streaming.selection": "true"} if streamed else {}))
