"""`max(expression)`: the greatest of all values of a group's hits."""

from __future__ import annotations

from typing import ClassVar

from paperwasp.base.records import dataclass
from paperwasp.search.grouping.aggregator import Binder, aggregates, argument, written_as
from paperwasp.search.grouping.extremes import Extreme, ExtremeState
from paperwasp.search.grouping.request import Aggregation


@written_as("max")
@dataclass(frozen=True, slots=True, eq=False)
class MaxState(ExtremeState):
    """The greatest value of each group."""

    is_max: ClassVar[bool] = True


@aggregates("max")
def _max(aggregation: Aggregation, bind: Binder) -> Extreme:
    return Extreme(bind(argument(aggregation)), MaxState)
