"""Requests of clients and deployments for reindexing: each is kept first, then begun."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from paperwasp.base.env import Environment
from paperwasp.configserver.names import ApplicationId
from paperwasp.configserver.reindexing import ApplicationReindexing, ReindexingRepository, Target
from paperwasp.configserver.running import RunningApplications

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

    def schedule(self, application: ApplicationId, causes: Mapping[Target, str], generation: int) -> None:
        """These types are reindexed once that generation is active."""
        self._repository.update(application, lambda found: found.with_scheduled(causes, generation))

    def unschedule(self, application: ApplicationId) -> None:
        """No generation that reindexing waits for becomes active."""
        self._repository.update(application, lambda found: replace(found, scheduled={}))

    def begin_scheduled(self, application: ApplicationId) -> None:
        """Makes the runs ready that waited for the generation that is active now."""
        running = self._applications.running_of(application)
        self.change(application, lambda found, now_ms: found.with_active(running.generation, running.model, now_ms))

    def forget(self, application: ApplicationId) -> None:
        """Nothing is kept of an application that is deleted."""
        self._repository.delete(application)
