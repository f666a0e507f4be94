"""Rounds of load and crash, of several kinds, on one data directory each; after each round all is compared."""

from __future__ import annotations

import contextlib
import copy
import json
import random
import shutil
import signal
import subprocess
import time
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from bench.crashes import application
from bench.crashes.check import Checker, check_deeply
from bench.crashes.disks import Disk, mounted
from bench.crashes.load import Load
from bench.crashes.state import State
from bench.deploy import deploy_zip, zip_of
from paperwasp import limits
from tests.service.running import RunningService, _ready, command

THINGS: Final = 200
SERVED: Final = "served"
"""The data directory, in a folder that is there before: making it durable is part of the work."""
SMALL: Final = {
    "CHECKPOINT_DOCUMENTS": 400, "CHECKPOINT_OPERATIONS": 900, "LOG_FILE_BYTES": 150_000, "DEAD_ROWS_LEAST": 300,
    "DEAD_ROWS_SERVED_LEAST": 200, "DEAD_ROWS_SHARE": 0.6, "COMPACTION_DOCUMENTS": 32, "ROW_CHUNK_LEAST": 1,
    "ROW_FILE_LEAST_BYTES": 10_000, "ROW_SECONDS": 0.2, "GRAPH_SECONDS": 0.2, "GRAPH_STEP_SECONDS": 0.02,
    "GRAPH_FIRST_VECTORS": 8, "REINDEX_DOCUMENTS": 16, "DISK_RESERVE_BYTES": 0, "RESOURCE_SAMPLE_SECONDS": 0.2,
    "RECOVERY_FIRST_SECONDS": 0.2,
}  # fmt: skip
"""Limits of the service, by which all that happens seldom happens often."""
LINES: Final = 6
"""Of one round, that are shown of what is wrong."""
HEALTH_SECONDS: Final = 60
SECONDS: Final = 3.0
"""Of load, at most."""


def line_of(data: Path) -> list[str]:
    return command(data, first=f"import paperwasp.limits as limits\nvars(limits).update({SMALL!r})")


@contextlib.contextmanager
def serving(data: Path, log_path: Path) -> Iterator[RunningService]:
    """The service with small limits; killed at the end."""
    with (
        log_path.open("a+") as log,
        subprocess.Popen(line_of(data), stdout=subprocess.PIPE, stderr=log, text=True) as child,
    ):
        try:
            yield _ready(child, log)
        finally:
            child.kill()
            child.wait()


@contextlib.contextmanager
def starting(data: Path, log_path: Path, seconds: float) -> Iterator[None]:
    """A service that is killed at the end, at the latest so long after it began to start."""
    with log_path.open("a+") as log, subprocess.Popen(line_of(data), stdout=subprocess.DEVNULL, stderr=log) as child:
        time.sleep(seconds)
        yield
        child.kill()


def port_of(url: str) -> int:
    return int(url.rsplit(":", 1)[1])


