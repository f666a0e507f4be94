"""The benchmark of a query's stages finds the documents of a service that has stopped, and says when it finds none."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
import vespacli

from bench import corpus as corpora
from bench import feed as feed_benchmark
from bench import http_query, service
from bench.layers import STAGES, NothingMeasured, layers
from bench.service import paperwasp

DOCUMENTS = 30


@pytest.fixture(autouse=True)
def small_corpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Few documents, and a cache of files that ends with the test."""
    monkeypatch.setattr(corpora, "records", lambda: iter([("red green", "red green blue " * 100)] * DOCUMENTS))
    monkeypatch.setattr(feed_benchmark, "records", corpora.records)
    for module in (service, feed_benchmark):
        monkeypatch.setattr(module, "CACHE", tmp_path / "cache")
    folder = Path(vespacli.__file__).parent / "go-binaries"
    monkeypatch.setattr(feed_benchmark, "vespa_cli", lambda: next(folder.glob("*linux_amd64/bin/vespa")))


def test_stages_are_those_of_a_query_that_finds_documents(tmp_path: Path) -> None:
    queries = list(itertools.islice(http_query.requests("body", "body"), 5))
    with paperwasp(tmp_path / "data") as server:
        feed_benchmark.feed(server, feed_benchmark.feed_file(DOCUMENTS))
    found = layers(tmp_path / "data", queries)
    assert list(found) == list(STAGES)
    assert min(found["parameters and YQL"], found["match and rank"], found["render"]) > 0
    unknown = queries[0].replace("red", "purple").replace("green", "yellow")
    with pytest.raises(NothingMeasured, match=r"the query finds nothing: .*purple"):
        layers(tmp_path / "data", [unknown])


def test_a_node_without_documents_is_not_measured(tmp_path: Path) -> None:
    with paperwasp(tmp_path):
        pass
    with pytest.raises(NothingMeasured, match="has no documents"):
        layers(tmp_path, ["/search/?yql=select+*+from+article+where+true"])


def test_a_directory_without_the_cluster_is_not_measured(tmp_path: Path) -> None:
    with pytest.raises(NothingMeasured, match="one content cluster 'articles' was expected"):
        layers(tmp_path, [])


def test_a_query_over_http_that_finds_nothing_is_known() -> None:
    assert http_query.total_count(b'{"root":{"fields":{"totalCount":3}}}') == 3
    assert http_query.total_count(b'{"root":{"fields":{"totalCount":0}}}') == 0
