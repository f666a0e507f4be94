"""Facets: the most frequent values of one attribute with their counts, in fewer steps than general requests take.

`all(group(attribute) max(n) order(-count()) each(output(count())))`, or the same in another order or without one, over
an attribute with single strings or integers of the documents themselves. Nothing is bound, and no other level follows:
what is left is to count values and to choose the first groups. The result is that of `execution.execute`.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from paperwasp.core import _core
from paperwasp.core.clock import check_time
from paperwasp.core.together import Together, of_parts
from paperwasp.search.grouping.aggregators.averages import CountState
from paperwasp.search.grouping.attribute_columns import plain_column
from paperwasp.search.grouping.execution import Hits, check_count, root_groups
from paperwasp.search.grouping.merging import first_groups, most_groups
from paperwasp.search.grouping.partial import Groups, PartialResult
from paperwasp.search.grouping.request import GroupingRequest, Level
from paperwasp.search.grouping.value_columns import ranks_of_distinct
from paperwasp.search.grouping.values import Kind, Numbers, Table, Values
from paperwasp.storage.attributes.column import ColumnView

PART_ROWS: Final = 500_000
"""So many hits are worth another thread."""


def facet(
    request: GroupingRequest,
    columns: Mapping[str, ColumnView],
    hits: Hits,
    threads: int = 1,
    together: Together | None = None,
) -> PartialResult | None:
    """Return the groups of all levels, each cut to what a node gives; None: the request takes the general steps.

    columns: attributes by name. threads: how many may count, by `together`; the groups are the same. Errors:
    InvalidQuery where there are more groups than a node has memory for; OutOfTime.
    """
    if hits.places is not None or not is_facet(request):
        return None
    (level,) = request.levels
    view = columns.get(str(level.expression.arguments[0]))
    column = None if view is None else plain_column(view)
    if column is None:
        return None
    kind, codes, table = column
    check_time()
    threads = min(threads, len(hits.lids) // PART_ROWS)
    if together is None or threads < 2:
        counted: _Counted = _core.count_values(codes, hits.lids, hits.relevances)
    else:
        counted = _counted_together(codes, hits, threads, together)
    return PartialResult(request.number, (root_groups(request, hits.highest), _of(level, kind, table, counted)))


def facet_bytes(result: PartialResult) -> int:
    """Return the memory that the groups of a facet take, as `memory.held_bytes` counts it."""
    held = 0
    for groups in result.levels:
        each = groups.parents.itemsize + groups.ids.data.itemsize + 8 * (1 + len(groups.states))
        held += len(groups.parents) * each
    return held


_Counted = tuple[NDArray[Any], Numbers, NDArray[np.float64], NDArray[np.uint32]]
"""The values that are met, their counts, best relevances and first rows."""


def _counted_together(codes: NDArray[Any], hits: Hits, threads: int, together: Together) -> _Counted:
    """Count values as `count_values` does, in parts of the hits that several threads take. `codes`: by lid."""
    bounds = [len(hits.lids) * part // threads for part in range(threads + 1)]
    places = [slice(start, end) for start, end in pairwise(bounds)]

    def count(rows: slice) -> _Counted:
        return _core.count_values(codes, hits.lids[rows], hits.relevances[rows])

    parts = of_parts(places, count, threads, together)
    values, counts, relevances = (np.concatenate(columns) for columns in list(zip(*parts, strict=True))[:3])
    best_rows = np.concatenate([part[3] + np.uint32(start) for part, start in zip(parts, bounds, strict=False)])
    groups, first = _core.group_rows(np.zeros(len(values), np.uint32), values)
    best, best_places = _core.group_best(relevances, groups, len(first))
    return values[first], _core.group_sums(counts, groups, len(first)), best, best_rows[best_places]


def is_facet(request: GroupingRequest) -> bool:
    """Return whether a request counts the hits of the values of an attribute, and does nothing else."""
    if request.top_n is not None or request.aggregations or len(request.levels) != 1:
        return False
    level = request.levels[0]
    by = level.expression
    if by.function != "attribute" or level.filter is not None or len(level.order) > 1:
        return False
    for expression in [each.expression for each in level.aggregations] + [key.expression for key in level.order]:
        if expression.function != "count" or expression.arguments:
            return False
    return isinstance(by.arguments[0], str)


def _of(level: Level, kind: Kind, table: Table | None, counted: _Counted) -> Groups:
    """The groups of the level."""
    ids, counts, relevances, best_rows = counted
    check_count(len(ids))
    kept = _first(level, Values(kind, ids, table), counts, relevances, best_rows)
    chosen = CountState(counts[kept])
    states = (chosen,) * max(len(level.aggregations), len(level.order))
    return Groups(level.tag, np.zeros(len(kept), np.uint32), Values(kind, ids[kept], table), relevances[kept], states)


def _first(
    level: Level, ids: Values, counts: Numbers, relevances: NDArray[np.float64], best_rows: NDArray[np.uint32]
) -> Numbers:
    """The numbers of the groups that are left, in their order, which `merging` has: those whose best hits come first
    are taken, and shown by their ids."""
    most = most_groups(level)
    order = 0 if not level.order else 1 if level.order[0].is_ascending else -1
    limit = len(counts) if most is None else max(0, most)
    kept, has_equal = _core.first_counted(ids.data, counts, relevances, best_rows, order, limit)
    if not has_equal:
        return kept
    keys: list[NDArray[Any]] = [-relevances[kept], ranks_of_distinct(Values(ids.kind, ids.data[kept], ids.table))]
    if order:
        keys.insert(0, counts[kept] * order)
    return kept[first_groups(np.zeros(len(kept), np.uint32), keys, None)]
