"""Deployment sessions: what they are, which states they go through, and how the config store keeps them.

    created ──prepare──▶ prepared ──activate──▶ active ──(another is activated)──▶ deactivated
       └──────────────────── delete ────────────────┴──────────────── delete ─────────┘

Which session is active is said by one key of the store alone (`active`), so that no crash can leave two. A session that
is named there is active, whatever its own record says; one that was, and is not named any more, is deactivated.

Vespa: https://docs.vespa.ai/en/reference/api/deploy-v2.html
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from enum import Enum
from typing import Any, Final

import orjson

from paperwasp import limits
from paperwasp.cluster.config_store import ConfigStore
from paperwasp.errors import Conflict, InvalidInput, NotFound


class State(Enum):
    """Where a session stands."""

    CREATED = "created"
    PREPARED = "prepared"
    ACTIVE = "active"
    DEACTIVATED = "deactivated"
    DELETED = "deleted"


class Event(Enum):
    """What a client does to a session."""

    PREPARE = "prepare"
    ACTIVATE = "activate"
    DELETE = "delete"


TRANSITIONS: Final[Mapping[tuple[State, Event], State]] = {
    (State.CREATED, Event.PREPARE): State.PREPARED,
    (State.PREPARED, Event.PREPARE): State.PREPARED,
    (State.PREPARED, Event.ACTIVATE): State.ACTIVE,
    (State.CREATED, Event.DELETE): State.DELETED,
    (State.PREPARED, Event.DELETE): State.DELETED,
    (State.DEACTIVATED, Event.DELETE): State.DELETED,
}


@dataclass(frozen=True, slots=True)
class ApplicationId:
    """Whose application it is. `str()` is the form of Vespa's messages."""

    tenant: str = "default"
    application: str = "default"
    instance: str = "default"

    def __str__(self) -> str:
        return f"{self.tenant}.{self.application}.{self.instance}"


@dataclass(frozen=True, slots=True)
class Session:
    """One session. `base_generation` is what was active when it was created (0: nothing)."""

    id: int
    state: State
    application: ApplicationId
    blob: str
    """The package, by its name in the config store."""
    base_generation: int
    created_ms: int
    activated_ms: int = 0

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
    """What is active: the content of the one key that decides it.

    `session_id` None: an application was deleted. `removed_clusters` are content clusters whose documents go with this
    generation.
    """

    generation: int
    session_id: int | None
    application: ApplicationId
    previous_generation: int = 0
    removed_clusters: tuple[str, ...] = ()


_ACTIVE_KEY: Final = "active"
_COUNTER_KEY: Final = "generation-counter"
_SESSIONS_PREFIX: Final = "sessions/"


class SessionRepository:
    """The sessions in a config store. Every method may be cut off by a crash at any point."""

    def __init__(self, store: ConfigStore) -> None:
        self._store = store

    # What is active

    def active(self) -> tuple[Active | None, int]:
        """What is active, and the revision to replace it at (0: nothing was ever)."""
        entry = self._store.get(_ACTIVE_KEY)
        return (_decode_active(orjson.loads(entry.value)), entry.revision) if entry else (None, 0)

    def set_active(self, active: Active, revision: int) -> int:
        """Replaces what is active if nobody else did. Returns the new revision. Errors: Conflict."""
        value = orjson.dumps(asdict(active))
        if revision:
            return self._store.compare_and_set(_ACTIVE_KEY, value, revision)
        return self._store.create(_ACTIVE_KEY, value)

    def clear_active(self) -> None:
        """Nothing is active, as before the first activation."""
        self._store.delete(_ACTIVE_KEY)

    # Sessions

    def next_generation(self) -> int:
        """A number that no session had before."""
        while True:
            entry = self._store.get(_COUNTER_KEY)
            number = int(entry.value) + 1 if entry else 1
            value = str(number).encode()
            try:
                if entry:
                    self._store.compare_and_set(_COUNTER_KEY, value, entry.revision)
                else:
                    self._store.create(_COUNTER_KEY, value)
            except Conflict:
                continue
            return number

    def create(self, content: bytes, application: ApplicationId, now_ms: int) -> Session:
        """A new session with that package. Older ones that are not active make room."""
        blob = self._store.put_blob(content)
        active, _ = self.active()
        base = active.generation if active else 0
        session = Session(self.next_generation(), State.CREATED, application, blob, base, now_ms)
        self._store.create(_key(session.id), _encode_session(session))
        self._make_room()
        return session

    def get(self, session_id: int) -> Session:
        """The session, in its true state. Errors: NotFound."""
        entry = self._store.get(_key(session_id))
        if entry is None:
            raise NotFound(f"Local session {session_id} for 'default' was not found")
        session = _decode_session(orjson.loads(entry.value))
        active, _ = self.active()
        if active and active.session_id == session.id:
            return replace(session, state=State.ACTIVE)
        return replace(session, state=State.DEACTIVATED) if session.state is State.ACTIVE else session

    def save(self, session: Session) -> None:
        """Keeps a changed session."""
        entry = self._store.get(_key(session.id))
        if entry is None:
            raise NotFound(f"Local session {session.id} for 'default' was not found")
        self._store.compare_and_set(_key(session.id), _encode_session(session), entry.revision)

    def package(self, session: Session) -> bytes:
        """The archive of the session. Errors: NotFound, Corruption."""
        content = self._store.get_blob(session.blob)
        if content is None:
            raise NotFound(f"The application package of session {session.id} was not found")
        return content

    def ids(self) -> list[int]:
        """The sessions that there are, oldest first."""
        return sorted(int(key.removeprefix(_SESSIONS_PREFIX)) for key in self._store.keys(_SESSIONS_PREFIX))

    def delete(self, session: Session) -> None:
        """Removes the session; its package goes with the next sweep. Errors: Conflict while it is active."""
        session.after(Event.DELETE)
        self._store.delete(_key(session.id))

    def sweep(self) -> None:
        """Removes packages that no session names: what deleted sessions and crashes left."""
        used = {self.get(session_id).blob for session_id in self.ids()}
        for name in set(self._store.blobs()) - used:
            self._store.delete_blob(name)

    def _make_room(self) -> None:
        ids = self.ids()
        for session_id in ids[: max(0, len(ids) - limits.SESSIONS)]:
            session = self.get(session_id)
            if session.state is not State.ACTIVE:
                self.delete(session)
        if len(ids) > limits.SESSIONS:
            self.sweep()


def _key(session_id: int) -> str:
    return f"{_SESSIONS_PREFIX}{session_id}"


def _encode_session(session: Session) -> bytes:
    return orjson.dumps({**asdict(session), "state": session.state.value})


def _decode_session(value: dict[str, Any]) -> Session:
    application = ApplicationId(**value.pop("application"))
    return Session(**{**value, "state": State(value["state"])}, application=application)


def _decode_active(value: dict[str, Any]) -> Active:
    application = ApplicationId(**value.pop("application"))
    removed = tuple(value.pop("removed_clusters"))
    return Active(**value, application=application, removed_clusters=removed)
