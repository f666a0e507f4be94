"""How the config server and the processes that serve agree on a generation, through the config store.

    active/<tenant>/<application>/<instance>                which generation is to be served         (`repository`)
    proposals/<tenant>/<application>/<instance>             a session that every process shall check, or stage
    processes/<process>                                     a process that serves: it is waited for
    reports/<process>/<tenant>/<application>/<instance>     how far that process is

An activation has two steps, so that what fails fails before anything has changed for clients:

    propose   every process stages the generation beside the one that it serves, and reports that, or why it cannot
    choose    the `active` key is set, once all have staged it; every process swaps, and reports what it serves

The choice alone is durable. The rest is announced: it is true only while those processes run that say it, and a crash
before the choice leaves nothing to be taken back. Whoever is told of a change reads what the store holds now, so that
it does no harm to be told late, twice or not at all.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Final, Literal

from msgspec import Struct
from msgspec.json import Encoder, decode

from paperwasp import limits
from paperwasp.base.env import SYSTEM, Environment
from paperwasp.configserver.deadline import Deadline
from paperwasp.configserver.repository import Active, ApplicationId, Session
from paperwasp.configserver.service_addresses import ServiceAddress
from paperwasp.coordination.config_store import ConfigStore
from paperwasp.coordination.messages.failures import Refused, error_of
from paperwasp.errors import DeployTimeout, LockFailure

_PROPOSALS: Final = "proposals/"
_PROCESSES: Final = "processes/"
_REPORTS: Final = "reports/"
_JSON: Final = Encoder()


class Proposal(Struct, frozen=True):
    """A session that all processes shall check (could they serve it now? nothing changes) or stage."""

    number: str
    """Tells it from all other proposals."""
    step: Literal["check", "stage"]
    application: ApplicationId
    generation: int
    session_id: int | None
    """None: the application is to be deleted."""
    previous_generation: int = 0


class Report(Struct, frozen=True):
    """How far a process is with an application."""

    serves: int = 0
    """The generation that clients meet; 0: none."""
    services: tuple[ServiceAddress, ...] = ()
    answers: str = ""
    """The number of the last proposal that was checked, staged or refused."""
    failed: int = 0
    """The generation that is active and could not be served; 0: none."""
    refusal: Refused | None = None
    """Why that proposal was refused."""
    failure: Refused | None = None
    """Why that generation could not be served."""


class Convergence:
    """Proposals, and how far the processes are. Any thread."""

    def __init__(self, store: ConfigStore, environment: Environment = SYSTEM) -> None:
        self._store = store
        self._environment = environment
        self._changed = threading.Condition()
        for prefix in (_PROCESSES, _REPORTS):
            store.watch(prefix, lambda *_: self.look_again())

    # By the config server

    def check(self, session: Session, deadline: Deadline) -> None:
        """Errors: what a process raises that could not serve the session now; DeployTimeout. Changes nothing."""
        with self._proposed(Proposal(_number(), "check", session.application, session.id, session.id), deadline):
            pass

    @contextmanager
    def propose(self, chosen: Active) -> Iterator[None]:
        """While this lasts, all processes have staged the generation that is about to be chosen. Where it is not chosen
        by the end, they give it up. Errors: those of a process that cannot; DeployTimeout; LockFailure."""
        application, previous = chosen.application, chosen.previous_generation
        proposal = Proposal(_number(), "stage", application, chosen.generation, chosen.session_id, previous)
        with self._proposed(proposal):
            yield

    @contextmanager
    def _proposed(self, proposal: Proposal, deadline: Deadline | None = None) -> Iterator[None]:
        """While this lasts, the proposal stands, and all processes have checked or staged it.

        Errors: that of the first process which cannot; DeployTimeout, with those that have not answered; LockFailure
        where another proposal has taken its place.
        """
        key, value = _PROPOSALS + proposal.application.key, _JSON.encode(proposal)

        def stands() -> bool:
            return self._store.announced(key).get(key) == value

        def unanswered() -> list[str]:
            if not stands():
                raise LockFailure(f"Application {proposal.application} is being processed by another request")
            reports = self._reports(proposal.application)
            for report in reports.values():
                if report.answers == proposal.number and report.refusal is not None:
                    raise error_of(report.refusal)
            return [process for process, report in reports.items() if report.answers != proposal.number] or _none(
                reports
            )

        self._store.announce(key, value)
        try:
            self._wait(unanswered, deadline)
            yield
        finally:
            if stands():
                self._store.announce(key, None)

    def wait_until_served(self, application: ApplicationId, generation: int) -> None:
        """Returns when all processes serve that generation, or a later one. Errors: that of the first which cannot;
        DeployTimeout, with those that do not serve it yet."""

        def behind() -> list[str]:
            reports = self._reports(application)
            for report in reports.values():
                if report.failed == generation and report.failure is not None:
                    raise error_of(report.failure)
            return [process for process, report in reports.items() if report.serves < generation] or _none(reports)

        self._wait(behind)

    def _wait(self, missing: Callable[[], list[str]], deadline: Deadline | None = None) -> None:
        """Returns when no process is missing. Errors: DeployTimeout; those of `missing`."""
        bound = Deadline(limits.CONVERGENCE_SECONDS, self._environment)
        with self._changed:
            while processes := missing():
                silent = f"No answer from process {', '.join(processes)}"
                if deadline is not None:
                    deadline.check(silent)
                if bound.remaining_seconds == 0:
                    raise DeployTimeout(f"{silent} within {limits.CONVERGENCE_SECONDS:g} seconds")
                left = bound if deadline is None else deadline
                self._changed.wait(min(limits.CONFIG_RESYNC_SECONDS, left.remaining_seconds))

    def watch_served(self, look: Callable[[ApplicationId], None]) -> Callable[[], None]:
        """Calls `look` with each application of which a process reports something; call the result to stop."""

        def tell(key: str, _: object) -> None:
            look(ApplicationId.from_key(key.removeprefix(_REPORTS).partition("/")[2]))

        return self._store.watch(_REPORTS, tell)

    def look_again(self) -> None:
        """Has those that wait read the reports again."""
        with self._changed:
            self._changed.notify_all()

    # By anybody

    def generations(self, application: ApplicationId) -> list[int]:
        """The generation that each process serves; 0 for one that serves none of the application."""
        return [report.serves for report in self._reports(application).values()]

    def services(self, application: ApplicationId) -> list[ServiceAddress]:
        """The services of the application in all processes."""
        return [service for report in self._reports(application).values() for service in report.services]

    def _reports(self, application: ApplicationId) -> dict[str, Report]:
        """The reports of the processes that serve, by process; an empty one of a process that has said nothing yet."""
        reports = {}
        for process in (key.removeprefix(_PROCESSES) for key in self._store.announced(_PROCESSES)):
            key = _report_key(process, application)
            value = self._store.announced(key).get(key)
            reports[process] = decode(value, type=Report) if value is not None else Report()
        return reports

    # By a process that serves

    def join(self, process: str) -> None:
        """Config servers wait for the process from now on."""
        self._store.announce(_PROCESSES + process, b"")

    def leave(self, process: str) -> None:
        """Nobody waits for the process any more."""
        self._store.announce(_PROCESSES + process, None)
        for key in self._store.announced(f"{_REPORTS}{process}/"):
            self._store.announce(key, None)

    def proposal(self, application: ApplicationId) -> Proposal | None:
        """Return the proposal for the application, if there is one."""
        key = _PROPOSALS + application.key
        value = self._store.announced(key).get(key)
        return decode(value, type=Proposal) if value is not None else None

    def proposed(self) -> list[ApplicationId]:
        """The applications for which something is proposed."""
        return [ApplicationId.from_key(key.removeprefix(_PROPOSALS)) for key in self._store.announced(_PROPOSALS)]

    def watch_proposals(self, look: Callable[[ApplicationId, bool], None]) -> Callable[[], None]:
        """Calls `look` with each application whose proposal changes, and whether it was withdrawn; call the result to
        stop."""
        return self._store.watch(
            _PROPOSALS, lambda key, entry: look(ApplicationId.from_key(key.removeprefix(_PROPOSALS)), entry is None)
        )

    def report(self, process: str, application: ApplicationId, report: Report | None) -> None:
        """Says how far the process is; None: nothing is left of the application in it."""
        value = None if report is None else _JSON.encode(report)
        self._store.announce(_report_key(process, application), value)


def _none(reports: Mapping[str, Report]) -> list[str]:
    """Stands for the processes that are missing where none has joined: what nobody serves is not served by all."""
    return [] if reports else ["(none has joined)"]


def _number() -> str:
    return os.urandom(8).hex()


def _report_key(process: str, application: ApplicationId) -> str:
    return f"{_REPORTS}{process}/{application.key}"
