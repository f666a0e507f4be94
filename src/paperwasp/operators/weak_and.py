"""weakAnd: documents that some part matches, as with or.

Vespa may leave out documents that cannot be among the best `targetHits`; ours leaves out none, so its hits are those of
an exhaustive search. What is left out is what the rank profile's `weakand` says: parts that are in too many documents
(`stopword-limit`), and documents that score less than a chosen part does (`adjust-target`). A part scores its weight
times its inverse document frequency, as in bm25, wherever it matches.

Vespa: https://docs.vespa.ai/en/reference/schemas/schemas.html#weakand
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from paperwasp.attribute.column import bitmap_of
from paperwasp.core import _core
from paperwasp.operators.base import Bitmap, Operator, SearchSpace, plan, planner
from paperwasp.operators.or_operator import OrOperator, any_of
from paperwasp.operators.term import NOT_COUNTED, TermOperator, bits_of
from paperwasp.operators.tuning import Tuning
from paperwasp.operators.word import DOCUMENT_TYPE
from paperwasp.query import Item, WeakAndItem
from paperwasp.query.items import DEFAULT_ANNOTATIONS, EquivItem, OrItem, TermItem, WordItem

_FIXED_POINT: Final = 1_000_000
_OFF: Final = 1.0
"""A limit that is not below this is none."""


@dataclass(frozen=True, eq=False, slots=True)
class WeakAndOperator(OrOperator):
    """What any of the operators below matches, where all that match score enough together."""

    scores: tuple[int, ...]
    threshold: int

    def bitmap(self, within: Bitmap | None = None) -> Bitmap:
        result = self.space.empty()
        weak = []
        for child, score in zip(self.children, self.scores, strict=True):
            self.space.check_time()
            if score >= self.threshold:
                result |= child.bitmap(within)
            else:
                weak.append((child, score))
        if sum(score for _, score in weak) >= self.threshold:
            result |= self._together(weak, result, within)
        return result

    def _together(self, weak: list[tuple[Operator, int]], known: Bitmap, within: Bitmap | None) -> Bitmap:
        """Documents beside those that are known in which some of these score enough."""
        space = self.space
        matched = OrOperator(space, tuple(child for child, _ in weak)).bitmap(within) & ~known & space.accept
        lids = _core.bitmap_lids(matched, space.limit)
        total = np.zeros(len(lids), np.int64)
        for child, score in weak:
            space.check_time()
            total += bits_of(child.bitmap(within), lids) * np.int64(score)
        return bitmap_of(lids[total >= self.threshold], space.limit)


@planner(WeakAndItem)
def plan_weak_and(item: WeakAndItem, space: SearchSpace) -> Operator:
    tuning = space.tuning
    children = tuple(child for child in item.children if not _is_every_document(child, space)) or item.children
    if tuning.stopword_limit >= _OFF and tuning.adjust_target >= _OFF:
        return any_of(tuple(plan(child, space) for child in children), space)
    planned = [(child, plan(child, space)) for child in children]
    left = _without_stopwords(planned, tuning, space)
    operators = tuple(operator for _, operator in left)
    if tuning.adjust_target >= _OFF or len(operators) < 2:
        return any_of(operators, space)
    scores = tuple(_score(child, operator, space) for child, operator in left)
    target = _absolute(tuning.adjust_target, space)
    nearest = min(range(len(left)), key=lambda at: abs(operators[at].estimate() - target))
    return WeakAndOperator(space, operators, scores, scores[nearest])


def _is_every_document(item: Item, space: SearchSpace) -> bool:
    """Whether an item asks for the document type that is searched: beside others it says nothing about documents.

    Vespa: QueryRewrite.optimizeByRestrict, which takes such an item out of a weakAnd, and leaves it in an or.
    """
    if isinstance(item, OrItem | EquivItem):
        return any(_is_every_document(child, space) for child in item.children)
    return isinstance(item, WordItem) and item.index == DOCUMENT_TYPE and item.word == space.schema.document.name


def _without_stopwords(
    planned: list[tuple[Item, Operator]], tuning: Tuning, space: SearchSpace
) -> list[tuple[Item, Operator]]:
    if tuning.stopword_limit >= _OFF:
        return planned
    limit = _absolute(tuning.stopword_limit, space)
    left = [each for each in planned if each[1].estimate() <= limit]
    if left or tuning.allow_drop_all:
        return left
    return [min(planned, key=lambda each: each[1].estimate())] if planned else []


def _absolute(share: float, space: SearchSpace) -> int:
    """So many documents. As in Vespa, there is one number of documents more than there are documents."""
    return int(share * (space.documents + 1))


def _frequency(operator: Operator) -> int:
    if isinstance(operator, TermOperator) and operator.document_frequency != NOT_COUNTED:
        return operator.document_frequency[0]
    return operator.estimate()


def _score(child: Item, operator: Operator, space: SearchSpace) -> int:
    notes = child.annotations if isinstance(child, TermItem | EquivItem) else DEFAULT_ANNOTATIONS
    total = space.documents + 1
    frequency = max(_frequency(operator), 1)
    idf = math.log1p((total - frequency + 0.5) / (frequency + 0.5))
    return int(_FIXED_POINT * notes.weight * idf) + 1
