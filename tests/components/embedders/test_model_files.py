"""Files of models: nobody keeps their content, which is read when it is asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from paperwasp.components.embedders.model_files import find_model
from paperwasp.components.embedders.transformer import Transformer
from paperwasp.errors import InternalError, NotFound
from paperwasp.ranking.onnx.session import DEFAULT_SETTINGS
from paperwasp.schema.files import PackageFiles
from tests.components.embedders.tiny_models import tiny_bert


class _Counted(Mapping[str, bytes]):
    """Contents that count how often they are read."""

    def __init__(self, contents: dict[str, bytes]) -> None:
        self._contents = contents
        self.reads = 0

    def __getitem__(self, path: str) -> bytes:
        self.reads += 1
        return self._contents[path]

    def __contains__(self, path: object) -> bool:
        return path in self._contents

    def __iter__(self) -> Iterator[str]:
        return iter(self._contents)

    def __len__(self) -> int:
        return len(self._contents)


def test_a_file_of_the_package_is_read_when_it_is_needed() -> None:
    contents = _Counted({"m.onnx": b"model"})
    found = find_model("transformer-model", {"path": "m.onnx"}, PackageFiles(contents))
    assert found is not None
    assert contents.reads == 0
    assert (found.content, found.content) == (b"model", b"model")
    assert contents.reads == 2


def test_a_file_of_the_cache_that_is_gone_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PAPERWASP_MODEL_CACHE", str(tmp_path))
    path = tmp_path / "model-id" / "e5"
    path.parent.mkdir()
    path.write_bytes(tiny_bert())
    found = find_model("transformer-model", {"model-id": "e5"}, {})
    assert found is not None and found.content == tiny_bert()
    model = Transformer(found, DEFAULT_SETTINGS, "input_ids", "attention_mask", "token_type_ids", "last_hidden_state")
    path.unlink()
    with pytest.raises(NotFound, match="model-id 'e5' is not fetched"):
        _ = found.content
    with pytest.raises(InternalError, match="model-id 'e5' is not fetched"):
        model.load()
