"""Matching by position beside a plain reading: near, onear, phrases, equiv, alternatives, in texts, arrays and weighted
sets, and the elements in which they match.

Authority: https://docs.vespa.ai/en/reference/querying/yql.html and, for windows and elements,
searchlib/src/vespa/searchlib/queryeval/nearsearch.cpp
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paperwasp.document.ids import DocumentId
from paperwasp.document.operations import Put, Remove
from paperwasp.errors import InvalidQuery
from paperwasp.schema import parse_schemas
from paperwasp.search.bind import space_of
from paperwasp.search.operators import TermOperator
from paperwasp.search.operators.boolean import AndItem, NotItem, OrItem, TrueItem
from paperwasp.search.operators.equiv import EquivItem, WordAlternativesItem
from paperwasp.search.operators.item import Item, plan
from paperwasp.search.operators.near import NearItem
from paperwasp.search.operators.patterns import PrefixItem, RegexItem
from paperwasp.search.operators.phrase import PhraseItem, UriItem
from paperwasp.search.operators.same_element import SameElementItem
from paperwasp.search.operators.word import WordItem
from paperwasp.search.search import search
from paperwasp.search.served import ServedSchemas
from paperwasp.search.yql_syntax import Annotations
from paperwasp.storage.index.tokens import ELEMENT_GAP
from tests.content.nodes import TestNode, started
from tests.oracles.positions import Near, follow, merge_positions
from tests.search.queries import query_of

SCHEMA = """
schema song {
  document song {
    field title type string { indexing: index | summary
      index: enable-bm25
      stemming: none }
    field verses type array<string> { indexing: index
      stemming: none }
    field tags type weightedset<string> { indexing: index
      stemming: none }
    field both type string { indexing: index
      stemming: multiple }
    field stems type string { indexing: index }
    field grams type string { indexing: index
      match { gram
        gram-size: 2 } }
    field kind type string { indexing: attribute
      attribute: fast-search }
    field link type uri { indexing: index }
    field links type array<uri> { indexing: index }
    field known type string { indexing: index | attribute }
  }
  fieldset default { fields: title, verses }
  rank-profile plain { first-phase { expression: 1 } }
  rank-profile apart { rank verses { element-gap: 2 }
    rank tags { element-gap: 0 } }
}
"""
SCHEMAS = parse_schemas({"schemas/song.sd": SCHEMA})
GAPS = {"plain": {}, "apart": {"verses": 2, "tags": 0}}
Fields = Mapping[str, Any]


def song(name: object, **fields: object) -> Put:
    return Put(DocumentId("n", "song", str(name)), fields)


@contextmanager
def node_with(*operations: Put | Remove, batch: int = 50) -> Iterator[TestNode]:
    with TemporaryDirectory() as directory, started(Path(directory), dict(SCHEMAS.schemas)) as node:
        for start in range(0, len(operations), batch):
            node.apply(*operations[start : start + batch])
        yield node


def names(node: TestNode, tree: Item, profile: str = "plain", **parameters: Any) -> str:
    request = query_of(tree, rank_profile=profile, document_types=("song",), hits=1000, **parameters)
    response = search(node.node.reader.view(), request, ServedSchemas())
    return "".join(sorted(hit.document_id.rsplit(":", 1)[1] for hit in response.hits))


def words(index: str, *texts: str) -> tuple[WordItem, ...]:
    return tuple(WordItem(index, text) for text in texts)


def near(index: str, *texts: str, away: Sequence[str] = (), **settings: Any) -> NearItem:
    return NearItem(words(index, *texts), exclusions=words(index, *away), **settings)


EXAMPLES = (
    song("a", title="a b c d e f", verses=["one two three", "four five", "", "six"], tags={"red rose": 3, "blue": -2}),
    song("b", title="b a a b", verses=["three two one", "four"], tags={"rose": 5}, kind="Ballad"),
    song("c", title="c x x a x b", verses=["one", "two"], both="two trains", stems="two trains", grams="abcd"),
    song("d", title="the running trains", both="two train", stems="two train", grams="bcab", known="abc", kind="song"),
)


@pytest.mark.parametrize(
    ("tree", "expected"),
    [
        # The distance is that from the first to the last.
        (near("title", "a", "b"), "abc"),
        (near("title", "a", "b", distance=1), "ab"),
        (near("title", "a", "c", distance=2), "a"),
        (near("title", "c", "b", distance=5), "ac"),
        (near("title", "a", "b", "c", distance=2), "a"),
        (near("title", "a", "d", distance=2), ""),
        (near("title", "a", "b", ordered=True), "abc"),
        (near("title", "b", "a", ordered=True), "b"),
        (near("title", "a", "b", ordered=True, distance=1), "ab"),
        # A word is near itself, but not after itself.
        (near("title", "a", "a"), "abc"),
        (near("title", "a", "a", ordered=True), "b"),
        (near("title", "a"), "abc"),
        # What is excluded may be half of the distance away, rounded up, on either side.
        (near("title", "a", "b", away=["x"]), "ab"),
        (near("title", "a", "b", away=["c"]), "bc"),
        (near("title", "a", "b", away=["d"]), "abc"),
        (near("title", "a", "b", away=["d"], exclusion_distance=2), "bc"),
        (near("title", "a", "b", away=["c"], exclusion_distance=0), "abc"),
        (near("title", "b", away=["c"], distance=1), "bc"),
        # Windows stay within an element, unless the rank profile says how far apart elements are.
        (near("verses", "one", "two"), "ab"),
        (near("verses", "three", "four", distance=1000), ""),
        (near("verses", "one", "two", distance=1000, ordered=True), "a"),
        (near("tags", "red", "blue", distance=10), ""),
        (near("default", "one", "two"), "ab"),
        # Below near there may be phrases, equivs and alternatives.
        (NearItem((PhraseItem("title", ("a", "b")), *words("title", "d")), distance=3), "a"),
        (NearItem((PhraseItem("title", ("a", "b")), *words("title", "d")), distance=2), ""),
        (NearItem((EquivItem(words("title", "x", "e")), *words("title", "c")), distance=2), "ac"),
        (NearItem((WordAlternativesItem("title", (("f", 1.0), ("x", 0.5))), *words("title", "c")), distance=3), "ac"),
        # Phrases of several forms.
        (PhraseItem("title", (WordAlternativesItem("title", (("a", 1.0), ("x", 0.5))), "b")), "abc"),
        (PhraseItem("title", ("a", EquivItem(words("title", "x", "a")), "b")), "bc"),
        (PhraseItem("title", ("a", WordItem("title", "B"))), "ab"),
        (PhraseItem("verses", ("three", EquivItem(words("verses", "four", "two")))), "b"),
        (PhraseItem("kind", ("ballad",)), "b"),
        (PhraseItem("kind", ("ballad", "song")), ""),
        # equiv and alternatives match as or does, in indexes and attributes.
        (EquivItem(words("title", "x", "the")), "cd"),
        (EquivItem((*words("title", "e"), PhraseItem("title", ("a", "a")))), "ab"),
        (EquivItem(words("kind", "ballad", "SONG")), "bd"),
        (EquivItem(words("default", "six", "x")), "ac"),
        (WordAlternativesItem("title", (("F", 1.0), ("x", 0.3))), "ac"),
        (WordAlternativesItem("stems", (("trains", 1.0),)), ""),
        (WordAlternativesItem("stems", (("train", 1.0),)), "cd"),
        (WordAlternativesItem("kind", (("song", 1.0), ("none", 0.3))), "d"),
        # Stems and forms.
        (WordItem("both", "trains"), "cd"),
        (WordItem("both", "trains", annotations=Annotations(stem=False)), "c"),
        (WordItem("both", "train"), "cd"),
        (PhraseItem("both", ("two", "trains")), "cd"),
        (WordItem("both", "two trains"), "cd"),
        (near("both", "trains", "two", distance=1), "cd"),
        # Tokens of one word are a phrase, or an and.
        (WordItem("title", "b-a"), "b"),
        (WordItem("title", "b-a", annotations=Annotations(and_segmenting=True)), "abc"),
        (WordItem("default", "b-a", annotations=Annotations(and_segmenting=True)), "abc"),
        (WordItem("grams", "abc"), "cd"),
        (PhraseItem("grams", ("abc",)), "c"),
        # Weighted sets are searched by their keys.
        (WordItem("tags", "rose"), "ab"),
        (WordItem("tags", "red rose"), "a"),
        (PhraseItem("tags", ("rose", "blue")), ""),
        # The same element.
        (SameElementItem("verses", (WordItem("", "one"), WordItem("", "two"))), "ab"),
        (SameElementItem("verses", words("", "four"), elements=(1,)), "ab"),
        (SameElementItem("verses", words("", "four"), elements=(0, 2)), ""),
        (SameElementItem("verses", (NearItem(words("", "one", "three")), WordItem("", "two"))), "ab"),
        (SameElementItem("verses", (NotItem((WordItem("", "four"), WordItem("", "five"))),)), "b"),
        (SameElementItem("verses", (EquivItem(words("", "five", "two")), PhraseItem("", ("two", "one")))), "b"),
        (SameElementItem("verses", words("", "six"), elements=(3,)), "a"),
    ],
    ids=str,
)
def test_what_matches(tree: Item, expected: str) -> None:
    with node_with(*EXAMPLES) as node:
        assert names(node, tree) == expected


@pytest.mark.parametrize(
    ("tree", "expected"),
    [
        (near("verses", "three", "four", distance=3), "a"),
        (near("verses", "three", "four", distance=2), ""),
        (near("verses", "one", "four", distance=5), "ab"),
        (near("verses", "one", "four", distance=4), "b"),
        (near("verses", "three", "six", distance=20), ""),
        (near("verses", "one", "two", distance=3), "abc"),
        (near("tags", "rose", "blue", distance=1), "a"),
        (near("verses", "one", away=["four"], distance=1), "abc"),
        (near("verses", "one", away=["four"], exclusion_distance=3), "ac"),
    ],
    ids=str,
)
def test_windows_over_a_gap(tree: Item, expected: str) -> None:
    """With an element-gap of 2, the last word of an element is 3 away from the first of the next; with 0, 1 away."""
    with node_with(*EXAMPLES) as node:
        assert names(node, tree, "apart") == expected


def test_what_is_refused() -> None:
    with node_with(*EXAMPLES) as node:
        refused = {
            "'kind' is not an index field": near("kind", "a", "b"),
            "needs terms on one index; these are on kind, title": EquivItem(
                (*words("kind", "a"), *words("title", "a"))
            ),
            "a term that is not excluded": NearItem((), exclusions=words("title", "a")),
            "cannot be part of a phrase, near or equiv": NearItem((AndItem(words("title", "a")), *words("title", "a"))),
            "made of words and alternatives": PhraseItem("title", ("a", PhraseItem("title", ("b",)))),
            "'title' is not an attribute field: Prefix matching is not supported": PrefixItem("title", "a"),
            "'known' is an index field: Prefix matching is not supported even when": PrefixItem("known", "a"),
        }
        for message, tree in refused.items():
            with pytest.raises(InvalidQuery, match=message):
                names(node, tree)


def test_expressions_in_an_index_are_looked_up_as_words() -> None:
    """diskindex.cpp and memory_index.cpp (visitTerm): an index has no other way to find a regular expression."""
    with node_with(*EXAMPLES) as node:
        assert names(node, RegexItem("title", "a")) == "abc"
        assert names(node, RegexItem("known", "abc")) == "d"
        assert names(node, RegexItem("title", "[ab]")) == ""
        with pytest.raises(InvalidQuery, match="no regular expression"):
            names(node, RegexItem("title", "b("))


def planned(node: TestNode, tree: Item) -> list[TermOperator]:
    return list(plan(tree, space_of(node.node.reader.view(), "song")).terms())


def rows(found: tuple[np.ndarray, np.ndarray]) -> list[list[int]]:
    return [found[1][a:b].tolist() for a, b in pairwise(found[0].tolist())]


def test_ranking_sees_of_near_what_stands_in_windows() -> None:
    """https://docs.vespa.ai/en/reference/querying/yql.html#near has these two documents."""
    with node_with(song(0, title="a a a a a a b b b b b b"), song(1, title="a b c a b c a b c a b c"), batch=1) as node:
        a, b = planned(node, near("title", "a", "b", distance=1))
        lids = np.array([0, 1], np.uint32)
        assert rows(a.matches[0].positions(lids)) == [[5], [0, 3, 6, 9]]
        assert rows(b.matches[0].positions(lids)) == [[6], [1, 4, 7, 10]]
        assert a.matches[0].occurrences(lids).tolist() == [1, 4]


