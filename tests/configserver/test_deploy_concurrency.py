"""Deployments at once over the API: who waits for whom and for how long, and what does not wait at all."""

from __future__ import annotations

import asyncio
import json
import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from paperwasp import limits
from paperwasp.application.model import ApplicationModel
from paperwasp.application.package import ApplicationPackage, read_package
from paperwasp.base.env import SYSTEM
from paperwasp.base.records import replace
from paperwasp.configserver import ApplicationId, ConfigServer, ConfigServerApp, Deadline, ServiceAddress, preparation
from paperwasp.configserver.convergence import Report
from paperwasp.configserver.repository import SessionRepository
from paperwasp.coordination.config_store import FileConfigStore
from paperwasp.errors import DeployTimeout, LockFailure
from paperwasp.http.messages import Request, Response
from tests.configserver.config_stores import MemoryStore
from tests.configserver.deploy_fixtures import PACKAGES, Service, answer, build, follow

ROOT = "/application/v2/tenant/default"
APPLICATION = f"{ROOT}/application/default/environment/prod/region/default/instance/default"
SLOW = "slow"
PATIENCE_SECONDS = 20


class Gate:
    """Building the model of the application `slow` waits here; says when somebody does."""

    def __init__(self) -> None:
        self.opened = threading.Event()
        self.reached = threading.Event()

    def build(self, package: ApplicationPackage, application: ApplicationId) -> ApplicationModel:
        if application.application == SLOW:
            self.reached.set()
            assert self.opened.wait(PATIENCE_SECONDS)
        return build(package, application)


@pytest.fixture
def gate() -> Gate:
    return Gate()


@pytest.fixture
def app(tmp_path: Path, gate: Gate) -> Iterator[ConfigServerApp]:
    service = Service()
    server = ConfigServer(FileConfigStore(tmp_path), gate.build)
    follow(server, Service())
    follow(server, service)
    app = ConfigServerApp(server, restart=service.restart)
    yield app
    gate.opened.set()
    app.close()


def upload(application: str, query: str = "") -> Request:
    query = f"applicationName={application}{query}"
    return Request("POST", f"{ROOT}/prepareandactivate", query, {"content-type": "application/zip"}, PACKAGES["music"])


def code(response: Response) -> tuple[int, str]:
    return response.status, json.loads(response.body).get("error-code", "")


async def reached(gate: Gate) -> None:
    assert await asyncio.to_thread(gate.reached.wait, PATIENCE_SECONDS)


def test_other_applications_and_readers_do_not_wait(app: ConfigServerApp, gate: Gate) -> None:
    async def talk() -> None:
        slow = asyncio.ensure_future(answer(app, upload(SLOW)))
        await reached(gate)
        assert (await answer(app, upload("default"))).status == 200
        for path in (APPLICATION, f"{APPLICATION}/content/", f"{APPLICATION}/serviceconverge", "/state/v1/health"):
            assert (await answer(app, Request("GET", path))).status == 200
        assert not slow.done()
        gate.opened.set()
        assert (await slow).status == 200

    asyncio.run(talk())


def test_the_second_deployment_of_an_application_waits_for_the_first(app: ConfigServerApp, gate: Gate) -> None:
    async def talk() -> None:
        first = asyncio.ensure_future(answer(app, upload(SLOW)))
        await reached(gate)
        second = asyncio.ensure_future(answer(app, upload(SLOW)))
        third = await answer(app, upload(SLOW, "&timeout=10ms"))
        assert code(third) == (409, "APPLICATION_LOCK_FAILURE")
        gate.opened.set()
        sessions = [json.loads((await answer).body)["session-id"] for answer in (first, second)]
        assert sessions == ["1", "2"]

    asyncio.run(talk())


def test_a_preparation_that_takes_too_long_changes_nothing(
    app: ConfigServerApp, gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "DEPLOY_ANSWER_SECONDS", 0.0)

    async def talk() -> None:
        late = await answer(app, upload(SLOW, "&timeout=0.01"))
        assert code(late) == (408, "REQUEST_TIMEOUT")
        gate.opened.set()
        gate.reached.clear()
        assert (await answer(app, upload(SLOW))).status == 200

    asyncio.run(talk())
    listed = asyncio.run(answer(app, Request("GET", f"{ROOT}/application/")))
    assert len(json.loads(listed.body)) == 1


def test_too_many_deployments_of_a_tenant_are_refused(
    app: ConfigServerApp, gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "TENANT_DEPLOYMENTS", 2)

    async def talk() -> None:
        await answer(app, Request("PUT", "/application/v2/tenant/other"))
        waiting = [asyncio.ensure_future(answer(app, upload(SLOW))) for _ in range(2)]
        await reached(gate)
        assert code(await answer(app, upload("default"))) == (429, "TOO_MANY_REQUESTS")
        abroad = Request(
            "POST",
            "/application/v2/tenant/other/session",
            "",
            {"content-type": "application/zip"},
            PACKAGES["music"],
        )
        assert (await answer(app, abroad)).status == 200
        gate.opened.set()
        assert [(await answer).status for answer in waiting] == [200, 200]
        assert (await answer(app, upload("default"))).status == 200

    asyncio.run(talk())


def test_closing_ends_the_wait_of_deployments(app: ConfigServerApp, gate: Gate) -> None:
    async def talk() -> None:
        first = asyncio.ensure_future(answer(app, upload(SLOW)))
        await reached(gate)
        second = asyncio.ensure_future(answer(app, upload(SLOW)))
        await asyncio.wait([second], timeout=limits.CONVERGENCE_POLL_SECONDS)
        closing = asyncio.to_thread(app.close)
        closed = asyncio.ensure_future(closing)
        assert code(await second) == (409, "APPLICATION_LOCK_FAILURE")
        gate.opened.set()
        assert (await first).status == 200
        await closed

    asyncio.run(talk())


