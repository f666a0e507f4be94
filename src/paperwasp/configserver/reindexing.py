"""Reindexing: which document types are reindexed, how far that is, and how the state of it is asked for and kept.

    (nothing) ──schedule──▶ for a generation ──that generation is active──▶ pending ──▶ running ──▶ successful
                                                     ▲   ▲                     │ │          ▲
                                                     │   └──speed 0, disabled──┘ └▶ failed ─┘ (after a pause)
                                                     └── asked for (again)

One record an application, `reindexing/<tenant>/<application>/<instance>`. A run has a number: a report of an
earlier run of the same type is too late and changes nothing. The place up to which a run has come is a token of the
content cluster's, so that a run goes on after a restart where it was.

Vespa: https://docs.vespa.ai/en/operations/reindexing.html
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, Literal

import orjson
from msgspec import Struct, field
from msgspec.structs import asdict

from paperwasp.application.model import ApplicationModel
from paperwasp.base.env import Environment
from paperwasp.base.records import replace
from paperwasp.configserver.repository import ApplicationId
from paperwasp.configserver.running import RunningApplications
from paperwasp.coordination.config_store import ConfigStore
from paperwasp.errors import Conflict

RunState = Literal["pending", "running", "successful", "failed"]
Target = tuple[str, str]
"""Content cluster and document type."""
_PREFIX: Final = "reindexing/"


class Run(Struct, frozen=True):
    """The latest reindexing of one document type."""

    number: int
    ready_ms: int
    """When it was allowed to begin."""
    speed: float = 1.0
    """The share of the time that it takes is speed / (1 + speed); 0 halts it."""
    cause: str = ""
    state: RunState = "pending"
    started_ms: int = 0
    ended_ms: int = 0
    progress: float = 0.0
    message: str = ""
    """Why it failed."""
    token: bytes = b""
    """The place up to which documents are reindexed; empty: the beginning."""

    def as_halted(self) -> Run:
        return replace(self, state="pending") if self.state == "running" else self


class Scheduled(Struct, frozen=True):
    """A reindexing that waits for a generation to be active."""

    generation: int
    cause: str = ""


class ApplicationReindexing(Struct, frozen=True):
    """All reindexing of an application."""

    enabled: bool = True
    scheduled: Mapping[Target, Scheduled] = field(default_factory=dict)
    runs: Mapping[Target, Run] = field(default_factory=dict)

    def with_ready(self, targets: Iterable[Target], now_ms: int, speed: float, cause: str) -> ApplicationReindexing:
        """New runs of these types, from the beginning."""
        runs = dict(self.runs)
        for target in targets:
            number = runs[target].number + 1 if target in runs else 1
            runs[target] = Run(number, now_ms, speed, cause)
        return replace(self, runs=runs)

    def with_speed(self, targets: Iterable[Target], speed: float) -> ApplicationReindexing:
        """The same runs at another speed."""
        runs = dict(self.runs)
        for target in targets:
            if target in runs:
                run = replace(runs[target], speed=speed)
                runs[target] = run if speed else run.as_halted()
        return replace(self, runs=runs)

    def with_enabled(self, enabled: bool) -> ApplicationReindexing:
        runs = self.runs if enabled else {target: run.as_halted() for target, run in self.runs.items()}
        return replace(self, enabled=enabled, runs=runs)

    def with_scheduled(self, causes: Mapping[Target, str], generation: int, previous: int = 0) -> ApplicationReindexing:
        """These types are reindexed once that generation is active.

        What waits for the previous one, which is chosen and may not be served yet, stays: it waits for either.
        """
        new = {target: Scheduled(generation, cause) for target, cause in causes.items()}
        stays = {target: waiting for target, waiting in self.scheduled.items() if waiting.generation == previous}
        return replace(self, scheduled={**self.scheduled, **new, **stays})

    def with_carried_over(self, generation: int, previous: int) -> ApplicationReindexing:
        """With what waits for the previous generation waiting for that one, which is chosen now."""
        carried = {t: replace(s, generation=generation) for t, s in self.scheduled.items() if s.generation == previous}
        return replace(self, scheduled={**self.scheduled, **carried})

    def without_scheduled(self, generation: int) -> ApplicationReindexing:
        """Without what waits for that generation, which does not become active."""
        kept = {target: waiting for target, waiting in self.scheduled.items() if waiting.generation != generation}
        return replace(self, scheduled=kept)

    def with_active(
        self, generation: int, model: ApplicationModel, now_ms: int, previous: int = 0
    ) -> ApplicationReindexing:
        """With that generation active: runs scheduled for it are ready, those of types that it lacks are dropped.

        Runs scheduled for the previous one are ready, too: that was chosen and has never been served.
        """
        known = set(targets_of(model))
        ready = {t: s for t, s in self.scheduled.items() if s.generation in (generation, previous) and t in known}
        kept = replace(self, scheduled={}, runs={t: run for t, run in self.runs.items() if t in known})
        for target, scheduled in ready.items():
            kept = kept.with_ready([target], now_ms, 1.0, scheduled.cause)
        return kept

    def with_run(self, target: Target, run: Run) -> ApplicationReindexing:
        """With the new state of a run; unchanged, if there is a later one."""
        if target not in self.runs or self.runs[target].number != run.number:
            return self
        return replace(self, runs={**self.runs, target: run})


def targets_of(model: ApplicationModel) -> tuple[Target, ...]:
    """Every document type of every content cluster."""
    return tuple((cluster.id, name) for cluster in model.content_clusters for name in cluster.document_types)


class ReindexingRepository:
    """The reindexing of all applications in a config store. Any thread may call; a change is made whole."""

    def __init__(self, store: ConfigStore) -> None:
        self._store = store

    def get(self, application: ApplicationId) -> ApplicationReindexing:
        entry = self._store.get(_PREFIX + application.key)
        return _decode(orjson.loads(entry.value)) if entry else ApplicationReindexing()

    def update(
        self, application: ApplicationId, change: Callable[[ApplicationReindexing], ApplicationReindexing]
    ) -> ApplicationReindexing:
        """Makes the change on what is kept, again if somebody else was first; returns what is kept then."""
        key = _PREFIX + application.key
        while True:
            entry = self._store.get(key)
            before = _decode(orjson.loads(entry.value)) if entry else ApplicationReindexing()
            after = change(before)
            if after == before:
                return after
            try:
                if entry:
                    self._store.compare_and_set(key, _encode(after), entry.revision)
                else:
                    self._store.create(key, _encode(after))
            except Conflict:
                continue
            return after

    def delete(self, application: ApplicationId) -> None:
        self._store.delete(_PREFIX + application.key)


def _encode(reindexing: ApplicationReindexing) -> bytes:
    runs = [[*target, {**asdict(run), "token": run.token.hex()}] for target, run in reindexing.runs.items()]
    scheduled = [[*target, asdict(waiting)] for target, waiting in reindexing.scheduled.items()]
    return orjson.dumps({"enabled": reindexing.enabled, "scheduled": scheduled, "runs": runs})


def _decode(value: dict[str, Any]) -> ApplicationReindexing:
    runs = {(c, t): Run(**{**run, "token": bytes.fromhex(run["token"])}) for c, t, run in value["runs"]}
    scheduled = {(c, t): Scheduled(**waiting) for c, t, waiting in value["scheduled"]}
    return ApplicationReindexing(value["enabled"], scheduled, runs)


# Requests of clients and deployments for reindexing: each is kept first, then begun.


ReindexingChange = Callable[[ApplicationReindexing, int], ApplicationReindexing]
"""(the reindexing of an application, the time in milliseconds) → what it shall be."""


class ReindexingControl:
    """The reindexing of applications that run. `wake` has the reindexer look for what may be due."""

    def __init__(
        self,
        repository: ReindexingRepository,
        applications: RunningApplications,
        wake: Callable[[], None],
        environment: Environment,
    ) -> None:
        self._repository = repository
        self._applications = applications
        self._wake = wake
        self._environment = environment

    def of(self, application: ApplicationId) -> ApplicationReindexing:
        """Errors: NotFound for an application that does not run."""
        self._applications.running_of(application)
        return self._repository.get(application)

    def change(self, application: ApplicationId, change: ReindexingChange) -> None:
        """Makes a change, and sees to what follows from it. Errors: NotFound."""
        self._applications.running_of(application)
        self._repository.update(application, lambda found: change(found, self._environment.time_ns() // 1_000_000))
        self._wake()

    def schedule(
        self, application: ApplicationId, causes: Mapping[Target, str], generation: int, previous: int
    ) -> None:
        """These types are reindexed once that generation is active."""
        self._repository.update(application, lambda found: found.with_scheduled(causes, generation, previous))

    def carry_over(self, application: ApplicationId, generation: int, previous: int) -> None:
        """What waits for the previous generation, which was never served, waits for that one, which is chosen now."""
        self._repository.update(application, lambda found: found.with_carried_over(generation, previous))

    def unschedule(self, application: ApplicationId, generation: int) -> None:
        """That generation does not become active: nothing waits for it."""
        self._repository.update(application, lambda found: found.without_scheduled(generation))

    def begin_scheduled(self, application: ApplicationId) -> None:
        """Makes the runs ready that waited for the generation that is active now."""
        running = self._applications.running_of(application)
        generation, previous = running.generation, running.previous_generation
        self.change(application, lambda found, now_ms: found.with_active(generation, running.model, now_ms, previous))

    def forget(self, application: ApplicationId) -> None:
        """Nothing is kept of an application that is deleted."""
        self._repository.delete(application)
