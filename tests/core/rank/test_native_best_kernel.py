"""The search for the best by nativeRank beside the plain scores of all hits, on random indexes cut in parts."""

from __future__ import annotations

import random
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paperwasp.core import _core
from tests.core.index.test_index_kernels import Corpus, corpora, cut_points, random_bitmap
from tests.core.rank.test_native_scores_kernel import NOTHING, Query, queries
from tests.oracles.native_scores import plain_native_scores
from tests.oracles.plain_index import PlainIndex

COMMON = Query([1, 2, 3], [False] * 4, [1] * 4, [3.0, 2.0, 1.0, 1.0], [1.0] * 6, [0.0, *[1.0] * 8], [1.0] * 6)


def expected_scores(plain: PlainIndex, query: Query, lids: list[int]) -> list[float]:
    positions = [[plain.positions(term, lid) for lid in lids] for term in query.terms]
    lengths = [plain.lengths()[lids].tolist()]
    return plain_native_scores(positions, lengths, **query.arguments(), attribute=NOTHING)


def score_in_no_list(query: Query) -> float:
    (score,) = plain_native_scores([[[]]] * len(query.terms), [[0]], **query.arguments(), attribute=np.zeros(1))
    return score


def found_lists(plain: PlainIndex, query: Query, documents: int) -> dict[int, Any]:
    """Where those of the terms stand that are given."""
    found = {}
    for number, term in enumerate(query.terms):
        if query.given[number]:
            places = [(lid, plain.positions(term, lid)) for lid in range(documents)]
            there = [(lid, each) for lid, each in places if each]
            found[number] = (
                np.array([lid for lid, _ in there], np.uint32),
                np.concatenate([[0], np.cumsum([len(each) for _, each in there])]).astype(np.uint32),
                np.array([place for _, each in there for place in each], np.uint32),
            )
    return found


def of_parts(
    reader: Any, shared: dict[str, Any], listed: dict[int, Any], hits: Any, k: int, seed: int
) -> tuple[list[int], list[float], int]:
    """The best of some parts of the hits in any order, and how many were searched."""
    chance = random.Random(seed)
    bounds = sorted({0, *(64 * chance.randrange(len(hits) + 1) for _ in range(3))})
    parts = list(pairwise([*bounds, 2**32 - 1]))
    chance.shuffle(parts)
    floor, best, searched = _core.NativeFloor(), list[tuple[float, int]](), 0
    for first, last in parts:
        found = _core.best_native(reader, **shared, given=listed, hits=hits, k=k, first=first, last=last, floor=floor)
        assert found is not None
        best += [(-score, lid) for lid, score in zip(found[0].tolist(), found[1].tolist(), strict=True)]
        searched += found[2]
    best = sorted(best)[:k]
    return [lid for _, lid in best], [-score for score, _ in best], searched


@settings(deadline=None, max_examples=150)
@given(
    corpus=corpora,
    cuts=cut_points,
    query=queries,
    share=st.sampled_from([0.1, 0.6, 1.0]),
    k=st.integers(1, 30),
    worths_bytes=st.sampled_from([0, 300, 1 << 30]),
    seed=st.integers(0, 99),
)
def test_the_best_are_those_of_all_scores(
    corpus: Corpus, cuts: list[int], query: Query, share: float, k: int, worths_bytes: int, seed: int
) -> None:
    """To the last bit, with kept worths and without; ties: the lower lid. Nothing is found only where nothing bounds
    the score, or the hits in no list may be among the best."""
    plain = PlainIndex(corpus.documents)
    bits, hits = random_bitmap(seed, share, len(corpus.documents))
    lids = np.flatnonzero(bits).tolist()
    scores = expected_scores(plain, query, lids) if lids else []
    best = sorted(zip(scores, lids, strict=True), key=lambda hit: (-hit[0], hit[1]))[:k]
    reader = corpus.reader(cuts, [10.0, 3.0], most_worths_bytes=worths_bytes)
    shared = query.arguments()
    listed = found_lists(plain, query, len(corpus.documents))
    for _ in range(2):
        found = _core.best_native(reader, **shared, given=listed, hits=hits, k=k)
        if found is None:
            continue
        assert found[0].tolist() == [lid for _, lid in best]
        assert found[1].tolist() == [score for score, _ in best]
        assert found[2] == len(lids)
        assert of_parts(reader, shared, listed, hits, k, seed) == (found[0].tolist(), found[1].tolist(), len(lids))
    counts = all(weight > 0 for weight in (*shared["term_weights"], query.numbers[1], query.weights[2]))
    counts = counts and not 0 < query.numbers[8] < 0.1  # where nearness may be worth millions, bounds are not near
    enough = len(best) == k and best[-1][0] > score_in_no_list(query) * (1 + 1e-6) + 1e-6
    assert found is not None or not (counts and enough)


