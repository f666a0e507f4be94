"""Parts of one piece of work that several threads take, each as soon as it has nothing else to do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import Lock
from typing import TypeVar

_Part = TypeVar("_Part")
_Found = TypeVar("_Found")

Together = Callable[[int, Callable[[bool], None]], None]
"""Runs work on some threads, and returns when it is done: `search.query_resources.Helpers.work`."""


def of_parts(parts: Sequence[_Part], work: Callable[[_Part], _Found], threads: int, together: Together) -> list[_Found]:
    """What `work` makes of each part, in their order. What fails on another thread is done again by this one."""
    left, found = list(reversed(range(len(parts)))), dict[int, _Found]()
    lock = Lock()

    def take(_: bool) -> None:
        while True:
            with lock:
                if not left:
                    return
                number = left.pop()
            made = work(parts[number])
            with lock:
                found[number] = made

    together(threads, take)
    return [found[number] if number in found else work(part) for number, part in enumerate(parts)]
