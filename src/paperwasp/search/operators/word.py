"""contains, and the words of the simple query language: text in a field or fieldset, a value of an attribute.

A word that the field's tokenizer splits is a phrase; with `andSegmenting` an and of its tokens; where the field is one
of grams, what `gram.match` says. `sddocname` matches the documents of a type.
Vespa: https://docs.vespa.ai/en/reference/querying/yql.html#contains
"""

from __future__ import annotations

from typing import Final

import regex

from paperwasp.base.records import replace
from paperwasp.document.types import POSITION, ArrayType, TensorFieldType
from paperwasp.errors import InvalidQuery
from paperwasp.schema.model import Field
from paperwasp.schema.text_profiles import text_profile
from paperwasp.search.operators.boolean import AndOperator, FalseOperator, OrOperator, TrueOperator
from paperwasp.search.operators.composed import UnionMatch, WithoutPositions
from paperwasp.search.operators.field_match import FieldMatch
from paperwasp.search.operators.item import ALL_GRAMS, CHARACTERS_OF_LOOKUP, OneText, TermItem, grams_together
from paperwasp.search.operators.notation import annotated, string
from paperwasp.search.operators.operator import NO_TUNING, Operator, SearchSpace, TermOperator
from paperwasp.search.operators.term import IndexMatch, word_match
from paperwasp.search.operators.text import Target, Way, token_match, tokens_in, tokens_match
from paperwasp.search.yql_syntax import DEFAULT_ANNOTATIONS, Annotations
from paperwasp.text.linguistics.query import QueryToken

DOCUMENT_TYPE: Final = "sddocname"
"""The index whose only word is the name of a document's type."""

TOKEN: Final = regex.compile(r"[\p{L}\p{N}\p{M}]+(?:'[\p{L}\p{N}\p{M}]+)*|\p{So}")
"""A word, as the internal tokenization finds it."""
_UNSPACED = regex.compile(r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}]")

IN_PIECES: Final = Annotations(and_segmenting=True)
"""The annotations of a word that is several tokens, all of which are required."""


def is_one_token(word: str) -> bool:
    """Whether no field makes several tokens of the word, but for grams. Vespa: AbstractParser.segment."""
    if word.isascii() and word.isalnum():
        return True
    return is_number(word) or bool(TOKEN.fullmatch(word) and "'" not in word and not _UNSPACED.search(word))


def is_number(word: str) -> bool:
    """Whether the word is a number, with or without a sign."""
    return word.removeprefix("-").replace(".", "", 1).isdecimal()


class WordItem(OneText, TermItem, frozen=True):
    """A word or text; of several tokens, a phrase. On an attribute, a value."""

    is_plain = True

    word: str

    def contained(self) -> str:
        return annotated(string(self.word), self.annotations)

    def lookups(self) -> int:
        return 1 + len(self.word) // CHARACTERS_OF_LOOKUP

    def plan(self, space: SearchSpace) -> Operator:
        cache = space.cache
        plain = space.tuning is NO_TUNING and self.annotations is DEFAULT_ANNOTATIONS
        if cache is None or space.streamed or not plain:
            return _plan_word(self, space)
        found = cache.get(self.index, self.word, space.language)
        if found is None:
            found = _plan_word(self, space)
            # Terms of indexed fields alone are the same for every query of a view, and small.
            if isinstance(found, TermOperator) and all(isinstance(match, IndexMatch) for match in found.matches):
                found = _plan_word(self, replace(cache.space, language=space.language))
                cache.keep(self.index, self.word, space.language, found)
        return found

    def match_in(self, field: Field, space: SearchSpace) -> FieldMatch | None:
        if space.has_index(field):
            return tokens_match(tokens_in(self.word, self.annotations, field, space), field, space)
        column = space.column(field)
        return None if column is None else word_match(space, field, column, self.word)

    @property
    def is_word(self) -> bool:
        return True

    def is_every_document(self, space: SearchSpace) -> bool:
        return self.index == DOCUMENT_TYPE and self.word == space.schema.document.name

    def shown_words(self, target: Target) -> Way:
        return target.words(self.annotations, self.word)


