"""The config server without HTTP: restarts, crashes at every step, failing activations, deployments at once."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from deploy_fixtures import PACKAGES, Service, build, config_server
from hypothesis import given, settings
from hypothesis import strategies as st

from paperwasp import limits
from paperwasp.cluster.config_store import ConfigStore, Entry, FileConfigStore
from paperwasp.configserver import EMPTY_MODEL, ApplicationId, ConfigServer
from paperwasp.configserver.sessions import TRANSITIONS, Event, State
from paperwasp.errors import Conflict, InternalError, InvalidPackage, NoSpace, NotFound, PaperwaspError


class Crash(BaseException):
    """The process was killed."""


class CrashingStore:
    """A config store whose process dies at change number `last`: right before it, or right after it."""

    def __init__(self, store: ConfigStore, last: int, after: bool) -> None:
        self._store = store
        self._last = last
        self._after = after
        self._changes = 0
        self.get, self.keys = store.get, store.keys
        self.watch, self.get_blob, self.blobs = store.watch, store.get_blob, store.blobs

    def _step(self, change: Callable[[], object]) -> None:
        self._changes += 1
        if self._changes == self._last:
            if self._after:
                change()
            raise Crash

    def create(self, key: str, value: bytes) -> int:
        self._step(lambda: self._store.create(key, value))
        return self._store.create(key, value)

    def compare_and_set(self, key: str, value: bytes, expected_revision: int) -> int:
        self._step(lambda: self._store.compare_and_set(key, value, expected_revision))
        return self._store.compare_and_set(key, value, expected_revision)

    def delete(self, key: str) -> None:
        self._step(lambda: self._store.delete(key))
        self._store.delete(key)

    def put_blob(self, content: bytes) -> str:
        self._step(lambda: self._store.put_blob(content))
        return self._store.put_blob(content)

    def delete_blob(self, name: str) -> None:
        self._step(lambda: self._store.delete_blob(name))
        self._store.delete_blob(name)


def deploy(server: ConfigServer, name: str) -> int:
    prepared, error = server.prepare_and_activate(PACKAGES[name])
    assert error is None
    return prepared.session.id


def test_nothing_is_restored_where_nothing_was_deployed(tmp_path: Path) -> None:
    server = config_server(tmp_path)
    assert server.restore() is None
    assert server.running is None
    assert (server.current_generation, server.wanted_generation) == (0, 0)


def test_the_active_application_comes_back_after_a_restart(tmp_path: Path) -> None:
    first = config_server(tmp_path)
    deploy(first, "music")
    generation = deploy(first, "artist-added")
    service = Service()
    server = config_server(tmp_path, service)
    restored = server.restore()
    assert restored is not None and restored.generation == generation
    assert "artist" in restored.model.schemas["music"].fields
    assert service.activations == [restored]
    assert deploy(server, "artist-added") > generation


def test_a_session_can_be_finished_after_a_restart(tmp_path: Path) -> None:
    first = config_server(tmp_path)
    session = first.create(PACKAGES["music"])
    first.prepare(session.id)
    server = config_server(tmp_path)
    server.restore()
    assert server.activate(session.id).state is State.ACTIVE
    assert server.current_generation == session.id


def deploy_delete_deploy(server: ConfigServer, done: list[int]) -> None:
    """A script of deployments; says in `done` which generations were answered for."""
    done.append(deploy(server, "music"))
    done.append(deploy(server, "artist-added"))
    server.delete_application(ApplicationId())
    done.append(done[-1] + 1)
    done.append(deploy(server, "type-changed"))


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_a_crash_at_any_change_loses_nothing_that_was_answered(tmp_path: Path, after: bool) -> None:
    for last in range(1, 100):
        directory = tmp_path / str(last)
        done: list[int] = [0]
        server = config_server(CrashingStore(FileConfigStore(directory), last, after))
        try:
            deploy_delete_deploy(server, done)
        except Crash:
            check_after_crash(directory, done[-1])
        else:
            assert last > 20
            return
    pytest.fail("the script never ended")


def check_after_crash(directory: Path, answered: int) -> None:
    """What was answered is active, or the step that was under way; and the service can be deployed to."""
    service = Service()
    server = config_server(directory, service)
    server.restore()
    assert answered <= server.current_generation <= answered + 1
    running = server.running
    if running is not None:
        assert server.active_session(running.application).state is State.ACTIVE
        assert server.session(running.generation).state is State.ACTIVE
        assert server.package(server.session(running.generation)).files
        server.delete_application(ApplicationId())
        assert service.activations[-1].removed_clusters == ("music",)
    generation = deploy(server, "type-changed")
    assert generation > answered
    assert server.current_generation == generation


def test_no_package_is_left_behind(tmp_path: Path) -> None:
    store = FileConfigStore(tmp_path)
    store.put_blob(b"of a deployment that crashed before it had a session")
    server = config_server(store)
    server.restore()
    assert store.blobs() == ()
    deploy(server, "music")
    server.delete_application(ApplicationId())
    assert store.blobs() == ()


def test_a_failing_activation_leaves_the_old_application(tmp_path: Path) -> None:
    service = Service()
    server = config_server(tmp_path, service)
    generation = deploy(server, "music")
    service.error = NoSpace("the disk is full")
    prepared, error = server.prepare_and_activate(PACKAGES["artist-added"])
    assert error is service.error
    assert server.session(prepared.session.id).state is State.PREPARED
    assert server.session(generation).state is State.ACTIVE
    assert (server.current_generation, server.wanted_generation) == (generation, generation)
    restarted = config_server(tmp_path)
    restored = restarted.restore()
    assert restored is not None and restored.generation == generation
    service.error = None
    assert server.activate(prepared.session.id).state is State.ACTIVE


def test_the_first_activation_may_fail(tmp_path: Path) -> None:
    service = Service()
    server = config_server(tmp_path, service)
    service.error = ValueError("a defect")
    _, error = server.prepare_and_activate(PACKAGES["music"])
    assert isinstance(error, InternalError) and "a defect" in error.message
    assert server.running is None
    assert config_server(tmp_path).restore() is None
    service.error = None
    deploy(server, "music")


def test_an_application_that_cannot_be_restored_stops_the_start(tmp_path: Path) -> None:
    deploy(config_server(tmp_path), "music")
    service = Service()
    service.error = NoSpace("the disk is full")
    with pytest.raises(NoSpace):
        config_server(tmp_path, service).restore()


def test_a_deletion_is_delivered_again_after_a_restart(tmp_path: Path) -> None:
    first = config_server(tmp_path)
    deploy(first, "music")
    first.delete_application(ApplicationId())
    service = Service()
    server = config_server(tmp_path, service)
    assert server.restore() is None
    (activation,) = service.activations
    assert activation.model is EMPTY_MODEL
    assert activation.removed_clusters == ("music",)
    with pytest.raises(NotFound):
        server.active_session(ApplicationId())


def test_deployments_at_once_are_done_one_after_the_other(tmp_path: Path) -> None:
    server = config_server(tmp_path)
    generations: list[int] = []
    threads = [threading.Thread(target=lambda: generations.append(deploy(server, "music"))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(generations) == list(range(1, 9))
    assert server.current_generation == 8


def test_of_two_sessions_only_one_wins(tmp_path: Path) -> None:
    server = config_server(tmp_path)
    sessions = [server.create(PACKAGES["music"]).id for _ in range(4)]
    for session in sessions:
        server.prepare(session)
    won: list[int] = []

    def activate(session: int) -> None:
        try:
            won.append(server.activate(session).id)
        except Conflict:
            return

    threads = [threading.Thread(target=activate, args=(session,)) for session in sessions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(won) == 1
    assert server.current_generation == won[0]


def test_old_sessions_make_room_but_the_active_one_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "SESSIONS", 3)
    store = FileConfigStore(tmp_path)
    server = config_server(store)
    active = deploy(server, "music")
    later = [server.create(PACKAGES[name]).id for name in ("readme", "noted", "artist-added", "type-changed")]
    assert server.session(active).state is State.ACTIVE
    assert len(store.keys("sessions/")) <= 4
    assert server.session(later[-1]).state is State.CREATED
    with pytest.raises(NotFound):
        server.session(later[0])
    assert len(store.blobs()) <= 4


def test_the_table_of_states_has_no_way_into_active_but_from_prepared() -> None:
    assert [step for step, state in TRANSITIONS.items() if state is State.ACTIVE] == [(State.PREPARED, Event.ACTIVATE)]
    assert not any(state is State.DELETED for state, _ in TRANSITIONS)


def test_a_refused_package_changes_nothing(tmp_path: Path) -> None:
    service = Service()
    server = config_server(tmp_path, service)
    generation = deploy(server, "music")
    for name in ("type-changed", "title-removed", "broken-xml", "no-services", "garbage"):
        with pytest.raises(PaperwaspError):
            server.prepare_and_activate(PACKAGES[name])
    assert server.current_generation == generation
    assert len(service.activations) == 1


def test_what_was_allowed_when_prepared_is_checked_again_when_activated(tmp_path: Path) -> None:
    server = config_server(tmp_path)
    session = server.create(PACKAGES["type-changed"])
    server.prepare(session.id)
    other = server.create(PACKAGES["music"])
    server.prepare(other.id)
    server.activate(other.id)
    late = server.create(PACKAGES["type-changed"])
    with pytest.raises(InvalidPackage):
        server.prepare(late.id)
    with pytest.raises(Conflict):
        server.activate(session.id, force=True)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(st.sampled_from("cpad"), st.integers(1, 6)), max_size=25))
def test_any_order_of_calls_keeps_at_most_one_session_active(calls: list[tuple[str, int]]) -> None:
    store = MemoryStore()
    server = ConfigServer(store, build, Service().activate)
    generations = [0]
    for call, number in calls:
        try:
            run_call(server, call, number)
        except PaperwaspError:
            assert server.current_generation == generations[-1]
        assert server.current_generation >= generations[-1]
        generations.append(server.current_generation)
        states = [server.session(int(key.removeprefix("sessions/"))).state for key in store.keys("sessions/")]
        assert states.count(State.ACTIVE) == (1 if server.running else 0)


def run_call(server: ConfigServer, call: str, number: int) -> None:
    if call == "c":
        server.create(PACKAGES[("music", "artist-added", "type-changed")[number % 3]])
    elif call == "p":
        server.prepare(number)
    elif call == "a":
        server.activate(number, force=number % 2 == 0)
    else:
        server.delete_application(ApplicationId())


class MemoryStore:
    """A config store without a disk."""

    def __init__(self) -> None:
        self._entries: dict[str, Entry] = {}
        self._blobs: dict[str, bytes] = {}
        self._revision = 0

    def get(self, key: str) -> Entry | None:
        return self._entries.get(key)

    def create(self, key: str, value: bytes) -> int:
        if key in self._entries:
            raise Conflict(key)
        return self._set(key, value)

    def compare_and_set(self, key: str, value: bytes, expected_revision: int) -> int:
        if key not in self._entries or self._entries[key].revision != expected_revision:
            raise Conflict(key)
        return self._set(key, value)

    def _set(self, key: str, value: bytes) -> int:
        self._revision += 1
        self._entries[key] = Entry(value, self._revision)
        return self._revision

    def delete(self, key: str) -> None:
        self._entries.pop(key, None)

    def keys(self, prefix: str = "") -> tuple[str, ...]:
        return tuple(sorted(key for key in self._entries if key.startswith(prefix)))

    def watch(self, prefix: str, watcher: object) -> Callable[[], None]:
        return lambda: None

    def put_blob(self, content: bytes) -> str:
        self._blobs[str(hash(content))] = content
        return str(hash(content))

    def get_blob(self, name: str) -> bytes | None:
        return self._blobs.get(name)

    def delete_blob(self, name: str) -> None:
        self._blobs.pop(name, None)

    def blobs(self) -> tuple[str, ...]:
        return tuple(sorted(self._blobs))
