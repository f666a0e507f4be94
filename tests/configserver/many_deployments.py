"""A process of its own that deploys many times in a row, and checks what it leaves behind.

Nothing else runs in it: threads that other tests have left, with deployments that go on, would be counted as well.
Arguments: an empty folder, and the number of deployments.
"""

from __future__ import annotations

import gc
import sys
from pathlib import Path

from paperwasp import limits
from paperwasp.configserver import ApplicationId, ConfigServer, PrepareOptions
from paperwasp.coordination.config_store import FileConfigStore
from paperwasp.coordination.disk import Disk
from tests.configserver.deploy_fixtures import CLOCK, Service, build, follow, package

WARM = 200
"""Deployments after which caches and kept sessions are full."""


class Forgetful(Service):
    """A service that keeps only the last activation, as a real one does."""

    def activate(self, activation: object) -> None:
        self.activations = [activation]  # type: ignore[list-item]


def deploy_many(folder: Path, deployments: int) -> None:
    gc.freeze()  # what is loaded is not counted
    store = FileConfigStore(folder, Disk(fsync=lambda descriptor: None))
    server = ConfigServer(store, build, environment=CLOCK)
    follower = follow(server, Forgetful())
    follower._threads.size = 1  # a second one may be made, or not
    other = PrepareOptions(ApplicationId("default", "other"))
    objects: list[int] = []
    for number in range(deployments):
        options = other if number % 10 == 0 else PrepareOptions(ApplicationId())
        prepared, error = server.deployments.prepare_and_activate(
            package(readme=f"deployment {number}").to_zip(), options
        )
        assert error is None and prepared.session.id == number + 1
        if number + 1 in (WARM, deployments):
            follower._threads.submit(lambda: None).result()  # behind the last look at what was withdrawn
            gc.collect()
            objects.append(len(gc.get_objects()))
    assert objects[1] < objects[0] * 1.02, objects
    sessions = server.sessions.ids("default")
    assert len(sessions) <= limits.SESSIONS * 1.1 + 2
    assert len(store.blobs()) == len(sessions)
    assert len(list((folder / "keys").iterdir())) <= len(sessions) + 5


if __name__ == "__main__":
    deploy_many(Path(sys.argv[1]), int(sys.argv[2]))
