"""Golden scripts of the settings of matching, on indexed documents and on the same ones in streaming search."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.service.in_process import Deployed, deployed_service
from tests.service.query_scripts import deploy_and_feed, in_short, run

MATCHING = Path(__file__).parent / "matching_scripts"
SCRIPTS = sorted(MATCHING.glob("*.txt"))


@pytest.fixture(scope="module", params=["index", "streaming"])
def service(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployed]:
    with deployed_service(tmp_path_factory.mktemp("matching")) as service:
        deploy_and_feed(service, MATCHING, request.param)
        service.mode = request.param  # type: ignore[attr-defined]
        yield service


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_script(service: Deployed, script: Path) -> None:
    if service.mode == "index":  # type: ignore[attr-defined]
        run(service, script)
        return
    for case in script.read_text().strip().split("\n\n"):
        question, _, answer = case.partition("\n---\n")
        if not question.startswith("#"):
            streamed = in_short(f"{service.url}/search/", *question.splitlines(), "streaming.selection=true")
            assert sorted(streamed.split()) == sorted(answer.split()), question
