"""The Deploy API's sessions: upload, prepare, activate, and all three in one request.

Vespa: https://docs.vespa.ai/en/reference/api/deploy-v2.html
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from paperwasp.application.changes.found import describe_actions
from paperwasp.base.env import Environment
from paperwasp.configserver.change_actions import NO_ACTIONS, actions_as_json
from paperwasp.configserver.deadline import Deadline
from paperwasp.configserver.deployments import ACTIVATE_SECONDS, PREPARE_SECONDS, Deployments
from paperwasp.configserver.parameters import (
    SESSION,
    TENANT,
    application_in_parameters,
    application_in_url,
    application_url,
    archive_in,
    check_version,
    flag,
    seconds,
    session_in_path,
    session_url,
    upload_in,
)
from paperwasp.configserver.preparation import Prepared, PrepareOptions
from paperwasp.configserver.repository import ApplicationId, Session, SessionRepository, State
from paperwasp.configserver.running import Activation
from paperwasp.configserver.workers import Workers
from paperwasp.errors import InvalidInput
from paperwasp.http.messages import Request, Response, json_response
from paperwasp.http.routing import Router


class DeployApi:
    """Handlers of `…/session` and `…/prepareandactivate`. What blocks runs on the workers."""

    def __init__(
        self, sessions: SessionRepository, deployments: Deployments, workers: Workers, environment: Environment
    ) -> None:
        self._sessions = sessions
        self._deployments = deployments
        self._workers = workers
        self._environment = environment

    def bind(self, router: Router) -> None:
        for path in (TENANT + "/session", TENANT + "/session/"):
            router.add("POST", path, self.create)
        router.add("PUT", SESSION + "/prepared", self.prepare)
        router.add("GET", SESSION + "/prepared", self.get_prepared)
        router.add("PUT", SESSION + "/active", self.activate)
        router.add("POST", TENANT + "/prepareandactivate", self.prepare_and_activate)

    async def create(self, request: Request, names: Mapping[str, str]) -> Response:
        """A session from an uploaded archive, or from an application that is active."""
        tenant, parameters = names["tenant"], request.parameters()
        await self._workers.read(self._sessions.check_tenant, tenant)
        deadline = self._deadline(parameters, PREPARE_SECONDS)
        if "from" in parameters:
            source = application_in_url(tenant, parameters["from"])
            session = await self._workers.deploy(tenant, deadline, lambda: self._deployments.create_from(source))
        else:
            archive, application = archive_in(request), ApplicationId(tenant)
            session = await self._workers.deploy(
                tenant, deadline, lambda: self._deployments.create(archive, application)
            )
        url = session_url(request, tenant, session.id)
        return json_response(
            200,
            {
                "log": [],
                "tenant": tenant,
                "session-id": str(session.id),
                "prepared": f"{url}/prepared",
                "content": f"{url}/content/",
                "message": f"Session {session.id} for tenant '{tenant}' created.",
            },
        )

    async def prepare(self, request: Request, names: Mapping[str, str]) -> Response:
        tenant, session_id, parameters = names["tenant"], session_in_path(names), request.parameters()
        await self._workers.read(self._sessions.check_tenant, tenant)
        named = "applicationName" in parameters or "instance" in parameters
        application = application_in_parameters(tenant, parameters) if named else None
        options, deadline = _options(parameters, application), self._deadline(parameters, PREPARE_SECONDS)
        prepared = await self._workers.deploy(
            tenant, deadline, lambda: self._deployments.prepare(tenant, session_id, options, deadline)
        )
        return self._answer_prepared(request, prepared)

    async def get_prepared(self, request: Request, names: Mapping[str, str]) -> Response:
        tenant, session_id = names["tenant"], session_in_path(names)
        await self._workers.read(self._sessions.check_tenant, tenant)
        session = await self._workers.read(self._sessions.get, tenant, session_id)
        if session.state is not State.PREPARED:
            what = "active" if session.state is State.ACTIVE else "not prepared"
            raise InvalidInput(f"Session is {what}: {session.id}")
        return self._answer_prepared(request, Prepared(session))

    def _answer_prepared(self, request: Request, prepared: Prepared) -> Response:
        session = prepared.session
        tenant = session.application.tenant
        return json_response(
            200,
            {
                "log": self._log(prepared),
                "tenant": tenant,
                "session-id": str(session.id),
                "activate": f"{session_url(request, tenant, session.id)}/active",
                "message": f"Session {session.id} for tenant '{tenant}' prepared.",
                "configChangeActions": actions_as_json(prepared.changes) if prepared.changes.actions else NO_ACTIONS,
            },
        )

    async def activate(self, request: Request, names: Mapping[str, str]) -> Response:
        tenant, session_id, parameters = names["tenant"], session_in_path(names), request.parameters()
        await self._workers.read(self._sessions.check_tenant, tenant)
        force = flag(parameters, "ignoreSessionStaleFailure", "force")
        deadline = self._deadline(parameters, ACTIVATE_SECONDS)
        session, activation = await self._workers.deploy(
            tenant, deadline, lambda: self._deployments.activate(tenant, session_id, force, deadline)
        )
        return json_response(200, _activation_as_json(request, session, activation))

    async def prepare_and_activate(self, request: Request, names: Mapping[str, str]) -> Response:
        """Upload, prepare and activate. Still 200 where only the activation failed: the message says why."""
        tenant = names["tenant"]
        await self._workers.read(self._sessions.check_tenant, tenant)
        upload = await self._workers.read(upload_in, request)
        options = _options(upload.parameters, application_in_parameters(tenant, upload.parameters))
        deadline = self._deadline(upload.parameters, PREPARE_SECONDS)
        prepared, error = await self._workers.deploy(
            tenant, deadline, lambda: self._deployments.prepare_and_activate(upload.archive, options, deadline)
        )
        session = prepared.session
        activated = session.state is State.ACTIVE
        done = "prepared and activated." if activated else "prepared, but not activated: this was a dry run."
        if error is not None:
            done = f"prepared, but activation failed: {error.message}"
        return json_response(
            200,
            {
                "log": self._log(prepared),
                "message": f"Session {session.id} for tenant '{tenant}' {done}",
                "session-id": str(session.id),
                "activated": activated,
                "tenant": tenant,
                "url": application_url(request, session.application),
                "configChangeActions": actions_as_json(prepared.changes) if prepared.changes.actions else NO_ACTIONS,
            },
        )

    def _log(self, prepared: Prepared) -> list[dict[str, Any]]:
        """The findings about the package, and why anything is to be done after the change."""
        now_ms = self._environment.time_ns() // 1_000_000
        lines = [(finding.level, str(finding)) for finding in prepared.findings]
        lines += [("WARNING", message) for message in describe_actions(prepared.changes)]
        return [
            {"time": now_ms, "level": level, "message": message, "applicationPackage": True} for level, message in lines
        ]

    def _deadline(self, parameters: Mapping[str, str], default_seconds: float) -> Deadline:
        return Deadline(seconds(parameters, default_seconds), self._environment)


def _options(parameters: Mapping[str, str], application: ApplicationId | None) -> PrepareOptions:
    check_version(parameters)
    return PrepareOptions(
        application,
        dry_run=flag(parameters, "dryRun", "dryrun"),
        ignore_validation_errors=flag(parameters, "ignoreValidationErrors"),
        force=flag(parameters, "ignoreSessionStaleFailure", "force"),
    )


def _activation_as_json(request: Request, session: Session, activation: Activation) -> dict[str, Any]:
    application = session.application
    return {
        "deploy": {"from": "unknown", "timestamp": session.activated_ms},
        "tenant": application.tenant,
        "application": application.application,
        "instance": application.instance,
        "session-id": str(session.id),
        "generation": activation.generation,
        "previousActiveGeneration": activation.previous_generation,
        "checksum": activation.model.checksum,
        "message": f"Session {session.id} for tenant '{application.tenant}' activated.",
        "url": application_url(request, application),
    }
