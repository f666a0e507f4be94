"""From the operations of a statement to linear requests: one for each leaf of its tree.

Tags number the root group, the levels and the aggregations of a statement, in the order in which they are met.
Vespa: RequestBuilder, ExpressionConverter, GroupingTransform in com.yahoo.search.grouping.vespa
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Final

from msgspec import Struct, field

from paperwasp.base.records import replace
from paperwasp.errors import InvalidQuery
from paperwasp.search.grouping.continuation import PagePosition, Pages
from paperwasp.search.grouping.language.operation import (
    UNLIMITED,
    Operation,
    check_levels,
    expression_text,
    is_aggregator,
    level_name,
)
from paperwasp.search.grouping.request import (
    Aggregation,
    Expression,
    Filter,
    GroupingRequest,
    Level,
    OrderKey,
    ResultLayout,
)

_LOOKAHEAD: Final = 1
"""One group or hit more than a page shows says whether there is another page."""
_SEE: Final = "See https://docs.vespa.ai/en/grouping.html for details."


class Defaults(Struct, frozen=True):
    """The defaults of a query for its statements: `grouping.*`. Below 0: there is no limit."""

    max_groups: int = 10
    max_hits: int = 10
    global_max_groups: int = 10_000
    """How many groups and hits the answer to a statement may have at most."""
    precision_factor: float = 2.0


DEFAULTS: Final = Defaults()


class _LevelDraft(Struct):
    tag: int
    expression: Expression
    filter: Filter | None
    max_groups: int | None = None
    precision: int | None = None
    order: list[OrderKey] = field(default_factory=list)
    aggregations: list[Aggregation] = field(default_factory=list)

    def copy(self) -> _LevelDraft:
        return replace(self, order=[*self.order], aggregations=[*self.aggregations])

    def level(self) -> Level:
        precision = self.precision
        if precision is not None and self.max_groups is not None:
            precision = max(precision, self.max_groups)
        order, aggregations = tuple(self.order), tuple(self.aggregations)
        return Level(self.tag, self.expression, self.filter, self.max_groups, precision, order, aggregations)


class _Draft(Struct):
    """A request that is being built."""

    root_tag: int
    aggregations: list[Aggregation] = field(default_factory=list)
    levels: list[_LevelDraft] = field(default_factory=list)
    is_all: bool = False
    top_n: int | None = None

    def copy(self) -> _Draft:
        levels = [level.copy() for level in self.levels]
        return replace(self, aggregations=[*self.aggregations], levels=levels)

    def request(self, number: int) -> GroupingRequest:
        aggregations, levels = tuple(self.aggregations), tuple(level.level() for level in self.levels)
        return GroupingRequest(number, self.root_tag, aggregations, levels=levels, is_all=self.is_all, top_n=self.top_n)

    @property
    def leaf_tag(self) -> int:
        return self.levels[-1].tag if self.levels else self.root_tag

    @property
    def leaf(self) -> list[Aggregation]:
        return self.levels[-1].aggregations if self.levels else self.aggregations

    def prune(self) -> bool:
        """Drops the last levels that collect nothing. Returns whether anything is left."""
        while self.levels and not self.levels[-1].aggregations:
            self.levels.pop()
        return bool(self.levels or self.aggregations)


class _State(Struct):
    """The settings of operations for the next level or list of hits."""

    group_by: Expression | None = None
    filter: Filter | None = None
    label: str = ""
    max: int | None = None
    precision: int | None = None
    order: list[OrderKey] = field(default_factory=list)

    def copy(self) -> _State:
        return replace(self, order=[*self.order])


def layout_of(
    root: Operation,
    number: int,
    first_request: int = 0,
    positions: Iterable[PagePosition] = (),
    defaults: Defaults = DEFAULTS,
) -> ResultLayout:
    """The requests of a statement, and how their results are put together.

    `number`: of the statement in its query; `first_request`: of its first request; `positions`: of all continuations.
    Errors: LanguageError, InvalidQuery.
    """
    return _Builder(root, Pages.of(number, positions), defaults).layout(number, first_request)


class _Builder:
    def __init__(self, root: Operation, pages: Pages, defaults: Defaults) -> None:
        self._root = root
        self._levels = check_levels(root)
        self._pages = pages
        self._defaults = defaults
        self._tag = 0
        self._labels: dict[int, str] = {}
        self._siblings: dict[int, set[str]] = {}
        self._maxes: dict[int, int] = {}

    def layout(self, number: int, first_request: int) -> ResultLayout:
        drafts: list[_Draft] = []
        stack = [(_Draft(self._next_tag()), _State(), self._root)]
        while stack:
            draft, state, operation = stack.pop()
            self._operate(draft, state, operation)
            for place, child in reversed(list(enumerate(operation.children))):
                stack.append((draft.copy(), state.copy(), child) if place else (draft, state, child))
            if not operation.children:
                drafts.append(draft)
        drafts = [draft for draft in drafts if draft.prune()]
        requests = tuple(draft.request(first_request + place) for place, draft in enumerate(drafts))
        self._check_size(requests)
        return ResultLayout(number, requests, self._labels, self._maxes, self._pages)

    def _next_tag(self) -> int:
        self._tag += 1
        return self._tag

    def _operate(self, draft: _Draft, state: _State, operation: Operation) -> None:
        level = self._levels[id(operation)]
        if level > 2:
            raise InvalidQuery(f"Can not operate on {level_name(level)}.")
        if operation.is_each:
            self._open_each(draft, state, operation, level)
        else:
            self._add_outputs(draft, state, operation, level)
        self._note_group(state, operation, level)
        self._note_max(draft, state, operation)
        self._note_order(state, operation, level)
        self._note_precision(state, operation)
        self._note_where(draft, state, operation)
        if state.group_by is not None:
            leaf = draft.leaf
            leaf[:] = [_counting(each, state.group_by) for each in leaf]

    def _open_each(self, draft: _Draft, state: _State, operation: Operation, level: int) -> None:
        parent_tag = draft.leaf_tag
        if state.group_by is not None:
            self._open_level(draft, state)
        state.label = operation.label or state.label
        if level > 0:
            self._put_label(parent_tag, draft.leaf_tag, state.label, "group list")
        self._add_outputs(draft, state, operation, level)
        if state.order and draft.levels:
            draft.levels[-1].order += state.order
            state.order = []

    def _open_level(self, draft: _Draft, state: _State) -> None:
        assert state.group_by is not None
        level = _LevelDraft(self._next_tag(), state.group_by, state.filter)
        offset = self._pages.by_tag.get(level.tag, 0)
        if state.precision is not None:
            level.precision = state.precision + offset
        if state.max is not None:
            self._maxes[level.tag] = state.max
            level.max_groups = _LOOKAHEAD + state.max + offset
        state.group_by = state.filter = state.precision = state.max = None
        draft.levels.append(level)

    def _add_outputs(self, draft: _Draft, state: _State, operation: Operation, level: int) -> None:
        for output in operation.outputs:
            expression = _aggregate(output, level)
            tag = self._next_tag()
            max_hits = None
            if expression.function == "summary":
                if output.label:
                    raise InvalidQuery(f"Can not label expression '{expression_text(output)}'.")
                if state.max is not None:
                    self._maxes[tag] = state.max
                    max_hits = _LOOKAHEAD + state.max + self._pages.by_tag.get(tag, 0)
                    state.max = None
                self._put_label(draft.leaf_tag, tag, state.label, "hit list")
            else:
                self._put_label(draft.leaf_tag, tag, output.label or expression_text(output), "output")
            draft.leaf.append(Aggregation(tag, expression, max_hits))

    def _put_label(self, parent_tag: int, tag: int, label: str, kind: str) -> None:
        siblings = self._siblings.setdefault(parent_tag, set())
        if label in siblings:
            raise InvalidQuery(f"Can not use {kind} label '{label}' for multiple siblings.")
        siblings.add(label)
        self._labels[tag] = label

    def _note_group(self, state: _State, operation: Operation, level: int) -> None:
        if operation.filter is not None:
            state.filter = _converted_filter(operation.filter)
        if operation.group_by is not None:
            if state.group_by is not None:
                raise InvalidQuery("Can not group list of groups.")
            state.group_by = converted(operation.group_by)
            state.label = expression_text(operation.group_by)
        elif level == 1:
            state.label = "hits"
        elif level > 1:
            raise InvalidQuery(f"Can not create anonymous {level_name(level)}.")

    def _note_max(self, draft: _Draft, state: _State, operation: Operation) -> None:
        wanted = operation.max
        if not operation.is_each and state.group_by is None:
            if wanted is not None and wanted != UNLIMITED:
                draft.top_n = wanted if draft.top_n is None else min(draft.top_n, wanted)
        elif wanted is not None:
            state.max = None if wanted == UNLIMITED else wanted
        else:
            default = self._defaults.max_hits if state.group_by is None else self._defaults.max_groups
            if default != -1:
                state.max = default

    def _note_order(self, state: _State, operation: Operation, level: int) -> None:
        if operation.order and level != 2:
            raise InvalidQuery(f"Can not order {level_name(level)} content.")
        for expression in operation.order:
            is_falling = expression.function == "neg"
            inner = expression.arguments[0] if is_falling else expression
            assert isinstance(inner, Expression)
            state.order.append(OrderKey(converted(inner), not is_falling))

    def _note_precision(self, state: _State, operation: Operation) -> None:
        factor = self._defaults.precision_factor
        if operation.precision > 0:
            state.precision = operation.precision
        elif state.max is not None and factor > 0:
            state.precision = math.ceil(max(1.0, min(float(UNLIMITED), state.max * factor)))

    def _note_where(self, draft: _Draft, state: _State, operation: Operation) -> None:
        where = operation.where
        if where is None:
            return
        if operation is not self._root or state.group_by is not None:
            raise InvalidQuery("Can not apply 'where' to non-root group.")
        if where not in ("true", "$query"):
            raise InvalidQuery(f"Operation 'where' does not support '{where}'.")
        draft.is_all = draft.is_all or where == "true"

    def _check_size(self, requests: tuple[GroupingRequest, ...]) -> None:
        """Errors: InvalidQuery where the answer could have more groups and hits than a query may ask for."""
        most = self._defaults.global_max_groups
        if most < 0:
            return
        total = 0
        for request in requests:
            groups = 1
            for level in request.levels:
                groups *= self._most_groups(level)
                total += groups
                total += groups * sum(
                    self._most_hits(each) for each in level.aggregations if each.expression.function == "summary"
                )
        if total > most:
            raise InvalidQuery(
                "The theoretical total number of groups and summaries in grouping query exceeds "
                f"'grouping.globalMaxGroups' ( {total} > {most} ). Either restrict group/summary counts with max() "
                f"or disable 'grouping.globalMaxGroups'. {_SEE}"
            )

    def _most_groups(self, level: Level) -> int:
        most = self._maxes.get(level.tag, 0)
        if level.expression.function == "predefined":
            buckets = len(level.expression.arguments)  # one is what they are of, and one value is in none of them
            most = min(most, buckets) if most > 0 else buckets
        if most <= 0:
            raise InvalidQuery(_unbounded("groups", "group"))
        return most

    def _most_hits(self, aggregation: Aggregation) -> int:
        most = self._maxes.get(aggregation.tag, 0)
        if most <= 0:
            raise InvalidQuery(_unbounded("summaries", "summary"))
        return most


def _unbounded(many: str, one: str) -> str:
    return (
        f"Cannot return unbounded number of {many} when 'grouping.globalMaxGroups' is enabled. "
        f"Either restrict {one} count with max() or disable 'grouping.globalMaxGroups'. {_SEE}"
    )


def _counting(aggregation: Aggregation, group_by: Expression) -> Aggregation:
    """A count of groups with what they are grouped by, which it does not have yet."""
    expression = aggregation.expression
    if expression.function != "count_groups" or expression.arguments:
        return aggregation
    return replace(aggregation, expression=Expression("count_groups", (group_by,)))


def _aggregate(output: Expression, level: int) -> Expression:
    """Return the aggregate for an output of groups (level 1), of lists of them, or of hits. Errors: InvalidQuery."""
    if level > 1:
        if output.function == "count":
            return Expression("count_groups")
        raise InvalidQuery(f"Can not aggregate on {level_name(level)}.")
    if output.function != "summary" and not is_aggregator(output.function, len(output.arguments)):
        raise InvalidQuery(f"Can not convert '{expression_text(output)}' to an aggregator.")
    return converted(output)


def converted(expression: Expression) -> Expression:
    """An expression as content nodes have it: without labels, and without what is only another way to write it."""
    name, arguments = expression.function, expression.arguments
    if name == "attribute_function":
        (named,) = arguments
        if isinstance(named, Expression):
            return converted(named)
        name = "attribute"
    elif name.startswith("geo_distance."):
        place = arguments[0]
        assert isinstance(place, Expression)
        position = place.arguments[0]
        assert isinstance(position, str)
        arguments = (Expression("attribute", (position + "_zcurve",)), *arguments[1:])
    elif name == "argmax":
        key, value = arguments
        assert isinstance(key, Expression)
        name, arguments = "argmin", (Expression("neg", (key,)), value)
    inner = tuple([converted(each) if isinstance(each, Expression) else each for each in arguments])
    return Expression(name, inner)


def _converted_filter(predicate: Filter) -> Filter:
    expression = None if predicate.expression is None else converted(predicate.expression)
    return replace(predicate, expression=expression, parts=tuple(map(_converted_filter, predicate.parts)))
