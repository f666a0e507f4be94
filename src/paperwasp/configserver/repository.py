"""Tenants, sessions and what is active, as the config store keeps them.

    generation-counter                              the highest number of a session, over all tenants
    tenants/<tenant>                                a tenant besides the default one
    sessions/<tenant>/<id>                          a session
    active/<tenant>/<application>/<instance>        which session is active
    served/<tenant>/<application>/<instance>        the application has been served, and not deleted since

The `active` key of an application alone says which session is active, so that no crash can leave two. A session that is
named there is active, whatever its own record says; one that was, and is not named any more, is deactivated.

Any thread may call, and every method may be cut off by a crash at any point. Archives are blobs; a sweep removes
those that no session names, and waits while sessions are being made, whose archives are written before the record
that names them.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from enum import Enum
from typing import Any, ClassVar, Final

import orjson
from msgspec import Struct, to_builtins

from paperwasp import limits
from paperwasp.base.records import PartlyCompared, replace
from paperwasp.coordination.config_store import ConfigStore, Entry
from paperwasp.errors import Conflict, Corruption, InvalidInput, LockFailure, NotFound

# The names of applications, and what a name may be.


DEFAULT: Final = "default"
"""The tenant that always exists, and the name of an application or instance that nobody named."""
_CHARACTERS: Final = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-")


class ApplicationId(Struct, frozen=True, order=True):
    """Whose application it is. `str()` is the form of Vespa's messages."""

    tenant: str = DEFAULT
    application: str = DEFAULT
    instance: str = DEFAULT

    def __str__(self) -> str:
        return f"{self.tenant}.{self.application}.{self.instance}"

    @classmethod
    def from_key(cls, key: str) -> ApplicationId:
        """The application with that place in the config store."""
        return cls(*key.split("/"))

    @property
    def key(self) -> str:
        """Its place in the config store. Errors: InvalidInput for a name that there can be no application of."""
        names = (("tenant", self.tenant), ("application", self.application), ("instance", self.instance))
        return "/".join(check_name(what, name) for what, name in names)


def check_name(what: str, name: str) -> str:
    """The name, if a tenant, application or instance may have it. Errors: InvalidInput."""
    if not name or not _CHARACTERS.issuperset(name) or len(name) > limits.APPLICATION_NAME_LENGTH:
        longest = limits.APPLICATION_NAME_LENGTH
        raise InvalidInput(f"Illegal {what} name '{name}': it is 1 to {longest} letters, digits, '-' and '_'")
    return name


# Deployment sessions: what they are, which states they go through, and what it means that one is active.
#
#     created ──prepare──▶ prepared ──activate──▶ active ──(another is activated)──▶ deactivated
#        ▲ └──────────────────│── delete ─────────────┴────────────── delete ──────────┘
#        └─────── edit ───────┘
#
# Vespa: https://docs.vespa.ai/en/reference/api/deploy-v2.html


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


class Session(PartlyCompared, frozen=True):
    """One session. Its id becomes the generation of its application."""

    UNCOMPARED: ClassVar = frozenset({"revision"})

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
    revision: int = 0
    """The revision of its record: a change is kept only if nobody else made one."""

    def after(self, event: Event) -> Session:
        """The session after the event. Errors: Conflict, or InvalidInput where a step was left out."""
        state = TRANSITIONS.get((self.state, event))
        if state is not None:
            return replace(self, state=state)
        if event is Event.ACTIVATE and self.state is State.CREATED:
            raise InvalidInput(f"Session {self.id} is not prepared")
        raise Conflict(f"Session is {self.state.value}: {self.id}")


class Active(Struct, frozen=True):
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


_COUNTER: Final = "generation-counter"
_TENANTS: Final = "tenants/"
_SESSIONS: Final = "sessions/"
_ACTIVE: Final = "active/"
_SERVED: Final = "served/"


