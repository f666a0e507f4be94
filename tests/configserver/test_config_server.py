"""The config server without HTTP: restarts, failing activations, several applications, deployments at once."""

from __future__ import annotations

import os
import random
import threading
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paperwasp import limits
from paperwasp.application.model import empty_model
from paperwasp.configserver import Activation, ApplicationId, ConfigServer, PrepareOptions
from paperwasp.configserver.repository import TRANSITIONS, Event, State
from paperwasp.coordination.config_store import FileConfigStore
from paperwasp.coordination.disk import Disk
from paperwasp.errors import (
    Conflict,
    Corruption,
    InternalError,
    InvalidInput,
    InvalidPackage,
    NoSpace,
    NotFound,
    PaperwaspError,
)
from tests.chance import SEED
from tests.configserver.config_stores import MemoryStore
from tests.configserver.deploy_fixtures import PACKAGES, Service, build, config_server, deploy, follow

DEFAULT = ApplicationId()
OTHER = ApplicationId("default", "other", "inst")
ABROAD = ApplicationId("abroad")


def test_nothing_is_restored_where_nothing_was_deployed(tmp_path: Path) -> None:
    server = config_server(tmp_path)
    server.restore()
    assert not server.applications.running
    assert (server.applications.current_generation(DEFAULT), server.applications.wanted_generation(DEFAULT)) == (0, 0)


def test_all_applications_come_back_after_a_restart(tmp_path: Path) -> None:
    first = config_server(tmp_path)
    first.sessions.add_tenant("abroad")
    deploy(first, "music")
    deploy(first, "music", ABROAD)
    generation = deploy(first, "artist-added")
    deploy(first, "readme", OTHER)
    service = Service()
    server = config_server(tmp_path, service)
    server.restore()
    assert [(a.generation, a.application) for a in service.activations] == [(2, ABROAD), (3, DEFAULT), (4, OTHER)]
    assert server.applications.current_generation(DEFAULT) == generation
    assert "artist" in server.applications.running[DEFAULT].model.schemas["music"].fields
    assert server.sessions.tenants() == ["default", "abroad"]
    assert deploy(server, "artist-added") == 5
    assert server.applications.current_generation(OTHER) == 4


def test_a_session_can_be_finished_after_a_restart(tmp_path: Path) -> None:
    first = config_server(tmp_path)
    session = first.deployments.create(PACKAGES["music"])
    first.deployments.prepare("default", session.id)
    server = config_server(tmp_path)
    server.restore()
    assert server.deployments.activate("default", session.id)[0].state is State.ACTIVE
    assert server.applications.current_generation(DEFAULT) == session.id


def test_no_package_is_left_behind(tmp_path: Path) -> None:
    store = FileConfigStore(tmp_path)
    store.put_blob(b"of a deployment that crashed before it had a session")
    server = config_server(store)
    server.restore()
    assert store.blobs() == ()
    deploy(server, "music")
    server.deployments.delete_application(DEFAULT)
    assert store.blobs() == ()
    assert store.keys() == ("generation-counter",)


def test_deleting_an_application_leaves_the_others(tmp_path: Path) -> None:
    service = Service()
    server = config_server(tmp_path, service)
    deploy(server, "music")
    deploy(server, "music", OTHER)
    server.deployments.delete_application(DEFAULT)
    last = service.activations[-1]
    assert (last.application, last.model, last.generation) == (DEFAULT, empty_model(), 3)
    assert last.is_deletion
    assert list(server.applications.running) == [OTHER]
    assert server.sessions.active_session(OTHER).state is State.ACTIVE
    with pytest.raises(NotFound):
        server.sessions.active_session(DEFAULT)
    with pytest.raises(NotFound, match=r"default\.default\.default: Not found"):
        server.deployments.delete_application(DEFAULT)


def test_a_cluster_is_removed_only_where_that_is_allowed(tmp_path: Path) -> None:
    server = config_server(tmp_path)
    deploy(server, "two-clusters")
    with pytest.raises(InvalidPackage, match="content-cluster-removal"):
        deploy(server, "music")
    deploy(server, "music", ignore_validation_errors=True)
    assert [cluster.id for cluster in server.applications.running[DEFAULT].model.content_clusters] == ["music"]


