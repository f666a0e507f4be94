"""Finds the best hits without scoring all, where the query and the rank profile allow it.

They do when the first phase is a weighted sum of bm25 features. The kernel (`core/rank/top_k.cpp`) then takes the words
of the query, and what phrases have been found to match, as terms, and the documents that may be hits as a bitmap. How a
query is put to it:

* an `or` of words and phrases, which are found by their terms alone;
* an `and` of words of one field, whose posting lists are intersected;
* anything else whose terms count wherever they match: what the query matches becomes the bitmap.

Conditions that add nothing to the score only narrow the bitmap. What an `or` has that is neither word, phrase nor `and`
of words matches few documents as a rule, and these are scored in full. The answer is that of scoring everything.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from paperwasp.base.records import replace
from paperwasp.core import _core
from paperwasp.ranking import CompiledProfile
from paperwasp.search.features.bm25 import idf_of
from paperwasp.search.features.setting import QuerySetting
from paperwasp.search.operators import FieldMatch, IndexMatch, Operator, TermOperator
from paperwasp.search.operators.boolean import AndOperator, NotOperator, OrOperator
from paperwasp.search.operators.composed import MaskedMatch, terms_where_matched, unwrapped
from paperwasp.search.operators.field_match import Bitmap
from paperwasp.search.operators.operator import SearchSpace
from paperwasp.search.operators.term import FoundMatch
from paperwasp.search.operators.weak_and import WeakAndOperator

LEAST_WEIGHT: Final = 1e-20
"""The kernel bounds scores in single precision: weights of bm25 must be between this and its inverse."""
SPARE_HITS: Final = 4
"""Found beyond those wanted, since the kernel sums in another order than the rank program when fields have weights."""


ONE_OCCURRENCE: Final = (0.0, 0.0)
"""k1 and b of a word that only filters: whatever stands where, it adds its weight."""


class KernelQuery(Struct, frozen=True):
    """A query as the kernel can run it: documents with any, or all, of some terms."""

    terms: tuple[TermOperator, ...]
    all_terms: bool = False
    filters: tuple[Operator, ...] = ()
    excluded: tuple[Operator, ...] = ()
    rest: tuple[Operator, ...] = ()
    """The parts of an `or` that the kernel does not run. Documents that these match are scored in full."""
    filters_are_matches: bool = False
    """Whether the documents that the filters leave are the matches."""
    weak_and: WeakAndOperator | None = None
    """The weakAnd that finds the hits. The best are sought among all documents that some part matches, since those that
    it leaves out may score more; they are counted as it counts them, and no more are shown."""


class PrunedHits(Struct, frozen=True, eq=False):
    """The best hits, best first, and how many documents match in all."""

    lids: NDArray[np.uint32]
    scores: NDArray[np.float64]
    lists: int
    """How many lists of postings the kernel read."""
    exact: bool
    """Whether the scores are the rank program's own."""
    total_count: int
    searched: float = 1.0
    """The share of the documents that was searched in time."""
    rest: Bitmap | None = None
    """Documents that may be among the best as well: those of `KernelQuery.rest`."""
    rest_count: int = 0


def kernel_query_of(operator: Operator, fields: Mapping[str, float]) -> KernelQuery | None:
    """How to run a query whose score is a sum of bm25 over `fields`; None: only in full."""
    if (listed := _listed_query(operator, fields)) is not None:
        return listed
    terms = tuple(operator.terms())
    if not _scores(operator, fields) or not all(_is_runnable(term, fields) for term in terms):
        return None
    return KernelQuery(terms, filters=(operator,), filters_are_matches=True)


def _listed_query(operator: Operator, fields: Mapping[str, float]) -> KernelQuery | None:
    """Where the posting lists themselves say what matches."""
    if isinstance(operator, TermOperator):
        return _any_of((operator,), fields)
    if isinstance(operator, WeakAndOperator):
        inner = _any_of(operator.children, fields)
        return inner and replace(inner, weak_and=operator)
    if isinstance(operator, OrOperator):
        return _any_of(operator.children, fields)
    if isinstance(operator, NotOperator):
        inner = _listed_query(operator.positive, fields)
        return inner and replace(inner, excluded=(*inner.excluded, *operator.negatives))
    if isinstance(operator, AndOperator):
        return _and_query(operator, fields)
    return None


