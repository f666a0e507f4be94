"""The page of a tree of groups that is shown, in columns, level by level.

The groups or hits of one page are chosen from each list, by the continuations of the request; only their values are
made. A list has a path (`continuation.Path`), which only turned pages need: it is not made of groups that have no other
page. The first page of facets takes fewer steps, at the end of this file.

Vespa: ResultBuilder.java in com.yahoo.search.grouping.vespa
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import inf
from typing import Any, Final, NamedTuple

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from paperwasp.search.grouping.continuation import UNSTABLE, PagePosition, Path, encode
from paperwasp.search.grouping.facets import is_facet
from paperwasp.search.grouping.partial import Groups, PartialResult
from paperwasp.search.grouping.request import Aggregation, Level, ResultLayout
from paperwasp.search.grouping.result_tree import GroupIds, ResultNode, Rows, ids_of, joined
from paperwasp.search.grouping.values import Kind, Values

HITS = "summary"
"""The aggregate whose values are lists of hits."""
GROUPS = "count_groups"
"""The aggregate that counts the groups of the next level, about."""


class Turn(NamedTuple):
    """The continuations of a list; None: it has no such page."""

    next: str | None
    prev: str | None


class HitLists(Struct, frozen=True, eq=False):
    """The lists of hits of one aggregation, one for each group. None: the group has no such list."""

    label: str
    hits: Sequence[Sequence[Any] | None]
    turns: Mapping[int, Turn]
    """The turns of lists with several pages, by their places."""


class GroupLists(Struct, frozen=True, eq=False):
    """The lists of groups of one tag, one for each group above."""

    label: str
    bounds: Sequence[int]
    """List i shows the groups bounds[i]:bounds[i + 1]."""
    is_there: Sequence[bool]
    """Whether the group above has such a list: with no groups it has none, with another page it has an empty one."""
    turns: Mapping[int, Turn]
    groups: ShownGroups


class ShownGroups(Struct, frozen=True, eq=False):
    """Groups of one tag that are shown, in columns."""

    ids: GroupIds
    relevances: NDArray[np.float64]
    outputs: Sequence[tuple[str, Sequence[Any]]]
    """(label, value of each group); None: the group has no such value."""
    hit_lists: Sequence[HitLists]
    group_lists: Sequence[GroupLists]


class ShownRoot(Struct, frozen=True, eq=False):
    """The answer to one statement."""

    number: int
    this: str
    """The continuation of this very page."""
    groups: ShownGroups
    """One group. Its id is not shown."""


def shown(layout: ResultLayout, found: Mapping[int, PartialResult]) -> ShownRoot | None:
    """The page that a statement shows of results, which are given by the numbers of their requests; None: there are
    none."""
    root = joined(layout, found)
    if root is None:
        return None
    pager = _Pager(layout)
    groups = pager.groups(root, np.zeros(1, np.int64), np.ones(1), _Places(layout.number))
    return ShownRoot(layout.number, pager.this(), groups)


class _Places:
    """Where shown groups are. Their paths are made when they are asked for."""

    def __init__(
        self,
        root: int,
        above: _Places | None = None,
        owners: Rows | None = None,
        steps: Rows | None = None,
        entries: Rows | None = None,
    ):
        """owners[i]: the place in `above` of the group that has the list of group i. steps[j]: the place of the list of
        group j of `above` among those of this group. entries[i]: the place of group i in its list. Without these: the
        root group."""
        self._root = root
        self._above = above
        self._owners = owners
        self._steps = steps
        self._entries = entries
        self._unstable: frozenset[int] = frozenset()

    def path(self, place: int) -> Path:
        """The path of a group."""
        if self._above is None or self._owners is None or self._steps is None or self._entries is None:
            return self._root, 0
        owner = int(self._owners[place])
        return (*self._above.path(owner), int(self._steps[owner]), int(self._entries[place]))

    def is_stable(self, place: int) -> bool:
        """Whether the lists of a group keep to the pages of continuations: whether none above begins again."""
        if self._above is None or self._owners is None:
            return True
        return place not in self._unstable and self._above.is_stable(int(self._owners[place]))

    def below(self, owners: Rows, steps: Rows, entries: Rows, unstable: frozenset[Path]) -> _Places:
        """The places of groups of lists that these groups have."""
        found = _Places(self._root, self, owners, steps, entries)
        if unstable:
            found._unstable = frozenset(place for place in range(len(owners)) if found.path(place)[:-1] in unstable)
        return found


class _Window(NamedTuple):
    """The entries of lists that are on their pages: first:last of each."""

    first: Rows
    last: Rows


class _Pager:
    """Chooses pages, and notes where they are."""

    def __init__(self, layout: ResultLayout) -> None:
        self._layout = layout
        self._is_uneven = len({request.top_n for request in layout.requests}) > 1
        self._turned: list[tuple[tuple[float, ...], PagePosition]] = []
        """Lists that do not show their first page, with their order in a continuation: what is below a list comes
        before it, and of one group the lists of hits before those of groups."""

    def this(self) -> str:
        return encode([position for _, position in sorted(self._turned, key=lambda turned: turned[0])])

    def groups(self, node: ResultNode, rows: Rows, relevances: NDArray[np.float64], places: _Places) -> ShownGroups:
        """The groups in these rows."""
        outputs: list[tuple[str, Sequence[Any]]] = []
        hit_lists: list[HitLists] = []
        for aggregation, values in self._columns(node, rows):
            label = self._layout.labels[aggregation.tag]
            if aggregation.expression.function == HITS:
                hit_lists.append(self._hit_lists(aggregation.tag, label, len(hit_lists), values, places))
            else:
                outputs.append((label, self._corrected(node, aggregation, rows, values)))
        return ShownGroups(node.ids_at(rows), relevances, outputs, hit_lists, self._group_lists(node, rows, places))

    def _columns(self, node: ResultNode, rows: Rows) -> Iterable[tuple[Aggregation, Sequence[Any]]]:
        """Each aggregation that is shown with its values: of each group that of the second request which has the
        group, if there are two. They only differ where requests group different hits."""
        found: dict[int, tuple[Aggregation, Sequence[Any]]] = {}
        columns: dict[int, list[Sequence[Any]]] = {}
        for part in node.parts:
            for aggregation, state in zip(part.aggregations, part.groups.states, strict=False):
                tag = aggregation.tag
                if tag not in self._layout.labels:
                    continue
                if tag not in found:
                    found[tag] = aggregation, part.column(rows, state)
                elif self._is_uneven or node.is_uneven:
                    columns.setdefault(tag, [found[tag][1]]).append(part.column(rows, state))
        for tag, several in columns.items():
            found[tag] = found[tag][0], [_second(values) for values in zip(*several, strict=True)]
        return found.values()

    def _corrected(
        self, node: ResultNode, aggregation: Aggregation, rows: Rows, values: Sequence[Any]
    ) -> Sequence[Any]:
        """Outputs; instead of an estimate of how many groups there are, their number where all are there."""
        if aggregation.expression.function != GROUPS:
            return values
        most = self._layout.maxes.get(aggregation.tag + 1, 0)
        counts = node.child_counts(rows).tolist()
        return [
            count if value is not None and count > 0 and (not most or count < most) else value
            for value, count in zip(values, counts, strict=True)
        ]

    def _hit_lists(
        self, tag: int, label: str, step: int, lists: Sequence[Sequence[Any] | None], places: _Places
    ) -> HitLists:
        counts = np.array([0 if hits is None else len(hits) for hits in lists], np.int64)
        window = self._window(tag, counts, step, places)
        turns = self._turns(tag, counts, window, step, places, is_hits=True)
        if not self._layout.maxes.get(tag):
            return HitLists(label, lists, turns)
        bounds = zip(lists, window.first.tolist(), window.last.tolist(), strict=True)
        return HitLists(label, [None if hits is None else hits[first:last] for hits, first, last in bounds], turns)

    def _group_lists(self, node: ResultNode, rows: Rows, places: _Places) -> list[GroupLists]:
        """The lists of groups of these rows, in the order of their tags."""
        steps = np.zeros(len(rows), np.int64)
        found: list[tuple[int, GroupLists]] = []
        for child in node.children.values():
            starts = np.searchsorted(child.parents, rows, "left")
            counts = np.searchsorted(child.parents, rows, "right") - starts
            found.append((child.tag, self._lists_of(child, starts, counts, steps, places)))
            steps = steps + (counts > 0)
        return [lists for _, lists in sorted(found, key=lambda pair: pair[0])]

    def _lists_of(self, node: ResultNode, starts: Rows, counts: Rows, steps: Rows, places: _Places) -> GroupLists:
        """The lists of one tag. `starts`, `counts`: the rows of each list; `steps`: its place in the group above."""
        window = self._window(node.tag, counts, steps, places)
        sizes = np.maximum(window.last - window.first, 0)
        if len(sizes) == 1:  # there is one group above
            size = int(sizes[0])
            bounds, within = [0, size], np.arange(size)
            owners = np.zeros(size, np.int64)
            entries = within + window.first[0]
            rows, in_list = entries + starts[0], sizes[0]
        else:
            ends = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
            owners = np.repeat(np.arange(len(starts)), sizes)
            bounds, within = ends.tolist(), np.arange(ends[-1]) - ends[owners]
            entries = window.first[owners] + within
            rows, in_list = starts[owners] + entries, sizes[owners]
        relevances = node.relevances_at(rows) if node.is_ranked else (in_list - within) / in_list
        below = places.below(owners, steps, entries, self._layout.pages.unstable)
        groups = self.groups(node, rows, relevances, below)
        turns = self._turns(node.tag, counts, window, steps, places)
        label = self._layout.labels.get(node.tag, "")
        return GroupLists(label, bounds, (counts > 0).tolist(), turns, groups)

    def _window(self, tag: int, counts: Rows, steps: Rows | int, places: _Places) -> _Window:
        """The pages of lists with these numbers of entries."""
        most = self._layout.maxes.get(tag, 0)
        first = np.zeros_like(counts)
        if not most:
            return _Window(first, counts)
        offsets = self._layout.pages.by_path
        if offsets:
            for place in np.flatnonzero(counts).tolist():
                if places.is_stable(place):
                    first[place] = offsets.get((*places.path(place), _step(steps, place)), 0)
        return _Window(first, np.minimum(counts, first + most))

    def _turns(
        self, tag: int, counts: Rows, window: _Window, steps: Rows | int, places: _Places, *, is_hits: bool = False
    ) -> Mapping[int, Turn]:
        """The continuations of lists that have other pages."""
        most = self._layout.maxes.get(tag, 0)
        turns: dict[int, Turn] = {}
        if not most:
            return turns
        for place in np.flatnonzero((window.first > 0) | (window.last < counts)).tolist():
            path = (*places.path(place), _step(steps, place))
            first, last = int(window.first[place]), int(window.last[place])
            prev = None
            if first > 0:
                self._turned.append(((*path, -1 if is_hits else inf), PagePosition(path, tag, first)))
                prev = encode([PagePosition(path, tag, max(0, min(first, last) - most), UNSTABLE)])
            following = encode([PagePosition(path, tag, last, UNSTABLE)]) if last < counts[place] else None
            turns[place] = Turn(following, prev)
        return turns


def _step(steps: Rows | int, place: int) -> int:
    """The place of a list among those of a group: that of all groups, or of this one."""
    return steps if isinstance(steps, int) else int(steps[place])


def _second(values: Sequence[Any]) -> Any:
    """The second value that is there, or else the only one."""
    there = [value for value in values if value is not None]
    return there[min(1, len(there) - 1)] if there else None


# The first page of facets, in fewer steps than pages of any tree take: their lists stand below the root, and no list
# stands below another. The result is that of `shown`.


_ROOT_IDS: Final = GroupIds(Kind.NULL, (None,))


def shown_facets(layout: ResultLayout, found: Mapping[int, PartialResult]) -> ShownRoot | None:
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


def _list(layout: ResultLayout, level: Level, groups: Groups, step: int) -> GroupLists:
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


def turn_of(layout: ResultLayout, level: Level, step: int) -> Turn:
    """The continuation of a list of which the first page is shown."""
    position = PagePosition((layout.number, 0, step), level.tag, layout.maxes[level.tag], UNSTABLE)
    return Turn(encode((position,)), None)


def _outputs(layout: ResultLayout, level: Level, groups: Groups, size: int) -> list[tuple[str, Sequence[Any]]]:
    """(label, value of each group) of the aggregations that are shown, each once."""
    columns: dict[int, Sequence[Any]] = {}
    for aggregation, state in zip(level.aggregations, groups.states, strict=False):
        if aggregation.tag in layout.labels and aggregation.tag not in columns:
            columns[aggregation.tag] = state.shown()[:size]
    return [(layout.labels[tag], column) for tag, column in columns.items()]