def test_of_those_that_add_a_tenant_at_once_one_does(tmp_path: Path) -> None:
    server = config_server(tmp_path)
    start = threading.Barrier(8)
    refused: list[InvalidInput] = []

    def add() -> None:
        start.wait()
        try:
            server.sessions.add_tenant("abroad")
        except InvalidInput as error:
            refused.append(error)

    threads = [threading.Thread(target=add) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(refused), server.sessions.tenants()) == (7, ["default", "abroad"])


def test_tenants(tmp_path: Path) -> None:
    server = config_server(tmp_path)
    server.sessions.add_tenant("abroad")
    for wrong in ("abroad", "default", "a b", "", "a/b", "ä", ".", "x" * 61):
        with pytest.raises(InvalidInput):
            server.sessions.add_tenant(wrong)
    session = server.deployments.create(PACKAGES["music"], ABROAD)
    with pytest.raises(NotFound):
        server.sessions.get("default", session.id)
    deploy(server, "music", ABROAD)
    with pytest.raises(InvalidInput, match=r"active applications: \[abroad\.default\.default\]"):
        server.sessions.remove_tenant("abroad")
    server.deployments.delete_application(ABROAD)
    server.sessions.remove_tenant("abroad")
    with pytest.raises(NotFound):
        server.deployments.create(PACKAGES["music"], ABROAD)
    with pytest.raises(InvalidInput, match="not allowed"):
        server.sessions.remove_tenant("default")
    server.sessions.add_tenant("abroad")
    with pytest.raises(NotFound):
        server.sessions.get("abroad", session.id)


def test_there_are_not_ever_more_tenants(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "TENANTS", 2)
    server = config_server(tmp_path)
    server.sessions.add_tenant("one")
    with pytest.raises(InvalidInput, match="2 tenants"):
        server.sessions.add_tenant("two")


def test_a_failing_activation_leaves_the_old_application(tmp_path: Path) -> None:
    service = Service()
    server = config_server(tmp_path, service)
    generation = deploy(server, "music")
    service.error = NoSpace("the disk is full")
    prepared, error = server.deployments.prepare_and_activate(PACKAGES["artist-added"])
    assert isinstance(error, NoSpace)
    assert server.sessions.get("default", prepared.session.id).state is State.PREPARED
    assert server.sessions.get("default", generation).state is State.ACTIVE
    assert (server.applications.current_generation(DEFAULT), server.applications.wanted_generation(DEFAULT)) == (
        generation,
        generation,
    )
    restarted = config_server(tmp_path)
    restarted.restore()
    assert restarted.applications.current_generation(DEFAULT) == generation
    service.error = None
    assert server.deployments.activate("default", prepared.session.id)[0].state is State.ACTIVE


def test_the_first_activation_may_fail(tmp_path: Path) -> None:
    service = Service()
    server = config_server(tmp_path, service)
    service.error = ValueError("a defect")
    _, error = server.deployments.prepare_and_activate(PACKAGES["music"])
    assert isinstance(error, InternalError) and "a defect" in error.message
    assert not server.applications.running
    restarted = config_server(tmp_path)
    restarted.restore()
    assert not restarted.applications.running
    service.error = None
    deploy(server, "music")


def test_a_choice_that_cannot_be_written_is_not_made(tmp_path: Path) -> None:
    full = False

    def write(descriptor: int, content: memoryview) -> int:
        if full:
            raise OSError(28, "No space left on device")
        return os.write(descriptor, content)

    class Filling(Service):
        def activate(self, activation: Activation) -> None:
            nonlocal full
            full = activation.generation == 2
            super().activate(activation)

    service = Filling()
    server = config_server(FileConfigStore(tmp_path, Disk(write=write)), service)
    deploy(server, "music")
    with pytest.raises(OSError, match="No space left"):
        server.deployments.prepare_and_activate(PACKAGES["artist-added"])
    assert (server.applications.current_generation(DEFAULT), server.applications.wanted_generation(DEFAULT)) == (1, 1)
    full = False
    restarted = config_server(tmp_path)
    restarted.restore()
    assert restarted.applications.current_generation(DEFAULT) == 1
    assert deploy(server, "music") == 3
    assert [each.generation for each in service.activations] == [1, 3]


def test_a_deletion_may_fail(tmp_path: Path) -> None:
    service = Service()
    server = config_server(tmp_path, service)
    deploy(server, "music")
    service.error = NoSpace("the disk is full")
    with pytest.raises(NoSpace):
        server.deployments.delete_application(DEFAULT)
    assert server.sessions.active_session(DEFAULT).id == server.applications.wanted_generation(DEFAULT) == 1
    service.error = None
    server.deployments.delete_application(DEFAULT)


