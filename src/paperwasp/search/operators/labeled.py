"""labeled: what its child matches, and for ranking a raw score by the name of a label, where the child matches.

The number is that of a term of its own, which searches no field: field features and the words around do not see it.
Vespa: https://docs.vespa.ai/en/ranking/multivalue-query-operators.html#raw-scores-and-query-item-labeling
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from paperwasp.base.records import replace
from paperwasp.core import _core
from paperwasp.search.operators.boolean import AndItem, FalseItem, has_false
from paperwasp.search.operators.field_match import Bitmap, FieldMatch, Lids
from paperwasp.search.operators.item import Composite, Item, plan
from paperwasp.search.operators.notation import Argument, ArgumentReader, call, condition, string
from paperwasp.search.operators.operator import Operator, SearchSpace, TermOperator
from paperwasp.search.operators.term import bits_of
from paperwasp.search.yql_syntax import Annotations, AnnotationScope


class LabelMatch(FieldMatch):
    """Where an operator matches, with a score that is the same everywhere."""

    field = ""

    def __init__(self, space: SearchSpace, labeled: Operator, score: float) -> None:
        self._space = space
        self._labeled = labeled
        self.score = score

    @cached_property
    def _bitmap(self) -> Bitmap:
        return self._labeled.bitmap()

    def add_to(self, bitmap: Bitmap) -> None:
        bitmap |= self._bitmap

    def frequency(self) -> int:
        return _core.bitmap_count(self._bitmap, self._space.accept)

    def estimate(self) -> int:
        return self._labeled.estimate()

    def occurrences(self, lids: Lids) -> NDArray[np.int32]:
        return bits_of(self._bitmap, lids).astype(np.int32)

    def raw_scores(self, lids: Lids) -> NDArray[np.float64]:
        return np.where(bits_of(self._bitmap, lids), self.score, 0.0)


class LabeledOperator(Struct, Operator, frozen=True, eq=False):
    """Matches what the operator below matches; has its terms, and that of the label."""

    labeled: Operator
    label: TermOperator

    def bitmap(self, within: Bitmap | None = None) -> Bitmap:
        return self.labeled.bitmap(within)

    def possible(self, within: Bitmap | None = None) -> Bitmap | None:
        return self.labeled.possible(within)

    def children_of(self) -> tuple[Operator, ...]:
        return (self.labeled,)

    def terms(self) -> Iterator[TermOperator]:
        yield from self.labeled.terms()
        yield self.label


class LabeledItem(Composite, frozen=True):
    """Its only child; ranking sees `score` as the raw score of `label` for the documents that match."""

    without_elements = "labeled"

    label: str
    score: float

    def with_children(self, children: tuple[Item, ...]) -> Item:
        """Several children are joined by `and`."""
        return replace(self, children=children if len(children) == 1 else (AndItem(children),))

    def to_yql(self) -> str:
        return call("labeled", (self.children[0].to_yql(), string(self.label), repr(self.score)))

    def canonical(self) -> Item:
        children = tuple(self.canonical_children())
        return FalseItem() if has_false(children) else self.over(children)

    def plan(self, space: SearchSpace) -> Operator:
        labeled = plan(self.children[0], space)
        match = LabelMatch(space, labeled, self.score)
        notes = Annotations(label=self.label, significance=0.0)  # said, so that nobody counts the documents for it
        return LabeledOperator(labeled, TermOperator(space, [match], notes))


@condition("labeled", Argument.CONDITION, Argument.LITERAL, Argument.LITERAL, is_fixed=True)
def read_labeled(parser: ArgumentReader, scope: AnnotationScope) -> Item:
    """`labeled(a, "label", 0.5)`: what `a` matches; ranking sees the number as the raw score of the label."""
    tokens = parser.tokens
    item = parser.expression(scope.below())
    tokens.expect(",")
    label = parser.text("a label")
    tokens.expect(",")
    start = tokens.current
    score = parser.value()
    if isinstance(score, bool) or not isinstance(score, int | float):
        tokens.fail(f"expected a number as the score of the label, found {score!r}", start)
    return LabeledItem((item,), label, float(score))
