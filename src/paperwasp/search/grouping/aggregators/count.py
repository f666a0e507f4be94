"""`count()`: how many hits a group has. A hit that is in a group twice counts twice.

Vespa: https://docs.vespa.ai/en/reference/querying/grouping-language.html#group-list-aggregators
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from paperwasp.base.records import dataclass
from paperwasp.core import _core
from paperwasp.search.grouping.aggregator import Aggregator, Binder, Groups, Numbers, aggregates, written_as
from paperwasp.search.grouping.column_state import WHOLE, ColumnState, added, number_values
from paperwasp.search.grouping.node import Rows
from paperwasp.search.grouping.request import Aggregation
from paperwasp.search.grouping.values import Values


@written_as("count")
@dataclass(frozen=True, slots=True, eq=False)
class CountState(ColumnState):
    """How many hits each group has."""

    dtypes: ClassVar = (WHOLE,)
    counts: NDArray[np.int64]

    @classmethod
    def merged(cls, parts: Sequence[Self], places: Sequence[Numbers], count: int) -> Self:
        return cls(added([part.counts for part in parts], list(places), count))

    def shown(self) -> Sequence[Any]:
        shown: list[Any] = self.counts.tolist()
        return shown

    def order_values(self) -> Values:
        return number_values(self.counts)


class Count(Aggregator):
    """Counts rows."""

    def collect(self, rows: Rows, groups: Groups, count: int) -> CountState:
        return CountState(_core.group_counts(groups, count))


@aggregates("count")
def _count(aggregation: Aggregation, bind: Binder) -> Count:
    return Count()
