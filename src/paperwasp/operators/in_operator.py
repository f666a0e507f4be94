"""in: one of many values of an attribute, or one of many words of an indexed field.

Vespa: https://docs.vespa.ai/en/reference/querying/yql.html#in
"""

from __future__ import annotations

from dataclasses import replace

from paperwasp.operators.base import Operator, SearchSpace, planner
from paperwasp.operators.composed import UnionMatch
from paperwasp.operators.term import AttributeMatch, FieldMatch
from paperwasp.operators.text import tokens_in, tokens_match
from paperwasp.operators.word import fields_of, term_operator
from paperwasp.query import InItem
from paperwasp.query.items import Annotations
from paperwasp.schema.model import Field


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
    found = (token_of(value, item.annotations, field, space) for value in item.values)
    return UnionMatch(space, field.name, [match for match in found if match is not None])


def token_of(value: str | int, notes: Annotations, field: Field, space: SearchSpace) -> FieldMatch | None:
    """One of many words of an indexed field: it is not stemmed. None: it has no tokens."""
    unstemmed = replace(notes, stem=False)
    return tokens_match(tokens_in(str(value), unstemmed, field, space, in_phrase=True), field, space)
