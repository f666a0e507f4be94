"""The first page of facets, in fewer steps than pages of any tree take: their lists stand below the root, and no list
stands below another. The result is that of `shown`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from paperwasp.search.grouping.continuation import UNSTABLE, PagePosition, encode
from paperwasp.search.grouping.facets import is_facet
from paperwasp.search.grouping.partial import Groups, PartialResult
from paperwasp.search.grouping.request import Layout, Level
from paperwasp.search.grouping.result.ids import GroupIds, ids_of
from paperwasp.search.grouping.result.shown import GroupLists, ShownGroups, ShownRoot, Turn
from paperwasp.search.grouping.values import Kind, Values

_ROOT_IDS: Final = GroupIds(Kind.NULL, (None,))


def shown_facets(layout: Layout, found: Mapping[int, PartialResult]) -> ShownRoot | None:
    """The page that a statement shows of results by the numbers of their requests; None: they are no facets, or a later
    page is wanted."""
    if layout.pages.by_path or not found:
        return None
    tags, lists, step = set[int](), list[tuple[int, GroupLists]](), 0
    for request in layout.requests:
        result = found.get(request.number)
        if result is None:
            continue
        if not is_facet(request) or len(result.levels) != 2:
            return None
        (level,), groups = request.levels, result.levels[1]
        if level.tag in tags:  # two requests share the level
            return None
        tags.add(level.tag)
        lists.append((level.tag, _list(layout, level, groups, step)))
        step += len(groups.parents) > 0
    if not lists:
        return None
    root = ShownGroups(_ROOT_IDS, np.ones(1), (), (), [each for _, each in sorted(lists, key=lambda pair: pair[0])])
    return ShownRoot(layout.number, encode(()), root)


def _list(layout: Layout, level: Level, groups: Groups, step: int) -> GroupLists:
    """The list of one level. `step`: how many lists with groups stand before it in the root."""
    count, most = len(groups.parents), layout.maxes.get(level.tag, 0)
    size = min(count, most) if most else count
    turns = {}
    if size < count:
        turns[0] = turn_of(layout, level, step)
    ids = groups.ids
    relevances = (size - np.arange(size)) / size if level.order and size else groups.relevances[:size]
    shown = ShownGroups(
        ids_of(Values(ids.kind, ids.data[:size], ids.table)), relevances, _outputs(layout, level, groups, size), (), ()
    )
    return GroupLists(layout.labels.get(level.tag, ""), (0, size), (count > 0,), turns, shown)


def turn_of(layout: Layout, level: Level, step: int) -> Turn:
    """The continuation of a list of which the first page is shown."""
    position = PagePosition((layout.number, 0, step), level.tag, layout.maxes[level.tag], UNSTABLE)
    return Turn(encode((position,)), None)


def _outputs(layout: Layout, level: Level, groups: Groups, size: int) -> list[tuple[str, Sequence[Any]]]:
    """(label, value of each group) of the aggregations that are shown, each once."""
    columns: dict[int, Sequence[Any]] = {}
    for aggregation, state in zip(level.aggregations, groups.states, strict=False):
        if aggregation.tag in layout.labels and aggregation.tag not in columns:
            columns[aggregation.tag] = state.shown()[:size]
    return [(layout.labels[tag], column) for tag, column in columns.items()]
