"""Models by the names that Vespa gives to files. Authority: ImportedMlModels.java, OnnxModelConfigGenerator.java."""

from __future__ import annotations

import pytest

from paperwasp.errors import LanguageError
from paperwasp.ranking.declarations import Declarations
from paperwasp.schema.files import PackageFiles
from tests.ranking.onnx.onnx_models import product

TREES = b'[{"nodeid": 0, "leaf": 0.5}]'


def declarations() -> Declarations:
    files = {
        "models/xgboost.2.2.json": TREES,
        "models/deep/er.json": TREES,
        "models/twice.json": TREES,
        "models/twice.ubj": b"",
        "models/net.onnx": product(),
        "files/net.onnx": product(),
        "files/only.onnx": product(),
    }
    return Declarations(PackageFiles(files))


@pytest.mark.parametrize(
    "name", ["xgboost.2.2.json", "models/xgboost.2.2.json", "xgboost_2_2", "deep/er.json", "deep_er", "twice.json"]
)
def test_forests_by_path_and_by_name(name: str) -> None:
    assert declarations().forest("xgboost", name) is not None


@pytest.mark.parametrize(
    ("name", "path"),
    [("net.onnx", "models/net.onnx"), ("files/net.onnx", "files/net.onnx"), ("files/only.onnx", "files/only.onnx")],
)
def test_networks_in_the_package_and_in_its_folder_of_models(name: str, path: str) -> None:
    model = declarations().model_file(name)
    assert model.signature is not None
    files = declarations().files
    assert files is not None and model.file is not None
    assert model.file.read() == files[path].read()


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("xgboost_2", "there is no file 'models/xgboost_2' in the package"),
        ("twice", "the models in models/twice.json and models/twice.ubj both have the name 'twice'"),
    ],
)
def test_names_of_no_file_and_of_two(name: str, problem: str) -> None:
    with pytest.raises(LanguageError, match=problem):
        declarations().forest("xgboost", name)
