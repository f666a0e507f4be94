"""The config server's face: a request in, a response out. `http.server.HttpServer` has the sockets."""

from __future__ import annotations

import logging
import traceback
from typing import Final

from paperwasp.admin.access import DEPLOY, KnownKeys, Refusals, bearer_token, is_open, refusal_headers, shown_id
from paperwasp.admin.monitoring.api import MetricsApi
from paperwasp.admin.monitoring.requests import RequestMetrics, is_monitoring
from paperwasp.base.env import SYSTEM, Environment
from paperwasp.base.records import replace
from paperwasp.configserver.application_api import ApplicationApi, ConvergenceApi, TenantApi
from paperwasp.configserver.backup_api import BackupApi, OpenFiles
from paperwasp.configserver.config_server import ConfigServer
from paperwasp.configserver.content_api import ContentApi
from paperwasp.configserver.deploy_api import DeployApi
from paperwasp.configserver.logs import ServiceLog
from paperwasp.configserver.parameters import flag
from paperwasp.configserver.reindexing_api import ReindexingApi
from paperwasp.configserver.service_addresses import Restart
from paperwasp.configserver.state_api import StateApi
from paperwasp.configserver.workers import Workers
from paperwasp.errors import Forbidden, PaperwaspError, Unauthenticated, failure
from paperwasp.http.cbor import as_accepted, as_json_request
from paperwasp.http.description import DescriptionApi
from paperwasp.http.messages import Answer, Request, Response, decode_form, json_response
from paperwasp.http.observing import Exchanged
from paperwasp.http.routing import Router
from paperwasp.http.traffic import Traffic

_log = logging.getLogger(__name__)
_MONITORING: Final = "monitoring"


class ConfigServerApp:
    """Answers every request to the config port.

    `restart` restarts some of what serves an application; `logs` is what
    `vespa log` is shown; `open_files` opens all that a backup holds; `guard` says
    who may ask, None: everybody.
    """

    def __init__(
        self,
        server: ConfigServer,
        *,
        restart: Restart,
        logs: ServiceLog | None = None,
        open_files: OpenFiles = list,
        guard: DeployGuard | None = None,
        environment: Environment = SYSTEM,
    ) -> None:
        self._server = server
        self._guard = guard
        self._workers = Workers()
        self._metrics = RequestMetrics(_kind_of, {_MONITORING: _MONITORING}, environment)
        self._router = Router()
        sessions, deployments, applications = server.sessions, server.deployments, server.applications
        DeployApi(sessions, deployments, self._workers, environment).bind(self._router)
        TenantApi(sessions, applications, self._workers, server.convergence).bind(self._router)
        ApplicationApi(server, self._workers, restart, logs, environment).bind(self._router)
        ConvergenceApi(applications, server.convergence).bind(self._router)
        ReindexingApi(applications, server.reindexing, self._workers).bind(self._router)
        ContentApi(sessions, server.packages, deployments, self._workers).bind(self._router)
        BackupApi(open_files).bind(self._router)
        self.state: Final = StateApi(applications, server.reindexing.of, self._metrics, environment)
        self.state.bind(self._router)
        MetricsApi(self.state, environment).bind(self._router)
        DescriptionApi("configserver").bind(self._router)

    async def handle(self, request: Request) -> Answer:
        """The answer; also to what is wrong with the request, and to a defect of ours."""
        return await as_accepted(request, await self._answer(request))

    def observe(self, exchange: Exchanged, request: Request, answer: Answer, elapsed_ns: int) -> None:
        """Counts an answer that was sent."""
        self._metrics.observe(exchange, request, answer, elapsed_ns)

    def count_traffic(self, port: int, traffic: Traffic) -> None:
        """Shows among the metrics what goes over the connections of the config port."""
        self._metrics.ports[port] = traffic

    async def _answer(self, request: Request) -> Answer:
        refusal = None if self._guard is None else self._guard.refusal(request)
        if refusal is not None:
            answer = error_response(refusal.http_status, refusal.deploy_code, refusal.message)
            return replace(answer, headers=refusal_headers(refusal))
        try:
            return await self._router.handle(await as_json_request(request))
        except PaperwaspError as error:
            return error_response(error.http_status, error.deploy_code, _message(request, error, error.message))
        except Exception as error:
            _log.exception("%s %s failed", request.method, request.raw_path)
            shown = failure(error)
            return error_response(shown.http_status, shown.deploy_code, _message(request, error, shown.message))

    def close(self) -> None:
        """Closes the config server, and lets the deployments that run finish. No request may come afterwards."""
        self._server.close()
        self._workers.close()


def _kind_of(request: Request) -> str:
    """The kind of a request: a deployment, or one of a few others."""
    path, method = request.raw_path, request.method
    if is_monitoring(path):
        return _MONITORING
    if method == "POST" and path.endswith("/prepareandactivate"):
        return "deploy"
    if method == "PUT" and path.endswith(("/prepared", "/active")):
        return "prepare" if path.endswith("/prepared") else "activate"
    return "read" if method in ("GET", "HEAD") else "other"


def error_response(status: int, code: str, message: str) -> Response:
    """An error as the Deploy API says it."""
    return json_response(status, {"error-code": code, "message": message})


def _message(request: Request, error: Exception, message: str) -> str:
    """With `debug=true`, where it came from too."""
    try:
        wanted = "debug" in request.query and flag(decode_form(request.query), "debug")
    except PaperwaspError:
        return message
    return f"{message}\n{''.join(traceback.format_exception(error))}" if wanted else message


# Who may speak to the config server: whoever has a key of scope deploy, or shows a certificate that its port trusts.
#
# Health, version and metrics are open to all, as they are in containers. Differs: Vespa leaves this to a network of its
# own, or to its cloud.


class DeployGuard:
    """Says who is refused. Runs on the event loop."""

    def __init__(self, keys: KnownKeys, refusals: Refusals, environment: Environment = SYSTEM) -> None:
        self._keys = keys
        self._refusals = refusals
        self._environment = environment

    def refusal(self, request: Request) -> PaperwaspError | None:
        """The reason to refuse a request, which the log has then; None: it may be served."""
        if request.client is not None or is_open(request.raw_path):
            return None
        token = bearer_token(request.headers)
        if token is None:
            self._refusals.note(request, Unauthenticated.http_status, "no key and no certificate")
            return Unauthenticated("Unauthorized")
        key = self._keys.find(token)
        if key is None:
            why = f"an unknown or revoked key {shown_id(token)}".rstrip()
        elif key.is_expired(self._environment.now_seconds()):
            why = f"key '{key.name}' ({key.id}) has expired"
        elif DEPLOY not in key.scopes:
            why = f"key '{key.name}' ({key.id}) has no scope '{DEPLOY}'"
        else:
            return None
        self._refusals.note(request, Forbidden.http_status, why)
        return Forbidden("Forbidden")
