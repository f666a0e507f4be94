"""Which applications all processes have served last, which they are to serve, and which could not be restored.

What is here is in memory only: any thread reads it at any time, and waits for nobody.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from types import MappingProxyType

from msgspec import Struct

from paperwasp.application.model import ApplicationModel
from paperwasp.configserver.repository import ApplicationId
from paperwasp.errors import NotFound


class Activation(Struct, frozen=True):
    """The configuration of the service from now on for an application. `model` is empty after it was deleted.

    Documents of content clusters that the model has not are to be deleted. After a restart it is made again, of what
    the config store has.
    """

    generation: int
    application: ApplicationId
    model: ApplicationModel
    previous_generation: int = 0
    is_deletion: bool = False


class RunningApplications:
    """The applications of the service: of each the generation that all processes served last, and the one they are to
    serve."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: Mapping[ApplicationId, Activation] = MappingProxyType({})
        self._wanted: Mapping[ApplicationId, int] = MappingProxyType({})
        self._left_out: Mapping[ApplicationId, str] = MappingProxyType({})

    @property
    def running(self) -> Mapping[ApplicationId, Activation]:
        """By application, the activation that all processes served last."""
        return self._running

    @property
    def left_out(self) -> Mapping[ApplicationId, str]:
        """The applications that are active, but could not be restored at the start, each with the reason."""
        return self._left_out

    def active(self) -> list[ApplicationId]:
        """Those that run and those that should, by name."""
        return sorted({*self._running, *self._left_out})

    def check_active(self, application: ApplicationId) -> None:
        """Errors: NotFound."""
        if application not in self._left_out:
            self.running_of(application)

    def running_of(self, application: ApplicationId) -> Activation:
        """Errors: NotFound."""
        running = self._running.get(application)
        if running is None:
            reason = self._left_out.get(application)
            unknown = f"Unknown application id '{application}'"
            raise NotFound(f"Application {application} does not run: {reason}" if reason else unknown)
        return running

    def wanted_generation(self, application: ApplicationId) -> int:
        """The generation that the application's services are to reach."""
        return self._wanted.get(application, 0)

    def current_generation(self, application: ApplicationId) -> int:
        """The generation that they were configured with last."""
        running = self._running.get(application)
        return running.generation if running else 0

    def models(self) -> Mapping[ApplicationId, ApplicationModel]:
        """The models of those that run."""
        return {application: activation.model for application, activation in self._running.items()}

    def want(self, application: ApplicationId, generation: int) -> None:
        """The application's services are to reach that generation; 0: there is none."""
        with self._lock:
            wanted = {**self._wanted, application: generation}
            self._wanted = MappingProxyType({name: number for name, number in wanted.items() if number})

    def set_running(self, activation: Activation) -> None:
        """The service is configured with that activation from now on."""
        if activation.is_deletion:
            self.want(activation.application, 0)
        with self._lock:
            running = {**self._running, activation.application: activation}
            if activation.is_deletion:
                del running[activation.application]
            self._running = MappingProxyType(running)
            left_out = {name: why for name, why in self._left_out.items() if name != activation.application}
            self._left_out = MappingProxyType(left_out)

    def leave_out(self, application: ApplicationId, generation: int, reason: str) -> None:
        """The application should run, and could not be restored."""
        self.want(application, generation)
        with self._lock:
            self._left_out = MappingProxyType({**self._left_out, application: reason})
