"""How far a feed has come: a bar in a terminal, and in a notebook one that is updated in place."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sized
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from paperwasp.embedded.feeding import FeedResult, Report

_BETWEEN_SECONDS: Final = 0.1
Draw = Callable[[int, int], None]
"""Shows how many operations have ended, and how many of them have failed."""


@contextmanager
def shown_progress(source: object, report: Report | None) -> Iterator[Report]:
    """A report that shows a bar before it calls `report`. `source` says how much there is where it has a length."""
    total = len(source) if isinstance(source, Sized) and not isinstance(source, str) else None
    with (_notebook_bar if _is_notebook() else _terminal_bar)(total) as draw:
        yield _throttled(draw, report)


def _throttled(draw: Draw, report: Report | None) -> Report:
    drawn_at = 0.0

    def show(result: FeedResult) -> None:
        nonlocal drawn_at
        now = time.monotonic()
        if now - drawn_at >= _BETWEEN_SECONDS or result.seconds:  # which the last report has
            drawn_at = now
            draw(result.ok + result.failed, result.failed)
        if report is not None:
            report(result)

    return show


def _is_notebook() -> bool:
    """Whether a kernel of Jupyter runs this: it has loaded IPython long before."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return hasattr(shell, "kernel")


@contextmanager
def _terminal_bar(total: int | None) -> Iterator[Draw]:
    """On standard error, where that is a terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("Feeding"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[said]}"))
    with Progress(*columns, TimeElapsedColumn(), console=Console(stderr=True)) as bar:
        task = bar.add_task("", total=total, said="")
        yield lambda ended, failed: bar.update(task, completed=ended, said=f"{failed} failed" if failed else "")


@contextmanager
def _notebook_bar(total: int | None) -> Iterator[Draw]:
    shown: Any = import_module("IPython.display")
    handle = shown.display(shown.HTML(_bar_html(0, 0, total)), display_id=True)
    yield lambda ended, failed: handle.update(shown.HTML(_bar_html(ended, failed, total)))


def _bar_html(ended: int, failed: int, total: int | None) -> str:
    bar = "<progress></progress>" if total is None else f'<progress value="{ended}" max="{max(total, 1)}"></progress>'
    said = f"{ended:,}" if total is None else f"{ended:,} of {total:,}"
    return f"{bar} {said} fed" + (f", {failed:,} failed" if failed else "")
