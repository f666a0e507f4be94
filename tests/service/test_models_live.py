"""Models of a deployed application: in memory, after a start from the disk, and in streaming search."""

from __future__ import annotations

import gc
import io
import json
import math
import zipfile
from collections.abc import Iterator, Mapping
from typing import Any

import httpx
import numpy as np
import pytest

from paperwasp import limits
from paperwasp.schema.files import PackageFiles
from tests import web
from tests.ranking.onnx.onnx_models import embedding, external, product
from tests.ranking.ubjson_writer import ubjson
from tests.service.in_process import ZIP, Deployed, deployed_service

SERVICES = """<services version="1.0">
  <container id="default" version="1.0"><search/><document-api/></container>
  <content id="c" version="1.0">
    <redundancy>1</redundancy>
    <documents><document type="t" mode="%s"/></documents>
  </content>
</services>"""
SCHEMA = """schema t {
    document t {
        field a type int { indexing: attribute }
        field kind type string { indexing: attribute }
        field v type tensor<float>(d0[4]) { indexing: attribute }
        field tokens type tensor<float>(d0[3]) { indexing: attribute }
    }
    rank-profile trees {
        function twice() { expression: attribute(a) * 2 }
        first-phase { expression: 0 }
        second-phase { expression: xgboost("x.json") + 1000 * lightgbm("l.json") }
        match-features: xgboost("x.json") lightgbm("l.json")
    }
    rank-profile saved {
        function twice() { expression: attribute(a) * 2 }
        first-phase { expression: xgboost("saved.ubj") }
    }
    rank-profile network {
        inputs { query(q) tensor<float>(d0[4]) }
        onnx-model m {
            file: files/product.onnx
            input x: rows
            output y: scores
            intraop-threads: 1
            interop-threads: 1
            execution-mode: sequential
            gpu-device: 0
        }
        onnx-model words { file: models/words.onnx }
        function rows() { expression: tensor<float>(d0[1],d1[4])(attribute(v){d0:(d1)} + query(q){d0:(d1)}) }
        function ids() { expression: tokenInputIds(6, attribute(tokens)) }
        first-phase { expression: sum(onnx(m)) }
        second-phase {
            expression: onnx(m).scores{d0:0,d1:2}
            rerank-count: 2
        }
        match-features {
            sum(onnx(words).y)  firstPhase  secondPhase
            sum(tokenInputIds(6, attribute(tokens)))
            sum(tokenTypeIds(6, attribute(tokens), attribute(tokens)))
            sum(tokenAttentionMask(6, attribute(tokens)))
            sum(customTokenInputIds(1, 2, 6, attribute(tokens)))
        }
    }
    rank-profile together inherits network {
        first-phase { expression: attribute(a) }
        second-phase { expression: attribute(a) }
        global-phase {
            rerank-count: 2
            expression: onnx(m).scores{d0:0,d1:0}
        }
    }
    rank-profile by_file {
        function x() { expression: tensor<float>(d0[1],d1[4])(attribute(v){d0:(d1)}) }
        first-phase { expression: sum(onnxModel("product.onnx", "y")) }
    }
}
"""


def split(feature: str, at: float, missing: int, left: float, right: float) -> dict[str, Any]:
    leaves = [{"nodeid": 1, "leaf": left}, {"nodeid": 2, "leaf": right}]
    return {"nodeid": 0, "split": feature, "split_condition": at, "yes": 1, "no": 2, "missing": missing} | {
        "children": leaves
    }


XGBOOST = [split("attribute(a)", 2, 1, 1.0, 10.0), split("twice", 5, 2, 100.0, 200.0)]
SAVED = {
    "learner": {
        "learner_model_param": {"base_score": "[2E-1]"},
        "objective": {"name": "binary:logistic"},
        "gradient_booster": {
            "name": "gbtree",
            "model": {
                "trees": [
                    {
                        "left_children": np.array([1, -1, -1], np.int32),
                        "right_children": np.array([2, -1, -1], np.int32),
                        "split_indices": np.array([1, 0, 0], np.int32),
                        "split_conditions": np.array([5, 1, 2], np.float32),
                        "default_left": np.array([0, 0, 0], np.uint8),
                    }
                ]
            },
        },
    }
}
"""Feature 1, less than 5: 1, else 2, as where it is missing; and the logit of 0.2."""
LIGHTGBM = {
    "objective": "poisson",
    "feature_names": ["twice", "attribute(kind)"],
    "feature_infos": {"twice": {"values": []}, "attribute(kind)": {"values": [0, 1]}},
    "pandas_categorical": [["red", "blue"]],
    "tree_info": [
        {
            "tree_structure": {
                "split_feature": 1,
                "threshold": "1",
                "decision_type": "==",
                "default_left": False,
                "left_child": {"leaf_value": 1.0},
                "right_child": {"leaf_value": 0.0},
            }
        }
    ],
}
FILES: dict[str, str | bytes] = {
    "schemas/t.sd": SCHEMA,
    "models/x.json": json.dumps(XGBOOST),
    "models/l.json": json.dumps(LIGHTGBM),
    "models/saved.ubj": ubjson(SAVED),
    "models/saved-features.txt": "attribute(a)\ntwice\n",
    "files/product.onnx": product(outputs=None),
    "models/product.onnx": product(),
    "models/words.onnx": embedding(200),
}
DOCUMENTS: list[dict[str, Any]] = [
    {"kind": "red", "v": [0, 1, 2, 3], "tokens": [5, 6, 0]},
    {"a": 1, "kind": "blue", "v": [1, 1, 2, 3], "tokens": [7, 0, 0]},
    {"a": 3, "kind": "green", "v": [2, 1, 2, 3], "tokens": [1, 2, 3]},
]


