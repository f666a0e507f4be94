"""Preparing a session: its package is read, built into a model, and compared with what is active.

Called with the application's lock held. Nothing here changes what runs.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime

from paperwasp.application.changes.found import Changes
from paperwasp.application.model import ApplicationModel
from paperwasp.base.env import Environment
from paperwasp.base.records import dataclass
from paperwasp.configserver.convergence import Convergence
from paperwasp.configserver.deadline import Deadline
from paperwasp.configserver.models import Models, Packages
from paperwasp.configserver.names import ApplicationId
from paperwasp.configserver.repository import SessionRepository
from paperwasp.configserver.running import RunningApplications
from paperwasp.configserver.sessions import Event, Session
from paperwasp.errors import Finding, InvalidInput, InvalidPackage


@dataclass(frozen=True, slots=True)
class PrepareOptions:
    """The options of a preparation. `application` None: the one that the session belongs to."""

    application: ApplicationId | None = None
    dry_run: bool = False
    ignore_validation_errors: bool = False
    force: bool = False


@dataclass(frozen=True, slots=True)
class Prepared:
    """The outcome of a preparation."""

    session: Session
    findings: tuple[Finding, ...] = ()
    changes: Changes = Changes()


class Preparation:
    """Checks the packages of sessions, by themselves and against what is active."""

    def __init__(
        self,
        sessions: SessionRepository,
        packages: Packages,
        models: Models,
        applications: RunningApplications,
        convergence: Convergence,
        environment: Environment,
    ) -> None:
        self._sessions = sessions
        self._packages = packages
        self._models = models
        self._applications = applications
        self._convergence = convergence
        self._environment = environment

    def prepare(self, session: Session, options: PrepareOptions, deadline: Deadline) -> Prepared:
        """Errors: Conflict for a session that is or was active, NotFound for the tenant, DeployTimeout, InvalidPackage
        with everything that is wrong."""
        ignore = options.ignore_validation_errors
        prepared = replace(session.after(Event.PREPARE), ignore_validation_errors=ignore)
        self._sessions.check_tenant(session.application.tenant)
        self._packages.of(session)
        deadline.check()
        model = self._models.of_session(session, session.application, deadline)
        deadline.check()
        changes = self.checked_changes(prepared, model)
        self._convergence.check(prepared, deadline)
        deadline.check()
        if not options.dry_run:
            prepared = self._sessions.save(prepared)
        return Prepared(prepared, model.findings, changes)

    def checked_changes(self, session: Session, model: ApplicationModel) -> Changes:
        """The changes from the active application. Errors: InvalidPackage for one that no override allows."""
        from paperwasp.application.changes.find import find_changes
        from paperwasp.application.changes.found import describe_refusals

        before = self._active_model(session)
        if before is None or before is model:
            return Changes()
        changes = find_changes(before, model)
        refused = changes.find_refused(model.overrides, self._today(), session.ignore_validation_errors)
        if refused:
            raise InvalidPackage(f"Invalid application package: {describe_refusals(refused)}")
        return changes

    def _active_model(self, session: Session) -> ApplicationModel | None:
        """The model that the session's is to replace. Errors: InvalidPackage where it cannot be built any more."""
        application = session.application
        if application not in self._applications.left_out:
            running = self._applications.running.get(application)
            return running.model if running else None
        try:
            return self._models.of_session(self._sessions.active_session(application), application)
        except InvalidInput as error:
            if session.ignore_validation_errors:
                return None
            unknown = f"What is lost with the active package of {application} is unknown, since it is not valid"
            raise InvalidPackage(
                f"{unknown} any more; ignoreValidationErrors=true replaces it: {error.message}"
            ) from error

    def _today(self) -> date:
        return datetime.fromtimestamp(self._environment.now_seconds(), UTC).date()
