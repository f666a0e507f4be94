"""XGBoost models as `save_model` writes them: read as Vespa does, beside what the library itself predicts.

`models/*.ubj` were saved by xgboost 3.2, trained on 300 made-up rows of features `attribute(a)`, `query(b)`, `f`, with
values that are missing; the margins here are those that it gave for `ROWS`. In the pruned one, leaves differ from the
weights of their nodes.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paperwasp import limits
from paperwasp.errors import LanguageError
from paperwasp.ranking.forest import Forest
from paperwasp.ranking.xgboost_file import read_ubjson
from tests.ranking.test_forest_files import ROWS, read_forest
from tests.ranking.ubjson_writer import ubjson

MODELS = Path(__file__).parent / "models"
NAMES = ("attribute(a)", "query(b)", "f")
MARGINS = {
    "xgboost_logistic.ubj": [
        -2.2276835441589355, 2.175869941711426, -2.479386806488037, 2.5582094192504883, -2.139043092727661,
        -2.213341474533081, -2.6150412559509277, 2.5582094192504883, 2.2624170780181885, -0.57075035572052,
        -2.7155990600585938, 0.03583168983459473,
    ],
    "xgboost_pruned.ubj": [
        -0.999879777431488, 1.2244794368743896, 0.038051873445510864, 2.8852903842926025, -0.23034849762916565,
        -3.9226233959198, -0.7215482592582703, 1.91568922996521, 0.6638728380203247, 0.038051873445510864,
        -1.6161609888076782, 0.038051873445510864,
    ],
}  # fmt: skip


def values(forest: Forest, rows: list[dict[str, float]]) -> list[float]:
    features = [np.array([row[name] for row in rows], np.float64) for name in forest.features]
    return [value + forest.base for value in forest.sums(features, len(rows)).tolist()]


@pytest.mark.parametrize("file", MARGINS)
def test_margins_of_the_library(file: str) -> None:
    forest = read_forest("xgboost", f"models/{file}", (MODELS / file).read_bytes())
    assert set(forest.features) <= set(NAMES)
    assert forest.link == ""
    rows = [
        dict(zip(NAMES, row, strict=True)) for row in np.array(ROWS, np.float32).tolist()
    ]  # as the library has them
    assert values(forest, rows) == pytest.approx(MARGINS[file], abs=1e-5)


def test_names_beside_the_model_come_first() -> None:
    content = (MODELS / "xgboost_logistic.ubj").read_bytes()
    forest = read_forest("xgboost", "models/m.ubj", content, b"# of the profile\n\n one\ntwo \nthree\nmore\n")
    assert sorted(forest.features) == ["one", "three", "two"]
    with pytest.raises(LanguageError) as raised:
        read_forest("xgboost", "models/m.ubj", content, b"one\ntwo")
    assert raised.value.bare_message == (
        "models/m.ubj is no xgboost model: tree 0: a split asks for feature 2, and there are 2 names"
    )


def saved(tree: dict[str, Any] | None = None, **said: Any) -> dict[str, Any]:
    """One split of feature 0 at 0.5: 1 to the left, 2 to the right, the missing to the left."""
    columns = {
        "left_children": np.array([1, -1, -1], np.int32),
        "right_children": np.array([2, -1, -1], np.int32),
        "split_indices": np.array([0, 0, 0], np.int32),
        "split_conditions": np.array([0.5, 1, 2], np.float32),
        "default_left": np.array([1, 0, 0], np.uint8),
    }
    booster = {"name": "gbtree", "model": {"trees": [{**columns, **(tree or {})}]}}
    return {"learner": {"gradient_booster": booster, **said}}


ASKED = [{"xgboost_input_0": value} for value in (0.2, 0.5, math.nan)]


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        (saved(), [1, 2, 1]),
        (saved({"default_left": np.zeros(3, np.uint8)}), [1, 2, 2]),
        (saved({"default_left": [False, False, False]}), [1, 2, 2]),
        (saved({"left_children": [2, -1, -1], "right_children": [1, -1, -1]}), [2, 1, 2]),
        (saved(learner_model_param={"base_score": "[2.5E-1]"}), [1.25, 2.25, 1.25]),
        (saved(learner_model_param={"base_score": "3"}, objective={"name": "count:poisson"}), [4, 5, 4]),
        (saved(objective={"name": "binary:logistic"}), [1, 2, 1]),  # logit(0.5) is 0
        (
            saved(objective={"name": "reg:logistic"}, learner_model_param={"base_score": "[2E-1]"}),
            [1 + math.log(0.25), 2 + math.log(0.25), 1 + math.log(0.25)],
        ),
        (saved(objective={"name": "binary:logitraw"}, learner_model_param={"base_score": "2E-1"}), [1.2, 2.2, 1.2]),
    ],
)
def test_trees_and_base_score(model: dict[str, Any], expected: list[float]) -> None:
    forest = read_forest("xgboost", "models/m.ubj", ubjson(model))
    assert values(forest, ASKED) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("model", "told"),
    [
        ([], "it has no learner: a model that save_model wrote is expected"),
        ({"learner": {"gradient_booster": {"model": {}}}}, "the booster has no trees: a model that save_model wrote"),
        ({"learner": {"gradient_booster": {"name": "dart"}}}, "its booster is 'dart', and only gbtree is a sum of tre"),
        (saved(learner_model_param={"num_class": "3"}), "it has several classes or targets, and the value of a model"),
        (saved(learner_model_param={"num_target": "2"}), "it has several classes or targets, and the value of a mod"),
        (saved(learner_model_param={"base_score": "[1,2]"}), "its base_score is no number, but '[1,2]'"),
        (saved(learner_model_param={"base_score": "nan"}), "its base_score is nan, and it must be finite"),
        (
            saved(objective={"name": "binary:logistic"}, learner_model_param={"base_score": "1"}),
            "its base_score is 1, and it must be between 0 and 1 for a logistic objective",
        ),
        (saved(feature_names=["a", 2]), "feature_names has something that is no text"),
        (saved({"split_type": np.array([1, 0, 0], np.uint8)}), "tree 0: it has splits by categories, which are not kn"),
        (saved({"left_children": np.array([1], np.int32)}), "tree 0: left_children, right_children, split_indices, sp"),
        (saved({"left_children": np.array([9, -1, -1], np.int32)}), "tree 0: its nodes are no tree: a child is out of"),
        (saved({"left_children": np.array([0, -1, -1], np.int32)}), "tree 0: its nodes are no tree: a child is out of"),
        (saved({"left_children": np.array([2, -1, -1], np.int32)}), "tree 0: its nodes are no tree: a child is out of"),
        (saved({"right_children": np.array([-1, -1, -1], np.int32)}), "tree 0: its nodes are no tree: a child is out"),
        (saved({"split_indices": np.array([-1, 0, 0], np.int32)}), "tree 0: a split asks for feature"),
        (saved({"split_indices": np.array([2**31 - 1, 0, 0])}), "tree 0: a split asks for feature 2147483647"),
        (saved({"split_conditions": np.array([np.nan, 1, 2])}), "tree 0: node 0 has no finite number in split_condit"),
        (saved({"split_conditions": "x"}), "tree 0: split_conditions is no array of numbers"),
        (saved({"left_children": np.array([1.5, -1, -1])}), "tree 0: left_children is no array of integers"),
        (saved({"tree_param": {"size_leaf_vector": "3"}}), "tree 0: its leaves have several values"),
    ],
)
def test_what_is_wrong_is_told(model: Any, told: str) -> None:
    with pytest.raises(LanguageError) as raised:
        read_forest("xgboost", "models/m.ubj", ubjson(model))
    assert raised.value.bare_message.startswith(f"models/m.ubj is no xgboost model: {told}")


def test_a_ring_of_nodes_that_nobody_reaches_is_no_tree_either() -> None:
    """Nodes 1 and 2 are each other's child, and node 0 a leaf: all that is reached is the leaf."""
    ring = {
        "left_children": np.array([-1, 2, 1], np.int32),
        "right_children": np.array([-1, 2, 1], np.int32),
    }
    with pytest.raises(LanguageError, match="no tree"):
        read_forest("xgboost", "models/m.ubj", ubjson(saved(ring)))


