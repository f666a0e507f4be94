"""alternatives: forms of one word, any of which counts, as one term. They are searched as they are, not stemmed.

Vespa: https://docs.vespa.ai/en/reference/querying/yql.html#alternatives
"""

from __future__ import annotations

from dataclasses import replace

from paperwasp.base.records import dataclass
from paperwasp.schema.model import Field
from paperwasp.search.language.scope import Scope
from paperwasp.search.operators.arguments import ArgumentReader
from paperwasp.search.operators.composed import UnionMatch
from paperwasp.search.operators.field_match import FieldMatch
from paperwasp.search.operators.item import CHARACTERS_OF_LOOKUP, Item, TermItem
from paperwasp.search.operators.operator import Operator, SearchSpace
from paperwasp.search.operators.printing import annotated, call, keys
from paperwasp.search.operators.registry import Argument, leaf
from paperwasp.search.operators.shown_words import QueryWord, Target, Way
from paperwasp.search.operators.word import WordItem, fields_of, term_operator


@dataclass(frozen=True, slots=True)
class WordAlternativesItem(TermItem):
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
def read_alternatives(parser: ArgumentReader, field: str, scope: Scope, outer: Scope) -> Item:
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
