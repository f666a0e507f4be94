"""Searching a content node: what matches beside a plain reading of the query, and pruned ranking beside ranking all.

Authority: https://docs.vespa.ai/en/reference/querying/yql.html and https://docs.vespa.ai/en/ranking/bm25.html
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paperwasp.document.ids import DocumentId
from paperwasp.document.operations import Operation, Put, Remove, Update
from paperwasp.document.updates import Assign, FieldUpdate
from paperwasp.errors import InvalidQuery, Timeout
from paperwasp.schema import parse_schemas
from paperwasp.search.operators import term
from paperwasp.search.operators.boolean import AndItem, FalseItem, NotItem, OrItem, RankItem, TrueItem
from paperwasp.search.operators.item import Item
from paperwasp.search.operators.phrase import PhraseItem
from paperwasp.search.operators.range_operator import RangeItem
from paperwasp.search.operators.weak_and import WeakAndItem
from paperwasp.search.operators.word import WordItem
from paperwasp.search.query import Hit, SearchResponse, SortKey
from paperwasp.search.search import search
from paperwasp.search.served import ServedSchemas
from paperwasp.search.yql_syntax import Annotations
from tests.content.nodes import TestNode, started
from tests.search.naive_matching import words_of
from tests.search.queries import query_of

PAPER = """
schema paper {
  document paper {
    field title type string { indexing: index | summary
      index: enable-bm25
      bolding: on }
    field body type string { indexing: index | summary
      index: enable-bm25 }
    field year type int { indexing: attribute | summary }
    field cat type string { indexing: attribute | summary
      attribute: fast-search }
    field tags type array<string> { indexing: index | attribute | summary
      index: enable-bm25 }
    field code type string { indexing: index | summary
      match: word }
    field brand type string { indexing: index | summary
      match: cased }
    field hidden type string { indexing: attribute }
  }
  fieldset default { fields: title, body }
  document-summary short { summary title {}
    summary year {} }
  rank-profile sum { first-phase { expression: bm25(title) + bm25(body) }
    match-features: bm25(title) bm25(body) attribute(year) firstPhase }
  rank-profile body { first-phase { expression: bm25(body) } }
  rank-profile weighted { inputs { query(w): 2.0 }
    first-phase { expression: 0.3 * bm25(title) + query(w) * bm25(body) } }
  rank-profile year { first-phase { expression: attribute(year) } }
  rank-profile infinite { first-phase { expression: if (attribute(year) > 2004, 1 / (attribute(year) - 2005), 1) } }
  rank-profile dropping inherits sum { first-phase { expression: bm25(title) + bm25(body)
    rank-score-drop-limit: 1.0 } }
  rank-profile two inherits sum { second-phase { expression: 10 - firstPhase
    rerank-count: 2 } }
}
schema note {
  document note { field title type string { indexing: index | summary
      index: enable-bm25 }
    field year type int { indexing: attribute | summary }
    field hidden type int { indexing: attribute } }
  fieldset default { fields: title }
  rank-profile sum { first-phase { expression: bm25(title) } }
}
"""
SCHEMAS = parse_schemas(
    {
        f"schemas/{name}.sd": "schema " + text
        for name, text in zip(("paper", "note"), PAPER.split("schema ")[1:], strict=True)
    }
).schemas

PROFILES = ServedSchemas()


def paper(name: object, **fields: object) -> Put:
    return Put(DocumentId("n", "paper", str(name)), fields)


@contextmanager
def node_with(*operations: Put | Update | Remove, batch: int = 50) -> Iterator[TestNode]:
    with TemporaryDirectory() as directory, started(Path(directory), dict(SCHEMAS)) as node:
        for start in range(0, len(operations), batch):
            node.apply(*operations[start : start + batch])
        yield node


def ask(node: TestNode, tree: Item, profile: str = "sum", **parameters: object) -> SearchResponse:
    parameters.setdefault("document_types", ("paper",))
    request = query_of(tree, rank_profile=profile, **parameters)  # type: ignore[arg-type]
    return search(node.node.reader.view(), request, PROFILES)


def names(response: SearchResponse) -> list[str]:
    return [hit.document_id.rsplit(":", 1)[1] for hit in response.hits]


EXAMPLES = (
    paper(
        "a", title="Graph search", body="searching large graphs", year=2001, cat="cs.DS", tags=["graph", "fast search"]
    ),
    paper("b", title="Cats", body="A cat may look at a king", year=2005, cat="cs.AI", code="X-1 y", brand="Big Cat"),
    paper("c", title="Façade of graphs", body="naïve search of a graph", year=2010, cat="CS.ds", hidden="h"),
    paper("d", title="Empty"),
)


@pytest.mark.parametrize(
    ("tree", "expected"),
    [
        (TrueItem(), "abcd"),
        (FalseItem(), ""),
        (WordItem("title", "graphs"), "ac"),
        (WordItem("title", "GRAPH"), "ac"),
        (WordItem("title", "facade"), "c"),
        (WordItem("default", "naive"), "c"),
        (WordItem("default", "cat"), "b"),
        (WordItem("body", "nowhere"), ""),
        (WordItem("body", "large-graphs"), "a"),
        (WordItem("body", "graphs-large"), ""),
        (WordItem("body", "..."), ""),
        (WordItem("nofield", "a"), ""),
        (WordItem("cat", "cs.ds"), "ac"),
        (WordItem("cat", "cs"), ""),
        (WordItem("year", "2005"), "b"),
        (WordItem("tags", "search"), "a"),
        (PhraseItem("tags", ("graph", "fast")), ""),
        (PhraseItem("tags", ("fast", "search")), "a"),
        (PhraseItem("body", ("look", "at", "a")), "b"),
        (WordItem("code", "x-1 Y"), "b"),
        (WordItem("code", "x"), ""),
        (WordItem("hidden", "H"), "c"),
        (WordItem("brand", "Cat"), "b"),
        (WordItem("brand", "cat"), ""),
        (WordItem("sddocname", "paper"), "abcd"),
        (WordItem("sddocname", "note"), ""),
        (RangeItem("year", 2001, 2005), "ab"),
        (RangeItem("year", 2001, 2005, low_inclusive=False), "b"),
        (RangeItem("year", None, 2001), "a"),
        (RangeItem("year", 2002, None), "bc"),
        (AndItem((WordItem("default", "graph"), RangeItem("year", 2005, None))), "c"),
        (OrItem((WordItem("title", "cat"), WordItem("title", "empty"))), "bd"),
        (WeakAndItem((WordItem("default", "king"), WordItem("default", "search"))), "abc"),
        (NotItem((WordItem("default", "search"), WordItem("title", "facade"))), "a"),
        (RankItem((WordItem("default", "king"), WordItem("default", "search"))), "b"),
        (WordItem("body", "graphs", annotations=Annotations(stem=False)), ""),
        (WordItem("title", "Graph", annotations=Annotations(normalize_case=False)), ""),
        (WordItem("title", "graphs", annotations=Annotations(normalize_case=False)), "ac"),
        (WordItem("brand", "Cat", annotations=Annotations(normalize_case=False)), "b"),
        (WordItem("title", "façade", annotations=Annotations(accent_drop=False)), ""),
        (WordItem("title", "facade", annotations=Annotations(accent_drop=False)), "c"),
        (WordItem("title", "graph", annotations=Annotations(implicit_transforms=False)), "ac"),
        (WordItem("title", "graphs", annotations=Annotations(implicit_transforms=False)), ""),
        (WordItem("body", "large graphs", annotations=Annotations(implicit_transforms=False)), ""),
    ],
    ids=str,
)
def test_what_matches(tree: Item, expected: str) -> None:
    with node_with(*EXAMPLES) as node:
        response = ask(node, tree, "unranked")
        assert "".join(sorted(names(response))) == expected
        assert response.total_count == len(expected)
        assert response.documents == 4


def test_bm25_by_hand() -> None:
    """Two documents of three and one tokens; "cat" is in both: N = n = 2, idf = log(1 + 0.5 / 2.5)."""
    with node_with(paper(1, body="cat dog cat"), paper(2, body="cat")) as node:
        hits = ask(node, WordItem("body", "cats"), "body").hits
    idf = math.log(1 + 0.5 / 2.5)
    score = {"1": idf * 2 * 2.2 / (2 + 1.2 * (0.25 + 0.75 * 3 / 2)), "2": idf * 2.2 / (1 + 1.2 * (0.25 + 0.75 * 1 / 2))}
    assert [hit.relevance for hit in hits] == pytest.approx(sorted(score.values(), reverse=True), rel=1e-14)


def test_bm25_by_what_the_query_says() -> None:
    """The idf of a term in 3 of 100 documents, whatever is here; a significance in its place."""
    with node_with(paper(1, body="cat dog cat"), paper(2, body="cat")) as node:
        said = Annotations(document_frequency=(3, 100))
        rare = ask(node, WordItem("body", "cat", annotations=said), "body").hits
        weighed = ask(node, WordItem("body", "cat", annotations=Annotations(significance=0.5)), "body").hits
        plain = ask(node, WordItem("body", "cat"), "body").hits
    here = math.log(1 + 0.5 / 2.5)
    for hits, idf in ((rare, math.log(1 + (100 - 3 + 0.5) / 3.5)), (weighed, 0.5)):
        assert [h.relevance for h in hits] == pytest.approx([h.relevance / here * idf for h in plain], rel=1e-12)


def test_documents_that_are_gone_count_no_more() -> None:
    """Replaced and removed documents, of other lengths, leave the scores that the documents by themselves have; so does
    a checkpoint. (Vespa: the average still has replaced versions in it, and frequencies until indexes are fused.)"""
    last = [paper(1, body="cat dog cat"), paper(2, body="cat"), paper(4, body="dog")]
    gone = [paper(1, body="cat cat cat owl cow"), paper(3, body="cat"), paper(2, body="dog"), paper(2, body="cat " * 9)]
    with node_with(*last) as node:
        fresh = {hit.document_id: hit.relevance for hit in ask(node, WordItem("body", "cat"), "body").hits}
    assert len(fresh) == 2
    with node_with(*gone, Remove(DocumentId("n", "paper", "3")), *last, batch=1) as node:
        found = {hit.document_id: hit.relevance for hit in ask(node, WordItem("body", "cat"), "body").hits}
        assert found == fresh
        node.node.checkpoint()
        again = {hit.document_id: hit.relevance for hit in ask(node, WordItem("body", "cat"), "body").hits}
        assert again == fresh


def feature_of(hit: Hit, name: str) -> float:
    assert hit.match_features is not None
    value = hit.match_features[name]
    assert isinstance(value, float)
    return value


def test_features_and_phases() -> None:
    with node_with(*EXAMPLES) as node:
        plain = ask(node, WordItem("default", "graph"))
        for hit in plain.hits:
            title, body, first = (feature_of(hit, name) for name in ("bm25(title)", "bm25(body)", "firstPhase"))
            assert hit.relevance == title + body == first
        assert {feature_of(hit, "attribute(year)") for hit in plain.hits} == {2001.0, 2010.0}
        two = ask(node, WordItem("default", "graph"), "two")
        assert [hit.relevance for hit in two.hits] == sorted((10 - hit.relevance for hit in plain.hits), reverse=True)
        weighted = ask(node, WordItem("body", "graph"), "weighted", inputs={"w": 3.0})
        plainly = ask(node, WordItem("body", "graph"), "body")
        assert [h.relevance for h in weighted.hits] == pytest.approx([3 * h.relevance for h in plainly.hits], rel=1e-14)
        dropped = ask(node, WordItem("default", "graph"), "dropping")
        assert names(dropped) == [n for n, hit in zip(names(plain), plain.hits, strict=True) if hit.relevance > 1]


def test_hits_that_are_not_ranked_anew_stay_below() -> None:
    documents = [paper(i, body="cat " * (i + 1) + "dog " * (9 - i)) for i in range(8)]
    with node_with(*documents) as node:
        first = ask(node, WordItem("body", "cat"), "sum")
        two = ask(node, WordItem("body", "cat"), "two")
    assert names(two) == [*reversed(names(first)[:2]), *names(first)[2:]]
    scores = [hit.relevance for hit in two.hits]
    assert scores == sorted(scores, reverse=True)


def test_sorting_paging_and_several_types() -> None:
    notes = [Put(DocumentId("n", "note", str(i)), {"title": "a graph", "year": 2003 + i}) for i in range(3)]
    with node_with(*EXAMPLES, *notes) as node:
        by_year = ask(node, TrueItem(), order_by=(SortKey("year", descending=True),), document_types=())
        assert names(by_year) == ["c", "b", "2", "1", "0", "a", "d"]
        assert {hit.relevance for hit in by_year.hits} == {0.0}
        assert names(ask(node, TrueItem(), order_by=(SortKey("year"),), hits=2, offset=1)) == ["a", "b"]
        by_cat = ask(node, TrueItem(), order_by=(SortKey("cat"), SortKey("year", descending=True)))
        assert names(by_cat) == ["d", "b", "c", "a"]
        both = ask(node, WordItem("title", "graph"), document_types=())
        assert both.total_count == 5
        assert [h.relevance for h in both.hits] == sorted((h.relevance for h in both.hits), reverse=True)
        by_score = ask(node, WordItem("title", "graph"), order_by=(SortKey("[relevance]", descending=True),))
        assert names(by_score) == names(ask(node, WordItem("title", "graph")))


def test_sorting_by_an_attribute_that_one_type_lacks() -> None:
    with node_with(*EXAMPLES, Put(DocumentId("n", "note", "0"), {"title": "a graph"})) as node:
        by_cat = names(ask(node, TrueItem(), order_by=(SortKey("cat", descending=True),), document_types=()))
    assert (set(by_cat[:2]), by_cat[2], set(by_cat[3:])) == ({"a", "c"}, "b", {"0", "d"})


def test_sorting_by_an_attribute_that_is_text_in_one_type_and_a_number_in_another() -> None:
    notes = [Put(DocumentId("n", "note", str(i)), {"hidden": i}) for i in range(2)]
    with node_with(*EXAMPLES, *notes) as node:
        assert names(ask(node, TrueItem(), order_by=(SortKey("hidden"),), document_types=()))[-3:] == ["0", "1", "c"]


@pytest.mark.parametrize(("profile", "least"), [("year", ["a", "d"]), ("infinite", ["c", "b"])])
def test_scores_that_are_no_finite_numbers_are_below_all_others(profile: str, least: list[str]) -> None:
    with node_with(*EXAMPLES) as node:
        response = ask(node, TrueItem(), profile)
    assert names(response)[-2:] == least
    assert response.hits[-1].relevance == -math.inf


def test_summaries_and_bolding() -> None:
    with node_with(
        *EXAMPLES,
        Update(DocumentId("n", "paper", "a"), (FieldUpdate("year", Assign(1999)), FieldUpdate("hidden", Assign("x")))),
    ) as node:
        fields = [orjson.loads(hit.fields) for hit in ask(node, WordItem("default", "graph")).hits]
        assert {"<hi>Graph</hi> search", "Façade of <hi>graphs</hi>"} == {f["title"] for f in fields}
        assert all("<hi>" not in f["body"] and "hidden" not in f for f in fields)
        plain = ask(node, WordItem("title", "graph"), bolding=False, summary="short")
        shown = sorted((orjson.loads(hit.fields) for hit in plain.hits), key=lambda f: f["year"])
        assert shown == [{"title": "Graph search", "year": 1999}, {"title": "Façade of graphs", "year": 2010}]
        unmarked = ask(node, WordItem("title", "cat", annotations=Annotations(filter=True)))
        assert [orjson.loads(hit.fields)["title"] for hit in unmarked.hits] == ["Cats"]
        one = ask(node, WordItem("title", "cat"), summary_fields=("year", "nothing"))
        assert [orjson.loads(hit.fields) for hit in one.hits] == [{"year": 2005}]


@pytest.mark.parametrize("together", [AndItem, lambda items: NotItem((AndItem(items), WordItem("body", "never")))])
def test_words_of_what_does_not_match_count_for_nothing(together: Callable[[tuple[Item, ...]], Item]) -> None:
    """A document with one word of an `and` below an `or`, or below the later parts of `rank`, is not matched by it."""
    documents = [
        paper("one", title="", body="red blue"),
        paper("two", title="", body="red blue green"),
        paper("other", title="", body="pink"),
    ]
    whole = together((WordItem("body", "blue"), WordItem("body", "green")))
    with node_with(*documents) as node:
        alone = {h.document_id: h.relevance for h in ask(node, WordItem("body", "red"), "body").hits}
        words = [WordItem("body", word) for word in ("red", "blue", "green")]
        all_three = {h.document_id: h.relevance for h in ask(node, OrItem(tuple(words)), "body").hits}
        for tree in (OrItem((words[0], whole)), WeakAndItem((words[0], whole)), RankItem((words[0], whole))):
            found = {h.document_id: h.relevance for h in ask(node, tree, "body").hits}
            assert found["id:n:paper::one"] == alone["id:n:paper::one"] < all_three["id:n:paper::one"]
            assert found["id:n:paper::two"] == all_three["id:n:paper::two"]


def test_what_cannot_be_searched() -> None:
    with node_with(*EXAMPLES) as node:
        with pytest.raises(InvalidQuery, match="does not contain requested rank profile 'nope'"):
            ask(node, TrueItem(), "nope")
        with pytest.raises(Timeout):
            ask(node, TrueItem(), deadline_ns=1)


# ------------------------------------------------------------------------------------------------ random queries

WORDS = [f"w{i}" for i in range(12)]
documents = st.integers(0, 2**32).map(lambda seed: random_operations(random.Random(seed)))
words = st.builds(WordItem, st.sampled_from(["title", "body", "default", "body"]), st.sampled_from(WORDS))
ranges = st.builds(lambda low, size: RangeItem("year", low, low + size), st.integers(1990, 2010), st.integers(0, 20))
phrases = st.builds(
    lambda ws: PhraseItem("body", tuple(ws)), st.lists(st.sampled_from(WORDS[:4]), min_size=1, max_size=3)
)
leaves = words | words | ranges | phrases | st.just(TrueItem())
# With so many target hits nothing is left out, and it is an or: tests/search/operators/test_weak_and.py has the others.
wide_weak_and = partial(WeakAndItem, target_hits=1000)
composites: list[Callable[[tuple[Item, ...]], Item]] = [AndItem, OrItem, wide_weak_and, NotItem, RankItem]
trees = st.recursive(
    leaves,
    lambda inner: st.lists(inner, min_size=1, max_size=4).flatmap(
        lambda items: st.sampled_from(composites).map(lambda kind: kind(tuple(items)))
    ),
    max_leaves=8,
)


def random_operations(rng: random.Random) -> list[Put | Remove]:
    """Puts of skewed words, some documents more than once, some removed."""
    operations: list[Put | Remove] = []
    count = rng.randint(1, 300)
    for _ in range(count):
        name = rng.randrange(count)
        if rng.random() < 0.1:
            operations.append(Remove(DocumentId("n", "paper", str(name))))
            continue
        body = " ".join(rng.choices(WORDS, [1 / (i + 1) for i in range(len(WORDS))], k=rng.randint(0, 20)))
        title = " ".join(rng.choices(WORDS, k=rng.randint(0, 4)))
        operations.append(paper(name, title=title, body=body, year=rng.randint(1990, 2020)))
    return operations


def matcher(item: Item) -> Callable[[dict[str, object]], bool]:
    """A plain reading of what an item matches."""
    if isinstance(item, WordItem):
        fields = ["title", "body"] if item.index == "default" else [item.index]
        return lambda d: any(item.word in str(d.get(f, "")).split() for f in fields)
    if isinstance(item, PhraseItem):
        return lambda d: f" {' '.join(words_of(item))} " in f" {d.get('body', '')} "
    if isinstance(item, RangeItem):
        return lambda d: "year" in d and item.low <= d["year"] <= item.high  # type: ignore[operator]
    if isinstance(item, TrueItem):
        return lambda d: True
    inner = [matcher(child) for child in item.children_of()]
    if isinstance(item, AndItem):
        return lambda d: all(m(d) for m in inner)
    if isinstance(item, NotItem):
        return lambda d: inner[0](d) and not any(m(d) for m in inner[1:])
    if isinstance(item, RankItem):
        return inner[0]
    return lambda d: any(m(d) for m in inner)


@settings(deadline=None, max_examples=80)
@given(
    operations=documents,
    queries=st.lists(trees, min_size=1, max_size=12),
    profile=st.sampled_from(["sum", "body", "weighted", "year", "two"]),
    hits=st.integers(0, 12),
    offset=st.integers(0, 3),
    batch=st.sampled_from([7, 60, 1000]),
    least_rows=st.sampled_from([0, term.LEAST_ROWS]),
)
def test_random_queries(
    operations: list[Operation],
    queries: list[Item],
    profile: str,
    hits: int,
    offset: int,
    batch: int,
    least_rows: int,
) -> None:
    """`least_rows`: from so many on, columns are read only where other conditions match."""
    present: dict[str, dict[str, object]] = {}
    for operation in operations:
        present.pop(operation.id.text, None)
        if isinstance(operation, Put):
            present[operation.id.text] = dict(operation.fields)
    reading = patch.multiple(term, LEAST_ROWS=least_rows, ROWS_OF_LID=1)
    with reading, node_with(*operations, batch=batch) as node:
        for tree in queries:
            matches = {name for name, fields in present.items() if matcher(tree)(fields)}
            everything = ask(node, tree, profile, hits=1000)
            assert {hit.document_id for hit in everything.hits} == matches
            got = ask(node, tree, profile, hits=hits, offset=offset)
            assert got.total_count == len(matches)
            with patch("paperwasp.search.phases.first_phase.pruned_hits", return_value=None):
                expected = ask(node, tree, profile, hits=hits, offset=offset)
            assert [(h.document_id, h.relevance) for h in got.hits] == [
                (h.document_id, h.relevance) for h in expected.hits
            ]
