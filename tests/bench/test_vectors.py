"""What the benchmark of vectors says about curves is right, and its data has the neighbours that it is judged by."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

from bench import curves
from bench.vector_data import made_up
from bench.vector_engines import Paperwasp, bitmap
from bench.vectors import time_at

CURVE = [(0.8, 10.0), (0.9, 20.0), (0.98, 60.0)]


def test_the_time_at_a_recall_is_between_those_of_two_points() -> None:
    assert time_at(CURVE, 0.9) == 20.0
    assert time_at(CURVE, 0.85) == pytest.approx(15.0)
    assert time_at(CURVE, 0.94) == pytest.approx(40.0)
    assert time_at(CURVE, 0.5) == 10.0
    assert time_at(CURVE, 0.99) is None


def test_the_truth_is_the_nearest() -> None:
    data = made_up(500, 16, 8)
    products = data.vectors @ data.queries[3]
    assert set(data.truth[3].tolist()) == set(np.argsort(-products)[:10].tolist())
    allowed = np.arange(500) % 3 == 0
    within = data.truth_within(allowed)[3]
    assert allowed[within].all() and products[within].min() >= np.sort(products[allowed])[-10]


def test_our_ways_to_search_find_it() -> None:
    data = made_up(600, 16, 8)
    engine = Paperwasp(data)
    engine.build()
    random = np.random.default_rng(3).random(600)
    for share in (0.019, 0.2, 0.6):
        allowed = random < share
        search, truth = engine.filtered(allowed), data.truth_within(allowed)
        found = [len(set(search(data.queries[i], 100).tolist()) & set(truth[i].tolist())) for i in range(50)]
        assert sum(found) >= 0.97 * sum(len(each) for each in truth[:50])


def test_bits_are_whole_words() -> None:
    assert bitmap(np.array([False, True] + [False] * 63 + [True])).view(np.uint64).tolist() == [2, 2]


def test_a_picture_has_a_line_for_each_engine() -> None:
    picture = curves.svg(curves.Axes("a < b", "recall", "queries"), {"ours": CURVE, "peer": [(0.7, 5.0), (0.99, 3.0)]})
    parts = ElementTree.fromstring(picture)
    lines = [each.get("points", "").split() for each in parts.iter("{http://www.w3.org/2000/svg}polyline")]
    assert [len(points) for points in lines] == [3, 2]
    assert "a < b" in [each.text for each in parts.iter("{http://www.w3.org/2000/svg}text")]
    # The slowest point of all is at the bottom, the one of the highest recall at the right end.
    assert lines[1][1] == f"{curves.WIDTH - curves.RIGHT:.1f},{curves.HEIGHT - curves.BOTTOM:.1f}"
