"""The plain oracle of grouping: hit by hit, in dictionaries, from the definition of the language."""

from __future__ import annotations

import functools
import math
import operator
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import pairwise
from typing import Any, Protocol

from paperwasp.search.grouping.binding import unlabeled
from paperwasp.search.grouping.merging import most_groups
from paperwasp.search.grouping.partial import PartialResult
from paperwasp.search.grouping.request import Aggregation, Expression, GroupingRequest, Level
from paperwasp.search.grouping.values import Kind, Null


class Source(Protocol):
    """What expressions are of hits."""

    def array(self, expression: Expression, hit: OracleHit) -> str | None:
        """The array whose elements these are, if the hit is about none of them yet."""

    def values(self, expression: Expression, hit: OracleHit) -> list[Any]:
        """The values of an expression for a hit."""

    def kind(self, expression: Expression) -> Kind:
        """Their type."""

    def is_multi(self, expression: Expression, hit: OracleHit) -> bool:
        """Whether a hit has a list of them."""


GREATEST_LONG = (1 << 63) - 1
GREATEST_DOUBLE = 1.7976931348623157e308


@dataclass(frozen=True)
class OracleHit:
    """A hit as the oracle sees it. `place`: in the order of hits. `elements`: of arrays by which it is grouped, the
    number of the element that it is about."""

    lid: int
    relevance: float
    place: int
    elements: Mapping[str, int] = field(default_factory=dict)


@dataclass
class Tree:
    """A group with what is below it."""

    id: Any
    relevance: float
    aggregates: list[Any]
    groups: list[Tree] = field(default_factory=list)


def ordered_hits(lids: Sequence[int], relevances: Sequence[float], places: Sequence[int] | None) -> list[OracleHit]:
    """All hits in their order."""
    if places is None:
        found = sorted(zip(lids, relevances, strict=True), key=lambda hit: (-hit[1], hit[0]))
        return [OracleHit(lid, relevance, place) for place, (lid, relevance) in enumerate(found)]
    found3 = sorted(zip(places, lids, relevances, strict=True))
    return [OracleHit(lid, relevance, place) for place, lid, relevance in found3]


def tree_of(request: GroupingRequest, hits: Sequence[OracleHit], source: Source) -> Tree:
    """The groups of hits, which are in their order."""
    if request.top_n is not None:
        hits = hits[: request.top_n]
    takes_first = request.top_n is not None or not any(level.order for level in request.levels)
    relevance = max((hit.relevance for hit in hits), default=0.0)
    root = Tree(None, relevance, [aggregate(each, hits, source) for each in request.aggregations])
    root.groups = _groups(request.levels, hits, source, takes_first)
    return root


def _groups(levels: Sequence[Level], hits: Sequence[OracleHit], source: Source, takes_first: bool) -> list[Tree]:
    if not levels:
        return []
    level = levels[0]
    members: dict[Any, list[OracleHit]] = {}
    for hit in hits:
        array = source.array(level.expression, hit)
        for number, value in enumerate(source.values(level.expression, hit)):
            member = hit if array is None else replace(hit, elements={**hit.elements, array: number})
            members.setdefault(_identity(value), []).append(member)

    def relevance(identity: Any) -> float:
        return max(hit.relevance for hit in members[identity])

    def key(identity: Any) -> list[Any]:
        keys = [
            _ordered(order_value(each.expression, members[identity], source), each.is_ascending) for each in level.order
        ]
        return [*keys, -relevance(identity)]

    identities = list(members)
    most = most_groups(level)
    if most is not None and not takes_first:
        first = {identity: min(hit.place for hit in members[identity]) for identity in members}
        identities.sort(key=lambda identity: (key(identity), first[identity]))
    identities = identities[:most]
    identities.sort(key=lambda identity: (key(identity), _order(identity[1])))
    return [
        Tree(
            identity[1],
            relevance(identity),
            [aggregate(each, members[identity], source) for each in level.aggregations],
            _groups(levels[1:], members[identity], source, takes_first),
        )
        for identity in identities
    ]


def _identity(value: Any) -> tuple[str, Any]:
    return (type(value).__name__, value)


def _order(value: Any) -> Any:
    return value.encode() if isinstance(value, str) else value


def _ordered(value: Any, is_ascending: bool) -> Any:
    return value if is_ascending else -value


def order_value(expression: Expression, hits: Sequence[OracleHit], source: Source) -> Any:
    """The value of an expression over aggregates."""
    if expression.function == "neg":
        return -order_value(expression.arguments[0], hits, source)  # type: ignore[arg-type]
    if expression.function == "add":
        return sum(order_value(each, hits, source) for each in expression.arguments)  # type: ignore[arg-type]
    found = aggregate(Aggregation(0, expression), hits, source)
    return found if expression.function != "summary" else (found[0][1] if found else 0.0)


