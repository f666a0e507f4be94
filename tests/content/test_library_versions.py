"""A start with other libraries than those that made the index says so, and serves what is there."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from paperwasp.document.ids import DocumentId
from paperwasp.document.operations import Put
from paperwasp.schema import parse_schemas
from paperwasp.search.operators.word import WordItem
from paperwasp.search.search import search
from paperwasp.search.served import ServedSchemas
from paperwasp.text.linguistics import versions
from tests.content.nodes import started
from tests.search.queries import query_of

SCHEMAS = parse_schemas({"schemas/d.sd": "schema d { document d { field t type string { indexing: index } } }"}).schemas


@pytest.mark.parametrize(("now", "told"), [("3.0.0", False), ("4.0.0", True)])
def test_another_version_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, now: str, told: bool
) -> None:
    monkeypatch.setattr(
        "paperwasp.content.checkpoints.checkpoint.versions", lambda: {"PyStemmer": "3.0.0", "gone": "1"}
    )
    with started(tmp_path, dict(SCHEMAS)) as node:
        node.apply(Put(DocumentId("n", "d", "1"), {"t": "running"}))
        node.node.checkpoint()
    monkeypatch.setattr(versions, "versions", lambda: {"PyStemmer": now, "new": "1"})
    with caplog.at_level(logging.WARNING, "paperwasp.content"), started(tmp_path, dict(SCHEMAS)) as node:
        assert search(node.node.reader.view(), query_of(WordItem("t", "running")), ServedSchemas()).total_count == 1
    warned = [record.getMessage() for record in caplog.records if "Libraries" in record.getMessage()]
    assert bool(warned) == told and all(
        "PyStemmer 4.0.0, before 3.0.0" in text and "/reindex" in text for text in warned
    )
