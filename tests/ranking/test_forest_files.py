"""The files of xgboost and lightgbm models: read as Vespa does, beside what the libraries themselves predict.

`models/` has dumps of xgboost 3.2 and lightgbm 4.7, of models trained on 300 made-up rows; the predictions here are
those that these libraries gave for `ROWS`.
"""

from __future__ import annotations

import math
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paperwasp.errors import LanguageError
from paperwasp.ranking.forest import Forest
from paperwasp.ranking.forest_file import forest_in
from paperwasp.ranking.text_hash import text_hash
from paperwasp.schema.files import PackageFiles

MODELS = Path(__file__).parent / "models"
NAN = math.nan
ROWS = [
    [-0.8, -1.32, -0.25], [0.42, 1.14, 0.11], [-0.55, -0.78, 0.75], [1.63, 0.27, -1.23], [-0.96, 1.6, 0.2],
    [-1.73, -0.08, -1.16], [-0.63, -0.49, -0.71], [0.55, -0.06, -0.59], [NAN, 0.83, -1.64], [-0.26, NAN, NAN],
    [-1.29, 0.02, -0.04], [-0.3, -1.05, -0.4],
]  # fmt: skip
XGBOOST = [
    -2.2395527362823486, 1.10679030418396, -1.4122328758239746, 3.2641918659210205, -1.042569637298584,
    -3.4416823387145996, -2.2395527362823486, 0.5805715918540955, 1.10679030418396, -1.4122328758239746,
    -1.042569637298584, -1.4122328758239746,
]  # fmt: skip
LIGHTGBM = [
    0.3227547144927872, 0.5915583933272676, 0.3227547144927872, 0.5915583933272677, 0.3227547144927872,
    0.3227547144927872, 0.3227547144927872, 0.5915583933272677, 0.5915583933272676, 0.3227547144927872,
    0.3227547144927872, 0.3227547144927872,
]  # fmt: skip


def read_forest(kind: str, path: str, content: bytes, names: bytes = b"") -> Forest:
    return forest_in(kind, PackageFiles({path: content})[path], names)


def read(kind: str, dump: Any) -> Forest:
    return read_forest(kind, "models/m.json", orjson.dumps(dump))


def scores(forest: Forest, rows: list[dict[str, float]]) -> list[float]:
    features = [np.array([row[name] for row in rows], np.float64) for name in forest.features]
    found: list[float] = forest.sums(features, len(rows)).tolist()
    return found


def test_xgboost_gives_the_margins_of_the_library() -> None:
    forest = read_forest("xgboost", "models/x.json", (MODELS / "xgboost.json").read_bytes())
    rows = [dict(zip(("attribute(a)", "query(b)", "f"), row, strict=True)) for row in ROWS]
    assert scores(forest, rows) == pytest.approx(XGBOOST, abs=1e-6)
    assert (forest.base, forest.link) == (0.0, "")


def test_lightgbm_gives_the_probabilities_of_the_library() -> None:
    forest = read_forest("lightgbm", "models/l.json", (MODELS / "lightgbm.json").read_bytes())
    rows = [dict(zip(("attribute_a", "query_b", "f"), row, strict=True)) for row in ROWS]
    assert forest.link == "sigmoid"
    assert [1 / (1 + math.exp(-score)) for score in scores(forest, rows)] == pytest.approx(LIGHTGBM, abs=1e-12)


def test_a_model_is_parsed_once_for_all_that_use_it() -> None:
    content = (MODELS / "xgboost.json").read_bytes()
    assert read_forest("xgboost", "a.json", content) is read_forest("xgboost", "b.json", content)


def xgboost_split(**said: Any) -> list[Any]:
    children = [{"nodeid": 1, "leaf": 1.0}, {"nodeid": 2, "leaf": 2.0}]
    node = {"nodeid": 0, "split": "f", "split_condition": 0.5, "yes": 1, "no": 2, "missing": 1, "children": children}
    return [{**node, **said}]


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ({}, [1.0, 2.0, 1.0]),  # !(f >= 0.5)
        ({"missing": 2}, [1.0, 2.0, 2.0]),  # f < 0.5
        ({"yes": 2, "no": 1, "missing": 2}, [2.0, 1.0, 2.0]),  # the children change places
        ({"split_condition": 0.1}, [2.0, 2.0, 1.0]),
        ({"gain": 3.5, "cover": 7}, [1.0, 2.0, 1.0]),
    ],
)
def test_splits_of_xgboost_go_where_the_documentation_says(said: dict[str, Any], expected: list[float]) -> None:
    found = scores(read("xgboost", xgboost_split(**said)), [{"f": 0.2}, {"f": 0.5}, {"f": NAN}])
    assert found == expected