@pytest.mark.parametrize("error", [NoSpace("the disk is full"), Corruption("a file is damaged"), OSError("broken")])
def test_what_is_wrong_with_the_data_stops_the_start(tmp_path: Path, error: Exception) -> None:
    deploy(config_server(tmp_path), "music")
    service = Service()
    service.error = error
    with pytest.raises(type(error)):
        config_server(tmp_path, service).restore()


def test_deployments_at_once_are_done_one_after_the_other(tmp_path: Path) -> None:
    server = config_server(tmp_path)
    generations: list[int] = []
    threads = [threading.Thread(target=lambda: generations.append(deploy(server, "music"))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(generations) == list(range(1, 9))
    assert server.applications.current_generation(DEFAULT) == 8


def test_of_two_sessions_only_one_wins(tmp_path: Path) -> None:
    server = config_server(tmp_path)
    sessions = [server.deployments.create(PACKAGES["music"]).id for _ in range(4)]
    for session in sessions:
        server.deployments.prepare("default", session)
    won: list[int] = []

    def activate(session: int) -> None:
        try:
            won.append(server.deployments.activate("default", session)[0].id)
        except Conflict:
            return

    threads = [threading.Thread(target=activate, args=(session,)) for session in sessions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(won) == 1
    assert server.applications.current_generation(DEFAULT) == won[0]


def test_old_sessions_make_room_but_active_ones_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "SESSIONS", 3)
    store = FileConfigStore(tmp_path)
    server = config_server(store)
    active = [deploy(server, "music"), deploy(server, "music", OTHER)]
    later = [
        server.deployments.create(PACKAGES[name]).id for name in ("readme", "noted", "artist-added", "type-changed")
    ]
    assert [server.sessions.get("default", number).state for number in active] == [State.ACTIVE, State.ACTIVE]
    assert server.sessions.ids("default") == [*active, *later[1:]]
    assert server.sessions.get("default", later[-1]).state is State.CREATED
    with pytest.raises(NotFound):
        server.sessions.get("default", later[0])
    assert len(store.blobs()) == 4


def test_the_table_of_states_has_no_way_into_active_but_from_prepared() -> None:
    assert [step for step, state in TRANSITIONS.items() if state is State.ACTIVE] == [(State.PREPARED, Event.ACTIVATE)]
    assert not any(state is State.DELETED for state, _ in TRANSITIONS)


def test_a_refused_package_changes_nothing(tmp_path: Path) -> None:
    service = Service()
    server = config_server(tmp_path, service)
    generation = deploy(server, "music")
    for name in ("type-changed", "broken-xml", "no-services", "garbage"):
        with pytest.raises(PaperwaspError):
            server.deployments.prepare_and_activate(PACKAGES[name])
    assert server.applications.current_generation(DEFAULT) == generation
    assert len(service.activations) == 1


def test_what_was_allowed_when_prepared_is_checked_again_when_activated(tmp_path: Path) -> None:
    server = config_server(tmp_path)
    session = server.deployments.create(PACKAGES["type-changed"])
    server.deployments.prepare("default", session.id)
    deploy(server, "music", OTHER)
    ignoring = server.deployments.create(PACKAGES["type-changed"])
    server.deployments.prepare("default", ignoring.id, PrepareOptions(ignore_validation_errors=True))
    late = server.deployments.create(PACKAGES["type-changed"])
    server.deployments.prepare("default", late.id)
    first = server.deployments.create(PACKAGES["music"])
    server.deployments.prepare("default", first.id)
    server.deployments.activate("default", first.id)
    with pytest.raises(Conflict, match="older than"):
        server.deployments.activate("default", session.id, force=True)


def test_what_a_preparation_ignored_its_activation_ignores(tmp_path: Path) -> None:
    server = config_server(tmp_path)
    deploy(server, "music")
    session = server.deployments.create(PACKAGES["type-changed"])
    with pytest.raises(InvalidPackage, match="indexing-change"):
        server.deployments.prepare("default", session.id)
    prepared = server.deployments.prepare("default", session.id, PrepareOptions(ignore_validation_errors=True))
    assert "reindex" in {action.kind for action in prepared.changes.actions}
    server.deployments.activate("default", session.id)
    assert server.applications.current_generation(DEFAULT) == session.id


def test_a_session_goes_to_the_application_that_its_preparation_names(tmp_path: Path) -> None:
    server = config_server(tmp_path)
    deploy(server, "music")
    session = server.deployments.create(PACKAGES["music"])
    server.deployments.prepare("default", session.id, PrepareOptions(OTHER))
    server.deployments.activate("default", session.id)
    assert (server.applications.current_generation(DEFAULT), server.applications.current_generation(OTHER)) == (1, 2)


def test_a_model_is_built_once_for_the_same_package(tmp_path: Path) -> None:
    built: list[str] = []

    def counting(package: object, application: ApplicationId) -> object:
        built.append(str(application))
        return build(package, application)  # type: ignore[arg-type]

    server = ConfigServer(FileConfigStore(tmp_path), counting)  # type: ignore[arg-type]
    follow(server, Service())
    for application in (DEFAULT, DEFAULT, OTHER, DEFAULT):
        deploy(server, "music", application)
    assert built == [str(DEFAULT), str(OTHER)]


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(st.sampled_from("cpadt"), st.integers(1, 6)), max_size=25))
def test_any_order_of_calls_keeps_at_most_one_session_of_an_application_active(calls: list[tuple[str, int]]) -> None:
    store = MemoryStore()
    server = config_server(store)
    server.sessions.add_tenant("abroad")
    generations = [0]
    for call, number in calls:
        try:
            run_call(server, call, number)
        except PaperwaspError:
            assert highest(server) == generations[-1]
        generations.append(highest(server))
        states = [server.sessions.get("default", session).state for session in server.sessions.ids("default")]
        running = [application for application in server.applications.running if application.tenant == "default"]
        assert states.count(State.ACTIVE) == len(running)
        assert [active.application for active in server.sessions.all_active()] == sorted(
            server.applications.running, key=lambda application: server.applications.current_generation(application)
        )
        restarted = config_server(store)
        restarted.restore()
        assert dict(restarted.applications.running).keys() == dict(server.applications.running).keys()


