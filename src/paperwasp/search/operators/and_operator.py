"""and: documents that all children match.

The child that matches the fewest goes first, the others look only at what is left; what looks for a number of hits
goes last, to find them among the documents that all others match, and a weakAnd after it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property

from paperwasp.base.records import dataclass
from paperwasp.search.operators.constants import FalseItem, TrueOperator, has_false
from paperwasp.search.operators.field_match import Bitmap
from paperwasp.search.operators.grams import ALL, COMPOSITES
from paperwasp.search.operators.item import Composite, Item, plan
from paperwasp.search.operators.operator import BOTH, Operator, SearchSpace, TermOperator
from paperwasp.search.operators.printing import operand


@dataclass(frozen=True, eq=False)
class AndOperator(Operator):
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


@dataclass(frozen=True, slots=True)
class AndItem(Composite):
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


COMPOSITES[ALL] = AndItem
