"""The benchmark that asks for documents by their own vectors: a small run of it, and the vectors it makes."""

from __future__ import annotations

import numpy as np
import pytest

from bench import own_vectors
from bench.report import Report
from tests.chance import SEED


def test_each_document_is_found_by_its_own_vector(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own_vectors, "KINDS", (own_vectors.Kind("angular", "float", 8),))
    monkeypatch.setattr(own_vectors, "SHAPES", (own_vectors.Shape("one direction"),))
    report = Report()
    own_vectors.run(report, own_vectors.Options(documents_count=40, draws=0, seed=SEED))
    assert report.rows[-1].met and not report.failures, f"{report.rows}, seed {SEED}"
    asked = int(report.rows[-1].ours.split()[0])
    assert asked >= 40


@pytest.mark.parametrize("kind", own_vectors.KINDS, ids=lambda kind: kind.name)
def test_vectors_are_what_columns_keep(kind: own_vectors.Kind) -> None:
    for shape in own_vectors.SHAPES:
        vectors = own_vectors.vectors_of(np.random.default_rng(SEED), kind, shape, 60)
        assert vectors.shape == (60, kind.dimensions) and vectors.dtype == np.float32
        if kind.cell == "int8":
            assert np.array_equal(vectors, vectors.astype(np.int8))
        if kind.cell == "bfloat16":
            assert not np.any(vectors.view(np.uint32) & np.uint32(0xFFFF))
