"""What a rank profile computes for the hits of a block: in parts, where the tensors of all are too large together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from paperwasp.core.budget import OutOfMemory, budget
from paperwasp.core.clock import OutOfTime
from paperwasp.document.tensor.algebra import spread
from paperwasp.document.tensor.batch import TensorBatch
from paperwasp.document.tensor.value import Tensor
from paperwasp.errors import InvalidQuery, TooLarge
from paperwasp.ranking import Program, RankValue
from paperwasp.search.features.block import Block
from paperwasp.search.features.family import evaluate, evaluate_all


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
