"""Processes that follow a config store which tells late, twice or not at all, and refuses changes by conflicts."""

from __future__ import annotations

import itertools
import os
import random
import threading
from collections import defaultdict, deque
from pathlib import Path

import pytest

from paperwasp import limits
from paperwasp.application.model import ApplicationModel
from paperwasp.base.env import SYSTEM, Environment
from paperwasp.base.threads import ThreadPool
from paperwasp.configserver import Activation, ApplicationId, ConfigServer, PrepareOptions
from paperwasp.configserver.convergence import Convergence, Proposal, Report
from paperwasp.configserver.deadline import Deadline
from paperwasp.configserver.preparation import Models, Packages
from paperwasp.configserver.reindexing import ReindexingRepository
from paperwasp.configserver.repository import Active, SessionRepository, State
from paperwasp.coordination.config_store import Entry, FileConfigStore
from paperwasp.coordination.disk import Disk
from paperwasp.errors import Conflict, DeployTimeout, LockFailure, NoSpace, PaperwaspError
from paperwasp.http.listening import PortTaken
from paperwasp.server.roles.applications import StagedGeneration
from paperwasp.server.roles.config_follower import ConfigFollower
from paperwasp.server.roles.containers import StagedContainers
from tests.base.test_threads import refuse_threads
from tests.chance import SEED
from tests.configserver.deploy_fixtures import CLOCK, PACKAGES, Service, build, config_server, deploy, follow

DEFAULT = ApplicationId()
OTHER = ApplicationId("default", "other", "inst")
PROCESSES = ("one", "two", "three")
NO_SYNC = Disk(fsync=lambda descriptor: None)


class UnreliableStore(FileConfigStore):
    """A config store that tells only when it is asked to, in any order, and that finds conflicts now and then."""

    def __init__(self, path: Path, chance: random.Random) -> None:
        super().__init__(path, NO_SYNC)
        self._chance = chance
        self._untold: deque[tuple[str, Entry | None]] = deque()
        self.is_reliable = False

    def _tell_one(self, key: str, entry: Entry | None) -> None:
        self._untold.append((key, entry))

    def tell(self) -> bool:
        """Tells of a change, loses it, or tells of it and keeps it to be told once more. False: there was none."""
        if not self._untold:
            return False
        self._untold.rotate(self._chance.randrange(len(self._untold)))
        told = self._untold.popleft()
        fate = "told" if self.is_reliable else self._chance.choice(("told", "told", "lost", "kept"))
        if fate == "kept":
            self._untold.append(told)
        if fate != "lost":
            super()._tell_one(*told)
        return True

    def compare_and_set(self, key: str, value: bytes, expected_revision: int) -> int:
        if not self.is_reliable and self._chance.random() < 0.1:
            raise Conflict(f"'{key}' was changed by another")
        return super().compare_and_set(key, value, expected_revision)


class Process(Service):
    """A process that may not be able to stage a generation. It knows what it has served, and what it has staged."""

    def __init__(self, chance: random.Random) -> None:
        super().__init__()
        self._chance = chance
        self.served: dict[ApplicationId, list[int]] = defaultdict(list)
        self.staged: list[StagedGeneration] = []

    def check(self, application: ApplicationId, model: ApplicationModel) -> None:
        self._fail_now_and_then()

    def stage(self, activation: Activation) -> StagedGeneration:
        self._fail_now_and_then()
        change = StagedGeneration(activation, StagedContainers("", {}, {}, (), {}))
        self.staged.append(change)
        return change

    def _fail_now_and_then(self) -> None:
        if self._chance.random() < 0.1:
            raise PortTaken("the port is taken")

    def commit(self, change: StagedGeneration) -> None:
        self.staged.remove(change)
        self.served[change.activation.application].append(change.activation.generation)

    def abandon(self, change: StagedGeneration) -> None:
        self.staged.remove(change)


