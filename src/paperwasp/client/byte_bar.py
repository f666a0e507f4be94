"""A bar of the bytes that have been read or written."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn


@contextmanager
def byte_bar(
    what: str, total_bytes: int | None, console: Console, *, transient: bool = False
) -> Iterator[Callable[[int], None]]:
    """Shows a bar while the block runs; what it yields is called with the bytes that are done besides. `transient`: the
    bar goes with the block."""
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, TimeRemainingColumn(), console=console, transient=transient) as progress:
        task = progress.add_task(what, total=total_bytes or None)
        yield lambda size_bytes: progress.advance(task, size_bytes)
