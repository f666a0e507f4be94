"""The index kernels beside their plain twin, on random indexes cut into random parts."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paperwasp.core import _core
from paperwasp.core.plain_index import Document, PlainIndex, PlainTerm

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

    def segment(self, start: int, end: int, average_length: float) -> np.ndarray:
        chosen = self.documents[start:end]
        terms = np.array([t for d in chosen for t, _ in d], np.uint32)
        positions = np.array([p for d in chosen for _, p in d], np.uint32)
        offsets = np.concatenate([[0], np.cumsum([len(d) for d in chosen])]).astype(np.uint64)
        return _core.invert(terms, positions, offsets, average_length)

    def reader(self, cuts: list[int], average_lengths: list[float]) -> _core.Reader:
        bounds = sorted({0, len(self.documents), *(c % len(self.documents) for c in cuts)})
        parts: list[tuple[int, int, list[np.ndarray | None]]] = []
        for i, (start, end) in enumerate(pairwise(bounds)):
            average = average_lengths[i % len(average_lengths)]
            parts.append((start, end - start, [self.segment(start, end, average)]))
        return _core.Reader(parts, 1)


corpora = st.builds(Corpus.random, st.integers(0, 2**32), st.integers(1, 700), st.sampled_from([0, 100, 3000, 20_000]))
cut_points = st.lists(st.integers(0, 10_000), max_size=4)
averages = st.lists(st.floats(1, 60), min_size=1, max_size=3)
bitmaps = st.tuples(st.integers(0, 2**32), st.sampled_from([0.0, 0.01, 0.3, 0.9, 1.0]))


def random_bitmap(seed: int, share: float, documents: int) -> tuple[np.ndarray, np.ndarray]:
    bits = np.random.default_rng(seed).random(documents) < share
    packed = np.packbits(bits, bitorder="little")
    return bits, np.concatenate([packed, np.zeros(-len(packed) % 8, np.uint8)]).view(np.uint64)


@settings(deadline=None, max_examples=60)
@given(
    corpus=corpora,
    cuts=cut_points,
    built_with=averages,
    chosen=st.lists(st.integers(0, TERMS), min_size=1, max_size=8),
    weights=st.lists(st.just(0.0) | st.floats(1e-3, 12), min_size=8, max_size=8),
    k=st.integers(1, 40),
    every=st.booleans(),
    counted=st.booleans(),
    bitmap=st.none() | bitmaps,
    parameters=st.sampled_from([(1.2, 0.75), (0.9, 0.4), (0.0, 0.0), (2.0, 1.0)]),
    drift=st.floats(0.3, 3),
)
def test_top_k_is_that_of_scoring_everything(
    corpus: Corpus,
    cuts: list[int],
    built_with: list[float],
    chosen: list[int],
    weights: list[float],
    k: int,
    every: bool,
    counted: bool,
    bitmap: tuple[int, float] | None,
    parameters: tuple[float, float],
    drift: float,
) -> None:
    average = corpus.average_length * drift
    terms = [PlainTerm(t, w, *parameters, average) for t, w in zip(chosen, weights, strict=False)]
    reader = corpus.reader(cuts, built_with)
    bits, accept = random_bitmap(*bitmap, len(corpus.documents)) if bitmap else (None, None)
    expected = PlainIndex(corpus.documents).top_k(terms, k, every, lambda lid: bits is None or bool(bits[lid]))
    lids, scores, found, searched = run_top_k(reader, terms, k, every, counted, accept)
    assert searched == reader.limit
    # A document that scores nothing may be left out of "any": its caller looks for those in another way.
    scoring = [hit for hit in expected if hit[1] > 0]
    hits = [hit for hit in zip(lids.tolist(), scores.tolist(), strict=True) if hit[1] > 0]
    assert hits == scoring
    if every and counted:
        everything = PlainIndex(corpus.documents).top_k(terms, 10**6, True, lambda lid: bits is None or bool(bits[lid]))
        assert found == len(everything)


def run_top_k(
    reader: _core.Reader, terms: list[PlainTerm], k: int, every: bool, counted: bool, accept: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray, int, int]:
    count = len(terms)
    return _core.top_k(
        reader,
        np.zeros(count, np.uint32),
        np.array([t.term for t in terms], np.uint32),
        np.array([t.weight for t in terms]),
        np.array([t.k1 for t in terms]),
        np.array([t.b for t in terms]),
        np.array([t.average_length for t in terms]),
        k,
        every,
        counted,
        accept,
    )


@settings(deadline=None, max_examples=30)
@given(corpus=corpora, cuts=cut_points, seed=st.integers(0, 2**32), term=st.integers(0, TERMS))
def test_occurrences_positions_lengths(corpus: Corpus, cuts: list[int], seed: int, term: int) -> None:
    reader = corpus.reader(cuts, [10.0])
    plain = PlainIndex(corpus.documents)
    lids = np.flatnonzero(np.random.default_rng(seed).random(len(corpus.documents)) < 0.5).astype(np.uint32)
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
@given(corpus=corpora, cuts=cut_points, chosen=st.lists(st.integers(0, TERMS), max_size=5), bitmap=bitmaps)
def test_count_of_documents_with_any_term(
    corpus: Corpus, cuts: list[int], chosen: list[int], bitmap: tuple[int, float]
) -> None:
    reader = corpus.reader(cuts, [10.0])
    bits, accept = random_bitmap(*bitmap, len(corpus.documents))
    found = _core.count_any(reader, np.zeros(len(chosen), np.uint32), np.array(chosen, np.uint32), accept)
    plain = PlainIndex(corpus.documents)
    there = np.any([plain.occurrences(term) > 0 for term in chosen] or [np.zeros(1, np.bool_)], axis=0)
    assert found == np.count_nonzero(there & bits)


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
    segments = [corpus.segment(a, b, 10.0) for a, b in pairwise(bounds)]
    kept = np.random.default_rng(seed).random(count) < share
    mapping = np.where(kept, np.cumsum(kept) - 1, _core.NO_INDEX).astype(np.uint32)
    documents = [d for d, keep in zip(corpus.documents, kept, strict=True) if keep]
    if not documents:
        return
    merged = _core.merge(segments, mapping, len(documents), 10.0)
    expected = Corpus(documents).segment(0, len(documents), 10.0)
    assert merged.tobytes() == expected.tobytes()


@settings(deadline=None, max_examples=50)
@given(corpus=corpora, cut=st.integers(0, 100_000), at=st.integers(0, 8 * 30), value=st.integers(0, 255))
def test_a_damaged_header_is_refused_or_harmless(corpus: Corpus, cut: int, at: int, value: int) -> None:
    segment = corpus.segment(0, len(corpus.documents), 10.0)
    with pytest.raises(ValueError, match=r"segment|aligned|sections"):
        _core.describe(np.ascontiguousarray(segment[: cut % len(segment)][: len(segment) - 64]))
    damaged = segment.copy()
    damaged[at % len(damaged)] = value
    with suppress(ValueError):
        _core.describe(damaged)
