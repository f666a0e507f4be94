"""Deployment sessions: what they are, which states they go through, and what it means that one is active.

    created ──prepare──▶ prepared ──activate──▶ active ──(another is activated)──▶ deactivated
       ▲ └──────────────────│── delete ─────────────┴────────────── delete ──────────┘
       └─────── edit ───────┘

Vespa: https://docs.vespa.ai/en/reference/api/deploy-v2.html
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from enum import Enum
from typing import Final

from paperwasp.base.records import dataclass
from paperwasp.configserver.names import ApplicationId
from paperwasp.errors import Conflict, InvalidInput


class State(Enum):
    """Where a session stands."""

    CREATED = "created"
    PREPARED = "prepared"
    ACTIVE = "active"
    DEACTIVATED = "deactivated"
    DELETED = "deleted"


class Event(Enum):
    """A step that a client takes with a session."""

    EDIT = "edit"
    PREPARE = "prepare"
    ACTIVATE = "activate"
    DELETE = "delete"


TRANSITIONS: Final[Mapping[tuple[State, Event], State]] = {
    (State.CREATED, Event.EDIT): State.CREATED,
    (State.PREPARED, Event.EDIT): State.CREATED,
    (State.CREATED, Event.PREPARE): State.PREPARED,
    (State.PREPARED, Event.PREPARE): State.PREPARED,
    (State.PREPARED, Event.ACTIVATE): State.ACTIVE,
    (State.CREATED, Event.DELETE): State.DELETED,
    (State.PREPARED, Event.DELETE): State.DELETED,
    (State.DEACTIVATED, Event.DELETE): State.DELETED,
}


@dataclass(frozen=True, slots=True)
class Session:
    """One session. Its id becomes the generation of its application."""

    id: int
    state: State
    application: ApplicationId
    blob: str
    """The package, by its name in the config store."""
    created_ms: int
    activated_ms: int = 0
    directories: tuple[str, ...] = ()
    """Folders that a client made, and that an archive cannot say while they are empty."""
    ignore_validation_errors: bool = False
    """Whether it was prepared so."""
    revision: int = field(default=0, compare=False)
    """The revision of its record: a change is kept only if nobody else made one."""

    def after(self, event: Event) -> Session:
        """The session after the event. Errors: Conflict, or InvalidInput where a step was left out."""
        state = TRANSITIONS.get((self.state, event))
        if state is not None:
            return replace(self, state=state)
        if event is Event.ACTIVATE and self.state is State.CREATED:
            raise InvalidInput(f"Session {self.id} is not prepared")
        raise Conflict(f"Session is {self.state.value}: {self.id}")


@dataclass(frozen=True, slots=True)
class Active:
    """The active session of an application: the content of the one key that decides it.

    `session_id` None: the application is being deleted.
    """

    generation: int
    session_id: int | None
    application: ApplicationId
    issued: int
    """The highest number of a session when this was activated: sessions up to it were made before."""
    previous_generation: int = 0


def check_fresh(session: Session, active: Active | None, force: bool) -> None:
    """Errors: Conflict where the session is older than what is active, or was made before that was activated."""
    if active is None:
        return
    if active.generation > session.id:
        raise Conflict(f"Session {session.id} is older than the active session ({active.generation})")
    if session.id <= active.issued and not force:
        raise Conflict(
            f"Cannot activate session {session.id} because the active session ({active.generation}) was activated "
            "after it was created"
        )
