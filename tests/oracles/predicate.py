"""The plain twin of core/attributes/predicate.cpp: predicates of documents, evaluated for the features of a query."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from paperwasp.storage.attributes.predicate import AND, AND_MASK, CALL, CONDITION, NOT, PUSH

STACK: Final = 256
"""Operands that wait at the same time."""

_ALL: Final = 0xFFFFFFFFFFFFFFFF


def evaluate_predicates(
    programs: NDArray[np.uint32], rows: NDArray[np.uint64], masks: NDArray[np.uint64], results: NDArray[np.uint64]
) -> None:
    """Writes for each program, which stands at rows[i] = offset << 24 | length, the subqueries in which it holds: a bit
    for each. masks[c] are those in which condition c holds. Errors: ValueError for a damaged program."""
    if len(results) != len(rows):
        raise ValueError("the results do not fit the rows")
    for place, row in enumerate(rows.tolist()):
        start, length = row >> 24, row & 0xFFFFFF
        if start + length > len(programs):
            raise ValueError("a damaged program")
        results[place] = _run(programs[start : start + length].tolist(), masks.tolist())


def _run(program: list[int], masks: list[int]) -> int:
    stack: list[int] = []
    try:
        for step in program:
            if step == NOT:
                stack.append(_ALL & ~stack.pop())
            elif step & CALL == CALL:
                right, left = stack.pop(), stack.pop()
                stack.append(left & right if step == AND else left | right)
            else:
                mask, kind = masks[step & CONDITION], step & CALL
                stack.append(mask if kind == PUSH else stack.pop() & mask if kind == AND_MASK else stack.pop() | mask)
    except IndexError:
        raise ValueError("a damaged program") from None
    if len(stack) > 1:
        raise ValueError("a damaged program")
    return stack[0] if stack else 0
