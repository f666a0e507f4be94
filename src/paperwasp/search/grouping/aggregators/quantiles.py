"""`quantiles([q, …], expression)`: for each q the least of a group's values that is not less than that part of them.

Values are floats; a NaN is passed over. Each group shows a list of `{"quantile": q, "value": v}`, with 0 of no values.
In an order all groups are equal, as in Vespa (QuantileAggregationResult.java).

Quantiles are read from a sketch of the values of each group: values in order, each for a number of others. Up to
`EXACT` values of a group are all kept, and quantiles of them are exact, as those of Vespa's KLL sketches are up to 200.
Of more, `EXACT` are kept that are evenly spread over their ranks, the least and the greatest among them: what is read
is then at most 1/EXACT of all values away in rank. Each merging of sketches adds as much where more values come
together. (The error of a KLL sketch with Vespa's k of 200 is 1.33 %.)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, Final, Self

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from paperwasp.errors import InvalidQuery
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
from paperwasp.search.grouping.conversion import spread, valid_doubles
from paperwasp.search.grouping.expression_node import ExpressionNode, Rows
from paperwasp.search.grouping.request import Aggregation
from paperwasp.search.grouping.values import Values, check_arrays, check_offsets, lengths_of, offsets_of, parts_at

EXACT: Final = 1024
"""How many values of a group are kept."""
_TAIL: Final = 1e7
"""Ranks among this many values and fewer are rounded to this part first, as DataSketches does (getNaturalRank)."""
_DIGIT: Final = 16
"""The bits that a pass of the sort by groups orders by."""

_LARGE: Final = 512
"""Values of a group, in the mean, from which on groups are sorted one by one."""

Doubles = NDArray[np.float64]


class QuantileSketch(Struct, frozen=True, eq=False):
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


def sketch_of(values: Doubles, groups: NDArray[Any], count: int) -> QuantileSketch:
    """The sketch of the values of `count` groups. groups[i]: the group of value i. values: without NaN."""
    offsets = offsets_of(np.bincount(groups, minlength=count))
    return _thinned(offsets, _ordered(values, groups, offsets, count), np.ones(len(values), np.int64))


def merged_sketch(values: Doubles, weights: Numbers, groups: NDArray[Any], count: int) -> QuantileSketch:
    """The sketch of values that each stand for some, of several sketches."""
    order = _order(values, groups, count)
    return _thinned(offsets_of(np.bincount(groups, minlength=count)), values[order], weights[order])


def _ordered(values: Doubles, groups: NDArray[Any], offsets: Numbers, count: int) -> Doubles:
    """The values by group, rising. Large groups are sorted one after another, which takes a third of the time."""
    if count == 1:
        return np.sort(values)
    if count > min(1 << _DIGIT, len(values) // _LARGE):
        return values[_order(values, groups, count)]
    ordered = values[np.argsort(groups.astype(np.uint16), kind="stable")]
    for low, high in pairwise(offsets.tolist()):
        ordered[low:high].sort()
    return ordered


def _order(values: Doubles, groups: NDArray[Any], count: int) -> Numbers:
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


_MOST_WEIGHT = 2**48
"""The most weight of the values of all groups, so that sums over many results do not overflow."""


@written_as("quantiles")
class QuantilesState(Struct, State, frozen=True, eq=False):
    """The sketch of each group."""

    wanted: tuple[float, ...]
    sketch: QuantileSketch

    @property
    def group_count(self) -> int:
        return len(self.sketch.offsets) - 1

    def selected(self, rows: Numbers) -> Self:
        sketch = self.sketch
        offsets, places = parts_at(sketch.offsets, rows)
        return type(self)(self.wanted, QuantileSketch(offsets, sketch.values[places], sketch.weights[places]))

    @classmethod
    def merged(cls, parts: Sequence[Self], places: Sequence[Numbers], count: int) -> Self:
        sketches = [part.sketch for part in parts]
        pairs = zip(places, sketches, strict=True)
        groups = np.concatenate([np.repeat(place, lengths_of(sketch.offsets)) for place, sketch in pairs])
        values = np.concatenate([sketch.values for sketch in sketches])
        weights = np.concatenate([sketch.weights for sketch in sketches])
        return cls(parts[0].wanted, merged_sketch(values, weights, groups, count))

    def shown(self) -> Sequence[Any]:
        columns = [self.sketch.quantiles(wanted).tolist() for wanted in self.wanted]
        return [
            [{"quantile": wanted, "value": value} for wanted, value in zip(self.wanted, row, strict=True)]
            for row in zip(*columns, strict=True)
        ]

    def order_values(self) -> Values:
        return number_values(np.zeros(len(self.sketch.offsets) - 1))

    def arrays(self) -> Mapping[str, NDArray[Any]]:
        sketch = self.sketch
        members = {"offsets": sketch.offsets, "values": sketch.values, "weights": sketch.weights}
        return {"wanted": np.array(self.wanted, np.float64), **members}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> Self:
        types = {"wanted": np.float64, "offsets": np.int64, "values": np.float64, "weights": np.int64}
        check_arrays(arrays, types, "a state of quantiles")
        wanted, offsets, values, weights = (arrays[name] for name in types)
        if not len(wanted) or not ((wanted >= 0) & (wanted <= 1)).all():
            raise ValueError("a state of quantiles has a quantile that is not between 0 and 1")
        if len(values) != len(weights):
            raise ValueError("the arrays of a state of quantiles differ in length")
        check_offsets(offsets, len(offsets) - 1, len(values))
        if (lengths_of(offsets) > EXACT).any():
            raise ValueError("a state of quantiles has groups of a wrong number of values")
        if (weights < 1).any() or float(weights.astype(np.float64).sum()) > _MOST_WEIGHT:
            raise ValueError("a value of a state of quantiles stands for none, or for too many")
        falls = np.flatnonzero(values[1:] < values[:-1]) + 1
        if np.isnan(values).any() or not np.isin(falls, offsets).all():
            raise ValueError("the values of a state of quantiles do not rise")
        return cls(tuple(wanted.tolist()), QuantileSketch(offsets, values, weights))


class Quantiles(Aggregator):
    """Sketches the values of a node."""

    def __init__(self, node: ExpressionNode, wanted: tuple[float, ...]) -> None:
        self._node = node
        self._wanted = wanted

    def collect(self, rows: Rows, groups: Groups, count: int) -> QuantilesState:
        values = self._node.values(rows)
        numbers, groups = valid_doubles(values, spread(values, groups))
        return QuantilesState(self._wanted, sketch_of(numbers, groups, count))


@aggregates("quantiles")
def _quantiles(aggregation: Aggregation, bind: Binder) -> Quantiles:
    node = bind(argument(aggregation))
    wanted = tuple(each for each in aggregation.expression.arguments[1:] if isinstance(each, float))
    if not wanted:
        raise InvalidQuery("The aggregator 'quantiles' needs a quantile")
    return Quantiles(node, wanted)
