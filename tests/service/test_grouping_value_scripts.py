"""Golden scripts of what grouping computes of documents: one for each family of expressions.

In `grouping_value_scripts/` are the scripts, an application with attributes of every type, and its documents, the last
of which has none. They are of the form of `test_grouping_scripts.py`. Authority:
https://docs.vespa.ai/en/reference/querying/grouping-language.html#expressions; values are worked by hand.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.service.in_process import Deployed, deployed_service
from tests.service.query_scripts import deploy_and_feed, run, scripts_in
from tests.service.test_grouping_scripts import grouped

VALUES = Path(__file__).parent / "grouping_value_scripts"


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployed]:
    with deployed_service(tmp_path_factory.mktemp("values")) as service:
        deploy_and_feed(service, VALUES)
        yield service


@pytest.mark.parametrize("script", scripts_in(VALUES), ids=lambda path: path.stem)
def test_script(service: Deployed, script: Path) -> None:
    run(service, script, _of_things)


def _of_things(url: str, statement: str, *parameters: str) -> str:
    return grouped(url, f"select * from thing where true | {statement}", *parameters)
