"""Terms in the elements of a field: the kernel against its twin, and values that are worked by hand."""

from __future__ import annotations

import random
from collections import defaultdict
from itertools import pairwise

import numpy as np
import pytest

from paperwasp.core import _core
from paperwasp.search.features.term_places import COLUMNS
from tests.oracles.element_match import element_match

Hit = list[dict[int, list[int]]]
"""Of each element, where the terms stand."""


def by_kernel(
    hits: list[Hit], weights: list[float], sizes: list[list[tuple[int, int]]]
) -> list[list[dict[str, float]]]:
    places = []
    for term in range(len(weights)):
        rows = [
            (element, place, *sizes[i][element])
            for i, hit in enumerate(hits)
            for element, found in enumerate(hit)
            for place in found.get(term, ())
        ]
        counts = [sum(len(found.get(term, ())) for found in hit) for hit in hits]
        columns = np.ascontiguousarray(np.array(rows, np.int64).reshape(-1, 4).T)
        offsets = np.cumsum([0, *counts]).astype(np.uint32)
        places.append((offsets, *columns[:3].astype(np.uint32), columns[3].astype(np.int32)))
    offsets, elements, values = _core.element_match(places, np.array(weights, np.float64), len(hits), True)
    found = [dict(zip(COLUMNS, row, strict=True)) for row in values.reshape(-1, len(COLUMNS)).tolist()]
    numbered = [{"element": number, **row} for number, row in zip(elements.tolist(), found, strict=True)]
    return [numbered[start:end] for start, end in pairwise(offsets)]


@pytest.mark.parametrize("part", range(4))
def test_the_kernel_is_its_twin(part: int) -> None:
    for seed in range(part * 400, (part + 1) * 400):
        random_ = random.Random(seed)
        weights = [float(random_.choice((1, 50, 100))) for _ in range(random_.randrange(1, 7))]
        hits, sizes = [], []
        for _ in range(random_.randrange(1, 5)):
            hit: Hit = []
            size = []
            for _ in range(random_.randrange(4)):
                length = random_.choice((1, 3, 10, 40))
                found: dict[int, list[int]] = defaultdict(list)
                for _ in range(random_.choice((0, 1, 5, 20))):
                    term, place = random_.randrange(len(weights)), random_.randrange(length)
                    if place not in found[term]:
                        found[term].append(place)
                hit.append({term: sorted(there) for term, there in sorted(found.items())})
                size.append((length, random_.choice((1, -3, 50))))
            hits.append(hit)
            sizes.append(size)
        expected = [
            [
                {"element": number, **element_match(found, weights, *size[number])}
                for number, found in enumerate(hit)
                if found
            ]
            for hit, size in zip(hits, sizes, strict=True)
        ]
        for rows, wanted in zip(by_kernel(hits, weights, sizes), expected, strict=True):
            assert [dict(row) for row in rows] == [pytest.approx(row) for row in wanted], f"{seed=} {hits=}"


def test_an_example() -> None:
    # "x a b x b": a before b, and next to each other; two of five words, 1 of each.
    [[row]] = by_kernel([[{0: [1], 1: [2, 4]}]], [100.0, 200.0], [[(5, 7)]])
    assert row == {
        "element": 0, "proximity": 1, "order": 1, "taken": 2, "taken_weight": 300, "length": 5, "weight": 7,
        "terms": 2, "terms_weight": 300, "flow": 2,
    }  # fmt: skip


def test_wrong_places_are_refused() -> None:
    good = [np.array([0, 1], np.uint32), *np.zeros((3, 1), np.uint32), np.ones(1, np.int32)]
    weights = np.ones(1)
    for wrong in ([*good[:4]], [np.array([0, 2], np.uint32), *good[1:]], [np.array([1, 0], np.uint32), *good[1:]]):
        with pytest.raises(ValueError, match=r"places|offsets"):
            _core.element_match([tuple(wrong)], weights, 1, False)
    with pytest.raises(ValueError, match="offsets"):
        _core.element_match([tuple(good)], weights, 2, False)
    with pytest.raises(ValueError, match="terms"):
        _core.element_match([], weights, 1, False)
