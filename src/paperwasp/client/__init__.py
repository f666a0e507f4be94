"""Clients of a running service, over HTTP like any other client: the feed client, and the command line's commands.

    from paperwasp.client import FeedClient

    with FeedClient("http://127.0.0.1:8080") as client:
        client.put("id:music:music::1", {"fields": {"title": "Thriller"}})

docs/reference/feed-client.md tells more. The names below are imported when they are first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from paperwasp.client.feeding.asynchronous import AsyncFeedClient
    from paperwasp.client.feeding.blocking import FeedClient, results_of
    from paperwasp.client.feeding.circuit_breaker import CircuitBreaker, CircuitState, FusedBreaker, GracePeriodBreaker
    from paperwasp.client.feeding.operations import FeedOperation, OperationParameters, OperationType, Outcome, Result
    from paperwasp.client.feeding.settings import Compression, RetryStrategy
    from paperwasp.client.feeding.statistics import FeedStatistics

__all__ = [
    "AsyncFeedClient",
    "CircuitBreaker",
    "CircuitState",
    "Compression",
    "FeedClient",
    "FeedOperation",
    "FeedStatistics",
    "FusedBreaker",
    "GracePeriodBreaker",
    "OperationParameters",
    "OperationType",
    "Outcome",
    "Result",
    "RetryStrategy",
    "results_of",
]

_FEEDING: Final = "paperwasp.client.feeding"
_HOMES: Final = {
    "AsyncFeedClient": "asynchronous",
    "CircuitBreaker": "circuit_breaker",
    "CircuitState": "circuit_breaker",
    "Compression": "settings",
    "FeedClient": "blocking",
    "FeedOperation": "operations",
    "FeedStatistics": "statistics",
    "FusedBreaker": "circuit_breaker",
    "GracePeriodBreaker": "circuit_breaker",
    "OperationParameters": "operations",
    "OperationType": "operations",
    "Outcome": "operations",
    "Result": "operations",
    "RetryStrategy": "settings",
    "results_of": "blocking",
}
"""The module of each name below `feeding`."""


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    return getattr(importlib.import_module(f"{_FEEDING}.{home}"), name)
