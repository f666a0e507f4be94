"""The kernel of bm25 gives what its plain twin does, to the last bit, and what the definition says."""

from __future__ import annotations

import math

import numpy as np
import pytest

from paperwasp.core import _core
from tests.oracles import bm25


@pytest.mark.parametrize("seed", range(20))
def test_as_the_twin(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(0, 300))
    occurrences = np.maximum(rng.integers(-5, 6, n), 0).astype(np.int32)
    lengths = rng.integers(0, 1000, n).astype(np.int32)
    weight, k1, b, average = rng.random() * 9, rng.choice([0.0, 1.2, 3.0]), rng.random(), 0.5 + rng.random() * 300
    found, wanted = np.full(n, 0.1), np.full(n, 0.1)
    _core.add_bm25(occurrences, lengths, weight, k1, b, average, found)
    bm25.add_bm25(occurrences, lengths, weight, k1, b, average, wanted)
    np.testing.assert_array_equal(found, wanted)


def test_as_the_definition() -> None:
    scores = np.array([1.0, 1.0])
    _core.add_bm25(np.array([2, 0], np.int32), np.array([30, 30], np.int32), 1.5, 1.2, 0.75, 60.0, scores)
    assert math.isclose(scores[0], 1 + 1.5 * 2 * 2.2 / (2 + 1.2 * (0.25 + 0.75 * 0.5))) and scores[1] == 1


def test_one_number_for_each_document() -> None:
    with pytest.raises(ValueError, match="one length and score"):
        _core.add_bm25(np.zeros(2, np.int32), np.zeros(1, np.int32), 1.0, 1.2, 0.75, 1.0, np.zeros(2))
