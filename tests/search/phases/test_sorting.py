"""Sorting of hits: every kind of attribute, missing values, collations, several levels; beside sorting with Python.

Authority: https://docs.vespa.ai/en/reference/querying/sorting-language.html; what uca does, from the Unicode Collation
Algorithm and the rules of Norwegian and German in CLDR.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from paperwasp.document.ids import DocumentId
from paperwasp.document.operations import Put, Remove
from paperwasp.errors import InvalidQuery
from paperwasp.schema import parse_schemas
from paperwasp.search.operators.boolean import TrueItem
from paperwasp.search.operators.item import Item
from paperwasp.search.operators.range_operator import RangeItem
from paperwasp.search.query import RankingOverride, SearchAfter, SearchResponse, SortKey, Streaming
from paperwasp.search.search import search
from paperwasp.search.served import ServedSchemas
from tests.content.nodes import TestNode, started
from tests.search.queries import query_of

THING = """
schema thing {
  document thing {
    field name type string { indexing: attribute | summary }
    field cased type string { indexing: attribute
      match: cased
      sorting { function: raw
        order: descending } }
    field german type string { indexing: attribute
      sorting { function: uca
        locale: de
        strength: tertiary } }
    field number type int { indexing: attribute | summary }
    field large type long { indexing: attribute }
    field small type byte { indexing: attribute }
    field real type double { indexing: attribute }
    field single type float { indexing: attribute }
    field flag type bool { indexing: attribute }
    field words type array<string> { indexing: attribute }
    field numbers type array<int> { indexing: attribute }
    field weights type weightedset<string> { indexing: attribute }
    field text type string { indexing: index | summary }
    field place type position { indexing: attribute }
    field vector type tensor<float>(x[2]) { indexing: attribute }
  }
  rank-profile number { first-phase { expression: attribute(number) } }
  rank-profile features inherits number { match-features: firstPhase secondPhase
    second-phase { expression: 10 * firstPhase } }
  rank-profile computed inherits number {
    function rest() { expression: fmod(attribute(number), 7) }
    function odd() { expression: if (fmod(attribute(number), 5) == 0, 0 / 0, attribute(number)) }
    sort-features: rest odd
  }
  rank-profile dropping inherits number { first-phase { expression: attribute(number)
    rank-score-drop-limit: 5 } }
}
"""
OTHER = """
schema other {
  document other { field number type int { indexing: attribute }
    field name type int { indexing: attribute } }
}
"""
SCHEMAS = parse_schemas({"schemas/thing.sd": THING, "schemas/other.sd": OTHER}).schemas
PROFILES = ServedSchemas()


def thing(number: object, kind: str = "thing", /, **fields: object) -> Put:
    return Put(DocumentId("n", kind, str(number)), fields)


@contextmanager
def node_with(*operations: Put | Remove, batch: int = 50) -> Iterator[TestNode]:
    with TemporaryDirectory() as directory, started(Path(directory), dict(SCHEMAS)) as node:
        for start in range(0, len(operations), batch):
            node.apply(*operations[start : start + batch])
        yield node


def ask(node: TestNode, *keys: SortKey, tree: Item | None = None, **parameters: object) -> SearchResponse:
    parameters.setdefault("document_types", ("thing",))
    parameters.setdefault("rank_profile", "unranked")
    request = query_of(tree or TrueItem(), order_by=keys, **parameters)  # type: ignore[arg-type]
    return search(node.node.reader.view(), request, PROFILES)


def names(response: SearchResponse) -> str:
    return "".join(hit.document_id.rsplit(":", 1)[1] for hit in response.hits)


UP, DOWN = False, True


@pytest.mark.parametrize(
    ("field", "values"),
    [
        ("number", (3, None, -5, 2**31 - 1)),
        ("large", (3, None, -(2**62), 2**63 - 1)),
        ("small", (3, None, -5, 127)),
        ("real", (0.5, None, -math.inf, math.inf)),
        ("single", (0.5, None, -0.25, 1e30)),
        ("name", ("b", None, "A", "c")),
        ("words", (["b", "x"], None, ["z", "a"], ["c"])),
        ("numbers", ([3], None, [9, -5], [7])),
        ("weights", ({"b": 1}, None, {"a": 9}, {"c": 0})),
    ],
)
def test_unset_values_and_both_directions(field: str, values: tuple[object, ...]) -> None:
    """a..d have 3, nothing, the least, the greatest. An array is sorted by its least where values rise, by its greatest
    where they fall: numbers of c are 9 and -5, words of c are z and a."""
    with node_with(
        *(
            thing(name, **{field: value} if value is not None else {})
            for name, value in zip("abcd", values, strict=True)
        )
    ) as node:
        multi = field in ("words", "numbers", "weights")
        rising, falling = "cad", {"words": "cadb", "numbers": "cdab"}.get(field, "dacb")
        assert names(ask(node, SortKey(field, UP))) == (rising + "b" if multi else "b" + rising)
        assert names(ask(node, SortKey(field, DOWN))) == falling
        assert names(ask(node, SortKey(field, UP, missing="first"))) == "b" + rising
        assert names(ask(node, SortKey(field, UP, missing="last"))) == rising + "b"
        assert names(ask(node, SortKey(field, DOWN, missing="first"))) == "b" + falling[:-1]
        assert names(ask(node, SortKey(field, DOWN, missing="last"))) == falling


def test_missing_as_a_value() -> None:
    with node_with(thing("a", number=3, name="b"), thing("b"), thing("c", number=5, name="d")) as node:
        assert names(ask(node, SortKey("number", UP, missing="as", missing_value="4"))) == "abc"
        assert names(ask(node, SortKey("number", UP, missing="as", missing_value="6"))) == "acb"
        assert names(ask(node, SortKey("name", DOWN, missing="as", missing_value="c"))) == "cba"
        assert names(ask(node, SortKey("name", UP, missing="as", missing_value="C"))) == "abc"
        assert names(ask(node, SortKey("name", UP, missing="as", missing_value="e"))) == "acb"
        with pytest.raises(InvalidQuery, match=r"'x'.*int"):
            ask(node, SortKey("number", UP, missing="as", missing_value="x"))
        with pytest.raises(InvalidQuery, match="Unknown missing policy 'middle'"):
            ask(node, SortKey("number", UP, missing="middle"))


def test_functions_over_strings() -> None:
    """Bytes: capitals, small letters, all others. lowercase: å after z. Norwegian: aa is å, the last letter."""
    with node_with(
        *(thing(n, name=word) for n, word in zip("abcde", ("Zoo", "apple", "Banana", "aas", "åpen"), strict=True))
    ) as node:

        def order(**more: str) -> str:
            return names(ask(node, SortKey("name", UP, **more)))

        assert order(function="raw") == "cadbe"
        assert order(function="lowercase") == "dbcae"
        assert order() == "dbcae", "no locale is known"
        assert order(function="uca", locale="en_US") == "debca"
        assert order(function="uca", locale="nb_NO") == "bcaed"
        assert names(ask(node, SortKey("name", UP), language="nb-NO")) == "bcaed"
        assert names(ask(node, SortKey("name", DOWN, "uca", "nb_NO"))) == "deacb"


def test_strength_says_which_differences_count() -> None:
    """Primary: only letters count, so that the next key decides; tertiary: small letters before capitals."""
    with node_with(
        thing("a", name="É", number=3), thing("b", name="e", number=1), thing("c", name="E", number=2)
    ) as node:

        def order(strength: str) -> str:
            return names(ask(node, SortKey("name", UP, "uca", "fr", strength), SortKey("number", UP)))

        assert order("primary") == "bca"
        assert order("secondary") == "bca"
        assert order("tertiary") == order("identical") == order("QUATERNARY") == "bca"
        assert names(ask(node, SortKey("name", DOWN, "uca", "fr", "primary"), SortKey("number", UP))) == "bca"
        assert names(ask(node, SortKey("name", DOWN, "uca", "fr", "secondary"), SortKey("number", UP))) == "abc"
        assert names(ask(node, SortKey("name", DOWN, "uca", "fr", "tertiary"), SortKey("number", UP))) == "acb"
        with pytest.raises(InvalidQuery, match="Unknown collation strength: 'mighty'"):
            order("mighty")
        with pytest.raises(InvalidQuery, match="Unknown sort function 'loudest'"):
            ask(node, SortKey("name", UP, "loudest"))
        with pytest.raises(InvalidQuery, match="is no locale"):
            ask(node, SortKey("name", UP, "uca", "en US"))


def test_the_schema_says_what_the_query_does_not() -> None:
    """cased: raw and falling; german: ä as a letter beside a, before z."""
    documents = [
        thing("a", cased="x", german="Ärger"),
        thing("b", cased="X", german="Zebra"),
        thing("c", cased="y", german="alt"),
    ]
    with node_with(*documents) as node:
        assert names(ask(node, SortKey("cased"))) == "cab"
        assert names(ask(node, SortKey("cased", UP))) == "bac"
        assert names(ask(node, SortKey("german"))) == "cab"
        assert names(ask(node, SortKey("german", DOWN, "raw"))) == "acb"


def test_what_is_built_in() -> None:
    with node_with(*(thing(n, number=number) for n, number in zip("abcd", (2, 9, 2, 5), strict=True)), batch=1) as node:
        assert names(ask(node, SortKey("[docid]"))) == "abcd"
        assert names(ask(node, SortKey("[docid]", DOWN))) == "dcba"
        assert names(ask(node, SortKey("number", UP), SortKey("[docid]", DOWN))) == "cadb"
        assert names(ask(node, SortKey("[source]"), SortKey("number", DOWN))) == "bdac"
        by_score = ask(node, SortKey("[relevance]"), rank_profile="number")
        assert names(by_score) == "bdac"
        assert [hit.relevance for hit in by_score.hits] == [9, 5, 2, 2]
        assert names(ask(node, SortKey("[relevance]", UP), SortKey("[docid]", DOWN), rank_profile="number")) == "cadb"
        dropped = ask(node, SortKey("[relevance]", UP), rank_profile="dropping")
        assert names(dropped) == "b"
        unranked = ask(node, SortKey("number", DOWN), rank_profile="features")
        assert [hit.relevance for hit in unranked.hits] == [0, 0, 0, 0]
        assert [hit.match_features for hit in unranked.hits] == [
            {"firstPhase": n, "secondPhase": 10 * n} for n in (9, 5, 2, 2)
        ]


def test_a_drop_limit_makes_sorted_hits_ranked() -> None:
    """Vespa: matcher.cpp (`willNeedRanking`)."""
    with node_with(*(thing(n, number=number) for n, number in zip("abcd", (2, 9, 2, 5), strict=True))) as node:
        order = SortKey("number", UP)
        dropped = ask(node, order, rank_profile="number", ranking=RankingOverride(rank_score_drop_limit=4.0))
        assert [(hit.document_id[-1], hit.relevance) for hit in dropped.hits] == [("d", 5), ("b", 9)]
        assert dropped.total_count == 2
        by_profile = ask(node, order, rank_profile="dropping")
        assert [(hit.document_id[-1], hit.relevance) for hit in by_profile.hits] == [("b", 9)]


@pytest.mark.parametrize("descending", [False, True])
def test_features_of_the_rank_profile(descending: bool) -> None:
    numbers = random.Random(5).sample(range(1000), 300)
    expected = sorted(numbers, key=lambda number: (-(number % 7) if descending else number % 7, number))
    keys = SortKey("rest", descending, function="feature"), SortKey("number", UP)
    with node_with(*(thing(number, number=number) for number in numbers)) as node:
        found = ask(node, *keys, rank_profile="computed", hits=300)
        assert [int(hit.document_id.rsplit(":", 1)[1]) for hit in found.hits] == expected
        assert {hit.relevance for hit in found.hits} == {0}
        few = ask(node, *keys, rank_profile="computed", hits=40, offset=100)
        assert [hit.document_id for hit in few.hits] == [hit.document_id for hit in found.hits[100:140]]
        last = found.hits[99]
        after = SearchAfter(last.relevance, last.sort_keys or (), last.gid)
        behind = ask(node, *keys, rank_profile="computed", hits=40, search_after=after)
        assert [hit.document_id for hit in behind.hits] == [hit.document_id for hit in found.hits[100:140]]
        ranked = ask(node, keys[0], SortKey("[relevance]"), rank_profile="computed", hits=300)
        assert [hit.relevance for hit in ranked.hits] == sorted(
            numbers, key=lambda number: (-(number % 7) if descending else number % 7, -number)
        )


def test_what_is_no_number_is_below_all() -> None:
    with node_with(thing("a", number=10), thing("b", number=3), thing("c", number=12)) as node:
        assert names(ask(node, SortKey("odd", function="feature"), rank_profile="computed")) == "abc"
        assert names(ask(node, SortKey("odd", DOWN, function="feature"), rank_profile="computed")) == "cba"
        with pytest.raises(InvalidQuery, match="sort-features of rank profile 'number' in schema 'thing'"):
            ask(node, SortKey("odd", function="feature"), rank_profile="number")


def test_streaming_search_does_not_sort_by_features(tmp_path: Path) -> None:
    with started(tmp_path, None) as node:
        node.node.configure(1, dict(SCHEMAS), {"thing": "streaming"}, 0)
        node.apply(Put(DocumentId.parse("id:n:thing:g=a:1"), {"number": 1}))
        with pytest.raises(InvalidQuery, match="streaming search does not sort by features"):
            key = SortKey("rest", function="feature")
            ask(node, key, rank_profile="computed", streaming=Streaming(group="a"))


@pytest.mark.parametrize("field", ["place", "vector"])
def test_what_is_not_sorted_by(field: str) -> None:
    with node_with(thing("a"), thing("b")) as node:
        with pytest.raises(InvalidQuery, match="sorted by"):
            ask(node, SortKey(field))
        with pytest.raises(InvalidQuery, match="sort-features"):
            ask(node, SortKey(field, function="feature"))
        with pytest.raises(InvalidQuery, match=r"known are \[relevance\]"):
            ask(node, SortKey("[random]"))
        with pytest.raises(InvalidQuery, match="it has none"):
            ask(node, SortKey("[docid]", function="raw"))


def test_several_types_merge_by_their_keys() -> None:
    """A name is a string in one type and a number in the other: numbers come first. Ties: the lower lid."""
    documents = [
        thing("a", number=5, name="x"), thing("b", "other", number=3, name=7), thing("c", number=3),
        thing("d", "other", name=2), thing("e", number=9, name="b"),
    ]  # fmt: skip
    with node_with(*documents, batch=1) as node:
        every = ("thing", "other")
        assert names(ask(node, SortKey("number", UP), document_types=every)) == "dbcae"
        assert names(ask(node, SortKey("number", DOWN), document_types=every)) == "eabcd"
        assert names(ask(node, SortKey("name", UP), document_types=every)) == "cdbea"
        assert names(ask(node, SortKey("name", DOWN), document_types=every)) == "bdaec"
        assert names(ask(node, SortKey("german", UP), SortKey("number", UP), document_types=every)) == "dbcae"
        merged = ask(node, SortKey("name", UP), SortKey("number", DOWN), document_types=every, hits=2, offset=1)
        assert names(merged) == "db"
        assert sort_keys(merged) == sorted(sort_keys(merged))


def sort_keys(answer: SearchResponse) -> list[tuple[Any, ...]]:
    keys = [hit.sort_keys for hit in answer.hits if hit.sort_keys is not None]
    assert len(keys) == len(answer.hits)
    return keys


def test_keys_of_hits_compare_as_the_hits_do() -> None:
    random_ = random.Random(20263)
    texts = ["", "a", "ab", "B", "b", "ba", "z" * 50, "é", "日本", "a\x00b", "a\x00"]
    documents = [thing(n, name=random_.choice(texts), number=random_.choice([None, 1, -1, 7])) for n in range(60)]
    documents = [Put(put.id, {k: v for k, v in put.fields.items() if v is not None}) for put in documents]
    with node_with(*documents) as node:
        for down in (UP, DOWN):
            for function in ("raw", "lowercase", "uca"):
                keys = sort_keys(ask(node, SortKey("name", down, function), SortKey("number", not down), hits=60))
                assert keys == sorted(keys), (down, function)


def naive(documents: list[dict[str, object]], keys: list[tuple[str, bool]]) -> list[int]:
    """The numbers of the documents, in order."""
    order = list(range(len(documents)))
    for field, down in reversed(keys):
        unset = [n for n in order if documents[n].get(field) in (None, "", [])]
        groups: dict[object, list[int]] = {}
        for n in order:
            if (found := documents[n].get(field)) not in (None, "", []):
                if isinstance(found, list):
                    found = max(found) if down else min(found)
                groups.setdefault(found.lower() if isinstance(found, str) else found, []).append(n)
        values = [n for key in sorted(groups, reverse=down) for n in groups[key]]  # type: ignore[type-var]
        order = values + unset if down or field == "numbers" else unset + values
    return order


def test_random_documents_and_keys_beside_python() -> None:
    seed = 20262
    random_ = random.Random(seed)
    makers: dict[str, Callable[[], object]] = {
        "number": lambda: random_.randint(-3, 3),
        "real": lambda: random_.choice([-1.5, 0.0, 2.25]),
        "name": lambda: random_.choice(["a", "B", "b", "cc", "c"]),
        "flag": lambda: random_.random() < 0.5,
        "numbers": lambda: [random_.randint(0, 5) for _ in range(random_.randint(0, 3))],
    }
    documents: list[dict[str, object]] = [
        {field: make() for field, make in makers.items() if field == "flag" or random_.random() < 0.8}
        for _ in range(300)
    ]
    with node_with(*(thing(n, **fields) for n, fields in enumerate(documents)), batch=70) as node:
        by_lid = [int(hit.document_id.rsplit(":", 1)[1]) for hit in ask(node, SortKey("[docid]"), hits=400).hits]
        for _ in range(60):
            keys = [(field, random_.random() < 0.5) for field in random_.sample(sorted(makers), random_.randint(1, 3))]
            low = random_.choice([None, -1])
            tree = TrueItem() if low is None else RangeItem("number", low, None)
            matching = [n for n in by_lid if low is None or documents[n].get("number", -9) >= low]  # type: ignore[operator]
            expected = [matching[n] for n in naive([documents[n] for n in matching], keys)]
            hits, offset = random_.choice([(10, 0), (10, 30), (400, 0), (1, 5)])
            found = ask(node, *(SortKey(*key) for key in keys), tree=tree, hits=hits, offset=offset)
            shown = [int(hit.document_id.rsplit(":", 1)[1]) for hit in found.hits]
            assert shown == expected[offset : offset + hits], (seed, keys, low, hits, offset)
            assert found.total_count == len(matching)
