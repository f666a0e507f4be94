"""Which container listens on which port.

* A container with a `server` in services.xml listens on that server's port. Port 8080, which is where Vespa's
  containers listen unless configured otherwise, means the port of the command line.
* Of those without one, the first gets the command line's port, and every further one the next free port after it.
* What was given once stays: it is recorded, and found again after a restart.

Nothing here opens a port: a callable tells `assign` whether one can be had.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import orjson

from paperwasp import limits
from paperwasp.cluster.config_store import ConfigStore
from paperwasp.errors import Conflict

if TYPE_CHECKING:
    from paperwasp.application.services_model import Container

VESPA_PORT: Final = 8080
_FRONT: Final = 0
"""How the port of the command line is recorded: another one may be given at the next start."""
_PREFIX: Final = "container-ports/"
_PORTS: Final = 1 << 16


@dataclass(frozen=True, slots=True)
class Taken:
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
    """Container cluster → port. Errors: Conflict, naming who has the port that a container asks for."""
    given: dict[str, int] = {}
    for container in containers:
        if container.port is not None:
            port = taken.front if container.port == VESPA_PORT else container.port
            taken.check(port, container)
            _check_own(given, port, container)
            given[container.id] = port
    for container in containers:
        if container.port is None:
            used = {*given.values(), *taken.owners}
            candidates = (port for port in _candidates(recorded.get(container.id), taken.front) if port not in used)
            given[container.id] = _first(candidates, can_have, container, taken.front)
    return given


def _check_own(given: Mapping[str, int], port: int, container: Container) -> None:
    for other, others_port in given.items():
        if others_port == port:
            raise Conflict(f"Container clusters '{other}' and '{container.id}' both ask for port {port}")


def _candidates(recorded: int | None, front: int) -> Iterator[int]:
    """The ports that a container without one of its own may get, best first."""
    if recorded is not None:
        yield front if recorded == _FRONT else recorded
    yield from range(front, min(front + limits.CONTAINER_PORTS_TRIED, _PORTS))


def _first(candidates: Iterator[int], can_have: Callable[[int], bool], container: Container, front: int) -> int:
    found = next(filter(can_have, candidates), None)
    if found is None:
        raise Conflict(f"There is no free port for container cluster '{container.id}' after port {front}")
    return found


class PortRecord:
    """The ports that were given, by application, in the config store."""

    def __init__(self, store: ConfigStore) -> None:
        self._store = store

    def get(self, application: str) -> dict[str, int]:
        """Container cluster → port as `assign` takes it."""
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
