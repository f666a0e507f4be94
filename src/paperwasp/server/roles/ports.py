"""Which server of which container listens on which port.

* A container listens on the ports of its `server`s in services.xml. Port 8080, which is where Vespa's containers
  listen unless configured otherwise, means the port of the command line.
* Of the servers without a port, and the containers without a server, the first gets the command line's port, and every
  further one the next free port after it.
* What was given once stays: it is recorded, and found again after a restart.

The place of a container's first server has the name of the container; those of others `container/server`.

Nothing here opens a port: a callable tells `assign` whether one can be had.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

import orjson
from msgspec import Struct

from paperwasp import limits
from paperwasp.coordination.config_store import ConfigStore
from paperwasp.errors import Conflict

if TYPE_CHECKING:
    from paperwasp.application.services_model import Container, HttpServer

VESPA_PORT: Final = 8080
_FRONT: Final = 0
"""How the port of the command line is recorded: another one may be given at the next start."""
_PREFIX: Final = "container-ports/"
_PORTS: Final = 1 << 16
_SEPARATOR: Final = "/"
"""Is in no name of a container."""


class Place(Struct, frozen=True):
    """Where a server of a container listens."""

    name: str
    container: Container
    server: HttpServer | None = None
    """None: the container has none in services.xml."""

    @property
    def port(self) -> int | None:
        """As services.xml says; None: it does not."""
        return self.server.port if self.server is not None else None


def places_of(container: Container) -> tuple[Place, ...]:
    """The places of a container; the first one has its name."""
    if not container.servers:
        return (Place(container.id, container),)
    first, *others = container.servers
    further = (Place(f"{container.id}{_SEPARATOR}{server.id}", container, server) for server in others)
    return (Place(container.id, container, first), *further)


def container_of(place: str) -> str:
    """The container whose place has that name."""
    return place.partition(_SEPARATOR)[0]


class Taken(Struct, frozen=True):
    """The ports that are not to be had, each with who has it."""

    owners: Mapping[int, str]
    front: int
    """The port of the command line."""

    def check(self, port: int, container: Container) -> None:
        """Errors: Conflict where somebody has the port, who is named."""
        if port in self.owners:
            raise Conflict(
                f"Container cluster '{container.id}' cannot listen on port {port}: {self.owners[port]} has it. "
                "Give one of them another port: <http><server id='…' port='…'/></http>"
            )


def assign(
    containers: Sequence[Container], recorded: Mapping[str, int], taken: Taken, can_have: Callable[[int], bool]
) -> dict[str, int]:
    """Name of a place → port. Errors: Conflict, naming who has the port that a container asks for."""
    given: dict[str, int] = {}
    places = [place for container in containers for place in places_of(container)]
    for place in places:
        if place.port is not None:
            port = taken.front if place.port == VESPA_PORT else place.port
            taken.check(port, place.container)
            other = next((name for name, given_port in given.items() if given_port == port), None)
            if other is not None:
                raise Conflict(f"Container clusters '{other}' and '{place.name}' both ask for port {port}")
            given[place.name] = port
    for place in places:
        if place.port is None:
            used = {*given.values(), *taken.owners}
            candidates = (port for port in _candidates(recorded.get(place.name), taken.front) if port not in used)
            given[place.name] = _first(candidates, can_have, place, taken.front)
    return given


def _candidates(recorded: int | None, front: int) -> Iterator[int]:
    """The ports that a place without one of its own may get, best first."""
    if recorded is not None:
        yield front if recorded == _FRONT else recorded
    yield from range(front, min(front + limits.CONTAINER_PORTS_TRIED, _PORTS))


def _first(candidates: Iterator[int], can_have: Callable[[int], bool], place: Place, front: int) -> int:
    found = next(filter(can_have, candidates), None)
    if found is None:
        raise Conflict(f"There is no free port for container cluster '{place.name}' after port {front}")
    return found


class PortRecord:
    """The ports that were given, by application, in the config store."""

    def __init__(self, store: ConfigStore) -> None:
        self._store = store

    def get(self, application: str) -> dict[str, int]:
        """Name of a place → port as `assign` takes it."""
        entry = self._store.get(_PREFIX + application)
        return dict(orjson.loads(entry.value)) if entry else {}

    def put(self, application: str, ports: Mapping[str, int], front: int) -> None:
        """Records what `assign` gave; nothing is written where that is known."""
        shown = {name: _FRONT if port == front else port for name, port in ports.items()}
        entry = self._store.get(_PREFIX + application)
        if entry and orjson.loads(entry.value) == shown:
            return
        if not shown:
            self._store.delete(_PREFIX + application)
        elif entry:
            self._store.compare_and_set(_PREFIX + application, orjson.dumps(shown), entry.revision)
        else:
            self._store.create(_PREFIX + application, orjson.dumps(shown))