def _plan_word(item: WordItem, space: SearchSpace) -> Operator:
    if item.index == DOCUMENT_TYPE:
        return TrueOperator(space) if item.word == space.schema.document.name else FalseOperator(space)
    matches: list[FieldMatch] = []
    split: dict[int, list[tuple[Field, list[QueryToken]]]] = {}
    apart: list[Operator] = []
    length = 1
    for field in fields_of(item.index, space):
        if space.has_index(field):
            tokens = tokens_in(item.word, item.annotations, field, space)
            is_grams = len(tokens) > 1 and bool(text_profile(field).gram_size)
            if is_grams and space.gram_match != ALL_GRAMS:
                apart.append(grams_together(_grams(item, tokens, field), space))
            elif is_grams or (len(tokens) > 1 and item.annotations.and_segmenting):
                split.setdefault(len(tokens), []).append((field, tokens))
            elif (match := tokens_match(tokens, field, space)) is not None:
                matches.append(match)
                length = max(length, len(tokens))
        elif (match := item.match_in(field, space)) is not None:
            matches.append(match)
    matches = [seen_match(match, space) for match in matches]
    operators = [*apart, *(_all_of(found, item.annotations, space) for found in split.values())]
    if matches or not operators:
        operators.insert(0, term_operator(space, matches, item.annotations, length))
    return operators[0] if len(operators) == 1 else OrOperator(space, tuple(operators))


def _grams(item: WordItem, tokens: list[QueryToken], field: Field) -> tuple[WordItem, ...]:
    notes = replace(item.annotations, implicit_transforms=False)
    return tuple([WordItem(field.name, token.term, annotations=notes) for token in tokens])


def _all_of(found: list[tuple[Field, list[QueryToken]]], notes: Annotations, space: SearchSpace) -> Operator:
    """An and of tokens, each in all of some fields, which have as many of them."""
    terms = []
    for place in range(len(found[0][1])):
        matches = [seen_match(token_match(tokens[place], field, space), space) for field, tokens in found]
        terms.append(term_operator(space, matches, notes))
    return AndOperator(space, tuple(terms))


def seen_match(match: FieldMatch, space: SearchSpace) -> FieldMatch:
    """A word as ranking sees it: one that is in too many documents only filters."""
    if space.tuning is NO_TUNING or not isinstance(match, IndexMatch | UnionMatch):
        return match
    only_filters = space.tuning.only_filters(match.field, match.frequency(), space.documents)
    return WithoutPositions(match) if only_filters and match.is_positional else match


def term_operator(space: SearchSpace, matches: list[FieldMatch], notes: Annotations, length: int = 1) -> TermOperator:
    """A leaf of the query, with what its annotations keep from ranking."""
    seen = matches if notes.use_position_data else [WithoutPositions(match) for match in matches]
    return TermOperator(space, seen, notes, length)


def _has_no_words(field: Field) -> bool:
    element = field.type.element if isinstance(field.type, ArrayType) else field.type
    return element == POSITION or isinstance(element, TensorFieldType)


def fields_of(index: str, space: SearchSpace) -> list[Field]:
    """The fields that an index name of a query stands for; none, if this document type has no such field.

    Raises InvalidQuery for a field of which only parts are searched.
    """
    found = list(space.schema.fields_named(index))
    if len(found) > 1:  # of a field set, words are searched where there are words: Vespa skips fields that it has not
        found = [field for field in found if not _has_no_words(field)] or found
    for field in found:
        if field.is_outer:
            parts = ", ".join(path for path, part in field.sub_fields.items() if part.attribute is not None)
            raise InvalidQuery(
                f"Field '{field.name}' of type '{field.type}' is not searched as a whole: name one of its parts, or use"
                f" sameElement: {parts}"
            )
    return found
