"""Grouping statements that only count values, as compiled plans take them: the JSON of their lists but for the groups.

What a list shows is `search.grouping.shown_groups`, and its JSON `container.search.groups_json`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import orjson

from paperwasp.container.search.groups_json import list_head, root_head, turn_json
from paperwasp.search.grouping.cutting import most_groups
from paperwasp.search.grouping.facets import is_facet
from paperwasp.search.grouping.request import Layout, Level
from paperwasp.search.grouping.shown_groups import turn_of
from paperwasp.search.text_query import FacetList, FacetRoot

_ALL: Final = 2**32
"""More groups than there can be."""


def facets_of(layouts: Iterable[Layout]) -> tuple[FacetRoot, ...] | None:
    """The lists of all statements; None: they do more than count values, or show a later page."""
    roots = [_root_of(layout) for layout in layouts]
    return None if None in roots else tuple([root for root in roots if root is not None])


def _root_of(layout: Layout) -> FacetRoot | None:
    lists: dict[int, FacetList] = {}
    for step, request in enumerate(layout.requests):
        if layout.pages.by_path or not is_facet(request):
            return None
        (level,) = request.levels
        most = most_groups(level)
        if level.tag in lists or (most is not None and most < 1):
            return None
        lists[level.tag] = _list_of(layout, level, _ALL if most is None else most, step)
    return FacetRoot(root_head(layout.number, "").decode(), tuple([found for _, found in sorted(lists.items())]))


def _list_of(layout: Layout, level: Level, most: int, step: int) -> FacetList:
    shown = layout.maxes.get(level.tag, 0)
    tags = dict.fromkeys([each.tag for each in level.aggregations if each.tag in layout.labels])
    labels = [layout.labels[tag] for tag in tags]
    return FacetList(
        str(level.expression.arguments[0]),
        0 if not level.order else 1 if level.order[0].is_ascending else -1,
        most,
        shown or _ALL,
        list_head("grouplist", layout.labels.get(level.tag, "")).decode(),
        turn_json(turn_of(layout, level, step)).decode() if shown else "",
        tuple([orjson.dumps(label).decode() + ":" for label in labels if not label.startswith("$")]),
    )
