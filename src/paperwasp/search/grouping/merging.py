"""Merges partial results of one request: those of document types, batches of them, nodes or clusters.

Groups are ordered by the keys of `order`, then by the relevance of their best hit, falling. Where there are more than a
node may give, those that it meets first among the hits in their order are taken of equal ones; in an answer they are in
the order of their ids. Where nothing is ordered, or only the best hits are grouped, the groups that are met first are
taken.

Vespa: aggregation/group.cpp (`cmpRank`, `postMerge`), groupinglevel.h (`allowMoreGroups`), Group.java (`postMerge`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from paperwasp.core import _core
from paperwasp.search.grouping.aggregator import State
from paperwasp.search.grouping.binding import Binding, order_of
from paperwasp.search.grouping.partial import Groups, PartialResult
from paperwasp.search.grouping.request import GroupingRequest, Level
from paperwasp.search.grouping.value_columns import group_keys, ranks_of, unified, values_at
from paperwasp.search.grouping.values import Numbers, Values


def most_groups(level: Level) -> int | None:
    """How many groups of one parent a node gives; None: all."""
    return level.max_groups if level.precision is None else level.precision


def takes_first(request: GroupingRequest) -> bool:
    """Whether the groups that are met first are taken."""
    return request.top_n is not None or not any(level.order for level in request.levels)


def key_ranks(level: Level, columns: Sequence[Values]) -> list[NDArray[Any]]:
    """Numbers that rise in the order of the groups, for each key of `order`."""
    found = []
    for key, values in zip(level.order, columns, strict=True):
        ranks = ranks_of(values)
        if not key.is_ascending:  # ~ does not overflow, as the minus of the least integer would
            ranks = ~ranks if ranks.dtype.kind == "i" else -ranks
        found.append(ranks)
    return found


def first_groups(parents: NDArray[np.uint32], keys: Sequence[NDArray[Any]], most: int | None) -> Numbers:
    """The numbers of the first groups of each parent, by rising keys, most important first; parent by parent.

    keys: int64 or float64. Errors: OutOfTime.
    """
    return _core.first_groups(parents, list(keys), len(parents) if most is None else max(0, most))


def has_more(parents: NDArray[Any], most: int | None) -> bool:
    """Whether some parent has more groups than that."""
    return most is not None and len(parents) > most and int(np.bincount(parents).max(initial=0)) > most


_GONE = -1
"""Instead of the number of a group: it was cut."""


def merged(
    request: GroupingRequest,
    parts: Sequence[PartialResult],
    binding: Binding,
    most: Callable[[Level], int | None] = most_groups,
) -> PartialResult:
    """Return the groups of all parts (at least one): equal ones as one, with the aggregates of all, cut and ordered.

    `most` says how many groups of one parent are left. `binding` binds what groups are ordered by: expressions over
    aggregates, in which no attribute stands.
    """
    roots = [part.levels[0] for part in parts]
    numbers = [np.zeros(1, np.int64) for _ in parts]
    relevances = np.array([max(float(root.relevances[0]) for root in roots)])
    first = roots[0]
    levels = [
        Groups(first.tag, first.parents, first.ids, relevances, _states([root.states for root in roots], numbers, 1))
    ]
    for depth, level in enumerate(request.levels, 1):
        groups, numbers = _level(request, level, [part.levels[depth] for part in parts], numbers, binding, most(level))
        levels.append(groups)
    return PartialResult(request.number, tuple(levels))


def _level(
    request: GroupingRequest,
    level: Level,
    parts: Sequence[Groups],
    above: Sequence[Numbers],
    binding: Binding,
    most: int | None,
) -> tuple[Groups, list[Numbers]]:
    """The groups of a level, and which of them each group of each part is; `above` is the same of their parents."""
    left = [np.flatnonzero(numbers[part.parents] != _GONE) for part, numbers in zip(parts, above, strict=True)]
    parents = np.concatenate(
        [numbers[part.parents[rows]] for part, numbers, rows in zip(parts, above, left, strict=True)]
    ).astype(np.uint32)
    ids = unified([values_at(part.ids, rows) for part, rows in zip(parts, left, strict=True)])
    relevances = np.concatenate([part.relevances[rows] for part, rows in zip(parts, left, strict=True)])
    numbers_of_rows, first = _core.group_rows(parents, group_keys(ids))
    count = len(first)
    of_parts = np.split(numbers_of_rows.astype(np.int64), np.cumsum([len(rows) for rows in left])[:-1])
    chosen = [tuple(state.selected(rows) for state in part.states) for part, rows in zip(parts, left, strict=True)]
    states = _states(chosen, of_parts, count)
    parents, ids = parents[first], values_at(ids, first)
    relevances = _core.group_extremes(relevances, numbers_of_rows, count, -np.inf, is_max=True)
    kept = _kept(request, level, parents, ids, relevances, states, binding, most)
    renumbered = np.full(count, _GONE)
    renumbered[kept] = np.arange(len(kept))
    numbers = []
    for part, rows, own in zip(parts, left, of_parts, strict=True):
        number = np.full(len(part.parents), _GONE)
        number[rows] = renumbered[own]
        numbers.append(number)
    selected = tuple(state.selected(kept) for state in states)
    return Groups(level.tag, parents[kept], values_at(ids, kept), relevances[kept], selected), numbers


def _kept(
    request: GroupingRequest,
    level: Level,
    parents: NDArray[np.uint32],
    ids: Values,
    relevances: NDArray[np.float64],
    states: Sequence[State],
    binding: Binding,
    most: int | None,
) -> Numbers:
    """The numbers of the groups that are left, in their order."""
    order = order_of(level)
    columns = key_ranks(level, order.columns({number: states[number] for number in order.used}, binding, len(parents)))
    kept = np.arange(len(parents))
    if has_more(parents, most):
        kept = first_groups(parents, [-relevances] if takes_first(request) else [*columns, -relevances], most)
    keys = [*(column[kept] for column in columns), -relevances[kept], ranks_of(values_at(ids, kept))]
    return kept[first_groups(parents[kept], keys, None)]


def _states(parts: Sequence[Sequence[State]], places: Sequence[Numbers], count: int) -> tuple[State, ...]:
    return tuple(type(states[0]).merged(states, places, count) for states in zip(*parts, strict=True))
