"""phrase: words next to each other, in order. A part may have several forms; an attribute, which has no places, is
matched by a phrase of one word only.

Vespa: https://docs.vespa.ai/en/reference/querying/yql.html#phrase
Differs: an equiv of single words may be a part, which Vespa does not allow.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Final

from paperwasp.base.records import dataclass
from paperwasp.errors import IllegalQuery, InvalidQuery
from paperwasp.schema.model import Field, Schema
from paperwasp.search.language.annotations import Annotations
from paperwasp.search.language.scope import Scope
from paperwasp.search.operators.arguments import ArgumentReader
from paperwasp.search.operators.attribute_terms import word_match
from paperwasp.search.operators.field_match import FieldMatch
from paperwasp.search.operators.grams import COMPOSITES
from paperwasp.search.operators.item import CHARACTERS_OF_LOOKUP, Item, TermItem
from paperwasp.search.operators.operator import Operator, SearchSpace
from paperwasp.search.operators.printing import group, group_to_yql
from paperwasp.search.operators.registry import leaf
from paperwasp.search.operators.shown_words import QueryPart, Target, Way
from paperwasp.search.operators.text import sequence, token_match, tokens_in
from paperwasp.search.operators.word import WordItem, fields_of, term_operator

_IN_A_ROW: Final = 5
_IN_A_PHRASE: Final = 10
_PARTS: Final = ("phrase", "alternatives")
"""The operators that may be parts."""


@dataclass(frozen=True, slots=True)
class PhraseItem(TermItem):
    """Words next to each other, in order. A part that is not text is a TermItem or an EquivItem on the same index.

    A part that is text has the annotations of the phrase; what annotates a part alone makes it a WordItem.
    """

    is_plain = True

    words: tuple[str | Item, ...]

    def parts_of(self) -> tuple[str | Item, ...]:
        return self.words

    def with_parts(self, parts: tuple[str | Item, ...]) -> Item:
        return replace(self, words=parts)

    def to_yql(self) -> str:
        return group_to_yql(self)

    def contained(self) -> str:
        return group("phrase", self.words, self.annotations)

    def text_of(self) -> str:
        return " ".join(map(str, self.words))

    def with_indexes(self, rename: Callable[[str], str]) -> Item:
        words = tuple(word if isinstance(word, str) else word.with_indexes(rename) for word in self.words)
        return replace(self, index=rename(self.index), words=words)

    def literal_words(self) -> Iterator[tuple[str, str]]:
        for word in self.words:
            yield from ((self.index, word),) if isinstance(word, str) else word.literal_words()

    def check(self, name: str, schemas: Sequence[Schema]) -> None:
        """Vespa: InputCheckingSearcher, which refuses phrases that only repeat a word."""
        if len(self.words) <= _IN_A_ROW:
            return
        words = [word.lower() if isinstance(word, str) else None for word in self.words]
        for word, run in groupby(words):
            if word is not None and sum(1 for _ in run) > _IN_A_ROW:
                raise IllegalQuery(f"More than {_IN_A_ROW} occurrences of term '{word}' in a row detected in phrase")
        for word, count in Counter(words).items():
            if word is not None and count > _IN_A_PHRASE:
                raise IllegalQuery(f"Phrase contains more than {_IN_A_PHRASE} occurrences of term '{word}' in phrase")

    def lookups(self) -> int:
        return len(self.words) + sum(len(word) for word in self.words if isinstance(word, str)) // CHARACTERS_OF_LOOKUP

    def plan(self, space: SearchSpace) -> Operator:
        matches = []
        length = len(self.words)
        for field in fields_of(self.index, space):
            if space.has_index(field):
                parts = _parts(self, field, space)
                length = max(length, len(parts))
                match = sequence(parts, field, space)
            else:
                match = self.match_in(field, space)
            if match is not None:
                matches.append(match)
        return term_operator(space, matches, self.annotations, length)

    def match_in(self, field: Field, space: SearchSpace) -> FieldMatch | None:
        if space.has_index(field):
            return sequence(_parts(self, field, space), field, space)
        column = space.column(field)
        if column is None or len(self.words) != 1 or not isinstance(word := self.words[0], str):
            return None
        return word_match(space, field, column, word)

    @property
    def length(self) -> int:
        return len(self.words)

    def shown(self, target: Target) -> Iterator[QueryPart]:
        """As a whole, also where the grams of words stand apart."""
        if not self.annotations.filter and target.is_named_by(self.index or target.field.name):
            words = self.shown_words(target)
            yield (words,) if words else ()

    def shown_words(self, target: Target) -> Way:
        ways = (
            target.words(self.annotations, part) if isinstance(part, str) else part.shown_words(target)
            for part in self.words
        )
        return tuple(word for way in ways for word in way)


def _parts(item: PhraseItem, field: Field, space: SearchSpace) -> list[FieldMatch]:
    """The matches of the parts of a phrase, each of which takes one position."""
    found: list[FieldMatch] = []
    for part in item.words:
        if isinstance(part, str):
            found.extend(_tokens(part, item.annotations, field, space))
        elif isinstance(part, WordItem):
            found.extend(_tokens(part.word, part.annotations, field, space))
        elif not part.is_word:
            raise InvalidQuery(
                f"A phrase in '{field.name}' is made of words and alternatives, not of {type(part).__name__}"
            )
        elif (match := part.match_in(field, space)) is not None:
            found.append(match)
    return found


def _tokens(word: str, notes: Annotations, field: Field, space: SearchSpace) -> list[FieldMatch]:
    tokens = tokens_in(word, notes, field, space, in_phrase=True)
    return [token_match(token, field, space) for token in tokens]


COMPOSITES["phrase"] = lambda grams: PhraseItem(grams[0].index, grams, annotations=grams[0].annotations)


@leaf("phrase")
def read_phrase(parser: ArgumentReader, field: str, scope: Scope, outer: Scope) -> Item:
    """`phrase("a", "b", …)`. A phrase inside a phrase gives its words to it; one word is no phrase."""
    words: list[str | Item] = []
    plain = outer.of_term()
    for part in parser.parts(field, outer, _PARTS):
        if isinstance(part, PhraseItem):
            words += part.words
        else:
            words.append(part.word if isinstance(part, WordItem) and part.annotations == plain else part)
    annotations = scope.of_group(outer)
    if len(words) == 1:
        return words[0] if isinstance(words[0], Item) else WordItem(field, words[0], annotations=annotations)
    return PhraseItem(field, tuple(words), annotations=annotations)
