"""What ranking may ask about a block of hits, answered from the planned query and the view.

Vespa: https://docs.vespa.ai/en/reference/ranking/rank-features.html
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from paperwasp.attribute import ColumnView
from paperwasp.attribute.cells import CodeTable, kept_tensors, labelled, tensors_in, text_numbers
from paperwasp.attribute.elements import numbers_in, positions_in, subspace_labels, sums_by_key, weights_of
from paperwasp.attribute.tensor import unset_tensors
from paperwasp.core import _core
from paperwasp.document.types import TensorFieldType
from paperwasp.errors import InternalError, InvalidQuery
from paperwasp.features.base import ElementPlaces, FieldStatistics, NearVectors, RankTerm, WordLists, Worked
from paperwasp.features.execution import evaluate
from paperwasp.operators import FieldMatch, IndexMatch, Operator, SearchSpace, TermOperator
from paperwasp.operators.base import NOT_COUNTED
from paperwasp.operators.geo import PositionMatch
from paperwasp.operators.nearest_neighbor import NearestNeighborMatch
from paperwasp.operators.predicate import PredicateMatch
from paperwasp.ranking import Program
from paperwasp.ranking.text_hash import text_bits
from paperwasp.tensor.batch import Labels, TensorBatch
from paperwasp.tensor.kept import KeptTensors
from paperwasp.tensor.type_rules import is_assignable
from paperwasp.tensor.types import TensorType
from paperwasp.tensor.value import Tensor, empty_tensor

Lids = NDArray[np.uint32]

_LEAST_FREQUENCY = 1e-6
"""Vespa's significance takes no term for rarer than this."""
DEFAULT_CONNECTIVITY = 0.1
STREAMED_LENGTH = 100.0
"""The average length of a field in streaming search, which counts none."""


@dataclass(frozen=True, eq=False)
class QueryTerms:
    """The terms of one query in one document type, in the order of the query."""

    root: Operator
    operators: tuple[TermOperator, ...]

    @classmethod
    def of(cls, operator: Operator) -> QueryTerms:
        return cls(operator, tuple(operator.terms()))

    @cached_property
    def rank_terms(self) -> tuple[RankTerm, ...]:
        """As ranking sees them."""
        before = (None, *self.operators)
        return tuple(_rank_term(term, previous) for term, previous in zip(self.operators, before, strict=False))


def _rank_term(term: TermOperator, previous: TermOperator | None) -> RankTerm:
    notes = term.annotations
    return RankTerm(
        fields=tuple(match.field for match in term.matches),
        weight=notes.weight,
        significance=_significance(term),
        explicit_significance=notes.significance is not None,
        connectivity=_connectivity(term, previous),
        id=notes.id,
        label=notes.label,
        phrase_length=term.length,
        document_frequency=notes.document_frequency,
    )


def _leaves(operator: Operator) -> Iterator[TermOperator]:
    if isinstance(operator, TermOperator):
        yield operator
    for child in operator.children_of():
        yield from _leaves(child)


def _significance(term: TermOperator) -> float:
    """0.5 for a term that all documents have, to 1 for one in a million; or what the query gives.

    Vespa: features/utils.cpp (`get_legacy_significance`): a document frequency that the query gives takes precedence.
    """
    notes = term.annotations
    if notes.significance is not None and notes.document_frequency is None:
        return notes.significance
    frequency, documents = notes.document_frequency or term.document_frequency
    if documents == 0 or not term.matches:
        return 0.5
    share = min(max(frequency / documents, _LEAST_FREQUENCY), 1.0)
    return 0.5 + 0.5 * math.log(share) / math.log(_LEAST_FREQUENCY)


def _connectivity(term: TermOperator, previous: TermOperator | None) -> float:
    if previous is not None and previous.annotations.connectivity is not None:
        next_id, strength = previous.annotations.connectivity
        if next_id == term.annotations.id:
            return strength
    return DEFAULT_CONNECTIVITY


