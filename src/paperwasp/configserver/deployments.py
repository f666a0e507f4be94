"""The steps of a deployment: create, edit, prepare, activate, delete.

Any thread may call. One step at a time is taken for an application; those of different applications do not wait for
each other. `create` and `create_from` wait for nobody: they change no other session.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from paperwasp.base.env import Environment
from paperwasp.base.records import replace
from paperwasp.base.yielding import computing_alone
from paperwasp.configserver.activations import Activations
from paperwasp.configserver.deadline import Deadline
from paperwasp.configserver.editing import Edit
from paperwasp.configserver.preparation import Packages, Preparation, Prepared, PrepareOptions
from paperwasp.configserver.repository import ApplicationId, Event, Session, SessionRepository
from paperwasp.configserver.running import Activation, RunningApplications
from paperwasp.configserver.workers import ApplicationLocks
from paperwasp.errors import LockFailure, NotFound, PaperwaspError

PREPARE_SECONDS: Final = 60.0
ACTIVATE_SECONDS: Final = 120.0
"""How long the steps may take where the caller does not say."""


class Deployments:
    """Takes packages, and carries them through the states of a session: each step that changes a session, or what is
    active, with its application's lock."""

    def __init__(
        self,
        sessions: SessionRepository,
        packages: Packages,
        applications: RunningApplications,
        preparation: Preparation,
        activations: Activations,
        environment: Environment,
    ) -> None:
        self._sessions = sessions
        self._packages = packages
        self._applications = applications
        self._preparation = preparation
        self._activations = activations
        self._environment = environment
        self._locks = ApplicationLocks()

    def create(self, content: bytes, application: ApplicationId = ApplicationId()) -> Session:  # noqa: B008 — frozen
        """A new session with the package in that archive. Errors: UnreadablePackage, NotFound for the tenant."""
        package = self._packages.read(content)
        self._sessions.check_tenant(application.tenant)
        session = self._sessions.create(content, application, self._now_ms())
        self._packages.keep(session.blob, package)
        return session

    def create_from(self, source: ApplicationId) -> Session:
        """A new session with the package of an active application. Errors: NotFound."""
        return self._sessions.copy(source, source, self._now_ms())

    def edit(self, tenant: str, session_id: int, edit: Edit, deadline: Deadline | None = None) -> Session:
        """Changes the files of a session, which has to be prepared again then.

        Errors: NotFound, Conflict for a session that is or was active, and what the edit raises.
        """
        deadline = deadline or self._deadline(PREPARE_SECONDS)
        with self._locks.hold(self._sessions.get(tenant, session_id).application, deadline):
            session = self._sessions.get(tenant, session_id)
            edited = session.after(Event.EDIT)
            package, directories = edit(self._packages.of(session), session.directories)
            deadline.commit()
            with computing_alone():
                content = package.to_zip()
            self._packages.read(content)  # what cannot be read again is not kept
            return self._sessions.save_package(replace(edited, directories=directories), content)

    def prepare(
        self,
        tenant: str,
        session_id: int,
        options: PrepareOptions = PrepareOptions(),  # noqa: B008 — frozen
        deadline: Deadline | None = None,
    ) -> Prepared:
        """Checks the package of the session, by itself and against what is active.

        Errors: NotFound, Conflict for a session that is or was active, LockFailure, DeployTimeout, InvalidPackage
        with everything that is wrong.
        """
        deadline = deadline or self._deadline(PREPARE_SECONDS)
        application = options.application or self._sessions.get(tenant, session_id).application
        with self._locks.hold(application, deadline):
            session = self._sessions.get(tenant, session_id)
            return self._preparation.prepare(replace(session, application=application), options, deadline)

    def activate(
        self, tenant: str, session_id: int, force: bool = False, deadline: Deadline | None = None
    ) -> tuple[Session, Activation]:
        """Makes the session's package the active one of its application.

        Errors: NotFound; InvalidInput where it is not prepared; Conflict where something else was activated since it
        was created (unless `force`), where a younger one is active, or where it is active itself; LockFailure;
        DeployTimeout.
        """
        deadline = deadline or self._deadline(ACTIVATE_SECONDS)
        application = self._sessions.get(tenant, session_id).application
        with self._locks.hold(application, deadline):
            session = self._sessions.get(tenant, session_id)
            if session.application != application:
                raise LockFailure(f"Session {session.id} is being processed by another request")
            return self._activations.activate(session, force, deadline)

    def prepare_and_activate(
        self,
        content: bytes,
        options: PrepareOptions = PrepareOptions(application=ApplicationId()),  # noqa: B008 — frozen
        deadline: Deadline | None = None,
    ) -> tuple[Prepared, PaperwaspError | None]:
        """Creates, prepares and activates in one step that no other deployment of the application gets into.

        The error is that of an activation that failed after a preparation that did not.
        Errors: as `create` and `prepare`.
        """
        deadline = deadline or self._deadline(PREPARE_SECONDS)
        application = options.application or ApplicationId()
        with self._locks.hold(application, deadline):
            session = self.create(content, application)
            prepared = self._preparation.prepare(session, options, deadline)
            if options.dry_run:
                return prepared, None
            try:
                activated, _ = self._activations.activate(prepared.session, options.force, deadline)
            except PaperwaspError as error:
                return prepared, error
            return replace(prepared, session=activated), None

    def delete_application(self, application: ApplicationId, deadline: Deadline | None = None) -> None:
        """Stops serving the application and deletes its documents. Errors: NotFound, LockFailure."""
        deadline = deadline or self._deadline(ACTIVATE_SECONDS)
        if application not in self._applications.active():
            raise NotFound(f"Unable to delete {application}: Not found")
        with self._locks.hold(application, deadline):
            self._activations.delete(application, deadline)

    def between_deployments(self, application: ApplicationId, call: Callable[[], None], deadline: Deadline) -> None:
        """Makes a call that no deployment of the application gets into. Errors: NotFound, LockFailure, the call's."""
        with self._locks.hold(application, deadline):
            self._applications.running_of(application)
            deadline.commit()
            call()

    def catch_up(self, application: ApplicationId) -> None:
        """Takes up what is active of an application once it is served, where that could not be at first.

        Errors: LockFailure; those of finishing the activation.
        """
        if application in self._activations.unfinished:
            with self._locks.hold(application, self._deadline(ACTIVATE_SECONDS)):
                self._activations.catch_up(application)

    def close(self) -> None:
        """Takes no more steps; those that wait for their turn give up."""
        self._locks.close()

    def _deadline(self, seconds: float) -> Deadline:
        return Deadline(seconds, self._environment)

    def _now_ms(self) -> int:
        return self._environment.time_ns() // 1_000_000
