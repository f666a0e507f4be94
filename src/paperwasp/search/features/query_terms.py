"""The terms of a query as ranking sees them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Final

from paperwasp.base.records import dataclass
from paperwasp.search.operators.operator import Operator, TermOperator

DEFAULT_CONNECTIVITY: Final = 0.1
_LEAST_FREQUENCY: Final = 1e-6
"""Vespa's significance takes no term for rarer than this."""


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
