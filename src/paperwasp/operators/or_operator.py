"""or, and weakAnd: documents that some child matches.

weakAnd may leave out documents that cannot be among the best `targetHits`; ours leaves
out none, so its hits are those of an exhaustive search.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from paperwasp.operators.base import Bitmap, Operator, SearchSpace, plan, planner
from paperwasp.operators.constants import FalseOperator
from paperwasp.operators.masked import terms_where_matched
from paperwasp.operators.term import TermOperator
from paperwasp.query import Item, OrItem, WeakAndItem


@dataclass(frozen=True, eq=False, slots=True)
class OrOperator(Operator):
    """What any of the operators below matches."""

    space: SearchSpace
    children: tuple[Operator, ...]

    def bitmap(self, within: Bitmap | None = None) -> Bitmap:
        result = self.children[0].bitmap(within)
        for child in self.children[1:]:
            self.space.check_time()
            result |= child.bitmap(within)
        return result

    def estimate(self) -> int:
        return min(self.space.documents, sum(child.estimate() for child in self.children))

    def children_of(self) -> tuple[Operator, ...]:
        return self.children

    def terms(self) -> Iterator[TermOperator]:
        for child in self.children:
            yield from terms_where_matched(child, self.space)


@planner(OrItem)
def plan_or(item: OrItem, space: SearchSpace) -> Operator:
    return _any_of(item.children, space)


@planner(WeakAndItem)
def plan_weak_and(item: WeakAndItem, space: SearchSpace) -> Operator:
    return _any_of(item.children, space)


def _any_of(children: tuple[Item, ...], space: SearchSpace) -> Operator:
    planned = tuple(plan(child, space) for child in children)
    if not planned:
        return FalseOperator(space)
    return planned[0] if len(planned) == 1 else OrOperator(space, planned)