def test_a_feature_of_xgboost_that_is_a_number_is_an_input() -> None:
    assert read("xgboost", xgboost_split(split="12")).features == ("xgboost_input_12",)


def test_split_points_of_xgboost_are_floats() -> None:
    """0.1 as a float is a little above 0.1."""
    assert scores(read("xgboost", xgboost_split(split_condition=0.1)), [{"f": 0.1}]) == [1.0]


def lightgbm(node: dict[str, Any], **said: Any) -> dict[str, Any]:
    leaves = {"left_child": {"leaf_value": 1.0}, "right_child": {"leaf_value": 2.0}}
    tree = {"split_feature": 0, "decision_type": "<=", "default_left": False, **leaves, **node}
    return {"feature_names": ["f"], "tree_info": [{"tree_structure": tree}], "pandas_categorical": [], **said}


@pytest.mark.parametrize(
    ("node", "expected"),
    [
        ({"threshold": 0.5}, [1.0, 2.0, 2.0]),
        ({"threshold": 0.5, "default_left": True}, [1.0, 2.0, 1.0]),
        ({"threshold": "0.5"}, [1.0, 2.0, 2.0]),
    ],
)
def test_splits_of_lightgbm_go_where_vespa_says(node: dict[str, Any], expected: list[float]) -> None:
    """A value that equals the threshold goes right, whatever LightGBM itself does."""
    assert scores(read("lightgbm", lightgbm(node)), [{"f": 0.2}, {"f": 0.5}, {"f": NAN}]) == expected


CATEGORIES = {"decision_type": "==", "threshold": "0||2"}


@pytest.mark.parametrize(
    ("node", "said", "expected"),
    [
        (CATEGORIES, {"pandas_categorical": [["a", "b", "c"]]}, [1.0, 2.0, 1.0, 2.0]),
        ({**CATEGORIES, "default_left": True}, {"pandas_categorical": [["a", "b", "c"]]}, [1.0, 2.0, 1.0, 1.0]),
        (CATEGORIES, {"pandas_categorical": [["x", "y", "b"]]}, [2.0, 1.0, 2.0, 2.0]),
        (
            CATEGORIES,
            {
                "pandas_categorical": [["a"], ["b", "x", "c"]],
                "feature_names": ["other", "f"],
                "feature_infos": {"other": {"values": [0]}, "f": {"values": [0, 1, 2]}},
            },
            [2.0, 1.0, 1.0, 2.0],
        ),
        (CATEGORIES, {}, [2.0, 2.0, 2.0, 2.0]),  # the texts "0" and "2"
    ],
)
def test_categories_of_lightgbm_are_texts(node: dict[str, Any], said: dict[str, Any], expected: list[float]) -> None:
    place = {"split_feature": 1} if "feature_names" in said else {}
    rows = [{"f": text_hash("a")}, {"f": text_hash("b")}, {"f": text_hash("c")}, {"f": NAN}]
    assert scores(read("lightgbm", lightgbm({**node, **place}, **said)), rows) == expected


@pytest.mark.parametrize(
    ("objective", "link"),
    [
        ("binary sigmoid:1", "sigmoid"),
        ("cross_entropy", "sigmoid"),
        ("poisson", "exp"),
        ("gamma", "exp"),
        ("tweedie", "exp"),
        ("lambdarank", ""),
        ("regression", ""),
        (None, ""),
    ],
)
def test_objectives_of_lightgbm_put_a_function_around_the_sum(objective: Any, link: str) -> None:
    assert read("lightgbm", lightgbm({"threshold": 1}, objective=objective)).link == link