def _and_query(operator: AndOperator, fields: Mapping[str, float]) -> KernelQuery | None:
    scoring = [child for child in operator.children if _scores(child, fields)]
    filters = tuple(child for child in operator.children if not _scores(child, fields))
    weak_ands = all(isinstance(child, WeakAndOperator) for child in scoring)
    # What looks for hits must do so among what all others match, words too.
    if operator.targets_hits and (not weak_ands or any(child.targets_hits for child in filters)):
        return None
    if len(scoring) == 1:
        inner = _listed_query(scoring[0], fields)
        return inner and replace(inner, filters=(*inner.filters, *filters))
    words = tuple(child for child in scoring if isinstance(child, TermOperator) and _is_one_word(child, fields))
    return KernelQuery(words, True, filters) if words and len(words) == len(scoring) else None


def _scores(operator: Operator, fields: Mapping[str, float]) -> bool:
    return any(match.field in fields for term in operator.terms() for match in term.matches)


def _any_of(children: Sequence[Operator], fields: Mapping[str, float]) -> KernelQuery | None:
    terms: list[TermOperator] = []
    rest = []
    for child in children:
        if isinstance(child, TermOperator) and child.annotations.ranked and _is_runnable(child, fields):
            terms.append(child)
        elif isinstance(child, AndOperator) and (words := _words_of(child, fields)):
            terms += words
        else:
            rest.append(child)
    return KernelQuery(tuple(terms), rest=tuple(rest)) if terms else None


def _words_of(operator: AndOperator, fields: Mapping[str, float]) -> list[TermOperator]:
    """The words of an `and` below an `or`, each of which counts where all of them are; empty: it has other parts.

    A word that the tokenizer splits is such an `and`.
    """
    if not all(isinstance(child, TermOperator) and _is_one_word(child, fields) for child in operator.children):
        return []
    return list(terms_where_matched(operator, operator.space))


def _is_runnable(term: TermOperator, fields: Mapping[str, float]) -> bool:
    for match in term.matches:
        if match.field in fields:
            inner = unwrapped(match)
            if type(inner) is not IndexMatch and not isinstance(inner, IndexMatch | FoundMatch):
                return False
    return True


def _is_one_word(term: TermOperator, fields: Mapping[str, float]) -> bool:
    if not term.annotations.ranked or len(term.matches) != 1:
        return False
    (match,) = term.matches
    return isinstance(unwrapped(match), IndexMatch) and match.field in fields


class _Terms:
    """The terms of a query in the fields that are ranked by, as the kernel takes them."""

    def __init__(self) -> None:
        self.terms: list[tuple[int, int, float, float, float, float]] = []
        """(field number, term, weight, k1, b, average length of the field)"""
        self.found: list[tuple[int, NDArray[np.uint32], NDArray[np.uint32]]] = []
        """(number among the terms, lids, offsets): of phrases, and of words of an `and` below an `or`."""
        self.scoring = 0
        """How many of the terms have a weight: the first ones."""
        self.only_filter = False
        """Whether there are words that only filter."""
        self.are_counted = True
        """Whether the kernel can count the matches: every match is one of a term."""

    def add(self, match: FieldMatch, weight: float, k1: float, b: float, average_length: float) -> None:
        if type(match) is IndexMatch:
            self.terms.append((match.number, match.term, weight, k1, b, average_length))
            return
        inner = unwrapped(match)
        if match.only_filters:
            self.only_filter = True
            k1, b = ONE_OCCURRENCE
        if isinstance(inner, IndexMatch):
            self.terms.append((inner.number, inner.term, weight, k1, b, average_length))
        elif isinstance(inner, FoundMatch):
            lids, offsets, _ = inner.found
            self.found.append((len(self.terms), lids, offsets))
            self.terms.append((inner.number, 0, weight, k1, b, average_length))
        elif isinstance(inner, MaskedMatch) and isinstance(term := unwrapped(inner.match), IndexMatch):
            lids, offsets = inner.found
            self.found.append((len(self.terms), lids, offsets))
            self.terms.append((term.number, 0, weight, k1, b, average_length))

    def add_without_weight(self, matches: Sequence[FieldMatch]) -> None:
        """Matches in fields that do not count for the score, to have their documents counted."""
        words = [inner for match in matches if isinstance(inner := unwrapped(match), IndexMatch)]
        if len(words) < len(matches):
            self.are_counted = False
        else:
            self.terms += [(word.number, word.term, 0.0, 0.0, 0.0, 1.0) for word in words]


