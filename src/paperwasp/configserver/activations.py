"""Activating a session, deleting an application, restoring what was active: the changes of what the service runs.

All processes that serve stage it first, then the choice is made durable, then they change (`convergence`). What
cannot be staged is not chosen; a crash after the choice is finished by the next start. Called with the application's
lock held, or before anything is served.
"""

from __future__ import annotations

import errno
import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from paperwasp.application.model import empty_model
from paperwasp.base.env import Environment
from paperwasp.base.records import replace
from paperwasp.configserver.convergence import Convergence
from paperwasp.configserver.deadline import Deadline
from paperwasp.configserver.preparation import Models, Preparation
from paperwasp.configserver.reindexing import ReindexingControl, Target
from paperwasp.configserver.repository import Active, ApplicationId, Event, Session, SessionRepository, check_fresh
from paperwasp.configserver.running import Activation, RunningApplications
from paperwasp.coordination.messages.failures import error_of, refused
from paperwasp.errors import NotFound, PaperwaspError

_log = logging.getLogger(__name__)


class Activations:
    """Changes which generation of an application is active: in the config store, and so in all processes."""

    def __init__(
        self,
        sessions: SessionRepository,
        preparation: Preparation,
        models: Models,
        applications: RunningApplications,
        reindexing: ReindexingControl,
        convergence: Convergence,
        environment: Environment,
    ) -> None:
        self._sessions = sessions
        self._preparation = preparation
        self._models = models
        self._applications = applications
        self._reindexing = reindexing
        self._convergence = convergence
        self._environment = environment
        self.unfinished: Final[set[ApplicationId]] = set()
        """Applications whose active generation was not served when it was to be, or what comes after that failed:
        `catch_up` is to be called until they are gone from here. Any thread may look."""

    def activate(self, session: Session, force: bool, deadline: Deadline) -> tuple[Session, Activation]:
        """Makes the session's package the active one of its application.

        Errors: InvalidInput where it is not prepared; Conflict where something else was activated since it was created
        (unless `force`), where a younger one is active, or where it is active itself; DeployTimeout.
        """
        activated = replace(session.after(Event.ACTIVATE), activated_ms=self._environment.time_ns() // 1_000_000)
        application = session.application
        active, revision = self._sessions.active(application)
        check_fresh(session, active, force)
        model = self._models.of_session(session, application, deadline)
        changes = self._preparation.checked_changes(session, model)
        previous = active.generation if active else 0
        activation = Activation(session.id, application, model, previous)
        deadline.commit()
        causes = {(a.cluster, a.document_type): "; ".join(a.messages) for a in changes.of_kind("reindex")}
        chosen = Active(session.id, session.id, application, self._sessions.last_number(), previous)
        self._switch(chosen, revision, activation, causes)
        _log.info("Activated session %d of application %s", session.id, application)
        with self._finishing(application):
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
        self._switch(chosen, revision, deletion, {})
        self._forget(application)
        _log.info("Deleted application %s", application)
        self._sessions.delete(self._sessions.get(application.tenant, active.session_id))
        self._sessions.sweep()

    def restore(self, active: Active) -> None:
        """Takes up what was active of an application before a restart, once all processes serve it; a deletion that was
        cut off is finished.

        Errors: InvalidInput and Conflict where its package or ports are in the way; those of reconfiguring.
        """
        application, generation = active.application, active.generation
        with self._finishing(application):
            self._applications.want(application, generation)
            self._convergence.wait_until_served(application, generation)
            if active.session_id is None:
                self._applications.set_running(Activation(generation, application, empty_model(), is_deletion=True))
                self._forget(application)
                return
            session = self._sessions.get(application.tenant, active.session_id)
            model = self._models.of_session(session, application)
            self._applications.set_running(Activation(generation, application, model, active.previous_generation))
        try:
            with self._finishing(application):
                self._sessions.record_activated(session)
                self._reindexing.begin_scheduled(application)
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                raise
            _log.warning("The disk is full: what is reindexed of %s begins when there is room", application)

    def catch_up(self, application: ApplicationId) -> None:
        """Takes up a generation that is served now, and was not when it was activated or restored, or that could not be
        taken up then.

        Errors: as of `restore`; then it is to be called again.
        """
        active, _ = self._sessions.active(application)
        if application not in self.unfinished:
            return
        if active is None:
            self.unfinished.discard(application)
            return
        served = self._convergence.generations(application)
        if served and min(served) >= active.generation:
            self.restore(active)

    def _switch(self, chosen: Active, revision: int, activation: Activation, causes: Mapping[Target, str]) -> None:
        """Has all processes stage the generation, makes the choice durable, and returns when all serve it.

        Errors: those of staging it, and those of choosing: then nothing has changed, and nothing is chosen; those of
        serving it, which say that it is chosen.
        """
        application = chosen.application
        with self._convergence.propose(chosen):
            if causes:
                self._reindexing.schedule(application, causes, chosen.generation, chosen.previous_generation)
            try:
                self._sessions.set_active(chosen, revision)
            except Exception:
                if causes:
                    self._unschedule(application, chosen.generation)
                raise
            self._applications.want(application, chosen.generation)
            try:
                with self._finishing(application):
                    if application in self.unfinished:
                        self._reindexing.carry_over(application, chosen.generation, chosen.previous_generation)
                    self._convergence.wait_until_served(application, chosen.generation)
            except PaperwaspError as error:
                raise _chosen_nevertheless(error, chosen.generation) from error
        self._applications.set_running(activation)

    @contextmanager
    def _finishing(self, application: ApplicationId) -> Iterator[None]:
        """What fails inside is left to `catch_up`."""
        try:
            yield
        except Exception:
            self.unfinished.add(application)
            raise
        self.unfinished.discard(application)

    def _unschedule(self, application: ApplicationId, generation: int) -> None:
        try:
            self._reindexing.unschedule(application, generation)
        except Exception:
            _log.exception(
                "What was to be reindexed of %s for a generation that is not active stays listed", application
            )

    def _forget(self, application: ApplicationId) -> None:
        """Nothing is left of an application whose documents are gone."""
        self._reindexing.forget(application)
        self._sessions.clear_active(application)


def _chosen_nevertheless(error: PaperwaspError, generation: int) -> PaperwaspError:
    """The error of serving a generation, for whoever activated it."""
    said = refused(error)
    outlook = f"Generation {generation} is active but not served yet: the service tries again until it is"
    return error_of(replace(said, message=f"{outlook}. {said.message}"))
