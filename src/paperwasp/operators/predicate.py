"""predicate(): documents whose predicate the features of the query fulfil, in one of its subqueries at least.

Vespa: https://docs.vespa.ai/en/schemas/predicate-fields.html
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from paperwasp.attribute.predicate import PredicateView
from paperwasp.core import _core
from paperwasp.document.types import PREDICATE
from paperwasp.errors import IllegalQuery
from paperwasp.operators.base import Operator, SearchSpace, TermOperator, planner
from paperwasp.operators.constants import FalseOperator
from paperwasp.operators.field_match import Bitmap, FieldMatch, Lids
from paperwasp.operators.items import PredicateItem
from paperwasp.schema.model import Field

_LEAST, _MOST = -(2**63), 2**63 - 1


class PredicateMatch(FieldMatch):
    """The match of one predicate() in its field."""

    def __init__(self, space: SearchSpace, field: str, column: PredicateView, item: PredicateItem) -> None:
        self.field = field
        self._space = space
        self._column = column
        self._item = item

    @cached_property
    def _results(self) -> NDArray[np.uint64]:
        """The subqueries in which it holds, by code of a predicate; the last is for codes that are newer."""
        return np.append(self._column.evaluate(self._item.attributes, self._item.ranges), np.uint64(0))

    @cached_property
    def _bitmap(self) -> Bitmap:
        bitmap = self._space.empty()
        table = (self._results != 0).astype(np.uint8)
        _core.member_bitmap(self._column.codes[: self._space.limit], table, bitmap)
        return bitmap

    def add_to(self, bitmap: Bitmap) -> None:
        bitmap |= self._bitmap

    def frequency(self) -> int:
        return _core.bitmap_count(self._bitmap, self._space.accept)

    def estimate(self) -> int:
        return self._space.documents

    def occurrences(self, lids: Lids) -> NDArray[np.int32]:
        matched: NDArray[np.int32] = (self.subqueries(lids) != 0).astype(np.int32)
        return matched

    def subqueries(self, lids: Lids) -> NDArray[np.uint64]:
        """The subqueries that each document matches: a bit for each."""
        codes = np.minimum(self._column.codes[lids], len(self._results) - 1)
        found: NDArray[np.uint64] = self._results[codes]
        return found


@planner(PredicateItem)
def plan_predicate(item: PredicateItem, space: SearchSpace) -> Operator:
    field = space.schema.field_named(item.index)
    if field is None:
        return FalseOperator(space)
    if field.type != PREDICATE:
        raise IllegalQuery(f"Index '{item.index}' is not a predicate attribute.")
    _check_bounds(item, field)
    column = space.columns.get(field.name)
    if not isinstance(column, PredicateView):
        return FalseOperator(space)
    return TermOperator(space, [PredicateMatch(space, field.name, column, item)], item.annotations)


def _check_bounds(item: PredicateItem, field: Field) -> None:
    settings = field.index
    low = _LEAST if settings is None or settings.lower_bound is None else settings.lower_bound
    high = _MOST if settings is None or settings.upper_bound is None else settings.upper_bound
    for name, value, _ in item.ranges:
        if not low <= value <= high:
            raise IllegalQuery(f"{name}={value} outside configured predicate bounds.")
