"""in: one of many values of an attribute, or one of many words of an indexed field.

Vespa: https://docs.vespa.ai/en/reference/querying/yql.html#in
"""

from __future__ import annotations

from dataclasses import replace

from paperwasp.linguistics import query_terms
from paperwasp.operators.base import Operator, SearchSpace, planner
from paperwasp.operators.composed import TokensMatch
from paperwasp.operators.field_match import FieldMatch
from paperwasp.operators.items import InItem
from paperwasp.operators.term import AttributeMatch
from paperwasp.operators.text import tokens_match
from paperwasp.operators.word import fields_of, term_operator
from paperwasp.schema.model import Field
from paperwasp.schema.text_profiles import text_profile


@planner(InItem)
def plan_in(item: InItem, space: SearchSpace) -> Operator:
    matches: list[FieldMatch] = []
    for field in fields_of(item.index, space):
        if space.has_index(field):
            matches.append(_any_word(item, field, space))
        elif (column := space.column(field)) is not None:
            matches.append(AttributeMatch(space, field.name, column, column.any_of(item.values)))
    return term_operator(space, matches, item.annotations)


def _any_word(item: InItem, field: Field, space: SearchSpace) -> FieldMatch:
    found = (token_of(value, field, space) for value in item.values)
    return TokensMatch(space, field.name, [match for match in found if match is not None])


def token_of(value: str | int, field: Field, space: SearchSpace) -> FieldMatch | None:
    """A value as one word of an indexed field: lower-cased, not made tokens of, not stemmed. None: it is empty."""
    as_it_is = replace(text_profile(field), whole=True, gram_size=0)
    return tokens_match(query_terms(as_it_is, str(value), stem=False), field, space)
