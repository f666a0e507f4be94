"""phrase: words next to each other, in order. A part may have several forms; an attribute, which has no places, is
matched by a phrase of one word only.

Vespa: https://docs.vespa.ai/en/reference/querying/yql.html#phrase
Differs: an equiv of single words may be a part, which Vespa does not allow.
"""

from __future__ import annotations

from paperwasp.errors import InvalidQuery
from paperwasp.operators.attribute_terms import word_match
from paperwasp.operators.base import Operator, SearchSpace, planner
from paperwasp.operators.field_match import FieldMatch
from paperwasp.operators.items import EquivItem, Item, PhraseItem, WordAlternativesItem, WordItem
from paperwasp.operators.text import match_in, sequence, text_matcher, token_match, tokens_in
from paperwasp.operators.word import fields_of, term_operator
from paperwasp.query.annotations import Annotations
from paperwasp.schema.model import Field


@planner(PhraseItem)
def plan_phrase(item: PhraseItem, space: SearchSpace) -> Operator:
    matches = []
    length = len(item.words)
    for field in fields_of(item.index, space):
        if space.has_index(field):
            parts = _parts(item, field, space)
            length = max(length, len(parts))
            match = sequence(parts, field, space)
        else:
            match = match_phrase(item, field, space)
        if match is not None:
            matches.append(match)
    return term_operator(space, matches, item.annotations, length)


@text_matcher(PhraseItem)
def match_phrase(item: PhraseItem, field: Field, space: SearchSpace) -> FieldMatch | None:
    """A phrase in one field."""
    if space.has_index(field):
        return sequence(_parts(item, field, space), field, space)
    column = space.column(field)
    if column is None or len(item.words) != 1 or not isinstance(word := item.words[0], str):
        return None
    return word_match(space, field, column, word)


def _parts(item: PhraseItem, field: Field, space: SearchSpace) -> list[FieldMatch]:
    """The matches of the parts of a phrase, each of which takes one position."""
    found: list[FieldMatch] = []
    for part in item.words:
        if isinstance(part, str):
            found.extend(_tokens(part, item.annotations, field, space))
        elif isinstance(part, WordItem):
            found.extend(_tokens(part.word, part.annotations, field, space))
        elif (match := match_in(_of_words(part, field), field, space)) is not None:
            found.append(match)
    return found


def _tokens(word: str, notes: Annotations, field: Field, space: SearchSpace) -> list[FieldMatch]:
    tokens = tokens_in(word, notes, field, space, in_phrase=True)
    return [token_match(token, field, space) for token in tokens]


def _of_words(part: Item, field: Field) -> Item:
    """The part, if it is nothing but forms of one word. Raises InvalidQuery."""
    forms = isinstance(part, WordAlternativesItem)
    if not forms and not (isinstance(part, EquivItem) and all(isinstance(c, WordItem) for c in part.children)):
        raise InvalidQuery(
            f"A phrase in '{field.name}' is made of words and alternatives, not of {type(part).__name__}"
        )
    return part
