"""Values of rows of hits in columns: what expressions make, and what groups are identified by."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any, Protocol

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from paperwasp.storage.attributes.rows import spread


class Kind(Enum):
    """The type of a value in the grouping language. Buckets are values of the type of their limits."""

    NULL = "null"
    BOOL = "bool"
    LONG = "long"
    DOUBLE = "double"
    STRING = "string"
    RAW = "raw"
    LONG_BUCKET = "long_bucket"
    DOUBLE_BUCKET = "double_bucket"
    STRING_BUCKET = "string_bucket"
    RAW_BUCKET = "raw_bucket"


class Null(Enum):
    """The value of an aggregate of which a group has none, and that is shown as such."""

    NULL = "null"


class Table(Protocol):
    """The values that codes stand for. Equal values have equal codes."""

    def values_of(self, codes: NDArray[np.uint32]) -> Sequence[Any]:
        """str, bytes, or (low, high) of a bucket, for each code; None: a value in no bucket."""


class ListTable:
    """A table over a list: code i stands for values[i]."""

    __slots__ = ("_values",)

    def __init__(self, values: Sequence[Any]) -> None:
        self._values = values

    def values_of(self, codes: NDArray[np.uint32]) -> Sequence[Any]:
        values = self._values
        return [values[code] for code in codes.tolist()]


class Values(Struct, frozen=True, eq=False):
    """One value a row, or any number of them.

    `data` has dtype int64 for LONG, float64 for DOUBLE, bool for BOOL, and uint32 for all else: codes of `table`.
    """

    kind: Kind
    data: NDArray[Any]
    table: Table | None = None
    offsets: NDArray[np.uint32] | None = None
    """Row i has the values offsets[i]:offsets[i + 1]; None: one value a row."""


# Arrays of which each group has a part: part i of them is offsets[i]:offsets[i + 1].


Numbers = NDArray[np.int64]


def offsets_of(lengths: NDArray[Any]) -> Numbers:
    """Where parts of these lengths begin, and where the last ends."""
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths, dtype=np.int64)])


def lengths_of(offsets: NDArray[Any]) -> Numbers:
    """The length of each part."""
    ends = offsets.astype(np.int64, copy=False)
    return ends[1:] - ends[:-1]


def parts_at(offsets: Numbers, rows: Numbers) -> tuple[Numbers, Numbers]:
    """Pick parts: the offsets of those in `rows`, in this order, and the places of their elements before."""
    lengths = lengths_of(offsets)[rows]
    return offsets_of(lengths), spread(offsets[:-1][rows], lengths)


def check_arrays(arrays: Mapping[str, NDArray[Any]], types: Mapping[str, type[np.generic]], state: str) -> None:
    """Errors: ValueError for other arrays than those of one dimension with these names and types. `state`: whose."""
    found = {name: (array.dtype, array.ndim) for name, array in arrays.items()}
    if found != {name: (np.dtype(kind), 1) for name, kind in types.items()}:
        raise ValueError(f"{state} has other arrays: {sorted(arrays)}")


def check_offsets(offsets: NDArray[Any], count: int, total: int) -> None:
    """Errors: ValueError for offsets that are not those of `count` parts of arrays of this length."""
    is_whole = 0 < len(offsets) == count + 1 and offsets[0] == 0 and offsets[-1] == total
    if not is_whole or (offsets[1:] < offsets[:-1]).any():
        raise ValueError("the offsets of a state are not those of its groups")
