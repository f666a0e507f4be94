"""Measures against values worked out by hand, and what is said of differences."""

from __future__ import annotations

import re
import tracemalloc
from math import log2

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paperwasp.relevance.measuring import DEFAULT, NoMeasures, check_measures, compare, estimate, measure
from paperwasp.relevance.rankings import RankedDocument

JUDGMENTS = {"q1": {"d1": 2, "d2": 1, "d9": 0}, "q2": {"d5": 1}}


def _run(**ranked: str) -> dict[str, list[RankedDocument]]:
    """All scores are the same: the order of the hits is what counts."""
    return {query: [RankedDocument(name, 1.0) for name in names.split()] for query, names in ranked.items()}


def test_measures_by_hand() -> None:
    run = _run(q1="d2 d9 d1", q2="")
    values = measure(run, JUDGMENTS, ["q1", "q2"], ("nDCG@10", "AP", "R@2", "RR@10", "P@5"))
    expected = {
        "nDCG@10": (1 + 2 / log2(4)) / (2 + 1 / log2(3)),  # gains by place over those of the best order
        "AP": (1 / 1 + 2 / 3) / 2,
        "R@2": 1 / 2,
        "RR@10": 1.0,
        "P@5": 2 / 5,
    }
    for name, value in expected.items():
        assert values[name].tolist() == [pytest.approx(value), 0.0], name


@pytest.mark.parametrize(
    ("names", "value"),
    [
        (("AP", "MAP"), (1 / 2 + 2 / 3) / 2),  # d2 comes second, d1 third
        (("RR@10", "MRR@10"), 1 / 2),
        (("R@2", "Recall@2"), 1 / 2),
        (("P@2", "P@2", "P(rel=1)@2"), 1 / 2),
        (("nDCG@2", "NDCG@2"), (1 / log2(3)) / (2 + 1 / log2(3))),
    ],
)
def test_each_name_of_a_measure_has_its_values(names: tuple[str, ...], value: float) -> None:
    values = measure(_run(q1="d9 d2 d1"), JUDGMENTS, ["q1"], names)
    for name in names:
        assert values[name].tolist() == [pytest.approx(value)], name


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("Beauty", "measure not found: Beauty"),
        ("nDGC@10", "measure not found: nDGC"),
        ("R@0", "its cutoff is less than 1"),
        ("nDCG@0", "its cutoff is less than 1"),
        ("P(cutoff=0)", "its cutoff is less than 1"),
        ("R@-1", "problem parsing measure"),
        ("P", "it has no cutoff"),
        ("IPrec", "it has no recall"),
        ("nDCG(foo=1)@10", r"unsupported params found: \['foo'\]"),
        ("nDCG@1.5", "invalid param cutoff=1.5"),
        ("", "problem parsing measure"),
    ],
)
def test_unknown_measures_are_refused(name: str, message: str) -> None:
    for names in ((name,), ("AP", name)):
        with pytest.raises(NoMeasures, match=f"^'{re.escape(name)}' is no measure of ir-measures: {message}"):
            check_measures(JUDGMENTS, ["q1", "q2"], names)
        with pytest.raises(NoMeasures, match=message):
            measure(_run(q1="d1"), JUDGMENTS, ["q1"], names)


@pytest.mark.parametrize("name", ["alpha_nDCG@10", "P(rel=0)@5", "RBP", "R@99999999999999999999"])
def test_measures_that_cannot_be_computed_are_known_before(name: str) -> None:
    with pytest.raises(NoMeasures, match=rf"^ir-measures cannot compute '{re.escape(name)}': [^\n]+$"):
        check_measures(JUDGMENTS, ["q1"], ("AP", name))


def test_measures_that_can_be_computed_are_let_through() -> None:
    check_measures(JUDGMENTS, ["q2", "q1"], (*DEFAULT, "P@1", "nDCG", "IPrec@0.5", "Judged@10", "Bpref"))


def test_thousands_of_queries_are_sampled_in_little_memory() -> None:
    """6980 queries as MS MARCO's: 10,000 samples of them at once would take 560 MB."""
    values = np.array([0.0, 1.0] * 3490)
    tracemalloc.start()
    try:
        difference = compare(values, np.full(6980, 0.5))
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 50_000_000
    assert (difference.estimate.mean, difference.won, difference.lost, difference.p_value) == (0, 3490, 3490, 1.0)
    # The mean of 6,980 fair coins has a standard deviation of 0.5 / sqrt(6980).
    assert difference.estimate.high == pytest.approx(1.96 * 0.5 / 6980**0.5, rel=0.1)
    assert difference.estimate.low == pytest.approx(-1.96 * 0.5 / 6980**0.5, rel=0.1)


def test_intervals_hold_the_mean_and_shrink_with_queries() -> None:
    few, many = estimate(np.array([0.0, 1.0] * 5)), estimate(np.array([0.0, 1.0] * 500))
    assert few.mean == many.mean == 0.5
    assert few.low < many.low < 0.5 < many.high < few.high
    # The mean of 1,000 fair coins has a standard deviation of 0.0158.
    assert many.high - many.low == pytest.approx(2 * 1.96 * 0.0158, rel=0.1)


def test_a_difference_by_chance_and_one_that_is_not() -> None:
    first = np.zeros(40)
    better = compare(np.full(40, 0.1), first)
    assert (better.won, better.lost) == (40, 0)
    assert better.estimate.low == pytest.approx(0.1)
    assert better.p_value < 0.001
    mixed = compare(np.array([0.1, -0.1] * 20), first)
    assert (mixed.won, mixed.lost) == (20, 20)
    assert mixed.p_value == pytest.approx(1.0, abs=0.01)
    same = compare(first, first)
    assert (same.won, same.lost, same.p_value) == (0, 0, 1.0)


@given(st.lists(st.floats(-1, 1), min_size=1, max_size=8))
def test_the_probability_is_that_of_all_signs(differences: list[float]) -> None:
    """Of few queries all assignments of signs can be counted."""
    values = np.array(differences)
    signs = np.array(np.meshgrid(*[[-1.0, 1.0]] * len(values))).reshape(len(values), -1).T
    exact = (np.abs((signs * values).mean(axis=1)) >= abs(values.mean()) - 1e-12).mean()
    assert compare(values, np.zeros(len(values))).p_value == pytest.approx(exact, abs=0.03)
