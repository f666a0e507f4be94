"""`count()` of a list of groups: how many distinct values its hits are grouped by, by a sketch (hyperloglog.py).

A hit with several values counts as one value, the exclusive or of theirs, as in Vespa; where all groups are shown, the
answer has their number instead. Vespa: expressioncountaggregationresult.cpp, ExpressionCountAggregationResult.java
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from paperwasp.base.records import dataclass
from paperwasp.search.grouping.aggregator import (
    Aggregator,
    Binder,
    Groups,
    Numbers,
    State,
    aggregates,
    argument,
    written_as,
)
from paperwasp.search.grouping.column_state import number_values
from paperwasp.search.grouping.hyperloglog import (
    BUCKET_BITS,
    BUCKETS,
    MOST_HASHES,
    MOST_ZEROS,
    Buckets,
    Hashes,
    estimates,
    hashes_of,
    places_of,
)
from paperwasp.search.grouping.memory import check_memory
from paperwasp.search.grouping.node import Node, Rows
from paperwasp.search.grouping.ragged import check_arrays, check_offsets, lengths_of, offsets_of, parts_at
from paperwasp.search.grouping.request import Aggregation
from paperwasp.search.grouping.values import Values

_FEW: Final = -1
"""Instead of the number of a row of buckets: the group keeps hashes."""
_NONE: Final = np.uint32(0xFFFFFFFF)
"""No 22 bits of a hash."""
_MOST_LEAST: Final = 1 << 24
"""Of how many buckets the least hashes are found beside each other: 64 MB."""


@written_as("count_groups")
@dataclass(frozen=True, slots=True, eq=False)
class CountGroupsState(State):
    """The sketch of each group."""

    offsets: Numbers
    hashes: Hashes
    """Distinct ones, rising: of group i those numbered offsets[i]:offsets[i + 1]; none where it has buckets."""
    rows: Numbers
    """Which row of `buckets` each group has, or -1."""
    buckets: Buckets

    @property
    def group_count(self) -> int:
        return len(self.rows)

    def selected(self, rows: Numbers) -> Self:
        offsets, places = parts_at(self.offsets, rows)
        chosen = self.rows[rows]
        has = chosen != _FEW
        renumbered = np.full(len(rows), _FEW)
        renumbered[has] = np.arange(np.count_nonzero(has))
        return type(self)(offsets, self.hashes[places], renumbered, self.buckets[chosen[has]])

    @classmethod
    def merged(cls, parts: Sequence[Self], places: Sequence[Numbers], count: int) -> Self:
        pairs = list(zip(parts, places, strict=True))
        groups = np.concatenate([np.repeat(place, lengths_of(part.offsets)) for part, place in pairs])
        has_buckets = np.zeros(count, np.bool_)
        for part, place in pairs:
            has_buckets[place[part.rows != _FEW]] = True
        hashes = np.concatenate([part.hashes for part in parts])
        state = cls(*_sketched(hashes, groups, has_buckets))
        for part, place in pairs:
            has = part.rows != _FEW
            rows = state.rows[place[has]]
            state.buckets[rows] = np.maximum(state.buckets[rows], part.buckets[part.rows[has]])
        return state

    def shown(self) -> Sequence[Any]:
        shown: list[Any] = self._counts().tolist()
        return shown

    def order_values(self) -> Values:
        return number_values(self._counts())

    def _counts(self) -> NDArray[np.int64]:
        counts = lengths_of(self.offsets)
        has = self.rows != _FEW
        counts[has] = estimates(self.buckets)[self.rows[has]]
        return counts

    def arrays(self) -> Mapping[str, NDArray[Any]]:
        members = {"offsets": self.offsets, "hashes": self.hashes}
        return {**members, "has_buckets": (self.rows != _FEW).astype(np.uint8), "buckets": self._rows_of_buckets()}

    def _rows_of_buckets(self) -> NDArray[np.uint8]:
        """The buckets behind each other, in the order of the groups."""
        found: Buckets = self.buckets[self.rows[self.rows != _FEW]]
        return found.reshape(-1)

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> Self:
        types: dict[str, type[np.generic]] = {
            "offsets": np.int64,
            "hashes": np.uint32,
            "has_buckets": np.uint8,
            "buckets": np.uint8,
        }
        check_arrays(arrays, types, "a state of counts of groups")
        offsets, hashes, has, buckets = (arrays[name] for name in types)
        has = has != 0
        check_offsets(offsets, len(has), len(hashes))
        lengths = lengths_of(offsets)
        if (lengths > MOST_HASHES).any() or lengths[has].any():
            raise ValueError("a state of counts of groups has groups of a wrong number of hashes")
        falls = np.flatnonzero(hashes[1:] <= hashes[:-1]) + 1
        if not np.isin(falls, offsets).all():
            raise ValueError("the hashes of a state of counts of groups do not rise")
        if len(buckets) != BUCKETS * np.count_nonzero(has) or (buckets > MOST_ZEROS).any():
            raise ValueError("a state of counts of groups has other buckets")
        rows = np.full(len(has), _FEW)
        rows[has] = np.arange(np.count_nonzero(has))
        return cls(offsets, hashes, rows, buckets.reshape(-1, BUCKETS).copy())


def _sketched(
    hashes: Hashes, groups: NDArray[Any], has_buckets: NDArray[np.bool_]
) -> tuple[Numbers, Hashes, Numbers, Buckets]:
    """The members of the state of hashes, each of a group. has_buckets: which groups have buckets in any case."""
    count = len(has_buckets)
    is_many, of_many = _clearly_many(hashes, groups, has_buckets)
    if is_many.any():
        is_left = ~is_many[groups]
        hashes, groups = hashes[is_left], groups[is_left]
    hashes, groups = _distinct(hashes, groups, count)
    lengths = np.bincount(groups, minlength=count)
    has_more = lengths > MOST_HASHES
    is_many |= has_buckets | has_more
    many = int(np.count_nonzero(is_many))
    check_memory(many * BUCKETS)
    rows = np.full(count, _FEW)
    rows[is_many] = np.arange(many)
    buckets = np.zeros((many, BUCKETS), np.uint8)
    buckets[rows[of_many.groups]] = of_many.buckets
    put = is_many[groups]
    places = rows[groups[put]] * BUCKETS + (hashes[put] & np.uint32(BUCKETS - 1))
    np.maximum.at(buckets.reshape(-1), places, places_of(hashes[put]))
    return offsets_of(np.where(is_many, 0, lengths)), hashes[~put], rows, buckets


class _Filled(NamedTuple):
    """Buckets of some groups."""

    groups: Numbers
    buckets: Buckets


def _clearly_many(
    hashes: Hashes, groups: NDArray[Any], has_buckets: NDArray[np.bool_]
) -> tuple[NDArray[np.bool_], _Filled]:
    """Which groups have more hashes than are kept, as far as the number of their buckets that are not empty says it,
    and their buckets. The least of the hashes in a bucket has the highest place; so nothing need be sorted."""
    is_large = has_buckets | (np.bincount(groups, minlength=len(has_buckets)) > MOST_HASHES)
    large = np.flatnonzero(is_large)
    is_many = np.zeros(len(has_buckets), np.bool_)
    if not len(large) or len(large) * BUCKETS > _MOST_LEAST:
        return is_many, _Filled(large[:0], np.zeros((0, BUCKETS), np.uint8))
    numbers = np.zeros(len(has_buckets), np.uint32)
    numbers[large] = np.arange(len(large)) * BUCKETS
    if not is_large.all():
        is_put = is_large[groups]
        hashes, groups = hashes[is_put], groups[is_put]
    flat = np.full(len(large) * BUCKETS, _NONE, np.uint32)
    np.minimum.at(flat, numbers[groups] + (hashes & np.uint32(BUCKETS - 1)), hashes >> np.uint32(BUCKET_BITS))
    least = flat.reshape(-1, BUCKETS)
    has_more = (least != _NONE).sum(axis=1) > MOST_HASHES
    is_many[large[has_more]] = True
    least = least[has_more]
    buckets = np.where(least == _NONE, 0, places_of(least << np.uint32(BUCKET_BITS))).astype(np.uint8)
    return is_many, _Filled(large[has_more], buckets)


def _distinct(hashes: Hashes, groups: NDArray[Any], count: int) -> tuple[Hashes, Numbers]:
    """The distinct hashes of each group, rising, and the group of each."""
    pairs = np.sort(groups.astype(np.uint64) << np.uint64(32) | hashes) if count > 1 else np.sort(hashes)
    is_first = np.ones(len(pairs), np.bool_)
    is_first[1:] = pairs[1:] != pairs[:-1]
    pairs = pairs[is_first]
    owners = (pairs >> np.uint64(32)).astype(np.int64) if count > 1 else np.zeros(len(pairs), np.int64)
    return pairs.astype(np.uint32), owners


class CountGroups(Aggregator):
    """Sketches the values of a node."""

    def __init__(self, node: Node) -> None:
        self._node = node

    def collect(self, rows: Rows, groups: Groups, count: int) -> CountGroupsState:
        hashes = hashes_of(self._node.values(rows))
        return CountGroupsState(*_sketched(hashes, groups, np.zeros(count, np.bool_)))


@aggregates("count_groups")
def _count_groups(aggregation: Aggregation, bind: Binder) -> CountGroups:
    return CountGroups(bind(argument(aggregation)))
