"""match-phase: where there are too many matches, only those documents are ranked that have the best values of an
attribute. What that leaves out is reported as a coverage below 1, with the reason "match-phase".

Vespa estimates the share of documents that match from the first of them; here all of them are counted, so the outcome
does not depend on where the documents lie.

Vespa: https://docs.vespa.ai/en/reference/schemas/schemas.html#match-phase
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from paperwasp.core import _core
from paperwasp.errors import InvalidQuery
from paperwasp.schema.model import Diversity, MatchPhase, RankProfile
from paperwasp.search.operators import SearchSpace
from paperwasp.search.operators.boolean import AndItem
from paperwasp.search.operators.field_match import Bitmap
from paperwasp.search.operators.item import Item, plan
from paperwasp.search.operators.range_operator import RangeItem
from paperwasp.search.query import DiversityOverride, MatchPhaseOverride
from paperwasp.storage.attributes import ColumnView
from paperwasp.storage.attributes.column import bitmap_of
from paperwasp.storage.attributes.elements import numbers_within
from paperwasp.storage.attributes.numeric import NumericView
from paperwasp.storage.attributes.sort_order import SortOrder, order_keys
from paperwasp.text.linguistics.collation import Collation

LEAST_DOCUMENTS: Final = 128
"""Never are fewer documents looked at."""


class Limited(Struct, frozen=True, eq=False):
    """The matches that are left, and how many documents were looked at to find them."""

    matches: Bitmap
    documents: int


class Limiter(Struct, frozen=True, eq=False):
    """match-phase of a rank profile, with what a query overrides, in one document type."""

    space: SearchSpace
    said: MatchPhase
    view: ColumnView
    universe: Bitmap
    """The documents whose values the query itself allows."""
    diversifier: Diversifier | None

    def limited(self, matches: Bitmap) -> Limited | None:
        """None: there are not too many."""
        most = self.said.total_max_hits or self.said.max_hits
        found, documents = _core.bitmap_count(matches, self.space.accept), self.space.documents
        if found <= max(LEAST_DOCUMENTS, most * self.said.evaluation_point):
            return None
        wanted = int(max(LEAST_DOCUMENTS, most * documents / found))
        if min(documents, int(documents * self.said.max_filter_coverage)) <= wanted:
            return None
        best = self._best(wanted)
        return Limited(matches & bitmap_of(best, self.space.limit), len(best))

    def _best(self, wanted: int) -> NDArray[np.uint32]:
        """The lids of the `wanted` documents with the best values, and of all with a value as that of the last."""
        limit, descending = self.space.limit, self.said.order == "descending"
        values: NDArray[Any]
        if isinstance(self.view, NumericView):
            values = self.view.values[:limit]
        else:
            values = order_keys(self.view, np.arange(limit, dtype=np.uint32), SortOrder())
        if self.diversifier is None:
            return _core.first_rows(values, self.universe, wanted, descending)
        return self._diverse(self.diversifier, values, wanted, descending)

    def _diverse(
        self, diversifier: Diversifier, values: NDArray[Any], wanted: int, descending: bool
    ) -> NDArray[np.uint32]:
        cutoff = int(diversifier.cutoff_factor * wanted / max(1, wanted // diversifier.min_groups))
        looked_at = wanted
        while True:
            looked_at *= 4
            rows = _core.first_rows(values, self.universe, looked_at, descending)
            keys = values[rows]
            rows = rows[np.argsort(-keys.astype(np.float64) if descending else keys, kind="stable")]
            chosen = diversifier.chosen(rows, wanted, cutoff)
            if np.count_nonzero(chosen) >= wanted or len(rows) < looked_at:
                return rows[chosen]


def limiter_of(profile: RankProfile, override: MatchPhaseOverride, tree: Item, space: SearchSpace) -> Limiter | None:
    """None: matching is not limited. Raises InvalidQuery for an attribute that cannot limit."""
    said = _overridden(profile.match_phase, override)
    if said is None or not said.attribute or not (said.total_max_hits or said.max_hits):
        return None
    view = space.columns.get(said.attribute)
    if view is None or view.is_array or view.is_string or not view.is_searched:
        raise InvalidQuery(
            f"Cannot limit matching by '{said.attribute}': the schema '{space.schema.name}' has no attribute of this "
            f"name that is a single number"
        )
    universe = space.accept
    for item in tree.children if isinstance(tree, AndItem) else (tree,):
        if isinstance(item, RangeItem) and item.index == said.attribute:
            universe = universe & plan(item, space).bitmap()
    return Limiter(space, said, view, universe, diversifier_of(profile.diversity, override.diversity, space))


def _overridden(said: MatchPhase | None, override: MatchPhaseOverride) -> MatchPhase | None:
    if said is None and override.attribute is None:
        return None
    said = said or MatchPhase("")
    ascending = said.order == "ascending" if override.ascending is None else override.ascending
    return MatchPhase(
        attribute=said.attribute if override.attribute is None else override.attribute,
        order="ascending" if ascending else "descending",
        max_hits=said.max_hits if override.max_hits is None else override.max_hits,
        total_max_hits=said.total_max_hits if override.max_hits is None else 0,
        max_filter_coverage=(
            said.max_filter_coverage if override.max_filter_coverage is None else override.max_filter_coverage
        ),
        evaluation_point=said.evaluation_point,
    )


# Choosing from hits in an order so that no value of an attribute takes too many of the places.
#
# Vespa: https://docs.vespa.ai/en/querying/result-diversity.html


Lids = NDArray[np.uint32]
STRATEGIES: Final = ("loose", "strict")
_AS_IT_IS: Final = SortOrder(collation=Collation("raw"))


class Diversifier(Struct, frozen=True, eq=False):
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
