"""What stands for Docker's containers: services of this process by their names.

A VespaDocker that deploys an application finds the container that has the application's name, whoever has made it, with
its documents; so it is here. A container is there until it is removed or the process ends.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final, NamedTuple

from paperwasp.embedded.service import Service
from paperwasp.embedded.temporary import TemporaryDirectory

_FOUND: Final[dict[str, LocalContainer]] = {}
"""Those that are not removed, by name."""


class Ports(NamedTuple):
    """Of the container and of the config server; 0 is any free one."""

    container: int
    config_server: int

    def fit(self, others: Ports) -> bool:
        """Whether these can be had where there are others: they are the same, or any will do."""
        return all(asked in (0, there) for asked, there in zip(self, others, strict=True))


class LocalContainer:
    """A service that can be ended and started again with its documents: what tests do with a container."""

    def __init__(self, name: str, ports: Ports, data_dir: Path | None, *, allow_python: bool = False) -> None:
        """Starts the service. `data_dir` of None is a temporary one, which `remove` removes. Errors: PortTaken,
        DataLocked."""
        self.name = name
        self.id = name
        self.ports = ports
        """Those it has, once it has started."""
        self.service: Service | None = None
        """The service, while it runs."""
        self._allow_python = allow_python
        self._temporary = TemporaryDirectory() if data_dir is None else None
        self.data_dir: Final = data_dir if self._temporary is None else self._temporary.path
        _FOUND[name] = self
        try:
            self.start()
        except BaseException:
            self.remove()
            raise

    @property
    def status(self) -> str:
        """`running` or `exited`, as Docker has it."""
        return "exited" if self.service is None else "running"

    @property
    def is_removed(self) -> bool:
        return _FOUND.get(self.name) is not self

    def start(self, **_: object) -> Service:
        """Starts the service on the same ports and documents, unless it runs. Errors: RuntimeError where it was
        removed; PortTaken."""
        if self.is_removed:
            raise RuntimeError(f"No such container: {self.name}")
        if self.service is None:
            self.service = Service(
                data_dir=self.data_dir,
                port=self.ports.container,
                config_port=self.ports.config_server,
                allow_python_components=self._allow_python,
            )
            self.ports = Ports(self.service.port, self.service.config_port)
        return self.service

    def stop(self, **_: object) -> None:
        """Ends the service; its documents stay."""
        if self.service is not None:
            self.service.close()
            self.service = None

    kill = stop

    def restart(self, **_: object) -> None:
        """Ends the service, and starts it on the same documents."""
        self.stop()
        self.start()

    def remove(self, **_: object) -> None:
        """Ends the service and forgets its application and documents, unless they are in a directory that was given."""
        self.stop()
        if not self.is_removed:
            del _FOUND[self.name]
        if self._temporary is not None:
            self._temporary.close()

    def reload(self) -> None:
        """The state is always that of now."""


def find_container(name: str) -> LocalContainer | None:
    """The container of that name; None: there is none."""
    return _FOUND.get(name)
