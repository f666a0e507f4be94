"""The parts of a plan are checked where they are made, and how they belong together where they become a plan."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from paperwasp.core import _core

FIELD = ("title", 1.2, 0.75, 0.0)
PROGRAM = (np.zeros(0, np.int32), np.zeros(0, np.float64), 0, 0)
"""Its result is the first of its features."""
SHOWN = _core.PlanShown(None, [], [], 0)
COUNTED = _core.PlanShown(None, [], [("{", [("year", -1, 20, 10, "[", "", ["n:"])])], 9)
BY_BM25 = _core.PlanRanking(fields=[FIELD])


def words(composite: str = "or") -> _core.PlanWords:
    return _core.PlanWords([] if composite == "near" else ["title"], "title", composite, 100, 9, 64)


def near(metric: str = "euclidean", cell: int = 0) -> _core.NearForm:
    return _core.NearForm("vector", cell, metric, 1.0, False)


def expression(kind: str = "bm25", field: int = 0) -> _core.PlanExpression:
    return _core.PlanExpression([(kind, field, 0.0)], PROGRAM)


def ranked(kind: str = "bm25") -> _core.PlanRanking:
    return _core.PlanRanking(fields=[FIELD], expression=expression(kind))


def last(kind: str = "bm25", rerank_count: int = 9, normalizer: str = "plain") -> _core.GlobalForm:
    return _core.GlobalForm(rerank_count, None, [(normalizer, 0.0, expression(kind))], PROGRAM)


def again(kind: str) -> _core.PlanRanking:
    """Ranking of which only the global phase asks for this kind of feature."""
    return _core.PlanRanking(fields=[FIELD], expression=expression(), global_phase=last(kind))


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (lambda: words("xor"), "belong together"),
        (lambda: _core.PlanWords([], "title", "or", 100, 9, 64), "have an index"),
        (lambda: _core.PlanWords(["title"], "title", "near", 100, 9, 64), "have an index"),
        (lambda: near(metric="far"), "distance metric"),
        (lambda: near(cell=99), "type of cells"),
        (lambda: _core.PlanRanking(fields=[("title", -1.0, 0.75, 0.0)]), "k1"),
        (lambda: _core.PlanRanking(fields=[("title", 1.2, 1.5, 0.0)]), "k1"),
        (lambda: expression("matches"), "kind of feature"),
        (lambda: _core.PlanRanking(fields=[FIELD], expression=expression(field=1)), "no field"),
        (lambda: last(rerank_count=0), "one hit"),
        (lambda: last(normalizer="log"), "normalizer"),
        (lambda: _core.PlanRanking(global_phase=last()), "expression"),
        (lambda: _core.Plan(words("near"), None, BY_BM25, SHOWN), "neither words nor"),
        (lambda: _core.Plan(words(), near(), BY_BM25, SHOWN), "beside a vector"),
        (lambda: _core.Plan(words(), None, ranked("closeness"), SHOWN), "nothing is near"),
        (lambda: _core.Plan(words(), None, again("rawScore"), SHOWN), "nothing is near"),
        (lambda: _core.Plan(words("near"), near(), _core.PlanRanking(order=("year", True)), SHOWN), "order"),
        (lambda: _core.Plan(words(), None, _core.PlanRanking(order=("year", True)), COUNTED), "order"),
        (lambda: _core.Plan(words(), None, ranked(), COUNTED), "facets"),
    ],
)
def test_what_makes_no_plan_is_refused(make: Callable[[], object], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        make()


def test_parts_of_a_plan_go_together() -> None:
    _core.Plan(words(), None, BY_BM25, COUNTED)
    _core.Plan(words("near"), near(), _core.PlanRanking(), SHOWN)
    _core.Plan(words(), near(), ranked("closeness"), SHOWN)
    _core.Plan(words("weakAnd"), near("hamming"), again("rawScore"), SHOWN)
    _core.Plan(words("phrase"), None, _core.PlanRanking(order=("year", False)), SHOWN)
