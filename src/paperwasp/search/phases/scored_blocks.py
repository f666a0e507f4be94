"""The scores of all matches by the first phase, block by block: on one thread, or on several where there is much to do.

Threads take blocks from what is left, in the order of their hits. A hit's score does not depend on its block, nor on
the thread; what depends on the order of blocks is done in their order, by the thread of the query. So the answer is the
same, whoever helps; of a query whose time is over before all is scored, it has the hits that were scored in time.

Vespa: matching/matcher.cpp (`computeNumThreadsPerSearch`), docid_range_scheduler.cpp
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable
from itertools import chain
from threading import Lock
from typing import Final

from paperwasp.base.patterns import compile_later
from paperwasp.core.clock import OutOfTime
from paperwasp.search import matching_settings as matching
from paperwasp.search.bound_query import BoundQuery
from paperwasp.search.features.block import Block
from paperwasp.search.observe import EXPRESSION, FIRST_PHASE
from paperwasp.search.operators.field_match import Lids
from paperwasp.search.phases.ranked_hits import NO_SCORES, Scores, finite
from paperwasp.search.phases.scoring import (
    FIRST_BLOCK_LIDS,
    LEAST_BLOCK_LIDS,
    FeatureNotes,
    blocks_of,
    first_block,
    most_hits,
    next_size,
    scores_in_time,
)

Take = Callable[[int, Lids, Scores], float]
"""Takes the scores of hits, the first of which has this number among all, and returns the floor: hits that do not score
more are not wanted. Blocks come in any order where several threads score; it is called by one at a time."""
THREAD_NS: Final = 2_000_000
"""The least work for each thread: to begin and to end with another costs about a twentieth of it."""
KERNEL_THREAD_NS: Final = 500_000
"""The same where threads run one kernel, for which they need no interpreter's lock."""
_PARTS: Final = 4
"""Into how many blocks for each thread what is left is cut, at least: then all threads end at about the same time."""
_PART_NS: Final = 500_000
"""How long one of these blocks takes, or longer: what is done once for a block takes about a tenth of it."""
_FIRST_PART: Final = 32
"""Where there are known to be many hits, one in this number is scored before other threads help."""
_COUNT: Final = compile_later("[0-9]{1,9}")


def score_blocks(bound: BoundQuery, lids: Lids, notes: FeatureNotes, take: Take) -> int:
    """Score hits, whose lids rise, and return how many were scored in time. `notes`: of their features.

    Raises OutOfTime where there was no time for any.
    """
    scored, spent_ns, floor = 0, 0, -math.inf
    for places in _blocks_of_all(bound, len(lids)):
        begun_ns = time.monotonic_ns()
        block = lids[places]
        found = _scored_in_time(bound, block, floor, notes.note, is_first=not scored)
        floor = take(scored, block[: len(found)], found)
        scored += len(found)
        if scored < places.stop or scored == len(lids):
            break
        spent_ns += time.monotonic_ns() - begun_ns
        hit_ns = min(spent_ns / scored, bound.cost.first_ns)  # other threads may have run meanwhile
        threads = threads_worth(bound, len(lids), (len(lids) - scored) * hit_ns)
        if threads > 1:
            return _Split(bound, lids, scored, floor, notes, take).run(threads, hit_ns)
    return scored


