"""alternatives: forms of one word, any of which counts, as one term. They are searched as they are, not stemmed.

Vespa: https://docs.vespa.ai/en/reference/querying/yql.html#alternatives
"""

from __future__ import annotations

from dataclasses import replace

from paperwasp.operators.base import Operator, SearchSpace, planner
from paperwasp.operators.composed import UnionMatch
from paperwasp.operators.field_match import FieldMatch
from paperwasp.operators.items import WordAlternativesItem, WordItem
from paperwasp.operators.text import match_in, text_matcher
from paperwasp.operators.word import fields_of, term_operator
from paperwasp.schema.model import Field


@planner(WordAlternativesItem)
def plan_alternatives(item: WordAlternativesItem, space: SearchSpace) -> Operator:
    found = (match_alternatives(item, field, space) for field in fields_of(item.index, space))
    return term_operator(space, [match for match in found if match is not None], item.annotations)


@text_matcher(WordAlternativesItem)
def match_alternatives(item: WordAlternativesItem, field: Field, space: SearchSpace) -> FieldMatch | None:
    """Any of the forms in one field."""
    notes = replace(item.annotations, stem=False)
    words = (WordItem(item.index, form, annotations=notes) for form, _ in item.alternatives)
    found = [match for word in words if (match := match_in(word, field, space)) is not None]
    return found[0] if len(found) == 1 else UnionMatch(space, field.name, found) if found else None
