"""One service for all tests of the specification, with two applications."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import httpx
import pytest

from tests import web
from tests.conformance.application import ALBUMS, COPIES, FILES
from tests.service.in_process import Deployed, active, deployed_service

COPIES_NAME = "default.copies.default"


@dataclass(frozen=True)
class Served:
    """The running service, as clients see it: by its addresses alone."""

    service: Deployed
    url: str
    """Of the container of the application `default.default.default`."""
    copies_url: str
    """Of the container of the application with two content clusters."""

    @property
    def config_url(self) -> str:
        return self.service.config_url

    def document(self, method: str, path: str, body: object = None, **parameters: Any) -> httpx.Response:
        """Send a request to /document/v1/ of the first application."""
        return web.request(method, f"{self.url}/document/v1/{path}", json=body, params=parameters)

    def copies(self, method: str, path: str, body: object = None, **parameters: Any) -> httpx.Response:
        """Send a request to /document/v1/ of the application with two content clusters."""
        return web.request(method, f"{self.copies_url}/document/v1/{path}", json=body, params=parameters)

    def search(self, yql: str = "select * from music where true", **parameters: Any) -> httpx.Response:
        """Query with GET, with plenty of time where the test says nothing of it."""
        return web.get(f"{self.url}/search/", params={"yql": yql, "timeout": "20s", **parameters})

    def root(self, yql: str = "select * from music where true", **parameters: Any) -> dict[str, Any]:
        """Return the root of the answer to a query that must have succeeded."""
        answer = self.search(yql, **parameters)
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()["root"]
        assert "errors" not in found, answer.text
        return found

    def ids(self, yql: str = "select * from music where true", **parameters: Any) -> list[str]:
        """Return the user-specified parts of the hits' document ids, in their order."""
        return [hit["id"].rpartition(":")[2] for hit in self.root(yql, **parameters).get("children", ())]


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with deployed_service(tmp_path_factory.mktemp("conformance")) as service:
        active(service.deploy(FILES))
        active(service.deploy(COPIES, COPIES_NAME))
        found = Served(service, service.container_url(), service.container_url(name=COPIES_NAME))
        for number, fields in ALBUMS.items():
            put = found.document("POST", f"albums/music/docid/{number}", {"fields": fields})
            assert put.status_code == 200, put.text
        yield found
