"""What a rank feature is, and what it may ask about the hits it is computed for.

A feature family is one file of this package that registers itself; the batch is a block of lids, the answer one
float64 per lid.
Vespa: https://docs.vespa.ai/en/reference/ranking/rank-features.html
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class RankTerm:
    """One term of the query as ranking sees it, in query order.

    `fields` are the fields it searches (several for a fieldset). A phrase is one term. `significance` is Vespa's term
    significance 0..1; `connectivity` is to the previous term (default 0.1). `weight` is the query's percentage.
    `explicit_significance`: the query itself gave the significance, which then also stands for the idf of bm25.
    `document_frequency`: (documents with the term, documents), where the query itself says so.
    """

    fields: tuple[str, ...]
    weight: int = 100
    significance: float = 0.5
    connectivity: float = 0.1
    id: int | None = None
    label: str | None = None
    phrase_length: int = 1
    explicit_significance: bool = False
    document_frequency: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class FieldStatistics:
    """Over all live documents: how many have the field, and its mean length in tokens."""

    documents: int
    average_length: float


class MatchContext(Protocol):
    """One block of hits: what matched where. Arrays are parallel to `lids`, which rise."""

    @property
    def lids(self) -> NDArray[np.uint32]: ...

    @property
    def terms(self) -> Sequence[RankTerm]: ...

    @property
    def inputs(self) -> Mapping[str, float]:
        """query(name) → value, defaults of the profile applied."""

    @property
    def properties(self) -> Mapping[str, str]:
        """Rank properties: the profile's, then the query's."""

    @property
    def now_seconds(self) -> float: ...

    def relevance(self, phase: str) -> NDArray[np.float64]:
        """Scores of an earlier phase: "firstPhase" or "secondPhase"."""

    def attribute(self, name: str) -> NDArray[np.float64]:
        """A single-valued numeric attribute; NaN where unset (integers have an unset value too: NaN here)."""

    def attribute_count(self, name: str) -> NDArray[np.float64]:
        """The number of values of an attribute: elements of an array, 1 for a single value."""

    def attribute_element(self, name: str, element: int) -> NDArray[np.float64]:
        """Element `element` of a numeric array attribute; 0 where it has fewer."""

    def attribute_weight(self, name: str, key: str | int) -> NDArray[np.float64]:
        """The weight of a key of a weighted set attribute; NaN where the set does not have it."""

    def document_frequency(self, term: int, field: str) -> int:
        """How many documents have term number `term` in `field`."""

    def matched(self, term: int, field: str) -> NDArray[np.bool_]:
        """Where term number `term` matched in `field`, index or attribute."""

    def occurrences(self, term: int, field: str) -> NDArray[np.int32]:
        """How often term number `term` occurs in the indexed `field`; 0 where it does not match."""

    def positions(self, term: int, field: str) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
        """(offsets[n + 1], positions) in the indexed `field`: hit i has positions[offsets[i]:offsets[i + 1]]."""

    def field_length(self, field: str) -> NDArray[np.int32]:
        """The length in tokens of the indexed `field`."""

    def field_statistics(self, field: str) -> FieldStatistics: ...

    def subqueries(self, field: str) -> NDArray[np.uint64]:
        """The subqueries of predicate() that match in `field`: a bit for each."""
