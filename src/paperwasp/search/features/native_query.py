"""The native rank features by their kernel: what it needs to know of a query, once for all of its hits.

The kernel (`core/rank/native_scores.cpp`) reads the postings of words. Where a term is more than a word, such as a
phrase, it takes the positions of the term in each hit. Where a term matches in another way than by standing somewhere,
the kernel cannot run the query, and the features compute their parts in sequence.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from paperwasp.core import _core
from paperwasp.core.clock import OutOfTime
from paperwasp.core.rank.best_parts import ALL, BestHits, Part, joined, parts_for
from paperwasp.core.together import Together, of_parts
from paperwasp.search.features import native_parameters
from paperwasp.search.features.block import Block, terms_of
from paperwasp.search.features.family import Compute, Floats, RankSetup
from paperwasp.search.features.setting import QuerySetting, RankTerm
from paperwasp.search.operators.composed import MaskedMatch
from paperwasp.search.operators.field_match import Bitmap, FieldMatch, Lids
from paperwasp.search.operators.term import FoundMatch, IndexMatch

NOTHING: Final = np.zeros(0)
_NO_LIDS: Final = np.zeros(0, np.uint32)


class WordLists(NamedTuple):
    """The postings of an indexed field, and which of them are what terms match there."""

    reader: _core.Reader
    number: int
    """The number of the field in the index."""
    words: Mapping[int, int]
    """Number of a term → its word; `NO_TERM` where ranking is not to see where it stands. Of other terms only the
    positions are known."""


def word_lists(block: Block, field: str) -> WordLists | None:
    """The words that terms match in the indexed `field`; None where one matches other than by its position, or in
    several ways."""
    words = {}
    for number, term in enumerate(block.setting.terms):
        matches = [match for match in term.matches if match.field == field]
        if len(matches) > 1 or not all(match.only_filters or match.is_positional for match in matches):
            return None
        for match in matches:
            if match.only_filters:
                words[number] = _core.NO_TERM
            elif type(match) is IndexMatch:
                words[number] = match.term
    return WordLists(block.setting.space.index.reader, block.setting.number_of(field), words)


NativePlan = tuple[list[str], Floats, list[Floats], list[bool], int, tuple[float, float, float, float]]
"""Fields, their numbers and tables, which have elements, how many terms in a row are compared, and the weights of the
parts with their sum."""


class NativeSetup(Struct, frozen=True, eq=False):
    """The fields and weights of a native rank feature, as a rank profile sets them."""

    match: Mapping[str, native_parameters.MatchParameters]
    near: Mapping[str, native_parameters.NearParameters]
    """The proximity parameters of the same fields."""
    window: int
    weights: tuple[float, float, float]
    """The weights of nativeFieldMatch, nativeProximity and nativeAttributeMatch."""
    key: object
    """The key under which the query is kept."""

    @property
    def plan(self) -> NativePlan:
        """The part that compiled plans take (`core/plans/plan_native.hpp`)."""
        return (
            list(self.match),
            np.array([_numbers(self, 0, field, 0.0) for field in self.match], np.float64).reshape(-1),
            [table for field in self.match for table in _tables(self, field)],
            [self.near[field].has_elements for field in self.match],
            self.window,
            (*self.weights, sum(self.weights)),
        )

    @classmethod
    def of(cls, setup: RankSetup, arguments: tuple[str, ...], weights: tuple[float, float, float]) -> NativeSetup:
        fields = native_parameters.searched_index_fields(setup, arguments)
        return cls(
            {field: native_parameters.match_parameters(setup, field) for field in fields},
            {field: native_parameters.near_parameters(setup, field) for field in fields},
            native_parameters.sliding_window(setup) if weights[1] != 0 else 1,
            weights,
            object(),
        )

    def scores(self, block: Block, proximity: Compute, attributes: Compute | None = None) -> Floats | None:
        """The weighted mean of the parts; None where there is no kernel for the query.

        `proximity`: computes that part where fields have elements. `attributes`: None: the part does not count.
        """
        query = block.setting.once(self.key, lambda: _NativeQuery.of(self, block))
        return None if query is None else query.scores(block, proximity, attributes)


class NativeFeature(Struct, frozen=True, eq=False):
    """A feature that is the weighted mean of those parts: by the kernel where it can run the query."""

    native: NativeSetup
    general: Compute
    """The feature for every query."""
    proximity: Compute
    """The proximity part, where fields have elements."""
    attributes: Compute | None = None
    """The attribute part; None: it does not count."""
    attribute_fields: frozenset[str] = frozenset()
    """Where a term counts for that part."""

    def __call__(self, block: Block) -> Floats:
        known = self.native.scores(block, self.proximity, self.attributes)
        return self.general(block) if known is None else known

    def best(
        self, block: Block, hits: Bitmap, count: int, threads: int = 1, together: Together | None = None
    ) -> BestHits | None:
        """The best `count` of some hits without scoring all: a `ranking.program.FindBest`."""
        setting = block.setting
        if any(field in self.attribute_fields for term in setting.rank_terms for field in term.fields):
            return None
        query = setting.once(self.native.key, lambda: _NativeQuery.of(self.native, block))
        return None if query is None or query.has_elements else query.best(setting, hits, count, threads, together)


def by_kernel(
    setup: RankSetup, arguments: tuple[str, ...], weights: tuple[float, float, float], general: Compute
) -> Compute:
    """The feature that is one of the parts, which `general` computes for every query."""
    return NativeFeature(NativeSetup.of(setup, arguments, weights), general, general)


class _NativeQuery(Struct, frozen=True, eq=False):
    """The arguments of the kernel that are the same for all hits."""

    reader: _core.Reader
    numbers: Floats
    tables: list[Floats]
    lists: NDArray[np.uint32]
    given: tuple[tuple[int, int, str], ...]
    """(number of a list, term, field) of those whose positions are given."""
    term_weights: Floats
    pairs: NDArray[np.uint32]
    pair_weights: Floats
    weights: Floats
    has_elements: bool
    """Whether terms are near each other in fields with elements, which the kernel does not know."""

    @classmethod
    def of(cls, setup: NativeSetup, block: Block) -> _NativeQuery | None:
        words = {field: word_lists(block, field) for field in setup.match}
        known = {field: lists for field, lists in words.items() if lists is not None}
        if len(known) < len(words) or not known:
            return None
        terms = list(enumerate(block.terms))
        listed = [(number, field) for number, term in terms for field in term.fields if field in known]
        if not listed or len(set(listed)) < len(listed):
            return None
        lists = _lists(listed, known, block)
        places = {each: place for place, each in enumerate(listed)}
        pairs, pair_weights, pair_fields = [], [], {}
        known_pairs: dict[
            tuple[int, ...], list[native_parameters.Pair]
        ] = {}  # fields of a fieldset have the same terms
        for field in known:
            own = list(terms_of(block, field))
            numbers_of_terms = tuple(number for number, _ in own)
            found = known_pairs.get(numbers_of_terms)
            if found is None:
                found = known_pairs[numbers_of_terms] = list(native_parameters.pairs_within(own, setup.window))
            pairs += [(places[pair.first, field], places[pair.second, field]) for pair in found]
            pair_weights += [pair.weight for pair in found]
            if found:
                pair_fields[field] = _added(pair.weight for pair in found)
        numbers = [_numbers(setup, lists.number, field, pair_fields.get(field, 0.0)) for field, lists in known.items()]
        return cls(
            next(iter(known.values())).reader,
            np.array(numbers, np.float64).reshape(-1),
            [table for field in known for table in _tables(setup, field)],
            np.array(lists, np.uint32).reshape(-1),
            tuple((place, *each) for place, each in enumerate(listed) if each[0] not in known[each[1]].words),
            np.array([term.significance * term.weight for term in block.terms], np.float64),
            np.array(pairs, np.uint32).reshape(-1),
            np.array(pair_weights, np.float64),
            np.array(
                [
                    _added(_divisor(setup, term) for term in block.terms),
                    sum(setup.near[field].weight for field in pair_fields),
                    *setup.weights,
                    sum(setup.weights),
                ],
                np.float64,
            ),
            any(setup.near[field].has_elements for field in pair_fields),
        )

    def scores(self, block: Block, proximity: Compute, attributes: Compute | None) -> Floats:
        results = np.empty(len(block.lids))
        _core.native_scores(
            self.reader,
            block.lids,
            self.numbers,
            self.tables,
            self.lists,
            {place: block.positions(term, field) for place, term, field in self.given},
            self.term_weights,
            self.pairs,
            self.pair_weights,
            self.weights,
            proximity(block) if self.has_elements else NOTHING,
            NOTHING if attributes is None else attributes(block),
            block.score_floor,
            results,
        )
        return results

    def best(
        self, setting: QuerySetting, hits: Bitmap, count: int, threads: int, together: Together | None
    ) -> BestHits | None:
        """None where there is no bound for what hits score."""

        def lids() -> Lids:
            return _core.bitmap_lids(hits, setting.space.limit)

        given = {
            place: _found(next(match for match in setting.terms[term].matches if match.field == field), lids)
            for place, term, field in self.given
        }
        asked = _Asked(self, given, hits, count)
        if together is None or threads < 2:
            return _joined([asked.part(ALL)], count)
        asked = asked._replace(floor=_core.NativeFloor())
        return _joined(of_parts(parts_for(threads, setting.space.limit), asked.part, threads, together), count)


_PartHits = tuple[BestHits, float] | None
"""The best hits of a part, none where there was no time; and what is in no list scores at most, as `best_native` says.
None: there is no bound for what hits score."""


class _Asked(NamedTuple):
    """A search for the best hits by nativeRank."""

    query: _NativeQuery
    given: dict[int, tuple[Lids, NDArray[np.uint32], NDArray[np.uint32]]]
    hits: Bitmap
    wanted: int
    floor: _core.NativeFloor | None = None
    """The least score of the best hits, shared by all parts; None: there is one part."""

    def part(self, part: Part) -> _PartHits:
        """The best of the hits of a part. Raises OutOfTime where these are all hits, and there was no time."""
        query, begun_ns = self.query, time.thread_time_ns()
        try:
            found = _core.best_native(
                query.reader,
                query.numbers,
                query.tables,
                query.lists,
                self.given,
                query.term_weights,
                query.pairs,
                query.pair_weights,
                query.weights,
                self.hits,
                self.wanted,
                *part,
                self.floor,
            )
        except OutOfTime:
            if self.floor is None:
                raise
            found = _NO_LIDS, NOTHING, 0, -np.inf
        if found is None:
            return None
        lids, scores, searched, least = found
        return BestHits(lids, scores, searched, time.thread_time_ns() - begun_ns), least


def _joined(parts: Sequence[_PartHits], count: int) -> BestHits | None:
    """The best of parts; None where there is no bound for what hits score, or those in no list may be among them.

    Raises OutOfTime where there was no time for any hit.
    """
    found = [part for part in parts if part is not None]
    if len(found) < len(parts) or not all(np.isfinite(hits.scores).all() for hits, _ in found):
        return None
    best = joined([hits for hits, _ in found], count)
    if len(found) == 1:
        return best
    least = min(least for _, least in found)
    if least == -np.inf:
        if not len(best.lids):
            raise OutOfTime
    elif len(best.lids) < count or best.scores[-1] <= least:
        return None
    return best


def _found(match: FieldMatch, hits: Callable[[], Lids]) -> tuple[Lids, NDArray[np.uint32], NDArray[np.uint32]]:
    """Where a match stands: (lids, offsets, positions) of all live documents that it is in, or of the hits at least."""
    if isinstance(match, FoundMatch):
        return match.found
    if isinstance(match, MaskedMatch):
        return match.whole.lids, *match.match.positions(match.whole.lids)
    lids = hits()
    return lids, *match.positions(lids)


def _added(numbers: Iterable[float]) -> float:
    """The sum from the first to the last, as the core adds: `sum` of Python 3.12 rounds in another way."""
    total = 0.0
    for number in numbers:
        total += number
    return total


def _divisor(setup: NativeSetup, term: RankTerm) -> float:
    fields = [field for field in term.fields if field in setup.match]
    if not fields or term.weight == 0:
        return 0.0
    return term.significance * term.weight * sum(setup.match[field].weight for field in fields)


def _lists(
    listed: list[tuple[int, str]], known: Mapping[str, WordLists], block: Block
) -> list[tuple[int, int, int, int]]:
    """Field, word, term and length of each, as the kernel takes them."""
    numbers = {field: number for number, field in enumerate(known)}
    return [
        (numbers[field], known[field].words.get(term, _core.NO_TERM), term, max(1, block.terms[term].phrase_length))
        for term, field in listed
    ]


def _numbers(setup: NativeSetup, number: int, field: str, pairs_weight: float) -> tuple[float, ...]:
    """`FIELD_NUMBERS` of `core.native_scores`. `number`: of the field in the index."""
    match, near = setup.match[field], setup.near[field]
    return (
        number,
        match.weight,
        match.first_importance,
        match.highest,
        -1 if match.fixed_length is None else match.fixed_length,
        max(match.least_length, -1),
        near.forward_importance,
        near.highest,
        pairs_weight,
    )


def _tables(setup: NativeSetup, field: str) -> tuple[Floats, ...]:
    match, near = setup.match[field], setup.near[field]
    tables = (match.first_table, match.count_table, near.forward_table, near.reverse_table)
    return tuple(table.values for table in tables)
