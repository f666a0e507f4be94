"""Long work on a thread beside the event loop, which must not hold up the requests that are served meanwhile.

Two things of the interpreter would: a thread that computes keeps the interpreter's lock for a switch interval, five
milliseconds, whenever another asks for it, which a query does many times; and making the many objects of a large model
or request makes the collector look at all objects again and again, with everybody waiting.
"""

from __future__ import annotations

import gc
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from typing import Final

from paperwasp import limits

SWITCH_SECONDS: Final = 0.001
"""Shorter, and a thread that computes gets ahead of the event loop, which is asked for the lock more often."""
_NO_FULL_COLLECTION: Final = 1 << 30
"""Collections of the middle generation until a full one: more than there will be."""


class _Settings:
    """A setting of the interpreter while any thread works, and what to go back to."""

    def __init__(self, change: Callable[[], Callable[[], object]]) -> None:
        """`change`: makes the setting, and returns what unmakes it."""
        self._lock = threading.Lock()
        self._working = 0
        self._change = change
        self._undo: Callable[[], object] = change

    def __enter__(self) -> None:
        with self._lock:
            self._working += 1
            if self._working == 1:
                self._undo = self._change()

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._working -= 1
            if self._working == 0:
                self._undo()


def _switch_soon() -> Callable[[], object]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(min(SWITCH_SECONDS, before))
    return partial(sys.setswitchinterval, before)


def _collect_in_part() -> Callable[[], object]:
    before = gc.get_threshold()
    gc.set_threshold(*before[:2], _NO_FULL_COLLECTION)
    return partial(gc.set_threshold, *before)


switching_soon: Final = _Settings(_switch_soon)
"""Context of work that lets go of the interpreter's lock soon. Any number of threads may be inside."""
_COLLECTING_IN_PART: Final = _Settings(_collect_in_part)


@contextmanager
def yielding_to_requests() -> Iterator[None]:
    """The work inside lets go of the interpreter's lock soon, and starts no full collection. Any number of threads
    may be inside."""
    with switching_soon, _COLLECTING_IN_PART:
        yield


class _Collector:
    """The garbage collector, put off as long as somebody asks for that."""

    def __init__(self) -> None:
        self._asking = 0
        self._lock = threading.Lock()
        self._was_enabled = True

    def begin(self) -> None:
        with self._lock:
            if not self._asking:
                self._was_enabled = gc.isenabled()
                gc.disable()
            self._asking += 1

    def end(self) -> None:
        with self._lock:
            self._asking -= 1
            if not self._asking and self._was_enabled:
                gc.enable()


_COLLECTOR: Final = _Collector()


@contextmanager
def without_collections() -> Iterator[None]:
    """The work inside starts no garbage collection, which would look at all of the many objects that it makes to keep.
    Any number of threads may be inside."""
    _COLLECTOR.begin()
    try:
        yield
    finally:
        _COLLECTOR.end()


AS_USUAL: Final = nullcontext()
"""Context of work that changes no setting."""


def yielding_if_large(size_bytes: int) -> AbstractContextManager[None]:
    """As `yielding_to_requests` and `without_collections` for the work on a large request, which makes millions of
    objects. Work on smaller requests goes on as usual."""
    return AS_USUAL if size_bytes < limits.LARGE_REQUEST_BYTES else _yielding_without_collections()


@contextmanager
def _yielding_without_collections() -> Iterator[None]:
    with without_collections(), yielding_to_requests():
        yield


_ALONE: Final = threading.Lock()


@contextmanager
def computing_alone() -> Iterator[None]:
    """The work inside waits until no other thread is inside. Of many that compute at once, each would have the
    interpreter's lock before the event loop has it again. It must not wait for other things."""
    with _ALONE:
        yield
