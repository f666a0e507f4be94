"""Which documents an exact search for nearest neighbours finds: the kernel against its twin, in blocks of any size."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paperwasp.core import _core
from tests.oracles import nearest_hits

DISTANCES = st.lists(st.sampled_from([-2.0, 0.0, 0.5, 1.0, 1.5, 3.0, math.inf, -math.inf, math.nan]), max_size=40)


def found(distances: list[float], threshold: float, target: int, block: int) -> list[int]:
    heap, held = np.zeros(target), 0
    hits: list[int] = []
    for start in range(0, len(distances), block):
        places, held = _core.nearest_hits(np.array(distances[start : start + block], np.float64), threshold, heap, held)
        hits += (places + start).tolist()
    return hits


@settings(deadline=None, max_examples=300)
@given(DISTANCES, st.sampled_from([math.inf, -1.0, 1.0, 1.2]), st.integers(1, 12), st.integers(1, 41))
def test_hits(distances: list[float], threshold: float, target: int, block: int) -> None:
    assert found(distances, threshold, target, block) == nearest_hits.nearest_hits(distances, threshold, target)


def test_hits_come_in_the_order_of_lids() -> None:
    """Two are wanted. Vespa: nearest_neighbor_test.cpp (`verify_iterator_returns_expected_results`)."""
    assert found([5, 10, 13, 5, 10, 5], math.inf, 2, 6) == [0, 1, 3, 5]
    far = [math.dist((9, 9), point) for point in ((3, 4), (6, 8), (5, 12), (4, 3), (8, 6), (4, 3))]
    assert found(far, math.inf, 2, 6) == [0, 1, 2, 4]


def test_a_heap_is_checked() -> None:
    for heap, held in (([1.0, 2.0], 3), ([], 0), ([1.0, 2.0], 2)):
        with pytest.raises(ValueError, match="heap"):
            _core.nearest_hits(np.ones(3), 1.0, np.array(heap, np.float64), held)
