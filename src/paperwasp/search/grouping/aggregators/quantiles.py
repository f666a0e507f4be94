"""`quantiles([q, …], expression)`: for each q the least of a group's values that is not less than that part of them.

Values are floats; a NaN is passed over. Each group shows a list of `{"quantile": q, "value": v}`, with 0 of no values.
In an order all groups are equal, as in Vespa. Vespa: QuantileAggregationResult.java
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from paperwasp.base.records import dataclass
from paperwasp.errors import InvalidQuery
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
from paperwasp.search.grouping.elements import spread, valid_doubles
from paperwasp.search.grouping.node import Node, Rows
from paperwasp.search.grouping.quantile_sketch import EXACT, QuantileSketch, merged_sketch, sketch_of
from paperwasp.search.grouping.ragged import check_arrays, check_offsets, lengths_of, parts_at
from paperwasp.search.grouping.request import Aggregation
from paperwasp.search.grouping.values import Values

_MOST_WEIGHT = 2**48
"""Of the values of all groups together: what is computed of them must not overflow, those of many results together."""


@written_as("quantiles")
@dataclass(frozen=True, slots=True, eq=False)
class QuantilesState(State):
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

    def __init__(self, node: Node, wanted: tuple[float, ...]) -> None:
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
