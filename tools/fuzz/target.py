"""The service that is asked: its applications and their documents, its memory, and whether it still runs."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode, urlsplit

import orjson

from tests.service.running import RunningService
from tools.fuzz.client import Connection, Draft, NoAnswer
from tools.fuzz.seeds import Seed, package

HOST: Final = "127.0.0.1"
_DEPLOY_SECONDS: Final = 120.0
_APPLICATION: Final = "/application/v2/tenant/default/application/default/environment/prod/region/default/instance/"
_INSTANCES: Final = ("default", "spare")
"""The instances of the application that are deployed: each has a container of its own."""


class Target:
    """A running service with two applications, each of which is one of the seeds."""

    def __init__(self, service: RunningService, seeds: list[Seed]) -> None:
        self._service = service
        self._seeds = seeds
        self._config_port = urlsplit(service.config_url).port or 0
        self._config = Connection(HOST, self._config_port)
        self._containers: dict[str, Connection] = {}
        self.serving: dict[str, Seed] = {}
        """Instance → what it serves."""

    @property
    def is_running(self) -> bool:
        return self._service.process.poll() is None

    @property
    def memory_mib(self) -> float:
        """The resident memory of the service."""
        status = Path(f"/proc/{self._service.process.pid}/status").read_text()
        line = next(line for line in status.splitlines() if line.startswith("VmRSS:"))
        return int(line.split()[1]) / 1024

    @property
    def seconds(self) -> float:
        """The processor time that the service has taken."""
        fields = Path(f"/proc/{self._service.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / 100

    @property
    def state(self) -> str:
        """Memory and processor time, as text."""
        return f"{self.memory_mib:.0f} MiB, {self.seconds:.0f} s"

    def connection(self, draft: Draft, instance: str) -> Connection:
        """The connection for a request."""
        return self._config if draft.port == "configserver" else self._containers[instance]

    def url(self, draft: Draft, instance: str) -> str:
        """The address of the port, for who sends the request again."""
        return f"http://{HOST}:{self.connection(draft, instance).port}"

    def deploy(self, instance: str, seed: Seed) -> None:
        """Deploys a seed and feeds it. Errors: AssertionError where that does not work."""
        options = urlencode({"instance": instance, "ignoreValidationErrors": "true", "timeout": "100s"})
        path = f"/application/v2/tenant/default/prepareandactivate?{options}"
        answer = self._ask(
            Draft("configserver", "POST", path, (("Content-Type", "application/zip"),), package(seed.files))
        )
        assert answer.get("activated"), f"{seed.name}: {answer}"
        path = f"{_APPLICATION}{instance}/serviceconverge?timeout=60"
        services = self._ask(Draft("configserver", "GET", path))["services"]
        old = self._containers.get(instance)
        if old is None or old.port != services[0]["port"]:
            if old is not None:
                old.close()
            self._containers[instance] = Connection(HOST, services[0]["port"])
        self.serving[instance] = seed
        self.feed(instance, seed, len(seed.documents))

    def feed(self, instance: str, seed: Seed, count: int, chance: random.Random | None = None) -> None:
        """Puts documents as they are. Which answers they get does not matter."""
        documents = seed.documents if chance is None else chance.choices(seed.documents, k=count)
        for document in documents[:count]:
            _, namespace, kind, place, name = document["put"].split(":", 4)
            where = f"group/{place[2:]}" if place.startswith("g=") else f"number/{place[2:]}" if place else "docid"
            body = orjson.dumps({"fields": document["fields"]})
            path = f"/document/v1/{namespace}/{kind}/{where}/{name}"
            self._containers[instance].ask(Draft("container", "POST", path, body=body), _DEPLOY_SECONDS)

    def close(self) -> None:
        """Closes all connections."""
        for connection in (self._config, *self._containers.values()):
            connection.close()

    def restore(self) -> bool:
        """Deploys again what a request has deleted or replaced. Returns whether there was anything."""
        found = False
        for instance in _INSTANCES:
            draft = Draft("configserver", "GET", _APPLICATION + instance)
            if self._config.ask(draft, _DEPLOY_SECONDS).status != 200:
                found = True
                self.deploy(instance, self.serving[instance])
        return found

    def _ask(self, draft: Draft) -> dict[str, Any]:
        try:
            found: dict[str, Any] = orjson.loads(self._config.ask(draft, _DEPLOY_SECONDS).body)
        except NoAnswer as error:
            raise AssertionError(f"{draft.method} {draft.target}: {error}") from None
        return found
