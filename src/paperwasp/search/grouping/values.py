"""Values of rows of hits in columns: what expressions make, and what groups are identified by."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from paperwasp.base.records import dataclass


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
    """What codes stand for. Equal values have equal codes."""

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


@dataclass(frozen=True, slots=True, eq=False)
class Values:
    """One value a row, or any number of them.

    `data` has dtype int64 for LONG, float64 for DOUBLE, bool for BOOL, and uint32 for all else: codes of `table`.
    """

    kind: Kind
    data: NDArray[Any]
    table: Table | None = None
    offsets: NDArray[np.uint32] | None = None
    """Row i has the values offsets[i]:offsets[i + 1]; None: one value a row."""