def test_elements_and_their_weights() -> None:
    with node_with(*EXAMPLES, batch=1) as node:
        lids = np.arange(4, dtype=np.uint32)
        cases: list[tuple[Item, list[list[int]], list[int]]] = [
            (WordItem("tags", "rose"), [[0], [0], [], []], [3, 5]),
            (EquivItem(words("tags", "rose", "blue")), [[0, 1], [0], [], []], [3, -2, 5]),
            (PhraseItem("verses", ("two", "three")), [[0], [], [], []], [1]),
            (WordItem("verses", "six"), [[3], [], [], []], [1]),
            (EquivItem(words("verses", "two", "four", "one")), [[0, 1], [0, 1], [0, 1], []], [1] * 6),
            (WordItem("title", "a"), [[0], [0], [0], []], [1, 1, 1]),
        ]
        for tree, elements, weights in cases:
            (term,) = planned(node, tree)
            assert rows(term.matches[0].elements(lids)) == elements
            assert term.matches[0].element_weights(lids).tolist() == weights


def test_equiv_ranks_as_one_term() -> None:
    with node_with(*EXAMPLES, batch=1) as node:
        (term,) = planned(node, EquivItem(words("title", "a", "b", "x")))
        assert (term.length, term.matches[0].frequency()) == (1, 3)
        lids = np.arange(4, dtype=np.uint32)
        assert rows(term.matches[0].positions(lids)) == [[0, 1], [0, 1, 2, 3], [1, 2, 3, 4, 5], []]


