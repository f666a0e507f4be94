"""Where terms stand in fields that streaming search takes for texts of one value: in several values, and in numbers.

The values lie over each other. A term stands at its positions in each value, counted from the value's start, and where
a length is needed it is that of a value which matches. A number is a text of one word.

Vespa: IndexEnvironment::addField of streamingvisitors, FieldSearcher::set_element_length and IntFieldSearcher of its
vsm, TermFieldMatchData (`getIterator`)
Differs: for the occurrences of fieldMatch words are one where their least positions are; in Vespa, where those in the
first of the values are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from paperwasp.search.features.block import Block
from paperwasp.search.features.element_rows import ElementPlaces, element_places
from paperwasp.search.features.family import RankSetup, is_multiple
from paperwasp.search.operators.field_match import Occurrences

_MOST: Final = 0xFFFF
"""Vespa counts words and occurrences for bm25 in 16 bits."""


def is_flat(setup: RankSetup, name: str) -> bool:
    """Whether the field is taken for a text of one value, and is none."""
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
    """Of each term its positions, rising in each hit; and of each hit the length of the text: that of the longest value
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
    """How many there are of each hit."""
    ends: NDArray[np.int64] = offsets.astype(np.int64)
    return ends[1:] - ends[:-1]


def words_and_occurrences(block: Block, term: int, name: str) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """How many values a field of numbers has, each of which is a word, and how many of them match."""
    words = block.column(name).counts(block.lids)
    matching = counts_of(flat_places(block, term, name).offsets)
    return np.minimum(words, _MOST).astype(np.int32), np.minimum(matching, _MOST).astype(np.int32)
