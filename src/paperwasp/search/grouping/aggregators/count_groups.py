"""`count()` of a list of groups: how many distinct values its hits are grouped by, by a sketch.

A hit with several values counts as one value, the exclusive or of theirs, as in Vespa; where all groups are shown, the
answer has their number instead.

A sketch is made of 32-bit hashes of values. Up to 256 distinct hashes of a group are kept as they are, and counted.
More are put into 1,024 buckets by their lowest 10 bits, and a bucket keeps the greatest place of the highest bit that
is set among the other 22. Estimates are off by 1.04 / sqrt(1024) = 3.25 % (standard error).

The method: Heule, Nunkesser, Hall: HyperLogLog in Practice (2013), with the tables of its appendix. Vespa has the same
hashes, buckets and estimates: expressioncountaggregationresult.cpp, sketch.h, HyperLogLogEstimator.java,
ExpressionCountAggregationResult.java
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple, Self

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from paperwasp.search.grouping.aggregator import (
    Aggregator,
    Binder,
    Groups,
    Numbers,
    State,
    aggregates,
    argument,
    number_values,
    written_as,
)
from paperwasp.search.grouping.expression_node import ExpressionNode, Rows
from paperwasp.search.grouping.memory import check_memory
from paperwasp.search.grouping.request import Aggregation
from paperwasp.search.grouping.tables import StringTable, bytes_of, distinct, encoded, values_of
from paperwasp.search.grouping.values import Kind, Values, check_arrays, check_offsets, lengths_of, offsets_of, parts_at
from paperwasp.storage.attributes.dictionary import folded_words

# The bias of HyperLogLog with 1,024 buckets: mean raw estimates of sets of known sizes.
#
# From the appendix of "HyperLogLog in Practice": https://goo.gl/iU8Ig (precision 10).


_RAW: Final = """
738.1256 750.4234 763.1064 775.4732 788.4636 801.0644 814.488 827.9654 841.0832 854.7864 868.1992 882.2176 896.5228
910.1716 924.7752 938.899 953.6126 968.6492 982.9474 998.5214 1013.1064 1028.6364 1044.2468 1059.4588 1075.3832
1091.0584 1106.8606 1123.3868 1139.5062 1156.1862 1172.463 1189.339 1206.1936 1223.1292 1240.1854 1257.2908 1275.3324
1292.8518 1310.5204 1328.4854 1345.9318 1364.552 1381.4658 1400.4256 1419.849 1438.152 1456.8956 1474.8792 1494.118
1513.62 1532.5132 1551.9322 1570.7726 1590.6086 1610.5332 1630.5918 1650.4294 1669.7662 1690.4106 1710.7338 1730.9012
1750.4486 1770.1556 1791.6338 1812.7312 1833.6264 1853.9526 1874.8742 1896.8326 1918.1966 1939.5594 1961.07 1983.037
2003.1804 2026.071 2047.4884 2070.0848 2091.2944 2114.333 2135.9626 2158.2902 2181.0814 2202.0334 2224.4832 2246.39
2269.7202 2292.1714 2314.2358 2338.9346 2360.891 2384.0264 2408.3834 2430.1544 2454.8684 2476.9896 2501.4368 2522.8702
2548.0408 2570.6738 2593.5208 2617.0158 2640.2302 2664.0962 2687.4986 2714.2588 2735.3914 2759.6244 2781.8378 2808.0072
2830.6516 2856.2454 2877.2136 2903.4546 2926.785 2951.2294 2976.468 3000.867 3023.6508 3049.91 3073.5984 3098.162
3121.5564 3146.2328 3170.9484 3195.5902 3221.3346 3242.7032 3271.6112 3296.5546 3317.7376 3345.072 3369.9518 3394.326
3418.1818 3444.6926 3469.086 3494.2754 3517.8698 3544.248 3565.3768 3588.7234 3616.979 3643.7504 3668.6812 3695.72
3719.7392 3742.6224 3770.4456 3795.6602 3819.9058 3844.002 3869.517 3895.6824 3920.8622 3947.1364 3973.985 3995.4772
4021.62 4046.628 4074.65 4096.2256 4121.831 4146.6406 4173.276 4195.0744 4223.9696 4251.3708 4272.9966 4300.8046
4326.302 4353.1248 4374.312 4403.0322 4426.819 4450.0598 4478.5206 4504.8116 4528.8928 4553.9584 4578.8712 4603.8384
4632.3872 4655.5128 4675.821 4704.6222 4731.9862 4755.4174 4781.2628 4804.332 4832.3048 4862.8752 4883.4148 4906.9544
4935.3516 4954.3532 4984.0248 5011.217 5035.3258 5057.3672 5084.1828
"""
RAW_ESTIMATES: Final[NDArray[np.float64]] = np.array(_RAW.split(), np.float64)
"""Rising."""
TRUE_COUNTS: Final[NDArray[np.float64]] = (1 + np.arange(200) * 50934 // 1990).astype(np.float64)
"""The size of the sets of each: 1, 26, 52, …, 5094."""


# The sketches of the groups of a level.


BUCKET_BITS: Final = 10
BUCKETS: Final = 1 << BUCKET_BITS
MOST_HASHES: Final = 256
"""The hashes that a group keeps before they are put into buckets."""
MOST_ZEROS: Final = 33 - BUCKET_BITS
"""The greatest number that a bucket holds."""
_SEED: Final = 42
_PRIMES: Final = (2654435761, 2246822519, 3266489917, 668265263, 374761393)
_LINEAR_MOST: Final = 900
"""Where the estimate is at most this, the number of empty buckets gives a better one."""
_CORRECTED_MOST: Final = 5 * BUCKETS
_ALPHA: Final = 0.7213 / (1 + 1.079 / BUCKETS)

Words = NDArray[np.uint64]
Hashes = NDArray[np.uint32]
Buckets = NDArray[np.uint8]
"""A row of BUCKETS for each group."""


def hashes_of(values: Values) -> Hashes:
    """The hash of each row: that of its value, or of the exclusive or of its values."""
    words = _words_of(values)
    if values.offsets is not None:
        ends = np.concatenate([np.zeros(1, np.uint64), np.bitwise_xor.accumulate(words)])
        words = ends[values.offsets[1:]] ^ ends[values.offsets[:-1]]
    return xxh32(words)


def xxh32(words: Words) -> Hashes:
    """XXH32 with the seed 42 of the 8 bytes of each word, the lowest first.

    The algorithm: https://github.com/Cyan4973/xxHash/blob/dev/doc/xxhash_spec.md
    """
    _, second, third, fourth, _ = (np.uint32(prime) for prime in _PRIMES)
    halves = words.astype("<u8", copy=False).view("<u4").reshape(-1, 2)
    found = np.full(len(words), (_SEED + _PRIMES[4] + 8) & 0xFFFFFFFF, np.uint32)
    for half in (halves[:, 0], halves[:, 1]):
        found += half * third
        found = (found << np.uint32(17) | found >> np.uint32(15)) * fourth
    found ^= found >> np.uint32(15)
    found *= second
    found ^= found >> np.uint32(13)
    found *= third
    found ^= found >> np.uint32(16)
    return found


def places_of(hashes: Hashes) -> Buckets:
    """The value of each hash for its bucket: the place of its highest set bit, of the 22 above the number of the
    bucket, from 1; 23 where none is."""
    _, exponents = np.frexp((hashes | np.uint32(BUCKETS - 1)).astype(np.float64))
    return (33 - exponents).astype(np.uint8)


def estimates(buckets: Buckets) -> NDArray[np.int64]:
    """Estimate how many distinct values the buckets of each group have seen."""
    raw = _ALPHA * BUCKETS * BUCKETS / np.exp2(-buckets.astype(np.float64)).sum(axis=1)
    bias = np.interp(raw, RAW_ESTIMATES, RAW_ESTIMATES - TRUE_COUNTS)
    found = np.where(raw <= _CORRECTED_MOST, raw - bias, raw)
    empty = (buckets == 0).sum(axis=1)
    linear = BUCKETS * np.log(BUCKETS / np.maximum(empty, 1))
    found = np.where((empty > 0) & (linear <= _LINEAR_MOST), linear, found)
    counts: NDArray[np.int64] = np.floor(found + 0.5).astype(np.int64)
    return counts


def _words_of(values: Values) -> Words:
    """64 bits of each value, as the `hash` of Vespa's result nodes: numbers as they are, text folded by exclusive or, a
    bucket's low limit."""
    data = values.data
    match values.kind:
        case Kind.LONG | Kind.BOOL:
            return data.astype(np.int64, copy=False).view(np.uint64)
        case Kind.DOUBLE:
            return data.view(np.uint64)
        case Kind.NULL:
            return np.zeros(len(data), np.uint64)
        case Kind.STRING | Kind.RAW:
            if isinstance(values.table, StringTable):
                return values.table.words_of(data)
            codes, places = distinct(data)
            return folded_words(bytes_of(values.table, codes))[places]
    codes, places = distinct(data)
    lows = [None if bucket is None else bucket[0] for bucket in values_of(values.table, codes)]
    return _limit_words(values.kind, lows)[places]


