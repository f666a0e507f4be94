"""The Deploy API: its resources, the states of a session, its endpoints and their parameters."""

from __future__ import annotations

import re
import time
from typing import Any

import pytest

from paperwasp.base.env import Environment
from paperwasp.configserver import application_api
from paperwasp.configserver.deadline import Deadline
from tests import web
from tests.conformance.conftest import Served
from tests.conformance.deploying import (
    BROKEN,
    OTHER_TYPE,
    SMALL,
    activate,
    application_url,
    deploy,
    ok,
    prepare,
    refused,
    tenant_url,
    upload,
)
from tests.service.in_process import ZIP
from tests.service.music import package

DAY_MS = 24 * 3600 * 1000


def test_an_upload_makes_a_session(served: Served) -> None:
    answer = web.post(f"{tenant_url(served)}/session", content=package(SMALL), headers=ZIP)
    body = ok(answer)
    assert isinstance(body["session-id"], str) and body["session-id"].isdigit()
    assert body["message"] == f"Session {body['session-id']} for tenant 'default' created."
    assert (body["tenant"], body["log"]) == ("default", [])


def test_an_upload_says_what_it_is(served: Served) -> None:
    without = web.post(f"{tenant_url(served)}/session", content=package(SMALL))
    assert "Content-Type" in refused(without, 400, "BAD_REQUEST")
    other = web.post(f"{tenant_url(served)}/session", content=package(SMALL), headers={"Content-Type": "text/plain"})
    assert "application/zip" in refused(other, 400, "BAD_REQUEST")
    empty = web.post(f"{tenant_url(served)}/session", headers=ZIP)
    refused(empty, 400, "BAD_REQUEST")
    broken = web.post(f"{tenant_url(served)}/session", content=b"PK of nothing", headers=ZIP)
    refused(broken, 400, "INVALID_APPLICATION_PACKAGE")


def test_a_session_goes_from_created_to_prepared_to_active(served: Served) -> None:
    session = upload(served)
    refused(activate(served, session), 400, "BAD_REQUEST")  # not prepared yet
    prepared = ok(prepare(served, session, "steps"))
    assert prepared["session-id"] == session
    assert prepared["message"] == f"Session {session} for tenant 'default' prepared."
    assert prepared["configChangeActions"] == {"restart": [], "refeed": [], "reindex": []}
    assert (prepared["tenant"], prepared["log"]) == ("default", [])
    assert web.get(application_url(served, "steps")).status_code == 404  # nothing is active
    active = ok(activate(served, session))
    texts = ("tenant", "application", "instance", "session-id", "message")
    assert [active[name] for name in texts] == [
        "default",
        "steps",
        "default",
        session,
        f"Session {session} for tenant 'default' activated.",
    ]
    assert active["url"] == application_url(served, "steps")
    assert ok(web.get(application_url(served, "steps")))["generation"] == int(session)


def test_a_preparation_tells_findings_and_what_a_change_needs(served: Served) -> None:
    ok(deploy(served, "findings"))
    without_copies = {**SMALL, "services.xml": str(SMALL["services.xml"]).replace("<redundancy>1</redundancy>", "")}
    log = ok(prepare(served, upload(served, without_copies), "findings"))["log"]
    assert log and all({"time", "level", "message"} <= set(entry) for entry in log)
    assert abs(log[0]["time"] - time.time() * 1000) < DAY_MS
    assert (log[0]["level"], "redundancy" in log[0]["message"]) == ("WARNING", True)
    allowed = ok(prepare(served, upload(served, OTHER_TYPE), "findings", ignoreValidationErrors="true"))
    (refeed,) = allowed["configChangeActions"]["refeed"]
    assert (refeed["documentType"], refeed["clusterName"]) == ("note", "notes")
    assert {"name", "messages", "services"} <= set(refeed)


def test_prepare_and_activate_in_one_step(served: Served) -> None:
    body = ok(deploy(served, "once"))
    assert (body["activated"], body["tenant"], body["url"]) == (True, "default", application_url(served, "once"))
    assert body["message"] == f"Session {body['session-id']} for tenant 'default' prepared and activated."
    assert body["configChangeActions"] == {"restart": [], "refeed": [], "reindex": []}
    assert ok(web.get(application_url(served, "once")))["generation"] == int(body["session-id"])
    refused(deploy(served, "once", BROKEN), 412, "INVALID_APPLICATION_PACKAGE")
    plain = web.post(
        f"{tenant_url(served)}/prepareandactivate", content=package(SMALL), headers={"Content-Type": "text/plain"}
    )
    refused(plain, 400, "BAD_REQUEST")


