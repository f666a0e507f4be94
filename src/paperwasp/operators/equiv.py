"""equiv: terms on one index that match, and rank, as one.

Vespa: https://docs.vespa.ai/en/reference/querying/yql.html#equiv
"""

from __future__ import annotations

from paperwasp.errors import InvalidQuery
from paperwasp.operators.base import Operator, SearchSpace, planner
from paperwasp.operators.composed import UnionMatch
from paperwasp.operators.constants import FalseOperator
from paperwasp.operators.field_match import FieldMatch
from paperwasp.operators.items import EquivItem, Item, TermItem
from paperwasp.operators.text import match_in, text_matcher
from paperwasp.operators.word import fields_of, term_operator
from paperwasp.schema.model import Field


@planner(EquivItem)
def plan_equiv(item: EquivItem, space: SearchSpace) -> Operator:
    if not item.children:
        return FalseOperator(space)
    fields = fields_of(index_of(item.children, "equiv"), space)
    matches = [match for field in fields if (match := match_equiv(item, field, space)) is not None]
    return term_operator(space, matches, item.annotations)


@text_matcher(EquivItem)
def match_equiv(item: EquivItem, field: Field, space: SearchSpace) -> FieldMatch | None:
    """Any of the terms in one field."""
    found = [match for child in item.children if (match := match_in(child, field, space)) is not None]
    return found[0] if len(found) == 1 else UnionMatch(space, field.name, found) if found else None


def index_of(items: tuple[Item, ...], what: str) -> str:
    """The one index that items search. Raises InvalidQuery if they search several."""
    indexes = {found.index for item in items for found in item.walk() if isinstance(found, TermItem)}
    if len(indexes) != 1:
        raise InvalidQuery(f"{what} needs terms on one index; these are on {', '.join(sorted(indexes)) or 'none'}")
    return indexes.pop()
