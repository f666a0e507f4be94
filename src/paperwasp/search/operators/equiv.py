"""equiv: terms on one index that match, and rank, as one.

Vespa: https://docs.vespa.ai/en/reference/querying/yql.html#equiv
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from paperwasp.base.records import dataclass
from paperwasp.errors import InvalidQuery
from paperwasp.schema.model import Field
from paperwasp.search.language.scope import Scope
from paperwasp.search.operators.arguments import ArgumentReader
from paperwasp.search.operators.composed import UnionMatch
from paperwasp.search.operators.constants import FalseOperator
from paperwasp.search.operators.field_match import FieldMatch
from paperwasp.search.operators.item import Annotated, Item, TermItem
from paperwasp.search.operators.operator import Operator, SearchSpace
from paperwasp.search.operators.printing import group, group_to_yql
from paperwasp.search.operators.registry import leaf
from paperwasp.search.operators.shown_words import QueryPart, Target
from paperwasp.search.operators.word import WordItem, fields_of, term_operator

_PARTS: Final = ("phrase", "alternatives")
"""The operators that may be parts."""


@dataclass(frozen=True, slots=True)
class EquivItem(Annotated):
    """Terms on one index that rank as one: words, phrases, alternatives, integers."""

    is_canonical = False
    is_plain = True
    rule_kind = "equiv"

    children: tuple[Item, ...]

    def children_of(self) -> tuple[Item, ...]:
        return self.children

    def to_yql(self) -> str:
        return group_to_yql(self)

    def contained(self) -> str:
        return group("equiv", self.children, self.annotations)

    def canonical(self) -> Item:
        terms = tuple(self.canonical_children())
        return terms[0] if len(terms) == 1 else self.over(terms)

    def plan(self, space: SearchSpace) -> Operator:
        if not self.children:
            return FalseOperator(space)
        fields = fields_of(index_of(self.children, "equiv"), space)
        matches = [match for field in fields if (match := self.match_in(field, space)) is not None]
        return term_operator(space, matches, self.annotations)

    def match_in(self, field: Field, space: SearchSpace) -> FieldMatch | None:
        """Any of the terms in one field."""
        found = [match for child in self.children if (match := child.match_in(field, space)) is not None]
        return found[0] if len(found) == 1 else UnionMatch(space, field.name, found) if found else None

    @property
    def is_word(self) -> bool:
        return all(isinstance(child, WordItem) for child in self.children)

    def is_every_document(self, space: SearchSpace) -> bool:
        return any(child.is_every_document(space) for child in self.children)

    def shown(self, target: Target) -> Iterator[QueryPart]:
        yield tuple(way for child in self.children for part in child.shown(target) for way in part)


def index_of(items: tuple[Item, ...], what: str) -> str:
    """The one index that items search. Raises InvalidQuery if they search several."""
    indexes = {found.index for item in items for found in item.walk() if isinstance(found, TermItem)}
    if len(indexes) != 1:
        raise InvalidQuery(f"{what} needs terms on one index; these are on {', '.join(sorted(indexes)) or 'none'}")
    return indexes.pop()


@leaf("equiv")
def read_equiv(parser: ArgumentReader, field: str, scope: Scope, outer: Scope) -> Item:
    """`equiv("a", phrase("b", "c"), …)`: terms that rank as one."""
    start = parser.tokens.current
    terms = tuple(parser.parts(field, outer, _PARTS))
    if len(terms) < 2:
        parser.tokens.fail(f"Expected 2 or more arguments, got {len(terms)}.", start)
    return EquivItem(terms, annotations=scope.of_group(outer))
