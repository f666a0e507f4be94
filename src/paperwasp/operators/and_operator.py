"""and: documents that all children match."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from paperwasp.operators.base import Bitmap, Operator, SearchSpace, plan, planner
from paperwasp.operators.constants import TrueOperator
from paperwasp.operators.term import TermOperator
from paperwasp.query import AndItem


@dataclass(frozen=True, eq=False, slots=True)
class AndOperator(Operator):
    """What all of the operators below match."""

    children: tuple[Operator, ...]

    def bitmap(self, within: Bitmap | None = None) -> Bitmap:
        result = self.children[0].bitmap(within)
        for child in self.children[1:]:
            if not result.any():
                break
            result &= child.bitmap(result if within is None else result & within)
        return result

    def estimate(self) -> int:
        return min(child.estimate() for child in self.children)

    def children_of(self) -> tuple[Operator, ...]:
        return self.children

    def terms(self) -> Iterator[TermOperator]:
        for child in self.children:
            yield from child.terms()


@planner(AndItem)
def plan_and(item: AndItem, space: SearchSpace) -> Operator:
    if not item.children:
        return TrueOperator(space)
    return AndOperator(tuple(plan(child, space) for child in item.children))
