"""Groups the hits of one document type, level by level.

At each level the groups that are left of the one above are parents: the rows of their hits are put into groups by
(parent, value), the best groups of each parent are kept, and only their rows go on. A hit that has several values is as
many rows from there on. All of it is done in columns, never hit by hit.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from paperwasp.base.records import replace
from paperwasp.core import _core
from paperwasp.core.clock import check_time
from paperwasp.errors import InvalidQuery
from paperwasp.limits import grouping as limits
from paperwasp.search.grouping.aggregator import State
from paperwasp.search.grouping.binding import BoundLevel, BoundRequest
from paperwasp.search.grouping.expression_node import Rows
from paperwasp.search.grouping.memory import check_memory, held_bytes
from paperwasp.search.grouping.merging import first_groups, has_more, key_ranks, most_groups, takes_first
from paperwasp.search.grouping.partial import Groups, PartialResult
from paperwasp.search.grouping.request import GroupingRequest
from paperwasp.search.grouping.value_columns import group_keys, ranks_of
from paperwasp.search.grouping.values import Kind, Numbers, Values, lengths_of

_NO_GROUP = np.uint32(0xFFFFFFFF)


class Hits(Struct, frozen=True, eq=False, dict=True):
    """All hits of a query of one document type."""

    lids: NDArray[np.uint32]
    """Rising."""
    relevances: NDArray[np.float64]
    places: NDArray[np.int64] | None = None
    """The place of each in the order of a sorting; None: by falling relevance, of equal ones the lower lid first."""

    @cached_property
    def highest(self) -> float:
        """The relevance of the best; 0 where there are none."""
        return highest_of(self.relevances)

    @cached_property
    def relevance(self) -> float | None:
        """The relevance that all hits have; None where they differ."""
        least = float(self.relevances.min(initial=np.inf))
        return least if least == self.relevances.max(initial=-np.inf) else None


class _Grouped(Struct, frozen=True, eq=False):
    """Rows, each with its group, and where its hit stands in the order of hits."""

    rows: Rows
    groups: NDArray[np.uint32]
    places: NDArray[np.int64] | None
    relevance: float | None
    """The relevance of all hits, where it is the same."""

    def at(self, chosen: NDArray[Any]) -> _Grouped:
        places = None if self.places is None else self.places[chosen]
        return _Grouped(self.rows.at(chosen), self.groups[chosen], places, self.relevance)

    def about(self, array: str, numbers: NDArray[np.uint32]) -> _Grouped:
        """The same rows, each about the element of this number of an array."""
        rows = self.rows
        return replace(self, rows=Rows(rows.lids, rows.relevances, {**rows.elements, array: numbers}))

    def best(self, first: NDArray[np.uint32]) -> tuple[NDArray[np.float64], NDArray[np.uint32]]:
        """The relevance of the best hit of each group, and the first row of those that have it. `first`: the first row
        of each group."""
        return best_of_groups(self.rows.relevances, self.relevance, self.groups, first)


class _Met(Struct, frozen=True, eq=False):
    """All groups of a level, in the order in which their rows are met."""

    parents: NDArray[np.uint32]
    ids: Values
    relevances: NDArray[np.float64]
    best_rows: NDArray[np.uint32]
    """The first row of each that has this relevance."""


def execute(bound: BoundRequest, hits: Hits, *, cuts: bool = True) -> PartialResult:
    """Return the groups of all levels.

    cuts: whether each level is cut to what a node gives. Not where more groups are merged with these before.

    Errors: InvalidQuery where there are more groups than a node has memory for; OutOfTime.
    """
    request = bound.request
    rows = Rows(hits.lids, hits.relevances)
    found = _Grouped(rows, np.zeros(len(hits.lids), np.uint32), hits.places, hits.relevance)
    if request.top_n is not None:
        found = found.at(_first_hits(hits, request.top_n))
    states = tuple(aggregator.collect(found.rows, found.groups, 1) for aggregator in bound.aggregators)
    levels = [root_groups(request, highest_of(found.rows.relevances), states)]
    held = held_bytes(levels[0])
    for level in bound.levels:
        check_time()
        groups, found = _grouped(bound, level, found, cuts=cuts, is_last=level is bound.levels[-1])
        levels.append(groups)
        held += held_bytes(groups)
        check_memory(held)
    return PartialResult(request.number, tuple(levels))


def highest_of(relevances: NDArray[np.float64]) -> float:
    """The relevance of the best hit; 0 where there are none."""
    return float(relevances.max()) if len(relevances) else 0.0


def root_groups(request: GroupingRequest, highest: float, states: tuple[State, ...] = ()) -> Groups:
    """The root: one group of all hits, the best of which has the relevance `highest`."""
    root = np.zeros(1, np.uint32)
    return Groups(request.root_tag, root, Values(Kind.NULL, root), np.array([highest]), states)


def best_of_groups(
    relevances: NDArray[np.float64], relevance: float | None, groups: NDArray[np.uint32], first: NDArray[np.uint32]
) -> tuple[NDArray[np.float64], NDArray[np.uint32]]:
    """The relevance of the best hit of each group, and the first row of those that have it.

    relevance: that of all hits, where they have the same one. groups: the group of each row. first: the first row of
    each group.
    """
    count = len(first)
    if relevance is not None:
        return np.full(count, relevance), first
    return _core.group_best(relevances, groups, count)


def check_count(count: int) -> None:
    """Errors: InvalidQuery for more groups of a level than a node has memory for."""
    if count > limits.GROUPS:
        raise InvalidQuery(
            f"grouping finds more than {limits.GROUPS} groups at one level: use filter() or fewer values"
        )


def _first_hits(hits: Hits, count: int) -> Numbers:
    """The first hits in their order, by rising lid."""
    if count >= len(hits.lids):
        return np.arange(len(hits.lids))
    keys: list[NDArray[Any]] = [-hits.relevances if hits.places is None else hits.places]
    return np.sort(first_groups(np.zeros(len(hits.lids), np.uint32), keys, count))


def _grouped(
    bound: BoundRequest, level: BoundLevel, found: _Grouped, *, cuts: bool, is_last: bool
) -> tuple[Groups, _Grouped]:
    """The groups of a level, and the rows that are in these; of the last level the rows do not matter."""
    found, values = _values(level, found)
    if level.accepts is not None:
        accepted = level.accepts(found.rows)
        found, values = found.at(accepted), Values(values.kind, values.data[accepted], values.table)
    numbers, first = _core.group_rows(found.groups, group_keys(values))
    count = len(first)
    check_count(count)
    parents = found.groups[first]
    found = replace(found, groups=numbers)
    met = _Met(parents, Values(values.kind, values.data[first], values.table), *found.best(first))
    ordered = level.order.used
    states = dict(_states(level, found, count, ordered))
    columns = key_ranks(level.level, level.order.columns(states, bound.binding, count))
    kept = _first(bound, level, found, met, columns, cuts=cuts)
    others = frozenset(range(len(level.aggregators))) - ordered
    if len(kept) == count:
        states |= _states(level, found, count, others)
        others = frozenset()
    if others or not is_last:
        found = _kept(found, kept, count)
    chosen = {number: state.selected(kept) for number, state in states.items()}
    chosen |= _states(level, found, len(kept), others)
    return Groups(
        level.level.tag,
        parents[kept],
        Values(values.kind, met.ids.data[kept], values.table),
        met.relevances[kept],
        tuple(chosen[number] for number in range(len(level.aggregators))),
    ), found


def _first(
    bound: BoundRequest,
    level: BoundLevel,
    found: _Grouped,
    met: _Met,
    columns: Sequence[NDArray[Any]],
    *,
    cuts: bool,
) -> Numbers:
    """The numbers of the groups that are left, in their order. `columns`: of the keys that the level orders them by."""
    kept = np.arange(len(met.parents))
    most = most_groups(level.level) if cuts else None
    falling = -met.relevances
    if has_more(met.parents, most) or not cuts:
        keys = [*columns, falling]
        if takes_first(bound.request):
            keys = [falling] if found.places is None else []
        kept = first_groups(met.parents, [*keys, _first_places(found, met.best_rows)], most)
    if not cuts:
        return kept
    ids = met.ids
    ranks = ranks_of(Values(ids.kind, ids.data[kept], ids.table))
    keys = [*(column[kept] for column in columns), falling[kept], ranks]
    return kept[first_groups(met.parents[kept], keys, None)]


def _values(level: BoundLevel, found: _Grouped) -> tuple[_Grouped, Values]:
    """One value a row: a row with several values becomes as many, each about one element. Of one value that is
    computed of several, the row is about the first element (Vespa: groupinglevel.cpp, whose single value sets no
    element)."""
    node = level.node
    values = node.values(found.rows)
    if values.offsets is None:
        if node.array is not None:
            found = found.about(node.array, np.zeros(len(found.groups), np.uint32))
        return found, values
    numbers = None if node.array is None else node.element_numbers(found.rows, values.offsets)
    found = found.at(np.repeat(np.arange(len(found.groups)), lengths_of(values.offsets)))
    if node.array is not None and numbers is not None:
        found = found.about(node.array, numbers.astype(np.uint32))
    start, end = int(values.offsets[0]), int(values.offsets[-1])
    return found, Values(values.kind, values.data[start:end], values.table)


def _states(level: BoundLevel, found: _Grouped, count: int, wanted: Iterable[int]) -> Mapping[int, State]:
    return {number: level.aggregators[number].collect(found.rows, found.groups, count) for number in wanted}


def _first_places(found: _Grouped, best_rows: NDArray[np.uint32]) -> Numbers:
    """Numbers that rise in the order in which groups are met among the hits: among those of equal relevance, where
    hits are in the order of their relevance."""
    if found.places is None:
        return best_rows.astype(np.int64)
    rows = len(found.places)
    met = found.places * rows + np.arange(rows)  # of one hit, in the order of its values
    return _core.group_extremes(met, found.groups, len(best_rows), np.iinfo(np.int64).max, is_max=False)


def _kept(found: _Grouped, kept: Numbers, count: int) -> _Grouped:
    """The rows of the groups that are kept, which have new numbers."""
    numbers = np.full(count, _NO_GROUP, np.uint32)
    numbers[kept] = np.arange(len(kept), dtype=np.uint32)
    renumbered = replace(found, groups=numbers[found.groups])
    return renumbered if len(kept) == count else renumbered.at(renumbered.groups != _NO_GROUP)
