"""All findings, with a bar while they are gathered, as a table or as JSON; among them what a running service says of
itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from msgspec import Struct
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from paperwasp import limits
from paperwasp.client.connection import ANYBODY, Access, Connection, Unreachable
from paperwasp.errors import InvalidInput
from paperwasp.server.doctor.data import check_data, data_bytes
from paperwasp.server.doctor.findings import LEVELS, Area, Finding, worst
from paperwasp.server.doctor.machine import check_disk, check_machine, check_port

_SIGNS: Final = {"ok": Text("ok", "green"), "warning": Text("warning", "yellow"), "error": Text("error", "bold red")}


class Examined(Struct, frozen=True):
    """The parts that are examined."""

    data_directory: Path
    url: str
    config_url: str
    access: Access = ANYBODY


def findings_of(examined: Examined, console: Console) -> list[Finding]:
    """Everything, in the order of the report. The bar goes to `console`."""
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        return list(_examine(examined, progress))


def _examine(examined: Examined, progress: Progress) -> Iterator[Finding]:
    task = progress.add_task("Machine and disk", total=None)
    yield from check_machine()
    yield from check_disk(examined.data_directory)
    for what, url in (("documents and queries", examined.url), ("deployments", examined.config_url)):
        parts = urlsplit(url)
        host, port = parts.hostname or "127.0.0.1", parts.port or 80
        yield check_port(host, port, what, is_served=answers(url, examined.access))
    progress.update(task, description="Data directory", total=data_bytes(examined.data_directory))
    yield from check_data(examined.data_directory, lambda size_bytes: progress.advance(task, size_bytes))
    progress.update(task, description="Service")
    yield from check_service(examined.url, examined.config_url, examined.access)


def as_json(findings: list[Finding]) -> dict[str, Any]:
    """The report for programs: the worst level, and all findings."""
    return {"status": LEVELS[worst(findings)], "findings": [finding.as_json() for finding in findings]}


def show(findings: list[Finding], console: Console) -> None:
    """The report for people: a table, in which what is wrong has what to do below it, and a last line."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for title in ("", "Area", "What", "How it is"):
        table.add_column(title, overflow="fold")
    for finding in findings:
        message = Text(finding.message)
        if finding.remedy:
            message.append(f"\n→ {finding.remedy}", style="bold")
        table.add_row(_SIGNS[finding.level], finding.area, finding.subject, message)
    console.print(table)
    counts = {level: sum(finding.level == level for finding in findings) for level in LEVELS}
    console.print(f"{counts['error']} errors, {counts['warning']} warnings, {counts['ok']} ok", highlight=False)


# A running service, by what it says of itself on both of its ports.


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
