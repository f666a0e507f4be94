"""Activating a session, deleting an application, restoring what was active: the changes of what the service runs.

The choice is made durable first, then the service is reconfigured; if that fails, the choice is taken back. A crash in
between is finished by the next start. Called with the application's lock held, or before anything is served.
"""

from __future__ import annotations

import errno
import logging
from collections.abc import Callable
from dataclasses import replace

from paperwasp.application.model import empty_model
from paperwasp.base.env import Environment
from paperwasp.configserver.deadline import Deadline
from paperwasp.configserver.names import ApplicationId
from paperwasp.configserver.preparation import Preparation
from paperwasp.configserver.reindexing_control import ReindexingControl
from paperwasp.configserver.repository import SessionRepository
from paperwasp.configserver.running import Activation, RunningApplications
from paperwasp.configserver.sessions import Active, Event, Session, check_fresh
from paperwasp.errors import NoSpace, NotFound, PaperwaspError, failure

_log = logging.getLogger(__name__)

Activate = Callable[[Activation], None]
"""Reconfigures the service in this process for one application: when it returns, that is what clients meet, and when it
raises, what was before still is."""


class Activations:
    """Changes which generation of an application is active: in the config store, then in the service."""

    def __init__(
        self,
        sessions: SessionRepository,
        preparation: Preparation,
        applications: RunningApplications,
        reindexing: ReindexingControl,
        activate: Activate,
        environment: Environment,
    ) -> None:
        self._sessions = sessions
        self._preparation = preparation
        self._applications = applications
        self._reindexing = reindexing
        self._activate = activate
        self._environment = environment

    def activate(self, session: Session, force: bool, deadline: Deadline) -> tuple[Session, Activation]:
        """Makes the session's package the active one of its application.

        Errors: InvalidInput where it is not prepared; Conflict where something else was activated since it was created
        (unless `force`), where a younger one is active, or where it is active itself; DeployTimeout.
        """
        activated = replace(session.after(Event.ACTIVATE), activated_ms=self._environment.time_ns() // 1_000_000)
        application = session.application
        active, revision = self._sessions.active(application)
        check_fresh(session, active, force)
        model = self._preparation.model_of(session, application, deadline)
        changes = self._preparation.checked_changes(session, model)
        previous = active.generation if active else 0
        activation = Activation(session.id, application, model, previous)
        deadline.commit()
        causes = {(a.cluster, a.document_type): "; ".join(a.messages) for a in changes.of_kind("reindex")}
        if causes:
            self._reindexing.schedule(application, causes, session.id)
        chosen = Active(session.id, session.id, application, self._sessions.last_number(), previous)
        self._switch(chosen, revision, active, activation)
        _log.info("Activated session %d of application %s", session.id, application)
        self._sessions.record_activated(activated)
        self._reindexing.begin_scheduled(application)
        return activated, activation

    def delete(self, application: ApplicationId, deadline: Deadline) -> None:
        """Stops serving the application and deletes its documents. Errors: NotFound, DeployTimeout."""
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
        self._sessions.delete(self._sessions.get(application.tenant, active.session_id))
        self._sessions.sweep()

    def restore(self, active: Active) -> None:
        """Brings back what was active of an application before a restart; a deletion that was cut off is finished.

        Errors: InvalidInput and Conflict where its package or ports are in the way; those of reconfiguring.
        """
        if active.session_id is None:
            self._run(Activation(active.generation, active.application, empty_model(), is_deletion=True))
            self._forget(active.application)
            return
        session = self._sessions.get(active.application.tenant, active.session_id)
        model = self._preparation.model_of(session, active.application)
        self._run(Activation(active.generation, active.application, model, active.previous_generation))
        try:
            self._sessions.record_activated(session)
            self._reindexing.begin_scheduled(active.application)
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                raise
            _log.warning("The disk is full: what is reindexed of %s is left to the next start", active.application)

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
        self._applications.want(chosen.application, before.generation if before else 0)
        if before is None:
            self._sessions.clear_active(chosen.application)
        else:
            self._sessions.set_active(before, revision)
        self._reindexing.unschedule(chosen.application)

    def _run(self, activation: Activation) -> None:
        self._applications.want(activation.application, activation.generation)
        self._activate(activation)
        self._applications.set_running(activation)

    def _forget(self, application: ApplicationId) -> None:
        """Nothing is left of an application whose documents are gone."""
        self._reindexing.forget(application)
        self._sessions.clear_active(application)
