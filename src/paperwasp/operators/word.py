"""contains, and the words of the simple query language: text in a field or fieldset, a value of an attribute.

A word that the field's tokenizer splits is a phrase. `sddocname` matches the documents of a type.
Vespa: https://docs.vespa.ai/en/reference/querying/yql.html#contains
"""

from __future__ import annotations

from paperwasp.errors import InvalidQuery
from paperwasp.linguistics import TextProfile, query_terms
from paperwasp.operators.attribute_terms import word_match
from paperwasp.operators.base import Operator, SearchSpace, planner
from paperwasp.operators.constants import FalseOperator, TrueOperator
from paperwasp.operators.term import FieldMatch, IndexMatch, PhraseMatch, TermOperator
from paperwasp.query import Annotations, PhraseItem, TermItem, WordItem
from paperwasp.schema.model import Field
from paperwasp.schema.text_profiles import text_profile


@planner(WordItem)
def plan_word(item: WordItem, space: SearchSpace) -> Operator:
    if item.index == "sddocname":
        return TrueOperator(space) if item.word == space.schema.document.name else FalseOperator(space)
    return _plan_text(item, (item.word,), space)


@planner(PhraseItem)
def plan_phrase(item: PhraseItem, space: SearchSpace) -> Operator:
    words = tuple(part for part in item.words if isinstance(part, str))
    if len(words) < len(item.words):
        raise InvalidQuery(f"A phrase in '{item.index}' of more than words is not supported yet")
    return _plan_text(item, words, space)


def _plan_text(item: TermItem, words: tuple[str, ...], space: SearchSpace) -> Operator:
    """Words one after the other; an attribute, which has no places, is matched by a single one only."""
    if not item.annotations.use_position_data:
        raise InvalidQuery(f"usePositionData: false in '{item.index}' is not supported yet")
    matches: list[FieldMatch] = []
    length = len(words)
    for field in fields_of(item.index, space):
        if space.has_index(field):
            terms = [term for word in words for term in _terms(text_profile(field), word, item.annotations, space)]
            length = max(length, len(terms))
            matches.extend(match_terms(space, field, terms))
        elif (column := space.column(field)) is not None and len(words) == 1:
            matches.append(word_match(space, field, column, words[0]))
    return TermOperator(space, matches, item.annotations, length)


def _terms(profile: TextProfile, text: str, notes: Annotations, space: SearchSpace) -> list[str]:
    """The terms of a text of the query, all but what annotations say is not to be done to it."""
    tokens = query_terms(
        profile,
        text,
        notes.language or space.language,
        stem=notes.stem,
        normalize_case=notes.normalize_case,
        accent_drop=notes.accent_drop,
        implicit_transforms=notes.implicit_transforms,
        in_phrase=True,
    )
    return [token.term for token in tokens]


def fields_of(index: str, space: SearchSpace) -> list[Field]:
    """The fields that an index name of a query stands for; none, if this document type has no such field."""
    return list(space.schema.fields_named(index))


def match_terms(space: SearchSpace, field: Field, terms: list[str]) -> list[FieldMatch]:
    """One match for the terms in a field, as a phrase if they are several.

    A term that no document has matches nothing.
    """
    ids = [space.index.term_id(term) for term in terms]
    if not ids:
        return []
    if min(ids) < 0:
        ids = [NOWHERE] * len(ids)
    return [IndexMatch(space, field.name, ids[0]) if len(ids) == 1 else PhraseMatch(space, field.name, ids)]


NOWHERE = 0xFFFFFFFE
"""A term id that no segment has."""
