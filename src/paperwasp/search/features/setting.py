"""The setting of rank features: the terms and values of a query, the lengths of fields, and the view."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, Final, TypeVar

import numpy as np
from msgspec import Struct, field
from numpy.typing import NDArray

from paperwasp.document.tensor.batch import Labels, TensorBatch
from paperwasp.document.tensor.types import TensorType, is_assignable
from paperwasp.document.tensor.value import Tensor, empty_tensor
from paperwasp.document.types import TensorFieldType
from paperwasp.errors import InvalidQuery
from paperwasp.ranking.text_hash import text_bits
from paperwasp.search.operators.operator import Operator, SearchSpace, TermOperator
from paperwasp.storage.attributes import ColumnView
from paperwasp.storage.attributes.elements import CodeTable
from paperwasp.storage.attributes.tensor import unset_tensors

STREAMED_LENGTHS: Final = (100.0, 100.0)
"""The average lengths of a field and of its elements in streaming search, which counts none."""

Worked = TypeVar("Worked")


class QuerySetting(Struct, frozen=True, eq=False, dict=True):
    """The data that is the same for all hits of a query in one document type."""

    space: SearchSpace
    operator: Operator
    """The root operator of the query."""
    terms: tuple[TermOperator, ...]
    """The terms that rank, in the order of the query."""
    inputs: Mapping[str, float]
    """query(name) → value, defaults of the profile applied. A text is its hash."""
    properties: Mapping[str, str]
    """Rank properties: the profile's, then the query's."""
    now_seconds: float
    labels: Labels = field(default_factory=Labels)
    """The numbers of labels in the tensors of this query."""
    texts: Mapping[str, str] = field(default_factory=dict)
    """query(name) → text, as the query gives it."""
    tensors: Mapping[str, Tensor] = field(default_factory=dict)
    """query(name) → tensor, defaults of the profile applied."""
    features: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)
    """Rank feature → one number, which the query says that it is."""
    _tables: dict[object, CodeTable] = field(default_factory=dict)
    _inputs: dict[str, TensorBatch] = field(default_factory=dict)
    _unfilled: dict[str, ColumnView] = field(default_factory=dict)
    _known: dict[Hashable, Any] = field(default_factory=dict)

    @cached_property
    def rank_terms(self) -> tuple[RankTerm, ...]:
        """The terms as ranking sees them."""
        return rank_terms_of(self.terms)

    def once(self, key: Hashable, work: Callable[[], Worked]) -> Worked:
        """Return what `work` returned for the first feature that needed it: the same for all blocks of the query."""
        if key not in self._known:
            self._known[key] = work()
        found: Worked = self._known[key]
        return found

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
        """query(name) of a tensor type, the same for all hits; without a value it is empty, or its cells are 0.

        Raises InvalidQuery for a tensor of another type.
        """
        if name not in self._inputs:
            given = self.tensors.get(name)
            if given is None:
                given = empty_tensor(type_)
            elif not is_assignable(given.type, type_):
                raise InvalidQuery(f"query({name}) is to be a {type_}, and is a {given.type}")
            self._inputs[name] = TensorBatch.single(given, self.labels)
        return self._inputs[name]

    def average_lengths(self, name: str) -> tuple[float, float]:
        """The mean lengths, in tokens, of a field and of its elements, over all live documents that have the field.

        Streaming search counts none: Vespa assumes a length of 100 there (streamingvisitors' queryenvironment.h).
        """
        space = self.space
        if space.streamed:
            return STREAMED_LENGTHS
        found = space.average_lengths.get(name)
        if found is None:
            found = space.index.live_lengths(self.number_of(name), space.accept, space.dead)
            space.average_lengths[name] = found
        return found

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


# The terms of a query as ranking sees them.


DEFAULT_CONNECTIVITY: Final = 0.1
_LEAST_FREQUENCY: Final = 1e-6
"""Vespa's significance takes no term for rarer than this."""


class RankTerm(Struct, frozen=True):
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
    connectivity: float = DEFAULT_CONNECTIVITY
    id: int | None = None
    label: str | None = None
    phrase_length: int = 1
    explicit_significance: bool = False
    document_frequency: tuple[int, int] | None = None


def rank_terms_of(terms: Sequence[TermOperator]) -> tuple[RankTerm, ...]:
    """The terms of a query as ranking sees them, in the order of the query."""
    return tuple(_rank_term(term, previous) for term, previous in zip(terms, (None, *terms), strict=False))


def _rank_term(term: TermOperator, previous: TermOperator | None) -> RankTerm:
    notes = term.annotations
    return RankTerm(
        fields=tuple(match.field for match in term.matches),
        weight=notes.weight,
        significance=significance_of(term),
        explicit_significance=notes.significance is not None,
        connectivity=_connectivity(term, previous),
        id=notes.id,
        label=notes.label,
        phrase_length=term.length,
        document_frequency=notes.document_frequency,
    )


def leaves_of(operator: Operator) -> Iterator[TermOperator]:
    """All terms of a query, also those that are not ranked by."""
    if isinstance(operator, TermOperator):
        yield operator
    for child in operator.children_of():
        yield from leaves_of(child)


def significance_of(term: TermOperator) -> float:
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
