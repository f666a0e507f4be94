"""The examples of the pages run, and each page of the reference begins with one."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from tests.docs.examples import blocks_of, difference, reader_of
from tests.docs.pages import DOCS, ROOT

ELSEWHERE: Final = {
    "start/five-minutes.md": "tests/real_clients/test_five_minutes.py",
    "guides/explain.md": "tests/service/test_explanations_live.py",
    "guides/in-process.md": "tests/embedded/test_page.py",
    "guides/relevance.md": "tests/relevance/test_page.py",
    "guides/testing.md": "tests/testing/test_examples.py",
    "reference/document-selection.md": "tests/document/selection/test_selection_page.py",
    "reference/embedding.md": "tests/docs/test_model_pages.py",
    "reference/feed-client.md": "tests/client/feeding/test_feed_client_page.py",
    "reference/feeding.md": "tests/client/test_feeding_page.py",
    "reference/generate.md": "tests/docs/test_model_pages.py",
    "reference/model-evaluation.md": "tests/service/test_model_evaluation_live.py",
    "reference/ranking-in-queries.md": "tests/service/test_ranking_in_queries_page.py",
    "reference/remote-embedders.md": "tests/docs/test_model_pages.py",
    "reference/security.md": "tests/service/test_security_page.py",
}
"""Pages whose examples other tests run."""
HERE: Final = (
    "reference/python-components.md",
    "reference/nearest-neighbors.md",
    "reference/chunks.md",
    "guides/facets.md",
    "guides/changing-an-application.md",
    "guides/feeding.md",
    "guides/operation.md",
    "guides/text-search.md",
    "guides/vectors.md",
    "start/notebook.md",
    "reference/application-packages.md",
    "reference/changes.md",
    "reference/deploy-api.md",
    "reference/document-v1.md",
    "reference/differences.md",
    "reference/documents.md",
    "reference/grouping.md",
    "reference/http.md",
    "reference/indexing-language.md",
    "reference/limits.md",
    "reference/linguistics.md",
    "reference/logs.md",
    "reference/metrics.md",
    "reference/models.md",
    "reference/multi-value-fields.md",
    "reference/operations.md",
    "reference/phases.md",
    "reference/query-profiles.md",
    "reference/rank-properties.md",
    "reference/ranking.md",
    "reference/schema.md",
    "reference/search-api.md",
    "reference/search-parameters.md",
    "reference/semantic-rules.md",
    "reference/services.md",
    "reference/streaming.md",
    "reference/tensors.md",
    "reference/yql.md",
)
"""Pages whose examples run here."""


@pytest.mark.parametrize("name", HERE)
def test_the_page_runs(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with reader_of(DOCS / name, tmp_path) as reader:
        reader.read()
        assert reader.runs > 0


@pytest.mark.parametrize("name", ELSEWHERE)
def test_another_test_runs_the_page(name: str) -> None:
    assert Path(name).stem in (ROOT / ELSEWHERE[name]).read_text()


@pytest.mark.parametrize("page", sorted((DOCS / "reference").glob("*.md")), ids=lambda page: page.stem)
def test_a_page_of_the_reference_begins_with_an_example(page: Path) -> None:
    name = page.relative_to(DOCS).as_posix()
    blocks = blocks_of(page)
    above = page.read_text().splitlines()[: blocks[0].line if blocks else None]
    is_above_all = sum(line.startswith("## ") for line in above) < 2 and not any(line[:1] == "|" for line in above)
    assert name in (*HERE, *ELSEWHERE) and is_above_all


def test_what_a_page_shows_is_compared() -> None:
    found = {"a": [1, {"b": 2, "c": 3}], "d": 4}
    assert difference({"a": [1, {"b": 2}]}, found, "it") is None
    assert difference({"a": [1, {"b": "…"}], "d": 4}, found, "it") is None
    assert difference({"a": [1, {"b": 3}]}, found, "it") == "it.a[1].b is 2, not 3"
    assert difference({"a": [1]}, found, "it") == "it.a is [1, {'b': 2, 'c': 3}], not [1]"
    assert difference({"e": 4}, found, "it") == "it.e is None, not 4"
