"""or: documents that some child matches."""

from __future__ import annotations

from collections.abc import Iterator

from paperwasp.base.records import dataclass
from paperwasp.search.operators.constants import FalseItem, FalseOperator, has_false
from paperwasp.search.operators.field_match import Bitmap
from paperwasp.search.operators.grams import COMPOSITES
from paperwasp.search.operators.item import Composite, Item, plan
from paperwasp.search.operators.masked import terms_where_matched
from paperwasp.search.operators.operator import EITHER, Operator, SearchSpace, TermOperator
from paperwasp.search.operators.printing import operand


@dataclass(frozen=True, eq=False, slots=True)
class OrOperator(Operator):
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


@dataclass(frozen=True, slots=True)
class OrItem(Composite):
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


COMPOSITES["any"] = OrItem
