"""The memory that one unit of work may take: counted before it is allocated, given back at its end.

A unit is a query on a content node, the reading of one, an evaluation of a model, a deployment. Whoever begins one says
how much it may take; what computes with arrays counts them. A thread without a budget may take any amount.
The time of the work is that of `core.clock`.
"""

from __future__ import annotations

import threading


class OutOfMemory(Exception):
    """The work asks for more memory than it may have. Nothing was allocated."""

    def __init__(self, most_bytes: int) -> None:
        super().__init__(f"more than the {most_bytes:,} bytes of memory that it may take")
        self.most_bytes = most_bytes


class MemoryBudget(threading.local):
    """The memory of the work of each thread."""

    most_bytes: int = 0
    """0: there is no bound."""
    taken_bytes: int = 0

    def begin(self, most_bytes: int) -> None:
        """A unit of work begins, of which nothing is taken yet; 0: one without a bound."""
        self.most_bytes = most_bytes
        self.taken_bytes = 0

    def take(self, count: int) -> None:
        """Count bytes that are about to be allocated. Errors: OutOfMemory, and nothing is counted."""
        taken = self.taken_bytes + count
        if taken > self.most_bytes > 0:
            raise OutOfMemory(self.most_bytes)
        self.taken_bytes = taken

    def give_back_to(self, taken_bytes: int) -> None:
        """What was taken since that number of `taken_bytes` is free again."""
        self.taken_bytes = taken_bytes


budget = MemoryBudget()
"""That of the thread which asks."""
