"""Has this process serve what the config store says is active: watches it, changes what runs, reports how far it is.

Nobody calls a process to activate something. It is told that a key has changed, and then reads what the store holds
now: the active generation of the application, and what is proposed for it (`configserver.convergence`). So to be told
late, twice or not at all does no harm, and a start is nothing but a change from no generation to the active one.
Generations only rise: one that is not newer than what is served is left alone. One that is active and could not be
served, for want of room on the disk perhaps, is reported as failed and tried again, with pauses that double.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from paperwasp import limits
from paperwasp.application.model import empty_model
from paperwasp.base.env import SYSTEM, Environment
from paperwasp.base.threads import ThreadPool
from paperwasp.base.yielding import yielding_to_requests
from paperwasp.configserver import Activation, ApplicationId
from paperwasp.configserver.convergence import Convergence, Proposal, Report
from paperwasp.configserver.preparation import Models
from paperwasp.configserver.repository import Active, SessionRepository
from paperwasp.coordination.messages.failures import Refused, refused
from paperwasp.errors import Conflict, InvalidInput, NoSpace, PaperwaspError, failure
from paperwasp.server.roles.applications import Applications, StagedGeneration

_LOG: Final = logging.getLogger("paperwasp.service")


class _Followed(Struct):
    """The state of an application in this process."""

    report: Report = Report()
    staged: StagedGeneration | None = None
    pause_seconds: float = 0.0
    """How long the failed generation is left alone; 0: none has failed."""
    retry_ns: int = 0
    """When it is tried again."""
    serves_nothing: bool = True
    """Whether nothing of it runs here: it was not served yet, or is deleted."""


class ConfigFollower:
    """Follows the config store for one process. One change at a time of an application; any threads."""

    def __init__(
        self,
        process: str,
        sessions: SessionRepository,
        models: Models,
        convergence: Convergence,
        applications: Applications,
        environment: Environment = SYSTEM,
    ) -> None:
        """`process`: the name by which it is known in the store."""
        self._process = process
        self._sessions = sessions
        self._models = models
        self._convergence = convergence
        self._applications = applications
        self._environment = environment
        self._threads = ThreadPool("follower", limits.TENANT_DEPLOYMENTS * limits.TENANTS)
        self._lock = threading.Lock()
        self._followed: dict[ApplicationId, _Followed] = {}
        self._busy: set[ApplicationId] = set()
        self._told: set[ApplicationId] = set()
        """Those of the busy ones of which something has changed since they were looked at."""
        self._stops: list[Callable[[], None]] = []
        self._closed = threading.Event()

    def start(self) -> None:
        """Serves all that is active, oldest generation first, and follows from then on. Call once.

        An application whose package or ports are in its way is left out, which is reported.
        Errors: Corruption where the store has lost what is active; whatever else serving one raises, since damaged data
        and full disks are for a person to mend first.
        """
        self._sessions.check_complete()
        for active in self._sessions.all_active():
            followed = self._followed.setdefault(active.application, _Followed())
            try:
                self._serve(active, followed)
            except (InvalidInput, Conflict) as error:
                if active.session_id is None:
                    raise
                _LOG.error("Application %s could not be restored: %s", active.application, error.message)
                self._fail(active, followed, error)
        self._convergence.join(self._process)
        self._stops += [
            self._sessions.watch_active(self.look),
            self._convergence.watch_proposals(self._look_at_proposal),
        ]
        self.look_at_all()

    def look_from_time_to_time(self, look_too: Callable[[], None]) -> None:
        """Has all applications be looked at now and then, until this is closed: a store elsewhere may lose to tell.

        `look_too` is called then, too.
        """

        def look() -> None:
            while not self._closed.wait(limits.CONFIG_RESYNC_SECONDS):
                try:
                    self.look_at_all()
                    look_too()
                except Exception:
                    _LOG.exception("What the config store says could not be read")

        threading.Thread(target=look, name="follower", daemon=True).start()

    def close(self) -> None:
        """Follows no more, once the changes under way are made."""
        for stop in self._stops:
            stop()
        with self._lock:
            self._closed.set()
        self._threads.shutdown()
        self._convergence.leave(self._process)

    # Being told

    def look_at_all(self) -> None:
        """Looks at all applications soon."""
        active = [active.application for active in self._sessions.all_active()]
        for application in {*active, *self._convergence.proposed(), *list(self._followed)}:
            self.look(application)

    def look(self, application: ApplicationId) -> None:
        """Looks at the application soon, on a thread; never waits."""
        with self._lock:
            if self._closed.is_set():
                return
            if application in self._busy:
                self._told.add(application)
                return
            try:
                self._threads.submit(self._follow, application)  # which takes it out of the busy ones under this lock
            except RuntimeError:
                _LOG.exception("No thread could be made to follow application %s: it is looked at later", application)
            else:
                self._busy.add(application)

    def _look_at_proposal(self, application: ApplicationId, is_withdrawn: bool) -> None:
        """A proposal that is withdrawn matters only where it was staged, or where nothing is served."""
        if is_withdrawn:
            with self._lock:
                followed = self._followed.get(application)
                is_idle = application not in self._busy
                if is_idle and (followed is None or (followed.staged is None and not followed.serves_nothing)):
                    return
        self.look(application)

    def _follow(self, application: ApplicationId) -> None:
        is_told = True
        while is_told:
            try:
                with yielding_to_requests():
                    self._look(application)
            except Exception as error:
                _LOG.exception("What the config store says of application %s could not be followed", application)
                self._refuse(application, error)
            with self._lock:
                is_told = application in self._told
                self._told.discard(application)
                if not is_told:
                    self._busy.discard(application)

    def _refuse(self, application: ApplicationId, error: Exception) -> None:
        """Answers what is proposed, if it is not answered yet, with the error that keeps this process from looking."""
        try:
            proposal = self._convergence.proposal(application)
            followed = self._followed.setdefault(application, _Followed())
            if proposal is not None and proposal.number != followed.report.answers:
                report = replace(followed.report, answers=proposal.number, refusal=refused(error))
                self._report(application, followed, report)
        except Exception:
            _LOG.exception("What is proposed for application %s could not be answered", application)

    # Changing what runs

    def _look(self, application: ApplicationId) -> None:
        followed = self._followed.setdefault(application, _Followed())
        active, _ = self._sessions.active(application)
        if active is not None and self._is_due(active, followed):
            try:
                self._serve(active, followed)
            except Exception as error:
                self._fail(active, followed, self._shown(error, active.generation, application))
        proposal = self._convergence.proposal(application)
        if followed.staged is not None and (proposal is None or proposal.number != followed.report.answers):
            self._abandon(followed)
        if proposal is not None and proposal.number != followed.report.answers:
            self._answer(proposal, followed)
        if active is None and proposal is None and followed.serves_nothing:
            del self._followed[application]
            self._convergence.report(self._process, application, None)

    def _is_due(self, active: Active, followed: _Followed) -> bool:
        """Whether to serve what is active now: newer than what is served, and not failed just now."""
        if active.generation == followed.report.failed:
            return followed.staged is None and self._environment.monotonic_ns() >= followed.retry_ns
        return active.generation > followed.report.serves

    def _serve(self, active: Active, followed: _Followed) -> None:
        """Serve what is active, staged already or not. Errors: those of staging it and of changing to it; then what was
        served before still is."""
        change = followed.staged
        if change is None or change.activation.generation != active.generation:
            self._abandon(followed)
            change = self._applications.stage(
                self._activation(active.application, active.generation, active.session_id, active.previous_generation)
            )
        followed.staged = None
        self._applications.commit(change)
        followed.serves_nothing = active.session_id is None
        followed.pause_seconds = 0.0
        services = tuple(self._applications.services(active.application))
        report = replace(followed.report, serves=active.generation, services=services, failed=0, failure=None)
        self._report(active.application, followed, report)

    def _answer(self, proposal: Proposal, followed: _Followed) -> None:
        """Check or stage what is proposed, and report how that went."""
        refusal: Refused | None = None
        try:
            activation = self._activation(
                proposal.application, proposal.generation, proposal.session_id, proposal.previous_generation
            )
            if proposal.step == "check":
                self._applications.check(proposal.application, activation.model)
            elif proposal.generation > followed.report.serves:
                followed.staged = self._applications.stage(activation)
        except Exception as found:
            refusal = refused(self._shown(found, proposal.generation, proposal.application))
        report = replace(followed.report, answers=proposal.number, refusal=refusal)
        self._report(proposal.application, followed, report)

    def _abandon(self, followed: _Followed) -> None:
        change, followed.staged = followed.staged, None
        if change is not None:
            self._applications.abandon(change)

    def _activation(
        self, application: ApplicationId, generation: int, session_id: int | None, previous: int
    ) -> Activation:
        """Errors: NotFound, Corruption, InvalidPackage."""
        if session_id is None:
            return Activation(generation, application, empty_model(), is_deletion=True)
        session = self._sessions.get(application.tenant, session_id)
        return Activation(generation, application, self._models.of_session(session, application), previous)

    def _fail(self, active: Active, followed: _Followed, error: PaperwaspError) -> None:
        """Reports that what is active cannot be served, and has it tried again after a pause."""
        first, longest = limits.SERVE_RETRY_FIRST_SECONDS, limits.SERVE_RETRY_LONGEST_SECONDS
        is_first = active.generation != followed.report.failed
        followed.pause_seconds = first if is_first else min(2 * followed.pause_seconds, longest)
        followed.retry_ns = self._environment.monotonic_ns() + int(followed.pause_seconds * 1e9)
        report = replace(followed.report, failed=active.generation, failure=refused(error))
        self._report(active.application, followed, report)

    def _report(self, application: ApplicationId, followed: _Followed, report: Report) -> None:
        followed.report = report
        self._convergence.report(self._process, application, report)

    def _shown(self, error: Exception, generation: int, application: ApplicationId) -> PaperwaspError:
        """The error as it is reported; one that nobody has foreseen is logged here, where it came from."""
        if isinstance(error, PaperwaspError) and not isinstance(error, NoSpace):
            return error
        _LOG.error("Activating generation %d of %s failed", generation, application, exc_info=error)
        return failure(error, f"Activating generation {generation} failed: ")
