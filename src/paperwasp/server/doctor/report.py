"""All findings, with a bar while they are gathered, as a table or as JSON."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from paperwasp.base.records import dataclass
from paperwasp.client.access import ANYBODY, Access
from paperwasp.server.doctor.data import check_data, data_bytes
from paperwasp.server.doctor.disk import check_disk
from paperwasp.server.doctor.findings import LEVELS, Finding, worst
from paperwasp.server.doctor.machine import check_machine
from paperwasp.server.doctor.ports import check_port
from paperwasp.server.doctor.service import answers, check_service

_SIGNS: Final = {"ok": Text("ok", "green"), "warning": Text("warning", "yellow"), "error": Text("error", "bold red")}


@dataclass(frozen=True, slots=True)
class Examined:
    """What is looked at."""

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
