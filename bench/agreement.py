"""Whether the engines give the same ten hits, up to ties: their score lists beside exhaustive sums over the tokens."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from bench.corpus import Corpus, word_of
from bench.engines import HITS, K1, B, Hits, Paperwasp, Pisa, Tantivy
from bench.lucene_peer import Lucene

SAMPLE = 20
RELATIVE_TOLERANCE = 2e-4
"""The peers add in single precision."""

Floats = NDArray[np.float64]


def agreement(
    corpus: Corpus, ours: Paperwasp, tantivy: Tantivy | None, pisa: Pisa | None, lucene: Lucene | None = None
) -> Iterator[str]:
    """One line for each engine: how many of a sample of queries it answers with the best ten scores."""
    queries = [*corpus.queries[:SAMPLE], *corpus.titles[: SAMPLE // 4]]
    words = [[word_of(t) for t in query] for query in queries]
    exhaustive = Exhaustive(corpus, {t for query in queries for t in query})
    true_lengths, coarse_lengths = exhaustive.lengths, _coarse(exhaustive.lengths)
    yield _line("ours", [ours.any_of(w)() for w in words], [exhaustive.best(q, _idf, true_lengths) for q in queries])
    if pisa is not None:
        hits = pisa.run(iter(words), len(words))
        yield _line("PISA (its idf)", hits, [exhaustive.best(q, _idf_of_pisa, true_lengths) for q in queries])
        yield _line(
            "ours with PISA's idf, beside PISA", [ours.any_of_as_pisa(w)() for w in words], [_scores(h) for h in hits]
        )
    coarse = [engine for engine in (tantivy, lucene) if engine is not None]
    expected = [exhaustive.best(q, _idf, coarse_lengths) for q in queries] if coarse else []
    for engine in coarse:
        yield _line(f"{engine.name} (its lengths in a byte)", [engine.any_of(w)() for w in words], expected)


class Exhaustive:
    """Scores every document, with nothing but the tokens."""

    def __init__(self, corpus: Corpus, terms: set[int]) -> None:
        self.lengths = np.diff(corpus.offsets).astype(np.float64)
        self._average = corpus.average_length
        self._postings = {t: self._postings_of(corpus, t) for t in terms}

    def _postings_of(self, corpus: Corpus, term: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        places = np.flatnonzero(corpus.tokens == term).astype(np.uint64)
        return np.unique(np.searchsorted(corpus.offsets, places, side="right") - 1, return_counts=True)

    def best(self, query: Sequence[int], idf: Callable[[int, int], float], lengths: Floats) -> Floats:
        """The ten best scores, falling."""
        scores = np.zeros(len(lengths))
        for term in query:
            documents, counts = self._postings[term]
            norm = K1 * (1 - B + B * lengths[documents] / self._average)
            scores[documents] += idf(len(lengths), len(documents)) * counts * (K1 + 1) / (counts + norm)
        best = np.sort(scores)[::-1][:HITS]
        return best[best > 0]


def _line(name: str, hits: Sequence[Hits], expected: Sequence[Floats]) -> str:
    same = sum(_same(_scores(mine), theirs) for mine, theirs in zip(hits, expected, strict=True))
    return f"agreement, {name}: the best ten scores for {same} of {len(hits)} queries"


def _scores(hits: Hits) -> Floats:
    return np.array([score for score, _ in hits])


def _same(mine: Floats, theirs: Floats) -> bool:
    return len(mine) == len(theirs) and bool(np.allclose(mine, theirs, rtol=RELATIVE_TOLERANCE))


def _idf(documents_count: int, frequency: int) -> float:
    return float(np.log1p((documents_count - frequency + 0.5) / (frequency + 0.5)))


def _idf_of_pisa(documents_count: int, frequency: int) -> float:
    return max(1e-6, float(np.log((documents_count - frequency + 0.5) / (frequency + 0.5))))


def _coarse(lengths: Floats) -> Floats:
    """Lengths as Lucene and tantivy keep them: exact to 40, then eight steps to a doubling above 24, rounded down."""
    steps = [*range(24), *(24 + step for step in _steps())]
    return np.array(steps, np.float64)[np.searchsorted(steps, lengths, side="right") - 1]


def _steps() -> Iterator[int]:
    yield from range(8)
    for shift in range(24):
        yield from ((8 + low) << shift for low in range(8))
