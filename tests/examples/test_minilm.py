"""The weights of MiniLM become an ONNX model that computes what is published of it; and the demo's second part."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

import meaning_demo
import minilm
from minilm import read_safetensors, write_model
from paperwasp.application.build import build_model
from paperwasp.application.package import load_package
from paperwasp.components.embedders.registry import embedders_of
from paperwasp.document.tensor.types import TensorType
from paperwasp.indexing.components import Context
from paperwasp.schema.files import Component, PackageFiles
from paperwasp.search.features import check_profiles

WEIGHTS = minilm.wheel_folder()
needs_weights = pytest.mark.skipif(WEIGHTS is None, reason="the weights of MiniLM are not installed: make minilm")
SETTINGS = {"transformer-model@path": "model.onnx", "tokenizer-model@path": "tokenizer.json", "normalize": "true"}


def safetensors(path: Path, header: dict[str, object], values: bytes) -> Path:
    written = json.dumps(header).encode()
    path.write_bytes(len(written).to_bytes(8, "little") + written + values)
    return path


def test_tensors_of_a_file(tmp_path: Path) -> None:
    header: dict[str, object] = {
        "__metadata__": {"format": "pt"},
        "places": {"dtype": "I64", "shape": [1], "data_offsets": [0, 8]},
        "weight": {"dtype": "F32", "shape": [2, 1], "data_offsets": [8, 16]},
    }
    values = np.array([7], np.int64).tobytes() + np.array([1.5, -2], np.float32).tobytes()
    (found,) = read_safetensors(safetensors(tmp_path / "w", header, values)).items()
    assert found[0] == "weight" and found[1].tolist() == [[1.5], [-2]]


@pytest.mark.parametrize("content", [b"", b"\x09\0\0\0\0\0\0\0{}", b"\xff" * 20])
def test_a_file_that_is_cut(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "w").write_bytes(content)
    with pytest.raises(ValueError, match="has no header of"):
        read_safetensors(tmp_path / "w")


@needs_weights
def test_published_similarities(tmp_path: Path) -> None:
    """https://sbert.net/docs/quickstart.html, and the example of the model's page."""
    assert WEIGHTS is not None
    write_model(WEIGHTS, tmp_path)
    files = PackageFiles({name: (tmp_path / name).read_bytes() for name in ("model.onnx", "tokenizer.json")})
    (embedder,) = embedders_of(
        [Component("component", "m", "hugging-face-embedder", settings=SETTINGS)], files
    ).values()
    texts = ["The weather is lovely today.", "It's so sunny outside!", "He drove to the stadium."]
    type_ = TensorType.parse("tensor<float>(x[384])")
    vectors = np.concatenate([each.cells for each in embedder.embed(texts, type_, Context("v"))])
    published = [[1.0, 0.6660, 0.1046], [0.6660, 1.0, 0.1411], [0.1046, 0.1411, 1.0]]
    np.testing.assert_allclose(vectors @ vectors.T, published, atol=6e-5)
    (first,) = embedder.embed(["This is an example sentence"], type_, Context("v"))
    np.testing.assert_allclose(first.cells[0, :5], [0.0677, 0.0635, 0.0487, 0.0793, 0.0374], atol=6e-5)


def test_the_schemas_of_the_second_part_are_right() -> None:
    """But for the files of the model, which the demo writes."""
    example = Path(meaning_demo.__file__).parent
    files = {**load_package(example / "application").files, **load_package(example / "meaning").files}
    package = load_package(example / "application")
    for name in ("models/model.onnx", "models/tokenizer.json"):
        assert name not in files
    text = files["services.xml"].decode()
    start, end = text.index("<component"), text.index("</component>") + len("</component>")
    without = {**files, "services.xml": (text[:start] + text[end:]).encode()}
    model = build_model(type(package)(without), check_profiles)
    assert set(model.schemas) == {"pydoc", "passage"}
    assert {profile for _, profile, _ in meaning_demo.WAYS} <= set(model.schemas["passage"].rank_profiles)


def test_passages_are_of_the_standard_library() -> None:
    passage = next(meaning_demo.passages())
    assert passage["put"] == f"id:python:passage::{passage['fields']['name']}"
    assert 0 < len(passage["fields"]["text"]) <= meaning_demo.TEXT_CHARACTERS


def test_without_weights_the_demo_goes_on(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(minilm, "wheel_folder", lambda: None)
    meaning_demo.show_meaning(Console(width=200), "http://127.0.0.1:1", "http://127.0.0.1:1")
    assert "the weights of MiniLM are not installed (make minilm)" in capsys.readouterr().out
