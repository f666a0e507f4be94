"""A sketch of the values of each group from which quantiles are read: values in order, each for a number of others.

Up to `EXACT` values of a group are all kept, and quantiles of them are exact, as those of Vespa's KLL sketches are up
to 200. Of more, `EXACT` are kept that are evenly spread over their ranks, the least and the greatest among them: what
is read is then at most 1/EXACT of all values away in rank. Each merging of sketches adds as much where more values
come together. (The error of a KLL sketch with Vespa's k of 200 is 1.33 %.)
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from paperwasp.base.records import dataclass
from paperwasp.search.grouping.ragged import Numbers, lengths_of, offsets_of

EXACT: Final = 1024
"""How many values of a group are kept."""
_TAIL: Final = 1e7
"""Ranks among this many values and fewer are rounded to this part first, as DataSketches does (getNaturalRank)."""
_DIGIT: Final = 16
"""The bits that a pass of the sort by groups orders by."""

_LARGE: Final = 512
"""Values of a group, in the mean, from which on groups are sorted one by one."""

Doubles = NDArray[np.float64]
Groups = NDArray[Any]


@dataclass(frozen=True, slots=True, eq=False)
class QuantileSketch:
    """The values of group i are those numbered offsets[i]:offsets[i + 1], rising."""

    offsets: Numbers
    values: Doubles
    weights: Numbers
    """How many values each stands for."""

    def quantiles(self, wanted: float) -> Doubles:
        """The value of each group of which this part of its values is not greater; 0 of no values."""
        ends = np.concatenate([np.zeros(1, np.int64), np.cumsum(self.weights)])
        before = ends[self.offsets[:-1]]
        totals = ends[self.offsets[1:]] - before
        ranks = wanted * totals
        fine = np.floor(ranks * _TAIL + 0.5) / _TAIL
        targets = np.maximum(np.ceil(np.where(totals <= _TAIL, fine, ranks)).astype(np.int64), 1)
        has = totals > 0
        places = np.searchsorted(ends[1:], before[has] + np.minimum(targets, totals)[has])
        found = np.zeros(len(totals))
        found[has] = self.values[places]
        return found


def sketch_of(values: Doubles, groups: Groups, count: int) -> QuantileSketch:
    """The sketch of the values of `count` groups. groups[i]: the group of value i. values: without NaN."""
    offsets = offsets_of(np.bincount(groups, minlength=count))
    return _thinned(offsets, _ordered(values, groups, offsets, count), np.ones(len(values), np.int64))


def merged_sketch(values: Doubles, weights: Numbers, groups: Groups, count: int) -> QuantileSketch:
    """The sketch of values that each stand for some, of several sketches."""
    order = _order(values, groups, count)
    return _thinned(offsets_of(np.bincount(groups, minlength=count)), values[order], weights[order])


def _ordered(values: Doubles, groups: Groups, offsets: Numbers, count: int) -> Doubles:
    """The values by group, rising. Large groups are sorted one after another, which takes a third of the time."""
    if count == 1:
        return np.sort(values)
    if count > min(1 << _DIGIT, len(values) // _LARGE):
        return values[_order(values, groups, count)]
    ordered = values[np.argsort(groups.astype(np.uint16), kind="stable")]
    for low, high in pairwise(offsets.tolist()):
        ordered[low:high].sort()
    return ordered


def _order(values: Doubles, groups: Groups, count: int) -> Numbers:
    """The order of values by group, then value. Groups are sorted by 16 bits at a time, which NumPy counts."""
    order: Numbers = np.argsort(values)
    for shift in range(0, max(count - 1, 0).bit_length(), _DIGIT):
        digits = (groups[order] >> shift).astype(np.uint16)
        order = order[np.argsort(digits, kind="stable")]
    return order


def _thinned(offsets: Numbers, values: Doubles, weights: Numbers) -> QuantileSketch:
    """At most EXACT values of each group, for all of them."""
    lengths = lengths_of(offsets)
    is_long = lengths > EXACT
    if not is_long.any():
        return QuantileSketch(offsets, values, weights)
    kept_lengths = np.where(is_long, EXACT, lengths)
    kept_offsets = offsets_of(kept_lengths)
    owners = np.repeat(np.arange(len(lengths)), kept_lengths)
    numbers = np.arange(kept_offsets[-1]) - kept_offsets[owners]
    ends = np.concatenate([np.zeros(1, np.int64), np.cumsum(weights)])
    totals = ends[offsets[1:]] - ends[offsets[:-1]]
    places = offsets[owners] + numbers
    new_weights = weights[np.minimum(places, len(weights) - 1)]
    thin = is_long[owners]
    of, i = totals[owners[thin]], numbers[thin]
    low, high = i * of // EXACT, (i + 1) * of // EXACT
    ranks = np.where(i == 0, 1, np.where(i == EXACT - 1, of, (low + high + 1) // 2))
    places[thin] = np.searchsorted(ends[1:], ends[offsets[owners[thin]]] + ranks)
    new_weights[thin] = high - low
    return QuantileSketch(kept_offsets, values[places], new_weights)
