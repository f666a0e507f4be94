"""The config server's face: a request in, a response out. A server shell adds the sockets and nothing else."""

from __future__ import annotations

import logging

from paperwasp.configserver.application_api import ApplicationApi, ContainerAddress
from paperwasp.configserver.content_api import ContentApi
from paperwasp.configserver.deploy_api import DeployApi
from paperwasp.configserver.server import ConfigServer
from paperwasp.configserver.state_api import StateApi
from paperwasp.configserver.worker import Worker
from paperwasp.env import SYSTEM, Environment
from paperwasp.errors import PaperwaspError
from paperwasp.http.messages import Request, Response, json_response
from paperwasp.http.routing import Router

_log = logging.getLogger(__name__)


class ConfigServerApp:
    """Answers every request to the config port."""

    def __init__(
        self,
        server: ConfigServer,
        container: ContainerAddress = ContainerAddress(),  # noqa: B008 — frozen
        environment: Environment = SYSTEM,
    ) -> None:
        self._worker = Worker()
        self._router = Router()
        DeployApi(server, self._worker, environment).bind(self._router)
        ApplicationApi(server, self._worker, container).bind(self._router)
        ContentApi(server, self._worker).bind(self._router)
        StateApi(server, environment).bind(self._router)

    async def handle(self, request: Request) -> Response:
        """The answer; also to what is wrong with the request, and to a defect of ours."""
        try:
            return await self._router.handle(request)
        except PaperwaspError as error:
            return error_response(error.http_status, error.deploy_code, error.message)
        except Exception as error:
            _log.exception("%s %s failed", request.method, request.raw_path)
            return error_response(500, "INTERNAL_SERVER_ERROR", f"{type(error).__name__}: {error}")

    def close(self) -> None:
        """Lets the deployment that runs finish. No request may come afterwards."""
        self._worker.close()


def error_response(status: int, code: str, message: str) -> Response:
    """An error as the Deploy API says it."""
    return json_response(status, {"error-code": code, "message": message})
