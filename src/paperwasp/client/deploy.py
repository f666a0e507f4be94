"""Deploys a package and asks how the service is."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from paperwasp.application.package import load_package
from paperwasp.client.connection import ANYBODY, Access, Connection, Unreachable
from paperwasp.client.terminal import LEVELS, excerpts
from paperwasp.errors import InvalidPackage

_DEPLOY: Final = "/application/v2/tenant/default/prepareandactivate"
_TENANTS: Final = "/application/v2/tenant"
_APPLICATION: Final = (
    "/application/v2/tenant/default/application/default/environment/prod/region/default/instance/default"
)


def deploy_package(config_url: str, application: Path, access: Access = ANYBODY) -> Iterator[str]:
    """Deploys the package in a folder or archive; yields what there is to say. Errors: InvalidPackage, Unreachable."""
    package = load_package(application)
    with closing(Connection(config_url, access=access)) as connection:
        answer: dict[str, Any] = connection.json("POST", _DEPLOY, package.to_zip(), "application/zip")
    if not answer.get("activated"):
        message = str(answer.get("message", answer))
        raise InvalidPackage("\n".join([f"{application} was not deployed:", *excerpts(message, package.files)]))
    for line in answer.get("log", ()):
        level, message = line["level"], line["message"]
        shown = excerpts(message, package.files, level) if level in LEVELS else [message]
        yield "\n".join([f"{level} {message}"] if shown == [message] else shown)
    yield str(answer["message"])


def status_lines(url: str, config_url: str, access: Access = ANYBODY) -> tuple[bool, list[str]]:
    """Whether an application is served, and a line about each port; last about the containers elsewhere, if any."""
    lines = []
    up = True
    for name, address, path in (("Config server", config_url, _APPLICATION), ("Container", url, "/state/v1/health")):
        try:
            with closing(Connection(address, timeout_seconds=5, access=access)) as connection:
                shown, is_up = _describe(connection.json("GET", path))
        except Unreachable as error:
            shown, is_up = error.message, False
        up = up and is_up
        lines.append(f"{name} at {address}: {shown}")
    if up:
        with closing(Connection(config_url, timeout_seconds=5, access=access)) as config:
            lines += [line for line, address in _containers(config) if address != url]
    return up, lines


def _containers(config: Connection) -> Iterator[tuple[str, str]]:
    """Yields for each container of all applications a line that describes it, and the address where it listens."""
    tenants: Any = config.json("GET", f"{_TENANTS}/")
    for tenant in tenants["tenants"]:
        addresses: Any = config.json("GET", f"{_TENANTS}/{tenant}/application/")
        for path in (urlsplit(address).path for address in addresses):
            application = path.split("/application/")[-1]
            name, instance = application.split("/", 1)[0], application.rsplit("/", 1)[-1]
            for service in config.json("GET", f"{path}/serviceconverge")["services"]:
                address = f"http://{service['host']}:{service['port']}"
                yield f"Container '{service['clusterName']}' of {tenant}.{name}.{instance} at {address}", address


def _describe(answer: dict[str, Any]) -> tuple[str, bool]:
    if "generation" in answer:
        return f"serves generation {answer['generation']}", True
    if "status" in answer:
        return str(answer["status"]["code"]), answer["status"]["code"] == "up"
    return str(answer.get("message", answer)), False
