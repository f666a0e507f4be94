"""`VespaLocal`: pyvespa's `VespaDocker` without Docker. Tests that deploy to a container run with it in process.

    from paperwasp.testing import VespaLocal as VespaDocker

Methods and arguments are those of pyvespa 1.2; what only a container has (memory, volumes, an image) is taken and has
no effect.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import IO, Final, NamedTuple

from vespa.application import Vespa
from vespa.package import ApplicationPackage

from paperwasp.embedded.packages import archive_of
from paperwasp.embedded.service import Service
from paperwasp.embedded.temporary import TemporaryDirectory
from paperwasp.errors import InvalidInput, PaperwaspError

# What stands for Docker's containers: services of this process by their names.
#
# A VespaDocker that deploys an application finds the container that has the application's name, whoever has made it,
# with its documents; so it is here. A container is there until it is removed or the process ends.


_FOUND: Final[dict[str, LocalContainer]] = {}
"""The containers that are not removed, by name."""


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
        """The ports that it has, once it has started."""
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


# The container that stands for one of Docker's, as pyvespa has it.

_IMAGE: Final = "vespaengine/vespa"
_PORTS: Final = Ports(8080, 19071)


class DeploymentFailed(InvalidInput, RuntimeError):
    """The application package was refused. It is a RuntimeError too, which is what VespaDocker raises."""


class VespaLocal:
    """A service on a port of this machine, deployed to and started again as VespaDocker is."""

    def __init__(
        self,
        url: str = "http://localhost",
        port: int = _PORTS.container,
        container_memory: str | int = 0,
        output_file: IO[str] | None = None,
        container: LocalContainer | None = None,
        container_image: str = _IMAGE,
        volumes: list[str] | None = None,
        cfgsrv_port: int = _PORTS.config_server,
        debug_port: int = 5005,
        *,
        data_dir: str | Path | None = None,
        allow_python_components: bool = False,
    ) -> None:
        """Starts nothing yet. `port` and `cfgsrv_port` of 0 are any free ones. `data_dir` keeps documents beyond the
        end of the process."""
        self.url = url
        self.local_port = port
        self.cfgsrv_port = cfgsrv_port
        self.debug_port = debug_port
        self.container_memory = container_memory
        self.container_image = container_image
        self.volumes = volumes
        self.output = sys.stdout if output_file is None else output_file
        self.container: LocalContainer | None = None
        self.container_name: str | None = None
        self.container_id: str | None = None
        self._data_dir = None if data_dir is None else Path(data_dir)
        self._allow_python = allow_python_components
        if container is not None:
            self._take(container)

    @staticmethod
    def from_container_name_or_id(name_or_id: str, output_file: IO[str] | None = None) -> VespaLocal:
        """Find the container of an application of that name in this process. Errors: ValueError where there is none."""
        container = find_container(name_or_id)
        if container is None:
            raise ValueError("The container does not exist.")
        port, config_port = container.ports
        return VespaLocal(port=port, output_file=output_file, container=container, cfgsrv_port=config_port)

    @property
    def service(self) -> Service | None:
        """The service, while it runs."""
        return None if self.container is None else self.container.service

    def deploy(
        self,
        application_package: ApplicationPackage,
        max_wait_configserver: int = 60,
        max_wait_deployment: int = 300,
        max_wait_docker: int = 300,
        debug: bool = False,
    ) -> Vespa:
        """Deploys the package, and starts the service where it does not run. An application of that name that was
        deployed before in this process, and not removed, is there with its documents. A first package that is refused
        leaves nothing behind: its ports are free again.

        Errors: DeploymentFailed, PortTaken.
        """
        return self._deploy(application_package, archive_of(application_package))

    def deploy_from_disk(
        self,
        application_name: str,
        application_root: str | Path,
        max_wait_configserver: int = 60,
        max_wait_application: int = 300,
        docker_timeout: int = 300,
        debug: bool = False,
    ) -> Vespa:
        """Deploys the package in a folder. Errors: as of `deploy`."""
        archive = self.read_app_package_from_disk(application_root)
        return self._deploy(ApplicationPackage(name=application_name), archive)

    def read_app_package_from_disk(self, application_root: str | Path) -> bytes:
        """The package in a folder, as a zip file. Errors: DeploymentFailed where it cannot be read."""
        try:
            return archive_of(Path(application_root))
        except PaperwaspError as error:
            raise _failed(error) from error

    def _deploy(self, application: ApplicationPackage, archive: bytes) -> Vespa:
        asked = Ports(self.local_port, self.cfgsrv_port)
        is_new = (self.container is None or self.container.is_removed) and find_container(application.name) is None
        service = self._started(application.name)
        try:
            service.deploy(archive)
        except BaseException as error:
            if is_new:  # it has never had an application, and would keep its ports from the next
                self._container().remove()
                self.container = self.container_name = self.container_id = None
                self.local_port, self.cfgsrv_port = asked
            if isinstance(error, PaperwaspError):
                raise _failed(error) from error
            raise
        print("Finished deployment.", file=self.output)
        return Vespa(url=self.url, port=self.local_port, application_package=application)

    def _started(self, name: str) -> Service:
        if self.container is None or self.container.is_removed:
            ports = Ports(self.local_port, self.cfgsrv_port)
            found = find_container(name)
            self._take(found or LocalContainer(name, ports, self._data_dir, allow_python=self._allow_python))
        return self._container().start()

    def _take(self, container: LocalContainer) -> None:
        """Makes a container this one's. Errors: DeploymentFailed where it has other ports or another directory."""
        asked = Ports(self.local_port, self.cfgsrv_port)
        if not asked.fit(container.ports) or self._data_dir not in (None, container.data_dir):
            raise DeploymentFailed(
                f"The application '{container.name}' is deployed in this process already, on the ports "
                f"{container.ports.container} and {container.ports.config_server} and in '{container.data_dir}': "
                "remove its container, or deploy to the same"
            )
        self.container = container
        self.container_name, self.container_id = container.name, container.id
        self.local_port, self.cfgsrv_port = container.ports

    def wait_for_config_server_start(self, max_wait: int = 300) -> None:
        """Nothing is to be waited for: a service that has started answers. Errors: RuntimeError where none has."""
        if not self._check_configuration_server():
            raise RuntimeError("Config server did not start: nothing is deployed")

    def _check_configuration_server(self) -> bool:
        """Whether the service runs. pyvespa's own tests ask by this name."""
        return self.service is not None

    def start_services(self, max_wait: int = 120) -> None:
        """Starts a service that was stopped, with its application and documents. Errors: RuntimeError where there was
        none."""
        self._container().start()

    def stop_services(self) -> None:
        """Ends the service; its documents stay. Errors: RuntimeError where there is none."""
        self._container().stop()

    def restart_services(self) -> None:
        """Ends the service, and starts it on the same documents. Errors: RuntimeError where there is none."""
        self._container().restart()

    def dump_vespa_log(self) -> None:
        """Do nothing: the service logs to the log of this process."""

    def close(self) -> None:
        """Ends the service and forgets its documents, unless they are in a directory that was given."""
        if self.container is not None:
            self.container.remove()

    def _container(self) -> LocalContainer:
        if self.container is None:
            raise RuntimeError("No container found")
        return self.container

    def __enter__(self) -> VespaLocal:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __eq__(self, other: object) -> bool:
        return self._shown() == other._shown() if isinstance(other, VespaLocal) else NotImplemented

    def __repr__(self) -> str:
        return f"VespaLocal{self._shown()}"

    def _shown(self) -> tuple[object, ...]:
        """The value that two are compared by."""
        image = self.container_image.partition(":")[0]
        return self.url, self.local_port, self.container_name, self.container_id, self.container_memory, image


def _failed(error: PaperwaspError) -> DeploymentFailed:
    shown = {"error-code": error.deploy_code, "message": error.message}
    return DeploymentFailed(f"Deployment failed, code: {error.http_status}, message: {shown}")