def highest(server: ConfigServer) -> int:
    return max((activation.generation for activation in server.applications.running.values()), default=0)


def run_call(server: ConfigServer, call: str, number: int) -> None:
    application = OTHER if number % 2 else DEFAULT
    if call == "c":
        server.deployments.create(PACKAGES[("music", "artist-added", "type-changed")[number % 3]])
    elif call == "p":
        server.deployments.prepare("default", number, PrepareOptions(application if number % 3 else None))
    elif call == "a":
        server.deployments.activate("default", number, force=number % 2 == 0)
    elif call == "t":
        deploy(server, "music", ABROAD)
    else:
        server.deployments.delete_application(application)


def test_many_at_once_leave_whole_applications(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Few sessions are kept, so that sweeping meets the making of sessions all the time."""
    monkeypatch.setattr(limits, "SESSIONS", 9)
    store = FileConfigStore(tmp_path, Disk(fsync=lambda descriptor: None))
    server = config_server(store)
    server.sessions.add_tenant("abroad")
    seed = SEED
    defects: list[BaseException] = []

    def work(number: int) -> None:
        chance = random.Random(seed + number)
        for _ in range(25):
            application = chance.choice([DEFAULT, OTHER, ABROAD])
            try:
                if chance.random() < 0.2:
                    server.deployments.delete_application(application)
                elif chance.random() < 0.3:
                    session = server.deployments.create(PACKAGES["readme"], application)
                    server.deployments.prepare(application.tenant, session.id)
                    server.deployments.activate(application.tenant, session.id, force=True)
                else:
                    deploy(server, chance.choice(["music", "artist-added"]), application)
            except (Conflict, NotFound, InvalidInput):
                continue
            except BaseException as error:
                defects.append(error)
                raise

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not defects, f"seed {seed}"
    for application, activation in server.applications.running.items():
        session = server.sessions.active_session(application)
        assert session.id == activation.generation == server.applications.wanted_generation(application), f"seed {seed}"
        assert server.sessions.package(session), f"seed {seed}"
    restarted = config_server(store)
    restarted.restore()
    assert {name: a.generation for name, a in restarted.applications.running.items()} == {
        name: a.generation for name, a in server.applications.running.items()
    }, f"seed {seed}"
