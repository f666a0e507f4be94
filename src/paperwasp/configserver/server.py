"""The config server: takes packages, makes them sessions, and says which application the service runs.

Nothing here knows HTTP. One deployment step runs at a time (a lock); any thread may call. The order of an activation:
the choice is made durable first, then the service is reconfigured; if that fails, the choice is taken back. A crash in
between is finished by `restore` at the next start.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final

from paperwasp.application.changes import refused_changes
from paperwasp.application.model import ApplicationModel
from paperwasp.application.package import ApplicationPackage, read_package
from paperwasp.application.services import Note
from paperwasp.cluster.config_store import ConfigStore
from paperwasp.configserver.sessions import Active, ApplicationId, Event, Session, SessionRepository, State
from paperwasp.env import SYSTEM, Environment
from paperwasp.errors import Conflict, InternalError, InvalidPackage, NotFound, PaperwaspError

_log = logging.getLogger(__name__)

EMPTY_MODEL: Final = ApplicationModel((), (), MappingProxyType({}), (), "")
"""The application of a service that has none."""


@dataclass(frozen=True, slots=True)
class Activation:
    """What the service shall be from now on. `model` is EMPTY_MODEL after the application was deleted.

    The documents of `removed_clusters` are to be deleted. The same activation may be delivered again after a restart.
    """

    generation: int
    application: ApplicationId
    model: ApplicationModel
    removed_clusters: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Prepared:
    """The outcome of a preparation."""

    session: Session
    notes: tuple[Note, ...]


BuildModel = Callable[[ApplicationPackage], ApplicationModel]
Activate = Callable[[Activation], None]


class ConfigServer:
    """Sessions, and the active application.

    `build_model` makes a package a model or raises InvalidPackage. `activate` reconfigures the service in this process;
    when it returns, the new application is what clients meet, and when it raises, the old one still is.
    """

    def __init__(
        self, store: ConfigStore, build_model: BuildModel, activate: Activate, environment: Environment = SYSTEM
    ) -> None:
        self._sessions = SessionRepository(store)
        self._build_model = build_model
        self._activate = activate
        self._environment = environment
        self._lock = threading.RLock()
        self._running: Activation | None = None
        self._wanted_generation = 0

    # What runs. These read memory only and may be called on any thread at any time.

    @property
    def running(self) -> Activation | None:
        """What the service is configured with; None before the first activation, and after a deletion."""
        running = self._running
        return running if running and running.model is not EMPTY_MODEL else None

    @property
    def wanted_generation(self) -> int:
        """The generation that the service is to reach."""
        return self._wanted_generation

    @property
    def current_generation(self) -> int:
        """The generation that the service has reached."""
        return self._running.generation if self._running else 0

    # Deploying

    def restore(self) -> Activation | None:
        """Brings back what was active before the restart, if anything was. Call once, before serving.

        Errors: whatever reading, checking or activating that application raises.
        """
        with self._lock:
            self._sessions.sweep()
            active, _ = self._sessions.active()
            if active is None:
                return None
            self._run(self._activation(active))
            if active.session_id is not None:
                self._record_activated(active.session_id)
            return self.running

    def create(self, content: bytes, application: ApplicationId | None = None) -> Session:
        """A new session with the package in that archive. Errors: UnreadablePackage."""
        read_package(content)
        with self._lock:
            return self._sessions.create(content, application or ApplicationId(), self._now_ms())

    def prepare(self, session_id: int, application: ApplicationId | None = None, dry_run: bool = False) -> Prepared:
        """Checks the package of the session, by itself and against what is active.

        Errors: NotFound, Conflict for a session that is or was active, InvalidPackage with everything that is wrong.
        """
        with self._lock:
            session = self._sessions.get(session_id)
            prepared = replace(session.after(Event.PREPARE), application=application or session.application)
            self._check_alone(prepared)
            model = self._build_model(self.package(session))
            self._check_change(model)
            if not dry_run:
                self._sessions.save(prepared)
            return Prepared(prepared, model.notes)

    def activate(self, session_id: int, force: bool = False) -> Session:
        """Makes the session's application the active one.

        Errors: NotFound; InvalidInput where it is not prepared; Conflict where something else was activated since it
        was created (unless `force`), where a younger one is active, or where it is active itself.
        """
        with self._lock:
            session = self._sessions.get(session_id)
            activated = replace(session.after(Event.ACTIVATE), activated_ms=self._now_ms())
            active, revision = self._sessions.active()
            self._check_alone(session)
            _check_fresh(session, active, force)
            model = self._build_model(self.package(session))
            self._check_change(model)
            previous = active.generation if active else 0
            chosen = Active(session.id, session.id, session.application, previous)
            self._switch(chosen, revision, active, Activation(session.id, session.application, model))
            self._sessions.save(activated)
            return activated

    def prepare_and_activate(
        self, content: bytes, application: ApplicationId | None = None, dry_run: bool = False
    ) -> tuple[Prepared, PaperwaspError | None]:
        """Creates, prepares and activates in one step that no other deployment gets into.

        The error is that of an activation that failed after a preparation that did not.
        Errors: as `create` and `prepare`.
        """
        with self._lock:
            session = self.create(content, application)
            prepared = self.prepare(session.id, dry_run=dry_run)
            if dry_run:
                return prepared, None
            try:
                return Prepared(self.activate(session.id), prepared.notes), None
            except PaperwaspError as error:
                return prepared, error

    def delete_application(self, application: ApplicationId) -> None:
        """Stops serving the application and deletes its documents. Errors: NotFound."""
        with self._lock:
            active, revision = self._sessions.active()
            if active is None or active.session_id is None or active.application != application:
                raise NotFound(f"Unable to delete {application}: Not found")
            generation = self._sessions.next_generation()
            clusters = tuple(c.id for c in self._running.model.content_clusters) if self._running else ()
            chosen = Active(generation, None, application, active.generation, clusters)
            self._switch(chosen, revision, active, Activation(generation, application, EMPTY_MODEL, clusters))
            self._sessions.delete(self._sessions.get(active.session_id))
            self._sessions.sweep()

    # Reading

    def session(self, session_id: int) -> Session:
        """Errors: NotFound."""
        return self._sessions.get(session_id)

    def package(self, session: Session) -> ApplicationPackage:
        """The files of a session. Errors: NotFound, Corruption."""
        return read_package(self._sessions.package(session))

    def active_session(self, application: ApplicationId) -> Session:
        """The session of an application that runs. Errors: NotFound."""
        active, _ = self._sessions.active()
        if active is None or active.session_id is None or active.application != application:
            raise NotFound(f"Unknown application id '{application}'")
        return self._sessions.get(active.session_id)

    # The steps of an activation

    def _check_change(self, model: ApplicationModel) -> None:
        refused = refused_changes(self._running.model, model) if self._running else []
        if refused:
            listed = "\n".join(refused)
            raise InvalidPackage(
                "Invalid application package: these changes of the active application are not supported yet; "
                f"delete the application first, its documents with it, or take them back:\n{listed}"
            )

    def _check_alone(self, session: Session) -> None:
        running = self.running
        if running and running.application != session.application:
            raise Conflict(
                f"The application '{running.application}' is active, and only one at a time is supported yet: "
                f"delete it before deploying '{session.application}'"
            )

    def _switch(self, chosen: Active, revision: int, before: Active | None, activation: Activation) -> None:
        """Makes the choice durable, then real; takes it back where that fails."""
        new_revision = self._sessions.set_active(chosen, revision)
        try:
            self._run(activation)
        except Exception as error:
            self._undo(before, new_revision)
            if isinstance(error, PaperwaspError):
                raise
            _log.exception("Activating generation %d failed", activation.generation)
            raise InternalError(f"Activating generation {activation.generation} failed: {error}") from error

    def _undo(self, before: Active | None, revision: int) -> None:
        if before is None:
            self._sessions.clear_active()
            self._wanted_generation = 0
        else:
            self._sessions.set_active(before, revision)
            self._wanted_generation = before.generation

    def _run(self, activation: Activation) -> None:
        self._wanted_generation = activation.generation
        self._activate(activation)
        self._running = activation

    def _activation(self, active: Active) -> Activation:
        if active.session_id is None:
            return Activation(active.generation, active.application, EMPTY_MODEL, active.removed_clusters)
        model = self._build_model(self.package(self._sessions.get(active.session_id)))
        return Activation(active.generation, active.application, model)

    def _record_activated(self, session_id: int) -> None:
        """Finishes what a crash between choice and record left undone; changes nothing otherwise."""
        self._sessions.save(replace(self._sessions.get(session_id), state=State.ACTIVE))

    def _now_ms(self) -> int:
        return self._environment.time_ns() // 1_000_000


def _check_fresh(session: Session, active: Active | None, force: bool) -> None:
    """Errors: Conflict where the session is older than what is active, or was made on the base of something else."""
    if active is None:
        return
    if active.generation > session.id:
        raise Conflict(f"Session {session.id} is older than the active session ({active.generation})")
    if active.generation != session.base_generation and not force:
        raise Conflict(
            f"Cannot activate session {session.id} because the active session ({active.generation}) is not the one "
            f"that was active when it was created ({session.base_generation})"
        )
