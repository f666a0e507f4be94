"""The index kernels beside their plain twin, on random indexes cut into random segments."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from paperwasp.base.records import replace
from paperwasp.core import _core
from tests.oracles import bm25
from tests.oracles.plain_index import Document, PlainIndex, PlainTerm

TERMS = 40


@dataclass(frozen=True)
class Corpus:
    documents: list[Document]

    @classmethod
    def random(cls, seed: int, count: int, gap: int = 0) -> Corpus:
        """Documents of 0 to 30 tokens; term t is about t times rarer than term 1. Some are `gap` positions on."""
        rng = np.random.default_rng(seed)
        weights = 1 / np.arange(1, TERMS + 1)
        lengths = rng.integers(0, 31, count)
        tokens = rng.choice(TERMS, lengths.sum(), p=weights / weights.sum())
        starts = np.concatenate([[0], np.cumsum(lengths)])
        steps = 1 + gap * (rng.random(len(tokens)) < 0.1)
        placed = [(tokens[a:b], np.cumsum(steps[a:b]) - 1) for a, b in pairwise(starts)]
        return cls([[(int(t), int(p)) for t, p in zip(*row, strict=True)] for row in placed])

    @property
    def average_length(self) -> float:
        return max(1.0, sum(map(len, self.documents)) / max(1, sum(bool(d) for d in self.documents)))

    def field_index(self, start: int, end: int, average_length: float) -> np.ndarray:
        chosen = self.documents[start:end]
        terms = np.array([t for d in chosen for t, _ in d], np.uint32)
        positions = np.array([p for d in chosen for _, p in d], np.uint32)
        offsets = np.concatenate([[0], np.cumsum([len(d) for d in chosen])]).astype(np.uint64)
        return _core.invert(terms, positions, offsets, average_length)

    def reader(
        self,
        cuts: list[int],
        average_lengths: list[float],
        most_bytes: int = 1 << 30,
        most_worths_bytes: int = 1 << 30,
    ) -> _core.Reader:
        """Segments of all sizes keep bitmaps of their frequent terms, and what terms are worth, up to so many bytes."""
        bounds = sorted({0, len(self.documents), *(c % len(self.documents) for c in cuts)})
        segments: list[tuple[int, int, list[np.ndarray | None], _core.FrequentTerms | None]] = []
        for i, (start, end) in enumerate(pairwise(bounds)):
            average = average_lengths[i % len(average_lengths)]
            frequent = _core.FrequentTerms(start, end - start, 1, most_bytes, 1, most_worths_bytes)
            segments.append((start, end - start, [self.field_index(start, end, average)], frequent))
        return _core.Reader(segments, 1)


corpora = st.builds(Corpus.random, st.integers(0, 2**32), st.integers(1, 700), st.sampled_from([0, 100, 3000, 20_000]))
cut_points = st.lists(st.integers(0, 10_000), max_size=4)
averages = st.lists(st.floats(1, 60), min_size=1, max_size=3)
bitmaps = st.tuples(st.integers(0, 2**32), st.sampled_from([0.0, 0.01, 0.3, 0.9, 1.0]))


def random_bitmap(seed: int, share: float, documents: int) -> tuple[np.ndarray, np.ndarray]:
    bits = np.random.default_rng(seed).random(documents) < share
    packed = np.packbits(bits, bitorder="little")
    return bits, np.concatenate([packed, np.zeros(-len(packed) % 8, np.uint8)]).view(np.uint64)


@settings(deadline=None, max_examples=100)
@given(
    corpus=corpora,
    cuts=cut_points,
    built_with=averages,
    chosen=st.lists(st.integers(0, TERMS), min_size=1, max_size=8),
    weights=st.lists(st.just(0.0) | st.floats(1e-3, 12), min_size=8, max_size=8),
    k=st.integers(1, 40),
    every=st.booleans(),
    bitmap=st.none() | bitmaps,
    parameters=st.sampled_from([(1.2, 0.75), (0.9, 0.4), (0.0, 0.0), (2.0, 1.0)]),
    drift=st.floats(0.3, 3),
    phrases=st.dictionaries(st.integers(0, 7), st.lists(st.integers(0, 5), min_size=1, max_size=2), max_size=2),
    most_bytes=st.sampled_from([0, 64, 1 << 30]),
)
def test_the_best_are_those_of_scoring_everything(
    corpus: Corpus,
    cuts: list[int],
    built_with: list[float],
    chosen: list[int],
    weights: list[float],
    k: int,
    every: bool,
    bitmap: tuple[int, float] | None,
    parameters: tuple[float, float],
    drift: float,
    phrases: dict[int, list[int]],
    most_bytes: int,
) -> None:
    average = corpus.average_length * drift
    plain = PlainIndex(corpus.documents)
    terms = [PlainTerm(t, w, *parameters, average) for t, w in zip(chosen, weights, strict=False)]
    for number, words in phrases.items():
        if number < len(terms):
            found = {lid: len(starts) for lid, starts in plain.phrase(words).items()}
            terms[number] = replace(terms[number], found=found)
    reader = corpus.reader(cuts, built_with, most_bytes)
    bits, accept = random_bitmap(*bitmap, len(corpus.documents)) if bitmap else (None, None)
    expected, count = plain.best(terms, k, every, lambda lid: bits is None or bool(bits[lid]))
    # A document that scores nothing may be left out: its caller looks for those in another way.
    scoring = [hit for hit in expected if hit[1] > 0]
    for _ in range(2):  # the second time, bitmaps are there
        lids, scores, counted, searched = run_best(reader, terms, k, every, accept)
        assert searched == reader.limit
        hits = [hit for hit in zip(lids.tolist(), scores.tolist(), strict=True) if hit[1] > 0]
        assert hits == scoring
        assert counted == count
    lids, scores, *_ = run_best(reader, terms, k, every, accept, count=False)
    assert [hit for hit in zip(lids.tolist(), scores.tolist(), strict=True) if hit[1] > 0] == scoring


def run_best(
    reader: _core.Reader,
    terms: list[PlainTerm],
    k: int,
    every: bool,
    accept: np.ndarray | None,
    count: bool = True,
) -> tuple[np.ndarray, np.ndarray, int, int]:
    found = [
        (number, np.array(sorted(t.found), np.uint32), np.cumsum([0, *(t.found[lid] for lid in sorted(t.found))]))
        for number, t in enumerate(terms)
        if t.found is not None
    ]
    return _core.best(
        reader,
        [(0, t.term, t.weight, t.k1, t.b, t.average_length) for t in terms],
        [(number, lids, offsets.astype(np.uint32)) for number, lids, offsets in found],
        k,
        every,
        count,
        accept,
    )


@pytest.mark.parametrize(
    ("lids", "offsets"),
    [([5, 5], [0, 1, 2]), ([5, 4], [0, 1, 2]), ([40], [0, 1]), ([5], [0]), ([5], [1, 1]), ([5], [2, 1])],
)
def test_documents_that_cannot_be_found_are_refused(lids: list[int], offsets: list[int]) -> None:
    reader = Corpus.random(1, 40).reader([], [10.0])
    found = (0, np.array(lids, np.uint32), np.array(offsets, np.uint32))
    with pytest.raises(ValueError):
        _core.best(reader, [(0, 0, 1.0, 1.2, 0.75, 10.0)], [found], 10, False, True, None)


def test_documents_are_found_of_a_term_of_the_query() -> None:
    reader = Corpus.random(1, 40).reader([], [10.0])
    found = np.array([5], np.uint32), np.array([0, 1], np.uint32)
    term = (0, 0, 1.0, 1.2, 0.75, 10.0)
    for numbers in ([1], [0, 0]):
        with pytest.raises(ValueError):
            _core.best(reader, [term], [(number, *found) for number in numbers], 10, False, True, None)


def test_frequent_terms_belong_to_one_segment() -> None:
    field_index = Corpus.random(1, 40).field_index(0, 40, 10.0)
    for base, documents in ((64, 40), (0, 41)):
        with pytest.raises(ValueError):
            _core.Reader([(0, 40, [field_index], _core.FrequentTerms(base, documents, 1, 1 << 30, 1))], 1)


def test_bitmaps_stay_within_their_bytes_and_go_with_their_segment() -> None:
    """Of 700 documents a bitmap has 88 bytes: 11 words of 64."""
    corpus = Corpus.random(1, 700)
    before = _core.FrequentTerms.bytes_kept()
    reader = corpus.reader([], [10.0], before + 2 * 88)
    bitmap = np.zeros(11, np.uint64)
    kept = []
    for term in range(4):
        _core.match(reader, 0, term, bitmap)
        kept.append(_core.FrequentTerms.bytes_kept() - before)
    assert kept == [88, 176, 176, 176]
    del reader
    assert _core.FrequentTerms.bytes_kept() == before


AMONG = st.sampled_from([(0.5, 0.5), (1.0, 0.0), (1.0, 0.01), (0.99, 0.0), (1.0, 1.0)])
"""Of the documents with a term, and of the others, how many are asked for."""


def lids_among(has_term: NDArray[np.bool_], seed: int, share: float, share_of_others: float) -> NDArray[np.uint32]:
    """Lids, such as those of the only word of a query are: whole blocks of its postings."""
    chance = np.random.default_rng(seed).random(len(has_term))
    return np.flatnonzero(chance < np.where(has_term, share, share_of_others)).astype(np.uint32)


@settings(deadline=None, max_examples=60)
@given(
    corpora,
    cut_points,
    st.integers(0, 2**32),
    st.lists(st.tuples(st.integers(0, TERMS + 1), st.floats(0, 9)), max_size=5),
    st.sampled_from([(1.2, 0.75), (0.0, 0.0), (2.0, 1.0)]),
    AMONG,
)
def test_bm25_of_terms_is_that_of_their_occurrences(
    corpus: Corpus,
    cuts: list[int],
    seed: int,
    terms: list[tuple[int, float]],
    parameters: tuple[float, float],
    among: tuple[float, float],
) -> None:
    plain, reader = PlainIndex(corpus.documents), corpus.reader(cuts, [corpus.average_length])
    lids = lids_among(plain.occurrences(terms[0][0] if terms else 0) > 0, seed, *among)
    found, expected = np.zeros(len(lids)), np.zeros(len(lids))
    _core.add_bm25_of(reader, 0, terms, *parameters, corpus.average_length, lids, found)
    occurrences = [plain.occurrences(term)[lids].astype(np.int32) for term, _ in terms]
    lengths = np.array([len(corpus.documents[lid]) for lid in lids], np.int32)
    weights = [weight for _, weight in terms]
    bm25.add_bm25_of(occurrences, lengths, weights, *parameters, corpus.average_length, expected)
    np.testing.assert_array_equal(found, expected)


def test_bm25_of_terms_needs_a_field_and_a_score_for_each_document() -> None:
    reader, lids = Corpus.random(1, 9).reader([], [5.0]), np.arange(3, dtype=np.uint32)
    with pytest.raises(ValueError, match="no such field"):
        _core.add_bm25_of(reader, 1, [(1, 1.0)], 1.2, 0.75, 5.0, lids, np.zeros(3))
    with pytest.raises(ValueError, match="one score"):
        _core.add_bm25_of(reader, 0, [(1, 1.0)], 1.2, 0.75, 5.0, lids, np.zeros(2))


@settings(deadline=None, max_examples=30)
@given(corpus=corpora, cuts=cut_points, seed=st.integers(0, 2**32), term=st.integers(0, TERMS), among=AMONG)
def test_occurrences_positions_lengths(
    corpus: Corpus, cuts: list[int], seed: int, term: int, among: tuple[float, float]
) -> None:
    reader = corpus.reader(cuts, [10.0])
    plain = PlainIndex(corpus.documents)
    lids = lids_among(plain.occurrences(term) > 0, seed, *among)
    counts = np.empty(len(lids), np.int32)
    _core.occurrences(reader, 0, term, lids, counts)
    assert counts.tolist() == plain.occurrences(term)[lids].tolist()
    lengths = np.empty(len(lids), np.int32)
    _core.field_lengths(reader, 0, lids, lengths)
    assert lengths.tolist() == plain.lengths()[lids].tolist()
    offsets, positions = _core.positions(reader, 0, term, lids)
    split = [positions[a:b].tolist() for a, b in pairwise(offsets)]
    assert split == [plain.positions(term, lid) for lid in lids.tolist()]
    bitmap = np.zeros((len(corpus.documents) + 63) // 64, np.uint64)
    _core.match(reader, 0, term, bitmap)
    assert _core.bitmap_lids(bitmap, len(corpus.documents)).tolist() == np.flatnonzero(plain.occurrences(term)).tolist()
    assert _core.document_frequency(reader, 0, term) == np.count_nonzero(plain.occurrences(term))


@settings(deadline=None, max_examples=30)
@given(corpus=corpora, cuts=cut_points, bitmap=bitmaps)
def test_statistics_of_what_is_not_accepted(corpus: Corpus, cuts: list[int], bitmap: tuple[int, float]) -> None:
    reader = corpus.reader(cuts, [10.0])
    bits, accept = random_bitmap(*bitmap, len(corpus.documents))
    lengths = PlainIndex(corpus.documents).lengths()[~bits]
    count = int(np.count_nonzero(lengths))
    assert _core.unaccepted_statistics(reader, 0, accept) == (count, int(lengths.sum()), count)


@settings(deadline=None, max_examples=30)
@given(
    corpus=corpora,
    cuts=cut_points,
    term=st.integers(0, TERMS),
    bitmap=bitmaps,
    most_bytes=st.sampled_from([0, 1 << 30]),
)
def test_count_of_accepted_documents_with_a_term(
    corpus: Corpus, cuts: list[int], term: int, bitmap: tuple[int, float], most_bytes: int
) -> None:
    reader = corpus.reader(cuts, [10.0], most_bytes)
    bits, accept = random_bitmap(*bitmap, len(corpus.documents))
    there = PlainIndex(corpus.documents).occurrences(term) > 0
    for _ in range(2):
        assert _core.count_accepted(reader, 0, term, accept) == np.count_nonzero(there & bits)
        found = np.zeros(len(accept), np.uint64)
        _core.match(reader, 0, term, found)
        assert _core.bitmap_lids(found, len(bits)).tolist() == np.flatnonzero(there).tolist()


@settings(deadline=None, max_examples=30)
@given(
    corpus=corpora,
    cuts=cut_points,
    phrase=st.lists(st.integers(0, 5), min_size=1, max_size=4),
    bitmap=bitmaps,
)
def test_phrase(corpus: Corpus, cuts: list[int], phrase: list[int], bitmap: tuple[int, float]) -> None:
    reader = corpus.reader(cuts, [10.0])
    bits, accept = random_bitmap(*bitmap, len(corpus.documents))
    lids, offsets, positions = _core.phrase(reader, 0, np.array(phrase, np.uint32), accept)
    split = [positions[a:b].tolist() for a, b in pairwise(offsets)]
    expected = {lid: starts for lid, starts in PlainIndex(corpus.documents).phrase(phrase).items() if bits[lid]}
    assert dict(zip(lids.tolist(), split, strict=True)) == expected


@settings(deadline=None, max_examples=30)
@given(corpus=corpora, cuts=cut_points, seed=st.integers(0, 2**32), share=st.sampled_from([0.0, 0.2, 1.0]))
def test_merging_keeps_what_is_kept(corpus: Corpus, cuts: list[int], seed: int, share: float) -> None:
    count = len(corpus.documents)
    bounds = sorted({0, count, *(c % count for c in cuts)})
    field_indexes = [corpus.field_index(a, b, 10.0) for a, b in pairwise(bounds)]
    kept = np.random.default_rng(seed).random(count) < share
    mapping = np.where(kept, np.cumsum(kept) - 1, _core.NO_INDEX).astype(np.uint32)
    documents = [d for d, keep in zip(corpus.documents, kept, strict=True) if keep]
    if not documents:
        return
    merged = _core.merge(field_indexes, mapping, len(documents), 10.0)
    expected = Corpus(documents).field_index(0, len(documents), 10.0)
    assert merged.tobytes() == expected.tobytes()


@settings(deadline=None, max_examples=50)
@given(corpus=corpora, cut=st.integers(0, 100_000), at=st.integers(0, 8 * 30), value=st.integers(0, 255))
def test_a_damaged_header_is_refused_or_harmless(corpus: Corpus, cut: int, at: int, value: int) -> None:
    field_index = corpus.field_index(0, len(corpus.documents), 10.0)
    with pytest.raises(ValueError, match=r"field index|aligned|sections"):
        _core.describe(np.ascontiguousarray(field_index[: cut % len(field_index)][: len(field_index) - 64]))
    damaged = field_index.copy()
    damaged[at % len(damaged)] = value
    with suppress(ValueError):
        _core.describe(damaged)