def test_deleting_an_application(served: Served) -> None:
    ok(deploy(served, "gone"))
    url = application_url(served, "gone")
    assert ok(web.delete(url)) == {"message": "Application 'default.gone.default' deleted"}
    refused(web.get(url), 404, "NOT_FOUND")
    refused(web.delete(url), 404, "NOT_FOUND")


def test_a_session_is_used_once(served: Served) -> None:
    session = upload(served)
    ok(prepare(served, session, "used"))
    ok(activate(served, session))
    refused(activate(served, session), 409, "ACTIVATION_CONFLICT")
    refused(prepare(served, session, "used"), 409, "ACTIVATION_CONFLICT")
    refused(activate(served, session, ignoreSessionStaleFailure="true"), 409, "ACTIVATION_CONFLICT")


def test_a_package_that_is_not_valid(served: Served) -> None:
    message = refused(prepare(served, upload(served, BROKEN), "broken"), 412, "INVALID_APPLICATION_PACKAGE")
    assert "schemas/note.sd, line" in message and "nothing" in message
    refused(web.get(application_url(served, "broken")), 404, "NOT_FOUND")


def test_the_status_of_an_application(served: Served) -> None:
    generation = int(ok(deploy(served, "status"))["session-id"])
    status = ok(web.get(application_url(served, "status")))
    assert status["generation"] == generation
    assert isinstance(status["applicationPackageFileReference"], str)
    (version,) = status["versions"]
    assert version["generation"] == generation
    assert status["modelVersions"] == [version["serviceVersion"]]


def test_every_deployment_raises_the_generation(served: Served) -> None:
    first = int(ok(deploy(served, "rising"))["session-id"])
    second = int(ok(deploy(served, "rising"))["session-id"])
    assert first < second
    converged = ok(web.get(application_url(served, "rising") + "/serviceconverge"))
    assert (converged["currentGeneration"], converged["wantedGeneration"]) == (second, second)
    container = served.service.container_url(name="default.rising.default")
    config = ok(web.get(f"{container}/state/v1/config"))["config"]
    assert (config["generation"], config["wantedGeneration"]) == (second, second)


def test_convergence_of_an_application(served: Served) -> None:
    generation = int(ok(deploy(served, "converging"))["session-id"])
    url = application_url(served, "converging") + "/serviceconverge"
    converged = ok(web.get(url))
    (service,) = converged.pop("services")
    assert converged == {"url": url, "currentGeneration": generation, "wantedGeneration": generation, "converged": True}
    host, port = service["host"], service["port"]
    assert isinstance(host, str) and isinstance(port, int)
    assert service == {
        "host": host,
        "port": port,
        "type": "container",
        "clusterName": "default",
        "url": f"{url}/{host}:{port}",
        "currentGeneration": generation,
    }
    assert web.get(f"http://127.0.0.1:{port}/state/v1/health").json()["status"]["code"] == "up"
    assert ok(web.get(service["url"])) == {
        "url": service["url"],
        "host": f"{host}:{port}",
        "wantedGeneration": generation,
        "converged": True,
        "currentGeneration": generation,
    }
    unknown = web.get(f"{url}/{host}:1")
    assert (unknown.status_code, unknown.json()["wantedGeneration"]) == (410, generation)


def test_parameters_of_convergence(served: Served) -> None:
    ok(deploy(served, "versions"))
    url = application_url(served, "versions") + "/serviceconverge"
    current = ok(web.get(application_url(served, "versions")))["modelVersions"][0]
    assert ok(web.get(url, params={"serviceVersion": current, "timeout": "1s"}))["converged"] is True
    other = ok(web.get(url, params={"serviceVersion": "8.1.1", "timeout": "200ms"}))
    assert other["converged"] is False
    refused(web.get(url, params={"timeout": "soon"}), 400, "BAD_REQUEST")
    assert application_api.WAIT_SECONDS == 5


def test_contents_are_entries(served: Served) -> None:
    ok(deploy(served, "content"))
    url = application_url(served, "content")
    size = len(str(SMALL["services.xml"]).encode())
    assert ok(web.get(f"{url}/content/")) == [
        {"name": "schemas", "type": "directory"},
        {"name": "services.xml", "type": "file", "size": size},
    ]
    (entry,) = ok(web.get(f"{url}/content/schemas/"))
    assert (entry["name"].rpartition("/")[2], entry["type"]) == ("note.sd", "file")
    assert entry["size"] == len(str(SMALL["schemas/note.sd"]).encode())
    assert ok(web.get(f"{url}/content")) == [f"{url}/content/schemas/?return=content", f"{url}/content/services.xml"]
    for_the_cli = web.get(f"{url}/content/", headers={"User-Agent": "Vespa CLI/8.0"})
    assert ok(for_the_cli) == ok(web.get(f"{url}/content"))


