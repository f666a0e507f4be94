"""and, or, not and rank: documents that all, some or the first of their parts match; true and false."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property

from msgspec import Struct

from paperwasp.base.records import replace
from paperwasp.search.operators.composed import terms_where_matched
from paperwasp.search.operators.field_match import Bitmap
from paperwasp.search.operators.item import ALL_GRAMS, GRAM_COMPOSITES, Composite, Item, plan
from paperwasp.search.operators.notation import Argument, ArgumentReader, call, condition, operand
from paperwasp.search.operators.operator import BOTH, EITHER, FIRST_ONLY, Operator, SearchSpace, TermOperator
from paperwasp.search.operators.text import QueryPart, Target
from paperwasp.search.yql_syntax import AnnotationScope

# and: documents that all children match.
#
# The child that matches the fewest goes first, the others look only at what is left; what looks for a number of hits
# goes last, to find them among the documents that all others match, and a weakAnd after it.


class AndOperator(Struct, Operator, frozen=True, eq=False, dict=True):
    """Matches the documents that all of the operators below match.

    It remembers its order and estimate: each asks all that is below, and in a deep tree everybody above asks again.
    """

    element_join = BOTH

    space: SearchSpace
    children: tuple[Operator, ...]

    def bitmap(self, within: Bitmap | None = None) -> Bitmap:
        filtered = within  # by those that look for no number of hits
        result: Bitmap | None = None
        for place, child in enumerate(self.order()):
            if result is None:
                result = child.bitmap(self._narrowed(within, place))
                result &= self.space.accept if within is None else within
            else:
                if not result.any():
                    break
                self.space.check_time()
                found = child.bitmap(self._narrowed(filtered if child.finds_alone else result, place))
                found &= result  # which may be what others have looked within, and remember
                result = found
            if not child.targets_hits:
                filtered = result
        assert result is not None
        return result

    def _narrowed(self, within: Bitmap | None, place: int) -> Bitmap | None:
        """Where the child with this place in the order looks for hits: those that come after it look for hits too, and
        leave only what they can match at all."""
        order = self._order
        if not order[place].targets_hits or order[place].depends_on_hits:
            return within
        for child in order[place + 1 :]:
            possible = child.possible(within)
            if possible is not None:
                within = possible if within is None else possible & within
        return within

    def possible(self, within: Bitmap | None = None) -> Bitmap | None:
        found: Bitmap | None = None
        for child in self.children:
            possible = child.possible(within)
            if possible is not None:
                found = possible if found is None else found & possible
        return found

    def order(self) -> tuple[Operator, ...]:
        return self._order

    @cached_property
    def _order(self) -> tuple[Operator, ...]:
        if len(self.children) < 2:
            return self.children
        return tuple(sorted(self.children, key=_turn))

    def estimate(self) -> int:
        return self._estimate

    @cached_property
    def _estimate(self) -> int:
        return min(child.estimate() for child in self.children)

    def most(self, counts: Sequence[int], limit: int) -> int:
        return min(counts)

    def children_of(self) -> tuple[Operator, ...]:
        return self.children

    def terms(self) -> Iterator[TermOperator]:
        for child in self.children:
            yield from child.terms()


def _turn(child: Operator) -> tuple[bool, bool, int]:
    return child.depends_on_hits, child.targets_hits, child.estimate()


class AndItem(Composite, frozen=True):
    """All children match."""

    is_joined = True
    is_plain = True
    rule_kind = "and"

    def to_yql(self) -> str:
        return " and ".join(map(operand, self.children))

    def canonical(self) -> Item:
        children = self.merged_children()
        if has_false(children):
            return FalseItem()
        return children[0] if len(children) == 1 else self.over(children)

    def plan(self, space: SearchSpace) -> Operator:
        children = tuple(plan(child, space) for child in self.children)
        if not children:
            return TrueOperator(space)
        return children[0] if len(children) == 1 else AndOperator(space, children)


GRAM_COMPOSITES[ALL_GRAMS] = AndItem


# or: documents that some child matches.


class OrOperator(Struct, Operator, frozen=True, eq=False):
    """Matches the documents that any of the operators below matches."""

    element_join = EITHER

    space: SearchSpace
    children: tuple[Operator, ...]

    def bitmap(self, within: Bitmap | None = None) -> Bitmap:
        result = self.children[0].bitmap(within)
        for child in self.children[1:]:
            self.space.check_time()
            result |= child.bitmap(within)
        return result

    def possible(self, within: Bitmap | None = None) -> Bitmap | None:
        result = self.space.empty()
        for child in self.children:
            found = child.possible(within)
            if found is None:
                return None
            result |= found
        return result

    def estimate(self) -> int:
        return min(self.space.documents, sum(child.estimate() for child in self.children))

    def children_of(self) -> tuple[Operator, ...]:
        return self.children

    def terms(self) -> Iterator[TermOperator]:
        found: list[TermOperator] = []
        for child in self.children:
            if type(child) is not TermOperator:
                found += terms_where_matched(child, self.space)
            elif child.annotations.ranked:
                found.append(child)
        return iter(found)


def any_of(planned: tuple[Operator, ...], space: SearchSpace) -> Operator:
    """Makes the operator that matches what any of these matches."""
    if not planned:
        return FalseOperator(space)
    return planned[0] if len(planned) == 1 else OrOperator(space, planned)


class OrItem(Composite, frozen=True):
    """At least one child matches."""

    is_joined = True
    is_plain = True
    rule_kind = "or"

    def to_yql(self) -> str:
        return " or ".join(map(operand, self.children))

    def canonical(self) -> Item:
        children = self.merged_children()
        if has_false(children):
            children = tuple([child for child in children if type(child) is not FalseItem]) or (FalseItem(),)
        return children[0] if len(children) == 1 else self.over(children)

    def plan(self, space: SearchSpace) -> Operator:
        return any_of(tuple(plan(child, space) for child in self.children), space)

    def is_every_document(self, space: SearchSpace) -> bool:
        return any(child.is_every_document(space) for child in self.children)


GRAM_COMPOSITES["any"] = OrItem


# and not: documents that the first child matches and no other does.


class NotOperator(Struct, Operator, frozen=True, eq=False):
    """Matches the documents that the positive matches and none of the negatives."""

    element_join = FIRST_ONLY

    space: SearchSpace
    positive: Operator
    negatives: tuple[Operator, ...]

    def bitmap(self, within: Bitmap | None = None) -> Bitmap:
        if self.positive.targets_hits:
            return self.positive.bitmap(self._not_excluded(within))
        result = self.positive.bitmap(within)
        for negative in self.negatives:
            if not result.any():
                break
            result &= ~negative.bitmap(within)
        return result

    def possible(self, within: Bitmap | None = None) -> Bitmap | None:
        found = self.positive.possible(within)
        negatives = [negative for negative in self.negatives if not negative.targets_hits]
        if found is None and negatives:
            found = self.space.accept.copy() if within is None else within.copy()
        for negative in negatives:
            assert found is not None
            found &= ~negative.bitmap(within)
        return found

    def _not_excluded(self, within: Bitmap | None) -> Bitmap:
        allowed = self.space.accept.copy() if within is None else within.copy()
        for negative in self.negatives:
            allowed &= ~negative.bitmap(within)
        return allowed

    def estimate(self) -> int:
        return self.positive.estimate()

    def most(self, counts: Sequence[int], limit: int) -> int:
        return counts[0]

    def children_of(self) -> tuple[Operator, ...]:
        return (self.positive, *self.negatives)

    def terms(self) -> Iterator[TermOperator]:
        return self.positive.terms()


class NotItem(Composite, frozen=True):
    """The first child matches and none of the others does."""

    is_joined = True
    is_plain = True
    rule_kind = "not"

    def to_yql(self) -> str:
        first, *others = self.children
        if not others:
            return first.to_yql()
        negatives = " and ".join(f"!({other.to_yql()})" for other in others)
        if isinstance(first, TrueItem):
            return negatives
        return f"{first.to_yql() if isinstance(first, AndItem) else operand(first)} and {negatives}"

    def canonical(self) -> Item:
        children = led_by_first(self)
        if children is None or any(isinstance(other, TrueItem) for other in children[1:]):
            return FalseItem()
        return children[0] if len(children) == 1 else self.over(children)

    def literal_words(self) -> Iterator[tuple[str, str]]:
        return self.children[0].literal_words()

    def plan(self, space: SearchSpace) -> Operator:
        positive, *negatives = self.children
        excluding = replace(space, weak_and_skips=False)  # what is no hit does not make others harder to find
        return NotOperator(space, plan(positive, space), tuple(plan(child, excluding) for child in negatives))

    def shown(self, target: Target) -> Iterator[QueryPart]:
        return self.children[0].shown(target)


# rank: documents that the first child matches; the other children only give ranking something to look at.


class RankOperator(Struct, Operator, frozen=True, eq=False):
    """Matches what the first operator matches; the others only give terms to ranking."""

    element_join = BOTH

    space: SearchSpace
    children: tuple[Operator, ...]
    finders: tuple[Operator, ...]
    """The operators that only rank, and look for a number of hits among those of the first operator."""

    def bitmap(self, within: Bitmap | None = None) -> Bitmap:
        result = self.children[0].bitmap(within)
        if self.finders:
            ranked = result.copy() if within is None else result & within
            for child in self.finders:
                child.look_within(lambda: ranked)
        return result

    def possible(self, within: Bitmap | None = None) -> Bitmap | None:
        return self.children[0].possible(within)

    def order(self) -> tuple[Operator, ...]:
        return self.children[:1]

    def estimate(self) -> int:
        return self.children[0].estimate()

    def most(self, counts: Sequence[int], limit: int) -> int:
        return counts[0]

    def children_of(self) -> tuple[Operator, ...]:
        return self.children

    def terms(self) -> Iterator[TermOperator]:
        first, *others = self.children
        yield from first.terms()
        for child in others:
            yield from terms_where_matched(child, self.space)


class RankItem(Composite, frozen=True):
    """The first child matches; the others only add to ranking."""

    is_plain = True
    rule_kind = "rank"

    def to_yql(self) -> str:
        return call("rank", [child.to_yql() for child in self.children])

    def canonical(self) -> Item:
        children = led_by_first(self)
        if children is None:
            return FalseItem()
        return children[0] if len(children) == 1 else self.over(children)

    def plan(self, space: SearchSpace) -> Operator:
        first, *others = self.children
        ranking = replace(space, weak_and_skips=False)
        matching, *rankings = (plan(first, space), *(plan(child, ranking) for child in others))
        finders = tuple(child for child in rankings if child.targets_hits)
        for child in finders:
            child.look_within(matching.possible)
        return RankOperator(space, (matching, *rankings), finders)

    def shown(self, target: Target) -> Iterator[QueryPart]:
        return self.children[0].shown(target)


@condition("rank", Argument.CONDITION)
def read_rank(parser: ArgumentReader, scope: AnnotationScope) -> Item:
    """`rank(a, b, …)`: what `a` matches; the others only add to ranking."""
    return RankItem(parser.arguments(scope))


# true and false: items that match every document, and none.


class TrueOperator(Operator):
    """Every document."""

    def __init__(self, space: SearchSpace) -> None:
        self._space = space

    def bitmap(self, within: Bitmap | None = None) -> Bitmap:
        return self._space.accept.copy()

    def estimate(self) -> int:
        return self._space.documents

    def cost(self, limit: int) -> tuple[float, int]:
        return 0.0, limit


class FalseOperator(Operator):
    """No document."""

    def __init__(self, space: SearchSpace) -> None:
        self._space = space

    def bitmap(self, within: Bitmap | None = None) -> Bitmap:
        return self._space.empty()

    def cost(self, limit: int) -> tuple[float, int]:
        return 0.0, 0


class TrueItem(Item, frozen=True):
    """Matches every document."""

    is_plain = True

    def to_yql(self) -> str:
        return "true"

    def plan(self, space: SearchSpace) -> Operator:
        return TrueOperator(space)


class FalseItem(Item, frozen=True):
    """Matches no document."""

    is_plain = True

    def to_yql(self) -> str:
        return "false"

    def plan(self, space: SearchSpace) -> Operator:
        return FalseOperator(space)


def has_false(items: Iterable[Item]) -> bool:
    """Whether one of them matches no document, by itself."""
    return FalseItem in map(type, items)


def led_by_first(item: Composite) -> tuple[Item, ...] | None:
    """The canonical children of an item that matches nothing where its first child does not, with those of a first
    child of the same kind dissolved, and those that match nothing left out; None: the first matches nothing."""
    first, *others = item.canonical_children()
    if isinstance(first, FalseItem):
        return None
    if item.merges(first):
        first, *nested = first.children_of()
        others = [*nested, *others]
    return first, *(other for other in others if not isinstance(other, FalseItem))
