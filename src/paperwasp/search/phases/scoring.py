"""Scores and features of the hits of a block: in parts, where the tensors of all are too large together."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np
from msgspec import Struct, field
from numpy.typing import NDArray

from paperwasp.core.budget import OutOfMemory, budget
from paperwasp.core.clock import OutOfTime
from paperwasp.document.tensor.algebra import spread
from paperwasp.document.tensor.batch import TensorBatch
from paperwasp.document.tensor.value import Tensor
from paperwasp.errors import InvalidQuery, TooLarge
from paperwasp.ranking import CompiledProfile, Program, RankValue
from paperwasp.search.features.block import Block
from paperwasp.search.features.family import evaluate, evaluate_all
from paperwasp.search.operators.field_match import Lids


def scores_of(block: Block, program: Program) -> NDArray[np.float64]:
    """The value of each hit. Raises InvalidQuery where the tensors of a single one are too large."""
    taken = budget.taken_bytes
    try:
        return evaluate(program, block)
    except TooLarge as error:
        parts = halves(block, error)
    finally:
        budget.taken_bytes = taken
    return np.concatenate([scores_of(part, program) for part in parts])


def scores_in_time(block: Block, program: Program) -> NDArray[np.float64]:
    """The value of each hit, or of the first ones where the time is over meanwhile. Raises as `scores_of`; OutOfTime
    where there is none."""
    taken = budget.taken_bytes
    try:
        return evaluate(program, block)
    except TooLarge as error:
        first, rest = halves(block, error)
    finally:
        budget.taken_bytes = taken
    found = scores_in_time(first, program)
    if len(found) < first.hits:
        return found
    try:
        return np.concatenate([found, scores_in_time(rest, program)])
    except OutOfTime:
        return found


def features_of(block: Block, wanted: Mapping[str, RankValue]) -> list[dict[str, float | Tensor]]:
    """For each hit: name → value, the tensors of which keep their memory until the query ends.

    Raises InvalidQuery as `scores_of`, and where the tensors of all hits are too large.
    """
    rows: list[dict[str, float | Tensor]] = [{} for _ in range(block.hits)]
    taken = budget.taken_bytes
    try:
        columns = evaluate_all(wanted, block)
        tensors = {
            name: spread(column, block.hits).tensors(block.labels)
            for name, column in columns.items()
            if isinstance(column, TensorBatch)
        }
    except TooLarge as error:
        parts = halves(block, error)
    else:
        for name, column in columns.items():
            values: list[Any] = column.tolist() if name not in tensors else tensors[name]  # type: ignore[union-attr]
            for row, value in zip(rows, values, strict=True):
                row[name] = value
        budget.taken_bytes = taken
        _keep(tensors.values())
        return rows
    budget.taken_bytes = taken
    return [row for part in parts for row in features_of(part, wanted)]


_SHOWN_CELL_BYTES: Final = 64


def _keep(columns: Iterable[Sequence[Tensor]]) -> None:
    """Count the memory of tensors that hits show, as numbers and as text. Errors: InvalidQuery."""
    try:
        budget.take(_SHOWN_CELL_BYTES * sum(tensor.cells.size for column in columns for tensor in column))
    except OutOfMemory as error:
        raise InvalidQuery(f"The tensors that hits show need {error}: ask for fewer hits, or smaller ones") from None


def halves(block: Block, error: TooLarge) -> tuple[Block, Block]:
    """Raises InvalidQuery where there is one hit only."""
    if block.hits < 2:
        raise InvalidQuery(f"Ranking one document needs too much memory: {error.message}") from None
    block.known.clear()
    half = block.hits // 2
    return block.part(slice(half)), block.part(slice(half, None))


# How many hits are scored together: as many as take about BLOCK_NS.


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


# Rank features of the first phase that later steps need again, of the same hits: kept, not computed a second time.
#
# They are kept of features that say the same of a hit in every phase, and where few documents match.


_SAME_IN_EVERY_PHASE: Final = ("bm25(", "closeness(", "itemRawScore(", "rawScore(")
"""How the names of features begin that depend on the query and the hit alone, and that take time."""
Columns = dict[object, NDArray[np.float64]]


class KnownFeatures(Struct, frozen=True, eq=False):
    """Values of features for some hits."""

    lids: Lids
    """Rising."""
    columns: Mapping[object, NDArray[np.float64]]

    def of(self, lids: Lids) -> Columns:
        """Return what is known of other hits: nothing, unless all of them are among these."""
        if not (self.columns and len(lids) and len(self.lids)):
            return {}
        places = np.minimum(self.lids.searchsorted(lids), len(self.lids) - 1)
        if not np.array_equal(self.lids[places], lids):
            return {}
        return {name: column[places] for name, column in self.columns.items()}


NO_FEATURES: Final = KnownFeatures(np.zeros(0, np.uint32), {})


class FeatureNotes(Struct):
    """The features with these names of one block of hits after another."""

    names: frozenset[str]
    _blocks: list[tuple[Lids, Columns]] = field(default_factory=list)
    _hits: int = 0

    def note(self, block: Block) -> None:
        """Keep what a block computed. What is not a number for each hit is not kept, nor anything of many hits."""
        if not self.names:
            return
        self._hits += block.hits
        columns: Columns = {}
        for name in self.names:
            column = block.known.get(name)
            if isinstance(column, np.ndarray) and len(column) == block.hits:
                columns[name] = column
        self._blocks.append((block.lids, columns))
        if self._hits > BLOCK_LIDS or len(columns) < len(self.names):
            self.names = frozenset()

    def known(self) -> KnownFeatures:
        """Return the features of all blocks together, by rising lids."""
        if not (self.names and self._blocks):
            return NO_FEATURES
        if len(self._blocks) == 1:
            lids, columns = self._blocks[0]
            return KnownFeatures(lids, columns)
        blocks = sorted((block for block in self._blocks if len(block[0])), key=lambda block: int(block[0][0]))
        lids = np.concatenate([lids for lids, _ in blocks])
        columns = {name: np.concatenate([each[name] for _, each in blocks]) for name in self.names}
        return KnownFeatures(lids, columns)


def reused_features(profile: CompiledProfile) -> frozenset[str]:
    """Return the names of the first phase's features that the global phase, or features of hits, need again."""
    phase = profile.global_phase
    later = [*profile.match_features.values(), *profile.summary_features.values()]
    programs = [*(phase.inputs.values() if phase is not None else ()), *later]
    needed = _names(program for program in programs if isinstance(program, Program))
    return frozenset(name for name in needed & _names([profile.first_phase]) if name.startswith(_SAME_IN_EVERY_PHASE))


def _names(programs: Iterable[Program]) -> frozenset[str]:
    return frozenset(feature.name for program in programs for feature in program.features)
