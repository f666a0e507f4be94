"""A request bound to the columns of one document type: what is computed of its hits, level by level."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import reduce
from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from paperwasp.base.records import replace
from paperwasp.errors import InvalidQuery
from paperwasp.search.grouping import aggregators
from paperwasp.search.grouping.aggregator import Aggregator, State, aggregator_of, is_aggregate
from paperwasp.search.grouping.conversion import BUCKETS, as_doubles, as_texts
from paperwasp.search.grouping.expression_node import ExpressionNode, Rows, Scope, bind
from paperwasp.search.grouping.request import Aggregation, Expression, Filter, GroupingRequest, Level, OrderKey
from paperwasp.search.grouping.tables import TextTable, distinct, encoded, in_pieces
from paperwasp.search.grouping.values import Kind, Values
from paperwasp.storage.attributes.patterns import compiled

__all__ = ["Binding", "BoundLevel", "BoundRequest", "GroupOrder", "aggregators", "bound_request", "order_of"]

# The predicates of filter(…): which rows a level groups. Where it groups by the elements of an array, a row is about
# one of them, and so is what the predicate reads of that array; of others a row fits if any of their values does.
#
# A regular expression, of RE2's syntax and so in linear time, must match the whole text of a value.
# Vespa: https://docs.vespa.ai/en/reference/querying/grouping-language.html#filtering-groups


Mask = NDArray[np.bool_]
BoundFilter = Callable[[Rows], Mask]


def bind_filter(predicate: Filter, scope: Scope) -> BoundFilter:
    """The predicate as a function of rows. Errors: InvalidQuery."""
    parts = [bind_filter(part, scope) for part in predicate.parts]
    match predicate.kind:
        case "not":
            return lambda rows: ~parts[0](rows)
        case "and":
            return lambda rows: reduce(np.logical_and, [part(rows) for part in parts])
        case "or":
            return lambda rows: reduce(np.logical_or, [part(rows) for part in parts])
    if predicate.expression is None:
        raise InvalidQuery(f"Filter '{predicate.kind}' takes an expression")
    node = bind(predicate.expression, scope)
    if predicate.kind == "istrue":
        if node.kind != Kind.BOOL or node.is_multi:
            raise InvalidQuery(f"istrue() requires input to be type bool, got {node.kind.value}")
        return lambda rows: np.asarray(node.values(rows).data, np.bool_)
    if node.kind in BUCKETS:
        raise InvalidQuery(f"Filter '{predicate.kind}' does not take buckets")
    return _of_values(node, _fitting(predicate))


def _of_values(node: ExpressionNode, fits: Callable[[Values], Mask]) -> BoundFilter:
    """Rows of which any value fits."""

    def accept(rows: Rows) -> Mask:
        values = node.values(rows)
        found = fits(values)
        if values.offsets is None:
            return found
        ends = np.concatenate([[0], np.cumsum(found)])[values.offsets.astype(np.intp)]
        return np.asarray(ends[1:] > ends[:-1], np.bool_)

    return accept


def _fitting(predicate: Filter) -> Callable[[Values], Mask]:
    settings: tuple[Any, ...] = predicate.settings
    if predicate.kind == "range":
        low, high, has_low, has_high = settings
        return lambda values: _between(as_doubles(values), low, high, has_low, has_high)
    if predicate.kind == "in":
        wanted = {encoded(str(each)) for each in settings}
        return lambda values: _texts_that(values, wanted.__contains__)
    if predicate.kind == "regex":
        pattern = compiled(str(settings[0]), cased=True)
        return lambda values: _texts_that(values, lambda text: pattern.fullmatch(text) is not None)
    raise InvalidQuery(f"Unknown filter in grouping: '{predicate.kind}'")


def _between(numbers: NDArray[np.float64], low: float, high: float, has_low: bool, has_high: bool) -> Mask:
    above = numbers >= low if has_low else numbers > low
    return np.asarray(above & (numbers <= high if has_high else numbers < high), np.bool_)


def _texts_that(values: Values, fits: Callable[[bytes], bool]) -> Mask:
    """Mark the values whose text fits; each distinct text is looked at once."""
    table = TextTable()
    codes, places = distinct(as_texts(values, table))
    return np.array([fits(text) for text in in_pieces(table.bytes_of(codes))], np.bool_)[places]


Accept = Callable[[Rows], NDArray[np.bool_]]
Given = Mapping[Expression, ExpressionNode]
NO_TAG = -1
"""The tag of aggregates that no answer shows."""


class Binding(Struct, frozen=True):
    """How expressions and filters are bound."""

    node: Callable[[Expression, Given], ExpressionNode]
    """Binds an expression; those that are given stand for themselves."""
    filter: Callable[[Filter], Accept]
    within: Callable[[str], Binding] | None = None
    """How what is below a level is bound that groups by elements of this array; None: as all else."""

    def of_hits(self, expression: Expression) -> ExpressionNode:
        """An expression over hits."""
        return self.node(expression, {})


class GroupOrder(Struct, frozen=True):
    """The order of the groups of a level: keys over their aggregates."""

    keys: tuple[OrderKey, ...]
    aggregations: tuple[Aggregation, ...]
    """The aggregations of the level, then those that only keys need."""

    expressions: tuple[Expression, ...]
    """The expressions of the aggregations, without labels."""
    wanted: tuple[Expression, ...]
    """The expressions of the keys, without labels."""
    used: frozenset[int]
    """The numbers of the aggregations that keys need."""

    def columns(self, states: Mapping[int, State], binding: Binding, count: int) -> list[Values]:
        """The values of each key for all `count` groups. `states`: of the aggregations in `used`."""
        if not self.wanted:
            return []
        given = {self.expressions[number]: _StateNode(state.order_values()) for number, state in states.items()}
        rows = Rows(np.arange(count, dtype=np.uint32), np.zeros(count))
        return [self._column(expression, given, rows, binding) for expression in self.wanted]

    def _column(
        self, expression: Expression, given: Mapping[Expression, _StateNode], rows: Rows, binding: Binding
    ) -> Values:
        found = given.get(expression)
        return binding.node(expression, given).values(rows) if found is None else found.all_values


class _StateNode(ExpressionNode):
    """The aggregates of groups, where rows are numbers of groups."""

    def __init__(self, values: Values) -> None:
        self.kind = values.kind
        self.all_values = values

    def values(self, rows: Rows) -> Values:
        return replace(self.all_values, data=self.all_values.data[rows.lids])


class BoundLevel(Struct, frozen=True):
    """A level over the columns of one document type."""

    level: Level
    node: ExpressionNode
    accepts: Accept | None
    aggregators: tuple[Aggregator, ...]
    """One for each of `order.aggregations`."""
    order: GroupOrder


class BoundRequest(Struct, frozen=True):
    """A request over the columns of one document type."""

    request: GroupingRequest
    aggregators: tuple[Aggregator, ...]
    levels: tuple[BoundLevel, ...]
    binding: Binding


def bound_request(request: GroupingRequest, binding: Binding) -> BoundRequest:
    """Bind a request. Errors: InvalidQuery for what the documents cannot be asked."""
    return BoundRequest(
        request,
        _aggregators(request.aggregations, binding),
        tuple(_bound_levels(request.levels, binding)),
        binding,
    )


def order_of(level: Level) -> GroupOrder:
    """Return the order of a level's groups."""
    wanted = tuple(unlabeled(key.expression) for key in level.order)
    expressions = tuple(unlabeled(aggregation.expression) for aggregation in level.aggregations)
    numbers: dict[Expression, int] = {}
    for number, expression in enumerate(expressions):
        numbers.setdefault(expression, number)
    needed = dict.fromkeys(found for expression in wanted for found in _aggregates_in(expression))
    others = tuple(expression for expression in needed if expression not in numbers)
    numbers |= {expression: number for number, expression in enumerate(others, len(expressions))}
    return GroupOrder(
        level.order,
        level.aggregations + tuple(Aggregation(NO_TAG, expression) for expression in others),
        expressions + others,
        wanted,
        frozenset(numbers[expression] for expression in needed),
    )


