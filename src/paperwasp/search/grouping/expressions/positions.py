"""zcurve.x and zcurve.y of the number of a position, and geo_distance(…).km and .miles, the way from it to a place.

The way is along a great circle; the place is a latitude and a longitude in degrees. Of several positions the nearest
counts; of none the way is infinite. A single position that is not set is far outside of the Earth, and so is the
distance from it.
Vespa: https://docs.vespa.ai/en/reference/querying/grouping-language.html#other-expressions;
searchlib/expression/geo_distance_function_node.cpp, searchlib/common/geo_gcd.cpp
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from paperwasp.document.z_curve import positions_of
from paperwasp.errors import InvalidQuery
from paperwasp.search.grouping.conversion import BUCKETS, as_longs, first_doubles
from paperwasp.search.grouping.expression_node import Computed, ExpressionNode, Scope, bind_arguments, register
from paperwasp.search.grouping.request import Expression
from paperwasp.search.grouping.values import Kind, Numbers, Values, lengths_of
from paperwasp.storage.attributes.distances import EARTH_RADIUS_KM

Doubles = NDArray[np.float64]
_RADIANS: Final = np.pi / 180.0
_KM: Final = {"geo_distance.km": 1.0, "geo_distance.miles": 1.609344}
"""By function: the kilometres of what it counts."""


@register("zcurve.x", "zcurve.y")
def _z_curve(expression: Expression, scope: Scope) -> ExpressionNode:
    (argument,) = bind_arguments(expression, scope, 1, 1)
    axis = int(expression.function == "zcurve.y")
    _refuse_buckets(expression, [argument])

    def compute(values: Sequence[Values]) -> Values:
        numbers = np.ascontiguousarray(as_longs(values[0]))
        return Values(Kind.LONG, positions_of(numbers)[:, axis].astype(np.int64), None, values[0].offsets)

    return Computed(Kind.LONG, [argument], compute, is_multi=argument.is_multi)


@register(*_KM)
def _geo_distance(expression: Expression, scope: Scope) -> ExpressionNode:
    arguments = bind_arguments(expression, scope, 3, 3)
    factor = 1.0 / _KM[expression.function]
    _refuse_buckets(expression, arguments)

    def compute(values: Sequence[Values]) -> Values:
        places = positions_of(np.ascontiguousarray(as_longs(values[0]))) / 1.0e6
        latitude, longitude = (first_doubles(each) for each in values[1:])
        offsets = values[0].offsets
        if offsets is not None:
            places = places[offsets[0] : offsets[-1]]
            latitude, longitude = (np.repeat(each, lengths_of(offsets)) for each in (latitude, longitude))
        distances = _distance_km(latitude, longitude, places[:, 1], places[:, 0]) * factor
        return Values(Kind.DOUBLE, distances if offsets is None else _least(distances, lengths_of(offsets)))

    return Computed(Kind.DOUBLE, arguments, compute)


def _distance_km(latitude: Doubles, longitude: Doubles, other_latitude: Doubles, other_longitude: Doubles) -> Doubles:
    """Between two places in degrees, by haversines."""
    with np.errstate(all="ignore"):
        theta, phi, other_theta, other_phi = (
            each * _RADIANS for each in (latitude, longitude, other_latitude, other_longitude)
        )
        across = np.cos(theta) * np.cos(other_theta) * _haversine(phi - other_phi)
        found: Doubles = 2.0 * np.arcsin(np.sqrt(_haversine(theta - other_theta) + across)) * EARTH_RADIUS_KM
    return found


def _least(distances: Doubles, lengths: Numbers) -> Doubles:
    """The least value of each row, given the number of values of each; infinity for a row without values."""
    found = np.full(len(lengths), np.inf)
    is_there = lengths > 0
    if is_there.any():
        found[is_there] = np.minimum.reduceat(distances, (np.cumsum(lengths) - lengths)[is_there])
    return found


def _haversine(angle: Doubles) -> Doubles:
    sine = np.sin(0.5 * angle)
    return np.asarray(sine * sine)


def _refuse_buckets(expression: Expression, arguments: Sequence[ExpressionNode]) -> None:
    if BUCKETS.intersection(each.kind for each in arguments):
        raise InvalidQuery(f"Function '{expression.function}' does not take buckets")
