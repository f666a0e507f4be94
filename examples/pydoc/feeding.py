"""Feeds documents and shows how far it is. Both parts of the demo use it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from paperwasp.client import FeedClient, Result

ERRORS_SHOWN = 10


@dataclass
class Fed:
    """How many documents were taken, in which time, and the first errors of others."""

    ok: int = 0
    errors: list[str] = field(default_factory=list)
    seconds: float = 0.0


def feed(url: str, documents: Iterable[dict[str, Any]], report: Callable[[int], None]) -> Fed:
    """Puts documents like `{"put": "id:…", "fields": {…}}`; calls `report(how many are in)` after each answer."""
    fed = Fed()
    started = time.monotonic()

    def look(future: Future[Result]) -> None:
        error = future.exception()
        if error is None:
            fed.ok += 1
        elif len(fed.errors) < ERRORS_SHOWN:
            fed.errors.append(str(error))
        report(fed.ok)

    with FeedClient(url) as client:
        for document in documents:
            client.put(document["put"], {"fields": document["fields"]}).add_done_callback(look)
    fed.seconds = time.monotonic() - started
    return fed


def progress_bar(console: Console) -> Progress:
    """A bar with counts and times."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    return Progress(*columns, TimeRemainingColumn(), console=console)
