"""A running service, by what it says of itself on both of its ports."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any, Final
from urllib.parse import urlsplit

from paperwasp import limits
from paperwasp.client.access import ANYBODY, Access
from paperwasp.client.connection import Connection, Unreachable
from paperwasp.errors import InvalidInput
from paperwasp.server.doctor.findings import Area, Finding

_AREA: Final = Area("service")
_TENANTS: Final = "/application/v2/tenant/"
_LIMITS: Final = {"disk": limits.DISK_LIMIT, "memory": limits.MEMORY_LIMIT}
_USAGE: Final = "content.proton.resource_usage."


def answers(url: str, access: Access = ANYBODY) -> bool:
    """Whether a service answers there, whatever it says."""
    return _get(url, "/state/v1/health", access) is not None


def check_service(url: str, config_url: str, access: Access = ANYBODY) -> Iterator[Finding]:
    """The findings; nothing where neither port answers."""
    config, container = (_get(address, "/state/v1/health", access) for address in (config_url, url))
    if config is None and container is None:
        return
    start = "Look at its log, or start it: paperwasp serve"
    for name, address, health in (("config server", config_url, config), ("container", url, container)):
        if health is None:
            yield _AREA.error(name, f"nobody answers at {address}", start)
        else:
            yield _health(name, health)
    if config is not None:
        yield from _convergence(config_url, access)
    if container is not None:
        yield from _resources(_get(url, "/state/v1/metrics", access))


def _health(name: str, health: Any) -> Finding:
    status = health.get("status", {}) if isinstance(health, dict) else {}
    code = status.get("code")
    if code == "up":
        return _AREA.ok(name, "up")
    if code is None:
        return _AREA.warning(name, f"does not say how it is: {str(health)[:200]}", "It may ask who you are")
    if code == "initializing":
        return _AREA.warning(name, "up, without an application", "paperwasp deploy APPLICATION")
    remedy = "The message says what is in its way; it goes on by itself when that is gone"
    return _AREA.error(name, f"{code}: {status.get('message', 'it does not say why')}", remedy)


def _convergence(config_url: str, access: Access) -> Iterator[Finding]:
    tenants = _get(config_url, _TENANTS, access)
    count = 0
    for tenant in tenants.get("tenants", ()) if isinstance(tenants, dict) else ():
        listed = _get(config_url, f"{_TENANTS}{tenant}/application/", access)
        for address in listed if isinstance(listed, list) else ():
            count += 1
            path = urlsplit(address).path
            state = _get(config_url, f"{path}/serviceconverge", access)
            if not isinstance(state, dict) or "converged" not in state:
                said = state.get("message") if isinstance(state, dict) else state
                yield _AREA.error("application", f"{path}: {said}", "Deploy it again")
            elif not state["converged"]:
                message = f"{path}: serves generation {state.get('currentGeneration')}, not {state['wantedGeneration']}"
                yield _AREA.warning("application", message, "Wait; where it stays so, look at the log")
            else:
                yield _AREA.ok("application", f"{_name(path)} serves generation {state['wantedGeneration']}")
    if not count:
        yield _AREA.warning("application", "none is deployed", "paperwasp deploy APPLICATION")


def _name(path: str) -> str:
    """`tenant.application.instance` of the address of an application."""
    parts = path.split("/")
    return f"{parts[4]}.{parts[6]}.{parts[-1]}" if len(parts) > 6 else path


def _resources(metrics: Any) -> Iterator[Finding]:
    """How full disk and memory are, and whether feeding is blocked, by content cluster."""
    found: dict[str, dict[str, float]] = {}
    for value in metrics.get("metrics", {}).get("values", ()) if isinstance(metrics, dict) else ():
        if str(value.get("name", "")).startswith(_USAGE):
            cluster = value.get("dimensions", {}).get("clusterid", "")
            found.setdefault(cluster, {})[value["name"].removeprefix(_USAGE)] = value["values"]["last"]
    for cluster, usage in sorted(found.items()):
        shown = ", ".join(f"{name} {usage[name]:.1%}" for name in _LIMITS if name in usage)
        subject = f"content cluster {cluster}"
        near = [
            name for name, limit in _LIMITS.items() if usage.get(name, 0.0) > limit * limits.doctor.RESOURCE_WARNING
        ]
        if usage.get("feeding_blocked"):
            remedy = "Make room, add memory, or raise resource-limits in services.xml; feeding goes on by itself"
            yield _AREA.error(subject, f"feeding is blocked: {shown}", remedy)
        elif near:
            yield _AREA.warning(subject, f"{shown}: feeding will soon be blocked", f"Make room for more {near[0]}")
        else:
            yield _AREA.ok(subject, shown)


def _get(url: str, path: str, access: Access) -> Any:
    """The JSON of an answer, of any status; None where nobody answers."""
    try:
        with closing(Connection(url, timeout_seconds=limits.doctor.ANSWER_SECONDS, access=access)) as connection:
            return connection.json("GET", path)
    except Unreachable:
        return None
    except InvalidInput as error:
        return {"message": error.message}
