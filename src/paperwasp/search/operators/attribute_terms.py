"""Terms on attributes: a word and a range as values of a column.

Vespa: https://docs.vespa.ai/en/content/attributes.html and https://docs.vespa.ai/en/reference/querying/yql.html#range
"""

from __future__ import annotations

import numpy as np

from paperwasp.core import _core
from paperwasp.schema.model import Field
from paperwasp.search.operators.operator import SearchSpace
from paperwasp.search.operators.term import AttributeMatch
from paperwasp.storage.attributes import ColumnView
from paperwasp.storage.attributes.number_term import NumberTerm, number_term
from paperwasp.storage.attributes.wanted import Wanted


def word_match(space: SearchSpace, field: Field, column: ColumnView, word: str) -> AttributeMatch:
    """A word: a string, or in a column of numbers what it says there, a number or a range."""
    term = None if column.is_string else number_term(word)
    if term is None:
        return AttributeMatch(space, field.name, column, column.any_of(word))
    if term == NumberTerm(term.low, term.low) and term.low is not None:
        return AttributeMatch(space, field.name, column, column.any_of(term.low))
    return range_match(space, field, column, term)


def range_match(space: SearchSpace, field: Field, column: ColumnView, term: NumberTerm) -> AttributeMatch:
    """A range. Where the field has fast-search, a hit limit leaves only the values nearest to one end of it; where it
    has not, it has no effect, as in Vespa."""
    wanted = column.in_range(*term[:4])
    if term.hit_limit and field.attribute is not None and field.attribute.fast_search:
        wanted = _limit_hits(space, column, wanted, term)
    return AttributeMatch(space, field.name, column, wanted)


def _limit_hits(space: SearchSpace, column: ColumnView, wanted: Wanted, term: NumberTerm) -> Wanted:
    """Narrows a range to the lowest values (a limit below 0: highest) of that number of documents, no value halved."""
    lids = _core.bitmap_lids(column.bitmap(wanted, space.limit) & space.accept, space.limit)
    values = column.values_at(lids, wanted)
    count = abs(term.hit_limit)
    if len(values) <= count:
        return wanted
    place = count - 1 if term.hit_limit > 0 else len(values) - count
    last = np.partition(values, place)[place].item()
    if term.hit_limit > 0:
        return column.in_range(term.low, last, term.low_inclusive, True)
    return column.in_range(last, term.high, True, term.high_inclusive)
