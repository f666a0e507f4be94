"""Where the terms of a query stand in an indexed field: in each element of it, and in fields of one text.

elementSimilarity, textSimilarity, elementCompleteness and flowCompleteness read rows of it, one for each element that
has any of the terms.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from paperwasp.core import _core
from paperwasp.search.features.block import Block, terms_of
from paperwasp.search.features.family import Floats, RankSetup, is_multiple
from paperwasp.search.operators.field_match import Occurrences

COLUMNS: Final = ("proximity", "order", "taken", "taken_weight", "length", "weight", "terms", "terms_weight", "flow")
"""In the order of the kernel's values. `terms` stand in the element; those of them are `taken` that have a place beyond
those before, in the order of the places. `flow`: of how many each can have a place of its own."""


class ElementPlaces(Struct, frozen=True, eq=False):
    """Where a term stands in the elements of an indexed field: hit i has what is from offsets[i] to offsets[i + 1],
    in the order of the field. A single value is one element, of weight 1."""

    offsets: NDArray[np.uint32]
    elements: NDArray[np.uint32]
    """Numbers, from 0."""
    positions: NDArray[np.uint32]
    """In the element."""
    lengths: NDArray[np.uint32]
    """The length of each element, in tokens."""
    weights: NDArray[np.int32]
    """The weight of each element."""


def element_places(block: Block, term: int, field: str) -> ElementPlaces:
    """The positions of term number `term` by the elements of the indexed `field`."""
    offsets, positions = block.positions(term, field)
    places = block.setting.space.index.locate(block.setting.number_of(field), block.lids, offsets, positions)
    lengths = places.ends - places.starts
    return ElementPlaces(offsets, places.elements, positions - places.starts, lengths, places.weights)


class ElementRows(Struct, frozen=True, eq=False):
    """Rows of hit i are from offsets[i] to offsets[i + 1], in the order of the elements."""

    offsets: NDArray[np.uint32]
    elements: NDArray[np.uint32]
    values: Floats
    """(rows, COLUMNS)"""
    terms: int
    """The number of terms that search the field and have a weight."""
    total_weight: float
    """The weight of these terms."""

    def column(self, name: str) -> Floats:
        return self.values[:, COLUMNS.index(name)]

    @property
    def query_coverage(self) -> Floats:
        return self.column("taken_weight") / self.total_weight

    @property
    def field_coverage(self) -> Floats:
        return self.column("taken") / np.maximum(self.column("length"), self.column("taken"))

    def per_hit(self, values: Floats, default: float = 0.0) -> Floats:
        """Return the value of the first row of each hit; `default` where it has none."""
        found = np.full(len(self.offsets) - 1, default)
        some = self.offsets[1:] > self.offsets[:-1]
        found[some] = values[self.offsets[:-1][some]]
        return found

    def best(self, scores: Floats, values: Floats) -> Floats:
        """Return the value of each hit's first row with the highest score; 0 where no score is above 0."""
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


# Where terms stand in fields that streaming search takes for texts of one value: in several values, and in numbers.
#
# The values lie over each other. A term stands at its positions in each value, counted from the value's start, and
# where a length is needed it is that of a value which matches. A number is a text of one word.
#
# Vespa: IndexEnvironment::addField of streamingvisitors, FieldSearcher::set_element_length and IntFieldSearcher of its
# vsm, TermFieldMatchData (`getIterator`)
# Differs: for the occurrences of fieldMatch words are one where their least positions are; in Vespa, where those in the
# first of the values are.


_MOST: Final = 0xFFFF
"""Vespa counts words and occurrences for bm25 in 16 bits."""


def is_flat(setup: RankSetup, name: str) -> bool:
    """Whether a field of several values, or of numbers, counts as a text of one value."""
    field = setup.field(name)
    return setup.schema.is_streamed and (is_multiple(field) or field.index is None)


def flat_places(block: Block, term: int, name: str) -> ElementPlaces:
    """The places of term number `term`, all in one element, value by value."""
    if block.only_filters(term, name):
        offsets, positions = _nowhere(block)
        lengths = positions
    elif block.setting.space.schema.fields[name].index is not None:
        places = element_places(block, term, name)
        offsets, positions, lengths = places.offsets, places.positions, places.lengths
    else:
        offsets, matching = next((match.elements(block.lids) for match in block.matches(term, name)), _nowhere(block))
        positions, lengths = np.zeros(len(matching), np.uint32), np.ones(len(matching), np.uint32)
    return ElementPlaces(
        offsets, np.zeros(len(positions), np.uint32), positions, lengths, np.ones(len(positions), np.int32)
    )


def _nowhere(block: Block) -> Occurrences:
    return np.zeros(len(block.lids) + 1, np.uint32), np.zeros(0, np.uint32)


def flat_positions(block: Block, terms: Sequence[int], name: str) -> tuple[list[Occurrences], NDArray[np.int32]]:
    """Return the positions of each term, rising in each hit, and the length of each hit's text: of the longest value
    in which the first of the terms stands that stand anywhere."""
    found = []
    lengths = np.zeros(len(block.lids), np.int32)
    for term in terms:
        places = flat_places(block, term, name)
        counts = counts_of(places.offsets)
        order = np.lexsort((places.positions, np.repeat(np.arange(len(counts)), counts)))
        found.append((places.offsets, places.positions[order]))
        there = counts > 0
        if there.any():
            longest = np.zeros(len(counts), np.int32)
            longest[there] = np.maximum.reduceat(places.lengths, places.offsets[:-1][there])
            lengths = np.where(lengths == 0, longest, lengths)
    return found, lengths


def counts_of(offsets: NDArray[np.uint32]) -> NDArray[np.int64]:
    """Return the number of occurrences in each hit."""
    ends: NDArray[np.int64] = offsets.astype(np.int64)
    return ends[1:] - ends[:-1]


def words_and_occurrences(block: Block, term: int, name: str) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Return the number of values of a field of numbers, each of which is a word, and how many of them match."""
    words = block.column(name).counts(block.lids)
    matching = counts_of(flat_places(block, term, name).offsets)
    return np.minimum(words, _MOST).astype(np.int32), np.minimum(matching, _MOST).astype(np.int32)


class TermLists(Struct, frozen=True, eq=False):
    """Parallel to the terms of the query; hit i has positions[offsets[i]:offsets[i + 1]]."""

    offsets: list[NDArray[np.uint32]]
    positions: list[NDArray[np.uint32]]
    matched: NDArray[np.bool_]
    """True for each hit in which any term matches."""

    @classmethod
    def of(cls, block: Block, field: str) -> TermLists:
        nowhere = np.zeros(len(block.lids) + 1, np.uint32), np.zeros(0, np.uint32)
        matched = np.zeros(len(block.lids), np.bool_)
        found = []
        for number, term in enumerate(block.terms):
            searches = field in term.fields
            found.append(block.positions(number, field) if searches else nowhere)
            if searches:
                matched |= block.matched(number, field)
        return cls([offsets for offsets, _ in found], [positions for _, positions in found], matched)