def test_without_position_data() -> None:
    notes = Annotations(use_position_data=False)
    with node_with(*EXAMPLES, batch=1) as node:
        (term,) = planned(node, WordItem("title", "a", annotations=notes))
        lids = np.arange(4, dtype=np.uint32)
        assert term.matches[0].occurrences(lids).tolist() == [1, 1, 1, 0]
        assert rows(term.matches[0].positions(lids)) == [[], [], [], []]
        assert names(node, WordItem("title", "a", annotations=notes)) == "abc"


LINKS = (
    song("a", link="http://www.vespa.ai:8080/docs/near.html?lang=en#top", links=["http://a.b/c", "http://b.a/c"]),
    song("b", link="https://vespa.ai/near", links=["http://c.a/b?a"]),
    song("c", link="http://vespa.ai.example.org/docs"),
)


@pytest.mark.parametrize(
    ("tree", "expected"),
    [
        (UriItem("link", "vespa.ai/near"), "b"),
        (UriItem("link", "https"), "b"),
        (UriItem("link", "vespa.ai"), "abc"),
        (UriItem("link.hostname", "vespa.ai"), "abc"),
        (UriItem("link.hostname", "vespa.ai", end_anchor=True), "ab"),
        (UriItem("link.host", "vespa.ai", start_anchor=True), "bc"),
        (UriItem("link.hostname", "vespa.ai", start_anchor=True, end_anchor=True), "b"),
        (UriItem("link.path", "docs"), "ac"),
        (UriItem("link.path", "vespa"), ""),
        (UriItem("link.query", "lang=en"), "a"),
        (UriItem("link.fragment", "TOP"), "a"),
        (UriItem("link.port", "8080"), "a"),
        (WordItem("link.scheme", "http"), "ac"),
        (WordItem("link", "near"), "ab"),
        (UriItem("links.hostname", "a", end_anchor=True), "ab"),
        (UriItem("links.hostname", "a", start_anchor=True), "a"),
        (UriItem("links", "a/c"), "a"),
        (UriItem("links.hostname", "a.b.b.a"), ""),
        (UriItem("kind", "a"), ""),
    ],
    ids=str,
)
def test_parts_of_uris(tree: Item, expected: str) -> None:
    with node_with(*LINKS) as node:
        assert names(node, tree) == expected


