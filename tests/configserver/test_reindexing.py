"""Reindexing, step by step: what is run when, at what speed, what survives, what fails and goes on."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paperwasp import limits
from paperwasp.base.env import Environment
from paperwasp.base.records import replace
from paperwasp.configserver import ApplicationId, ConfigServer, ReindexedChunk
from paperwasp.configserver.reindexing import ApplicationReindexing, Run, Scheduled, Target, _decode, _encode
from paperwasp.errors import NoSpace, NotFound, Overload
from tests.configserver.deploy_fixtures import PACKAGES, Service, config_server, deploy

DEFAULT = ApplicationId()
MUSIC: Target = ("music", "music")
SECOND_NS = 10**9
PATIENCE_SECONDS = 20


class Clock:
    """A clock that a test moves on."""

    def __init__(self) -> None:
        self.now_ns = 1_763_633_000 * SECOND_NS

    def environment(self) -> Environment:
        return Environment(time_ns=lambda: self.now_ns, monotonic_ns=lambda: self.now_ns)

    def pass_seconds(self, seconds: float) -> None:
        self.now_ns += int(seconds * SECOND_NS)


class World:
    """A config server with an application, whose content clusters take a second for each chunk."""

    def __init__(self, directory: Path, chunks: int = 3) -> None:
        self.directory = directory
        self.clock = Clock()
        self.service = Service(chunks)
        self.server = self.started()

    def started(self) -> ConfigServer:
        chunk = self.service.reindex_chunk

        def slow_chunk(
            application: ApplicationId, cluster: str, document_type: str, token: bytes, documents: int
        ) -> ReindexedChunk:
            self.clock.pass_seconds(1)
            return chunk(application, cluster, document_type, token, documents)

        service = Service()
        service.activate = self.service.activate  # type: ignore[method-assign]
        service.reindex_chunk = slow_chunk  # type: ignore[method-assign]
        return config_server(self.directory, service, self.clock.environment())

    def restart(self) -> None:
        self.server = self.started()
        self.server.restore()

    def ask(self, speed: float = 1.0, *targets: Target) -> None:
        self.server.reindexing.change(DEFAULT, lambda all_, now: all_.with_ready(targets or [MUSIC], now, speed, "why"))

    def run(self, target: Target = MUSIC) -> Run:
        return self.server.reindexing.of(DEFAULT).runs[target]

    def step(self) -> float | None:
        return self.server._reindexer.step()

    @property
    def tokens(self) -> list[bytes]:
        return [token for *_, token in self.service.reindexed]


@pytest.fixture
def world(tmp_path: Path) -> World:
    world = World(tmp_path)
    deploy(world.server, "music")
    return world


def test_nothing_is_reindexed_that_nobody_asked_for(world: World) -> None:
    assert world.server.reindexing.of(DEFAULT) == ApplicationReindexing()
    assert world.step() is None
    assert world.service.reindexed == []


def test_from_pending_to_successful(world: World) -> None:
    world.ask()
    assert world.run().state == "pending" and world.run().ready_ms and not world.run().started_ms
    waits = [world.step()]
    running = world.run()
    assert (running.state, running.token) == ("running", b"1") and running.progress == pytest.approx(1 / 3)
    while (wait := waits[-1]) is not None:
        world.clock.pass_seconds(wait)
        waits.append(world.step())
    assert waits == [1.0, 1.0, None]
    done = world.run()
    assert (done.state, done.progress, done.token, done.message) == ("successful", 1.0, b"", "")
    assert done.ready_ms <= done.started_ms < done.ended_ms
    assert world.tokens == [b"", b"1", b"2"]


@pytest.mark.parametrize(("speed", "pause"), [(1.0, 1.0), (0.1, 10.0), (2.0, 0.5), (100.0, 0.01)])
def test_the_speed_is_the_share_of_the_time(world: World, speed: float, pause: float) -> None:
    world.ask(speed)
    assert world.step() == pytest.approx(pause)
    world.clock.pass_seconds(pause / 2)
    assert world.step() == pytest.approx(pause / 2)
    assert world.tokens == [b""]


def test_speed_zero_halts_and_another_goes_on_from_there(world: World) -> None:
    world.ask()
    world.step()
    world.server.reindexing.change(DEFAULT, lambda all_, _: all_.with_speed([MUSIC], 0.0))
    assert (world.run().state, world.run().token) == ("pending", b"1")
    assert world.step() is None
    world.server.reindexing.change(DEFAULT, lambda all_, _: all_.with_speed([MUSIC], 100.0))
    world.step()
    assert world.tokens == [b"", b"1"]


def test_disabled_reindexing_halts(world: World) -> None:
    world.ask()
    world.step()
    world.server.reindexing.change(DEFAULT, lambda all_, _: all_.with_enabled(False))
    assert world.run().state == "pending" and world.step() is None
    world.ask()
    assert world.step() is None
    world.server.reindexing.change(DEFAULT, lambda all_, _: all_.with_enabled(True))
    world.step()
    assert world.run().state == "running"


def test_asked_for_again_it_begins_again(world: World) -> None:
    world.ask()
    world.step()
    world.ask()
    assert (world.run().state, world.run().token, world.run().number) == ("pending", b"", 2)
    world.step()
    assert world.tokens == [b"", b""]


def test_what_a_late_chunk_tells_of_an_earlier_run_changes_nothing(world: World) -> None:
    world.ask()
    chunk = world.service.reindex_chunk

    def asked_again(*arguments: Any) -> ReindexedChunk:
        world.ask()
        return chunk(*arguments)

    world.server._reindexer._chunk = asked_again
    world.step()
    assert (world.run().number, world.run().state, world.run().token) == (2, "pending", b"")


def test_halted_in_the_middle_of_a_chunk_it_keeps_what_that_reached(world: World) -> None:
    world.ask()
    chunk = world.service.reindex_chunk

    def halted(*arguments: Any) -> ReindexedChunk:
        world.server.reindexing.change(DEFAULT, lambda all_, _: all_.with_speed([MUSIC], 0.0))
        return chunk(*arguments)

    world.server._reindexer._chunk = halted
    world.step()
    assert (world.run().state, world.run().token, world.run().speed) == ("pending", b"1", 0.0)


def test_it_goes_on_after_a_restart(world: World) -> None:
    world.ask()
    world.step()
    world.restart()
    assert world.run().state == "running"
    world.step()
    assert world.tokens == [b"", b"1"]


def test_a_failure_keeps_its_message_and_its_place_and_is_tried_again(world: World) -> None:
    world.ask()
    world.step()
    world.service.chunk_error = NoSpace("the disk is full")
    world.clock.pass_seconds(1)
    assert world.step() == limits.REINDEX_RETRY_SECONDS
    failed = world.run()
    assert (failed.state, failed.message, failed.token) == ("failed", "the disk is full", b"1")
    world.service.chunk_error = None
    world.clock.pass_seconds(100)
    world.restart()
    assert world.step() == pytest.approx(limits.REINDEX_RETRY_SECONDS - 100)
    world.clock.pass_seconds(limits.REINDEX_RETRY_SECONDS)
    world.step()
    assert (world.run().state, world.run().message, world.tokens) == ("running", "", [b"", b"1"])


def test_a_failed_one_may_be_asked_for_again_at_once(world: World) -> None:
    world.service.chunk_error = NoSpace("the disk is full")
    world.ask()
    world.step()
    assert world.run().state == "failed"
    world.service.chunk_error = None
    world.ask()
    world.step()
    assert (world.run().state, world.tokens) == ("running", [b""])


@pytest.mark.parametrize("error", [Overload("full"), NotFound("nobody serves it")])
def test_what_passes_is_waited_for(world: World, error: Exception) -> None:
    world.service.chunk_error = error
    world.ask()
    for _ in range(limits.REINDEX_TRIES - 1):
        assert world.step() == limits.REINDEX_AGAIN_SECONDS
        assert world.run().state == "running"
        world.clock.pass_seconds(limits.REINDEX_AGAIN_SECONDS)
    world.step()
    assert world.run().state == "failed"


def test_several_types_take_turns(world: World) -> None:
    deploy(world.server, "two-clusters")
    world.ask(1.0, MUSIC, ("books", "book"), ("books", "music"))
    world.step()
    assert [(cluster, name) for _, cluster, name, _ in world.service.reindexed] == [
        MUSIC,
        ("books", "book"),
        ("books", "music"),
    ]


def test_a_change_of_indexing_is_reindexed_once_it_is_active(world: World) -> None:
    world.service.error = NoSpace("the disk is full")
    server = world.server
    deployed, error = server.deployments.prepare_and_activate(PACKAGES["allowed"])
    assert error is not None and world.server.reindexing.of(DEFAULT) == ApplicationReindexing()
    world.service.error = None
    server.deployments.activate("default", deployed.session.id)
    run = world.run()
    assert (run.state, run.speed, run.number) == ("pending", 1.0, 1) and "title" in run.cause
    assert not server.reindexing.of(DEFAULT).scheduled


def test_what_waits_for_a_generation_that_never_came_is_forgotten(world: World) -> None:
    world.server.reindexing.change(DEFAULT, lambda all_, _: all_.with_scheduled({MUSIC: "why"}, 2))
    deploy(world.server, "music", ApplicationId("default", "other"))
    deploy(world.server, "music")
    assert world.server.reindexing.of(DEFAULT) == ApplicationReindexing()


def test_types_that_are_gone_are_forgotten(world: World) -> None:
    deploy(world.server, "two-clusters")
    world.ask(1.0, MUSIC, ("books", "book"))
    deploy(world.server, "music", ignore_validation_errors=True)
    assert set(world.server.reindexing.of(DEFAULT).runs) == {MUSIC}
    world.server.deployments.delete_application(DEFAULT)
    deploy(world.server, "music")
    assert world.server.reindexing.of(DEFAULT) == ApplicationReindexing()


def test_the_thread_runs_it_and_ends(tmp_path: Path) -> None:
    done = threading.Event()

    class Told(Service):
        """Says when the last chunk was asked for."""

        def reindex_chunk(self, *arguments: Any) -> ReindexedChunk:
            answer = super().reindex_chunk(*arguments)
            if answer.token is None:
                done.set()
            return answer

    server = config_server(tmp_path, Told(chunks=4), Environment())
    deploy(server, "music")
    server.start()
    server.reindexing.change(DEFAULT, lambda all_, now: all_.with_ready([MUSIC], now, 100.0, ""))
    assert done.wait(PATIENCE_SECONDS)
    server.close()
    assert server.reindexing.of(DEFAULT).runs[MUSIC].state == "successful"


def test_what_is_disabled_just_as_it_begins_does_not_begin(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.ask()
    repository = world.server.reindexing._repository
    get, reads = repository.get, iter(range(100))

    def get_then_disable(application: ApplicationId) -> ApplicationReindexing:
        found = get(application)
        if next(reads) == 1:  # the first read finds the work, the second begins it
            repository.update(application, lambda reindexing: reindexing.with_enabled(False))
        return found

    monkeypatch.setattr(repository, "get", get_then_disable)
    world.step()
    assert (world.run().state, world.service.reindexed) == ("pending", [])


def test_a_stop_between_two_steps_is_not_slept_through(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    reindexer = world.server._reindexer
    step = reindexer.step

    def stopped_then_step() -> float | None:
        reindexer._stopped = True
        reindexer._woken.set()
        return step()

    monkeypatch.setattr(reindexer, "step", stopped_then_step)
    reindexer.start()
    assert reindexer._thread is not None
    reindexer._thread.join(PATIENCE_SECONDS)
    ended = not reindexer._thread.is_alive()
    reindexer._woken.set()
    assert ended


NAMES = st.text("abc_-", min_size=1, max_size=8)
TARGETS = st.tuples(NAMES, NAMES)
RUNS = st.builds(
    Run,
    number=st.integers(1, 99),
    ready_ms=st.integers(0, 2**53),
    speed=st.floats(0, 100),
    cause=st.text(max_size=20),
    state=st.sampled_from(["pending", "running", "successful", "failed"]),
    progress=st.floats(0, 1),
    message=st.text(max_size=20),
    token=st.binary(max_size=20),
)


@settings(max_examples=50, deadline=None)
@given(
    st.booleans(),
    st.dictionaries(TARGETS, st.builds(Scheduled, st.integers(1, 9), NAMES)),
    st.dictionaries(TARGETS, RUNS),
)
def test_what_is_kept_is_read_again(enabled: bool, scheduled: dict[Target, Scheduled], runs: dict[Target, Run]) -> None:
    whole = replace(ApplicationReindexing(), enabled=enabled, scheduled=scheduled, runs=runs)
    assert _decode(orjson.loads(_encode(whole))) == whole