def process_of(store: FileConfigStore, name: str, service: Service) -> tuple[ConfigFollower, Convergence]:
    """A process with nothing in common with others but the store."""
    sessions, convergence = SessionRepository(store), Convergence(store)
    return ConfigFollower(name, sessions, Models(build, Packages(sessions), SYSTEM), convergence, service), convergence


class Deployer(threading.Thread):
    """Deploys and deletes, and compares what processes serve with what it was answered."""

    def __init__(self, server: ConfigServer, processes: list[Process], chance: random.Random) -> None:
        super().__init__(daemon=True)
        self._server = server
        self._processes = processes
        self._chance = chance
        self.defects: list[object] = []
        self.done = 0

    def run(self) -> None:
        for _ in range(40):
            application = self._chance.choice((DEFAULT, OTHER))
            before = self._server.sessions.active(application)[0]
            try:
                if self._chance.random() < 0.2:
                    self._server.deployments.delete_application(application)
                else:
                    package = self._chance.choice(("music", "artist-added"))
                    generation = deploy(self._server, package, application, ignore_validation_errors=True)
                    served = [process.served[application][-1] for process in self._processes]
                    if set(served) != {generation}:
                        self.defects.append((generation, served))
                self.done += 1
            except (PaperwaspError, AssertionError):
                if self._server.sessions.active(application)[0] != before:
                    self.defects.append(f"a deployment that failed has changed what is active of {application}")
            except BaseException as defect:
                self.defects.append(defect)


def test_every_process_converges_and_none_goes_back(tmp_path: Path) -> None:
    print(f"seed {SEED}")  # noqa: T201
    chance = random.Random(SEED)
    store = UnreliableStore(tmp_path, chance)
    server = ConfigServer(store, build)
    services = [Process(random.Random(chance.random())) for _ in PROCESSES]
    followed = [process_of(store, name, service) for name, service in zip(PROCESSES, services, strict=True)]
    for follower, _ in followed:
        follower.start()
    deployer = Deployer(server, services, random.Random(chance.random()))
    deployer.start()

    def look_at_all() -> None:
        for follower, _ in followed:
            follower.look_at_all()
        server.convergence.look_again()

    while deployer.is_alive():
        if not store.tell():
            look_at_all()
            os.sched_yield()
    assert deployer.defects == []
    assert deployer.done > 0
    store.is_reliable = True
    while store.tell():
        pass
    look_at_all()
    for follower, _ in followed:
        follower.close()
    assert server.convergence.generations(DEFAULT) == []
    for application in (DEFAULT, OTHER):
        active, _ = server.sessions.active(application)
        for service in services:
            served = service.served[application]
            assert served == sorted(set(served))
            assert active is None or served[-1] == active.generation
            assert service.staged == []


def test_one_process_that_cannot_keeps_all_from_changing(tmp_path: Path) -> None:
    first, second = Service(), Service()
    store = FileConfigStore(tmp_path, NO_SYNC)
    server = config_server(store, first)
    process_of(store, "second", second)[0].start()
    deploy(server, "music")
    second.error = PortTaken("port 8080 is taken")
    _, error = server.deployments.prepare_and_activate(PACKAGES["artist-added"])
    assert (type(error), str(error)) == (Conflict, "port 8080 is taken")
    second.error = None
    generation = deploy(server, "artist-added")
    served = [[each.generation for each in service.activations] for service in (first, second)]
    assert served == [[1, generation]] * 2
    assert server.convergence.generations(DEFAULT) == [generation, generation]
    assert [service.generation for service in server.convergence.services(DEFAULT)] == [generation, generation]


def test_a_process_that_comes_later_serves_what_is_active(tmp_path: Path) -> None:
    store = FileConfigStore(tmp_path, NO_SYNC)
    server, late = config_server(store), Service()
    generation = deploy(server, "music")
    follower, _ = process_of(store, "late", late)
    follower.start()
    assert [each.generation for each in late.activations] == [generation]
    assert server.convergence.generations(DEFAULT) == [generation, generation]
    follower.close()
    assert server.convergence.generations(DEFAULT) == [generation]
    assert deploy(server, "artist-added") == generation + 1
    assert len(late.activations) == 1


