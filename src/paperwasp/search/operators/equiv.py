"""equiv and alternatives: terms on one index that match, and rank, as one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from paperwasp.base.records import replace
from paperwasp.errors import InvalidQuery
from paperwasp.schema.model import Field
from paperwasp.search.operators.boolean import FalseOperator
from paperwasp.search.operators.composed import UnionMatch
from paperwasp.search.operators.field_match import FieldMatch
from paperwasp.search.operators.item import CHARACTERS_OF_LOOKUP, Annotated, Item, TermItem
from paperwasp.search.operators.notation import (
    Argument,
    ArgumentReader,
    annotated,
    call,
    group,
    group_to_yql,
    keys,
    leaf,
)
from paperwasp.search.operators.operator import Operator, SearchSpace
from paperwasp.search.operators.text import QueryPart, QueryWord, Target, Way
from paperwasp.search.operators.word import WordItem, fields_of, term_operator
from paperwasp.search.yql_syntax import AnnotationScope

# equiv: terms on one index that match, and rank, as one.
#
# Vespa: https://docs.vespa.ai/en/reference/querying/yql.html#equiv


_PARTS: Final = ("phrase", "alternatives")
"""The operators that may be parts."""


class EquivItem(Annotated, frozen=True):
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
def read_equiv(parser: ArgumentReader, field: str, scope: AnnotationScope, outer: AnnotationScope) -> Item:
    """`equiv("a", phrase("b", "c"), …)`: terms that rank as one."""
    start = parser.tokens.current
    terms = tuple(parser.parts(field, outer, _PARTS))
    if len(terms) < 2:
        parser.tokens.fail(f"Expected 2 or more arguments, got {len(terms)}.", start)
    return EquivItem(terms, annotations=scope.of_group(outer))


# alternatives: forms of one word, any of which counts, as one term. They are searched as they are, not stemmed.
#
# Vespa: https://docs.vespa.ai/en/reference/querying/yql.html#alternatives


class WordAlternativesItem(TermItem, frozen=True):
    """Forms of one word, any of which counts: (form, exactness from 0 to 1)."""

    is_plain = True

    alternatives: tuple[tuple[str, float], ...]

    def contained(self) -> str:
        return annotated(call("alternatives", [keys(self.alternatives)]), self.annotations)

    def counted_words(self) -> tuple[str, ...]:
        return tuple(form for form, _ in self.alternatives)

    def lookups(self) -> int:
        return len(self.alternatives) + sum(map(len, self.counted_words())) // CHARACTERS_OF_LOOKUP

    def plan(self, space: SearchSpace) -> Operator:
        found = (self.match_in(field, space) for field in fields_of(self.index, space))
        return term_operator(space, [match for match in found if match is not None], self.annotations)

    def match_in(self, field: Field, space: SearchSpace) -> FieldMatch | None:
        """Any of the forms in one field."""
        notes = replace(self.annotations, stem=False)
        words = (WordItem(self.index, form, annotations=notes) for form, _ in self.alternatives)
        found = [match for word in words if (match := word.match_in(field, space)) is not None]
        return found[0] if len(found) == 1 else UnionMatch(space, field.name, found) if found else None

    @property
    def is_word(self) -> bool:
        return True

    def shown_words(self, target: Target) -> Way:
        forms = [word.terms for form, _ in self.alternatives for word in target.words(self.annotations, form)]
        return (QueryWord(frozenset().union(*forms)),)


@leaf("alternatives", Argument.LITERAL)
def read_alternatives(parser: ArgumentReader, field: str, scope: AnnotationScope, outer: AnnotationScope) -> Item:
    """`alternatives({"sneakers": 1.0, "shoes": 0.7})`: forms of one word, each with its exactness."""
    start = parser.tokens.current
    forms = parser.value()
    if not isinstance(forms, dict) or not forms:
        parser.tokens.fail("alternatives takes a map of words and their exactness", start)
    for word, exactness in forms.items():
        if type(exactness) not in (int, float):
            parser.tokens.fail(f"the exactness of '{word}' must be a number, not {exactness!r}", start)
    exact = tuple((word, float(exactness)) for word, exactness in forms.items())
    return WordAlternativesItem(field, exact, annotations=scope.of_term())
