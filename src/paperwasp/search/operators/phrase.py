"""phrase and uri: words, or tokens of a URI, next to each other, in order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from itertools import groupby
from typing import Final

import numpy as np
from numpy.typing import NDArray

from paperwasp.base.records import replace
from paperwasp.core import _core
from paperwasp.errors import IllegalQuery, InvalidQuery
from paperwasp.schema.model import Field, Schema
from paperwasp.search.operators.field_match import FieldMatch, Lids
from paperwasp.search.operators.item import CHARACTERS_OF_LOOKUP, GRAM_COMPOSITES, Item, TermItem
from paperwasp.search.operators.notation import ArgumentReader, annotated, call, group, group_to_yql, leaf, string
from paperwasp.search.operators.operator import Operator, SearchSpace
from paperwasp.search.operators.term import FoundMatch, word_match
from paperwasp.search.operators.text import QueryPart, Target, Way, sequence, token_match, tokens_in, tokens_match
from paperwasp.search.operators.word import WordItem, fields_of, term_operator
from paperwasp.search.yql_syntax import Annotations, AnnotationScope

# phrase: words next to each other, in order. A part may have several forms; an attribute, which has no places, is
# matched by a phrase of one word only.
#
# Vespa: https://docs.vespa.ai/en/reference/querying/yql.html#phrase
# Differs: an equiv of single words may be a part, which Vespa does not allow.


_IN_A_ROW: Final = 5
_IN_A_PHRASE: Final = 10
_PARTS: Final = ("phrase", "alternatives")
"""The operators that may be parts."""


class PhraseItem(TermItem, frozen=True):
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


GRAM_COMPOSITES["phrase"] = lambda grams: PhraseItem(grams[0].index, grams, annotations=grams[0].annotations)


@leaf("phrase")
def read_phrase(parser: ArgumentReader, field: str, scope: AnnotationScope, outer: AnnotationScope) -> Item:
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


# uri: tokens of a URI next to each other, in order, in a URI or in one part of it (`url.hostname`, `url.path`, …).
#
# An anchor ties them to the start or the end of the value that they stand in.
# Vespa: https://docs.vespa.ai/en/reference/querying/yql.html#uri


class AnchoredMatch(FoundMatch):
    """A match of some tokens, where its first one starts the value or its last one ends it."""

    def __init__(self, space: SearchSpace, match: FieldMatch, tokens: int, start: bool, end: bool) -> None:
        super().__init__(space, match.field)
        self._match = match
        self._tokens = tokens
        self._start = start
        self._end = end

    @cached_property
    def found(self) -> tuple[Lids, NDArray[np.uint32], NDArray[np.uint32]]:
        bitmap = self._space.empty()
        self._match.add_to(bitmap)
        lids = _core.bitmap_lids(bitmap & self._space.accept, self._space.limit)
        offsets, positions = self._match.positions(lids)
        places = self._space.index.locate(self.number, lids, offsets, positions)
        kept = np.ones(len(positions), np.bool_)
        if self._start:
            kept &= positions == places.starts
        if self._end:
            kept &= positions + self._tokens == places.ends
        ends = np.concatenate([[0], np.cumsum(kept)]).astype(np.uint32)[offsets]
        there = ends[1:] > ends[:-1]
        return lids[there], np.concatenate([ends[:1], ends[1:][there]]), positions[kept]


class UriItem(TermItem, frozen=True):
    """Tokens of a URI next to each other, in order. An anchor ties them to the start or end of the field."""

    copied = ("text",)
    is_seen_by_rules = False

    text: str
    start_anchor: bool = False
    end_anchor: bool = False

    def contained(self) -> str:
        extra = {"startAnchor": True} if self.start_anchor else {}
        if self.end_anchor != _ends(self.index):
            extra["endAnchor"] = self.end_anchor
        return annotated(call("uri", [string(self.text)]), self.annotations, extra)

    def plan(self, space: SearchSpace) -> Operator:
        found = (self.match_in(field, space) for field in fields_of(self.index, space))
        return term_operator(space, [match for match in found if match is not None], self.annotations)

    def match_in(self, field: Field, space: SearchSpace) -> FieldMatch | None:
        """The tokens in one field; in an attribute, which has no tokens, the value."""
        if not space.has_index(field):
            return WordItem(self.index, self.text, annotations=self.annotations).match_in(field, space)
        tokens = tokens_in(self.text, self.annotations, field, space, in_phrase=True)
        match = tokens_match(tokens, field, space)
        if match is None or not (self.start_anchor or self.end_anchor):
            return match
        return AnchoredMatch(space, match, len(tokens), self.start_anchor, self.end_anchor)


def _ends(field: str) -> bool:
    """Whether the tokens are tied to the end of a field where the query does not say: of a host name."""
    return field.endswith(".hostname")


@leaf("uri")
def read_uri(parser: ArgumentReader, field: str, scope: AnnotationScope, outer: AnnotationScope) -> Item:
    """`uri("vespa.ai/foo")`: its tokens next to each other."""
    text = parser.copied_text("a URL")
    end = scope.get("endAnchor", bool)
    start = bool(scope.get("startAnchor", bool))
    return UriItem(field, text, start, _ends(field) if end is None else end, annotations=scope.of_term())
