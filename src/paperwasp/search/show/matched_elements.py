"""Which elements of a field are shown: those that a query has matched, with `matched-elements-only`; or those that a
summary feature names, with `select-elements-by`.

Counted is what terms match in the field itself or in its parts (`persons.name`), each for itself, and what sameElement
matches as a whole. A negated term counts for nothing; all others do, also below `rank`.

Vespa: https://docs.vespa.ai/en/reference/schemas/schemas.html#matched-elements-only and #select-elements-by
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Final

import numpy as np

from paperwasp.base.patterns import compile_later
from paperwasp.core import _core
from paperwasp.document.tensor.value import Tensor
from paperwasp.search.operators import FieldMatch, Operator, TermOperator
from paperwasp.search.operators.boolean import NotOperator
from paperwasp.search.operators.field_match import Lids, Occurrences
from paperwasp.search.operators.same_element import SameElementOperator
from paperwasp.search.phases.ranked_hits import RankedHits

_LEADING_NUMBER: Final = compile_later("[0-9]{1,9}")


def matched_elements(operator: Operator, field: str, lids: Lids) -> Occurrences:
    """The elements of a field that a planned query matches in documents it has found (lids that rise).

    Gives (offsets[lids + 1], numbers): those of document i are numbers[offsets[i]:offsets[i + 1]], from 0, rising.
    """
    found = [match.elements(lids) for match in _matches(operator, field)]
    if not found:
        return np.zeros(len(lids) + 1, np.uint32), np.zeros(0, np.uint32)
    return _core.merge_positions([offsets for offsets, _ in found], [numbers for _, numbers in found])


class ElementsOfHits:
    """The elements of some hits, found for all of them at once, when a field or feature is first asked about."""

    def __init__(self, ranked: RankedHits, numbers: Sequence[int]) -> None:
        """`numbers`: those of the hits among the ranked ones."""
        self._ranked = ranked
        self._numbers = numbers
        self._found: dict[str, Occurrences] = {}
        self._named: dict[str, Mapping[int, list[int]]] = {}

    @cached_property
    def _lids(self) -> list[int]:
        lids: list[int] = self._ranked.lids[self._numbers].tolist()
        return lids

    @cached_property
    def _places(self) -> Mapping[int, int]:
        """Lid → its place among the rising ones."""
        return {lid: place for place, lid in enumerate(sorted(set(self._lids)))}

    def matched(self, field: str, lid: int) -> list[int]:
        """The numbers of a field's elements that the query matched in one of the hits, rising."""
        if field not in self._found:
            operator = self._ranked.bound.setting.operator
            self._found[field] = matched_elements(operator, field, np.fromiter(self._places, np.uint32))
        offsets, numbers = self._found[field]
        place = self._places[lid]
        return [int(number) for number in numbers[offsets[place] : offsets[place + 1]]]

    def named_by(self, feature: str, lid: int) -> list[int]:
        """The numbers of the elements that a summary feature names in one of the hits, rising; none, where the rank
        profile has no such feature."""
        if feature not in self._named:
            self._named[feature] = self._all_named_by(feature)
        return self._named[feature].get(lid, [])

    def _all_named_by(self, feature: str) -> Mapping[int, list[int]]:
        program = self._ranked.bound.profile.summary_features.get(feature)
        if program is None:
            return {}
        rows = self._ranked.features({feature: program}, self._numbers)
        return {lid: _named(row[feature]) for lid, row in zip(self._lids, rows, strict=True)}


def _named(value: float | Tensor) -> list[int]:
    """The labels of a tensor's only mapped dimension as numbers. One that does not begin with a number is 0, as in
    Vespa."""
    if not isinstance(value, Tensor) or len(value.type.mapped) != 1:
        return []
    leading = (_LEADING_NUMBER.match(label) for (label,) in value.labels)
    return sorted(int(number[0]) if number is not None else 0 for number in leading)


def _matches(operator: Operator, field: str) -> Iterator[FieldMatch]:
    """The terms below that count."""
    children = operator.children_of()
    if isinstance(operator, NotOperator):
        yield from _matches(children[0], field)
    elif isinstance(operator, SameElementOperator) or (isinstance(operator, TermOperator) and not children):
        yield from (match for match in operator.matches if f"{match.field}.".startswith(f"{field}."))
    else:
        for child in children:
            yield from _matches(child, field)
