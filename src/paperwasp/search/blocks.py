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
FIRST_BLOCK_NS: Final = 3_000_000
"""How long the first block is to take where only other queries by the same rank profile tell what a hit takes."""
MANY_TERMS: Final = 1024
"""The most that may be ranked by in whole blocks."""


def first_block(hit_ns: float) -> int:
    """Return how many hits the first block has where one is known to take so long."""
    return max(FIRST_BLOCK_LIDS, int(FIRST_BLOCK_NS / max(1.0, hit_ns)))


def most_hits(terms: int) -> int:
    """Return how many hits a block of a query has that ranks by this number of terms, at most."""
    return max(BLOCK_LIDS * MANY_TERMS // max(MANY_TERMS, terms), 1)


def next_size(hits: int, size: int, needed_ns: int) -> int:
    """Return how many hits the next block is to have, where this number of hits, in a block of that size, took so
    long."""
    return max(LEAST_BLOCK_LIDS, min(4 * size, hits * BLOCK_NS // max(1, needed_ns)))


def blocks_of(hits: int, terms: int, first: int = FIRST_BLOCK_LIDS) -> Iterator[slice]:
    """Yield slices of the hits in blocks, the first of that size, and each sized so that its expression takes about
    BLOCK_NS.

    Expressions that are expensive for each hit, such as those over tensors, get small blocks, so that some hits have
    scores when the time is over. So do queries of many terms: what is known of each in a block would fill the memory.
    """
    most = most_hits(terms)
    start, size = 0, min(most, first)
    while start < hits:
        end = min(start + size, hits)
        begun_ns = time.monotonic_ns()
        yield slice(start, end)
        size = min(most, next_size(end - start, size, time.monotonic_ns() - begun_ns))
        start = end