def pruned_hits(operator: Operator, profile: CompiledProfile, setting: QuerySetting, wanted: int) -> PrunedHits | None:
    """The best `wanted` hits, or None where every match has to be scored."""
    weights = dict(profile.bm25_weights(setting.inputs) or ())
    if not weights or profile.rank_score_drop_limit is not None or wanted <= 0:
        return None
    if not all(weight == 0 or LEAST_WEIGHT < weight < 1 / LEAST_WEIGHT for weight in weights.values()):
        return None
    query = kernel_query_of(operator, weights)
    if query is None:
        return None
    space = setting.space
    accept = _accepted(query, space)
    allowed = accept
    rest = _rest(query, space, accept)
    if rest is not None:
        accept = accept & ~rest
    terms = _terms_of(query, profile, setting, weights)
    # Two summands give the same sum in any order; more might not.
    exact = len(weights) <= 2 and set(weights.values()) == {1.0} and not terms.only_filter
    lids, scores, found, searched = _core.best(
        space.index.reader,
        terms.terms,
        terms.found,
        wanted if exact else wanted + SPARE_HITS,
        query.all_terms,
        terms.are_counted and query.weak_and is None,
        None if accept is space.accept and not space.dead else accept,
    )
    limit = space.index.reader.limit
    rest_count = 0 if rest is None else _core.bitmap_count(rest, space.accept)
    if searched < limit:  # out of time
        found = max(found, len(lids)) + rest_count
    elif query.weak_and is not None:
        found = query.weak_and.count(allowed)
    elif query.filters_are_matches:
        found = _core.bitmap_count(accept, space.accept)
    elif terms.are_counted:
        found += rest_count
    else:
        found = _core.bitmap_count(OrOperator(space, query.terms).bitmap(), accept) + rest_count
    if len(lids) < min(wanted, found - rest_count):  # documents that match but score nothing are hits too
        return None
    done = searched / limit if limit else 1.0
    return PrunedHits(lids, scores, terms.scoring, exact, found, done, rest, rest_count)


def _rest(query: KernelQuery, space: SearchSpace, accept: Bitmap) -> Bitmap | None:
    if not query.rest:
        return None
    found = OrOperator(space, query.rest).bitmap(accept)
    found &= accept
    return found


def _accepted(query: KernelQuery, space: SearchSpace) -> Bitmap:
    """The documents that the filters leave: the space's own bitmap where there are none."""
    accept = space.accept
    for operator in sorted(query.filters, key=lambda operator: operator.estimate()):
        accept = accept & operator.bitmap(accept)
    for operator in query.excluded:
        accept = accept & ~operator.bitmap(accept)
    return accept if query.weak_and is None else query.weak_and.reaching_least(accept)


def _terms_of(
    query: KernelQuery, profile: CompiledProfile, setting: QuerySetting, weights: Mapping[str, float]
) -> _Terms:
    found = _Terms()
    idfs = []
    for term in query.terms:
        notes = term.annotations
        idfs.append(idf_of(notes.document_frequency, notes.significance, term.document_frequency))
    for name, weight in weights.items():
        if weight == 0:
            continue
        field = profile.bm25_fields[name]
        average_length = field.average_length or setting.average_lengths(name)[0] or 1.0
        for term, idf in zip(query.terms, idfs, strict=True):
            for match in term.matches:
                if match.field == name:
                    found.add(match, idf * weight, field.k1, field.b, average_length)
    found.scoring = len(found.terms)
    if query.filters_are_matches:
        found.are_counted = False
    elif not query.all_terms:
        found.add_without_weight(
            [match for term in query.terms for match in term.matches if not weights.get(match.field)]
        )
    return found
