"""paperwasp: a search and document service that speaks Vespa's interfaces.

`Service` is one that runs in this process. What is named here is imported when it is asked for.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from paperwasp.embedded.results import QueryResult as QueryResult
    from paperwasp.embedded.service import Service as Service

__version__ = "0.1.0"
_HOMES: Final = {"QueryResult": "paperwasp.embedded.results", "Service": "paperwasp.embedded.service"}
__all__ = ["QueryResult", "Service", "__version__"]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return _import(name)
    raise AttributeError(f"module 'paperwasp' has no attribute '{name}'")


def _import(name: str) -> Any:
    from paperwasp.base.yielding import without_collections

    with without_collections():
        return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
