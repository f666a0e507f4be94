"""Normalizers of the global phase, by values worked by hand. What is done with them: tests/service/phase_scripts."""

from __future__ import annotations

import numpy as np
import pytest

from paperwasp.ranking.global_phase import linear, reciprocal_rank

NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([], []),
        ([3.0], [0.5]),
        ([2.0, 2.0], [0.5, 0.5]),
        ([1.0, 5.0, 2.0], [0.0, 1.0, 0.25]),
        ([1.0, NAN, 3.0], [0.0, NAN, 1.0]),
        ([1.0, INF, 3.0, -INF], [0.0, INF, 1.0, -INF]),
        ([1e39, 1.0, 3.0], [5e38, 0.0, 1.0]),
        ([NAN, NAN], [NAN, NAN]),
    ],
)
def test_linear(values: list[float], expected: list[float]) -> None:
    assert linear(np.array(values)) == pytest.approx(expected, nan_ok=True)


def test_reciprocal_rank() -> None:
    """Equal values keep their order; what is no number is last."""
    found = reciprocal_rank(np.array([1.0, NAN, 5.0, 5.0, -INF]))
    assert found == pytest.approx([1 / 63, 1 / 64, 1 / 61, 1 / 62, 1 / 65])
    assert reciprocal_rank(np.array([1.0, 2.0]), k=0.0) == pytest.approx([0.5, 1.0])
    assert reciprocal_rank(np.array([1.0]), k=-1.0) == pytest.approx([INF])
