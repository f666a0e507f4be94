"""Parts of columns of values: some of their rows, and columns of several parts as one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from paperwasp.search.grouping.elements import as_numbers
from paperwasp.search.grouping.tables import InternedTable
from paperwasp.search.grouping.values import Kind, Values

_NUMBERS: Final = frozenset({Kind.BOOL, Kind.LONG, Kind.DOUBLE})


def values_at(values: Values, rows: NDArray[Any]) -> Values:
    """The single values of these rows."""
    return Values(values.kind, values.data[rows], values.table)


def unified(parts: Sequence[Values]) -> Values:
    """Single values of several parts as one column. Of different types they become floats or, where not all are
    numbers, text."""
    kinds = {part.kind for part in parts if len(part.data)} or {parts[0].kind}
    if kinds <= _NUMBERS:
        kind = kinds.pop() if len(kinds) == 1 else Kind.DOUBLE if Kind.DOUBLE in kinds else Kind.LONG
        data = [part.data if kind is part.kind else as_numbers(part) for part in parts if len(part.data)]
        empty: NDArray[Any] = np.zeros(0, {Kind.BOOL: np.bool_, Kind.LONG: np.int64}.get(kind, np.float64))
        return Values(kind, np.concatenate([empty, *data]))
    kind = kinds.pop() if len(kinds) == 1 else Kind.STRING
    table = InternedTable()
    found = [table.codes_of(_texts(part, as_text=kind != part.kind)) for part in parts]
    return Values(kind, np.concatenate(found), table)


def _texts(values: Values, *, as_text: bool) -> Sequence[Any]:
    found = values.data.tolist() if values.table is None else values.table.values_of(values.data)
    return [str(value) for value in found] if as_text else found