def test_a_chain_of_a_hundred_thousand_nodes() -> None:
    """Each split has a leaf to its left, of value 0, and goes on to the right; the last leaf is 7."""
    depth = 100_000
    left, right = np.full(2 * depth + 1, -1), np.full(2 * depth + 1, -1)
    left[0 : 2 * depth : 2], right[0 : 2 * depth : 2] = np.arange(1, 2 * depth, 2), np.arange(2, 2 * depth + 1, 2)
    conditions = np.zeros(2 * depth + 1)
    conditions[-1] = 7
    chain = {"left_children": left, "right_children": right, "split_conditions": conditions}
    zeros = {"split_indices": np.zeros(2 * depth + 1, np.int64), "default_left": np.zeros(2 * depth + 1, np.uint8)}
    forest = read_forest("xgboost", "models/m.ubj", ubjson(saved({**chain, **zeros})))
    assert values(forest, [{"xgboost_input_0": 1.0}, {"xgboost_input_0": -1.0}]) == [7, 0]


# The format


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"Z", None),
        (b"T", True),
        (b"i\xff", -1),
        (b"U\xff", 255),
        (b"I\x01\x00", 256),
        (b"l\x00\x01\x00\x00", 65536),
        (b"L" + bytes(7) + b"\x05", 5),
        (b"d\x3f\x80\x00\x00", 1.0),
        (b"D\x40" + bytes(7), 2.0),
        (b"Si\x02ab", "ab"),
        (b"[]", []),
        (b"[i\x01Si\x01aZ]", [1, "a", None]),
        (b"[#i\x02TF", [True, False]),
        (b"[$S#i\x02i\x01ai\x01b", ["a", "b"]),
        (b"{}", {}),
        (b"{i\x01a[]i\x01b{}}", {"a": [], "b": {}}),
        (b"{#i\x01i\x01aT", {"a": True}),
        (b"{$U#i\x01i\x01a\x07", {"a": 7}),
        (b"N[NTN]", [True]),
    ],
)
def test_values(content: bytes, expected: Any) -> None:
    assert read_ubjson(content) == expected