def test_a_generation_that_is_active_and_cannot_be_changed_to_is_the_answer(tmp_path: Path) -> None:
    class Broken(Service):
        def commit(self, change: StagedGeneration) -> None:
            raise Conflict("the swap failed")

    store = FileConfigStore(tmp_path, NO_SYNC)
    server = ConfigServer(store, build)
    broken = follow(server, Broken())
    _, error = server.deployments.prepare_and_activate(PACKAGES["music"])
    outlook = "Generation 1 is active but not served yet: the service tries again until it is"
    assert isinstance(error, Conflict) and error.message == f"{outlook}. the swap failed"
    assert (server.applications.current_generation(DEFAULT), server.applications.wanted_generation(DEFAULT)) == (0, 1)
    broken.close()
    restarted = config_server(store)
    restarted.restore()
    assert restarted.applications.current_generation(DEFAULT) == 1


def clock_after(seconds: float) -> Environment:
    """A clock that has moved on by so much when it is read again."""
    times = itertools.chain((0,), itertools.repeat(int(seconds * 1e9)))
    return Environment(time_ns=lambda: 0, monotonic_ns=lambda: next(times))


def test_a_process_that_says_nothing_is_named_when_the_time_is_over(tmp_path: Path) -> None:
    store = FileConfigStore(tmp_path, NO_SYNC)

    def convergence() -> Convergence:
        return Convergence(store, clock_after(limits.CONVERGENCE_SECONDS))

    for process in ("one", "silent"):
        convergence().join(process)
    convergence().report("one", DEFAULT, Report(serves=1))
    answer = "No answer from process silent within 1800 seconds"
    with pytest.raises(DeployTimeout, match=f"^{answer}$"):
        convergence().wait_until_served(DEFAULT, 1)
    answer = "No answer from process one, silent within 1800 seconds"
    with pytest.raises(DeployTimeout, match=f"^{answer}$"):
        convergence().propose(Active(2, 2, DEFAULT, 2, 1)).__enter__()
    server = ConfigServer(store, build)
    session = server.deployments.create(PACKAGES["music"], DEFAULT)
    answer = "timeout of 60 seconds: No answer from process one, silent"
    with pytest.raises(DeployTimeout, match=answer):
        server.convergence.check(session, Deadline(60, clock_after(60)))


def test_a_process_that_cannot_read_what_is_active_says_so(tmp_path: Path) -> None:
    class Unreadable(SessionRepository):
        def active(self, application: ApplicationId) -> tuple[Active | None, int]:
            raise OSError("the disk is broken")

    store = FileConfigStore(tmp_path, NO_SYNC)
    server, sessions = config_server(store), Unreadable(store)
    models = Models(build, Packages(sessions), SYSTEM)
    ConfigFollower("unreadable", sessions, models, Convergence(store), Service()).start()
    with pytest.raises(PaperwaspError, match="the disk is broken"):
        deploy(server, "music")
    assert server.sessions.active(DEFAULT)[0] is None


