"""Matches of text in one field: the base of words, phrases, nearness and equivalents.

In an indexed field a text is one term or several: forms of one word at one place, or words in sequence.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from msgspec import Struct
from msgspec import field as struct_field

from paperwasp import limits
from paperwasp.core.clock import check_time
from paperwasp.errors import InvalidQuery
from paperwasp.schema.model import Field
from paperwasp.schema.text_profiles import text_profile
from paperwasp.search.operators.composed import SequenceMatch, UnionMatch
from paperwasp.search.operators.field_match import FieldMatch
from paperwasp.search.operators.operator import SearchSpace
from paperwasp.search.operators.term import IndexMatch, PhraseMatch
from paperwasp.search.yql_syntax import Annotations
from paperwasp.storage.attributes.dictionary import TextKeeper
from paperwasp.storage.attributes.patterns import PartPattern, Place
from paperwasp.text.linguistics import TextProfile, query_terms
from paperwasp.text.linguistics.query import Forms, QueryToken

NOWHERE: Final = 0xFFFFFFFE
"""A term id that no segment has."""


def tokens_in(
    text: str, notes: Annotations, field: Field, space: SearchSpace, *, in_phrase: bool = False
) -> list[QueryToken]:
    """The tokens of a text in an indexed field, less what annotations say is not to be done to it.

    Errors: InvalidQuery for a text of too many characters or tokens; OutOfTime.
    """
    check_time()
    if len(text) > limits.QUERY_TERM_CHARACTERS:
        raise InvalidQuery(
            f"A text that is searched for in '{field.name}' has {len(text)} characters; at most"
            f" {limits.QUERY_TERM_CHARACTERS}: search for fewer words"
        )
    tokens = query_terms(
        text_profile(field),
        text,
        notes.language or space.language,
        stem=notes.stem,
        normalize_case=notes.normalize_case,
        accent_drop=notes.accent_drop,
        implicit_transforms=notes.implicit_transforms,
        in_phrase=in_phrase,
    )
    if len(tokens) > limits.QUERY_ITEMS:
        raise InvalidQuery(
            f"A text that is searched for in '{field.name}' has {len(tokens)} tokens; at most {limits.QUERY_ITEMS}:"
            " search for fewer words"
        )
    return tokens


def token_match(token: QueryToken, field: Field, space: SearchSpace) -> FieldMatch:
    """One token: its term, or all of its forms as one. A term that no document has is nowhere.

    In streaming search, a field may say that its words match by a part of them.
    """
    if space.streamed and (place := field.match_settings.algorithm) != "normal":
        return part_match(token.term, place, field, space)
    known = [number for form, _ in token.forms if (number := space.index.term_id(form)) >= 0]
    matches = [IndexMatch(space, field.name, number) for number in dict.fromkeys(known) or (NOWHERE,)]
    return matches[0] if len(matches) == 1 else UnionMatch(space, field.name, matches)


def part_match(part: str, place: Place, field: Field, space: SearchSpace) -> FieldMatch:
    """The words of streamed documents that begin with, end with or have in them a normalized text, as one."""
    text = TextKeeper(cased=True).text(space.index.words)
    fitting = np.flatnonzero(PartPattern(place, part).fitting(text)).tolist()
    number = space.index.number_of((space.schema.document.name, field.name))
    terms = [term for term in fitting if space.index.document_frequency(number, term)]
    return UnionMatch(space, field.name, [IndexMatch(space, field.name, term) for term in terms or (NOWHERE,)])


def tokens_match(tokens: list[QueryToken], field: Field, space: SearchSpace) -> FieldMatch | None:
    """The match of tokens in sequence; None: there are none."""
    return sequence([token_match(token, field, space) for token in tokens], field, space)


def sequence(parts: list[FieldMatch], field: Field, space: SearchSpace) -> FieldMatch | None:
    """Joins matches to one of their sequence in an indexed field; None: there are none."""
    if len(parts) < 2:
        return parts[0] if parts else None
    words = [part.term for part in parts if isinstance(part, IndexMatch)]
    if NOWHERE in words:
        return IndexMatch(space, field.name, NOWHERE)
    return (
        PhraseMatch(space, field.name, words) if len(words) == len(parts) else SequenceMatch(space, field.name, parts)
    )


# The words of a query that are marked in the shown texts of one field: what `Item.shown` gives.
#
# Vespa: https://docs.vespa.ai/en/reference/schemas/schemas.html#bolding


class QueryWord(Struct, frozen=True):
    """One word of the query: the terms that count as it, or with `prefix` what they begin with."""

    terms: frozenset[str]
    prefix: bool = False
    within: bool = False
    """Whether a part of a word counts, and alone is marked, as in streaming search."""

    def is_met_by(self, forms: Forms) -> bool:
        if self.prefix:
            return any(form.startswith(term) for form in forms for term in self.terms)
        return not self.terms.isdisjoint(forms)


Way = tuple[QueryWord, ...]
"""Words in sequence."""
QueryPart = tuple[Way, ...]
"""One part of the query: a word or phrase, or several of which any will do."""


class Target(Struct, frozen=True):
    """A field, and how its text becomes terms."""

    field: Field
    space: SearchSpace
    profile: TextProfile
    known: dict[str, bool] = struct_field(default_factory=dict)
    """Name → whether the field is one of those with the name."""

    def is_named_by(self, index: str) -> bool:
        found = self.known.get(index)
        if found is None:
            fields = self.space.schema.fields_named(index)
            found = self.known[index] = any(field.name == self.field.name for field in fields)
        return found

    @property
    def has_grams_apart(self) -> bool:
        """Whether a text of the query is searched by its grams, at any position."""
        return self.profile.gram_size > 0 and self.space.gram_match != "phrase"

    def words(self, notes: Annotations, text: str) -> Way:
        """The words of a text with these annotations."""
        tokens = tokens_in(text, notes, self.field, self.space)
        within = self.space.streamed and self.field.match_settings.algorithm == "substring"
        return tuple(QueryWord(frozenset(form for form, _ in token.forms), within=within) for token in tokens)
