"""The terms of a query beside the words of a field: the kernels against their twins."""

from __future__ import annotations

import random

import numpy as np
import pytest

from paperwasp.core import _core
from tests.oracles.term_order import edit_distance, order_matches, reverse_proximity

HITS = 3


def lists(hits: list[list[int]]) -> tuple[np.ndarray, np.ndarray]:
    offsets = np.cumsum([0, *map(len, hits)]).astype(np.uint32)
    return offsets, np.array([at for hit in hits for at in hit], np.uint32)


@pytest.mark.parametrize("seed", range(300))
def test_the_kernels_are_their_twins(seed: int) -> None:
    random_ = random.Random(seed)
    terms = random_.randrange(1, 6)
    sizes = [random_.choice((0, 1, 4, 12)) for _ in range(HITS)]
    places = [
        [sorted({random_.randrange(size) for _ in range(random_.randrange(4))} if size else ()) for size in sizes]
        for _ in range(terms)
    ]
    found = [lists(hits) for hits in places]
    columns = [offsets for offsets, _ in found], [positions for _, positions in found]
    lengths = np.array(sizes, np.int32)
    first, second, third = (random_.choice((0.5, 1.0, 2.0)) for _ in range(3))

    results = np.empty(4 * HITS)
    _core.edit_distance(*columns, lengths, first, second, third, results)
    for hit, row in enumerate(results.reshape(-1, 4).tolist()):
        assert tuple(row) == edit_distance([term[hit] for term in places], sizes[hit], first, second, third), f"{seed=}"

    results = np.empty(3 * HITS)
    _core.order_matches(*columns, lengths, 4, results)
    for hit, row in enumerate(results.reshape(-1, 3).tolist()):
        assert tuple(row) == order_matches([term[hit] for term in places], sizes[hit], 4), f"{seed=}"

    a, b = found[0], found[-1]
    _core.reverse_proximity(*a, *b, HITS, -1.0, -2.0, results)
    for hit, row in enumerate(results.reshape(-1, 3).tolist()):
        expected = reverse_proximity(places[0][hit], places[-1][hit])
        assert tuple(row) == (expected or (-2, -1, -2)), f"{seed=}"


def test_wrong_lists_are_refused() -> None:
    offsets, positions = lists([[0, 3]])
    lengths, results = np.array([4], np.int32), np.empty(4)
    for wrong in (np.array([0, 3], np.uint32), np.array([1, 0], np.uint32), np.array([0], np.uint32)):
        with pytest.raises(ValueError, match="offsets"):
            _core.edit_distance([wrong], [positions], lengths, 1.0, 1.0, 1.0, results)
        with pytest.raises(ValueError, match="offsets"):
            _core.order_matches([wrong], [positions], lengths, 4, results[:3])
        with pytest.raises(ValueError, match="offsets"):
            _core.reverse_proximity(offsets, positions, wrong, positions, 1, 0.0, 0.0, results[:3])
    with pytest.raises(ValueError, match="results"):
        _core.edit_distance([offsets], [positions], lengths, 1.0, 1.0, 1.0, results[:3])
