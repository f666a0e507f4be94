"""What a rank feature is, and what it may ask about the hits it is computed for.

A feature family is one file of this package that registers itself; the batch is a block of lids, the answer one
float64 per lid.
Vespa: https://docs.vespa.ai/en/reference/ranking/rank-features.html
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from paperwasp.core import _core
from paperwasp.tensor.batch import Labels, TensorBatch
from paperwasp.tensor.kept import KeptTensors
from paperwasp.tensor.types import TensorType
from paperwasp.tensor.value import Tensor


@dataclass(frozen=True, slots=True)
class RankTerm:
    """One term of the query as ranking sees it, in query order.

    `fields` are the fields it searches (several for a fieldset). A phrase is one term. `significance` is Vespa's term
    significance 0..1; `connectivity` is to the previous term (default 0.1). `weight` is the query's percentage.
    `explicit_significance`: the query itself gave the significance, which then also stands for the idf of bm25.
    `document_frequency`: (documents with the term, documents), where the query itself gives it; it takes precedence
    over what the node counts and over a significance.
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


@dataclass(frozen=True, slots=True, eq=False)
class NearVectors:
    """Of each hit the vector that is nearest to the one of a term, whether the term matches or not."""

    distances: NDArray[np.float64]
    """Infinite where a hit has no vector."""
    closeness: NDArray[np.float64]
    """The raw scores; `least` where a hit has no vector."""
    subspaces: NDArray[np.uint32]
    """Which of a hit's vectors it is."""
    least: float


@dataclass(frozen=True, slots=True, eq=False)
class ElementPlaces:
    """Where a term stands in the elements of an indexed field: hit i has what is from offsets[i] to offsets[i + 1],
    in the order of the field. A single value is one element, of weight 1."""

    offsets: NDArray[np.uint32]
    elements: NDArray[np.uint32]
    """Numbers, from 0."""
    positions: NDArray[np.uint32]
    """In the element."""
    lengths: NDArray[np.uint32]
    """Of the element, in tokens."""
    weights: NDArray[np.int32]
    """Of the element."""


@dataclass(frozen=True, slots=True)
class FieldStatistics:
    """Over all live documents: how many have the field, and the mean lengths of it and of its elements in tokens."""

    documents: int
    average_length: float
    average_element_length: float = 0.0


class WordLists(NamedTuple):
    """The postings of an indexed field, and which of them are what terms match there."""

    reader: _core.Reader
    number: int
    """Of the field in the index."""
    words: Mapping[int, int]
    """Number of a term → its word; `NO_TERM` where ranking is not to see where it stands. Of other terms only the
    positions are known."""


Worked = TypeVar("Worked")


