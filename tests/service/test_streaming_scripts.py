"""Golden scripts of what there is in streaming search only."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.service.in_process import Deployed, deployed_service
from tests.service.query_scripts import deploy_and_feed, in_short, run
from tests.service.test_grouping_scripts import grouped

SCRIPTS = Path(__file__).parent / "streaming_scripts"


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployed]:
    with deployed_service(tmp_path_factory.mktemp("streaming")) as service:
        deploy_and_feed(service, SCRIPTS, "streaming")
        yield service


@pytest.mark.parametrize("script", sorted(SCRIPTS.glob("*.txt")), ids=lambda path: path.stem)
def test_script(service: Deployed, script: Path) -> None:
    run(service, script, _asked)


def _asked(url: str, statement: str, *parameters: str) -> str:
    """The answer to the rest of a query's YQL, or to a statement of grouping."""
    if statement.startswith("all("):
        return grouped(url, f"select * from music where true | {statement}", *parameters, "streaming.groupname=a")
    return in_short(url, statement, *parameters, "streaming.groupname=a")


@pytest.mark.parametrize("match", ["substring", "prefix", "suffix"])
def test_a_group_without_documents_has_no_words(service: Deployed, match: str) -> None:
    where = f'where line contains ({{{match}: true}}"old")'
    assert in_short(f"{service.url}/search/", where, "streaming.groupname=nobody") == "200 0:"
