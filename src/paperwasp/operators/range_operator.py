"""Comparisons and range(): values of an attribute between two bounds; a single number is a word too.

Vespa: https://docs.vespa.ai/en/reference/querying/yql.html#range
"""

from __future__ import annotations

from typing import Final

from paperwasp.attribute.number_term import NumberTerm
from paperwasp.document.float_text import double_text
from paperwasp.operators.attribute_terms import range_match, word_match
from paperwasp.operators.base import Operator, SearchSpace, planner
from paperwasp.operators.field_match import FieldMatch
from paperwasp.operators.items import RangeItem
from paperwasp.operators.term import IndexMatch
from paperwasp.operators.text import NOWHERE, sequence
from paperwasp.operators.word import fields_of, seen_match, term_operator
from paperwasp.patterns import compile_later
from paperwasp.schema.model import Field

_WORDS: Final = compile_later(r"[0-9A-Za-z]+")


@planner(RangeItem)
def plan_range(item: RangeItem, space: SearchSpace) -> Operator:
    term = NumberTerm(item.low, item.high, item.low_inclusive, item.high_inclusive, item.hit_limit)
    text = "" if term.low is None or term != NumberTerm(term.low, term.low) else _as_text(term.low)
    found = (_match(space, field, term, text) for field in fields_of(item.index, space))
    matches = [seen_match(match, space) for match in found if match is not None]
    length = len(_WORDS.findall(text)) if any(match.is_positional for match in matches) else 1
    return term_operator(space, matches, item.annotations, length)


def _match(space: SearchSpace, field: Field, term: NumberTerm, text: str) -> FieldMatch | None:
    """The match of the range in a field. In texts only a single number matches: those that write it.

    Vespa: CreateBlueprintVisitorHelper::handleNumberTermAsText for indexes, whose words are found as they are;
    attributes of strings read any term as text.
    """
    if space.has_index(field):
        words = [space.index.term_id(word.lower()) for word in _WORDS.findall(text)]
        parts = [IndexMatch(space, field.name, word if word >= 0 else NOWHERE) for word in words]
        return sequence([*parts], field, space)
    column = space.column(field)
    if column is None:
        return None
    return word_match(space, field, column, text) if column.is_string else range_match(space, field, column, term)


def _as_text(number: int | float) -> str:
    """A number as Vespa writes it into the query."""
    return str(number) if isinstance(number, int) else double_text(number)
