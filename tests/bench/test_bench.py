"""The benchmarks measure what they say: corpora keep their shape, engines agree with plain sums. No time is judged."""

from __future__ import annotations

import itertools
import json
import os
from io import StringIO
from pathlib import Path

import numpy as np
import pytest
import vespacli
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from bench import (
    beside_feed,
    command,
    documents,
    feed_client,
    http_kinds,
    http_query,
    lucene_peer,
    opensearch_peer,
    service,
)
from bench import corpus as corpora
from bench import feed as feed_benchmark
from bench.agreement import Exhaustive, _coarse, _idf, _same, _scores, agreement
from bench.corpus import Corpus, document_frequencies, word_of
from bench.engines import Paperwasp
from bench.feed import DOCUMENT_BYTES, document
from bench.java_program import NotInstalled
from bench.report import Report, Row, Times
from bench.top_k import LEAST_DOCUMENTS, Task, _measure, _row

SEED = 5


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    """500 documents of words as frequent as 1/n."""
    choice = np.random.default_rng(SEED)
    sizes = choice.integers(5, 60, 500)
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.uint64)
    tokens = (choice.zipf(1.3, int(offsets[-1])) % 400).astype(np.uint32)
    positions = np.concatenate([np.arange(size) for size in sizes]).astype(np.uint32)
    present = np.unique(tokens)
    queries = [[int(t) for t in dict.fromkeys(choice.choice(present, size))] for size in (1, 2, 3, 4, 5) * 6]
    return Corpus("small", tokens, positions, offsets, queries, queries[:10])


@given(st.integers(0, 26**5 - 1))
def test_words_spell_numbers(number: int) -> None:
    word = word_of(number)
    assert len(word) == 5
    assert sum((ord(letter) - 97) * 26**place for place, letter in enumerate(word)) == number


def test_repeating_keeps_the_shape_of_frequencies(corpus: Corpus) -> None:
    repeated = corpora._repeated(corpus, 3)
    before, after = document_frequencies(corpus), document_frequencies(repeated)
    assert repeated.documents_count == 3 * corpus.documents_count
    assert after.sum() == 3 * before.sum()
    frequent = before > corpora.RARE_DOCUMENTS_COUNT
    assert np.all(np.abs(after[: len(before)][frequent] - 3 * before[frequent]) <= 0.16 * before[frequent])
    assert np.all(after[after > 0] <= 3 * before.max() * 1.05)
    assert {t for query in repeated.queries for t in query} <= set(np.flatnonzero(after).tolist())


def test_the_vocabulary_is_another_in_each_copy(corpus: Corpus) -> None:
    repeated = corpora._repeated(corpus, 2)
    size = len(corpus.tokens)
    assert not np.array_equal(repeated.tokens[:size], repeated.tokens[size:])
    assert np.array_equal(repeated.tokens[:size], corpus.tokens)


def test_queries_survive_being_saved() -> None:
    rows = [[1, 2], [3], [4, 5, 6]]
    assert corpora._unpacked(corpora._packed(rows)) == rows


def test_our_hits_have_the_best_scores(corpus: Corpus) -> None:
    lines = list(agreement(corpus, Paperwasp(corpus), None, None))
    assert lines == ["agreement, ours: the best ten scores for 25 of 25 queries"]


def test_a_filter_leaves_the_best_of_what_it_accepts(corpus: Corpus) -> None:
    engine = Paperwasp(corpus)
    query = max(corpus.queries, key=len)
    exhaustive = Exhaustive(corpus, set(query))
    words = [word_of(t) for t in query]
    everything = exhaustive.best(query, _idf, exhaustive.lengths)
    assert _same(_scores(engine.filtered(words, 100)()), everything)
    assert engine.filtered(words, 10)() == engine.masked(words, 10)()
    assert len(engine.filtered(words, 0)()) == 0


def test_phrases_are_found_where_words_follow_each_other(corpus: Corpus) -> None:
    engine = Paperwasp(corpus)
    first, second = (int(t) for t in corpus.tokens[:2])
    pairs = (corpus.tokens[:-1] == first) & (corpus.tokens[1:] == second) & (corpus.positions[1:] > 0)
    documents = np.searchsorted(corpus.offsets, np.flatnonzero(pairs).astype(np.uint64), side="right") - 1
    hits = engine.phrase([word_of(first), word_of(second)])()
    assert {lid for _, lid in hits} <= set(documents.tolist())
    assert len(hits) == min(10, len(set(documents.tolist())))


def test_lengths_in_a_byte_round_down() -> None:
    lengths = np.array([0, 39, 40, 41, 42, 55, 56, 59, 60, 183, 184, 1_000], np.float64)
    assert _coarse(lengths).tolist() == [0, 39, 40, 40, 42, 54, 56, 56, 60, 168, 184, 984]


def test_every_query_of_every_engine_is_timed(corpus: Corpus) -> None:
    words = [[word_of(t) for t in query] for query in corpus.queries]
    times = _measure(Task("OR", words, "any_of", {}), Paperwasp(corpus), None, None, passes=1)
    assert list(times) == ["ours"]
    assert len(times["ours"].nanoseconds) == len(words)
    assert all(0 < spent < 1 << 60 for spent in times["ours"].nanoseconds)


def test_times_as_mean_and_quantiles() -> None:
    times = Times([1000 * n for n in range(1, 101)])
    assert (times.mean_us, times.quantile_us(0.5), times.quantile_us(0.99)) == (50.5, 51.0, 100.0)