def aggregate(aggregation: Aggregation, hits: Sequence[OracleHit], source: Source) -> Any:
    """The value of an aggregate of these hits."""
    expression = unlabeled(aggregation.expression)
    if expression.function == "count":
        return len(hits)
    if expression.function == "summary":
        best = sorted(hits, key=lambda hit: (-hit.relevance, hit.lid))
        return [(hit.lid, hit.relevance) for hit in best[: aggregation.max_hits]]
    argument = expression.arguments[0]
    assert isinstance(argument, Expression)
    if expression.function in PICKED:
        return PICKED[expression.function](expression, hits, source)
    values = [value for hit in sorted(hits, key=lambda hit: hit.lid) for value in source.values(argument, hit)]
    if expression.function in ("min", "max") and not values:
        return EXTREMES[expression.function, source.kind(argument)]
    if expression.function == "quantiles":
        return _quantiles(values, expression.arguments[1:])
    return AGGREGATES[expression.function](values)


def _sum(values: list[Any]) -> Any:
    if all(isinstance(value, int) for value in values):
        return (sum(values) + (1 << 63)) % (1 << 64) - (1 << 63)
    return math.fsum(values)


def _avg(values: list[Any]) -> float:
    return float(_sum(values)) / len(values) if values else 0.0


def _stddev(values: list[Any]) -> float:
    return statistics.pstdev(values) if values else 0.0


def _xor(values: list[Any]) -> int:
    return functools.reduce(operator.xor, (int(value) for value in values), 0)


def _quantiles(values: list[Any], wanted: Sequence[Any]) -> list[dict[str, float]]:
    """Each is the least value of which at least this part of all is not greater."""
    found = []
    for quantile in wanted:
        fitting = [
            value
            for value in sorted(values)
            if sum(each <= value for each in values) >= Fraction(quantile) * len(values)
        ]
        found.append({"quantile": quantile, "value": float(fitting[0]) if fitting else 0.0})
    return found


def _first(expression: Expression, hits: Sequence[OracleHit], source: Source) -> Any:
    argument = expression.arguments[0]
    assert isinstance(argument, Expression)
    found = [hit for hit in hits if source.values(argument, hit)]
    if not found:
        return EMPTY[source.kind(argument)]
    return source.values(argument, min(found, key=lambda hit: (-hit.relevance, hit.lid)))[0]


def _argmin(expression: Expression, hits: Sequence[OracleHit], source: Source) -> Any:
    key, value = expression.arguments
    assert isinstance(key, Expression)
    assert isinstance(value, Expression)
    found = [hit for hit in hits if source.values(key, hit)]
    if not found:
        return Null.NULL
    picked = min(found, key=lambda hit: (min(source.values(key, hit)), hit.lid))
    values = source.values(value, picked)
    return values if source.is_multi(value, picked) else values[0]


EMPTY = {Kind.LONG: 0, Kind.DOUBLE: 0.0, Kind.BOOL: False, Kind.STRING: ""}
PICKED = {"first": _first, "argmin": _argmin}
EXTREMES = {
    ("min", Kind.LONG): GREATEST_LONG,
    ("max", Kind.LONG): -GREATEST_LONG - 1,
    ("min", Kind.DOUBLE): GREATEST_DOUBLE,
    ("max", Kind.DOUBLE): -GREATEST_DOUBLE,
    ("min", Kind.STRING): "\ufffd",
    ("max", Kind.STRING): "",
}
"""Of no values."""
AGGREGATES: dict[str, Callable[[list[Any]], Any]] = {
    "sum": _sum,
    "avg": _avg,
    "stddev": _stddev,
    "xor": _xor,
    "count_groups": lambda values: len({_identity(value) for value in values}),
    "min": lambda values: min(values, key=_order),
    "max": lambda values: max(values, key=_order),
}


def tree_from(partial: PartialResult, request: GroupingRequest) -> Tree:
    """The groups of a partial result as a tree, with the aggregates that are asked for."""
    wanted = [len(request.aggregations), *(len(level.aggregations) for level in request.levels)]
    trees: list[Tree] = []
    for depth, level in enumerate(partial.levels):
        ids = level.ids
        shown = [
            state.shown() if not hasattr(state, "lids") else _hits(state) for state in level.states[: wanted[depth]]
        ]
        labels = ids.data.tolist() if ids.table is None else list(ids.table.values_of(ids.data))
        found = [
            Tree(None if depth == 0 else label, float(level.relevances[row]), [values[row] for values in shown])
            for row, label in enumerate(labels)
        ]
        for row, parent in enumerate(level.parents.tolist()):
            if depth:
                trees[parent].groups.append(found[row])
        if depth == 0:
            root = found[0]
        trees = found
    return root


def _hits(state: Any) -> list[list[tuple[int, float]]]:
    bounds = state.offsets.tolist()
    pairs = list(zip(state.lids.tolist(), state.relevances.tolist(), strict=True))
    return [pairs[low:high] for low, high in pairwise(bounds)]
