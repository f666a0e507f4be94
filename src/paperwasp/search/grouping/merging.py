"""Puts partial results of one request together: those of document types, batches of them, nodes or clusters."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from paperwasp.core import _core
from paperwasp.search.grouping.aggregator import State
from paperwasp.search.grouping.binding import Binding, order_of
from paperwasp.search.grouping.cutting import first_groups, has_more, key_ranks, most_groups, takes_first
from paperwasp.search.grouping.partial import Groups, PartialResult
from paperwasp.search.grouping.ragged import Numbers
from paperwasp.search.grouping.request import GroupingRequest, Level
from paperwasp.search.grouping.value_columns import group_keys, ranks_of, unified, values_at
from paperwasp.search.grouping.values import Values

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
