"""Places of terms in fields with several values, beside plain twins: distances, and values that lie over each other.

Scripts of streaming search have the features over them.
"""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paperwasp.search.features import term_places
from paperwasp.search.features.setting import RankTerm
from paperwasp.search.features.term_distance import UNDEFINED, element_distances
from paperwasp.search.features.term_places import ElementPlaces
from tests.search.features.fake_block import fake_block

ELEMENTS = st.lists(st.lists(st.sampled_from("abx"), max_size=6), max_size=5)
GAPS = st.sampled_from([math.inf, 0.0, 1.0, 7.0])


def plain(elements: list[list[str]], first: list[str], second: str, gap: float) -> tuple[int, int]:
    """Of each place of `first`, only the next `second` counts: as Vespa walks over both."""
    best = UNDEFINED, UNDEFINED
    for number, words in enumerate(elements):
        for at in range(len(words) - len(first) + 1):
            last = at + len(first) - 1
            later = [
                (other, place)
                for other, of_other in enumerate(elements)
                for place, word in enumerate(of_other)
                if word == second and (other, place) > (number, last)
            ]
            if words[at : at + len(first)] != first or not later:
                continue
            other, place = later[0]
            if other == number:
                best = min(best, (place - last, at), key=lambda found: found[0])
            elif other == number + 1 and not math.isinf(gap):
                best = min(best, (len(words) + int(gap) + place - last, at), key=lambda found: found[0])
    return best


@given(documents=st.lists(ELEMENTS, min_size=1, max_size=4), gap=GAPS, first=st.sampled_from(["a", "a x", "b b"]))
def test_each_place_counts_with_the_next_one(documents: list[list[list[str]]], gap: float, first: str) -> None:
    texts = [{"tags": [" ".join(words) for words in elements]} for elements in documents]
    term = RankTerm(("tags",), phrase_length=len(first.split()))
    block = fake_block(texts, [(first, term), ("b", RankTerm(("tags",)))])
    distances, places = element_distances(block, "tags", 0, 1, gap)
    expected = [plain(elements, first.split(), "b", gap) for elements in documents]
    assert list(zip(distances.tolist(), places.tolist(), strict=True)) == expected


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