class SessionRepository:
    """The config server's memory."""

    def __init__(self, store: ConfigStore) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._being_made = 0
        self._sweep_is_due = False

    # Tenants

    def tenants(self) -> list[str]:
        """The names of the tenants: the default one, then the others by name."""
        return [DEFAULT, *(key.removeprefix(_TENANTS) for key in self._store.keys(_TENANTS))]

    def check_tenant(self, tenant: str) -> None:
        """Errors: NotFound."""
        if tenant != DEFAULT and tenant not in self.tenants():
            raise NotFound(f"Tenant '{tenant}' was not found.")

    def add_tenant(self, tenant: str) -> None:
        """Errors: InvalidInput for one that there is already, and for a name that it may not have."""
        with self._lock:
            tenants = self.tenants()
            if tenant in tenants:
                raise InvalidInput(f"There already exists a tenant '{tenant}'")
            if len(tenants) >= limits.TENANTS:
                raise InvalidInput(f"There are {len(tenants)} tenants, and there may not be more")
            self._store.create(_TENANTS + check_name("tenant", tenant), b"")

    def remove_tenant(self, tenant: str) -> None:
        """Removes it with its sessions. Errors: NotFound; InvalidInput while it has applications."""
        with self._lock:
            self.check_tenant(tenant)
            if tenant == DEFAULT:
                raise InvalidInput(f"Deleting '{DEFAULT}' tenant is not allowed")
            active = [str(found.application) for found in self.all_active() if found.application.tenant == tenant]
            if active:
                listed = ", ".join(sorted(active))
                raise InvalidInput(f"Cannot delete tenant '{tenant}', as it has active applications: [{listed}]")
            self._store.delete(_TENANTS + tenant)
        self.sweep()

    # What is active

    def active(self, application: ApplicationId) -> tuple[Active | None, int]:
        """The active session of the application, and the revision to replace it at (0: there is none)."""
        entry = self._store.get(_ACTIVE + application.key)
        return (_decode_active(orjson.loads(entry.value)), entry.revision) if entry else (None, 0)

    def all_active(self) -> list[Active]:
        """The active sessions of all applications, oldest generation first."""
        entries = (self._store.get(key) for key in self._store.keys(_ACTIVE))
        found = [_decode_active(orjson.loads(entry.value)) for entry in entries if entry]
        return sorted(found, key=lambda active: active.generation)

    def watch_active(self, look: Callable[[ApplicationId], None]) -> Callable[[], None]:
        """Calls `look` with each application of which something else is active than before; call the result to stop."""
        return self._store.watch(_ACTIVE, lambda key, _: look(ApplicationId.from_key(key.removeprefix(_ACTIVE))))

    def set_active(self, active: Active, revision: int) -> int:
        """Replaces what is active if nobody else did. Returns the new revision.

        Errors: Conflict; NotFound where the session, or the tenant, was removed since it was read.
        """
        key, value = _ACTIVE + active.application.key, orjson.dumps(to_builtins(active))
        with self._lock:
            self.check_tenant(active.application.tenant)
            if active.session_id is not None:
                self.get(active.application.tenant, active.session_id)
            return self._store.compare_and_set(key, value, revision) if revision else self._store.create(key, value)

    def clear_active(self, application: ApplicationId) -> None:
        """Nothing of the application is active, as before its first activation."""
        self._store.delete(_SERVED + application.key)
        self._store.delete(_ACTIVE + application.key)

    # Numbers

    def last_number(self) -> int:
        """The highest number that a session or deletion has had."""
        entry = self._store.get(_COUNTER)
        return int(entry.value) if entry else 0

    def next_number(self) -> int:
        """A number that no session had before."""
        while True:
            entry = self._store.get(_COUNTER)
            number = int(entry.value) + 1 if entry else 1
            value = str(number).encode()
            try:
                if entry:
                    self._store.compare_and_set(_COUNTER, value, entry.revision)
                else:
                    self._store.create(_COUNTER, value)
            except Conflict:
                continue
            return number

    # Sessions

    def create(self, content: bytes, application: ApplicationId, now_ms: int) -> Session:
        """A new session with that archive. Older ones that are not active make room."""
        with self._making():
            session = self._add(self._store.put_blob(content), application, now_ms)
        self._make_room(application.tenant)
        return session

    def copy(self, source: ApplicationId, application: ApplicationId, now_ms: int) -> Session:
        """A new session with the package of an active application. Errors: NotFound."""
        with self._making():
            original = self.active_session(source)
            session = self._add(original.blob, application, now_ms)
        self._make_room(application.tenant)
        return session

    def _add(self, blob: str, application: ApplicationId, now_ms: int) -> Session:
        session = Session(self.next_number(), State.CREATED, application, blob, now_ms)
        revision = self._store.create(_key(session.application.tenant, session.id), _encode_session(session))
        return replace(session, revision=revision)

    def get(self, tenant: str, session_id: int) -> Session:
        """The session, in its true state. Errors: NotFound."""
        entry = self._entry(tenant, session_id)
        session = _decode_session(orjson.loads(entry.value), entry.revision)
        active, _ = self.active(session.application)
        if active and active.session_id == session.id:
            return replace(session, state=State.ACTIVE)
        return replace(session, state=State.DEACTIVATED) if session.state is State.ACTIVE else session

    def _entry(self, tenant: str, session_id: int) -> Entry:
        """Errors: NotFound."""
        entry = self._store.get(_key(tenant, session_id))
        if entry is None:
            raise NotFound(f"Local session {session_id} for '{tenant}' was not found")
        return entry

    def active_session(self, application: ApplicationId) -> Session:
        """The session that is active of an application. Errors: NotFound."""
        active, _ = self.active(application)
        if active is None or active.session_id is None:
            raise NotFound(f"Unknown application id '{application}'")
        return self.get(application.tenant, active.session_id)

    def save(self, session: Session) -> Session:
        """Keeps a changed session. Errors: LockFailure where somebody else changed it since it was read."""
        try:
            key = _key(session.application.tenant, session.id)
            revision = self._store.compare_and_set(key, _encode_session(session), session.revision)
        except Conflict:
            raise LockFailure(f"Session {session.id} is being processed by another request") from None
        return replace(session, revision=revision)

    def save_package(self, session: Session, content: bytes) -> Session:
        """Keeps a changed session with a changed archive. Errors: as `save`."""
        with self._making():
            saved = self.save(replace(session, blob=self._store.put_blob(content)))
        self.sweep()
        return saved

    def check_complete(self) -> None:
        """Errors: Corruption where nothing says what is active of an application that was."""
        active = set(self._store.keys(_ACTIVE))
        for key in self._store.keys(_SERVED):
            name = key.removeprefix(_SERVED)
            if _ACTIVE + name not in active:
                raise Corruption(
                    f"the config store has lost the key '{_ACTIVE}{name}', which says what is active of an application"
                    f" that was served; to start without that application, remove its key '{key}' too"
                )

    def record_activated(self, session: Session) -> None:
        """Writes into the record what the `active` key says already, and that the application has been served; nothing
        where both are written."""
        if self._store.get(key := _SERVED + session.application.key) is None:
            with suppress(Conflict):
                self._store.create(key, b"")
        while True:
            entry = self._entry(session.application.tenant, session.id)
            latest = _decode_session(orjson.loads(entry.value), entry.revision)
            activated = replace(latest, state=State.ACTIVE, activated_ms=session.activated_ms or latest.activated_ms)
            if entry.value == _encode_session(activated):
                return
            try:
                self.save(activated)
            except LockFailure:
                continue
            return

    def package(self, session: Session) -> bytes:
        """The archive of the session. Errors: NotFound, Corruption."""
        content = self._store.get_blob(session.blob)
        if content is None:
            raise NotFound(f"The application package of session {session.id} was not found")
        return content

    def ids(self, tenant: str) -> list[int]:
        """The sessions of a tenant, oldest first."""
        prefix = f"{_SESSIONS}{tenant}/"
        return sorted(int(key.removeprefix(prefix)) for key in self._store.keys(prefix))

    def delete(self, session: Session) -> None:
        """Removes the session; its package goes with the next sweep. Errors: Conflict while it is active."""
        session.after(Event.DELETE)
        self._store.delete(_key(session.application.tenant, session.id))

    # Making room

    def sweep(self) -> None:
        """Removes what nothing names: sessions of tenants that are gone, packages of sessions that are gone.

        Put off to the end of what is being made.
        """
        with self._lock:
            self._sweep_is_due = bool(self._being_made)
            if not self._being_made:
                self._sweep()

    def _sweep(self) -> None:
        tenants = set(self.tenants())
        used = set()
        for key in self._store.keys(_SESSIONS):
            entry = self._store.get(key)
            if entry is None:
                continue
            session = _decode_session(orjson.loads(entry.value), entry.revision)
            if session.application.tenant in tenants:
                used.add(session.blob)
            else:
                self._store.delete(key)
        for name in set(self._store.blobs()) - used:
            self._store.delete_blob(name)

    @contextmanager
    def _making(self) -> Iterator[None]:
        """A blob is written that nothing names yet."""
        with self._lock:
            self._being_made += 1
        try:
            yield
        finally:
            with self._lock:
                self._being_made -= 1
                if self._sweep_is_due and not self._being_made:
                    self._sweep_is_due = False
                    self._sweep()

    def _make_room(self, tenant: str) -> None:
        """Several at a time, since a sweep reads all sessions."""
        with self._lock:
            active = {found.session_id for found in self.all_active()}
            inactive = [session_id for session_id in self.ids(tenant) if session_id not in active]
            if len(inactive) <= limits.SESSIONS + limits.SESSIONS // 10:
                return
            for session_id in inactive[: -limits.SESSIONS]:
                self._store.delete(_key(tenant, session_id))
        self.sweep()


def _key(tenant: str, session_id: int) -> str:
    return f"{_SESSIONS}{check_name('tenant', tenant)}/{session_id}"


def _encode_session(session: Session) -> bytes:
    record = to_builtins(session)
    del record["revision"]
    return orjson.dumps(record)


def _decode_session(value: dict[str, Any], revision: int) -> Session:
    value["application"] = ApplicationId(**value["application"])
    value["directories"] = tuple(value["directories"])
    return Session(**{**value, "state": State(value["state"])}, revision=revision)


def _decode_active(value: dict[str, Any]) -> Active:
    value["application"] = ApplicationId(**value["application"])
    return Active(**value)
