"""The models of a folder: which files are some, what they are called, and what is said of those that are none."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from onnx import helper

from paperwasp.application.build import build_model
from paperwasp.application.model_evaluation.functions import NoSuchThing, Values
from paperwasp.application.model_evaluation.models import EvaluatedModel, kind_of, read_models
from paperwasp.application.package import ApplicationPackage
from paperwasp.document.tensor.literal import parse_tensor
from paperwasp.document.tensor.types import TensorType
from paperwasp.document.tensor.value import Tensor
from paperwasp.errors import InvalidPackage, LanguageError, PaperwaspError
from paperwasp.ranking.declarations import model_name
from paperwasp.ranking.onnx.session import SessionSettings
from paperwasp.search.features import check_profiles
from tests.application.model_evaluation.packages import XGBOOST, add_mul, files
from tests.ranking.onnx.onnx_models import FLOAT, external, model
from tests.ranking.ubjson_writer import ubjson

SERVICES = """<services version="1.0"><container id="default" version="1.0">
    <model-evaluation>{}</model-evaluation>
</container></services>"""


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("models/a.onnx", "a"),
        ("models/sub/a.b.json", "sub_a_b"),
        ("models/x/y/z.model", "x_y_z"),
        ("models/a.b/c.ubj", "a_b_c"),
    ],
)
def test_names(path: str, name: str) -> None:
    assert model_name(path) == name


@pytest.mark.parametrize(
    ("path", "content", "kind"),
    [
        ("models/a.onnx", b"", "onnx"),
        ("models/a.ubj", b"", "xgboost"),
        ("models/a.model", b"", "model"),
        ("models/a.json", b' \n [{"nodeid": 0}]', "xgboost"),
        ("models/a.json", b'{"tree_info": []}', "lightgbm"),
        ("models/a.json", b'{"x": "\\"tree_info\\""}', ""),
        ("models/a.json", b'{"x": {"tree_info": 1}}', ""),
        ("models/a.json", b'{"tree_info": ', ""),
        ("models/a.json", b"", ""),
        ("models/a.txt", b"[", ""),
    ],
)
def test_kinds(path: str, content: bytes, kind: str) -> None:
    assert kind_of(path, content) == kind


class Named:
    """A function that nobody evaluates."""

    most_rows = 1

    def __init__(self, name: str) -> None:
        self.name = name
        self.arguments: Mapping[str, TensorType] = {}

    def evaluate_all(self, rows: Sequence[Values]) -> list[Tensor | PaperwaspError]:
        raise AssertionError(f"{len(rows)} rows are given")


def model_of(*names: str) -> EvaluatedModel:
    return EvaluatedModel("m", [Named(name) for name in names])


@pytest.mark.parametrize(
    ("functions", "asked", "found"),
    [
        (["a"], [], "a"),
        (["a", "b"], ["b"], "b"),
        (["default.add", "other.sub"], ["default"], "default.add"),
        (["default.add", "other.sub"], ["sub"], "other.sub"),
        (["default.add", "other.sub"], ["other", "sub"], "other.sub"),
        (["default.y"], ["serving_default", "y"], "default.y"),
        (["y", "z"], ["default", "y"], "y"),
        (["y", "z"], ["serving_default", "y"], "y"),
        (["Y", "z"], ["y"], "Y"),
        (["Y", "y"], ["y"], "y"),
    ],
)
def test_functions_by_name(functions: list[str], asked: list[str], found: str) -> None:
    assert model_of(*functions).function(asked).name == found


@pytest.mark.parametrize(
    ("functions", "asked", "problem"),
    [
        (["a", "b"], [], "More than one function is available in model 'm', but no name is given."),
        (["s.a", "s.b"], ["s"], "Multiple functions start by 's' in model 'm'."),
        (["s.a", "t.a"], ["a"], "Multiple functions called 'a' in model 'm'."),
        (["s.a", "t.a"], ["c"], "No function 'c' in model 'm'."),
        (["s.a", "t.a"], ["serving_default", "c"], "No function 'c' in model 'm'."),
    ],
)
def test_functions_that_there_are_not(functions: list[str], asked: list[str], problem: str) -> None:
    with pytest.raises(NoSuchThing) as raised:
        model_of(*functions).function(asked)
    assert raised.value.message == f"{problem} Available functions: {', '.join(functions)}"


def test_files_that_are_no_models_are_told() -> None:
    found = read_models(
        {
            "models/good.json": json.dumps(XGBOOST).encode(),
            "models/words.json": b'["a", "b"]',
            "models/broken.onnx": b"no",
            "models/bad-name.onnx": add_mul(),
            "models/wrong.model": b"model wrong { function f() { expression: a + } }",
            "models/none.model": b"model none { }",
            "other/good.json": b"[]",
        },
        {},
    )
    assert list(found.by_name) == ["good"]
    assert sorted((each.message.partition(":")[0], each.level) for each in found.findings) == [
        ("models/bad-name.onnx is not evaluated", "WARNING"),
        ("models/broken.onnx is not evaluated", "WARNING"),
        ("models/none.model is not evaluated", "WARNING"),
        ("models/words.json is not evaluated", "WARNING"),
        ("models/wrong.model is not evaluated", "WARNING"),
    ]


def test_features_of_a_saved_model() -> None:
    """Base score 0.5 and a leaf of 2 where `red` is below 1; what is missing goes right, to 4."""
    tree: dict[str, Any] = {
        "left_children": [1, -1, -1],
        "right_children": [2, -1, -1],
        "parents": [2147483647, 0, 0],
        "split_conditions": [1.0, 2.0, 4.0],
        "split_indices": [0, 0, 0],
        "split_type": [0, 0, 0],
        "default_left": [0, 0, 0],
        "categories": [],
        "categories_nodes": [],
        "categories_segments": [],
        "categories_sizes": [],
        "base_weights": [0.0, 2.0, 4.0],
    }
    saved = {
        "learner": {
            "feature_names": ["red"],
            "gradient_booster": {"name": "gbtree", "model": {"trees": [tree], "tree_info": [0]}},
            "learner_model_param": {"base_score": "5E-1", "num_class": "0", "num_feature": "1", "num_target": "1"},
            "objective": {"name": "reg:squarederror"},
        }
    }
    [function] = read_models({"models/saved.ubj": ubjson(saved)}, {}).model("saved").functions
    assert list(function.arguments) == ["red"]


def test_two_files_of_one_name() -> None:
    with pytest.raises(InvalidPackage, match=r"models/a\.onnx and models/a\.json both resolve to the model name 'a'"):
        built({"models/a.json": b"[]", "models/a.onnx": add_mul()})


def test_a_network_that_does_not_run_is_refused() -> None:
    with pytest.raises(InvalidPackage, match="its weights are in another file"):
        built({"models/a.onnx": external()})


def test_a_network_that_fails_for_zeros_is_told() -> None:
    """y has four columns for each row: one number does not fit. Four of them do."""
    node = helper.make_node("Reshape", ["x", "shape"], ["y"])
    shape = {"shape": np.array([-1, 4], np.int64)}
    content = model([node], {"x": (FLOAT, ["n"])}, {"y": (FLOAT, ["m", 4])}, shape)
    [told] = built({"models/a.onnx": content})
    assert told.startswith("models/a.onnx does not run: ") and told.endswith(" (with zeros, open sizes being 1)")
    [function] = read_models({"models/a.onnx": content}, {}).model("a").functions
    value = parse_tensor("tensor<float>(d0[4]):[1, 2, 3, 4]")
    [found] = function.evaluate_all([{"x": value}])
    assert isinstance(found, Tensor) and found.cells.tolist() == [[[1, 2, 3, 4]]]


def test_a_network_that_needs_too_much_memory_is_refused() -> None:
    """One number for each row, expanded to 256 GB: with other rows it would not be less."""
    node = helper.make_node("Expand", ["x", "shape"], ["y"])
    shape = {"shape": np.array([1 << 20, 1 << 16], np.int64)}
    content = model([node], {"x": (FLOAT, ["n", 1])}, {"y": (FLOAT, ["m", 1 << 16])}, shape)
    with pytest.raises(InvalidPackage, match=r"models/a\.onnx does not run: it takes too much memory"):
        built({"models/a.onnx": content})


def test_a_network_that_cannot_be_loaded_is_refused() -> None:
    content = model([helper.make_node("NoSuchThing", ["x"], ["y"])], {"x": (FLOAT, [1])}, {"y": (FLOAT, [1])})
    with pytest.raises(InvalidPackage, match=r"models/a\.onnx does not run: .*NoSuchThing"):
        built({"models/a.onnx": content})


def built(package: dict[str, bytes], settings: str = "") -> list[str]:
    content = {"services.xml": SERVICES.format(settings).encode(), **package}
    return [str(finding) for finding in build_model(ApplicationPackage(content), check_profiles).findings]


def test_settings_of_a_model_that_there_is_not() -> None:
    models = '<onnx><models><model name="b"><intraop-threads>2</intraop-threads></model></models></onnx>'
    [told] = built({"models/a.onnx": add_mul()}, models)
    assert told.endswith("Model 'b' not found. Available ONNX models are: a. Skipping this configuration.")


def test_settings_reach_the_session() -> None:
    settings = SessionSettings(3, 2, parallel=True)
    [function] = (
        read_models({"models/layer.onnx": files()["models/layer.onnx"]}, {"layer": settings}).model("layer").functions
    )
    session = function._load()  # type: ignore[attr-defined]
    options = session._session.get_session_options()
    assert (options.intra_op_num_threads, options.inter_op_num_threads) == (3, 2)
    assert options.execution_mode.name == "ORT_PARALLEL"


def test_errors_of_a_broken_probe_name_the_file() -> None:
    def refuse(path: str, content: bytes, shapes: object) -> dict[str, list[int]]:
        raise LanguageError(f"{path} does not run")

    [finding] = read_models({"models/a.onnx": add_mul()}, {}, refuse).findings
    assert (finding.message, finding.level) == ("models/a.onnx does not run", "ERROR")
