"""The kernel of decision trees beside its plain twin, and what it refuses."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paperwasp.core import _core
from paperwasp.ranking.forest import NODES, Forest, ForestBuilder, Split
from tests.oracles.forest import forest_sum

VALUES = st.sampled_from([-math.inf, -2.0, -0.0, 0.0, 0.5, 1.0, 1.0000000001, 3.0, math.inf, math.nan])
THRESHOLDS = st.sampled_from([-2.0, 0.0, 0.5, 1.0, 3.0])
LEAVES = st.floats(-10, 10)
MEMBERS = st.lists(st.sampled_from([-2.0, 0.0, 0.5, 1.0, 3.0]), max_size=4).map(tuple)


def splits(nodes: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    numbers = st.builds(Split, st.sampled_from("abc"), nodes, nodes, st.booleans(), THRESHOLDS)
    sets = st.builds(Split, st.sampled_from("abc"), nodes, nodes, st.booleans(), st.just(0.0), MEMBERS)
    return numbers | sets


TREES = st.lists(st.recursive(LEAVES, splits, max_leaves=20), max_size=6)


def forest_of(trees: list[Any]) -> Forest:
    builder = ForestBuilder()
    for tree in trees:
        builder.tree(tree, lambda node: node)
    return builder.forest()


def walked(node: Any, row: dict[str, float]) -> float:
    """Where a row ends, as Vespa's expressions say it."""
    while isinstance(node, Split):
        value = row[node.feature]
        if node.members is not None:
            goes_left = value in node.members or (node.missing_left and math.isnan(value))
        else:
            goes_left = not value >= node.threshold if node.missing_left else value < node.threshold
        node = node.left if goes_left else node.right
    return float(node)


@settings(max_examples=200, deadline=None)
@given(TREES, st.lists(st.tuples(VALUES, VALUES, VALUES), min_size=1, max_size=40), st.booleans())
def test_rows_end_where_the_twin_and_the_trees_say(
    trees: list[Any], rows: list[tuple[float, ...]], one_for_all: bool
) -> None:
    if one_for_all:
        rows = [(row[0], row[1], rows[0][2]) for row in rows]
    forest = forest_of(trees)
    columns = {name: np.array([row[place] for row in rows]) for place, name in enumerate("abc")}
    if one_for_all:
        columns["c"] = columns["c"][:1]
    features = [columns[name] for name in forest.features]
    found = forest.sums(features, len(rows))
    expected = [sum(walked(tree, dict(zip("abc", row, strict=True))) for tree in trees) for row in rows]
    assert found.tolist() == expected
    plain = forest_sum(
        forest.nodes.view(NODES), forest.values, forest.roots, forest.columns, forest.members, features, len(rows)
    )
    assert found.tolist() == plain.tolist()


def test_blocks_of_many_rows_and_columns_are_the_same_as_one_row() -> None:
    random = np.random.default_rng(3)
    names = [f"f{n}" for n in range(300)]

    def tree(depth: int) -> Any:
        if depth == 0:
            return float(random.normal())
        feature = names[random.integers(len(names))]
        return Split(feature, tree(depth - 1), tree(depth - 1), bool(random.integers(2)), float(random.normal()))

    forest = forest_of([tree(6) for _ in range(20)])
    features = [random.normal(size=1000) for _ in forest.features]
    whole = forest.sums(features, 1000)
    alone = [forest.sums([feature[n : n + 1] for feature in features], 1)[0] for n in range(0, 1000, 37)]
    assert whole[::37].tolist() == alone


@pytest.mark.parametrize("damage", ["left", "column", "root", "members", "feature", "leaf"])
def test_what_reaches_past_the_arrays_is_refused(damage: str) -> None:
    forest = forest_of([Split("a", 1.0, Split("b", 2.0, 3.0, True, 0.0, (1.0,)), False, 0.5)])
    nodes, roots, columns = forest.nodes.copy(), forest.roots.copy(), forest.columns.copy()
    words = nodes.view(NODES)
    if damage == "left":
        words["left"][0] = 99
    elif damage == "column":
        words["column"][0] = 99
    elif damage == "leaf":
        words["threshold"][1] = 1.0
    elif damage == "root":
        roots[0] = 5
    elif damage == "members":
        columns[11] = 7
    else:
        columns[4] = 2
    with pytest.raises(ValueError):
        _core.forest_sum(
            nodes, forest.values, roots, forest.depths, columns, forest.members, [np.zeros(4), np.zeros(4)], np.zeros(4)
        )
