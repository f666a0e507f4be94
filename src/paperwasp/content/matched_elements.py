"""Which elements of a field a query has matched: what `matched-elements-only` shows of it.

Counted is what terms match in the field itself or in its parts (`persons.name`), each for itself, and what sameElement
matches as a whole. A negated term counts for nothing; all others do, also below `rank`.

Vespa: https://docs.vespa.ai/en/reference/schemas/schemas.html#matched-elements-only
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from paperwasp.core import _core
from paperwasp.operators import FieldMatch, Operator, TermOperator
from paperwasp.operators.not_operator import NotOperator
from paperwasp.operators.same_element import SameElementOperator
from paperwasp.operators.term import Lids, Occurrences


def matched_elements(operator: Operator, field: str, lids: Lids) -> Occurrences:
    """The elements of a field that a planned query matches in documents it has found (lids that rise).

    Gives (offsets[lids + 1], numbers): those of document i are numbers[offsets[i]:offsets[i + 1]], from 0, rising.
    """
    found = [match.elements(lids) for match in _matches(operator, field)]
    if not found:
        return np.zeros(len(lids) + 1, np.uint32), np.zeros(0, np.uint32)
    return _core.merge_positions([offsets for offsets, _ in found], [numbers for _, numbers in found])


class ElementsOfHits:
    """The matched elements of some hits, found for all of them at once, when a field is first asked about."""

    def __init__(self, operator: Operator, lids: Iterable[int]) -> None:
        self._operator = operator
        self._places = {lid: place for place, lid in enumerate(sorted(set(lids)))}
        self._found: dict[str, Occurrences] = {}

    def __call__(self, field: str, lid: int) -> list[int]:
        """The numbers of a field's elements that the query matched in one of the hits, rising."""
        if field not in self._found:
            self._found[field] = matched_elements(self._operator, field, np.fromiter(self._places, np.uint32))
        offsets, numbers = self._found[field]
        place = self._places[lid]
        return [int(number) for number in numbers[offsets[place] : offsets[place + 1]]]


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
