"""prefix, suffix and substring: words, or values of attributes, that begin with a text, end with it or have it in them.

In an indexed field, which finds nothing but whole words, the end or a part of a word is taken for the word.
Vespa: https://docs.vespa.ai/en/reference/querying/yql.html#prefix
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import ClassVar, Final

from paperwasp.base.records import dataclass
from paperwasp.schema.model import Field
from paperwasp.search.language.scope import Scope
from paperwasp.search.operators.field_match import FieldMatch
from paperwasp.search.operators.item import OneText, TermItem
from paperwasp.search.operators.operator import SearchSpace
from paperwasp.search.operators.printing import annotated, string
from paperwasp.search.operators.shown_words import QueryWord, Target, Way
from paperwasp.search.operators.text import part_match, sequence, tokens_in
from paperwasp.search.operators.value_patterns import PatternItem
from paperwasp.search.operators.word import WordItem
from paperwasp.storage.attributes.patterns import PartPattern, Place, TextPattern


@dataclass(frozen=True, slots=True)
class WordPartItem(OneText, PatternItem):
    """Words, or values, that have the text at one place."""

    is_of_numbers = True
    place: ClassVar[Place]
    """Also its annotation in YQL, and its name in errors."""

    word: str

    def contained(self) -> str:
        return annotated(string(self.word), self.annotations, {self.place: True})

    def pattern(self) -> TextPattern:
        return PartPattern(self.place, self.word)

    def in_index(self, field: Field, space: SearchSpace) -> FieldMatch | None:
        return self._in_streamed(field, space) if space.streamed else self.as_word().match_in(field, space)

    def _in_streamed(self, field: Field, space: SearchSpace) -> FieldMatch | None:
        """Parts of words in streaming search; several tokens stand for words in sequence. A field that says that words
        match by any part of them has prefixes and suffixes match so, too.

        Vespa: utf8substringsearcher.cpp
        """
        tokens = tokens_in(self.word, self.annotations, field, space)
        place = "substring" if field.match_settings.algorithm == "substring" else self.place
        return sequence([part_match(token.term, place, field, space) for token in tokens], field, space)

    def begin_with(self, target: Target, *, within: bool) -> Way:
        """What is shown of words that begin with the text, or have it in them."""
        words = target.words(self.annotations, self.word)
        return tuple(QueryWord(word.terms, prefix=True, within=within or word.within) for word in words)


@dataclass(frozen=True, slots=True)
class PrefixItem(WordPartItem):
    """Words, or values, that begin with the text."""

    place = pattern_name = "prefix"

    def in_index(self, field: Field, space: SearchSpace) -> FieldMatch | None:
        return self._in_streamed(field, space) if space.streamed else PatternItem.in_index(self, field, space)

    def shown_words(self, target: Target) -> Way:
        return self.begin_with(target, within=False)


@dataclass(frozen=True, slots=True)
class SuffixItem(WordPartItem):
    """Words, or values, that end with the text."""

    place = pattern_name = "suffix"


@dataclass(frozen=True, slots=True)
class SubstringItem(WordPartItem):
    """Words, or values, that have the text in them."""

    place = pattern_name = "substring"

    def shown_words(self, target: Target) -> Way:
        return self.begin_with(target, within=True)


_KINDS: Final[Mapping[str, Callable[..., TermItem]]] = {
    kind.place: kind for kind in (PrefixItem, SuffixItem, SubstringItem)
}


def word_of(field: str, text: str, scope: Scope) -> TermItem:
    """The term for a text in a field: a word, or with an annotation the start, the end or a part of one."""
    if not scope.values:
        return WordItem(field, text)
    kinds = [kind for name, kind in _KINDS.items() if scope.get(name, bool)]
    if len(kinds) > 1:
        scope.fail("Only one of prefix, substring and suffix can be set.")
    return (kinds[0] if kinds else WordItem)(field, scope.text(text), annotations=scope.of_term())
