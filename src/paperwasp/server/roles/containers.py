"""The containers of all applications, each with a port of its own, and how they change so that no request fails.

A change is staged, then committed or abandoned. To stage is to bind the ports that are new and to listen on them,
so that one that is taken is known before anything has changed; until the change is committed, they answer that no
application is there. To commit is to swap, in each container, one reference. A container that goes lets its requests
end, and so do clients that must connect again; where that fails after the swap, the next commit goes on with it.

The port of the command line, the front, is bound from the beginning. While no container has it, an empty one answers
there that no application is active, or on which ports containers listen.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import deque
from collections.abc import Callable, Coroutine, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from paperwasp import limits
from paperwasp.application.client_rules import client_rules, tls_settings
from paperwasp.application.model import ApplicationModel
from paperwasp.container.app import ContainerApp
from paperwasp.container.gate.keys import Accounts
from paperwasp.container.paths import no_application
from paperwasp.container.state import Running
from paperwasp.coordination.messenger import Messenger
from paperwasp.errors import Conflict
from paperwasp.http.tls_files import ReloadedTls
from paperwasp.server.roles.access_logs import AccessLogs
from paperwasp.server.roles.listener import Listener
from paperwasp.server.roles.ports import PortRecord, Taken, assign, container_of, places_of

if TYPE_CHECKING:
    from paperwasp.admin.monitoring.telemetry import Telemetry

_LOG: Final = logging.getLogger("paperwasp.service")
Role = tuple[str, str]
"""Application, and the name of a place of one of its containers (`ports`)."""


class StagedContainers(Struct, frozen=True):
    """A change that is staged: the listener of every place, which of them are new, and the record before it."""

    application: str
    listeners: Mapping[str, Listener]
    tls: Mapping[str, ReloadedTls]
    """Of the places that have TLS."""
    opened: Sequence[Listener]
    recorded: Mapping[str, int]


class Containers:
    """The containers of this process.

    Threads: `start` and `stop` run in the event loop, which never waits here; changes and restarts on any other thread.
    """

    def __init__(
        self,
        messenger: Messenger,
        host: str | None,
        port: int,
        accounts: Accounts | None = None,
        access_logs: AccessLogs | None = None,
    ) -> None:
        """Binds the front. `host` None: nothing is bound, and ports are mere numbers. `accounts`: by which clients are
        known. `access_logs` None: answers are logged nowhere. Errors: PortTaken, Conflict."""
        self._access_logs = access_logs
        self._telemetry: Telemetry | None = None
        self._messenger = messenger
        self._accounts = accounts
        self._host = host
        self._nobody = ContainerApp(messenger, absence=self._absence)
        self._front = Listener(host, port, self._nobody)
        self._places: dict[Role, Listener] = {}
        self._claims: dict[int, tuple[Listener, Role]] = {}
        """By port, also of changes that are not committed yet: no two of them can want the same port."""
        self._after_swap: dict[str, deque[Callable[[], None]]] = {}
        """By application, what is still to be done since its containers swapped."""
        self._reserved: Mapping[int, str] = {}
        self._record: PortRecord | None = None
        self._lock = threading.RLock()
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def front_port(self) -> int:
        """The port of the command line, as it is bound."""
        return self._front.port

    def _absence(self) -> str:
        """Return the message for requests to a port without a container."""
        return no_application({place.port for place in list(self._places.values())})

    def configure_ports(self, record: PortRecord, reserved: Mapping[int, str]) -> None:
        """Where ports are kept over restarts, and which ones are never to be given, with who has them."""
        self._record = record
        self._reserved = reserved

    def app_of(self, application: str, cluster: str | None = None) -> ContainerApp | None:
        """The container of that cluster, or the application's first; None where there is none. Any thread."""
        own = ((role, place) for role, place in list(self._places.items()) if role[0] == application)
        return next((place.app for role, place in own if cluster in (None, role[1])), None)

    def serving(self) -> dict[Role, tuple[int, int]]:
        """The port of each place, and the generation that is served there. Any thread; never waits."""
        places = list(self._places.items())
        return {role: (place.port, place.app.running.generation if place.app.running else 0) for role, place in places}

    def scheme(self, role: Role) -> str:
        """How clients speak to a place of `serving`. Any thread."""
        return self._places[role].scheme

    @property
    def front_scheme(self) -> str:
        """How clients speak to the front."""
        return self._front.scheme

    # Changes

    def stage(self, application: str, model: ApplicationModel) -> StagedContainers:
        """Bind the ports of the application's containers that are new, and listen on them.

        Errors: Conflict, PortTaken; then nothing has changed.
        """
        opened: dict[int, Listener] = {}
        with self._lock:
            try:
                change = self._bind(application, model, opened)
                for key, listener in change.listeners.items():
                    if listener in change.opened:
                        listener.secure(change.tls.get(key))
                        self._start(listener)
                if self._record:
                    ports = {cluster: listener.port for cluster, listener in change.listeners.items()}
                    self._record.put(application, ports, self.front_port)
            except BaseException:
                self._reclaim(application)
                for listener in opened.values():
                    self._close(listener)
                raise
        return change

    def check(self, application: str, model: ApplicationModel) -> None:
        """Errors: Conflict, PortTaken, as `stage` would raise them now."""
        opened: dict[int, Listener] = {}
        with self._lock:
            try:
                self._bind(application, model, opened)
            finally:
                self._reclaim(application)
                for listener in opened.values():
                    listener.server.close()

    def _bind(self, application: str, model: ApplicationModel, opened: dict[int, Listener]) -> StagedContainers:
        tls = _tls_of(model, self._accounts is not None and self._accounts.authenticates)
        others = {port: _describe(role) for port, (_, role) in self._claims.items() if role[0] != application}
        running = {cluster: place.port for (owner, cluster), place in self._places.items() if owner == application}
        recorded = {**(self._record.get(application) if self._record else {}), **running}
        taken = Taken({**self._reserved, **others}, self.front_port)
        given = assign(model.containers, recorded, taken, partial(self._can_open, application, opened))
        listeners = {cluster: self._open(application, opened, port) for cluster, port in given.items()}
        for cluster, listener in listeners.items():
            self._claims[listener.port] = (listener, (application, cluster))
        return StagedContainers(application, listeners, tls, tuple(opened.values()), recorded)

    def _open(self, application: str, opened: dict[int, Listener], port: int) -> Listener:
        """The listener on that port, bound now where the application has none there. Errors: PortTaken, Conflict."""
        listener, (owner, _) = self._claims.get(port, (None, ("", "")))
        if listener is not None and owner == application:
            return listener
        if port == self.front_port:
            return self._front
        if port not in opened:
            opened[port] = Listener(self._host, port, self._nobody)
            opened[port].telemetry = self._telemetry
        return opened[port]

    def _can_open(self, application: str, opened: dict[int, Listener], port: int) -> bool:
        try:
            self._open(application, opened, port)
        except Conflict:
            return False
        return True

    def _reclaim(self, application: str) -> None:
        """The application has the ports that its containers serve on, and no others."""
        others = {port: claim for port, claim in self._claims.items() if claim[1][0] != application}
        own = {place.port: (place, role) for role, place in self._places.items() if role[0] == application}
        self._claims = {**others, **own}

    def abandon(self, change: StagedContainers) -> None:
        """Gives up what was staged; all is as before. What has swapped stays."""
        serving = {role[1]: place for role, place in self._places.items() if role[0] == change.application}
        try:
            with self._lock:
                self._reclaim(change.application)
                if self._record and serving != change.listeners:
                    self._record.put(change.application, change.recorded, self.front_port)
        finally:
            for listener in change.opened:
                if listener not in serving.values():
                    self._close(listener)

    def commit(self, change: StagedContainers, generation: int, name: str, model: ApplicationModel) -> None:
        """Serves the application by all its containers.

        Where it raises before the swap, what was before still is; after it, the next call goes on from there.
        """
        with self._lock:
            apps = {container.id: self._app_of(change.application, container.id) for container in model.containers}
            _configure({apps[each.id]: Running(generation, model, each, name) for each in model.containers})
            left = self._after_swap.setdefault(change.application, deque())
            for key, listener in change.listeners.items():
                if listener.secure(change.tls.get(key)):
                    left.append(partial(self._reconnect, listener))
            for container in model.containers:
                app = apps[container.id]
                if self._access_logs is not None:
                    app.metrics.access_log = self._access_logs.log_of(change.application, container)
                for each in places_of(container):
                    listener = change.listeners[each.name]
                    listener.place = "" if each.server is None else each.server.id
                    listener.app = app
            before = {role: place for role, place in self._places.items() if role[0] == change.application}
            others = {role: place for role, place in self._places.items() if role[0] != change.application}
            own = {(change.application, cluster): listener for cluster, listener in change.listeners.items()}
            self._places = {**others, **own}
            self._reclaim(change.application)
            needed = {listener.port for listener in change.listeners.values()}
            for place in before.values():
                if place.port not in needed:
                    left += self._give_up(place)
        if self._access_logs is not None:
            self._access_logs.keep(change.application, apps)
        while left:
            left[0]()
            left.popleft()
        del self._after_swap[change.application]

    def _app_of(self, application: str, cluster: str) -> ContainerApp:
        place = self._places.get((application, cluster))
        return place.app if place else ContainerApp(self._messenger, application, accounts=self._accounts)

    def _give_up(self, listener: Listener) -> list[Callable[[], None]]:
        """Return the steps by which the listener serves no container any more."""
        if listener is not self._front:
            return [partial(self._close, listener)]
        listener.app = self._nobody
        return [partial(self._reconnect, listener)] if listener.secure(None) else []

    def restart(self, application: str, cluster: str) -> None:
        """Makes the container and its server again on the same port; who connects meanwhile waits."""
        with self._lock:
            roles = [role for role in self._places if role[0] == application and container_of(role[1]) == cluster]
            app = ContainerApp(self._messenger, application, accounts=self._accounts)
            before = self._places[application, cluster].app
            app.configure(before.running)
            app.metrics.access_log = before.metrics.access_log
            places = [self._places[role] for role in roles]
            for place in places:
                place.app = app
        if self._loop is not None:
            for place in places:
                _wait(self._loop, place.server.restart())

    def apps(self) -> dict[Role, ContainerApp]:
        """The containers, by application and cluster."""
        places = list(self._places.items())
        return {(application, container_of(place)): listener.app for (application, place), listener in places}

    def send_to(self, telemetry: Telemetry) -> None:
        """Has spans made of all answers from now on."""
        self._telemetry = telemetry
        for listener in self._all():
            listener.telemetry = telemetry

    # The servers, which live in the event loop

    def start(self) -> None:
        """Listens on all ports. Call it in the event loop."""
        self._loop = asyncio.get_running_loop()
        for listener in self._all():
            listener.server.start()

    async def stop(self) -> None:
        """Lets requests end, and closes all ports. No change may come afterwards."""
        self._loop = None
        await asyncio.gather(*(listener.server.stop() for listener in self._all()))

    def close(self) -> None:
        """Gives up the ports of servers that were never started, or that have stopped."""
        for listener in self._all():
            listener.server.close()

    def _all(self) -> list[Listener]:
        return [self._front, *(place for place in self._places.values() if place is not self._front)]

    def _start(self, listener: Listener) -> None:
        async def start() -> None:
            listener.server.start()

        if self._loop is not None:
            _wait(self._loop, start())

    def _reconnect(self, listener: Listener) -> None:
        """Has clients connect again, who came by other settings of TLS; requests under way end before."""
        if self._loop is None:
            return
        try:
            _wait(self._loop, listener.server.restart())
        except TimeoutError:
            _LOG.warning("Requests on port %d by the former settings of TLS are still under way", listener.port)

    def _close(self, listener: Listener) -> None:
        """Ends a server after its requests; one that takes too long for that goes on ending by itself."""
        if self._loop is None:
            listener.server.close()
            return
        try:
            _wait(self._loop, listener.server.stop())
        except TimeoutError:
            _LOG.warning("Requests on port %d are still under way", listener.port)


def _configure(wanted: Mapping[ContainerApp, Running]) -> None:
    """Has all of them serve that, or, when it raises, what they did."""
    before: list[tuple[ContainerApp, Running | None]] = []
    try:
        for app, running in wanted.items():
            before.append((app, app.running))
            app.configure(running)
    except BaseException:
        for app, running_before in before:
            try:
                app.configure(running_before)
            except Exception:
                _LOG.exception("A container does not serve what it did before a change that was given up")
        raise


def _wait(loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, None]) -> None:
    """Errors: those of the work; TimeoutError."""
    asyncio.run_coroutine_threadsafe(work, loop).result(limits.STOP_SECONDS)


def _tls_of(model: ApplicationModel, authenticates: bool) -> dict[str, ReloadedTls]:
    """The TLS of the places that have it. Errors: WrongTls."""
    found = {}
    for container in model.containers:
        is_required = container.access.is_required(authenticates)
        known = client_rules(container.access, model.files).trusted if is_required else ()
        for place in places_of(container):
            if place.server is not None and place.server.tls is not None:
                found[place.name] = ReloadedTls(tls_settings(place.server.tls, model.files, known))
    return found


def _describe(role: Role) -> str:
    return f"container cluster '{role[1]}' of application '{role[0]}'"