def test_many_documents_among_which_few_are_looked_at() -> None:
    """Several windows of documents, in each of which the best may be."""
    corpus = Corpus.random(11, 9000)
    plain = PlainIndex(corpus.documents)
    _, hits = random_bitmap(5, 0.8, len(corpus.documents))
    lids = _core.bitmap_lids(hits, len(corpus.documents)).tolist()
    scores = expected_scores(plain, COMMON, lids)
    best = sorted(zip(scores, lids, strict=True), key=lambda hit: (-hit[0], hit[1]))[:10]
    found = _core.best_native(corpus.reader([4000], [10.0]), **COMMON.arguments(), given={}, hits=hits, k=10)
    assert found is not None
    assert list(zip(found[1].tolist(), found[0].tolist(), strict=True)) == best


def test_a_term_that_a_segment_lacks_does_not_count_there() -> None:
    """A document of the segment before has all terms, and is scored first."""
    corpus = Corpus([[(1, 0), (2, 1), (3, 2)], [(1, 0), (3, 4)], [(2, 0), (9, 3)], [(2, 2), (3, 3)]])
    plain = PlainIndex(corpus.documents)
    _, hits = random_bitmap(5, 1.0, len(corpus.documents))
    scores = expected_scores(plain, COMMON, [0, 1, 2, 3])
    best = sorted(zip(scores, [0, 1, 2, 3], strict=True), key=lambda hit: (-hit[0], hit[1]))
    for cuts in ([1], [2], [1, 2, 3]):
        found = _core.best_native(corpus.reader(cuts, [3.0]), **COMMON.arguments(), given={}, hits=hits, k=4)
        assert found is not None
        assert list(zip(found[1].tolist(), found[0].tolist(), strict=True)) == best


def test_worths_are_kept_within_their_bytes() -> None:
    corpus = Corpus.random(3, 2000)
    _, hits = random_bitmap(5, 1.0, len(corpus.documents))
    asked = {**COMMON.arguments(), "given": {}, "hits": hits, "k": 3}
    before = _core.FrequentTerms.worths_bytes_kept()
    frequencies = [_core.document_frequency(corpus.reader([], [10.0]), 0, term) for term in COMMON.terms]
    # Each takes a byte a document, and one more.
    reader = corpus.reader([], [10.0], most_worths_bytes=before + frequencies[0] + 1)
    found = [_core.best_native(reader, **asked) for _ in range(2)]
    assert found[0] is not None and found[1] is not None
    assert found[0][1].tolist() == found[1][1].tolist()
    assert _core.FrequentTerms.worths_bytes_kept() == before + frequencies[0] + 1
    del reader
    assert _core.FrequentTerms.worths_bytes_kept() == before


@pytest.mark.parametrize(
    "change",
    [
        {"k": 0},
        {"hits": np.zeros(1, np.uint64)},
        {"given": {3: (np.zeros(0, np.uint32), np.zeros(1, np.uint32), np.zeros(0, np.uint32))}},
        {"given": {0: (np.zeros(0, np.uint32), np.zeros(1, np.uint32))}},
        {"given": {0: (np.array([2, 2], np.uint32), np.array([0, 1, 2], np.uint32), np.zeros(2, np.uint32))}},
        {"given": {0: (np.array([200], np.uint32), np.array([0, 1], np.uint32), np.zeros(1, np.uint32))}},
        {"given": {0: (np.array([2], np.uint32), np.array([0, 2], np.uint32), np.zeros(1, np.uint32))}},
        {"weights": np.ones(5)},
        {"first": 64},
        {"last": 64},
        {"first": 1, "floor": _core.NativeFloor()},
        {"last": 63, "floor": _core.NativeFloor()},
    ],
)
def test_arrays_that_do_not_fit_are_refused(change: dict[str, Any]) -> None:
    reader = Corpus.random(3, 90).reader([], [10.0])
    asked: dict[str, Any] = {"given": {}, "hits": np.full(2, 1 << 40, np.uint64), "k": 3, **COMMON.arguments()}
    _core.best_native(reader, **asked)
    with pytest.raises(ValueError):
        _core.best_native(reader, **(asked | change))


def test_what_counts_negatively_has_no_bound() -> None:
    reader = Corpus.random(3, 90).reader([], [10.0])
    asked = {**COMMON.arguments(), "given": {}, "hits": np.full(2, 1 << 40, np.uint64), "k": 1}
    tables = [-table for table in COMMON.arguments()["tables"]]
    assert _core.best_native(reader, **(asked | {"tables": tables})) is None
