"""The config server: takes packages, makes them sessions, and says which applications the service runs.

Nothing here knows HTTP. Any thread may call; one step at a time is taken for an application, those of different
applications do not wait for each other, and reading waits for nobody. The order of an activation: the choice is made
durable first, then the service is reconfigured; if that fails, the choice is taken back. A crash in between is
finished by `restore` at the next start.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from types import MappingProxyType
from typing import Final

from paperwasp.application.changes.found import Changes
from paperwasp.application.model import ApplicationModel, empty_model
from paperwasp.application.package import ApplicationPackage, read_package
from paperwasp.cluster.config_store import ConfigStore
from paperwasp.configserver.deadline import ApplicationLocks, Deadline
from paperwasp.configserver.editing import Edit
from paperwasp.configserver.models import BuildModel, Models, Packages
from paperwasp.configserver.names import ApplicationId
from paperwasp.configserver.reindexer import ReindexChunk, Reindexer, no_chunks
from paperwasp.configserver.reindexing import ApplicationReindexing, ReindexingRepository
from paperwasp.configserver.repository import SessionRepository
from paperwasp.configserver.sessions import Active, Event, Session, check_fresh
from paperwasp.env import SYSTEM, Environment
from paperwasp.errors import (
    Conflict,
    Finding,
    InvalidInput,
    InvalidPackage,
    LockFailure,
    NoSpace,
    NotFound,
    PaperwaspError,
    failure,
)

_log = logging.getLogger(__name__)

PREPARE_SECONDS: Final = 60.0
ACTIVATE_SECONDS: Final = 120.0
"""How long the steps may take where the caller does not say."""


@dataclass(frozen=True, slots=True)
class Activation:
    """The configuration of the service from now on for an application. `model` is empty after it was deleted.

    Documents of content clusters that the model has not are to be deleted. The same activation may be delivered again
    after a restart.
    """

    generation: int
    application: ApplicationId
    model: ApplicationModel
    previous_generation: int = 0
    is_deletion: bool = False


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
    changes: Changes = Changes()  # noqa: RUF009 — frozen


Activate = Callable[[Activation], None]
Check = Callable[[ApplicationId, ApplicationModel], None]
ReindexingChange = Callable[[ApplicationReindexing, int], ApplicationReindexing]
"""(the reindexing of an application, the time in milliseconds) → what it shall be."""


class ConfigServer:
    """Tenants, sessions, and the active applications.

    `build_model` makes a package a model or raises InvalidPackage. `activate` reconfigures the service in this
    process for one application; when it returns, that is what clients meet, and when it raises, what was before still
    is. `reindex_chunk` has a content cluster index documents again (see `reindexer`).
    """

    def __init__(
        self,
        store: ConfigStore,
        build_model: BuildModel,
        activate: Activate,
        *,
        check: Check = lambda application, model: None,
        reindex_chunk: ReindexChunk = no_chunks,
        environment: Environment = SYSTEM,
    ) -> None:
        """`check` raises where this process could not run that model of the application now; it changes nothing."""
        self._check = check
        self._sessions = SessionRepository(store)
        self._models = Models(build_model, environment)
        self._packages = Packages()
        self._activate = activate
        self._environment = environment
        self._locks = ApplicationLocks()
        self._memory_lock = threading.Lock()
        self._running: Mapping[ApplicationId, Activation] = MappingProxyType({})
        self._wanted: Mapping[ApplicationId, int] = MappingProxyType({})
        self._left_out: Mapping[ApplicationId, str] = MappingProxyType({})
        self._reindexing = ReindexingRepository(store)
        self._reindexer = Reindexer(self._reindexing, self._running_models, reindex_chunk, environment)

    # What runs. These read memory only and may be called on any thread at any time.

    @property
    def running(self) -> Mapping[ApplicationId, Activation]:
        """The activations that the service is configured with, by application."""
        return self._running

    @property
    def left_out(self) -> Mapping[ApplicationId, str]:
        """The applications that are active, but could not be restored at the start, each with the reason."""
        return self._left_out

    def active_applications(self) -> list[ApplicationId]:
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

    def _running_models(self) -> Mapping[ApplicationId, ApplicationModel]:
        return {application: activation.model for application, activation in self._running.items()}

    # Starting and stopping

    def restore(self) -> None:
        """Brings back all that was active before the restart, oldest generation first. Call once, before serving.

        An application whose package or ports are in its way is left out: others serve, and it can be deployed again.
        Errors: whatever else activating one raises, since damaged data and full disks are for a person to mend first.
        """
        self._sessions.check_complete()
        self._sessions.sweep()
        for active in self._sessions.all_active():
            if active.session_id is None:
                self._run(Activation(active.generation, active.application, empty_model(), is_deletion=True))
                self._forget(active.application)
                continue
            try:
                self._restore(active, self._sessions.get(active.application.tenant, active.session_id))
            except (InvalidInput, Conflict) as error:
                _log.error("Application %s could not be restored: %s", active.application, error.message)
                self._want(active.application, active.generation)
                self._left_out = MappingProxyType({**self._left_out, active.application: error.message})

    def _restore(self, active: Active, session: Session) -> None:
        model = self._models.of(self.package(session), active.application)
        self._run(Activation(active.generation, active.application, model, active.previous_generation))
        self._sessions.record_activated(session)
        self._reindex_ready(active.application)

    def start(self) -> None:
        """Begins to reindex what is to be."""
        self._reindexer.start()

    def close(self) -> None:
        """Ends reindexing, after the chunk that is under way; deployments that wait for their turn give up."""
        self._locks.close()
        self._reindexer.stop()

    # Tenants

    def tenants(self) -> list[str]:
        return self._sessions.tenants()

    def check_tenant(self, tenant: str) -> None:
        """Errors: NotFound."""
        self._sessions.check_tenant(tenant)

    def add_tenant(self, tenant: str) -> None:
        """Errors: InvalidInput for one that there is already, and for a name that it may not have."""
        self._sessions.add_tenant(tenant)

    def remove_tenant(self, tenant: str) -> None:
        """Errors: NotFound; InvalidInput while it has applications."""
        self._sessions.remove_tenant(tenant)

    # Deploying

    def create(self, content: bytes, application: ApplicationId = ApplicationId()) -> Session:  # noqa: B008 — frozen
        """A new session with the package in that archive. Errors: UnreadablePackage, NotFound for the tenant."""
        package = read_package(content)
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
        with self._locks.hold(self.session(tenant, session_id).application, deadline):
            session = self.session(tenant, session_id)
            edited = session.after(Event.EDIT)
            package, directories = edit(self.package(session), session.directories)
            deadline.commit()
            content = package.to_zip()
            read_package(content)  # what cannot be read again is not kept
            return self._sessions.save_package(replace(edited, directories=directories), content)

    def prepare(
        self,
        tenant: str,
        session_id: int,
        options: PrepareOptions = PrepareOptions(),
        deadline: Deadline | None = None,
    ) -> Prepared:
        """Checks the package of the session, by itself and against what is active.

        Errors: NotFound, Conflict for a session that is or was active, LockFailure, DeployTimeout, InvalidPackage
        with everything that is wrong.
        """
        deadline = deadline or self._deadline(PREPARE_SECONDS)
        application = options.application or self.session(tenant, session_id).application
        with self._locks.hold(application, deadline):
            session = self.session(tenant, session_id)
            return self._prepare(replace(session, application=application), options, deadline)

    def activate(
        self, tenant: str, session_id: int, force: bool = False, deadline: Deadline | None = None
    ) -> tuple[Session, Activation]:
        """Makes the session's package the active one of its application.

        Errors: NotFound; InvalidInput where it is not prepared; Conflict where something else was activated since it
        was created (unless `force`), where a younger one is active, or where it is active itself; LockFailure;
        DeployTimeout.
        """
        deadline = deadline or self._deadline(ACTIVATE_SECONDS)
        application = self.session(tenant, session_id).application
        with self._locks.hold(application, deadline):
            session = self.session(tenant, session_id)
            if session.application != application:
                raise LockFailure(f"Session {session.id} is being processed by another request")
            return self._activate_session(session, force, deadline)

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
            prepared = self._prepare(session, options, deadline)
            if options.dry_run:
                return prepared, None
            try:
                activated, _ = self._activate_session(prepared.session, options.force, deadline)
            except PaperwaspError as error:
                return prepared, error
            return replace(prepared, session=activated), None

    def delete_application(self, application: ApplicationId, deadline: Deadline | None = None) -> None:
        """Stops serving the application and deletes its documents. Errors: NotFound, LockFailure."""
        deadline = deadline or self._deadline(ACTIVATE_SECONDS)
        if application not in self.active_applications():
            raise NotFound(f"Unable to delete {application}: Not found")
        with self._locks.hold(application, deadline):
            active, revision = self._sessions.active(application)
            if active is None or active.session_id is None:
                raise NotFound(f"Unable to delete {application}: Not found")
            deadline.commit()
            number = self._sessions.next_number()
            chosen = Active(number, None, application, number, active.generation)
            deletion = Activation(number, application, empty_model(), is_deletion=True)
            self._switch(chosen, revision, active, deletion)
            self._forget(application)
            _log.info("Deleted application %s", application)
            self._sessions.delete(self.session(application.tenant, active.session_id))
            self._sessions.sweep()

    def between_deployments(self, application: ApplicationId, call: Callable[[], None], deadline: Deadline) -> None:
        """Makes a call that no deployment of the application gets into. Errors: NotFound, LockFailure, the call's."""
        with self._locks.hold(application, deadline):
            self.running_of(application)
            deadline.commit()
            call()

    # Reading

    def session(self, tenant: str, session_id: int) -> Session:
        """Errors: NotFound."""
        return self._sessions.get(tenant, session_id)

    def sessions_of(self, tenant: str) -> list[int]:
        """The sessions that there are."""
        return self._sessions.ids(tenant)

    def package(self, session: Session) -> ApplicationPackage:
        """The files of a session. Errors: NotFound, Corruption."""
        return self._packages.of(session.blob, lambda: read_package(self._sessions.package(session)))

    def active_session(self, application: ApplicationId) -> Session:
        """The session of an application that runs. Errors: NotFound."""
        return self._sessions.active_session(application)

    # Reindexing

    def reindexing(self, application: ApplicationId) -> ApplicationReindexing:
        """Errors: NotFound for an application that does not run."""
        self.running_of(application)
        return self._reindexing.get(application)

    def change_reindexing(self, application: ApplicationId, change: ReindexingChange) -> None:
        """Makes a change, and sees to what follows from it. Errors: NotFound."""
        self.running_of(application)
        self._reindexing.update(application, lambda reindexing: change(reindexing, self._now_ms()))
        self._reindexer.wake()

    def _reindex_ready(self, application: ApplicationId) -> None:
        """Makes the runs ready that waited for the generation that is active now."""
        running = self._running[application]
        self.change_reindexing(
            application, lambda found, now: found.with_active(running.generation, running.model, now)
        )

    # The steps, with the application's lock held

    def _prepare(self, session: Session, options: PrepareOptions, deadline: Deadline) -> Prepared:
        ignore = options.ignore_validation_errors
        prepared = replace(session.after(Event.PREPARE), ignore_validation_errors=ignore)
        self._sessions.check_tenant(session.application.tenant)
        package = self.package(session)
        deadline.check()
        model = self._models.of(package, session.application)
        deadline.check()
        changes = self._checked_changes(prepared, model)
        self._check(session.application, model)
        deadline.check()
        if not options.dry_run:
            prepared = self._sessions.save(prepared)
        return Prepared(prepared, model.findings, changes)

    def _checked_changes(self, session: Session, model: ApplicationModel) -> Changes:
        """The changes from the active application. Errors: InvalidPackage for one that no override allows."""
        from paperwasp.application.changes.descriptions import describe_refusals
        from paperwasp.application.changes.find import find_changes

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
        if application not in self._left_out:
            running = self._running.get(application)
            return running.model if running else None
        try:
            return self._models.of(self.package(self.active_session(application)), application)
        except InvalidInput as error:
            if session.ignore_validation_errors:
                return None
            unknown = f"What is lost with the active package of {application} cannot be told, since it is not valid"
            raise InvalidPackage(
                f"{unknown} any more; ignoreValidationErrors=true replaces it: {error.message}"
            ) from error

    def _activate_session(self, session: Session, force: bool, deadline: Deadline) -> tuple[Session, Activation]:
        activated = replace(session.after(Event.ACTIVATE), activated_ms=self._now_ms())
        application = session.application
        active, revision = self._sessions.active(application)
        check_fresh(session, active, force)
        model = self._models.of(self.package(session), application)
        changes = self._checked_changes(session, model)
        previous = active.generation if active else 0
        activation = Activation(session.id, application, model, previous)
        deadline.commit()
        causes = {(a.cluster, a.document_type): "; ".join(a.messages) for a in changes.of_kind("reindex")}
        if causes:
            self._reindexing.update(application, lambda found: found.with_scheduled(causes, session.id))
        chosen = Active(session.id, session.id, application, self._sessions.last_number(), previous)
        self._switch(chosen, revision, active, activation)
        _log.info("Activated session %d of application %s", session.id, application)
        self._sessions.record_activated(activated)
        self._reindex_ready(application)
        return activated, activation

    def _switch(self, chosen: Active, revision: int, before: Active | None, activation: Activation) -> None:
        """Makes the choice durable, then real; takes it back where that fails."""
        new_revision = self._sessions.set_active(chosen, revision)
        try:
            self._run(activation)
        except Exception as error:
            try:
                self._undo(chosen, before, new_revision)
            except Exception:
                _log.exception("Generation %d cannot be taken back: the next start tries it again", chosen.generation)
            if isinstance(error, PaperwaspError) and not isinstance(error, NoSpace):
                raise
            _log.exception("Activating generation %d of %s failed", activation.generation, activation.application)
            raise failure(error, f"Activating generation {activation.generation} failed: ") from error

    def _undo(self, chosen: Active, before: Active | None, revision: int) -> None:
        self._want(chosen.application, before.generation if before else 0)
        if before is None:
            self._sessions.clear_active(chosen.application)
        else:
            self._sessions.set_active(before, revision)
        self._reindexing.update(chosen.application, lambda found: replace(found, scheduled={}))

    def _run(self, activation: Activation) -> None:
        self._want(activation.application, activation.generation)
        self._activate(activation)
        if activation.is_deletion:
            self._want(activation.application, 0)
        with self._memory_lock:
            running = {**self._running, activation.application: activation}
            if activation.is_deletion:
                del running[activation.application]
            self._running = MappingProxyType(running)
            left_out = {name: why for name, why in self._left_out.items() if name != activation.application}
            self._left_out = MappingProxyType(left_out)

    def _want(self, application: ApplicationId, generation: int) -> None:
        with self._memory_lock:
            wanted = {**self._wanted, application: generation}
            self._wanted = MappingProxyType({name: number for name, number in wanted.items() if number})

    def _forget(self, application: ApplicationId) -> None:
        """Nothing is left of an application whose documents are gone."""
        self._reindexing.delete(application)
        self._sessions.clear_active(application)

    def _deadline(self, seconds: float) -> Deadline:
        return Deadline(seconds, self._environment)

    def _now_ms(self) -> int:
        return self._environment.time_ns() // 1_000_000

    def _today(self) -> date:
        return datetime.fromtimestamp(self._environment.now_seconds(), UTC).date()
