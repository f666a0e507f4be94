"""`VespaLocal`: pyvespa's `VespaDocker` without Docker. Tests that deploy to a container run with it in process.

    from paperwasp.testing import VespaLocal as VespaDocker

Methods and arguments are those of pyvespa 1.2; what only a container has (memory, volumes, an image) is taken and has
no effect.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from io import BytesIO
from pathlib import Path
from typing import IO, Any, Final

import orjson
from vespa.application import Vespa
from vespa.package import ApplicationPackage

from paperwasp.embedded.packages import archive_of
from paperwasp.embedded.service import Service
from paperwasp.embedded.temporary import TemporaryDirectory
from paperwasp.errors import InvalidInput, PaperwaspError

_PORT: Final = 8080
_CONFIG_PORT: Final = 19071


class DeploymentFailed(InvalidInput, RuntimeError):
    """The application package was refused. It is a RuntimeError too, which is what VespaDocker raises."""


class LocalContainer:
    """What tests do with the container of a VespaDocker: ending it, and asking whether it runs."""

    def __init__(self, owner: VespaLocal, name: str) -> None:
        self._owner = owner
        self.name = name
        self.id = name

    @property
    def status(self) -> str:
        return "running" if self._owner.service is not None else "exited"

    def stop(self, **_: object) -> None:
        """Ends the service; `remove` forgets its documents."""
        self._owner.stop_services()

    def restart(self, **_: object) -> None:
        """Ends the service, and starts it on the same documents."""
        self._owner.restart_services()

    def remove(self, **_: object) -> None:
        """Forgets all that was fed and deployed."""
        self._owner.close()

    def reload(self) -> None:
        """The state is always that of now."""


class VespaLocal:
    """A service on a port of this machine, deployed to and started again as VespaDocker is."""

    def __init__(
        self,
        url: str = "http://localhost",
        port: int = _PORT,
        container_memory: str | int = 0,
        output_file: IO[str] | None = None,
        container: object = None,
        container_image: str = "",
        volumes: Sequence[str] | None = None,
        cfgsrv_port: int = _CONFIG_PORT,
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
        self.service: Service | None = None
        """The service, while it runs."""
        self._data_dir = data_dir
        self._temporary: TemporaryDirectory | None = None
        self._allow_python = allow_python_components

    def deploy(
        self,
        application_package: ApplicationPackage,
        max_wait_configserver: int = 60,
        max_wait_deployment: int = 300,
        max_wait_docker: int = 300,
        debug: bool = False,
    ) -> Vespa:
        """Deploys the package, and starts the service where it does not run. Errors: DeploymentFailed, PortTaken."""
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
        try:
            archive = archive_of(Path(application_root))
        except PaperwaspError as error:
            raise _failed(error) from error
        return self._deploy(ApplicationPackage(name=application_name), archive)

    def _deploy(self, application: ApplicationPackage, archive: bytes | BytesIO) -> Vespa:
        service = self._started(application.name)
        try:
            service.deploy(archive if isinstance(archive, bytes) else archive.getvalue())
        except PaperwaspError as error:
            raise _failed(error) from error
        print("Finished deployment.", file=self.output)
        return Vespa(url=self.url, port=self.local_port, application_package=application)

    def _started(self, name: str) -> Service:
        if self.container is None:
            self.container = LocalContainer(self, name)
            self.container_name = self.container_id = name
        if self.service is None:
            self.service = Service(
                data_dir=self._directory(),
                port=self.local_port,
                config_port=self.cfgsrv_port,
                allow_python_components=self._allow_python,
            )
            self.local_port = self.service.port
            self.cfgsrv_port = self.service.config_port
        return self.service

    def _directory(self) -> str | Path:
        if self._data_dir is not None:
            return self._data_dir
        if self._temporary is None:
            self._temporary = TemporaryDirectory()
        return self._temporary.path

    def wait_for_config_server_start(self, max_wait: int = 300) -> None:
        """Nothing is to be waited for: a service that has started answers."""
        self._container()

    def start_services(self, max_wait: int = 120) -> None:
        """Starts a service that was stopped, with its application and documents. Errors: RuntimeError where there was
        none."""
        self._started(self._container().name)

    def stop_services(self) -> None:
        """Ends the service; its documents stay. Errors: RuntimeError where there is none."""
        self._container()
        if self.service is not None:
            self.service.close()
            self.service = None

    def restart_services(self) -> None:
        """Ends the service, and starts it on the same documents."""
        self.stop_services()
        self.start_services()

    def dump_vespa_log(self) -> None:
        """What the service logs is in the log of this process."""

    def close(self) -> None:
        """Ends the service and forgets its documents, unless they are in a directory that was given."""
        if self.service is not None:
            self.service.close()
            self.service = None
        if self._temporary is not None:
            self._temporary.close()
            self._temporary = None

    def _container(self) -> LocalContainer:
        if self.container is None:
            raise RuntimeError("No container found")
        return self.container

    def __enter__(self) -> VespaLocal:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _failed(error: PaperwaspError) -> DeploymentFailed:
    content: Mapping[str, Any] = {"error-code": error.deploy_code, "message": error.message}
    shown = orjson.dumps(content).decode()
    return DeploymentFailed(f"Deployment failed, code: {error.http_status}, message: {shown}")
