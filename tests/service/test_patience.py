"""The services of tests give queries that name no timeout the longer time of `tests.patience`."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest

from tests.patience import default_timeout
from tests.service.in_process import active, deployed_service
from tests.service.music import FILES
from tests.service.running import running_service
from tests.service.test_service import deploy


def said_timeout(url: str, **parameters: str) -> str:
    """Return what a trace says of the timeout of a query. Not by `tests.web`, which names one."""
    query = {"yql": "select * from sources * where true", "tracelevel": "1", **parameters}
    return httpx.get(f"{url}/search/", params=query, timeout=60).text.partition(" timeout=")[2].partition(" ")[0]


def test_in_this_process(tmp_path: Path) -> None:
    with deployed_service(tmp_path / "data") as service:
        active(service.deploy(FILES))
        assert said_timeout(service.url) == "20000ms"
        assert said_timeout(service.url, timeout="3s") == "3000ms"
        with default_timeout():
            assert said_timeout(service.url) == "500ms"


@pytest.mark.parametrize("first", ["", "pass"])
def test_in_a_process_of_its_own(tmp_path: Path, first: str) -> None:
    """Forked or executed."""
    with running_service(tmp_path / "data", first=first) as service:
        assert deploy(service).status_code == 200
        assert said_timeout(service.url) == "20000ms"
