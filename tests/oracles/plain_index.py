"""The plain twin of the index kernels (field_index_writer, reader, term_bits, top_k): what they must answer.

A document is a list of (term, position); the index is just those lists.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

Document = Sequence[tuple[int, int]]


class PlainTerm(Struct, frozen=True):
    """A term of a query with its weight (idf) and BM25's parameters."""

    term: int
    weight: float
    k1: float
    b: float
    average_length: float
    found: Mapping[int, int] | None = None
    """Where it is no word but a phrase, say: how often it occurs in the documents that have it."""


class PlainIndex(Struct, frozen=True):
    """One field of documents 0..n."""

    documents: Sequence[Document]

    def positions(self, term: int, lid: int) -> list[int]:
        return [position for found, position in self.documents[lid] if found == term]

    def occurrences(self, term: int) -> NDArray[np.int32]:
        """For every document."""
        counts = [sum(found == term for found, _ in document) for document in self.documents]
        return np.array(counts, np.int32)

    def occurrences_of(self, term: PlainTerm) -> NDArray[np.int32]:
        """For every document, of a word or of what is found."""
        if term.found is None:
            return self.occurrences(term.term)
        return np.array([term.found.get(lid, 0) for lid in range(len(self.documents))], np.int32)

    def lengths(self) -> NDArray[np.int32]:
        return np.array([min(len(document), 65535) for document in self.documents], np.int32)

    def phrase(self, terms: Sequence[int]) -> dict[int, list[int]]:
        """Document → positions where the terms start to follow each other."""
        found: dict[int, list[int]] = {}
        for lid, document in enumerate(self.documents):
            there = {(term, position) for term, position in document}
            starts = [p for t, p in document if t == terms[0] and all((u, p + i) in there for i, u in enumerate(terms))]
            if starts:
                found[lid] = starts
        return found

    def scores(self, terms: Sequence[PlainTerm]) -> NDArray[np.float64]:
        """The weighted BM25 sum of every document, added up in the order of the terms, which search one field."""
        total = np.zeros(len(self.documents))
        lengths = self.lengths().astype(np.float64)
        for t in terms:
            found = self.occurrences_of(t)
            f = found[there := found > 0].astype(np.float64)
            saturation = t.k1 * (1 - t.b) + t.k1 * t.b * (lengths[there] / t.average_length)
            total[there] += f * (t.weight * (t.k1 + 1)) / (f + saturation)
        return total

    def best(
        self, terms: Sequence[PlainTerm], k: int, every: bool, accept: Callable[[int], bool]
    ) -> tuple[list[tuple[int, float]], int]:
        """The best k (lid, score) of those with some term, or with every one, and how many there are; ties: the lower
        lid first."""
        counts = np.array([self.occurrences_of(t) for t in terms]).reshape(len(terms), len(self.documents)) > 0
        matches = counts.all(0) if every else counts.any(0)
        scores = self.scores(terms)
        hits = [lid for lid in np.flatnonzero(matches).tolist() if accept(lid)]
        hits.sort(key=lambda lid: (-scores[lid], lid))
        return [(lid, float(scores[lid])) for lid in hits[:k]], len(hits)
