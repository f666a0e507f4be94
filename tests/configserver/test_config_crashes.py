"""A process that dies right before or after any change of the config store loses nothing that was answered."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from paperwasp.configserver import ApplicationId, ConfigServer
from paperwasp.configserver.reindexing import ReindexingRepository
from paperwasp.configserver.repository import State
from paperwasp.coordination.config_store import ConfigStore
from tests.configserver.config_stores import Crash, CrashingStore, MemoryStore
from tests.configserver.deploy_fixtures import Service, config_server, deploy

DEFAULT = ApplicationId()
OTHER = ApplicationId("abroad", "other", "inst")

STEPS: list[tuple[dict[ApplicationId, int], Callable[[ConfigServer], object]]] = [
    ({}, lambda server: server.sessions.add_tenant("abroad")),
    ({DEFAULT: 1}, lambda server: deploy(server, "two-clusters")),
    ({DEFAULT: 1, OTHER: 2}, lambda server: deploy(server, "music", OTHER)),
    ({DEFAULT: 3, OTHER: 2}, lambda server: deploy(server, "music", ignore_validation_errors=True)),
    ({DEFAULT: 4, OTHER: 2}, lambda server: deploy(server, "allowed")),
    ({OTHER: 2}, lambda server: server.deployments.delete_application(DEFAULT)),
    ({OTHER: 6}, lambda server: deploy(server, "artist-added", OTHER)),
    ({}, lambda server: server.deployments.delete_application(OTHER)),
    ({}, lambda server: server.sessions.remove_tenant("abroad")),
]
"""What runs after each step, and the step."""


def work(server: ConfigServer, done: list[dict[ApplicationId, int]]) -> None:
    for running, step in STEPS:
        step(server)
        done.append(running)


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_a_crash_at_any_change(after: bool) -> None:
    for last in range(1, 200):
        store = MemoryStore()
        done: list[dict[ApplicationId, int]] = [{}]
        server = config_server(CrashingStore(store, last, after))
        try:
            work(server, done)
        except Crash:
            store.end_processes()
            check_after_crash(store, done)
        else:
            assert last > 40
            return
    pytest.fail("the steps never ended")


def check_after_crash(store: ConfigStore, done: list[dict[ApplicationId, int]]) -> None:
    """What was answered is active, or the step that was under way; and the service can be deployed to."""
    service = Service()
    server = config_server(store, service)
    server.restore()
    found = {application: activation.generation for application, activation in server.applications.running.items()}
    assert found in (done[-1], STEPS[len(done) - 1][0])
    for application, generation in found.items():
        session = server.sessions.get(application.tenant, generation)
        assert server.sessions.active_session(application) == session and session.state is State.ACTIVE
        assert server.packages.of(session).files
        check_reindexing(store, server, application)
    blobs = {server.sessions.get(t, i).blob for t in server.sessions.tenants() for i in server.sessions.ids(t)}
    assert set(store.blobs()) >= blobs
    assert deploy(server, "type-changed", ApplicationId("default", "later")) > max(found.values(), default=0)
    for application in found:
        server.deployments.delete_application(application)
        assert service.activations[-1].is_deletion
    server.restore()
    assert len(server.applications.running) == 1


def check_reindexing(store: ConfigStore, server: ConfigServer, application: ApplicationId) -> None:
    """A change that needs reindexing has it ready once it is active, and not before."""
    reindexing = ReindexingRepository(store).get(application)
    assert not reindexing.scheduled
    changed = server.applications.running[application].generation == 4
    assert set(reindexing.runs) == ({("music", "music")} if changed else set())
