"""The plain twins of core/attributes/elements.cpp: which elements of documents are wanted, and what two lists of them
share.

A list of elements is (offsets[documents + 1], numbers): those of document i are numbers[offsets[i] : offsets[i + 1]],
rising, each once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

from paperwasp.search.operators.operator import BOTH, EITHER, FIRST_ONLY
from paperwasp.storage.attributes.rows import ROW_LENGTH_BITS

Elements = tuple[NDArray[np.uint32], NDArray[np.uint32]]


def row_elements(rows: NDArray[np.uint64], wanted: NDArray[np.uint64], elements: int) -> Elements:
    """The elements of rows (offset << 24 | length) whose bit is set in `wanted`, which has one for each of `elements`.
    A row that points outside of them has none."""
    if len(wanted) != (elements + 63) // 64:
        raise ValueError(f"bitmap has {len(wanted)} words for {elements} rows")
    found = []
    for row in rows.tolist():
        start, length = row >> ROW_LENGTH_BITS, row & (1 << ROW_LENGTH_BITS) - 1
        places = range(start, start + length) if start + length <= elements else ()
        found.append([place - start for place in places if int(wanted[place >> 6]) >> (place & 63) & 1])
    return _listed(found)


def join_elements(
    how: int,
    a_offsets: NDArray[np.uint32],
    a: NDArray[np.uint32],
    b_offsets: NDArray[np.uint32],
    b: NDArray[np.uint32],
) -> Elements:
    """The elements that both lists have, or one of them, or the first only. Errors: ValueError."""
    if len(a_offsets) != len(b_offsets) or how not in _JOINS:
        raise ValueError("elements of other documents")
    pairs = zip(_sets(a_offsets, a), _sets(b_offsets, b), strict=True)
    return _listed([sorted(_JOINS[how](one, other)) for one, other in pairs])


_JOINS: Final[Mapping[int, Callable[[set[int], set[int]], set[int]]]] = {
    BOTH: set.__and__,
    EITHER: set.__or__,
    FIRST_ONLY: set.__sub__,
}


def _sets(offsets: NDArray[np.uint32], numbers: NDArray[np.uint32]) -> list[set[int]]:
    if len(offsets) == 0 or offsets[0] != 0 or offsets[-1] != len(numbers) or (offsets[1:] < offsets[:-1]).any():
        raise ValueError("offsets that do not fit the elements")
    rows = [numbers[start:end].tolist() for start, end in pairwise(offsets)]
    if any(row != sorted(set(row)) for row in rows):
        raise ValueError("elements that do not rise")
    return [set(row) for row in rows]


def _listed(found: list[list[int]]) -> Elements:
    offsets = np.cumsum([0, *map(len, found)]).astype(np.uint32)
    return offsets, np.array([number for row in found for number in row], np.uint32)
