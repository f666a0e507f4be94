"""Is it better? Queries and judgments of people, measures of rankings, and what changed between two of them.

`evaluate` measures rankings of a service in this process. It is imported when it is asked for.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from paperwasp.relevance.in_process import evaluate as evaluate

_HOMES: Final = {"evaluate": "paperwasp.relevance.in_process"}
__all__ = ["evaluate"]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'paperwasp.relevance' has no attribute '{name}'")