def test_the_content_of_a_file(served: Served) -> None:
    ok(deploy(served, "files"))
    url = application_url(served, "files")
    answer = web.get(f"{url}/content/schemas/note.sd")
    assert (answer.status_code, answer.text) == (200, SMALL["schemas/note.sd"])
    refused(web.get(f"{url}/content/schemas/other.sd"), 404, "NOT_FOUND")


CONTAINER, CONTENT = "container cluster 'default'", "content cluster 'notes'"


@pytest.mark.parametrize(
    ("parameters", "expected"),
    [
        ({}, {CONTAINER, CONTENT}),
        ({"hostname": ""}, {CONTAINER, CONTENT}),
        ({"hostname": "elsewhere"}, set()),
        ({"clusterId": "default"}, {CONTAINER}),
        ({"clusterId": "notes"}, {CONTENT}),
        ({"clusterType": "container"}, {CONTAINER}),
        ({"clusterType": "content"}, {CONTENT}),
        ({"clusterId": "notes", "clusterType": "container"}, set()),
    ],
)
def test_a_restart_is_of_what_is_named(
    served: Served, parameters: dict[str, str], expected: set[str], caplog: pytest.LogCaptureFixture
) -> None:
    """The log of the service says what was restarted; `hostname=` stands for its own name."""
    ok(deploy(served, "restarted"))
    url = application_url(served, "restarted")
    (service,) = ok(web.get(f"{url}/serviceconverge"))["services"]
    named = {name: value or service["host"] for name, value in parameters.items()}
    caplog.clear()
    with caplog.at_level("INFO"):
        assert ok(web.post(f"{url}/restart", params=named)) == {"message": "Success"}
    told = re.findall(r"Restarted (.*) of application default\.restarted\.default", caplog.text)
    assert (len(told), set(told)) == (len(expected), expected)
    assert ok(web.get(f"{url}/serviceconverge"))["converged"] is True
    refused(web.post(application_url(served, "nobody") + "/restart"), 404, "NOT_FOUND")


def test_the_names_of_an_application(served: Served) -> None:
    session = upload(served)
    ok(prepare(served, session, "named", instance="second"))
    active = ok(activate(served, session))
    assert (active["application"], active["instance"]) == ("named", "second")
    assert ok(web.get(served.service.application_url("default.named.second")))["generation"] == int(session)
    refused(web.get(application_url(served, "named")), 404, "NOT_FOUND")
    # The first of all applications was deployed without a name.
    assert ok(web.get(application_url(served, "default")))["generation"] == 1


def test_what_is_not_named_is_named_default(served: Served) -> None:
    answer = web.put(f"{tenant_url(served)}/session/{upload(served)}/prepared", params={"dryRun": "true"})
    assert answer.status_code == 412, "for the application default.default.default this is a change to be allowed"


def test_environment_and_region_are_not_looked_at(served: Served) -> None:
    url = application_url(served)
    for zone in ("environment/dev/region/default", "environment/prod/region/elsewhere"):
        assert ok(web.get(url.replace("environment/prod/region/default", zone)))["generation"] == 1


@pytest.mark.parametrize("step", ["prepared", "active"])
def test_the_timeout_of_a_step(served: Served, step: str) -> None:
    session = upload(served)
    if step == "active":
        ok(prepare(served, session, f"timely-{step}", timeout="30s"))
        refused(activate(served, session, timeout="0s"), 408, "REQUEST_TIMEOUT")
        refused(activate(served, session, timeout="soon"), 400, "BAD_REQUEST")
        ok(activate(served, session, timeout="30"))
    else:
        refused(prepare(served, session, f"timely-{step}", timeout="0s"), 408, "REQUEST_TIMEOUT")
        refused(prepare(served, session, f"timely-{step}", timeout="soon"), 400, "BAD_REQUEST")
        ok(prepare(served, session, f"timely-{step}", timeout="30"))


