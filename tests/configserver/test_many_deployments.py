"""A thousand deployments in a row leave no more behind than two hundred: neither memory nor files.

By default only some hundred are done; PAPERWASP_DEPLOYMENTS says how many else.
"""

from __future__ import annotations

import gc
import os
from pathlib import Path

from paperwasp import limits
from paperwasp.configserver import ApplicationId, PrepareOptions
from paperwasp.coordination.config_store import FileConfigStore
from paperwasp.coordination.disk import Disk
from tests.configserver.deploy_fixtures import Service, config_server, package

DEPLOYMENTS = int(os.environ.get("PAPERWASP_DEPLOYMENTS", "400"))
WARM = 200
"""Deployments after which caches and kept sessions are full."""


class Forgetful(Service):
    """A service that keeps only the last activation, as a real one does."""

    def activate(self, activation: object) -> None:
        self.activations = [activation]  # type: ignore[list-item]


def test_many_deployments_in_a_row(tmp_path: Path) -> None:
    store = FileConfigStore(tmp_path, Disk(fsync=lambda descriptor: None))
    server = config_server(store, Forgetful())
    other = PrepareOptions(ApplicationId("default", "other"))
    objects: list[int] = []
    for number in range(DEPLOYMENTS):
        options = other if number % 10 == 0 else PrepareOptions(ApplicationId())
        prepared, error = server.deployments.prepare_and_activate(
            package(readme=f"deployment {number}").to_zip(), options
        )
        assert error is None and prepared.session.id == number + 1
        if number + 1 in (WARM, DEPLOYMENTS):
            gc.collect()
            objects.append(len(gc.get_objects()))
    assert objects[1] < objects[0] * 1.02
    sessions = server.sessions.ids("default")
    assert len(sessions) <= limits.SESSIONS * 1.1 + 2
    assert len(store.blobs()) == len(sessions)
    assert len(list((tmp_path / "keys").iterdir())) <= len(sessions) + 5
