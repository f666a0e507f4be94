"""Distances between terms in fields with several values, against a plain search for the nearest next place."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from paperwasp.search.features.setting import RankTerm
from paperwasp.search.features.term_distance import UNDEFINED, element_distances
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
