"""What the terms of a query match in each element of an indexed field: a row for each element that has any of them.

The ground of elementSimilarity, textSimilarity, elementCompleteness and flowCompleteness.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from paperwasp.base.records import dataclass
from paperwasp.core import _core
from paperwasp.core.element_match import COLUMNS
from paperwasp.search.features.block import Block, terms_of
from paperwasp.search.features.family import Floats


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


def element_places(block: Block, term: int, field: str) -> ElementPlaces:
    """The positions of term number `term` by the elements of the indexed `field`."""
    offsets, positions = block.positions(term, field)
    places = block.setting.space.index.locate(block.setting.number_of(field), block.lids, offsets, positions)
    lengths = places.ends - places.starts
    return ElementPlaces(offsets, places.elements, positions - places.starts, lengths, places.weights)


@dataclass(frozen=True, eq=False)
class ElementRows:
    """Rows of hit i are from offsets[i] to offsets[i + 1], in the order of the elements."""

    offsets: NDArray[np.uint32]
    elements: NDArray[np.uint32]
    values: Floats
    """(rows, COLUMNS)"""
    terms: int
    """Those that search the field and weigh something."""
    total_weight: float
    """Of these terms."""

    def column(self, name: str) -> Floats:
        return self.values[:, COLUMNS.index(name)]

    @property
    def query_coverage(self) -> Floats:
        return self.column("taken_weight") / self.total_weight

    @property
    def field_coverage(self) -> Floats:
        return self.column("taken") / np.maximum(self.column("length"), self.column("taken"))

    def per_hit(self, values: Floats, default: float = 0.0) -> Floats:
        """Of each hit the value of its first row; `default` where it has none."""
        found = np.full(len(self.offsets) - 1, default)
        some = self.offsets[1:] > self.offsets[:-1]
        found[some] = values[self.offsets[:-1][some]]
        return found

    def best(self, scores: Floats, values: Floats) -> Floats:
        """Of each hit the value of the first of its rows with the highest score; 0 where no score is above 0."""
        hits = np.repeat(np.arange(len(self.offsets) - 1), np.diff(self.offsets))
        order = np.lexsort((-scores, hits))
        firsts = self.per_hit(order.astype(np.float64)).astype(np.int64)
        there = self.offsets[1:] > self.offsets[:-1]
        there[there] = scores[firsts[there]] > 0
        found = np.zeros(len(there))
        found[there] = values[firsts[there]]
        return found


PlacesOf = Callable[[Block, int, str], ElementPlaces]
"""The places of a term in a field, by the term's number."""


def element_rows(block: Block, field: str, *, flow: bool = False, places_of: PlacesOf = element_places) -> ElementRows:
    """Computed once for a block. Terms of weight 0 do not count."""
    return block.once(("elements", field, flow, places_of), lambda: _element_rows(block, field, flow, places_of))


def _element_rows(block: Block, field: str, flow: bool, places_of: PlacesOf) -> ElementRows:
    numbers = [number for number, term in terms_of(block, field) if term.weight != 0]
    weights = np.array([block.terms[number].weight for number in numbers], np.float64)
    places = [places_of(block, number, field) for number in numbers]
    lists = [(each.offsets, each.elements, each.positions, each.lengths, each.weights) for each in places]
    offsets, elements, values = _core.element_match(lists, weights, len(block.lids), flow)
    total = float(weights.sum())
    return ElementRows(offsets, elements, values.reshape(-1, len(COLUMNS)), len(numbers), total)
