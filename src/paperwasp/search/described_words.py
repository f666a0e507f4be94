"""What words of queries are in a view, as its snapshot keeps them for compiled plans: the general planning says it."""

from __future__ import annotations

from paperwasp.features.bm25 import idf_of
from paperwasp.features.query_terms import significance_of
from paperwasp.operators.and_operator import AndOperator
from paperwasp.operators.field_match import FieldMatch
from paperwasp.operators.item import plan
from paperwasp.operators.operator import SearchSpace, TermOperator
from paperwasp.operators.term import IndexMatch, PhraseMatch
from paperwasp.operators.text import token_match, tokens_in
from paperwasp.operators.weak_and import score_of
from paperwasp.operators.word import WordItem, fields_of
from paperwasp.query.annotations import DEFAULT_ANNOTATIONS

Parts = list[tuple[float, float, int, list[tuple[int, list[int], int]]]]
"""(idf, significance, length in words, [(field, terms, frequency)]) of each token of a word, all of which must match;
none: it matches in another way."""


def described_alone(item: WordItem, space: SearchSpace) -> tuple[int, Parts]:
    """What a word scores in a weakAnd, and the terms it stands for where it stands alone."""
    operator = plan(item, space)
    parts: Parts = []
    for term in operator.children if type(operator) is AndOperator else (operator,):
        if type(term) is not TermOperator:
            return 0, []
        found = [_terms_of(match) for match in term.matches]
        matches = [match for match in found if match is not None]
        if len(matches) < len(found):
            return 0, []
        parts.append((idf_of(None, None, term.document_frequency), significance_of(term), term.length, matches))
    return score_of(item, operator, space), parts


def described_in_phrase(index: str, word: str, space: SearchSpace) -> tuple[int, Parts]:
    """The same of a word between others: how rare these are together is not known yet."""
    matches = []
    for field in fields_of(index, space):
        if not space.has_index(field):
            return 0, []
        terms = [
            token_match(token, field, space)
            for token in tokens_in(word, DEFAULT_ANNOTATIONS, field, space, in_phrase=True)
        ]
        found = [term for term in terms if type(term) is IndexMatch]
        if len(found) < len(terms) or not found:
            return 0, []
        matches.append((found[0].number, [term.term for term in found], min(term.frequency() for term in found)))
    return 0, [(0.0, 0.0, 1, matches)] if matches else []


def _terms_of(match: FieldMatch) -> tuple[int, list[int], int] | None:
    if type(match) is IndexMatch:
        return match.number, [match.term], 0
    if type(match) is PhraseMatch:
        return match.number, list(match.terms), 0
    return None