class MatchContext(Protocol):
    """One block of hits: what matched where. Arrays are parallel to `lids`, which rise."""

    @property
    def lids(self) -> NDArray[np.uint32]: ...

    @property
    def terms(self) -> Sequence[RankTerm]: ...

    @property
    def inputs(self) -> Mapping[str, float]:
        """query(name) → value, defaults of the profile applied. A text is its hash."""

    @property
    def text_inputs(self) -> Mapping[str, str]:
        """query(name) → the text that the query gives."""

    def query_tensor(self, name: str) -> Tensor | None:
        """query(name) where it is a tensor that the query itself brings."""

    @property
    def properties(self) -> Mapping[str, str]:
        """Rank properties: the profile's, then the query's."""

    @property
    def now_seconds(self) -> float: ...

    @property
    def labels(self) -> Labels:
        """The numbers of labels in the tensors of this query."""

    @property
    def distribution_key(self) -> int:
        """Of the node that has the hits."""

    def lids_in_node(self) -> NDArray[np.uint32]:
        """The local number of each hit in its node, however it was found: documents of streaming search have other
        `lids`."""

    @property
    def first_phase_max(self) -> float:
        """The highest score of the first phase; -inf while it is not known."""

    def first_phase_ranks(self) -> NDArray[np.float64]:
        """The place of each hit among those that are ranked again, from 1; infinite for the others."""

    @property
    def hits(self) -> int:
        """How many lids there are."""

    @property
    def known(self) -> dict[object, Any]:
        """What has been worked out for the block: see `ranking.evaluation.Block`."""

    def tensor_input(self, name: str, type_: TensorType) -> TensorBatch:
        """query(name) of a tensor type, the same for all hits; without a value it is empty, or its cells are 0."""

    def tensor_attribute(self, name: str, type_: TensorType) -> TensorBatch:
        """A tensor attribute; where it is unset it is empty, or its cells are 0."""

    def kept_tensors(self, name: str, type_: TensorType) -> KeptTensors:
        """A tensor attribute where it stands; where it is unset it has no subspaces."""

    def attribute_labels(self, name: str) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
        """The elements of an attribute of strings or whole numbers as numbers of `labels`: how many each hit has,
        those of all hits in a row, and their weights, which are 1 but in a weighted set."""

    def attribute_hash(self, name: str, element: int) -> NDArray[np.float64]:
        """The hash of element `element` of an attribute of strings; that of a single value is number 0."""

    def relevance(self, phase: str) -> NDArray[np.float64]:
        """The values of the expression of "firstPhase" or "secondPhase"; or "relevance", the final scores of hits."""

    def attribute(self, name: str) -> NDArray[np.float64]:
        """A single-valued numeric attribute; NaN where unset (integers have an unset value too: NaN here)."""

    def attribute_count(self, name: str) -> NDArray[np.float64]:
        """The number of values of an attribute: elements of an array, 1 for a single value."""

    def attribute_element(self, name: str, element: int) -> NDArray[np.float64]:
        """Element `element` of a numeric array attribute; 0 where it has fewer."""

    def attribute_weight(self, name: str, key: str | int) -> NDArray[np.float64]:
        """The weight of a key of a weighted set attribute; NaN where the set does not have it."""

    def attribute_weights(self, name: str) -> NDArray[np.float64]:
        """The sum of all weights of a weighted set attribute."""

    def attribute_numbers(self, name: str) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """The elements of an array attribute of numbers: how many each hit has, and those of all hits in a row."""

    def attribute_positions(self, name: str) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """As `attribute_numbers`, of positions: (n, 2), x and y in millionths of degrees."""

    def attribute_products(self, name: str, weights: Mapping[str | int, float]) -> NDArray[np.float64]:
        """The sum of the products of the weights of keys in a weighted set attribute and in `weights`."""

    def places_of_query(self, field: str) -> Sequence[tuple[int, int]]:
        """The centres, x and y in millionths of degrees, of circles that the query searches in a field of positions;
        where it searches none there, those of all that it searches."""

    def document_frequency(self, term: int) -> tuple[int, int]:
        """(documents with term number `term`, documents) as the node counts them: one number for all its fields."""

    @property
    def indexed_documents(self) -> int:
        """How many documents there are, as document frequencies count them."""

    def matched(self, term: int, field: str) -> NDArray[np.bool_]:
        """Where term number `term` matched in `field`, index or attribute."""

    def occurrences(self, term: int, field: str) -> NDArray[np.int32]:
        """How often term number `term` occurs in the indexed `field`; 0 where it does not match."""

    def only_filters(self, term: int, field: str) -> bool:
        """Whether only that term number `term` matches in `field` is known, and not where or how often."""

    def positions(self, term: int, field: str) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
        """(offsets[n + 1], positions) in the indexed `field`: hit i has positions[offsets[i]:offsets[i + 1]]."""

    def word_lists(self, field: str) -> WordLists | None:
        """What terms match in the indexed `field`; None where one matches in another way than by standing somewhere, or
        in several ways."""

    def element_places(self, term: int, field: str) -> ElementPlaces:
        """As `positions`, by the elements of the field."""

    def element_gap(self, field: str) -> float:
        """How many positions an element of an indexed field begins behind the end of the one before it; infinite: they
        are not near each other."""

    def match_weights(self, term: int, field: str) -> NDArray[np.int64]:
        """What the match of term number `term` in `field` weighs: the sum of the weights of matched elements in an
        attribute, the weight of the first in an index, 1 where there are none; 0 where it does not match."""

    def raw_scores(self, term: int, field: str) -> NDArray[np.float64]:
        """What the operator itself scores, where it matches; 0 elsewhere, and for operators without a score."""

    def near_vectors(self, term: int, field: str) -> NearVectors | None:
        """None: the term is not nearestNeighbor in this field."""

    def vector_labels(self, field: str, hits: NDArray[np.int64], subspaces: NDArray[np.uint32]) -> NDArray[np.int64]:
        """The labels of one vector of each of some hits, those of one hit after those of another, as numbers of
        `labels`. `hits`: places in `lids`."""

    def field_length(self, field: str) -> NDArray[np.int32]:
        """The length in tokens of the indexed `field`."""

    def field_statistics(self, field: str) -> FieldStatistics: ...

    def once(self, key: Hashable, work: Callable[[], Worked]) -> Worked:
        """What `work` answers, which several features of a block share: it is done for the first that asks."""

    def once_for_query(self, key: Hashable, work: Callable[[], Worked]) -> Worked:
        """As `once`, of what is the same for all blocks of the query."""

    @property
    def score_floor(self) -> float:
        """Hits that score no more are not wanted: their score may be -infinity. Not -infinity only where a feature is
        all that is computed."""

    def subqueries(self, field: str) -> NDArray[np.uint64]:
        """The subqueries of predicate() that match in `field`: a bit for each."""


def terms_of(context: MatchContext, field: str) -> Iterator[tuple[int, RankTerm]]:
    """The terms of the query that search a field, each with its number."""
    return ((number, term) for number, term in enumerate(context.terms) if field in term.fields)


def are_terms_of(context: MatchContext, field: str, *numbers: int) -> bool:
    """Whether these are numbers of terms that search a field."""
    return all(number < len(context.terms) and field in context.terms[number].fields for number in numbers)
