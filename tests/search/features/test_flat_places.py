"""Values that lie over each other, against a plain twin; scripts of streaming search have the features over them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paperwasp.search.features import term_places
from paperwasp.search.features.term_places import ElementPlaces

PLACE = st.tuples(st.integers(0, 5), st.integers(1, 6))
"""A position in a value, and the length of the value."""
HITS = st.integers(1, 4).flatmap(
    lambda terms: st.lists(
        st.lists(st.lists(PLACE, max_size=4), min_size=terms, max_size=terms), min_size=1, max_size=5
    )
)


@given(hits=HITS)
def test_positions_rise_and_the_first_term_that_stands_somewhere_says_the_length(
    hits: list[list[list[tuple[int, int]]]],
) -> None:
    terms = range(len(hits[0]))
    block: Any = SimpleNamespace(lids=np.arange(len(hits), dtype=np.uint32))

    def places_of(_block: object, term: int, _name: str) -> ElementPlaces:
        ends = np.cumsum([0, *(len(hit[term]) for hit in hits)]).astype(np.uint32)
        flat = [place for hit in hits for place in hit[term]]
        positions, lengths = (np.array([place[i] for place in flat], np.uint32) for i in (0, 1))
        return ElementPlaces(ends, np.zeros_like(positions), positions, lengths, np.ones(len(flat), np.int32))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(term_places, "flat_places", places_of)
        found, lengths = term_places.flat_positions(block, terms, "f")
    for number, hit in enumerate(hits):
        first = next((places for places in hit if places), [(0, 0)])
        assert lengths[number] == max(length for _, length in first)
        for term in terms:
            offsets, positions = found[term]
            own = positions[offsets[number] : offsets[number + 1]].tolist()
            assert own == sorted(position for position, _ in hit[term])
