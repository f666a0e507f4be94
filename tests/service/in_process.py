"""A service in this process, on free ports, with its event loop on a thread: for tests that need no kill."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from paperwasp.server.process import ServerProcess, Settings
from tests import web
from tests.patience import patient_queries
from tests.service.music import package

HOST = "127.0.0.1"
ZIP = {"Content-Type": "application/zip"}


@dataclass
class Deployed:
    """A service, and what a client does with it."""

    service: ServerProcess

    @property
    def config_url(self) -> str:
        return f"http://{HOST}:{self.service.config_server.port}"

    @property
    def url(self) -> str:
        """Of the front: the port of the command line."""
        return f"http://{HOST}:{self.service.containers.front_port}"

    def deploy(
        self, files: Mapping[str, str | bytes], name: str = "default.default.default", **options: str
    ) -> httpx.Response:
        tenant, application, instance = name.split(".")
        return web.post(
            f"{self.config_url}/application/v2/tenant/{tenant}/prepareandactivate",
            params={"applicationName": application, "instance": instance, **options},
            content=package(files),
            headers=ZIP,
            timeout=60,
        )

    def application_url(self, name: str = "default.default.default") -> str:
        tenant, application, instance = name.split(".")
        zone = "environment/prod/region/default"
        path = f"tenant/{tenant}/application/{application}/{zone}/instance/{instance}"
        return f"{self.config_url}/application/v2/{path}"

    def ports(self, name: str = "default.default.default") -> dict[str, int]:
        """Container cluster → port, as clients are told."""
        answer = web.get(self.application_url(name) + "/serviceconverge", timeout=30).json()
        assert answer["converged"], answer
        return {service["clusterName"]: service["port"] for service in answer["services"]}

    def container_url(self, cluster: str = "default", name: str = "default.default.default") -> str:
        return f"http://{HOST}:{self.ports(name)[cluster]}"


def active(answer: httpx.Response) -> dict[str, Any]:
    """What a deployment that worked answered."""
    content: dict[str, Any] = answer.json()
    assert (answer.status_code, content.get("activated")) == (200, True), answer.text
    return content


@contextmanager
def deployed_service(data_directory: Path, port: int = 0, config_port: int = 0, **settings: Any) -> Iterator[Deployed]:
    """Starts a service with further `Settings`, and ends it, whatever happened."""
    box: dict[str, Any] = {}
    started = threading.Event()

    async def run() -> None:
        box["loop"], box["end"] = asyncio.get_running_loop(), asyncio.Event()
        service = ServerProcess(Settings(data_directory, HOST, port, config_port, **settings))
        try:
            service.start()
            box["service"] = service
            started.set()
            await box["end"].wait()
        finally:
            await service.stop()

    def target() -> None:
        try:
            asyncio.run(run())
        except BaseException as error:  # told to the test
            box["error"] = error
        finally:
            started.set()

    thread = threading.Thread(target=target)
    thread.start()
    started.wait()
    try:
        if "error" in box:
            raise box["error"]
        with patient_queries():
            yield Deployed(box["service"])
    finally:
        if "service" in box:
            box["loop"].call_soon_threadsafe(box["end"].set)
        thread.join()
    if "error" in box:
        raise box["error"]