@dataclass(frozen=True, eq=False)
class QuerySetting:
    """What is the same for all hits of a query in one document type."""

    space: SearchSpace
    terms: QueryTerms
    inputs: Mapping[str, float]
    properties: Mapping[str, str]
    now_seconds: float
    labels: Labels = field(default_factory=Labels)
    texts: Mapping[str, str] = field(default_factory=dict)
    """query(name) → text, as the query gives it."""
    tensors: Mapping[str, Tensor] = field(default_factory=dict)
    """query(name) → tensor, defaults of the profile applied."""
    features: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)
    """Rank feature → one number, which the query says that it is."""
    _statistics: dict[str, FieldStatistics] = field(default_factory=dict)
    _tables: dict[object, CodeTable] = field(default_factory=dict)
    _inputs: dict[str, TensorBatch] = field(default_factory=dict)
    _unfilled: dict[str, ColumnView] = field(default_factory=dict)
    worked: dict[Hashable, Any] = field(default_factory=dict)
    """What features computed for all blocks of the query."""

    def label_table(self, name: str) -> CodeTable:
        """The strings of an attribute as numbers of `labels`."""
        if name not in self._tables:
            self._tables[name] = CodeTable(self.labels.numbers)
        return self._tables[name]

    @cached_property
    def hash_table(self) -> CodeTable:
        """Strings as the bits of the numbers that they are in expressions."""
        return CodeTable(text_bits)

    def tensor_input(self, name: str, type_: TensorType) -> TensorBatch:
        """Raises InvalidQuery for a tensor of another type."""
        if name not in self._inputs:
            given = self.tensors.get(name)
            if given is None:
                given = empty_tensor(type_)
            elif not is_assignable(given.type, type_):
                raise InvalidQuery(f"query({name}) is to be a {type_}, and is a {given.type}")
            self._inputs[name] = TensorBatch.single(given, self.labels)
        return self._inputs[name]

    def field_statistics(self, name: str) -> FieldStatistics:
        """The statistics of a field, looked up once.

        Streaming search collects none: Vespa assumes a length of 100 there (streamingvisitors' queryenvironment.h).
        """
        if self.space.streamed:
            return FieldStatistics(self.space.documents, STREAMED_LENGTH, STREAMED_LENGTH)
        if name not in self._statistics:
            space = self.space
            averages = space.index.live_lengths(self.number_of(name), space.accept, space.dead)
            self._statistics[name] = FieldStatistics(space.documents, *averages)
        return self._statistics[name]

    @cached_property
    def places(self) -> tuple[tuple[str, tuple[int, int]], ...]:
        """Field and centre of all circles in the query, wherever they stand."""
        matches = (match for term in _leaves(self.terms.root) for match in term.matches)
        located = (match for match in matches if isinstance(match, PositionMatch) and match.area.has_center)
        return tuple((match.field, match.area.center) for match in located)

    def number_of(self, name: str) -> int:
        """The index's number of a field. Raises InvalidQuery if its text is not indexed."""
        key = (self.space.schema.document.name, name)
        if not self.space.index.has(key):
            raise InvalidQuery(f"Field '{name}' of schema '{self.space.schema.name}' is ranked by, and not indexed yet")
        return self.space.index.number_of(key)

    def column(self, name: str) -> ColumnView:
        """The column of an attribute; of a tensor that nothing fills yet, such as of an `embed`, one without values.

        Raises InvalidQuery if there is none.
        """
        column = self.space.columns.get(name) or self._unfilled.get(name)
        if column is not None:
            return column
        declared = self.space.schema.fields.get(name)
        if declared is None or not isinstance(declared.type, TensorFieldType):
            problem = f"Attribute '{name}' of schema '{self.space.schema.name}' is ranked by, and not filled yet"
            raise InvalidQuery(f"{problem}: its indexing statement is not executed")
        self._unfilled[name] = unset_tensors(declared.type.tensor, self.space.limit)
        return self._unfilled[name]


@dataclass(frozen=True, eq=False, slots=True)
class FirstPhase:
    """What is known when the first phase is over."""

    highest: float
    """Of all its scores."""
    reranked: Lids
    """Those that the second phase ranks, best first."""

    def ranks(self, lids: Lids) -> NDArray[np.float64]:
        """The place of each lid among those, from 1; infinite where it is not among them."""
        order = np.argsort(self.reranked)
        places = np.searchsorted(self.reranked, lids, sorter=order)
        found = np.full(len(lids), np.inf)
        inside = places < len(order)
        inside[inside] = self.reranked[order[places[inside]]] == lids[inside]
        found[inside] = order[places[inside]] + 1
        return found


