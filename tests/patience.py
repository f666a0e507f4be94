"""Queries that name no timeout have 20 seconds in the services of tests: on a busy machine half a second may run out.

A timeout that is named holds, and nothing else of a request changes: not what is remembered of it, nor its way.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final

SECONDS: Final = 20
PRELUDE: Final = (
    f"import sys; sys.path.insert(0, {str(Path(__file__).parent.parent)!r})\n"
    "from tests.patience import begin; begin()\n"
)
"""What a process executes last before its service begins."""


def begin() -> None:
    """Give queries of this process the longer time from now on."""
    _set(SECONDS * 1000)


@contextmanager
def patient_queries() -> Iterator[None]:
    """Give queries of this process the longer time meanwhile."""
    with _timeout(SECONDS * 1000):
        yield


@contextmanager
def default_timeout() -> Iterator[None]:
    """Give queries of this process the service's own time meanwhile."""
    from paperwasp import limits

    with _timeout(limits.QUERY_TIMEOUT_MS):
        yield


@contextmanager
def _timeout(milliseconds: int) -> Iterator[None]:
    before = _parameters().RequestValues
    _set(milliseconds)
    try:
        yield
    finally:
        _parameters().RequestValues = before


def _set(milliseconds: int) -> None:
    from paperwasp.container.search.settings import RequestValues

    _parameters().RequestValues = partial(RequestValues, timeout_ms=milliseconds)


def _parameters() -> Any:
    """Return the module where the parameters of a request begin with their defaults."""
    from paperwasp.container.search import parameters  # not at the top: it loads the service

    return parameters