# ------------------------------------------------------------------------------------------------ random queries

VOCABULARY = ["a", "b", "c", "d", "e"]
indexes = st.sampled_from(["title", "verses", "tags", "default"])


def single(index: str) -> st.SearchStrategy[Item]:
    word = st.builds(WordItem, st.just(index), st.sampled_from(VOCABULARY))
    equiv = st.lists(word, min_size=1, max_size=3).map(lambda items: EquivItem(tuple(items)))
    forms = st.lists(st.tuples(st.sampled_from(VOCABULARY), st.just(1.0)), min_size=1, max_size=3)
    return word | word | equiv | forms.map(lambda found: WordAlternativesItem(index, tuple(found)))


def phrase(index: str) -> st.SearchStrategy[Item]:
    part = st.sampled_from(VOCABULARY) | single(index)
    return st.lists(part, min_size=1, max_size=3).map(lambda parts: PhraseItem(index, tuple(parts)))


def positional(index: str) -> st.SearchStrategy[Item]:
    term = single(index) | phrase(index)
    joined = st.lists(term, min_size=1, max_size=2).map(lambda items: EquivItem(tuple(items)))
    nearness = st.builds(
        lambda terms, away, distance, ordered, exclusion: NearItem(
            tuple(terms), distance, ordered, tuple(away), exclusion
        ),
        st.lists(term | joined, min_size=1, max_size=3),
        st.lists(term, max_size=1),
        st.integers(0, 5),
        st.booleans(),
        st.integers(-1, 3),
    )
    return term | joined | nearness | nearness


