"""Golden scripts of what grouping computes of documents: one for each family of expressions, and one of imported ones.

In `grouping_value_scripts/` are the scripts, an application with attributes of every type, and its documents, the last
of which has none; they are searched by streaming, too. In `grouping_import_scripts/` documents refer to others. They
are of the form of `test_grouping_scripts.py`. Authority:
https://docs.vespa.ai/en/reference/querying/grouping-language.html#expressions; values are worked by hand.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.service.in_process import Deployed, deployed_service
from tests.service.query_scripts import deploy_and_feed, run, script_of, scripts_in
from tests.service.test_grouping_scripts import grouped

HERE = Path(__file__).parent
VALUES = HERE / "grouping_value_scripts"
IMPORTS = HERE / "grouping_import_scripts"


@pytest.fixture(scope="module", params=["index", "streaming"])
def things(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Deployed, str]]:
    with deployed_service(tmp_path_factory.mktemp(request.param)) as service:
        deploy_and_feed(service, VALUES, request.param)
        yield service, request.param


@pytest.fixture(scope="module")
def importing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployed]:
    with deployed_service(tmp_path_factory.mktemp("imports")) as service:
        deploy_and_feed(service, IMPORTS)
        yield service


@pytest.mark.parametrize("script", scripts_in(VALUES), ids=lambda path: path.stem)
def test_values(things: tuple[Deployed, str], script: Path) -> None:
    service, mode = things
    added = ["streaming.groupname=all"] if mode == "streaming" else []
    run(service, script_of(script, mode), lambda url, *lines: _of_things(url, *lines, *added))


@pytest.mark.parametrize("script", scripts_in(IMPORTS), ids=lambda path: path.stem)
def test_imported_values(importing: Deployed, script: Path) -> None:
    run(importing, script, _of_things)


def _of_things(url: str, statement: str, *parameters: str) -> str:
    return grouped(url, f"select * from thing where true | {statement}", *parameters)
