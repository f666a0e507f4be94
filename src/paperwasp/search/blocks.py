"""How many hits are scored together: as many as take about BLOCK_NS."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Final

BLOCK_LIDS: Final = 16_384
FIRST_BLOCK_LIDS: Final = 256
LEAST_BLOCK_LIDS: Final = 64
BLOCK_NS: Final = 10_000_000
"""How long a block is computed, about: between blocks the clock is asked, and hits of whole blocks are the answer."""
MANY_TERMS: Final = 1024
"""So many may be ranked by in whole blocks."""


def blocks_of(hits: int, terms: int) -> Iterator[slice]:
    """Yield slices of the hits in blocks, each sized so that its expression takes about BLOCK_NS.

    Expressions that are expensive for each hit, such as those over tensors, get small blocks, so that some hits have
    scores when the time is over. So do queries of many terms: what is known of each in a block would fill the memory.
    """
    most = max(BLOCK_LIDS * MANY_TERMS // max(MANY_TERMS, terms), 1)
    start, size = 0, min(most, FIRST_BLOCK_LIDS)
    while start < hits:
        end = min(start + size, hits)
        begun_ns = time.monotonic_ns()
        yield slice(start, end)
        needed_ns = max(1, time.monotonic_ns() - begun_ns)
        wanted = min(4 * size, (end - start) * BLOCK_NS // needed_ns)
        start = end
        size = min(most, max(LEAST_BLOCK_LIDS, wanted))
