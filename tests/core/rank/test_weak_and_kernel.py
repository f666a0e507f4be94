"""The weakAnd kernel beside its plain twin, on random indexes cut into random parts."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from paperwasp.core import _core
from tests.core.index.test_index_kernels import TERMS, Corpus, bitmaps, corpora, cut_points, random_bitmap
from tests.oracles.plain_index import Document, PlainIndex
from tests.oracles.weak_and import select_weakly

Bits = NDArray[np.bool_]
NO_BITMAPS: tuple[NDArray[np.uint32], list[NDArray[np.uint64]]] = (np.zeros(0, np.uint32), [])
EVERYTHING = (0, 1.0)
term_lists = st.lists(st.integers(0, TERMS - 1), min_size=1, max_size=3)
children_of_terms = st.lists(term_lists, min_size=1, max_size=8)
score_lists = st.lists(st.integers(1, 20), min_size=10, max_size=10)


@settings(deadline=None, max_examples=150)
@given(
    corpus=corpora,
    cuts=cut_points,
    terms=children_of_terms,
    scores=score_lists,
    extra=st.lists(bitmaps, max_size=2),
    accept=bitmaps,
    target=st.integers(1, 60),
    threshold=st.integers(0, 40),
)
def test_selects_what_the_twin_selects(
    corpus: Corpus,
    cuts: list[int],
    terms: list[list[int]],
    scores: list[int],
    extra: list[tuple[int, float]],
    accept: tuple[int, float],
    target: int,
    threshold: int,
) -> None:
    """Children are words with one or several terms, and then bitmaps."""
    count = len(corpus.documents)
    reader = corpus.reader(cuts, [10.0])
    plain = PlainIndex(corpus.documents)
    children: list[Bits] = [np.any([plain.occurrences(t) > 0 for t in child], axis=0) for child in terms]
    packed = []
    for seed, share in extra:
        bits, words = random_bitmap(seed, share, count)
        children.append(bits)
        packed.append(words)
    accepted, accept_words = random_bitmap(*accept, count)
    owners = [number for number, child in enumerate(terms) for _ in child]
    flat = [term for child in terms for term in child]
    used = scores[: len(children)]
    selected = np.zeros(len(accept_words), np.uint64)
    arguments = (
        reader,
        np.array(used, np.int64),
        np.array(owners, np.uint32),
        np.zeros(len(flat), np.uint32),
        np.array(flat, np.uint32),
        np.arange(len(terms), len(children), dtype=np.uint32),
        packed,
        accept_words,
        target,
        threshold,
    )
    found = _core.weak_and(*arguments, selected)
    expected = select_weakly(children, used, accepted, target, threshold)
    assert _core.bitmap_lids(selected, count).tolist() == expected
    assert found == _core.weak_and(*arguments, None) == len(expected)


def test_worked_by_hand() -> None:
    """a scores 3, b 2; target 2. The scores of the first four hits are 2, 5, 3, 5: from then on 5 is needed."""
    documents = ["b", "ab", "a", "", "ab", "a", "b", "ab", "a", "ab"]
    children = [np.array([letter in document for document in documents]) for letter in "ab"]
    hits = select_weakly(children, [3, 2], np.ones(10, np.bool_), 2, 1)
    assert hits == [0, 1, 2, 4, 7, 9]
    assert select_weakly(children, [3, 2], np.ones(10, np.bool_), 100, 3) == [1, 2, 4, 5, 7, 8, 9]


@settings(deadline=None, max_examples=10)
@given(seed=st.integers(0, 2**32), target=st.sampled_from([1, 10, 100]), rare=st.integers(1, 30))
@example(seed=0, target=10, rare=3)
def test_many_windows(seed: int, target: int, rare: int) -> None:
    """Long lists, of which most is skipped: 30,000 documents in two parts."""
    rng = np.random.default_rng(seed)
    shares = [0.5, 0.2, 0.05, rare / 30_000]
    matches: list[Bits] = [rng.random(30_000) < share for share in shares]
    documents: list[Document] = [[(t, t) for t in range(4) if matches[t][lid]] for lid in range(30_000)]
    reader = Corpus(documents).reader([10_001], [2.0])
    scores = [1, 3, 7, 20]
    accept = np.full(30_000 // 64 + 1, 2**64 - 1, np.uint64)
    selected = np.zeros_like(accept)
    numbers = np.arange(4, dtype=np.uint32)
    _core.weak_and(
        reader, np.array(scores), numbers, np.zeros(4, np.uint32), numbers, *NO_BITMAPS, accept, target, 1, selected
    )
    expected = select_weakly(matches, scores, np.ones(30_000, np.bool_), target, 1)
    assert _core.bitmap_lids(selected, 30_000).tolist() == expected


def refused(change: Callable[[dict[str, object]], None]) -> None:
    corpus = Corpus.random(1, 100)
    arguments: dict[str, object] = {
        "reader": corpus.reader([], [10.0]),
        "scores": np.array([3, 4]),
        "owners": np.array([0, 1], np.uint32),
        "fields": np.zeros(2, np.uint32),
        "terms": np.array([0, 1], np.uint32),
        "bitmap_owners": np.zeros(0, np.uint32),
        "bitmaps": [],
        "accept": np.zeros(2, np.uint64),
        "target": 3,
        "threshold": 1,
        "selected": None,
    }
    change(arguments)
    with pytest.raises(ValueError):
        _core.weak_and(**arguments)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "change",
    [
        {"owners": np.array([0, 2], np.uint32)},
        {"owners": np.array([0], np.uint32)},
        {"fields": np.array([0, 1], np.uint32)},
        {"terms": np.array([0], np.uint32)},
        {"scores": np.array([3, -1])},
        {"scores": np.array([3, 2**60])},
        {"accept": np.zeros(1, np.uint64)},
        {"selected": np.zeros(1, np.uint64)},
        {"bitmap_owners": np.array([0], np.uint32)},
        {"bitmap_owners": np.array([2], np.uint32), "bitmaps": [np.zeros(2, np.uint64)]},
        {"bitmap_owners": np.array([0], np.uint32), "bitmaps": [np.zeros(1, np.uint64)]},
        {"bitmap_owners": np.array([0], np.uint32), "bitmaps": [np.zeros(2, np.uint32)]},
    ],
)
def test_arrays_that_do_not_fit_are_refused(change: dict[str, object]) -> None:
    refused(lambda arguments: arguments.update(change))