def test_a_target_is_met_by_every_peer_or_not_at_all() -> None:
    times = {"ours": Times([100]), "PISA": Times([100]), "tantivy": Times([400])}
    assert _row("w", times, {"PISA": 1.2, "tantivy": 0.7}).met is True
    assert _row("w", times, {"PISA": 0.9, "tantivy": 0.7}).met is False
    assert _row("w", times, {}).met is None
    assert _row("w", {"ours": Times([1])}, {"PISA": 0.9}).met is None
    assert LEAST_DOCUMENTS > corpora.TITLES_COUNT


def test_without_java_lucene_is_left_out(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(NotInstalled, match="there is no java and no mvn"):
        lucene_peer.command("serve", "nowhere")
    with pytest.raises(NotInstalled, match="OpenSearch is left out"), opensearch_peer.serving(tmp_path / "feed"):
        pass


def test_the_page_of_the_benchmarks_names_each() -> None:
    page = (Path(command.__file__).parent / "README.md").read_text()
    line = next(line for line in page.splitlines() if "# one of " in line)
    assert line.partition("# one of ")[2].split(", ") == list(command.BENCHMARKS)
    assert [name for name in command.BENCHMARKS | command.ON_REQUEST if f"**{name}**" not in page] == []


def test_rows_and_failures_are_told_when_they_come_and_in_the_table() -> None:
    said = StringIO()
    report = Report(console=Console(file=said, width=100))
    report.add(Row("work", "1 µs", "Lucene 2 µs", "0.5", "≤ 1", met=True))
    report.fail("feed: no server")
    assert said.getvalue().splitlines() == [
        "work · 1 µs · Lucene 2 µs · 0.5 · ≤ 1 · met",
        "failed · feed: no server",
    ]
    said.truncate(0)
    report.show()
    assert said.getvalue().count("Lucene 2 µs") == said.getvalue().count("failed · feed: no server") == 1
    assert report.failures == ["feed: no server"]


@given(st.integers(0, 10**6), st.text(max_size=300), st.text(min_size=1100, max_size=1200))
def test_documents_of_any_text_are_valid(number: int, title: str, body: str) -> None:
    title, body = (text.encode(errors="ignore").decode() for text in (title, body))
    line = document(number, title, body)
    fields = json.loads(line)["fields"]
    assert line.count("\n") == 1
    assert body.startswith(fields["body"])
    assert len(fields["body"].encode()) < DOCUMENT_BYTES


def test_plain_documents_are_a_kilobyte_to_the_byte() -> None:
    assert len(document(7, "a title", "word " * 400).rstrip("\n")) == DOCUMENT_BYTES


def test_queries_are_the_same_every_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(corpora, "records", lambda: iter([("one two three", ""), ("four five", "")]))
    first, second = (list(itertools.islice(http_query.requests("body", "body"), 20)) for _ in range(2))
    assert first == second
    assert all(path.startswith("/search/?yql=select") and "ranking=body" in path for path in first)


def test_queries_have_no_operators_of_any_engine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """`*` and `-` would ask for prefixes and leave words out here, and be no letters there."""
    file = tmp_path / "queries"
    file.write_text('args*  -1 two-dimensional\n***\n"os.path" (don\'t) title:a\nna\u00efve +x\n')
    monkeypatch.setenv("BENCH_QUERIES", str(file))
    assert corpora.query_texts() == ["args 1 two-dimensional", "os.path don't title a", "na ve x"]


@given(st.integers(0, 10**6))
def test_updates_change_one_attribute(number: int) -> None:
    line = documents.update(number)
    assert line.count("\n") == 1
    assert json.loads(line)["update"] == json.loads(document(number, "", "x" * 1100))["put"]
    assert 1990 <= json.loads(line)["fields"]["year"]["assign"] < 2026


def test_a_few_documents_can_be_read_visited_and_updated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run with 50 documents: everything is found, and every figure is there. The decode-only server stands aside."""
    monkeypatch.setattr(corpora, "records", lambda: iter([("one two", "three four " * 200)] * 50))
    monkeypatch.setattr(http_kinds, "_typed", lambda: ["three four", "four"])
    for module in (service, feed_benchmark, documents):
        monkeypatch.setattr(module, "CACHE", tmp_path)
    monkeypatch.setattr(feed_benchmark, "records", corpora.records)
    monkeypatch.setattr(feed_benchmark, "vespa_cli", _installed_cli)
    report, options = Report(), documents.Options(documents_count=50, gets_count=20, repeats=1)
    documents.run_update(report, options)
    documents.run_read(report, options)
    assert [row.ours != "" for row in report.rows] == [True] * 8
    assert report.rows[-1].met is True
    beside_feed.run(report, beside_feed.Options(documents_count=50, queries_count=20))
    assert [row.ours[-2:] for row in report.rows[8:]] == ["µs", "µs", "/s"]


def test_the_feed_client_is_timed_beside_the_cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(corpora, "records", lambda: iter([("one two", "three four " * 200)] * 50))
    for module in (service, feed_benchmark):
        monkeypatch.setattr(module, "CACHE", tmp_path)
    monkeypatch.setattr(feed_benchmark, "records", corpora.records)
    monkeypatch.setattr(feed_benchmark, "vespa_cli", _installed_cli)
    report, cores = Report(), os.sched_getaffinity(0)
    feed_client.run(report, feed_client.Options(documents_count=50, rounds=1))
    assert [row.work.split(",")[0] for row in report.rows] == ["paperwasp feed", "FeedClient", "AsyncFeedClient"]
    assert all("/s, CPU of the client" in row.ours and "vespa feed" in row.peers for row in report.rows)
    assert os.sched_getaffinity(0) == cores


def _installed_cli() -> Path:
    folder = Path(vespacli.__file__).parent / "go-binaries"
    return next(folder.glob("*linux_amd64/bin/vespa"))