leaves = indexes.flatmap(positional) | st.just(TrueItem())
trees = st.recursive(
    leaves,
    lambda inner: st.lists(inner, min_size=1, max_size=3).flatmap(
        lambda items: st.sampled_from([AndItem, OrItem, NotItem]).map(lambda kind: kind(tuple(items)))
    ),
    max_leaves=4,
)


def random_songs(rng: random.Random) -> list[Put | Remove]:
    def text() -> str:
        return " ".join(rng.choices(VOCABULARY, [5, 4, 3, 2, 1], k=rng.randint(0, 6)))

    operations: list[Put | Remove] = []
    for _ in range(count := rng.randint(1, 60)):
        name = rng.randrange(count)
        if rng.random() < 0.1:
            operations.append(Remove(DocumentId("n", "song", str(name))))
            continue
        tags = {text(): rng.randint(-5, 5) for _ in range(rng.randint(0, 3))}
        verses = [text() for _ in range(rng.randint(0, 4))]
        operations.append(song(name, title=text(), verses=verses, tags=tags))
    return operations


class Plain:
    """A plain reading of what items match in one document."""

    def __init__(self, fields: Fields, gaps: Mapping[str, int]) -> None:
        self._gaps = gaps
        self._tokens: dict[str, list[tuple[str, int]]] = {}
        self._ends: dict[str, tuple[int, ...]] = {}
        for name in ("title", "verses", "tags"):
            value = fields.get(name, "")
            at, tokens, ends = 0, [], []
            for text in [value] if isinstance(value, str) else list(value):
                tokens += [(word, at + i) for i, word in enumerate(text.split())]
                at += len(text.split())
                ends.append(at)
                at += ELEMENT_GAP
            self._tokens[name], self._ends[name] = tokens, tuple(ends) if name != "title" else ()

    def matches(self, item: Item) -> bool:
        match item:
            case TrueItem():
                return True
            case AndItem():
                return all(self.matches(child) for child in item.children)
            case OrItem():
                return any(self.matches(child) for child in item.children)
            case NotItem():
                first, *others = item.children
                return self.matches(first) and not any(self.matches(child) for child in others)
        first_term = next(child for child in item.walk() if hasattr(child, "index"))
        fields = ["title", "verses"] if first_term.index == "default" else [first_term.index]
        return any(self.positions(item, field) for field in fields)

    def positions(self, item: Item, field: str) -> list[int]:
        match item:
            case WordItem():
                return [p for word, p in self._tokens[field] if word == item.word]
            case WordAlternativesItem():
                return merge_positions([self.positions(WordItem(field, form), field) for form, _ in item.alternatives])
            case EquivItem():
                return merge_positions([self.positions(child, field) for child in item.children])
            case PhraseItem():
                parts = [WordItem(field, part) if isinstance(part, str) else part for part in item.words]
                return follow([self.positions(part, field) for part in parts])
        assert isinstance(item, NearItem)
        exclusion = (item.distance + 1) // 2 if item.exclusion_distance < 0 else item.exclusion_distance
        plain = Near(item.distance, exclusion, item.ordered, self._gaps.get(field, -1), self._ends[field])
        terms = [self.positions(child, field) for child in item.children]
        away = [self.positions(child, field) for child in item.exclusions]
        return [first for first, _ in plain.windows(terms, away)]


