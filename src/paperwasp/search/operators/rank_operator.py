"""rank: documents that the first child matches; the other children only give ranking something to look at."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from paperwasp.base.records import dataclass
from paperwasp.search.language.scope import Scope
from paperwasp.search.operators.arguments import ArgumentReader
from paperwasp.search.operators.constants import FalseItem, led_by_first
from paperwasp.search.operators.field_match import Bitmap
from paperwasp.search.operators.item import Composite, Item, plan
from paperwasp.search.operators.masked import terms_where_matched
from paperwasp.search.operators.operator import BOTH, Operator, SearchSpace, TermOperator
from paperwasp.search.operators.printing import call
from paperwasp.search.operators.registry import Argument, condition
from paperwasp.search.operators.shown_words import QueryPart, Target


@dataclass(frozen=True, eq=False, slots=True)
class RankOperator(Operator):
    """Matches what the first operator matches; the others only give terms to ranking."""

    element_join = BOTH

    space: SearchSpace
    children: tuple[Operator, ...]
    finders: tuple[Operator, ...]
    """Those that only rank, and look for a number of hits among those that the first operator matches."""

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


@dataclass(frozen=True, slots=True)
class RankItem(Composite):
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
def read_rank(parser: ArgumentReader, scope: Scope) -> Item:
    """`rank(a, b, …)`: what `a` matches; the others only add to ranking."""
    return RankItem(parser.arguments(scope))
