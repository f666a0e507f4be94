"""The results of the requests of one statement as one tree: where requests share levels, their groups are the same.

A tree has a node for each list that a group may have, known by its tag; the groups of all lists of a tag are rows of
its node. Requests that share a level have the same groups there, found over the same hits, and then nothing is copied.
Where one of them has ended early, at a soft timeout, their groups are joined by their ids.

Vespa: ResultBuilder.java in com.yahoo.search.grouping.vespa
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
from msgspec import Struct, field
from numpy.typing import NDArray

from paperwasp.document.numbers import double_text
from paperwasp.search.grouping.aggregator import State
from paperwasp.search.grouping.partial import Groups, PartialResult
from paperwasp.search.grouping.request import Aggregation, GroupingRequest, ResultLayout
from paperwasp.search.grouping.values import Kind, Values

# The ids of groups, as texts.
#
# Vespa: GroupId and its subclasses in com.yahoo.search.grouping.result; RawBase64.java


BUCKETS: Final = frozenset((Kind.LONG_BUCKET, Kind.DOUBLE_BUCKET, Kind.STRING_BUCKET, Kind.RAW_BUCKET))


class GroupIds(Struct, frozen=True, eq=False):
    """The ids of groups of one kind, one a group; those of no value are null."""

    kind: Kind
    texts: Sequence[str | None]
    """The texts of the values, or of the lower limits; None: null."""
    highs: Sequence[str | None] = ()
    """The upper limits, where these are buckets."""

    @property
    def has_nulls(self) -> bool:
        return self.kind is Kind.NULL or None in self.texts


def ids_of(values: Values) -> GroupIds:
    """The ids of groups that have these values, one each. A value in no bucket is null."""
    kind = values.kind
    if kind is Kind.NULL:
        return GroupIds(kind, [None] * len(values.data))
    if kind is Kind.LONG:
        return GroupIds(kind, list(map(str, values.data.tolist())))
    shown = values_of(values)
    if kind not in BUCKETS:
        return GroupIds(kind, _texts(shown))
    buckets = [(None, None) if bucket is None else bucket for bucket in shown]
    return GroupIds(kind, _texts([low for low, _ in buckets]), _texts([high for _, high in buckets]))


def values_of(values: Values) -> Sequence[Any]:
    """The value of each row: int, float, bool, str, bytes, (low, high) of a bucket; None for null."""
    if values.table is None:
        return values.data.tolist() if values.kind is not Kind.NULL else [None] * len(values.data)
    return values.table.values_of(values.data)


def same_ids(values: Values, others: Values) -> bool:
    """Whether the rows of both have the same values."""
    if values.kind is not others.kind or len(values.data) != len(others.data):
        return False
    if values.table is others.table:
        return bool(np.array_equal(_bits(values.data), _bits(others.data)))
    return keys_of(values) == keys_of(others)


def keys_of(values: Values) -> list[Any]:
    """Return keys that can be compared and hashed, equal for equal values: the bits of doubles."""
    found = _bits(values.data).tolist() if values.table is None else values_of(values)
    return [(values.kind, value) for value in found]


def _bits(data: NDArray[Any]) -> NDArray[Any]:
    return data.view(np.int64) if data.dtype == np.float64 else data


def _texts(values: Sequence[Any]) -> Sequence[str | None]:
    if set(map(type, values)) == {str}:
        return values
    return [text_of(value) for value in values]


def text_of(value: Any) -> str | None:
    """The text of a value, in Java's form; None for None."""
    match value:
        case None | str():
            return value
        case bool():
            return "true" if value else "false"
        case float():
            return double_text(value)
        case bytes():
            return raw_text(value)
    return str(value)


def raw_text(value: bytes) -> str:
    """A raw value in base64."""
    return b64encode(value).decode()


# The tree.


Rows = NDArray[np.int64]


class RequestPart(Struct, eq=False):
    """The groups of one level of one request."""

    groups: Groups
    aggregations: tuple[Aggregation, ...]
    below: Groups | None
    """The groups of the next level."""
    rows: Rows | None = None
    """Its row for each row of the node, -1 where it has none; None: they are the same rows."""

    def present(self, rows: Rows) -> tuple[Rows, Rows]:
        """Return the places of the rows of the node that this part has, and its own rows for them."""
        if self.rows is None:
            return np.arange(len(rows)), rows
        own = self.rows[rows]
        places = np.flatnonzero(own >= 0)
        return places, own[places]

    def column(self, rows: Rows, state: State) -> Sequence[Any]:
        """The values of a state for these rows of the node; None where it has none."""
        places, own = self.present(rows)
        found = state.selected(own).shown()
        if len(places) == len(rows):
            return found
        column: list[Any] = [None] * len(rows)
        for place, value in zip(places.tolist(), found, strict=True):
            column[place] = value
        return column


