"""Models that are damaged, deep, enormous, endless or lie about what they are: errors of the deployment that name the
file and the line that asks for it; the application that is there goes on."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from onnx import helper

from paperwasp import limits
from tests import web
from tests.ranking.onnx.onnx_models import FLOAT, embedding, external, loop, model, product, repeated
from tests.ranking.ubjson_writer import ubjson
from tests.service.in_process import Deployed, active, deployed_service
from tests.service.test_models_live import deploy

SCHEMA = """schema t {
    document t {
        field a type int { indexing: attribute }
        field v type tensor<float>(d0[1],d1[4]) { indexing: attribute }
    }
    rank-profile plain {
        first-phase { expression: attribute(a) }
    }
%s}
"""
TREES = """    rank-profile trees {
        first-phase { expression: %s("%s") }
    }
"""
NETWORK = """    onnx-model m {
        file: models/m.onnx
        input x: attribute(v)
    }
    rank-profile network {
        first-phase { expression: sum(onnx(m)) }
    }
"""
LEAF = {"nodeid": 1, "leaf": 1.0}
SPLIT = {"nodeid": 0, "split": "attribute(a)", "split_condition": 1, "yes": 1, "no": 2, "missing": 1}


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployed]:
    with deployed_service(tmp_path_factory.mktemp("models")) as service:
        active(deploy(service, {"schemas/t.sd": SCHEMA % ""}))
        yield service


def refused(service: Deployed, files: dict[str, str | bytes]) -> str:
    """What the deployment says; a search is answered after it."""
    answer = deploy(service, files)
    assert answer.status_code == 412, answer.text
    asked = {"yql": "select * from t where true", "ranking": "plain", "timeout": "20s"}
    assert web.post(f"{service.url}/search/", json=asked, timeout=30).status_code == 200
    message: str = answer.json()["message"]
    assert len(message) < 4000
    return message


def lightgbm(tree: object) -> dict[str, Any]:
    return {"feature_names": ["attribute(a)"], "tree_info": [{"tree_structure": tree}]}


def deep(depth: int, node: str, end: str) -> str:
    return node * depth + end


@pytest.mark.parametrize(
    ("kind", "name", "content", "told"),
    [
        ("xgboost", "x.json", "", "models/x.json, line 1, column 1"),
        ("xgboost", "x.json", b"\xff\xfe[]", "models/x.json, line 1, column 1"),
        ("xgboost", "x.json", "[\n" + json.dumps(SPLIT)[:-1], "models/x.json, line 2, column"),
        ("xgboost", "x.json", '[{"leaf": NaN}]', "models/x.json, line 1, column 11"),
        ("xgboost", "x.json", '[{"leaf": 1e999}]', "models/x.json, line 1, column"),
        ("xgboost", "x.json", deep(1_000_000, '[{"children":', ""), "models/x.json, line 1, column"),
        ("xgboost", "x.json", json.dumps([{}]), "a node has no number 'leaf'"),
        ("xgboost", "x.json", json.dumps([SPLIT]), "a node has no number 'leaf'"),
        ("xgboost", "x.json", json.dumps([{**SPLIT, "children": [LEAF]}]), "a split has not two children"),
        ("xgboost", "x.json", json.dumps([{**SPLIT, "children": [0, 0]}]), "a split has not two children"),
        ("xgboost", "x.json", json.dumps([{**SPLIT, "split": "a" * 10**6, "children": [LEAF, LEAF]}]), "1000000 chara"),
        ("xgboost", "x.json", json.dumps([{**SPLIT, "split": "(" * 1000, "children": [LEAF, LEAF]}]), "nested deeper"),
        ("xgboost", "x.ubj", ubjson({"learner": {}}), "the learner has no gradient_booster"),
        ("xgboost", "x.ubj", b"{" * 10**6, "models/x.ubj is no xgboost model: byte 1"),
        ("xgboost", "x.ubj", b"[$D#L\x7f" + bytes(7), "is no length that the rest could have"),
        ("xgboost", "none.json", b"", "there is no file 'models/none2.json'"),
        ("lightgbm", "l.json", "{}", "an object with tree_info is expected"),
        ("lightgbm", "l.json", json.dumps(lightgbm(None)), "a node is no object"),
        ("lightgbm", "l.json", json.dumps(lightgbm({"split_feature": 7, "left_child": {}})), "asks for feature '7'"),
        ("lightgbm", "l.json", json.dumps(lightgbm({"split_feature": 0, "left_child": {}})), "no number as threshold"),
        (
            "lightgbm",
            "l.json",
            json.dumps(lightgbm({"split_feature": 0, "threshold": "nan", "left_child": {}, "right_child": {}})),
            "a split has no number as threshold, but 'nan'",
        ),
        ("lightgbm", "l.json", json.dumps(lightgbm({"leaf_value": "1"})), "a node has no number 'leaf_value'"),
        ("lightgbm", "l.json", deep(100_000, '{"left_child":', "1"), "models/l.json, line 1, column"),
    ],
)  # fmt: skip
def test_trees(service: Deployed, kind: str, name: str, content: str | bytes, told: str) -> None:
    asked = name.replace("none", "none2")
    message = refused(service, {"schemas/t.sd": SCHEMA % (TREES % (kind, asked)), f"models/{name}": content})
    assert message.startswith("Invalid application package: schemas/t.sd, line 10, column ")
    assert told in message


def test_more_trees_than_there_may_be(service: Deployed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "FOREST_NODES", 10)
    split = {**SPLIT, "children": [LEAF, {**LEAF, "nodeid": 2}]}
    files: dict[str, str | bytes] = {"schemas/t.sd": SCHEMA % (TREES % ("xgboost", "x.json"))}
    assert "more than 10 nodes" in refused(service, {**files, "models/x.json": json.dumps([split] * 5)})
    monkeypatch.setattr(limits, "FOREST_FILE_BYTES", 10)
    assert "trees have at most 10" in refused(service, {**files, "models/x.json": json.dumps([split])})


def node(kind: str, *names: str, **attributes: Any) -> Any:
    """A node from all these names but the last, which is its output."""
    return helper.make_node(kind, list(names[:-1]), [names[-1]], **attributes)


def endless() -> bytes:
    """A loop without a condition to end it, and the largest count."""
    weights: dict[str, Any] = {"count": np.array(2**62, np.int64), "yes": np.array(True)}
    return model([loop()], {"x": (FLOAT, [1, 4])}, {"y": (FLOAT, [1, 4])}, weights)


def one(*nodes: Any, outputs: Any = (1, 4), weights: dict[str, Any] | None = None) -> bytes:
    return model(nodes, {"x": (FLOAT, [1, 4])}, {"y": (FLOAT, list(outputs))}, weights)


ENORMOUS = {"shape": np.array([2**20, 2**20], np.int64)}
MODELS: dict[str, tuple[Callable[[], bytes], str]] = {
    "empty": (lambda: b"", "models/m.onnx is no ONNX model: it has no graph"),
    "text": (lambda: b"hello world" * 100, "models/m.onnx is no ONNX model"),
    "cut": (lambda: product()[:-1], "models/m.onnx"),
    "half": (lambda: product()[: len(product()) // 2], "models/m.onnx"),
    "other_weights": (external, "models/m.onnx does not run"),
    "cycle": (lambda: one(node("Add", "x", "y", "z"), node("Add", "x", "z", "y")), "models/m.onnx does not run"),
    "no_such_node": (lambda: one(node("Rm", "x", "y")), "models/m.onnx does not run"),
    "no_such_domain": (lambda: one(node("Do", "x", "y", domain="evil")), "models/m.onnx does not run"),
    "no_such_input": (lambda: one(node("Add", "x", "nothing", "y")), "models/m.onnx does not run"),
    "enormous_input": (lambda: product(2**31), "schemas/t.sd, line"),
    "enormous_output": (lambda: one(node("Identity", "x", "y"), outputs=(2**31 - 1, 2**31 - 1)), "schemas/t.sd, line"),
    "enormous_work": (
        lambda: one(
            node("ConstantOfShape", "shape", "z"), node("ReduceSum", "z", "s"), node("Add", "x", "s", "y"),
            weights=ENORMOUS,
        ),
        "models/m.onnx does not run",
    ),
    "other_input": (embedding, "the model has no input 'x'"),
    "endless": (endless, "models/m.onnx"),
}  # fmt: skip


@pytest.mark.parametrize("name", MODELS)
def test_networks(service: Deployed, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr(limits, "ONNX_PROBE_SECONDS", 5)
    make, told = MODELS[name]
    begun = time.monotonic()
    message = refused(service, {"schemas/t.sd": SCHEMA % NETWORK, "models/m.onnx": make()})
    assert time.monotonic() - begun < 60
    assert "schemas/t.sd, line " in message
    assert told in message


def test_networks_cut_anywhere(service: Deployed) -> None:
    """A package with a model that is cut is refused, or the model happens to be whole."""
    whole = product()
    for end in range(0, len(whole), max(1, len(whole) // 12)):
        files: dict[str, str | bytes] = {"schemas/t.sd": SCHEMA % NETWORK, "models/m.onnx": whole[:end]}
        assert "schemas/t.sd, line " in refused(service, files)


def test_a_network_that_is_endless_for_one_document(service: Deployed) -> None:
    """As often as the numbers of the document say, it turns: the trial at the deployment sees zeros."""
    files: dict[str, str | bytes] = {"schemas/t.sd": SCHEMA % NETWORK, "models/m.onnx": repeated()}
    active(deploy(service, files))
    for number, cells in enumerate(([1, 2, 3, 4], [1e17, 0, 0, 0])):
        path = f"{service.url}/document/v1/t/t/docid/{number}"
        answer = web.post(path, json={"fields": {"a": number, "v": {"values": cells}}}, timeout=30)
        assert answer.status_code == 200
    asked = {"yql": "select * from t where true", "ranking": "network", "timeout": "1s"}
    begun = time.monotonic()
    answer = web.post(f"{service.url}/search/", json=asked, timeout=60)
    assert time.monotonic() - begun < 30
    assert answer.status_code == 504 or answer.json()["root"]["coverage"]["degraded"]["timeout"], answer.text
    for text, relevance in (("a < 1", 10.0), ("a > 0", None)):
        asked["yql"] = f"select * from t where {text}"
        root = web.post(f"{service.url}/search/", json=asked, timeout=60).json()["root"]
        assert [hit["relevance"] for hit in root.get("children", [])] == ([] if relevance is None else [relevance])
    active(deploy(service, {"schemas/t.sd": SCHEMA % ""}))
