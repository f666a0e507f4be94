"""and not: documents that the first child matches and no other does."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from paperwasp.base.records import dataclass
from paperwasp.search.operators.and_operator import AndItem
from paperwasp.search.operators.constants import FalseItem, TrueItem, led_by_first
from paperwasp.search.operators.field_match import Bitmap
from paperwasp.search.operators.item import Composite, Item, plan
from paperwasp.search.operators.operator import FIRST_ONLY, Operator, SearchSpace, TermOperator
from paperwasp.search.operators.printing import operand
from paperwasp.search.operators.shown_words import QueryPart, Target


@dataclass(frozen=True, eq=False, slots=True)
class NotOperator(Operator):
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


@dataclass(frozen=True, slots=True)
class NotItem(Composite):
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