def test_parts_of_uris_are_ranked_as_fields() -> None:
    # Vespa: UriHack.java makes an index field of each.
    request = query_of(
        WordItem("link.path", "b"), rank_profile="plain", document_types=("song",), hits=1, list_features=True
    )
    with node_with(song("a", link="http://www.example.com/b/c"), song("b", link="http://b.com/")) as node:
        [hit] = search(node.node.reader.view(), request, ServedSchemas()).hits
    features = hit.rank_features or {}
    for name in ("matches(link.path)", "fieldMatch(link.path).matches", "fieldTermMatch(link.path,0).occurrences"):
        assert features[name] == 1, name
    assert features["bm25(link.path)"] > 0 == features["bm25(link.host)"]  # type: ignore[operator]
    assert features["matches(link)"] == features["matches(link.host)"] == 0


@settings(deadline=None, max_examples=60)
@given(
    seed=st.integers(0, 2**32),
    queries=st.lists(trees, min_size=1, max_size=12),
    profile=st.sampled_from(["plain", "apart"]),
    batch=st.sampled_from([7, 60]),
)
def test_random_queries(seed: int, queries: list[Item], profile: str, batch: int) -> None:
    operations = random_songs(random.Random(seed))
    present: dict[str, Fields] = {}
    for operation in operations:
        present.pop(operation.id.text, None)
        if isinstance(operation, Put):
            present[operation.id.text] = dict(operation.fields)
    plain = {name.rsplit(":", 1)[1]: Plain(fields, GAPS[profile]) for name, fields in present.items()}
    with node_with(*operations, batch=batch) as node:
        for tree in queries:
            expected = "".join(sorted(name for name, document in plain.items() if document.matches(tree)))
            assert names(node, tree, profile) == expected