class _Split:
    """Hits of which the first are scored, and several threads score the others."""

    def __init__(
        self, bound: BoundQuery, lids: Lids, start: int, floor: float, notes: FeatureNotes, take: Take
    ) -> None:
        self._bound = bound
        self._lids = lids
        self._start = start
        """The first of the hits that no thread has taken yet."""
        self._scored = start
        self._floor = _below(floor)
        self._notes = notes
        self._take = take
        self._is_over = False
        """Whether the time was over before all were scored."""
        self._undone: list[slice] = []
        """Blocks that several threads could not score: each had a share of the memory, and no label got a number."""
        self._most = most_hits(len(bound.setting.terms))
        self._first = self._most
        """How many hits the first block of each thread has."""
        self._lock = Lock()

    def run(self, threads: int, hit_ns: float) -> int:
        """Return how many hits were scored in time. `hit_ns`: what one takes, about. Errors: those of scoring."""
        bound, count, labels = self._bound, len(self._lids), self._bound.setting.labels
        wanted = _setting(bound, matching.SEARCH_PARTITIONS, "num-search-partitions")
        parts = max(_PARTS * threads, wanted)
        least = max(LEAST_BLOCK_LIDS, int(_PART_NS / hit_ns) if hit_ns >= 1 and not wanted else 0)
        self._most = min(self._most, max(least, -(-(count - self._start) // parts)))
        self._first = min(self._most, first_block(hit_ns))
        labels.is_closed = True
        try:
            bound.helpers.work(threads, self._work)
        finally:
            labels.is_closed = False
        rest = (slice(start, min(count, start + self._most)) for start in range(self._start, count, self._most))
        for places in chain(sorted(self._undone, key=lambda each: each.start), rest):
            if self._is_over:
                break
            self._score(places, self._notes.note)
        return self._scored

    def _work(self, helps: bool) -> None:
        """Scores what is left, on one of the threads, until nothing is. `helps`: not on that of the query."""
        size = self._first
        while (places := self._next(size)) is not None:
            begun_ns = time.monotonic_ns()
            try:
                self._score(places, self._note)
            except Exception:  # it is raised again where one thread scores them
                with self._lock:
                    self._undone.append(places)
                return
            size = min(self._most, next_size(places.stop - places.start, size, time.monotonic_ns() - begun_ns))
            if helps and self._bound.helpers.are_wanted():
                return

    def _next(self, size: int) -> slice | None:
        with self._lock:
            start = self._start
            if self._is_over or self._undone or start == len(self._lids):
                return None
            self._start = min(len(self._lids), start + size)
            return slice(start, self._start)

    def _score(self, places: slice, note: Callable[[Block], None]) -> None:
        block = self._lids[places]
        found = _scored_in_time(self._bound, block, self._floor, note, is_first=False)
        with self._lock:
            self._floor = _below(self._take(places.start, block[: len(found)], found))
            self._scored += len(found)
            self._is_over = self._is_over or len(found) < len(block)

    def _note(self, block: Block) -> None:
        with self._lock:
            self._notes.note(block)


def _below(floor: float) -> float:
    """The floor where blocks come in any order: of hits that score as much, one with a lower lid may still come."""
    return math.nextafter(floor, -math.inf)


def threads_worth(bound: BoundQuery, hits: int, left_ns: float, each_ns: int | None = None) -> int:
    """Return how many threads may score this number of hits, so that each has enough to do of what is left: `each_ns`,
    or THREAD_NS."""
    threads = int(left_ns / (each_ns or THREAD_NS))
    return min(threads, threads_of(bound, hits)) if threads > 1 else 1


def threads_of(bound: BoundQuery, hits: int) -> int:
    """Return how many threads may score, or count, this number of hits. Traces and profiles are of one."""
    most = bound.helpers.most
    if most < 2 or bound.observer.is_tracing:
        return 1
    wanted = _setting(bound, matching.THREADS_OF_SEARCH, "num-threads-per-search", most)
    least = _setting(bound, matching.HITS_OF_THREAD, "min-hits-per-thread")
    return min(most, wanted, -(-hits // least) if least else most)


def threads_of_plan(bound: BoundQuery) -> tuple[int, int]:
    """The most threads of a query by its rank profile, 0: any number; and how many hits each has at least."""
    tuning = bound.ready.declared.tuning
    most = tuning.get("num-threads-per-search")
    return 0 if most is None else max(1, int(most)), int(tuning.get("min-hits-per-thread", 0))


def _setting(bound: BoundQuery, key: str, name: str, default: int = 0) -> int:
    """Return the rank property of the query, else the setting of its rank profile."""
    said = bound.query.rank.properties.get(key, "")
    return int(said) if _COUNT.fullmatch(said) else int(bound.ready.declared.tuning.get(name, default))


def _blocks_of_all(bound: BoundQuery, count: int) -> Iterable[slice]:
    """The blocks of this number of hits: one where all have the same score."""
    if bound.profile.first_phase.constant is not None:
        return (slice(0, count),) if count else ()
    known_ns = bound.cost.known_ns
    first = FIRST_BLOCK_LIDS if known_ns is None else first_block(known_ns)
    if known_ns is not None and threads_worth(bound, count, count * known_ns) > 1:
        first = min(first, max(FIRST_BLOCK_LIDS, count // _FIRST_PART))
    return blocks_of(count, len(bound.setting.terms), first)


def _scored_in_time(
    bound: BoundQuery, lids: Lids, floor: float, note: Callable[[Block], None], *, is_first: bool
) -> Scores:
    """The scores of as many as there was time for; those that are not above the floor need not be known. None of
    the first block is an error: OutOfTime."""
    if not is_first and bound.is_over():
        return NO_SCORES
    profile = bound.profile
    try:
        with bound.observer.task(FIRST_PHASE, EXPRESSION, len(lids)):
            prunes = profile.first_phase.is_feature and profile.rank_score_drop_limit is None
            floor = floor if prunes else -math.inf
            block = Block(bound.setting, lids, phases=profile.phases, score_floor=floor)
            begun_ns = time.thread_time_ns()
            scores = scores_in_time(block, profile.first_phase)
            bound.cost.ranked(len(scores), time.thread_time_ns() - begun_ns)
            note(block)
            return finite(scores)
    except OutOfTime:
        if is_first:
            raise
        return NO_SCORES