def test_who_loses_a_race_leaves_the_proposal_that_won(tmp_path: Path) -> None:
    store = FileConfigStore(tmp_path, NO_SYNC)
    loser, winner, process = Convergence(store), Convergence(store), Convergence(store)
    process.join("one")

    def answer(application: ApplicationId, is_withdrawn: bool) -> None:
        """To the first proposal another one comes, which is answered."""
        proposal = process.proposal(application)
        if proposal is not None and proposal.generation == 1:
            threads.submit(propose_another)
        elif proposal is not None:
            process.report("one", application, Report(answers=proposal.number))

    def propose_another() -> None:
        with winner.propose(Active(2, 2, DEFAULT, 2)):
            is_staged.set()
            has_lost.wait()
            standing.append(process.proposal(DEFAULT))

    standing: list[Proposal | None] = []
    is_staged, has_lost = threading.Event(), threading.Event()
    threads = ThreadPool("winner", 1)
    process.watch_proposals(answer)
    try:
        with pytest.raises(LockFailure), loser.propose(Active(1, 1, DEFAULT, 1)):
            pass
        is_staged.wait()
    finally:
        has_lost.set()
        threads.shutdown()
    assert [proposal and proposal.generation for proposal in standing] == [2]
    assert process.proposal(DEFAULT) is None


def test_an_answer_keeps_why_a_generation_failed(tmp_path: Path) -> None:
    class Broken(Service):
        def commit(self, change: StagedGeneration) -> None:
            raise Conflict("the swap failed")

    store = FileConfigStore(tmp_path, NO_SYNC)
    server = ConfigServer(store, build)
    follow(server, Broken())
    prepared, error = server.deployments.prepare_and_activate(PACKAGES["music"])
    assert error is not None
    server.convergence.check(prepared.session, Deadline(60))
    with pytest.raises(Conflict, match="the swap failed"):
        server.convergence.wait_until_served(DEFAULT, prepared.session.id)


class FullDisk(Service):
    """A process that can stage a generation, and cannot change to it while its disk is full."""

    def __init__(self) -> None:
        super().__init__()
        self.is_full = True
        self.tries = 0

    def commit(self, change: StagedGeneration) -> None:
        self.tries += 1
        if self.is_full:
            self.abandon(change)
            raise NoSpace("there is no room left on the disk")