def test_the_timeouts_of_steps_that_say_nothing_of_it(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    seconds: list[float] = []

    def deadline(of_seconds: float, environment: Environment) -> Deadline:
        seconds.append(of_seconds)
        return Deadline(of_seconds, environment)

    session = upload(served)
    monkeypatch.setattr("paperwasp.configserver.deploy_api.Deadline", deadline)
    for parameters in ({}, {"timeout": "7s"}):
        ok(prepare(served, session, "patient", **parameters))
    ok(activate(served, session))
    assert seconds == [60, 7, 120]


def test_errors_that_may_be_ignored(served: Served) -> None:
    ok(deploy(served, "lenient"))
    session = upload(served, OTHER_TYPE)
    for parameters in ({}, {"ignoreValidationErrors": "false"}):
        refused(prepare(served, session, "lenient", **parameters), 412, "INVALID_APPLICATION_PACKAGE")
    ok(prepare(served, session, "lenient", ignoreValidationErrors="true"))
    ok(activate(served, session))
    critical = upload(served, BROKEN)
    answer = prepare(served, critical, "lenient", ignoreValidationErrors="true")
    refused(answer, 412, "INVALID_APPLICATION_PACKAGE")


def test_the_version_that_is_asked_for(served: Served) -> None:
    ok(deploy(served, "version"))
    current = ok(web.get(application_url(served, "version")))["modelVersions"][0]
    session = upload(served)
    for parameters in ({}, {"serviceVersion": current}, {"vespaVersion": current}):
        ok(prepare(served, session, "version", **parameters))
    message = refused(prepare(served, session, "version", serviceVersion="7.1.2"), 400, "UNKNOWN_VESPA_VERSION")
    assert current in message
    ok(activate(served, session))
    assert ok(web.get(application_url(served, "version")))["versions"][0]["serviceVersion"] == current


def test_a_stale_session_is_activated_only_by_leave(served: Served) -> None:
    first, second = upload(served), upload(served)
    for session in (first, second):
        ok(prepare(served, session, "stale"))
    ok(activate(served, first))
    for parameters in ({}, {"ignoreSessionStaleFailure": "false"}):
        refused(activate(served, second, **parameters), 409, "ACTIVATION_CONFLICT")
    ok(activate(served, second, ignoreSessionStaleFailure="true"))


def reindexing(served: Served, application: str) -> dict[str, Any]:
    status: dict[str, Any] = ok(web.get(application_url(served, application) + "/reindexing"))
    return status


def test_reindexing(served: Served) -> None:
    ok(deploy(served, "again"))
    url = application_url(served, "again")
    assert reindexing(served, "again") == {
        "enabled": True,
        "clusters": {"notes": {"pending": [], "ready": {"note": {}}}},
    }
    asked = {"clusterId": "notes", "documentType": "note", "speed": "100", "cause": "a test"}
    assert ok(web.post(f"{url}/reindex", params=asked)) == {
        "message": "Reindexing document types [note] in 'notes' of application default.again.default"
    }
    end = time.monotonic() + 60
    while time.monotonic() < end:
        (ready,) = reindexing(served, "again")["clusters"]["notes"]["ready"].values()
        if ready["state"] == "successful":
            break
        assert ready["state"] in ("pending", "running")
    assert (ready["state"], ready["progress"], ready["speed"], ready["cause"]) == ("successful", 1.0, 100.0, "a test")
    assert ready["readyMillis"] <= ready["startedMillis"] <= ready["endedMillis"]
    assert abs(ready["endedMillis"] - time.time() * 1000) < DAY_MS
    assert {type(ready[name]) for name in ("startedMillis", "endedMillis")} == {int}


def test_parameters_of_reindexing(served: Served) -> None:
    ok(deploy(served, "chosen"))
    url = application_url(served, "chosen") + "/reindex"
    assert "notes" in refused(web.post(url, params={"clusterId": "none"}), 400, "BAD_REQUEST")
    refused(web.post(url, params={"clusterId": "notes", "documentType": "none"}), 400, "BAD_REQUEST")
    for speed in ("-0.1", "100.1", "fast", "nan"):
        refused(web.post(url, params={"speed": speed}), 400, "BAD_REQUEST")
    for speed in ("0.0", "100.0"):
        ok(web.post(url, params={"speed": speed}))
        assert reindexing(served, "chosen")["clusters"]["notes"]["ready"]["note"]["speed"] == float(speed)
    ok(web.post(url, params={"clusterId": "notes"}))
    ready = reindexing(served, "chosen")["clusters"]["notes"]["ready"]["note"]
    assert (ready["speed"], ready["cause"]) == (1.0, "asked for by a request")
    ok(web.post(url, params={"indexedOnly": "true", "cause": "words"}))
    assert reindexing(served, "chosen")["clusters"]["notes"]["ready"]["note"]["cause"] == "words"


def test_only_the_config_port_deploys(served: Served) -> None:
    for path in ("/application/v2/tenant/", "/application/v2/tenant/default"):
        assert web.get(served.config_url + path).status_code == 200
        assert web.get(served.url + path).status_code == 404
    upload_there = web.post(served.url + "/application/v2/tenant/default/session", content=package(SMALL), headers=ZIP)
    assert upload_there.status_code == 404
