"""Choosing from hits in an order so that no value of an attribute takes too many of the places.

Vespa: https://docs.vespa.ai/en/querying/result-diversity.html
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from paperwasp.base.records import dataclass
from paperwasp.errors import InvalidQuery
from paperwasp.schema.model import Diversity
from paperwasp.search.operators import SearchSpace
from paperwasp.search.query import DiversityOverride
from paperwasp.storage.attributes import ColumnView
from paperwasp.storage.attributes.elements import numbers_within
from paperwasp.storage.attributes.sort_order import SortOrder, order_keys
from paperwasp.text.linguistics.collation import Collation

Lids = NDArray[np.uint32]
STRATEGIES: Final = ("loose", "strict")
_AS_IT_IS: Final = SortOrder(collation=Collation("raw"))


@dataclass(frozen=True, eq=False, slots=True)
class Diversifier:
    """`diversity` of a rank profile, with what a query overrides, in one document type."""

    view: ColumnView
    min_groups: int
    cutoff_factor: float
    strict: bool

    def groups_of(self, lids: Lids) -> NDArray[np.int64]:
        """A number for the value of each row: equal for equal values."""
        return order_keys(self.view, lids, _AS_IT_IS)

    def chosen(self, lids: Lids, most: int, cutoff_groups: int) -> NDArray[np.bool_]:
        """Which of these lids, best first, are among the at most `most` that are chosen."""
        return self.chosen_of(self.groups_of(lids), most, cutoff_groups)

    def chosen_of(self, groups: NDArray[np.int64], most: int, cutoff_groups: int) -> NDArray[np.bool_]:
        """Which places are chosen, by the group of what stands there.

        No group has more than `most / min_groups` of them. Once `cutoff_groups` groups are seen, no groups are
        distinguished: what comes then is chosen, where the cutoff is strict only if its group has not been seen.
        """
        most_of_group = max(1, most // max(1, self.min_groups))
        _, first, numbers = np.unique(groups, return_index=True, return_inverse=True)
        chosen = _occurrence(numbers) < most_of_group
        if 0 < cutoff_groups <= len(first):
            end = int(np.sort(first)[cutoff_groups - 1])
            if self.strict:
                chosen[end + 1 :] |= (first > end)[numbers[end + 1 :]]
            else:
                chosen[end + 1 :] = True
        return chosen & (np.cumsum(chosen) <= most)


def _occurrence(numbers: NDArray[np.intp]) -> NDArray[np.intp]:
    """For each number how often it came before."""
    order = np.argsort(numbers, kind="stable")
    counts = np.bincount(numbers)
    result = np.empty(len(numbers), np.intp)
    result[order] = numbers_within(counts)
    return result


def diversifier_of(said: Diversity | None, override: DiversityOverride, space: SearchSpace) -> Diversifier | None:
    """None: nobody asks for diversity. Raises InvalidQuery for what cannot be diversified by."""
    said = said or Diversity()
    name = said.attribute if override.attribute is None else override.attribute
    if not name:
        return None
    view = space.columns.get(name)
    if view is None or view.is_array or not view.is_searched:
        raise InvalidQuery(
            f"Cannot diversify by '{name}': the schema '{space.schema.name}' has no such single attribute"
        )
    strategy = said.cutoff_strategy if override.cutoff_strategy is None else override.cutoff_strategy
    if strategy not in STRATEGIES:
        raise InvalidQuery(f"Unknown cutoff strategy of diversity '{strategy}': known are {', '.join(STRATEGIES)}")
    return Diversifier(
        view,
        max(1, said.min_groups if override.min_groups is None else override.min_groups),
        said.cutoff_factor if override.cutoff_factor is None else override.cutoff_factor,
        strategy == "strict",
    )