def test_arrays_of_numbers() -> None:
    found = read_ubjson(b"[$I#i\x02\x00\x01\xff\xff")
    assert found.tolist() == [1, -1]


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"", "byte 0: it is cut off"),
        (b"L\x00", "byte 2: it is cut off"),
        (b"ZZ", "byte 1: something follows the value"),
        (b"H", "byte 0: 'H' begins no value"),
        (b"]", "byte 0: ']' begins no value"),
        (b"[", "byte 1: it is cut off"),
        (b"{i\x01a", "byte 4: it is cut off"),
        (b"Si\xff", "byte 1: -1 is no length that the rest could have"),
        (b"Sl\x7f\xff\xff\xff", "byte 1: 2147483647 is no length that the rest could have"),
        (b"ST", "byte 1: 'T' begins no length"),
        (b"Si\x01\xff", "byte 1: a text is not UTF-8"),
        (b"[#L\x7f\xff\xff\xff\xff\xff\xff\xff", "byte 2: 9223372036854775807 is no length that the rest could have"),
        (b"[$D#i\x02" + bytes(9), "byte 15: it is cut off"),
        (b"[$Z#i\x00", "byte 6: an array of 'Z' has no bytes to count"),
        (b"[$U]", "byte 3: the number of elements of one type is not said"),
        (b"[" * 1000, "byte 52: it is nested deeper than 50 levels"),
        (b"{i\x01a" * 1000, "byte 205: it is nested deeper than 50 levels"),
    ],
)
def test_content_that_is_wrong(content: bytes, told: str) -> None:
    with pytest.raises(ValueError) as raised:
        read_ubjson(content)
    assert str(raised.value) == told


def test_the_number_of_values_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "UBJSON_VALUES", 3)
    with pytest.raises(ValueError, match="more than 3 values"):
        read_ubjson(b"[TTT]")


@settings(max_examples=500, deadline=None)
@given(st.binary(max_size=40), st.integers(0, 5000), st.integers(0, 255))
def test_any_bytes_are_read_or_refused(content: bytes, place: int, byte: int) -> None:
    model = (MODELS / "xgboost_logistic.ubj").read_bytes()
    for spoiled in (content, model[:place], model[:place] + bytes([byte]) + model[place + 1 :]):
        try:
            forest = read_forest("xgboost", "models/m.ubj", spoiled)
        except LanguageError:
            continue
        forest.sums([np.zeros(2) for _ in forest.features], 2)
