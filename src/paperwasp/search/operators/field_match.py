"""The match of one term in one field, as ranking sees it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

POSTING_NS: Final = 1
"""The cost of reading one posting, or one row of a column."""

Bitmap = NDArray[np.uint64]
"""Bit (lid & 63) of word (lid >> 6); (limit + 63) // 64 words."""
Lids = NDArray[np.uint32]
Occurrences = tuple[NDArray[np.uint32], NDArray[np.uint32]]
"""(offsets[lids + 1], positions)"""


class FieldMatch(ABC):
    """One term in one field."""

    field: str

    @property
    def is_positional(self) -> bool:
        """Whether it has positions, as in an index."""
        return False

    @property
    def only_filters(self) -> bool:
        """Whether ranking sees only that it matches, and neither where nor how often."""
        return False

    @abstractmethod
    def add_to(self, bitmap: Bitmap) -> None:
        """Sets the bits of the documents that match."""

    def add_within(self, bitmap: Bitmap, within: Bitmap) -> None:
        """The same, where only documents of `within` matter: of others it may set any bits."""
        self.add_to(bitmap)

    @abstractmethod
    def frequency(self) -> int:
        """How many live documents match."""

    def document_frequencies(self) -> tuple[int, ...]:
        """The document frequency for ranking of each alternative that the match consists of.

        These are Vespa's estimates (the `estHits` of its blueprints), which need not be the exact number of matches.
        """
        return (self.frequency(),)

    @property
    def is_counted(self) -> bool:
        """Whether the documents with the term are counted; if not, ranking takes it for as rare as a term can be."""
        return True

    @abstractmethod
    def occurrences(self, lids: Lids) -> NDArray[np.int32]:
        """How often the term occurs in each document; for an attribute, 1 where it matches."""

    def positions(self, lids: Lids) -> Occurrences:
        """Where the term stands; nowhere, in an attribute."""
        return np.zeros(len(lids) + 1, np.uint32), np.zeros(0, np.uint32)

    def elements(self, lids: Lids) -> Occurrences:
        """The elements of a multi-value field that match, numbered from 0, rising; of a single value, 0."""
        counts = (self.occurrences(lids) > 0).astype(np.uint32)
        return np.concatenate([[0], np.cumsum(counts)]).astype(np.uint32), np.zeros(int(counts.sum()), np.uint32)

    def element_weights(self, lids: Lids) -> NDArray[np.int32]:
        """The weight of each of these elements: of a weighted set's key; 1 elsewhere."""
        return np.ones(int(self.elements(lids)[0][-1]), np.int32)

    def match_weights(self, lids: Lids) -> NDArray[np.int64]:
        """The weight of the match in each document: of all elements that match in an attribute, added, of the first one
        in an index; 1 where there are no weights, 0 where nothing matches. int64 in the order of `lids`."""
        return (self.occurrences(lids) > 0).astype(np.int64)

    @property
    def unmasked(self) -> FieldMatch:
        """The match by itself, wherever it stands in the query."""
        return self

    def raw_scores(self, lids: Lids) -> NDArray[np.float64]:
        """The operator's own scores: dot products, closenesses; 0 where it has none. float64 in the order of `lids`."""
        return np.zeros(len(lids))

    def details(self) -> Mapping[str, Any]:
        """Describe for a trace how the documents were found."""
        return {}

    def estimate(self) -> int:
        """About how many documents match, without looking at them all."""
        return self.frequency()

    def cost(self, limit: int) -> tuple[float, int]:
        """(nanoseconds to find the documents, rather too many; at most how many there are), of rows below `limit`.
        Looks at no posting and no row."""
        return limit * POSTING_NS, limit
