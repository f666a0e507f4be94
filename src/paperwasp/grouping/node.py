"""Bound expressions: functions of rows of hits, whose types are known, over the columns of one document type."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from paperwasp.grouping.values import Kind, Values

Lids = NDArray[np.uint32]


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """Hits, each perhaps several times: once for each element of an array by which it is grouped."""

    lids: Lids
    relevances: NDArray[np.float64]
    elements: Mapping[str, NDArray[np.uint32]] = field(default_factory=dict)
    """Name of an array of structs or a map → which of its elements a row is about, where a level above has grouped by a
    member of it: other members of it are then read of this element alone."""


class Node(ABC):
    """A bound expression."""

    kind: Kind
    is_multi: bool = False
    """Whether a row may have any number of values."""
    array: str | None = None
    """The array of structs, or map, whose elements its values are of, one for one; levels below read these."""

    @abstractmethod
    def values(self, rows: Rows) -> Values:
        """The values of all rows at once."""