def test_convergence_waits_for_the_services(tmp_path: Path) -> None:
    service = Service()
    server = ConfigServer(FileConfigStore(tmp_path), build)
    follow(server, Service())
    follow(server, service)
    app = ConfigServerApp(server, restart=service.restart)
    converge = Request("GET", f"{APPLICATION}/serviceconverge", "timeout=20")

    async def talk() -> None:
        assert (await answer(app, upload("default"))).status == 200
        server.convergence.join("slow")
        address = ServiceAddress("default", "container", "slow", 8080, 0)
        server.convergence.report("slow", ApplicationId(), Report(0, (address,)))
        impatient = await answer(app, Request("GET", f"{APPLICATION}/serviceconverge", "timeout=60ms"))
        assert json.loads(impatient.body)["converged"] is False
        assert json.loads(impatient.body)["currentGeneration"] == 0
        waiting = asyncio.ensure_future(answer(app, converge))
        for _ in range(3):
            await asyncio.wait([waiting], timeout=limits.CONVERGENCE_POLL_SECONDS)
        assert not waiting.done()
        server.convergence.report("slow", ApplicationId(), Report(1, (replace(address, generation=1),)))
        status = json.loads((await waiting).body)
        assert status["converged"] is True and status["currentGeneration"] == status["wantedGeneration"] == 1

    asyncio.run(talk())
    app.close()


def test_a_restart_reaches_the_service_with_what_it_names(tmp_path: Path) -> None:
    service = Service()
    server = ConfigServer(FileConfigStore(tmp_path), build)
    follow(server, Service())
    follow(server, service)
    app = ConfigServerApp(server, restart=service.restart)

    async def talk() -> None:
        await answer(app, upload("default"))
        for query in ("", "hostname=h&clusterId=c&clusterType=content&flavor=x"):
            assert (await answer(app, Request("POST", f"{APPLICATION}/restart", query))).status == 200

    asyncio.run(talk())
    app.close()
    name = "default.default.default"
    assert service.restarts == [(name, None, None, None), (name, "h", "c", "content")]


def test_a_client_that_goes_away_leaves_its_deployment_to_itself(app: ConfigServerApp, gate: Gate) -> None:
    async def talk() -> None:
        gone = asyncio.ensure_future(answer(app, upload(SLOW)))
        await reached(gate)
        gone.cancel()
        with pytest.raises(asyncio.CancelledError):
            await gone
        gate.opened.set()
        assert json.loads((await answer(app, upload(SLOW))).body)["session-id"] == "2"

    asyncio.run(talk())


def test_of_a_deadline_and_a_commitment_the_first_wins() -> None:
    committed, expired, over = Deadline(100), Deadline(100), Deadline(0)
    committed.commit()
    assert not committed.expire()
    committed.check()
    assert expired.expire()
    for deadline in (expired, over):
        with pytest.raises(DeployTimeout):
            deadline.commit()


def test_a_session_that_two_change_at_once_is_changed_by_one(tmp_path: Path) -> None:
    server = ConfigServer(FileConfigStore(tmp_path), build)
    follow(server, Service())
    session = server.deployments.create(PACKAGES["music"])
    server.deployments.prepare("default", session.id)
    with pytest.raises(LockFailure, match="being processed"):
        server.sessions.save(session)


def test_packages_that_come_at_once_are_read_one_after_the_other(
    app: ConfigServerApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else each of these threads would have the interpreter's lock before the event loop has it again."""
    inside, most = 0, 0

    def read(content: bytes, scratch: Path | None) -> ApplicationPackage:
        nonlocal inside, most
        inside += 1
        most = max(most, inside)
        for _ in range(20):
            os.sched_yield()
        package = read_package(content, scratch)
        inside -= 1
        return package

    monkeypatch.setattr(preparation, "read_package", read)
    headers = {"content-type": "application/zip"}

    async def run() -> list[Response]:
        create = Request("POST", f"{ROOT}/session", "", headers, PACKAGES["music"])
        return await asyncio.gather(*(answer(app, create) for _ in range(limits.TENANT_DEPLOYMENTS)))

    assert [each.status for each in asyncio.run(run())] == [200] * limits.TENANT_DEPLOYMENTS
    assert most == 1


def test_few_models_are_built_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MODELS_BUILT", 2)
    entered = threading.Semaphore(0)
    opened, inside, most, lock = threading.Event(), 0, 0, threading.Lock()

    def slow_build(package: ApplicationPackage, application: ApplicationId) -> ApplicationModel:
        nonlocal inside, most
        with lock:
            inside, most = inside + 1, max(most, inside + 1)
        entered.release()
        assert opened.wait(PATIENCE_SECONDS)
        with lock:
            inside -= 1
        return build(package, application)

    built, package = (
        preparation.Models(slow_build, preparation.Packages(SessionRepository(MemoryStore())), SYSTEM),
        read_package(PACKAGES["music"]),
    )
    names = [ApplicationId(application=f"a{number}") for number in range(6)]
    threads = [threading.Thread(target=built.of, args=(package, name)) for name in names]
    for thread in threads:
        thread.start()
    assert all(entered.acquire(timeout=PATIENCE_SECONDS) for _ in range(2))
    opened.set()
    for thread in threads:
        thread.join()
    assert most == 2
