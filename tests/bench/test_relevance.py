"""The benchmark of relevance measures what was computed by hand, and says what it leaves out."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest

from bench import lucene_peer, relevance
from bench.java_program import NotInstalled
from bench.report import Report
from paperwasp.relevance.collection import check_fit
from paperwasp.relevance.measuring import measure
from paperwasp.relevance.rankings import RankedDocument
from tools.collections.collection import Collection, Document, write

COLLECTION = Collection(
    [
        Document("a", "paper", "wasps chew wood and make paper of it, and wasps build their nests with that"),
        Document("b", "nests", "under roofs"),
        Document("c", "honey", "bees keep honey"),
    ],
    {"q1": "paper of wasps", "q2": "roofs", "q3": "honey of bees"},
    {"q1": {"b": 1, "a": 1}, "q2": {"b": 1}, "q3": {"b": 1, "c": 0}},
)


@pytest.fixture
def found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the collection twice, and no model of meaning."""
    for name in ("one", "two"):
        write(COLLECTION, tmp_path / name, "passage")
    monkeypatch.setenv("BENCH_COLLECTIONS", str(tmp_path))
    minilm = SimpleNamespace(wheel_folder=lambda: None)
    monkeypatch.setattr(relevance, "pydoc", lambda name: minilm)
    return tmp_path


def test_collections_are_measured_and_averaged(found: Path) -> None:
    """q1 finds a alone, of a and b: 1/(1 + 1/log2(3)); q2 finds b first; q3 finds c, which is not relevant, and a."""
    report = Report()
    relevance.run(report, relevance.Options(has_lucene=False))
    works = [row.work for row in report.rows]
    assert works[:3] == [f"one, 3 documents, 3 queries: {name}" for name in ("nativeRank", "bm25", "words")]
    assert len(works) == 9 and works[8] == "mean of 2 collections: words"
    gain = (1 / (1 + 1 / math.log2(3)) + 1) / 3
    for row in report.rows:
        assert row.ours == f"{gain:.3f} {(0.5 + 1) / 3:.3f} {(0.5 + 1) / 3:.3f}" and row.met is None
    assert any("no weights of MiniLM" in remark for remark in report.remarks)


def test_what_cannot_be_measured_costs_itself(found: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A collection that cannot be read, a package that cannot be deployed, and a Lucene that fails."""
    (found / "two" / "qrels.txt").write_text("q1 0 b 1\nq1 0 a much\n")

    def rank(*arguments: object) -> None:
        raise RuntimeError("no space left")

    @contextmanager
    def packages(report: Report) -> Iterator[relevance.Packages]:
        yield [(found / "absent", relevance.PLAIN), (relevance.EXAMPLES / "relevance" / "words", relevance.WORDS)]

    monkeypatch.setattr(lucene_peer, "rank", rank)
    monkeypatch.setattr(relevance, "_packages", packages)
    report = Report()
    relevance.run(report, relevance.Options())
    assert [row.work for row in report.rows] == ["one, 3 documents, 3 queries: words"]
    absent, lucene, two = report.failures
    assert absent.startswith("relevance, one, absent: ") and str(found / "absent") in absent
    assert lucene == "relevance, one, Lucene: RuntimeError: no space left"
    assert two.startswith("relevance, two: BadCollection: ") and "qrels.txt, line 2" in two


def test_the_last_ranking_is_to_be_better_than_lucene(found: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lucene is given an answer of its own: everything right, in one place after the other."""

    def rank(collection: Collection, analyzer: str, hits: int) -> dict[str, list[RankedDocument]]:
        assert hits == relevance.HITS
        right = {"q1": ["a", "b"], "q2": ["b"], "q3": ["b"]}
        return {query: [RankedDocument(each, -place) for place, each in enumerate(ids)] for query, ids in right.items()}

    monkeypatch.setattr(lucene_peer, "rank", rank)
    report = Report()
    relevance.run(report, relevance.Options())
    assert [row.met for row in report.rows] == [None, None, False] * 3
    assert "Lucene, Porter and stop words 1.000 1.000 1.000" in report.rows[6].peers


def test_lucene_is_left_out_where_it_cannot_be_had(found: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def rank(*arguments: object) -> None:
        raise NotInstalled("Lucene is left out: there is no java")

    monkeypatch.setattr(lucene_peer, "rank", rank)
    report = Report()
    relevance.run(report, relevance.Options())
    assert all(row.met is None for row in report.rows) and "Lucene is left out: there is no java" in report.remarks


def test_lucene_ranks_a_collection() -> None:
    """`of` and `and` are stop words for Porter's analyzer; Krovetz's has them."""
    try:
        runs = {analyzer: lucene_peer.rank(COLLECTION, analyzer, 10) for analyzer in relevance.LUCENE}
    except NotInstalled as missing:
        pytest.skip(str(missing))
    assert [hit.id for hit in runs["krovetz"]["q3"]] == ["c", "a"] and [hit.id for hit in runs["porter"]["q3"]] == ["c"]
    judged = check_fit(COLLECTION.queries, COLLECTION.judgments)
    values = measure(runs["porter"], COLLECTION.judgments, judged, ["AP"])
    assert values["AP"].tolist() == [0.5, 1, 0]


def test_titles_of_a_corpus_ask_for_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BENCH_COLLECTIONS", raising=False)
    monkeypatch.setenv("BENCH_CORPUS", "corpus")
    monkeypatch.setattr(relevance, "read_pydoc", lambda: COLLECTION)
    monkeypatch.setattr(relevance, "records", lambda: iter([("Paper", "of\nwasps"), ("Honey", "of bees")]))
    expected = Collection(
        [Document("0", "", "of wasps"), Document("1", "", "of bees")],
        {"0": "Paper", "1": "Honey"},
        {"0": {"0": 1}, "1": {"1": 1}},
    )
    assert [(name, read_one()) for name, read_one in relevance.collections()] == [
        ("pydoc", COLLECTION),
        ("titles", expected),
    ]


def test_meaning_is_left_out_where_its_model_learned_from_the_answers() -> None:
    report = Report()
    words = [(Path("plain"), relevance.PLAIN), (Path("words"), relevance.WORDS)]
    packages = [*words, (Path("both"), relevance.MEANING)]
    assert relevance._for("titles", packages, report) == words and len(report.remarks) == 1
    assert relevance._for("pydoc", packages, report) == packages and len(report.remarks) == 1
    assert relevance._for("titles", words, report) == words and len(report.remarks) == 1


def test_the_plain_package_stems_as_by_default(found: Path) -> None:
    with relevance._packages(Report()) as ((plain, _), (words, _)):
        assert "snowball" in (words / "services.xml").read_text()
        assert "config" not in (plain / "services.xml").read_text()