def unlabeled(expression: Expression) -> Expression:
    """An expression without its labels: what two must share to have the same value."""
    if not any(isinstance(each, Expression) for each in expression.arguments):
        return Expression(expression.function, expression.arguments) if expression.label else expression
    arguments = tuple(unlabeled(each) if isinstance(each, Expression) else each for each in expression.arguments)
    return Expression(expression.function, arguments)


def _bound_levels(levels: Sequence[Level], binding: Binding) -> Iterator[BoundLevel]:
    """Where a level groups by one array, map or weighted set, its filter, its aggregates and all below it read one
    element of it.

    Vespa: grouping.cpp (`configureStaticStuff`), groupinglevel.cpp (`wire_current_index`), current_index_setup.cpp
    """
    for level in levels:
        order = order_of(level)
        node = binding.of_hits(level.expression)
        if node.array is not None and binding.within is not None:
            binding = binding.within(node.array)
        aggregators_ = _aggregators(order.aggregations, binding)
        accept = None if level.filter is None else binding.filter(level.filter)
        yield BoundLevel(level, node, accept, aggregators_, order)


def _aggregators(aggregations: Sequence[Aggregation], binding: Binding) -> tuple[Aggregator, ...]:
    return tuple(aggregator_of(aggregation, binding.of_hits) for aggregation in aggregations)


def _aggregates_in(expression: Expression) -> Iterator[Expression]:
    if is_aggregate(expression):
        yield expression
        return
    for each in expression.arguments:
        if isinstance(each, Expression):
            yield from _aggregates_in(each)
