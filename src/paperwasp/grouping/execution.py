"""Groups the hits of one document type, level by level.

At each level the groups that are left of the one above are parents: the rows of their hits are put into groups by
(parent, value), the best groups of each parent are kept, and only their rows go on. A hit that has several values is as
many rows from there on. All of it is done in columns, never hit by hit.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from paperwasp import grouping_limits as limits
from paperwasp.attribute.elements import numbers_within
from paperwasp.core.clock import check_time
from paperwasp.core.grouping import group_extremes, group_rows
from paperwasp.errors import InvalidQuery
from paperwasp.grouping.aggregator import State
from paperwasp.grouping.binding import BoundLevel, BoundRequest
from paperwasp.grouping.cutting import first_groups, has_more, key_ranks, most_groups, takes_first
from paperwasp.grouping.memory import check_memory, held_bytes
from paperwasp.grouping.node import Rows
from paperwasp.grouping.partial import Groups, PartialResult
from paperwasp.grouping.ragged import Numbers, lengths_of
from paperwasp.grouping.value_order import group_keys, ranks_of
from paperwasp.grouping.values import Kind, Values

_NO_GROUP = np.uint32(0xFFFFFFFF)


@dataclass(frozen=True, slots=True, eq=False)
class Hits:
    """All hits of a query of one document type."""

    lids: NDArray[np.uint32]
    """Rising."""
    relevances: NDArray[np.float64]
    places: NDArray[np.int64] | None = None
    """The place of each in the order of a sorting; None: by falling relevance, of equal ones the lower lid first."""


@dataclass(frozen=True, slots=True, eq=False)
class _Grouped:
    """Rows, each with its group, and where its hit stands in the order of hits."""

    rows: Rows
    groups: NDArray[np.uint32]
    places: NDArray[np.int64] | None

    def at(self, chosen: NDArray[Any]) -> _Grouped:
        return _Grouped(self.rows.at(chosen), self.groups[chosen], None if self.places is None else self.places[chosen])


def execute(bound: BoundRequest, hits: Hits, *, cuts: bool = True) -> PartialResult:
    """Return the groups of all levels.

    cuts: whether each level is cut to what a node gives. Not where more groups are merged with these before.

    Errors: InvalidQuery where there are more groups than a node has memory for; OutOfTime.
    """
    request = bound.request
    found = _Grouped(Rows(hits.lids, hits.relevances), np.zeros(len(hits.lids), np.uint32), hits.places)
    if request.top_n is not None:
        found = found.at(_first_hits(hits, request.top_n))
    if bound.accepts is not None:
        found = found.at(bound.accepts(found.rows))
    states = tuple(aggregator.collect(found.rows, found.groups, 1) for aggregator in bound.aggregators)
    levels = [
        Groups(
            request.root_tag,
            np.zeros(1, np.uint32),
            Values(Kind.NULL, np.zeros(1, np.uint32)),
            np.array([found.rows.relevances.max(initial=-np.inf) if len(found.groups) else 0.0]),
            states,
        )
    ]
    for level in bound.levels:
        check_time()
        groups, found = _grouped(bound, level, found, cuts=cuts)
        levels.append(groups)
        check_memory(held_bytes(tuple(levels)))
    return PartialResult(request.number, tuple(levels))


def _first_hits(hits: Hits, count: int) -> Numbers:
    """The first hits in their order, by rising lid."""
    if count >= len(hits.lids):
        return np.arange(len(hits.lids))
    order = np.argsort(-hits.relevances if hits.places is None else hits.places, kind="stable")
    return np.sort(order[:count])


def _grouped(bound: BoundRequest, level: BoundLevel, found: _Grouped, *, cuts: bool) -> tuple[Groups, _Grouped]:
    """The groups of a level, and the rows that are in these."""
    found, values = _values(level, found)
    if level.accepts is not None:
        accepted = level.accepts(found.rows)
        found, values = found.at(accepted), Values(values.kind, values.data[accepted], values.table)
    grouped = group_rows(found.groups, group_keys(values))
    count = len(grouped.first)
    if count > limits.GROUPS:
        raise InvalidQuery(
            f"grouping finds more than {limits.GROUPS} groups at one level: use filter() or fewer values"
        )
    parents, ids = found.groups[grouped.first], values.data[grouped.first]
    found = _Grouped(found.rows, grouped.groups, found.places)
    relevances = group_extremes(found.rows.relevances, found.groups, count, -np.inf, is_max=True)
    ordered = level.order.used
    states = _states(level, found, count, ordered)
    columns = key_ranks(level.level, level.order.columns(states, bound.binding))
    most = most_groups(level.level) if cuts else None
    kept = np.arange(count)
    if has_more(parents, most) or not cuts:
        firsts = _first_places(found, relevances)
        keys = [firsts] if takes_first(bound.request) else [*columns, -relevances, firsts]
        kept = first_groups(parents, keys, most)
    if cuts:
        ranks = ranks_of(Values(values.kind, ids[kept], values.table))
        columns = [column[kept] for column in columns]
        kept = kept[first_groups(parents[kept], [*columns, -relevances[kept], ranks], None)]
    found = _kept(found, kept, count)
    chosen = {number: state.selected(kept) for number, state in states.items()}
    chosen |= _states(level, found, len(kept), frozenset(range(len(level.aggregators))) - ordered)
    return Groups(
        level.level.tag,
        parents[kept],
        Values(values.kind, ids[kept], values.table),
        relevances[kept],
        tuple(chosen[number] for number in range(len(level.aggregators))),
    ), found


def _values(level: BoundLevel, found: _Grouped) -> tuple[_Grouped, Values]:
    """One value a row: a row with several values becomes as many."""
    values = level.node.values(found.rows)
    if values.offsets is None:
        return found, values
    found = found.at(np.repeat(np.arange(len(found.groups)), lengths_of(values.offsets)))
    name = level.node.array
    if name is not None and name not in found.rows.elements:
        elements = {**found.rows.elements, name: numbers_within(lengths_of(values.offsets)).astype(np.uint32)}
        rows = Rows(found.rows.lids, found.rows.relevances, elements)
        found = _Grouped(rows, found.groups, found.places)
    start, end = int(values.offsets[0]), int(values.offsets[-1])
    return found, Values(values.kind, values.data[start:end], values.table)


def _states(level: BoundLevel, found: _Grouped, count: int, wanted: Iterable[int]) -> Mapping[int, State]:
    return {number: level.aggregators[number].collect(found.rows, found.groups, count) for number in wanted}


def _first_places(found: _Grouped, relevances: NDArray[np.float64]) -> NDArray[np.float64]:
    """Numbers that rise with the place of each group's first hit in the order of hits."""
    count = len(relevances)
    if found.places is not None:
        return group_extremes(found.places, found.groups, count, np.iinfo(np.int64).max, is_max=False).astype(float)
    best = np.flatnonzero(found.rows.relevances == relevances[found.groups])[::-1]
    rows = np.empty(count, np.int64)
    rows[found.groups[best]] = best
    ranks = np.empty(count)
    ranks[np.lexsort((rows, -relevances))] = np.arange(count)
    return ranks


def _kept(found: _Grouped, kept: Numbers, count: int) -> _Grouped:
    """The rows of the groups that are kept, which have new numbers."""
    numbers = np.full(count, _NO_GROUP, np.uint32)
    numbers[kept] = np.arange(len(kept), dtype=np.uint32)
    groups = numbers[found.groups]
    if len(kept) == count:
        return _Grouped(found.rows, groups, found.places)
    chosen = groups != _NO_GROUP
    return _Grouped(found.rows, groups, found.places).at(chosen)
