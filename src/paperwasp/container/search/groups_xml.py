"""The groups of an answer as XML.

Vespa: HitRenderer.java in com.yahoo.search.grouping.result
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from paperwasp.container.search.groups_json import turns_of, values_json
from paperwasp.container.search.xml_elements import attributes_of, element, empty, escaped, leaf
from paperwasp.search.grouping.result_tree import BUCKETS, GroupIds, text_of
from paperwasp.search.grouping.shown_groups import GroupLists, HitLists, ShownGroups, ShownRoot, Turn
from paperwasp.search.grouping.values import Null

RenderHit = Callable[[Any, int], str]
"""A hit as XML, on this level."""


def root_xml(root: ShownRoot, level: int, render: RenderHit) -> str:
    """The root group as an element on this level."""
    head = [empty("id", attributes_of({"type": "root"}), level + 1), _continuation("this", root.this, level + 1)]
    return _group(root.groups, 0, head, 1.0, level, render)


def _group(
    groups: ShownGroups, place: int, head: Sequence[str], relevance: float, level: int, render: RenderHit
) -> str:
    """One group with all that it has."""
    outputs = [
        leaf("output", attributes_of({"label": label}), escaped(_output(values[place])), level + 1)
        for label, values in groups.outputs
        if values[place] is not None
    ]
    hits = (_hit_list(lists, place, level + 1, render) for lists in groups.hit_lists)
    below = (_group_list(lists, place, level + 1, render) for lists in groups.group_lists)
    children = [*head, *outputs, *filter(None, hits), *filter(None, below)]
    return element("group", attributes_of({"relevance": relevance}), children, level)


def _output(value: Any) -> str:
    """The text of an output; of several values, their JSON."""
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        (written,) = values_json([value])
        return (written or b"").decode()
    return "" if value is Null.NULL else text_of(value) or ""


def _group_list(lists: GroupLists, place: int, level: int, render: RenderHit) -> str:
    if not lists.is_there[place]:
        return ""
    groups = lists.groups
    rows = range(lists.bounds[place], lists.bounds[place + 1])
    shown = [
        _group(groups, row, [_id(groups.ids, row, level + 2)], float(groups.relevances[row]), level + 1, render)
        for row in rows
    ]
    turns = _turns(lists.turns.get(place), level + 1)
    return _list("grouplist", lists.label, [*turns, *shown], level)


def _hit_list(lists: HitLists, place: int, level: int, render: RenderHit) -> str:
    hits = lists.hits[place]
    if hits is None:
        return ""
    turns = _turns(lists.turns.get(place), level + 1)
    shown = [render(hit, level + 1) for hit in hits]
    return _list("hitlist", lists.label, [*turns, *shown], level)


def _list(tag: str, label: str, children: Sequence[str], level: int) -> str:
    attributes = attributes_of({"label": label})
    return element(tag, attributes, children, level) if children else empty(tag, attributes, level)


def _id(ids: GroupIds, row: int, level: int) -> str:
    low = ids.texts[row]
    if low is None:
        return empty("id", attributes_of({"type": "null"}), level)
    kind: Mapping[str, object] = {"type": ids.kind.value}
    if ids.kind not in BUCKETS:
        return leaf("id", attributes_of(kind), escaped(low), level)
    limits = [leaf("from", "", escaped(low), level + 1), leaf("to", "", escaped(ids.highs[row] or ""), level + 1)]
    return element("id", attributes_of(kind), limits, level)


def _turns(turn: Turn | None, level: int) -> list[str]:
    return [] if turn is None else [_continuation(name, text, level) for name, text in turns_of(turn).items()]


def _continuation(name: str, text: str, level: int) -> str:
    return leaf("continuation", attributes_of({"id": name}), escaped(text), level)