@dataclass(eq=False)
class BlockContext:
    """A `MatchContext` of `paperwasp.features` over rising lids."""

    setting: QuerySetting
    lids: Lids
    scores: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)
    """Known scores: of "firstPhase", "secondPhase", or "relevance", which is what the hits have in the end."""
    phases: Mapping[str, Program] = field(default_factory=dict)
    """The expressions of phases whose values are computed when they are needed."""
    first_phase: FirstPhase | None = None
    score_floor: float = -math.inf
    """What hits must score more than to be wanted."""
    _lengths: dict[str, NDArray[np.int32]] = field(default_factory=dict)
    known: dict[object, Any] = field(default_factory=dict)
    """What has been worked out: features by their names, nodes of tensors."""

    def __post_init__(self) -> None:
        self.known.update(self.setting.features)

    @property
    def terms(self) -> Sequence[RankTerm]:
        return self.setting.terms.rank_terms

    @property
    def inputs(self) -> Mapping[str, float]:
        return self.setting.inputs

    @property
    def properties(self) -> Mapping[str, str]:
        return self.setting.properties

    @property
    def now_seconds(self) -> float:
        return self.setting.now_seconds

    @property
    def labels(self) -> Labels:
        return self.setting.labels

    @property
    def hits(self) -> int:
        return len(self.lids)

    @property
    def text_inputs(self) -> Mapping[str, str]:
        return self.setting.texts

    def part(self, places: slice) -> BlockContext:
        """Some of the hits."""
        scores = {phase: values[places] for phase, values in self.scores.items()}
        return BlockContext(self.setting, self.lids[places], scores, self.phases, self.first_phase)

    def query_tensor(self, name: str) -> Tensor | None:
        return self.setting.tensors.get(name)

    def tensor_input(self, name: str, type_: TensorType) -> TensorBatch:
        return self.setting.tensor_input(name, type_)

    def tensor_attribute(self, name: str, type_: TensorType) -> TensorBatch:
        return tensors_in(self.setting.column(name), self.lids, type_, self.setting.label_table(name))

    def kept_tensors(self, name: str, type_: TensorType) -> KeptTensors:
        return kept_tensors(self.setting.column(name), self.lids, type_)

    def attribute_labels(self, name: str) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
        return labelled(self.setting.column(name), self.lids, self.setting.label_table(name))

    def attribute_hash(self, name: str, element: int) -> NDArray[np.float64]:
        return text_numbers(self.setting.column(name), self.lids, element, self.setting.hash_table)

    @property
    def distribution_key(self) -> int:
        return self.setting.space.distribution_key

    def lids_in_node(self) -> Lids:
        own = self.setting.space.own_lids
        return self.lids if own is None else own[self.lids]

    @property
    def first_phase_max(self) -> float:
        return -math.inf if self.first_phase is None else self.first_phase.highest

    def first_phase_ranks(self) -> NDArray[np.float64]:
        return np.full(len(self.lids), np.inf) if self.first_phase is None else self.first_phase.ranks(self.lids)

    def relevance(self, phase: str) -> NDArray[np.float64]:
        if phase in self.scores:
            return self.scores[phase]
        if phase not in self.phases:
            raise InternalError(f"{phase} is needed before it is computed")
        program = self.phases[phase]
        return self.once(program, lambda: evaluate(program, self))

    def attribute(self, name: str) -> NDArray[np.float64]:
        return self.setting.column(name).as_float64(self.lids)

    def attribute_count(self, name: str) -> NDArray[np.float64]:
        return self.setting.column(name).counts(self.lids)

    def attribute_element(self, name: str, element: int) -> NDArray[np.float64]:
        return self.setting.column(name).element(self.lids, element)

    def attribute_weight(self, name: str, key: str | int) -> NDArray[np.float64]:
        return self.setting.column(name).weights(self.lids, key)

    def attribute_weights(self, name: str) -> NDArray[np.float64]:
        return weights_of(self.setting.column(name), self.lids)

    def attribute_numbers(self, name: str) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        return numbers_in(self.setting.column(name), self.lids)

    def attribute_positions(self, name: str) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        return positions_in(self.setting.column(name), self.lids)

    def attribute_products(self, name: str, weights: Mapping[str | int, float]) -> NDArray[np.float64]:
        return sums_by_key(self.setting.column(name), self.lids, weights)

    def places_of_query(self, field: str) -> Sequence[tuple[int, int]]:
        places = self.setting.places
        return [place for name, place in places if name == field] or [place for _, place in places]

    def document_frequency(self, term: int) -> tuple[int, int]:
        return self.setting.terms.operators[term].document_frequency

    @property
    def indexed_documents(self) -> int:
        space = self.setting.space
        return NOT_COUNTED[1] if space.streamed else space.documents

    def matched(self, term: int, field: str) -> NDArray[np.bool_]:
        result = np.zeros(len(self.lids), np.bool_)
        for match in self._matches(term, field):
            result |= match.occurrences(self.lids) > 0
        return result

    def occurrences(self, term: int, field: str) -> NDArray[np.int32]:
        result = np.zeros(len(self.lids), np.int32)
        for match in self._matches(term, field):
            result += match.occurrences(self.lids)
        return result

    def only_filters(self, term: int, field: str) -> bool:
        return any(match.only_filters for match in self._matches(term, field))

    def positions(self, term: int, field: str) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
        for match in self._matches(term, field):
            return match.positions(self.lids)
        return np.zeros(len(self.lids) + 1, np.uint32), np.zeros(0, np.uint32)

    def word_lists(self, field: str) -> WordLists | None:
        words = {}
        for number, term in enumerate(self.setting.terms.operators):
            matches = [match for match in term.matches if match.field == field]
            if len(matches) > 1 or not all(match.only_filters or match.is_positional for match in matches):
                return None
            for match in matches:
                if match.only_filters:
                    words[number] = _core.NO_TERM
                elif type(match) is IndexMatch:
                    words[number] = match.term
        return WordLists(self.setting.space.index.reader, self.setting.number_of(field), words)

    def element_places(self, term: int, field: str) -> ElementPlaces:
        index, number = self.setting.space.index, self.setting.number_of(field)
        offsets, positions = self.positions(term, field)
        places = index.locate(number, self.lids, offsets, positions)
        lengths = places.ends - places.starts
        return ElementPlaces(offsets, places.elements, positions - places.starts, lengths, places.weights)

    def element_gap(self, field: str) -> float:
        return self.setting.space.element_gaps.get(field, math.inf)

    def match_weights(self, term: int, field: str) -> NDArray[np.int64]:
        result = np.zeros(len(self.lids), np.int64)
        for match in self._matches(term, field):
            result += match.match_weights(self.lids)
        return result

    def raw_scores(self, term: int, field: str) -> NDArray[np.float64]:
        result = np.zeros(len(self.lids))
        for match in self._matches(term, field):
            result += match.raw_scores(self.lids)
        return result

    def near_vectors(self, term: int, field: str) -> NearVectors | None:
        for match in self._matches(term, field):
            if isinstance(match.unmasked, NearestNeighborMatch):
                return NearVectors(*match.unmasked.nearest(self.lids), match.unmasked.least_score)
        return None

    def vector_labels(self, field: str, hits: NDArray[np.int64], subspaces: NDArray[np.uint32]) -> NDArray[np.int64]:
        texts = subspace_labels(self.setting.column(field), self.lids[hits], subspaces)
        return self.labels.numbers(chain.from_iterable(texts))

    def once(self, key: Hashable, work: Callable[[], Worked]) -> Worked:
        if key not in self.known:
            self.known[key] = work()
        worked: Worked = self.known[key]
        return worked

    def once_for_query(self, key: Hashable, work: Callable[[], Worked]) -> Worked:
        if key not in self.setting.worked:
            self.setting.worked[key] = work()
        worked: Worked = self.setting.worked[key]
        return worked

    def subqueries(self, field: str) -> NDArray[np.uint64]:
        found = np.zeros(len(self.lids), np.uint64)
        for term in self.setting.terms.operators:
            for match in term.matches:
                if isinstance(match, PredicateMatch) and match.field == field:
                    found |= match.subqueries(self.lids)
        return found

    def _matches(self, term: int, field: str) -> Iterator[FieldMatch]:
        return (match for match in self.setting.terms.operators[term].matches if match.field == field)

    def field_length(self, field: str) -> NDArray[np.int32]:
        if field not in self._lengths:
            number = self.setting.number_of(field)
            self._lengths[field] = self.setting.space.index.field_lengths(number, self.lids)
        return self._lengths[field]

    def field_statistics(self, field: str) -> FieldStatistics:
        return self.setting.field_statistics(field)