@pytest.mark.parametrize(
    ("kind", "dump", "told"),
    [
        ("xgboost", {"a": 1}, "it holds no trees: a list of them is expected"),
        (
            "xgboost",
            {"learner": {}},
            'it is a saved model: save it as .ubj, or write dump_model(file, dump_format="json")',
        ),
        ("xgboost", [1], "it holds no trees: a list of them is expected"),
        ("xgboost", [{"nodeid": 0}], "a node has no number 'leaf', but 'None'"),
        ("xgboost", [{"leaf": "x"}], "a node has no number 'leaf', but 'x'"),
        ("xgboost", xgboost_split(children=[{"leaf": 1}]), "a split has not two children"),
        ("xgboost", xgboost_split(split=3), "a split names no feature"),
        (
            "xgboost",
            xgboost_split(split_condition=[1, 2]),
            "the split on 'f' has no number as split_condition: indicators and categories are not known",
        ),
        ("lightgbm", [], "it holds no trees: an object with tree_info is expected"),
        ("lightgbm", {"tree_info": []}, "it has no feature_names"),
        ("lightgbm", {"tree_info": [3], "feature_names": []}, "a node is no object"),
        (
            "lightgbm",
            lightgbm({"threshold": 1, "split_feature": 4}),
            "a split asks for feature '4', and there are 1",
        ),
        ("lightgbm", lightgbm({"threshold": "x"}), "a split has no number as threshold, but 'x'"),
        (
            "lightgbm",
            lightgbm(CATEGORIES, pandas_categorical=[["a"]]),
            "a split asks for category '2' of 'f', which has 1",
        ),
        (
            "lightgbm",
            lightgbm(CATEGORIES, pandas_categorical=[[1, 2, 3]]),
            "category 0 of 'f' is no text: categories are the texts of string fields",
        ),
    ],
)
def test_what_is_wrong_is_told_with_the_file(kind: str, dump: Any, told: str) -> None:
    with pytest.raises(LanguageError) as raised:
        read(kind, dump)
    assert raised.value.bare_message == f"models/m.json is no {kind} model: {told}"


def test_a_file_that_is_no_json_is_told_with_its_place() -> None:
    with pytest.raises(LanguageError) as raised:
        read_forest("xgboost", "models/m.json", b"[1,\n 2")
    assert raised.value.bare_message.startswith("models/m.json, line 2, column ")


KEYS = [
    "nodeid", "leaf", "split", "split_condition", "yes", "no", "missing", "children", "tree_info", "feature_names",
    "tree_structure", "split_feature", "threshold", "decision_type", "left_child", "right_child", "leaf_value",
    "pandas_categorical",
]  # fmt: skip
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.floats(allow_nan=False) | st.sampled_from(["f", "==", "0||1"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(KEYS),
            inner,
            max_size=5,
        )
    ),
    max_leaves=15,
)


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(["xgboost", "lightgbm"]), JSON)
def test_whatever_is_in_a_file_is_a_forest_or_an_error(kind: str, dump: Any) -> None:
    try:
        forest = read(kind, dump)
    except LanguageError:
        return
    forest.sums([np.zeros(2) for _ in forest.features], 2)


def deep(depth: int, split: Callable[[Any, Any], Any], leaf: Any) -> Any:
    return leaf if depth == 0 else split(deep(depth - 1, split, leaf), deep(depth - 1, split, leaf))


def many_trees(kind: str, trees: int) -> bytes:
    if kind == "xgboost":
        (shape,) = xgboost_split()
        return orjson.dumps([deep(6, lambda *both: {**shape, "children": [*both]}, {"leaf": 1.0})] * trees)
    tree = lightgbm({"threshold": 0.5})["tree_info"][0]["tree_structure"]
    one = deep(6, lambda *both: {**tree, "left_child": both[0], "right_child": both[1]}, {"leaf_value": 1.0})
    return orjson.dumps(lightgbm({}, tree_info=[{"tree_structure": one}] * trees))


@pytest.mark.parametrize("kind", ["xgboost", "lightgbm"])
def test_a_large_model_is_objects_for_a_few_trees_at_a_time(kind: str) -> None:
    """As objects, each of its nodes takes some hundred bytes."""
    read_forest(kind, "models/m.json", many_trees(kind, 2))  # what is made once is there
    content = many_trees(kind, 150)
    tracemalloc.start()
    try:
        forest = read_forest(kind, "models/m.json", content)
        kept, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    nodes = 150 * (2**7 - 1)
    assert len(forest.values) == nodes
    assert forest.sums([np.zeros(1)] * len(forest.features), 1).tolist() == [150.0]
    assert kept < 40 * nodes
    assert most < 100 * nodes