@dataclass
class Campaign:
    """One data directory, what its documents may be, and what was counted."""

    folder: Path
    seed: int
    program: Path | None = None
    """That of `disk.cpp`."""
    show: Callable[[str], None] = print
    state: State = field(default_factory=lambda: State({name: [None] for name in range(THINGS)}))
    counts: Counter[str] = field(default_factory=Counter)
    """What was acknowledged or done, by name."""
    statuses: Counter[str] = field(default_factory=Counter)
    """Answers that say that something was refused."""
    compared: int = 0
    wrong: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        assert all(hasattr(limits, name) for name in SMALL)
        vars(limits).update(SMALL)  # the data is opened in this process, too
        shutil.rmtree(self.folder, ignore_errors=True)
        self.data.mkdir(parents=True)
        self.log = self.folder / "serve.log"

    @property
    def data(self) -> Path:
        return self.folder / "data"

    def run(self, kind: str, rounds: int) -> None:
        for number in range(rounds):
            begun = time.monotonic()
            getattr(self, f"{kind}_round")(number, random.Random(f"{self.seed} {number}"))
            counts = ", ".join(f"{count:,} {name}" for name, count in sorted(self.counts.items()))
            self.show(f"{kind} {number}: {time.monotonic() - begun:.1f} s, version {self.state.versions}, {counts}")
        with serving(self.data / SERVED, self.log) as service:
            self.compare(service, "end")

    # ------------------------------------------------------------------------------------------------------ rounds

    def kill_round(self, number: int, chance: random.Random) -> None:
        """SIGKILL under load, now and then SIGTERM, and again while it starts."""
        with serving(self.data / SERVED, self.log) as service:
            self.compare(service, f"kill {number}")
            with self.loaded(service, number) as load:
                time.sleep(chance.uniform(SECONDS / 2, SECONDS))
                service.process.send_signal(signal.SIGTERM if chance.random() < 0.05 else signal.SIGKILL)
                service.process.wait(60)
            del load
        self.look_inside(f"kill {number}", chance)
        for _ in range(chance.choice((0, 0, 1, 2))):
            with starting(self.data / SERVED, self.log, chance.uniform(0.2, 1.5)):
                self.counts["kills at start"] += 1

    def cut_round(self, number: int, chance: random.Random) -> None:
        """A power cut under load, now and then another one while it starts."""
        with self.disk(chance) as disk, serving(disk.mount / SERVED, self.log) as service:
            self.compare(service, f"cut {number}")
            with self.loaded(service, number):
                time.sleep(chance.uniform(SECONDS / 2, SECONDS))
                self.show(disk.cut())
                service.process.kill()
        self.look_inside(f"cut {number}", chance)
        if chance.random() < 0.3:
            with self.disk(chance) as disk, starting(disk.mount / SERVED, self.log, chance.uniform(0.3, 2)):
                self.show(disk.cut())
                self.counts["cuts at start"] += 1

    def full_round(self, number: int, chance: random.Random) -> None:
        """The disk fills under load; kill or cut; a start on the full disk, which answers; room again."""
        room = limits.STORE_RESERVE_BYTES + chance.randrange(400_000, 2_000_000)
        with self.disk(chance, room) as disk:
            with serving(disk.mount / SERVED, self.log) as service:
                self.compare(service, f"full {number}")
                with self.loaded(service, number, deploys=False):
                    time.sleep(SECONDS)
                    service.process.kill()
            disk.cut()
        with self.disk(chance, chance.choice((0, 0, 4096, 50_000))) as disk:
            with serving(disk.mount / SERVED, self.log) as service:
                self.compare(service, f"full {number}, started on the full disk", writes=False)
                self.counts["starts on a full disk"] += 1
            disk.cut()
        self.look_inside(f"full {number}", chance)

    def error_round(self, number: int, chance: random.Random) -> None:
        """Writes and syncs fail for a while, twice; then all is well again, without a start and after a cut."""
        with self.disk(chance) as disk, serving(disk.mount / SERVED, self.log) as service:
            self.compare(service, f"error {number}")
            with self.loaded(service, number, deploys=number % 2 == 0) as load:
                for _ in range(4):
                    time.sleep(chance.uniform(0.2, SECONDS / 4))
                    disk.fail()
                load.end()
            self.await_health(service)
            self.compare(service, f"error {number}, healed", writes=False)
            with self.loaded(service, -number - 1, deploys=False):
                time.sleep(1)
                disk.cut()
                service.process.kill()
        self.look_inside(f"error {number}", chance)

    # ------------------------------------------------------------------------------------------------------- parts

    def disk(self, chance: random.Random, room: int | None = None) -> contextlib.AbstractContextManager[Disk]:
        assert self.program is not None
        return mounted(self.program, self.folder, self.data, chance.randrange(2**40), room)

    @contextlib.contextmanager
    def loaded(self, service: RunningService, number: int, deploys: bool | None = None) -> Iterator[Load]:
        """Under load. At the end the service is dead, or the load was ended."""
        wanted = number % 3 != 2 if deploys is None else deploys
        seed = f"{self.seed} {number}"
        load = Load(port_of(service.url), port_of(service.config_url), self.state, seed, wanted)
        load.begin()
        try:
            yield load
        finally:
            load.end()
        self.counts += load.counts
        self.statuses += load.statuses

    def compare(self, service: RunningService, what: str, *, writes: bool = True) -> None:
        """Compares all that a service shows. `writes`: an application may be deployed first."""
        if not self.state.versions and writes:
            deploy_zip(port_of(service.config_url), zip_of(application.files(0)))
            self.state.versions = (0,)
        checker = Checker(port_of(service.url), port_of(service.config_url), self.state, reindexes=writes)
        checker.run()
        self.compared += checker.compared
        self.note(what, checker.wrong + self.state.wrong)
        self.state.wrong.clear()

    def await_health(self, service: RunningService) -> None:
        """Waits until what was logged, and could not be applied, is applied: until then reads show an earlier view."""
        for _ in range(HEALTH_SECONDS * 10):
            with urllib.request.urlopen(f"{service.url}/state/v1/health") as answer:
                if json.load(answer)["status"]["code"] == "up":
                    return
            time.sleep(0.1)
        self.note("health", ["the service does not come up again"])

    def note(self, what: str, wrong: list[str]) -> None:
        self.wrong += [f"{what}: {each}" for each in wrong]
        for each in wrong[:LINES]:
            self.show(f"WRONG {what}: {each}"[:900])

    def look_inside(self, what: str, chance: random.Random) -> None:
        """Now and then opens a copy of the data in this process, and compares what no request shows."""
        if chance.random() > 0.4:
            return
        self.counts["looks inside"] += 1
        copied = self.folder / "copy"
        shutil.rmtree(copied, ignore_errors=True)
        shutil.copytree(self.data, copied)
        try:
            check_deeply(copied / SERVED, copy.deepcopy(self.state))
        except Exception as error:
            shutil.copytree(self.data, self.folder / f"wrong-{what.replace(' ', '-')}", dirs_exist_ok=True)
            self.note(f"{what}, inside", [f"{type(error).__name__}: {error}"])