class Clock:
    """A clock that moves when it is told to."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.environment = Environment(time_ns=lambda: 0, monotonic_ns=lambda: int(self.seconds * 1e9))


def stop_watching(follower: ConfigFollower, store: FileConfigStore) -> None:
    """Returns when the follower looks only where the test has it look."""
    for stop in follower._stops:
        stop()
    with store._telling:
        pass
    while follower._busy:
        os.sched_yield()


def test_a_generation_that_failed_is_tried_again_with_pauses_that_double(tmp_path: Path) -> None:
    store, service, clock = FileConfigStore(tmp_path, NO_SYNC), FullDisk(), Clock()
    server = ConfigServer(store, build)
    follower = follow(server, service, clock.environment)
    _, error = server.deployments.prepare_and_activate(PACKAGES["music"])
    assert isinstance(error, NoSpace)
    stop_watching(follower, store)
    pauses: list[float] = []
    since = 0.0
    while len(pauses) < 9:
        before = service.tries
        follower._look(DEFAULT)
        if service.tries > before:
            pauses.append(clock.seconds - since)
            since = clock.seconds
        clock.seconds += limits.CONFIG_RESYNC_SECONDS
        with pytest.raises(PaperwaspError, match="no room left"):
            server.convergence.wait_until_served(DEFAULT, 1)
    assert pauses == [5, 10, 20, 40, 80, 160, 300, 300, 300]
    service.is_full = False
    clock.seconds += limits.SERVE_RETRY_LONGEST_SECONDS
    follower._look(DEFAULT)
    follower._look(DEFAULT)
    assert service.tries == 1 + 9 + 1
    server.convergence.wait_until_served(DEFAULT, 1)
    assert follower._followed[DEFAULT].report.failed == 0
    assert follower._followed[DEFAULT].report.failure is None


def test_a_look_that_no_thread_can_be_made_for_is_made_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    follower = follow(ConfigServer(FileConfigStore(tmp_path, NO_SYNC), build), Service())
    looked: list[ApplicationId] = []
    monkeypatch.setattr(follower, "_look", looked.append)
    with monkeypatch.context() as patch:
        refuse_threads(patch)
        follower.look(DEFAULT)
    follower.look(DEFAULT)
    follower.close()
    assert looked == [DEFAULT]


def test_what_is_served_after_all_is_taken_up(tmp_path: Path) -> None:
    """The config server knows then that it runs, and begins to reindex."""
    store, service, clock = FileConfigStore(tmp_path, NO_SYNC), FullDisk(), Clock()
    server = ConfigServer(store, build, environment=CLOCK)
    service.is_full = False
    follower = follow(server, service, clock.environment)
    deploy(server, "music")
    service.is_full = True
    prepared, error = server.deployments.prepare_and_activate(PACKAGES["allowed"])
    assert isinstance(error, NoSpace)
    assert (server.applications.current_generation(DEFAULT), server.applications.wanted_generation(DEFAULT)) == (1, 2)
    assert server.reindexing.of(DEFAULT).runs == {}
    stop_watching(follower, store)
    service.is_full = False
    clock.seconds += limits.SERVE_RETRY_FIRST_SECONDS
    follower._look(DEFAULT)
    server._threads.shutdown()
    assert server.applications.current_generation(DEFAULT) == 2
    assert server.sessions.get("default", prepared.session.id).state is State.ACTIVE
    assert server.reindexing.of(DEFAULT).runs.keys() == {("music", "music")}
    assert server._activations.unfinished == set()


def wait_for_catching_up(server: ConfigServer) -> None:
    """Returns when what was to be caught up has been tried."""
    server._threads.submit(lambda: None).result()


@pytest.mark.parametrize("step", ["record_activated", "begin_scheduled"])
@pytest.mark.parametrize("is_served_late", [True, False])
def test_what_could_not_be_taken_up_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_served_late: bool, step: str
) -> None:
    """Whether it fails in the activation or when the generation is served at last."""

    def fail(*_: object) -> None:
        raise OSError("the disk is broken")

    store, service, clock = FileConfigStore(tmp_path, NO_SYNC), FullDisk(), Clock()
    server = ConfigServer(store, build, environment=CLOCK)
    service.is_full = False
    follower = follow(server, service, clock.environment)
    deploy(server, "music")
    with monkeypatch.context() as broken:
        broken.setattr(server.sessions if step == "record_activated" else server.reindexing, step, fail)
        service.is_full = is_served_late
        if is_served_late:
            assert server.deployments.prepare_and_activate(PACKAGES["allowed"])[1] is not None
            stop_watching(follower, store)
            service.is_full = False
            clock.seconds += limits.SERVE_RETRY_FIRST_SECONDS
            follower._look(DEFAULT)
        else:
            with pytest.raises(OSError, match="the disk is broken"):
                server.deployments.prepare_and_activate(PACKAGES["allowed"])
        wait_for_catching_up(server)
        server.catch_up_all()
        wait_for_catching_up(server)
        assert server.reindexing.of(DEFAULT).runs == {}
    server.catch_up_all()
    wait_for_catching_up(server)
    assert server.applications.current_generation(DEFAULT) == 2
    assert server.sessions.get("default", 2).state is State.ACTIVE
    assert server.reindexing.of(DEFAULT).runs.keys() == {("music", "music")}
    assert server._activations.unfinished == set()


def test_what_is_reported_when_nobody_waits_any_more_is_taken_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = config_server(FileConfigStore(tmp_path, NO_SYNC))
    deploy(server, "music")
    real = server.convergence.wait_until_served

    def time_out(application: ApplicationId, generation: int) -> None:
        real(application, generation)
        raise DeployTimeout("No answer")

    with monkeypatch.context() as late:
        late.setattr(server.convergence, "wait_until_served", time_out)
        assert isinstance(server.deployments.prepare_and_activate(PACKAGES["allowed"])[1], DeployTimeout)
    server.catch_up_all()
    wait_for_catching_up(server)
    assert server.applications.current_generation(DEFAULT) == 2
    assert server.reindexing.of(DEFAULT).runs.keys() == {("music", "music")}


@pytest.mark.parametrize("fixes", [("music",), ("title-matched", "music")])
def test_a_generation_that_was_never_served_is_reindexed_for_all_the_same(
    tmp_path: Path, fixes: tuple[str, ...]
) -> None:
    """Content may have its layout: an index that it drops is empty when a later generation has that again."""
    store, service = FileConfigStore(tmp_path, NO_SYNC), FullDisk()
    server = ConfigServer(store, build, environment=CLOCK)
    service.is_full = False
    follow(server, service)
    deploy(server, "music")
    service.is_full = True
    options = PrepareOptions(DEFAULT, ignore_validation_errors=True)
    for failing in ("allowed", *fixes[:-1]):
        assert isinstance(server.deployments.prepare_and_activate(PACKAGES[failing], options)[1], NoSpace)
    service.error = PortTaken("port 8080 is taken")
    assert isinstance(server.deployments.prepare_and_activate(PACKAGES["type-changed"], options)[1], Conflict)
    service.error, service.is_full = None, False
    deploy(server, fixes[-1])
    assert server.reindexing.of(DEFAULT).runs.keys() == {("music", "music")}
    assert not server.reindexing.of(DEFAULT).scheduled


def test_what_is_not_chosen_keeps_what_waits_for_the_generation_that_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, service = FileConfigStore(tmp_path, NO_SYNC), FullDisk()
    server = ConfigServer(store, build, environment=CLOCK)
    service.is_full = False
    follow(server, service)
    deploy(server, "music")
    service.is_full = True
    assert server.deployments.prepare_and_activate(PACKAGES["allowed"])[1] is not None
    waiting = ReindexingRepository(store).get(DEFAULT).scheduled
    assert waiting.keys() == {("music", "music")}

    def fail(*_: object) -> None:
        raise OSError("the disk is broken")

    with monkeypatch.context() as broken, pytest.raises(OSError, match="the disk is broken"):
        broken.setattr(server.sessions, "set_active", fail)
        server.deployments.prepare_and_activate(PACKAGES["allowed"])
    assert ReindexingRepository(store).get(DEFAULT).scheduled == waiting


def test_a_fix_is_staged_and_not_given_up_for_what_failed(tmp_path: Path) -> None:
    server, service, clock = ConfigServer(FileConfigStore(tmp_path, NO_SYNC), build), FullDisk(), Clock()
    follower = follow(server, service, clock.environment)
    server.deployments.prepare_and_activate(PACKAGES["music"])
    tries = service.tries
    clock.seconds += limits.SERVE_RETRY_FIRST_SECONDS
    with server.convergence.propose(Active(2, 1, DEFAULT, 2, 1)):
        staged = follower._followed[DEFAULT].staged
        clock.seconds += limits.SERVE_RETRY_LONGEST_SECONDS
        follower._look(DEFAULT)
        assert follower._followed[DEFAULT].staged is staged is not None
    assert service.tries <= tries + 1


def test_nothing_is_kept_of_an_application_that_was_only_checked(tmp_path: Path) -> None:
    store = FileConfigStore(tmp_path, NO_SYNC)
    server = ConfigServer(store, build)
    follower = follow(server, Service())
    session = server.deployments.create(PACKAGES["music"], DEFAULT)
    server.convergence.check(session, Deadline(60))
    follower.look_at_all()  # another thread may be about to tell that the proposal is withdrawn
    follower.close()
    assert follower._followed == {}
    assert store.announced() == {}


def test_what_nobody_could_serve_is_not_chosen(tmp_path: Path) -> None:
    store = FileConfigStore(tmp_path, NO_SYNC)
    convergence = Convergence(store, clock_after(limits.CONVERGENCE_SECONDS))
    with pytest.raises(DeployTimeout, match="none has joined"):
        convergence.propose(Active(1, 1, DEFAULT, 1, 0)).__enter__()
