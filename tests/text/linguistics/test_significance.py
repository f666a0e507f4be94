"""Significance models: files, compressed or not, and which model a query's language chooses."""

from __future__ import annotations

import orjson
import pytest
import zstandard

from paperwasp import limits
from paperwasp.text.linguistics.significance import NO_MODELS, SignificanceModels


def model(documents: int, **frequencies: int) -> dict[str, object]:
    return {"document-count": documents, "document-frequencies": frequencies}


def models(*files: dict[str, object]) -> SignificanceModels:
    return SignificanceModels.read(orjson.dumps({"version": "1", "languages": file}) for file in files)


def test_the_last_model_for_a_language_counts() -> None:
    found = models({"en": model(10, a=3), "nb,un": model(20)}, {"en": model(30, a=7)})
    assert found.chosen("en-US", "").document_frequency("A") == (7, 30)
    assert found.chosen("", "en").document_frequency("b") == (1, 30)
    assert found.chosen("", "").documents == 30
    assert [found.chosen(said, "").documents for said in ("no", "nb", "un")] == [20, 20, 20]
    assert found.chosen("", "de").documents == 20
    assert models({"en": model(9)}).chosen("", "de").documents == 9


def test_no_model_is_an_error() -> None:
    with pytest.raises(ValueError, match="No significance model available for set language de"):
        models({"en": model(9)}).chosen("de", "de")
    for said in ("", "un"):
        with pytest.raises(ValueError, match="for unknown or english language"):
            NO_MODELS.chosen(said, "")


def test_files_may_be_compressed() -> None:
    content = orjson.dumps({"languages": {"en": model(10, a=3)}})
    compressed = zstandard.compress(content[:20]) + zstandard.compress(content[20:])
    assert SignificanceModels.read([compressed]) == SignificanceModels.read([content])


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[]",
        b"{}",
        b'{"languages": []}',
        b'{"languages": {"en": 1}}',
        b'{"languages": {"en": {"document-frequencies": {}}}}',
        b'{"languages": {"en": {"document-count": true, "document-frequencies": {}}}}',
        b'{"languages": {"en": {"document-count": 1, "document-frequencies": {"a": 1.5}}}}',
        b'{"languages": {"en": {"document-count": 1, "document-frequencies": {"a": -1}}}}',
        b"\x28\xb5\x2f\xfdno frame",
        zstandard.compress(b"{}")[:-3],
    ],
)
def test_what_is_no_model_is_refused(content: bytes) -> None:
    with pytest.raises(ValueError):
        SignificanceModels.read([content])


def test_what_is_inflated_has_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "SIGNIFICANCE_MODEL_BYTES", 1000)
    with pytest.raises(ValueError, match="more than 1000 bytes"):
        SignificanceModels.read([zstandard.compress(bytes(1001))])
