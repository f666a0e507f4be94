"""Finds the best hits without scoring all, where the query and the rank profile allow it.

They do when the first phase is a weighted sum of bm25 features and the query is one `or` or `and` of
words, beside conditions that add nothing to the score: those become a filter. What else an `or` has, such as phrases,
matches few documents as a rule, and these are scored in full. The answer is that of scoring everything
(`core/top_k.cpp`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from paperwasp.core import _core
from paperwasp.features.bm25 import Bm25Parameters, bm25_parameters, idf_of
from paperwasp.features.family import RankSetup
from paperwasp.operators import IndexMatch, Operator, TermOperator
from paperwasp.operators.and_operator import AndOperator
from paperwasp.operators.base import Bitmap, SearchSpace
from paperwasp.operators.composed import WithoutPositions
from paperwasp.operators.not_operator import NotOperator
from paperwasp.operators.or_operator import OrOperator
from paperwasp.operators.term import FieldMatch
from paperwasp.operators.weak_and import WeakAndOperator
from paperwasp.ranking import CompiledProfile
from paperwasp.search.block import QuerySetting

LEAST_WEIGHT: Final = 1e-20
"""The kernel bounds scores in single precision: weights of bm25 must be between this and its inverse."""
AS_ONE_OCCURRENCE: Final = Bm25Parameters(k1=0.0, b=0.0)
"""Of a word that only filters: whatever stands where, it adds its weight."""
SPARE_HITS: Final = 4
"""Found beyond those wanted, since the kernel sums in another order than the rank program when fields have weights."""


@dataclass(frozen=True, slots=True)
class Shape:
    """A query as the kernel can run it."""

    terms: tuple[TermOperator, ...]
    all_terms: bool
    filters: tuple[Operator, ...] = ()
    excluded: tuple[Operator, ...] = ()
    rest: tuple[Operator, ...] = ()
    """Of an or: what the kernel does not run, such as phrases. Documents that these match are scored in full."""


@dataclass(frozen=True, slots=True, eq=False)
class PrunedHits:
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
    """Documents that may be among the best as well: those of `Shape.rest`."""
    rest_count: int = 0


def shape_of(operator: Operator, weights: Mapping[str, float]) -> Shape | None:
    """How to run a query whose score is the sum of `weights` (field → weight) times bm25; None if only in full."""
    if isinstance(operator, TermOperator):
        return _any_of((operator,), weights)
    if isinstance(operator, WeakAndOperator):
        inner = _any_of(operator.children, weights)
        return inner and replace(inner, filters=(operator,))
    if isinstance(operator, OrOperator):
        return _any_of(operator.children, weights)
    if isinstance(operator, NotOperator):
        inner = shape_of(operator.positive, weights)
        return inner and replace(inner, excluded=(*inner.excluded, *operator.negatives))
    if isinstance(operator, AndOperator):
        return _and_shape(operator, weights)
    return None


def _and_shape(operator: AndOperator, weights: Mapping[str, float]) -> Shape | None:
    if operator.targets_hits:  # it must look for them among what all others match, words too
        return None
    scoring = [child for child in operator.children if _scores(child, weights)]
    filters = tuple(child for child in operator.children if not _scores(child, weights))
    if len(scoring) == 1:
        inner = shape_of(scoring[0], weights)
        return inner and replace(inner, filters=(*inner.filters, *filters))
    words = tuple(child for child in scoring if isinstance(child, TermOperator) and _is_one_word(child, weights))
    return Shape(words, True, filters) if words and len(words) == len(scoring) else None


def _scores(operator: Operator, weights: Mapping[str, float]) -> bool:
    return any(match.field in weights for term in operator.terms() for match in term.matches)


def _any_of(children: Sequence[Operator], weights: Mapping[str, float]) -> Shape | None:
    terms, rest = [], []
    for child in children:
        if isinstance(child, TermOperator) and _is_prunable(child, weights):
            terms.append(child)
        else:
            rest.append(child)
    return Shape(tuple(terms), False, rest=tuple(rest)) if terms else None


def _is_prunable(term: TermOperator, weights: Mapping[str, float]) -> bool:
    return term.annotations.ranked and all(_posting(m) is not None for m in term.matches if m.field in weights)


def _is_one_word(term: TermOperator, weights: Mapping[str, float]) -> bool:
    ranked = term.annotations.ranked and len(term.matches) == 1
    return ranked and _posting(term.matches[0]) is not None and term.matches[0].field in weights


def _posting(match: FieldMatch) -> IndexMatch | None:
    """The word whose postings a match is; a word that only filters has them too."""
    inner = match.match if isinstance(match, WithoutPositions) else match
    return inner if isinstance(inner, IndexMatch) else None


@dataclass(eq=False)
class _Lists:
    """The posting lists to run, as the kernel takes them."""

    fields: list[int] = field(default_factory=list)
    terms: list[int] = field(default_factory=list)
    weights: list[float] = field(default_factory=list)
    parameters: list[Bm25Parameters] = field(default_factory=list)
    average_lengths: list[float] = field(default_factory=list)
    only_filter: bool = False
    """Whether there are words that only filter."""


def pruned_hits(operator: Operator, profile: CompiledProfile, setting: QuerySetting, wanted: int) -> PrunedHits | None:
    """The best `wanted` hits, or None where every match has to be scored."""
    weights = dict(profile.bm25_weights(setting.inputs) or ())
    if not weights or profile.rank_score_drop_limit is not None or wanted <= 0:
        return None
    if not all(weight == 0 or LEAST_WEIGHT < weight < 1 / LEAST_WEIGHT for weight in weights.values()):
        return None
    shape = shape_of(operator, weights)
    if shape is None:
        return None
    space = setting.space
    accept = _accepted(shape, space)
    rest = _rest(shape, space, accept)
    if rest is not None:
        accept = accept & ~rest
    lists = _lists_of(shape, profile, setting, weights)
    lids, scores, found, searched = _core.top_k(
        space.index.reader,
        np.array(lists.fields, np.uint32),
        np.array(lists.terms, np.uint32),
        np.array(lists.weights, np.float64),
        np.array([p.k1 for p in lists.parameters], np.float64),
        np.array([p.b for p in lists.parameters], np.float64),
        np.array(lists.average_lengths, np.float64),
        wanted + SPARE_HITS,
        shape.all_terms,
        shape.all_terms,
        accept,
    )
    limit = space.index.reader.limit
    if searched < limit:  # out of time
        found = max(found, len(lids))
    elif not shape.all_terms:
        found = _count_any(shape, space, accept)
    if len(lids) < min(wanted, found):  # documents that match but score nothing are hits too
        return None
    # Two summands give the same sum in any order; more might not.
    exact = len(weights) <= 2 and set(weights.values()) == {1.0} and not lists.only_filter
    rest_count = 0 if rest is None else _core.bitmap_count(rest, space.accept)
    done = searched / limit if limit else 1.0
    return PrunedHits(lids, scores, len(lists.terms), exact, found + rest_count, done, rest, rest_count)


def _rest(shape: Shape, space: SearchSpace, accept: Bitmap) -> Bitmap | None:
    if not shape.rest:
        return None
    found = OrOperator(space, shape.rest).bitmap(accept)
    found &= accept
    return found


def _count_any(shape: Shape, space: SearchSpace, accept: Bitmap) -> int:
    matches = [match for term in shape.terms for match in term.matches]
    words = [word for match in matches if (word := _posting(match)) is not None]
    if len(words) == len(matches) == 1 and accept is space.accept and not space.dead:
        return words[0].frequency()
    if len(words) < len(matches):  # attributes, in fields that do not count for the score
        return _core.bitmap_count(OrOperator(space, shape.terms).bitmap(), accept)
    numbers = np.array([match.number for match in words], np.uint32)
    return _core.count_any(space.index.reader, numbers, np.array([match.term for match in words], np.uint32), accept)


def _accepted(shape: Shape, space: SearchSpace) -> Bitmap:
    accept = space.accept
    for operator in sorted(shape.filters, key=lambda operator: operator.estimate()):
        accept = accept & operator.bitmap(accept)
    for operator in shape.excluded:
        accept = accept & ~operator.bitmap(accept)
    return accept


def _lists_of(shape: Shape, profile: CompiledProfile, setting: QuerySetting, weights: Mapping[str, float]) -> _Lists:
    lists = _Lists()
    schema = setting.space.schema
    setup = RankSetup(schema, schema.rank_profiles[profile.name])
    for name, weight in weights.items():
        if weight == 0:
            continue
        parameters = bm25_parameters(setup, name)
        statistics = setting.field_statistics(name)
        average_length = parameters.average_field_length or statistics.average_length or 1.0
        for idf, match, only_filters in _matches_in(name, shape, setting):
            lists.fields.append(match.number)
            lists.terms.append(match.term)
            lists.weights.append(idf * weight)
            lists.parameters.append(AS_ONE_OCCURRENCE if only_filters else parameters)
            lists.only_filter |= only_filters
            lists.average_lengths.append(average_length)
    return lists


def _matches_in(field: str, shape: Shape, setting: QuerySetting) -> Iterator[tuple[float, IndexMatch, bool]]:
    """The words of the query that search a field, with the idf of their terms, and whether they only filter."""
    searched = set(shape.terms)
    for term in setting.terms.operators:
        if term in searched:
            notes = term.annotations
            for match in term.matches:
                if match.field == field and (word := _posting(match)) is not None:
                    idf = idf_of(notes.document_frequency, notes.significance, term.document_frequency)
                    yield idf, word, match.only_filters