def package(files: Mapping[str, str | bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def deploy(service: Deployed, files: Mapping[str, str | bytes], mode: str = "index") -> httpx.Response:
    return web.post(
        f"{service.config_url}/application/v2/tenant/default/prepareandactivate",
        content=package({"services.xml": SERVICES % mode, **files}),
        headers=ZIP,
        timeout=60,
    )


@pytest.fixture(scope="module", params=["memory", "disk", "streaming"])
def service(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployed]:
    folder = tmp_path_factory.mktemp("models")
    with deployed_service(folder) as service:
        answer = deploy(service, FILES, "streaming" if request.param == "streaming" else "index")
        assert answer.status_code == 200, answer.text
        assert "not executed yet" not in answer.text
        for number, fields in enumerate(DOCUMENTS):
            path = f"{service.url}/document/v1/t/t/docid/{number}"
            assert web.post(path, json={"fields": fields}, timeout=30).status_code == 200
        if request.param != "disk":
            yield service
            return
    with deployed_service(folder) as service:
        yield service


def hits(service: Deployed, profile: str) -> dict[str, tuple[float, dict[str, float]]]:
    """Document → relevance and match features, best first."""
    asked = {
        "yql": "select * from t where true",
        "ranking": profile,
        "timeout": "20s",
        "streaming.selection": "true",
        "input.query(q)": "[0, 0, 0, 1]",
    }
    root = web.post(f"{service.url}/search/", json=asked, timeout=30).json()["root"]
    assert "errors" not in root, root
    return {
        hit["id"].rpartition(":")[2]: (hit["relevance"], hit["fields"].get("matchfeatures", {}))
        for hit in root["children"]
    }


def test_trees(service: Deployed) -> None:
    """Document 0 has no `a`: it goes as `missing` says, left in the first tree and right in the second."""
    found = hits(service, "trees")
    trees = {"0": (201.0, 1.0), "1": (101.0, math.e), "2": (210.0, 1.0)}
    for number, (xgboost, lightgbm) in trees.items():
        relevance, features = found[number]
        assert features == {
            'xgboost("x.json")': xgboost,
            'lightgbm("l.json")': pytest.approx(lightgbm),
        } or features == {
            "xgboost(x.json)": xgboost,
            "lightgbm(l.json)": pytest.approx(lightgbm),
        }
        assert relevance == pytest.approx(xgboost + 1000 * lightgbm)


def test_saved_trees(service: Deployed) -> None:
    found = {number: relevance for number, (relevance, _) in hits(service, "saved").items()}
    assert found == {number: pytest.approx(leaf + math.log(0.25)) for number, leaf in (("0", 2), ("1", 1), ("2", 2))}


def test_networks(service: Deployed) -> None:
    weights = np.arange(12).reshape(4, 3)
    found = hits(service, "network")
    sequences = {"0": [101, 5, 6, 102], "1": [101, 7, 102], "2": [101, 1, 2, 3, 102]}
    for number, document in enumerate(DOCUMENTS):
        scores = (np.array(document["v"]) + np.array([0, 0, 0, 1])) @ weights
        tokens = sequences[str(number)]
        _, features = found[str(number)]
        assert features["firstPhase"] == pytest.approx(scores.sum())
        assert features["sum(onnx(words).y)"] == sum(tokens) + sum(token * token for token in tokens)
        assert features["sum(tokenInputIds(6,attribute(tokens)))"] == sum(tokens)
        assert features["sum(tokenTypeIds(6,attribute(tokens),attribute(tokens)))"] == min(
            6, 2 * len(tokens) - 1
        ) - len(tokens)
        assert features["sum(tokenAttentionMask(6,attribute(tokens)))"] == len(tokens)
        assert features["sum(customTokenInputIds(1,2,6,attribute(tokens)))"] == sum(tokens) - 101 - 102 + 3
    assert list(found) == ["2", "1", "0"]
    assert [found[number][0] for number in ("2", "1")] == [4 + 5 + 16 + 44, 2 + 5 + 16 + 44]


def test_networks_in_the_global_phase(service: Deployed) -> None:
    """The best two by `a` are ranked anew: their first outputs are 3 + 12 + 36 = 51, whatever the first number."""
    found = hits(service, "together")
    assert [found[number][0] for number in ("2", "1")] == [51.0, 51.0]


def test_a_model_by_its_file(service: Deployed) -> None:
    found = hits(service, "by_file")
    expected = {str(n): float((np.array(d["v"]) @ np.arange(12).reshape(4, 3)).sum()) for n, d in enumerate(DOCUMENTS)}
    assert {number: relevance for number, (relevance, _) in found.items()} == expected


@pytest.mark.parametrize(
    ("files", "told"),
    [
        ({"models/x.json": "[1"}, "models/x.json, line 1"),
        ({"models/x.json": "{}"}, "x.json is no xgboost model: it holds no trees"),
        ({"models/x.json": json.dumps([split("attribute(none)", 1, 1, 0, 0)])}, "has no field 'none'"),
        ({"models/x.json": json.dumps([split("attribute(v)", 1, 1, 0, 0)])}, "a model of trees takes numbers"),
        ({"models/x.json": json.dumps([split("xgboost(x.json)", 1, 1, 0, 0)])}, "feeds itself"),
        ({"models/x.json": json.dumps([split("1 +", 1, 1, 0, 0)])}, "expected a value"),
        ({"models/saved.ubj": ubjson(SAVED)[:-1]}, "models/saved.ubj is no xgboost model: byte "),
        ({"models/saved-features.txt": "twice"}, "models/saved.ubj is no xgboost model: tree 0: a split asks for"),
        ({"models/saved-features.txt": b"\xff"}, "models/saved-features.txt is not UTF-8"),
        ({"models/saved-features.txt": "twice\nthrice"}, "feature 'thrice': unknown rank feature or function 'thrice'"),
        ({"models/l.json": '{"tree_info": []}'}, "l.json is no lightgbm model: it has no feature_names"),
        ({"files/product.onnx": product()[:-20]}, "files/product.onnx"),
        ({"files/product.onnx": b"\\0\\1"}, "files/product.onnx is no ONNX model"),
        ({"files/product.onnx": external()}, "files/product.onnx does not run"),
        ({"files/product.onnx": embedding()}, "the model has no input 'x'"),
        (
            {"schemas/t.sd": SCHEMA.replace("d1[4])(attribute(v)", "d1[3])(attribute(v)")},
            "size 4 is expected",
        ),
        ({"schemas/t.sd": SCHEMA.replace("onnx(m).scores", "onnx(m).score")}, "has no output 'score'"),
({"schemas/t.sd": SCHEMA.replace("function ids()", "function other()")}, "nothing feeds input 'ids'"),
        ({"schemas/t.sd": SCHEMA.replace("(6, attribute(tokens))", "(6, attribute(a))")}, "takes tensors whose one"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_found_at_deploy(refusing: Deployed, files: dict[str, str | bytes], told: str) -> None:
    answer = deploy(refusing, {**FILES, **files})
    assert answer.status_code == 412, answer.text
    assert told in answer.json()["message"], answer.text


@pytest.fixture(scope="module")
def refusing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployed]:
    with deployed_service(tmp_path_factory.mktemp("refusing")) as service:
        yield service


def test_the_files_of_a_package_that_was_replaced_are_released(
    refusing: Deployed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of large packages; models of small ones are kept a while, in case that they come back."""
    monkeypatch.setattr(limits, "PACKAGE_KEPT_BYTES", 0)

    def kept() -> set[str]:
        """What the files that schemas hold say as their generation."""
        gc.collect()
        found = [files for files in gc.get_objects() if isinstance(files, PackageFiles)]
        return {files["files/generation"].read().decode() for files in found if "files/generation" in files}

    for generation in ("one", "two"):
        assert deploy(refusing, {**FILES, "files/generation": generation}).status_code == 200
        path = f"{refusing.url}/document/v1/t/t/docid/0"
        assert web.post(path, json={"fields": DOCUMENTS[0]}, timeout=30).status_code == 200
        assert list(hits(refusing, "trees")) == ["0"]
        assert hits(refusing, "trees")  # kept in the cache of answers, with what it was made by
    assert kept() == {"two"}
