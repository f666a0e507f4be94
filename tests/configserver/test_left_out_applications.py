"""An application that cannot be restored at the start is left out: the others serve, it can be deployed or deleted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from paperwasp.application.model import ApplicationModel
from paperwasp.application.package import ApplicationPackage
from paperwasp.configserver import Activation, ApplicationId, ConfigServer, PrepareOptions
from paperwasp.errors import Conflict, InvalidPackage, NotFound
from paperwasp.http.messages import Request
from tests.configserver.deploy_fixtures import PACKAGES, Service, ask, build, config_app, config_server, deploy

DEFAULT = ApplicationId()
OTHER = ApplicationId("default", "other", "inst")
TAKEN = "port 4711 is taken"
APP = "/application/v2/tenant/default/application/default/environment/prod/region/default/instance/default"


class OnePortTaken(Service):
    """A service in which the default application cannot have its port."""

    is_taken = True

    def activate(self, activation: Activation) -> None:
        if self.is_taken and activation.application == DEFAULT and not activation.is_deletion:
            raise Conflict(TAKEN)
        super().activate(activation)


def restarted(directory: Path, service: Service) -> ConfigServer:
    """The config server at its next start, with the default application and another one deployed before."""
    first = config_server(directory)
    deploy(first, "music")
    deploy(first, "music", OTHER)
    server = config_server(directory, service)
    server.restore()
    return server


def test_the_others_serve(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    server = restarted(tmp_path, OnePortTaken())
    assert (list(server.applications.running), server.applications.left_out) == ([OTHER], {DEFAULT: TAKEN})
    assert server.applications.active() == [DEFAULT, OTHER]
    assert (server.applications.current_generation(DEFAULT), server.applications.wanted_generation(DEFAULT)) == (0, 1)
    assert f"Application {DEFAULT} could not be restored: {TAKEN}" in caplog.text
    with pytest.raises(NotFound, match=f"does not run: {TAKEN}"):
        server.applications.running_of(DEFAULT)


def test_clients_are_told(tmp_path: Path) -> None:
    service = OnePortTaken()
    app = config_app(restarted(tmp_path, service), service)

    def get(path: str, query: str = "") -> tuple[int, Any]:
        response = ask(app, Request("GET", path, query))
        return response.status, json.loads(response.body)

    status, answer = get(APP + "/serviceconverge", "timeout=0")
    generations = {name: answer[name] for name in ("currentGeneration", "wantedGeneration", "converged", "services")}
    assert status == 200
    assert generations == {"currentGeneration": -1, "wantedGeneration": 1, "converged": False, "services": []}
    assert get("/state/v1/health")[1]["status"] == {"code": "up", "message": f"{DEFAULT} does not run: {TAKEN}"}
    assert get("/state/v1/config")[1]["config"] == {"generation": 2, "wantedGeneration": 2}
    assert get(APP) == (404, {"error-code": "NOT_FOUND", "message": f"Application {DEFAULT} does not run: {TAKEN}"})
    assert len(get("/application/v2/tenant/default/application/")[1]) == 2
    assert [entry["name"] for entry in get(APP + "/content/")[1]] == ["schemas", "services.xml"]
    app.close()


def test_it_can_be_deployed_anew_and_is_compared_with_what_was_active(tmp_path: Path) -> None:
    service = OnePortTaken()
    server = restarted(tmp_path, service)
    service.is_taken = False
    with pytest.raises(InvalidPackage, match="field-type-change"):
        deploy(server, "type-changed")
    assert server.applications.left_out
    generation = deploy(server, "artist-added")
    assert (server.applications.left_out, server.applications.current_generation(DEFAULT)) == ({}, generation)


def test_a_deployment_that_fails_leaves_it_as_it_was(tmp_path: Path) -> None:
    server = restarted(tmp_path, OnePortTaken())
    _, error = server.deployments.prepare_and_activate(PACKAGES["artist-added"])
    assert (type(error), server.applications.wanted_generation(DEFAULT), server.applications.left_out) == (
        Conflict,
        1,
        {DEFAULT: TAKEN},
    )


def test_it_can_be_deleted(tmp_path: Path) -> None:
    server = restarted(tmp_path, OnePortTaken())
    server.deployments.delete_application(DEFAULT)
    assert (
        server.applications.left_out,
        server.applications.wanted_generation(DEFAULT),
        list(server.applications.running),
    ) == ({}, 0, [OTHER])
    with pytest.raises(NotFound, match="Not found"):
        server.deployments.delete_application(DEFAULT)


def test_a_package_that_is_not_valid_any_more_is_replaced_only_where_that_is_allowed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stricter(package: ApplicationPackage, application: ApplicationId) -> ApplicationModel:
        if application == DEFAULT and b"artist" not in package.files["schemas/music.sd"]:
            raise InvalidPackage("Invalid application package: music has no artist")
        return build(package, application)

    first = config_server(tmp_path)
    deploy(first, "music")
    deploy(first, "music", OTHER)
    monkeypatch.setattr("tests.configserver.deploy_fixtures.build", stricter)
    server = config_server(tmp_path)
    server.restore()
    assert server.applications.left_out == {DEFAULT: "Invalid application package: music has no artist"}
    with pytest.raises(InvalidPackage, match=r"not valid any more; ignoreValidationErrors=true .*has no artist"):
        deploy(server, "artist-added")
    options = PrepareOptions(DEFAULT, ignore_validation_errors=True)
    assert server.deployments.prepare_and_activate(PACKAGES["artist-added"], options)[1] is None
    assert sorted(server.applications.running) == [DEFAULT, OTHER]