def _limit_words(kind: Kind, lows: list[Any]) -> Words:
    if kind is Kind.LONG_BUCKET:
        return np.array([0 if low is None else low for low in lows], np.int64).view(np.uint64)
    if kind is Kind.DOUBLE_BUCKET:
        return np.array([0.0 if low is None else low for low in lows], np.float64).view(np.uint64)
    return folded_words([low if isinstance(low, bytes) else encoded(low or "") for low in lows])


_FEW: Final = -1
"""Instead of the number of a row of buckets: the group keeps hashes."""
_NONE: Final = np.uint32(0xFFFFFFFF)
"""No 22 bits of a hash."""
_MOST_LEAST: Final = 1 << 24
"""The number of buckets whose least hashes are found at once: 64 MB."""


@written_as("count_groups")
class CountGroupsState(Struct, State, frozen=True, eq=False):
    """The sketch of each group."""

    offsets: Numbers
    hashes: Hashes
    """Distinct ones, rising: of group i those numbered offsets[i]:offsets[i + 1]; none where it has buckets."""
    rows: Numbers
    """The row of `buckets` of each group, or -1."""
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
        has_buckets = self.rows != _FEW
        buckets: Buckets = self.buckets[self.rows[has_buckets]]  # in the order of the groups
        return {**members, "has_buckets": has_buckets.astype(np.uint8), "buckets": buckets.reshape(-1)}

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

    def __init__(self, node: ExpressionNode) -> None:
        self._node = node

    def collect(self, rows: Rows, groups: Groups, count: int) -> CountGroupsState:
        hashes = hashes_of(self._node.values(rows))
        return CountGroupsState(*_sketched(hashes, groups, np.zeros(count, np.bool_)))


@aggregates("count_groups")
def _count_groups(aggregation: Aggregation, bind: Binder) -> CountGroups:
    return CountGroups(bind(argument(aggregation)))
