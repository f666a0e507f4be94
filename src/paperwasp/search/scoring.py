"""What a rank profile computes for the hits of a block: in parts, where the tensors of all are too large together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from paperwasp.core.clock import OutOfTime
from paperwasp.errors import InvalidQuery, TooLarge
from paperwasp.features.block import Block
from paperwasp.features.execution import evaluate, evaluate_all
from paperwasp.ranking import Program, RankValue
from paperwasp.tensor.algebra import spread
from paperwasp.tensor.batch import TensorBatch
from paperwasp.tensor.value import Tensor


def scores_of(block: Block, program: Program) -> NDArray[np.float64]:
    """The value of each hit. Raises InvalidQuery where the tensors of a single one are too large."""
    try:
        return evaluate(program, block)
    except TooLarge as error:
        return np.concatenate([scores_of(part, program) for part in halves(block, error)])


def scores_in_time(block: Block, program: Program) -> NDArray[np.float64]:
    """The value of each hit, or of the first ones where the time is over meanwhile. Raises as `scores_of`; OutOfTime
    where there is none."""
    try:
        return evaluate(program, block)
    except TooLarge as error:
        first, rest = halves(block, error)
    found = scores_in_time(first, program)
    if len(found) < first.hits:
        return found
    try:
        return np.concatenate([found, scores_in_time(rest, program)])
    except OutOfTime:
        return found


def features_of(block: Block, wanted: Mapping[str, RankValue]) -> list[dict[str, float | Tensor]]:
    """For each hit: name → value. Raises InvalidQuery as `scores_of`."""
    rows: list[dict[str, float | Tensor]] = [{} for _ in range(block.hits)]
    try:
        columns = evaluate_all(wanted, block)
    except TooLarge as error:
        return [row for part in halves(block, error) for row in features_of(part, wanted)]
    for name, column in columns.items():
        if isinstance(column, TensorBatch):
            values: list[Any] = spread(column, block.hits).tensors(block.labels)
        else:
            values = column.tolist()
        for row, value in zip(rows, values, strict=True):
            row[name] = value
    return rows


def halves(block: Block, error: TooLarge) -> tuple[Block, Block]:
    """Raises InvalidQuery where there is one hit only."""
    if block.hits < 2:
        raise InvalidQuery(f"Ranking one document needs too much memory: {error.message}") from None
    half = block.hits // 2
    return block.part(slice(half)), block.part(slice(half, None))
