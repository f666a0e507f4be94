"""The circumstances in which a script calls a component."""

from __future__ import annotations

import math
from collections.abc import Callable

from paperwasp.base.records import dataclass

TimeLeft = Callable[[], float]
"""The seconds that an operation still has."""


def no_end() -> float:
    """The time that is left where there is no timeout."""
    return math.inf


@dataclass(frozen=True, slots=True)
class Context:
    """The context of a call of a component, beside the text."""

    destination: str
    """The field that the value is for, or the input of a query: `query(name)`."""
    language: str = ""
    """A language tag; empty: unknown."""
    arguments: tuple[str, ...] = ()
    timeout_seconds: float = math.inf
    """The time that the caller has; a component that waits for others may take less."""

    @property
    def is_query(self) -> bool:
        """Whether the value is for a query, not for a document."""
        return self.destination.startswith("query(")
