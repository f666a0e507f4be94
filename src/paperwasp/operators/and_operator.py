"""and: documents that all children match.

The child that matches the fewest goes first, the others look only at what is left; what looks for a number of hits
goes last, to find them among the documents that all others match, and a weakAnd after it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from paperwasp.operators.base import Operator, SearchSpace, TermOperator, plan, planner
from paperwasp.operators.constants import TrueOperator
from paperwasp.operators.field_match import Bitmap
from paperwasp.query import AndItem


@dataclass(frozen=True, eq=False)
class AndOperator(Operator):
    """Matches the documents that all of the operators below match.

    It remembers its order and estimate: each asks all that is below, and in a deep tree everybody above asks again.
    """

    space: SearchSpace
    children: tuple[Operator, ...]

    def bitmap(self, within: Bitmap | None = None) -> Bitmap:
        first, *others = self.order()
        result = first.bitmap(within)
        result &= self.space.accept if within is None else within
        for child in others:
            if not result.any():
                break
            self.space.check_time()
            result &= child.bitmap(result)
        return result

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

    def children_of(self) -> tuple[Operator, ...]:
        return self.children

    def terms(self) -> Iterator[TermOperator]:
        for child in self.children:
            yield from child.terms()


def _turn(child: Operator) -> tuple[bool, bool, int]:
    return child.depends_on_hits, child.targets_hits, child.estimate()


@planner(AndItem)
def plan_and(item: AndItem, space: SearchSpace) -> Operator:
    children = tuple(plan(child, space) for child in item.children)
    if not children:
        return TrueOperator(space)
    return children[0] if len(children) == 1 else AndOperator(space, children)
