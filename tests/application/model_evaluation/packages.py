"""A package with a model of every kind, whose values can be worked by hand."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from onnx import helper

from tests.ranking.onnx.onnx_models import FLOAT, embedding, model, product

EXAMPLE = """
# Functions of tensors.
model example {
    inputs {
        input1 tensor(name{},x[3])
        input2: tensor(x[3])
    }
    constants {
        constant(weights) tensor(x[3]): [0.5, 1.5, 2.5]
        two: 2
        table tensor(x[3]): file: table.json
    }
    function scaled() { expression: reduce(sum(input1 * input2, name) * weights, max, x) * two }
    function sum_of(a, b) { expression: a + 2 * b }
    function calling() { expression: sum_of(1, c) + query(d) }
    function looked() { expression: sum(constant(table) * input2) }
    function mapped() { expression: tensor(d0{}):{a:1, b:2} }
    function indexed() {
        expression {
            tensor(d0[2],d1[3]):[[1, 2, 3], [4, 5, 6]]
        }
    }
    function mixed() { expression: tensor<float>(x{},y[2]):{a:[1, 2], b:[3, 4]} }
    function sparse() { expression: tensor(x{},y{}):{{x:a,y:b}:1, {x:c,y:d}:2} }
}
"""


def split(feature: str, at: float, missing: int, left: float, right: float) -> dict[str, Any]:
    leaves = [{"nodeid": 1, "leaf": left}, {"nodeid": 2, "leaf": right}]
    return {"nodeid": 0, "split": feature, "split_condition": at, "yes": 1, "no": 2, "missing": missing} | {
        "children": leaves
    }


XGBOOST = [split("f1", 0.5, 1, 1.5, 2.5), split("fieldMatch(title).completeness", 0.25, 2, 10, 20)]
LIGHTGBM = {
    "name": "tree",
    "feature_names": ["numerical", "categorical"],
    "pandas_categorical": [["a", "b"]],
    "tree_info": [
        {
            "tree_structure": {
                "split_feature": 0,
                "threshold": 0.5,
                "decision_type": "<=",
                "default_left": True,
                "left_child": {"leaf_value": 1},
                "right_child": {"leaf_value": 2},
            }
        },
        {
            "tree_structure": {
                "split_feature": 1,
                "threshold": "0",
                "decision_type": "==",
                "default_left": False,
                "left_child": {"leaf_value": 0.25},
                "right_child": {"leaf_value": 0.5},
            }
        },
    ],
}


def add_mul() -> bytes:
    """output1 = input1 · input2, output.2 = input1 + input2."""
    return model(
        [
            helper.make_node("Mul", ["input1", "input2"], ["output1"]),
            helper.make_node("Add", ["input1", "input2"], ["output.2"]),
        ],
        {"input1": (FLOAT, [1]), "input2": (FLOAT, [1])},
        {"output1": (FLOAT, [1]), "output.2": (FLOAT, [1])},
    )


def files() -> Mapping[str, bytes]:
    """Path → content."""
    return {
        "models/add_mul.onnx": add_mul(),
        "models/layer.onnx": product(),
        "models/words.onnx": embedding(),
        "models/trees.json": json.dumps(XGBOOST).encode(),
        "models/light.json": json.dumps(LIGHTGBM).encode(),
        "models/own/example.model": EXAMPLE.encode(),
        "models/own/table.json": json.dumps({"values": [1, 10, 100]}).encode(),
    }