class ResultNode(Struct, eq=False):
    """The groups of all lists of one tag. Those of one parent stand together, in their order."""

    tag: int
    is_ranked: bool
    """Whether groups are in the order of their relevance."""
    parents: Rows
    """The row of each group's parent in the node above, rising."""
    parts: list[RequestPart]
    children: dict[int, ResultNode] = field(default_factory=dict)
    """By tag, in the order of the requests."""

    @property
    def count(self) -> int:
        return len(self.parents)

    @property
    def is_uneven(self) -> bool:
        """Whether there may be groups that some requests do not have."""
        return self.parts[0].rows is not None

    def ids_at(self, rows: Rows) -> GroupIds:
        """The ids of these groups."""
        if not self.is_uneven:
            return ids_of(_chosen(self.parts[0].groups.ids, rows))
        kind = self.parts[0].groups.ids.kind
        texts: list[str | None] = [None] * len(rows)
        highs: list[str | None] = [None] * len(rows)
        for part in reversed(self.parts):
            places, own = part.present(rows)
            ids = ids_of(_chosen(part.groups.ids, own))
            kind = ids.kind if len(own) else kind
            for place, text in zip(places.tolist(), ids.texts, strict=True):
                texts[place] = text
            for place, high in zip(places.tolist(), ids.highs, strict=False):
                highs[place] = high
        return GroupIds(kind, texts, highs)

    def relevances_at(self, rows: Rows) -> NDArray[np.float64]:
        """The relevances of these groups."""
        if not self.is_uneven:
            return self.parts[0].groups.relevances[rows]
        found = np.zeros(len(rows))
        for part in reversed(self.parts):
            places, own = part.present(rows)
            found[places] = part.groups.relevances[own]
        return found

    def child_counts(self, rows: Rows) -> NDArray[np.int64]:
        """Return the number of groups of the next level below these groups, in the first request that has the group."""
        found = np.zeros(len(rows), np.int64)
        for part in reversed(self.parts):
            places, own = part.present(rows)
            found[places] = 0 if part.below is None else np.bincount(part.below.parents, minlength=self.count)[own]
        return found


def joined(layout: ResultLayout, found: Mapping[int, PartialResult]) -> ResultNode | None:
    """The tree of a statement; `found` has the results by the numbers of requests. None: there are none."""
    roots: dict[int, ResultNode] = {}
    for request in layout.requests:
        result = found.get(request.number)
        if result is not None:
            _add(roots, request, result)
    return next(iter(roots.values()), None)


def _add(roots: dict[int, ResultNode], request: GroupingRequest, result: PartialResult) -> None:
    """Adds the levels of a request, the root first."""
    tags = (request.root_tag, *(level.tag for level in request.levels))
    aggregations = (request.aggregations, *(level.aggregations for level in request.levels))
    ranked = (True, *(not level.order for level in request.levels))
    siblings = roots
    above: Rows | None = None
    for number, groups in enumerate(result.levels):
        below = result.levels[number + 1] if number + 1 < len(result.levels) else None
        part = RequestPart(groups, aggregations[number], below)
        parents = groups.parents.astype(np.int64) if above is None else above[groups.parents]
        node = siblings.get(tags[number])
        if node is None:
            node = siblings[tags[number]] = ResultNode(tags[number], ranked[number], parents, [])
            above = _begin(node, part)
        else:
            above = _join(node, part, parents)
        siblings = node.children


def _begin(node: ResultNode, part: RequestPart) -> Rows | None:
    """Makes a part the first of a node. The result: the row of the node for each of its own; None: the same."""
    node.parts.append(part)
    if not node.parents.any() or (node.parents[1:] >= node.parents[:-1]).all():
        return None
    part.rows = np.argsort(node.parents, kind="stable")
    node.parents = node.parents[part.rows]
    return _inverse(part.rows)


def _join(node: ResultNode, part: RequestPart, parents: Rows) -> Rows | None:
    """Adds a part to a node. The result: the row of the node for each of its own; None: the same."""
    first = node.parts[0]
    node.parts.append(part)
    if first.rows is None and np.array_equal(node.parents, parents) and same_ids(first.groups.ids, part.groups.ids):
        return None
    known = {key: row for row, key in enumerate(_keys(node))}
    keys = zip(parents.tolist(), keys_of(part.groups.ids), strict=True)
    places = np.array([known.setdefault(key, len(known)) for key in keys], np.int64)
    added = [parent for parent, _ in list(known)[node.count :]]
    order = np.argsort(np.concatenate([node.parents, np.array(added, np.int64)]), kind="stable")
    part.rows = np.full(len(known), -1)
    part.rows[places] = np.arange(len(places))
    part.rows = part.rows[order]
    for each in node.parts[:-1]:
        rows = np.arange(node.count) if each.rows is None else each.rows
        each.rows = np.concatenate([rows, np.full(len(added), -1)])[order]
    node.parents = np.concatenate([node.parents, np.array(added, np.int64)])[order]
    rank = _inverse(order)
    for child in node.children.values():
        child.parents = rank[child.parents]
    return rank[places]


def _keys(node: ResultNode) -> list[tuple[int, Any]]:
    """(parent, id) of each row of a node."""
    keys: list[Any] = [None] * node.count
    for part in reversed(node.parts[:-1]):
        places, own = part.present(np.arange(node.count))
        found = keys_of(_chosen(part.groups.ids, own))
        for place, key in zip(places.tolist(), found, strict=True):
            keys[place] = key
    return list(zip(node.parents.tolist(), keys, strict=True))


def _chosen(values: Values, rows: Rows) -> Values:
    return Values(values.kind, values.data[rows], values.table)


def _inverse(order: Rows) -> Rows:
    found = np.empty_like(order)
    found[order] = np.arange(len(order))
    return found
