"""What the answer to a query says of itself to who counts and logs answers (`http.messages.Response.about`)."""

from __future__ import annotations

from typing import Protocol


class Covered(Protocol):
    """How much of the documents was searched."""

    @property
    def documents(self) -> int: ...

    @property
    def percent(self) -> int: ...

    @property
    def degraded(self) -> frozenset[str]:
        """Why not all was searched: `match-phase`, `timeout`, `adaptive-timeout`, `non-ideal-state`, …"""


SearchFacts = tuple[int, int, Covered | None, int, int]
"""All hits that match, hits that are shown, how much was searched, the code of the first error or -1, and the
nanoseconds that it took to write the hits."""
