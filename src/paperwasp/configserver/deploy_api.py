"""The Deploy API's sessions: upload, prepare, activate, and all three in one request.

Vespa: https://docs.vespa.ai/en/reference/api/deploy-v2.html
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from paperwasp.application.services import Note
from paperwasp.configserver.addresses import (
    ROOT,
    SESSION,
    application_in_parameters,
    application_url,
    check_tenant,
    session_in_path,
    session_url,
)
from paperwasp.configserver.parameters import archive_in, flag
from paperwasp.configserver.server import ConfigServer, Prepared
from paperwasp.configserver.sessions import ApplicationId, Session, State
from paperwasp.configserver.worker import Worker
from paperwasp.env import Environment
from paperwasp.errors import InvalidInput
from paperwasp.http.messages import Request, Response, json_response
from paperwasp.http.routing import Router

_NO_ACTIONS: Final[Mapping[str, list[object]]] = {"restart": [], "refeed": [], "reindex": []}
"""No change that is let through needs anything to be done: those that would are refused."""


class DeployApi:
    """Handlers of `…/session` and `…/prepareandactivate`. What blocks runs on the worker."""

    def __init__(self, server: ConfigServer, worker: Worker, environment: Environment) -> None:
        self._server = server
        self._worker = worker
        self._environment = environment

    def bind(self, router: Router) -> None:
        router.add("POST", ROOT + "/session", self.create)
        router.add("PUT", SESSION + "/prepared", self.prepare)
        router.add("GET", SESSION + "/prepared", self.get_prepared)
        router.add("PUT", SESSION + "/active", self.activate)
        router.add("POST", ROOT + "/prepareandactivate", self.prepare_and_activate)

    async def create(self, request: Request, names: Mapping[str, str]) -> Response:
        """A session from an uploaded archive."""
        check_tenant(names)
        if "from" in request.parameters():
            raise InvalidInput("Creating a session from an active application ('from') is not supported yet")
        session = await self._worker.run(self._server.create, archive_in(request))
        url = session_url(request, session.id)
        return json_response(
            200,
            {
                "log": [],
                "tenant": session.application.tenant,
                "session-id": str(session.id),
                "prepared": f"{url}/prepared",
                "content": f"{url}/content/",
                "message": f"Session {session.id} for tenant 'default' created.",
            },
        )

    async def prepare(self, request: Request, names: Mapping[str, str]) -> Response:
        session_id = session_in_path(names)
        parameters = request.parameters()
        application = _named_application(parameters)
        prepared = await self._worker.run(
            self._server.prepare, session_id, application, flag(parameters, "dryRun", "dryrun")
        )
        return self._prepared(request, prepared)

    async def get_prepared(self, request: Request, names: Mapping[str, str]) -> Response:
        session = await self._worker.run(self._server.session, session_in_path(names))
        if session.state is not State.PREPARED:
            what = "active" if session.state is State.ACTIVE else "not prepared"
            raise InvalidInput(f"Session is {what}: {session.id}")
        return self._prepared(request, Prepared(session, ()))

    def _prepared(self, request: Request, prepared: Prepared) -> Response:
        session = prepared.session
        return json_response(
            200,
            {
                "log": self._log(prepared.notes),
                "tenant": session.application.tenant,
                "session-id": str(session.id),
                "activate": f"{session_url(request, session.id)}/active",
                "message": f"Session {session.id} for tenant 'default' prepared.",
                "configChangeActions": _NO_ACTIONS,
            },
        )

    async def activate(self, request: Request, names: Mapping[str, str]) -> Response:
        session_id = session_in_path(names)
        force = flag(request.parameters(), "ignoreSessionStaleFailure", "force")
        session = await self._worker.run(self._server.activate, session_id, force)
        message = f"Session {session.id} for tenant 'default' activated."
        return json_response(200, self._activated(request, session, message))

    def _activated(self, request: Request, session: Session, message: str) -> dict[str, Any]:
        return {
            "deploy": {"from": "unknown", "timestamp": session.activated_ms},
            "tenant": session.application.tenant,
            "application": session.application.application,
            "instance": session.application.instance,
            "session-id": str(session.id),
            "message": message,
            "url": application_url(request, session.application),
        }

    async def prepare_and_activate(self, request: Request, names: Mapping[str, str]) -> Response:
        """Upload, prepare and activate. Still 200 where only the activation failed: the message says why."""
        check_tenant(names)
        parameters = request.parameters()
        application = application_in_parameters(parameters)
        dry_run = flag(parameters, "dryRun", "dryrun")
        prepared, error = await self._worker.run(
            self._server.prepare_and_activate, archive_in(request), application, dry_run
        )
        session = prepared.session
        activated = session.state is State.ACTIVE
        done = "prepared and activated." if activated else "prepared, but not activated: this was a dry run."
        if error is not None:
            done = f"prepared, but activation failed: {error.message}"
        return json_response(
            200,
            {
                "log": self._log(prepared.notes),
                "message": f"Session {session.id} for tenant 'default' {done}",
                "session-id": str(session.id),
                "activated": activated,
                "tenant": session.application.tenant,
                "url": application_url(request, session.application),
                "configChangeActions": _NO_ACTIONS,
            },
        )

    def _log(self, notes: tuple[Note, ...]) -> list[dict[str, Any]]:
        now_ms = self._environment.time_ns() // 1_000_000
        return [{"time": now_ms, "level": note.level, "message": note.message} for note in notes]


def _named_application(parameters: Mapping[str, str]) -> ApplicationId | None:
    """The application that the parameters name; None where they name none, and the session keeps its own."""
    named = "applicationName" in parameters or "instance" in parameters
    return application_in_parameters(parameters) if named else None
