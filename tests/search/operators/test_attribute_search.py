"""Matching attributes on a content node, beside a plain reading of the query.

Authority: https://docs.vespa.ai/en/reference/querying/yql.html, https://docs.vespa.ai/en/ranking/wand.html,
https://docs.vespa.ai/en/querying/nearest-neighbor-search.html and https://docs.vespa.ai/en/querying/geo-search.html
"""

from __future__ import annotations

import math
import random
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paperwasp.document.converters import GeoPosition
from paperwasp.document.ids import DocumentId
from paperwasp.document.operations import Put
from paperwasp.document.tensor.types import TensorType
from paperwasp.document.tensor.value import Tensor, TensorBuilder
from paperwasp.errors import InvalidQuery
from paperwasp.schema import parse_schemas
from paperwasp.search.bind import space_of
from paperwasp.search.operators import FieldMatch, Operator, SearchSpace
from paperwasp.search.operators.geo import GeoBoundingBoxItem, GeoLocationItem
from paperwasp.search.operators.in_operator import InItem
from paperwasp.search.operators.item import Item, plan
from paperwasp.search.operators.nearest_neighbor import NearestNeighborItem
from paperwasp.search.operators.patterns import (
    FuzzyItem,
    PrefixItem,
    RegexItem,
    SubstringItem,
    SuffixItem,
    TextRangeItem,
)
from paperwasp.search.operators.range_operator import RangeItem
from paperwasp.search.operators.weighted import DotProductItem, WandItem, WeightedSetItem
from paperwasp.search.operators.word import WordItem
from tests.content.nodes import TestNode, started
from tests.oracles.nearest_hits import nearest_hits
from tests.search.naive_matching import string_matches

TYPES = ("byte", "int", "long", "float16", "float", "double", "bool")
VECTORS = {
    "euclidean": "float", "angular": "double", "dotproduct": "bfloat16", "prenormalized-angular": "float",
    "hamming": "int8", "geodegrees": "double",
}  # fmt: skip
THING = "\n".join(
    [
        "schema thing { document thing {",
        *(f"field {name} type {name} {{ indexing: attribute }}" for name in TYPES if name != "bool"),
        "field flag type bool { indexing: attribute }",
        "field text type string { indexing: attribute }",
        "field cased type string { indexing: attribute\n match: cased\n dictionary { hash\n cased } }",
        "field fast type int { indexing: attribute\n attribute: fast-search }",
        "field fasts type array<int> { indexing: attribute\n attribute: fast-search }",
        "field texts type array<string> { indexing: attribute }",
        "field numbers type array<long> { indexing: attribute }",
        "field weights type weightedset<string> { indexing: attribute }",
        "field keys type weightedset<int> { indexing: attribute }",
        "field words type weightedset<string> { indexing: index }",
        "field place type position { indexing: attribute }",
        "field places type array<position> { indexing: attribute }",
        *(
            f"field {metric.replace('-', '_')} type tensor<{cell}>(x[2]) "
            f"{{ indexing: attribute\n attribute {{ distance-metric: {metric} }} }}"
            for metric, cell in VECTORS.items()
        ),
        "field many type tensor<float>(c{},x[2]) { indexing: attribute }",
        "field sparse type tensor<float>(c{}) { indexing: attribute }",
        "field shown type tensor<float>(x[2]) { indexing: summary }",
        "field title type string { indexing: index }",
        "} }",
    ]
)
SCHEMAS = parse_schemas({"schemas/thing.sd": THING}).schemas


def thing(number: int, **fields: Any) -> Put:
    return Put(DocumentId("n", "thing", str(number)), fields)


@contextmanager
def space_with(*operations: Put, inputs: dict[str, object] | None = None) -> Iterator[SearchSpace]:
    with TemporaryDirectory() as directory, started(Path(directory), dict(SCHEMAS)) as node:
        for operation in operations:  # one by one, so that lids rise as they do
            node.apply(operation)
        yield asked(node, inputs)


def asked(node: TestNode, inputs: dict[str, object] | None) -> SearchSpace:
    space = space_of(node.node.reader.view(), "thing")
    return SearchSpace(
        space.schema, space.limit, space.accept, space.documents, space.dead, space.index, space.columns, inputs or {}
    )


def lids_of(operator: Operator, space: SearchSpace, within: Any = None) -> list[int]:
    bitmap = operator.bitmap(within) & space.accept
    return np.flatnonzero(np.unpackbits(bitmap.view(np.uint8), bitorder="little")).tolist()


def found(item: Item, space: SearchSpace) -> list[int]:
    return lids_of(plan(item, space), space)


def one_match(item: Item, space: SearchSpace) -> FieldMatch:
    """The match of an item in its one field, after the documents that match were asked for."""
    operator = plan(item, space)
    operator.bitmap(None)
    (match,) = operator.matches  # type: ignore[attr-defined]
    assert isinstance(match, FieldMatch)
    return match


def every(space: SearchSpace) -> np.ndarray:
    return np.arange(space.limit, dtype=np.uint32)


def by_document(match: FieldMatch, space: SearchSpace) -> list[list[int]]:
    offsets, elements = match.elements(every(space))
    return [elements[a:b].tolist() for a, b in pairwise(offsets)]


# ------------------------------------------------------------------------------------------------ words and numbers

NUMBERS = [thing(n, int=n, long=n * 10**12, byte=n, float=n / 2, double=n / 4, float16=n / 2) for n in range(-3, 6)]


@pytest.mark.parametrize(
    ("field", "word", "expected"),
    [
        ("int", "3", [3]),
        ("int", "+3", [3]),
        ("int", "<-1", [-3, -2]),
        ("int", ">3", [4, 5]),
        ("int", "[1;3]", [1, 2, 3]),
        ("int", "<1;3>", [2]),
        ("int", "[1;3>", [1, 2]),
        ("int", "[4;]", [4, 5]),
        ("int", "<;-2>", [-3]),
        ("int", "[2;1]", []),
        ("int", "2.4", [2]),
        ("int", "2.5", [3]),  # a single number is rounded, as in Vespa
        ("int", "-2.5", [-3]),
        ("int", "[1.5;2.5]", [2]),
        ("int", "0x3", [3]),
        ("int", "three", []),
        ("int", "1_0", []),
        ("int", "nan", []),
        ("int", "", []),
        ("int", "<", []),
        ("int", "[1;2;3;4]", []),
        ("int", "99999999999999999999", []),
        ("int", "<99999999999999999999", list(range(-3, 6))),
        ("int", "[-1e300;inf]", list(range(-3, 6))),
        ("byte", "300", []),
        ("byte", ">300", []),
        ("byte", "<300", list(range(-3, 6))),
        ("long", "2000000000000", [2]),
        ("long", "[-9223372036854775808;9223372036854775807]", list(range(-3, 6))),
        ("float", "1.5", [3]),
        ("float16", "1.5", [3]),
        ("float", "<1.5;2.5>", [4]),
        ("double", "0.25", [1]),
        ("double", ">1", [5]),
    ],
)
def test_numbers_in_words(field: str, word: str, expected: list[int]) -> None:
    with space_with(*NUMBERS) as space:
        assert [lid - 3 for lid in found(WordItem(field, word), space)] == expected


@pytest.mark.parametrize(("word", "expected"), [("true", [0]), ("TRUE", [0]), ("1", [0]), ("false", [1, 2]), ("x", [])])
def test_booleans(word: str, expected: list[int]) -> None:
    with space_with(thing(0, flag=True), thing(1, flag=False), thing(2)) as space:
        assert found(WordItem("flag", word), space) == expected


def test_words_of_strings() -> None:
    with space_with(
        thing(0, text="Big Cat", cased="Big Cat", texts=["a", "Big Cat", "big cat"]),
        thing(1, text="big cat", cased="big cat", weights={"Big Cat": 3, "b": 4}),
    ) as space:
        assert found(WordItem("text", "BIG CAT"), space) == [0, 1]
        assert found(WordItem("text", "cat"), space) == []
        assert found(WordItem("cased", "big cat"), space) == [1]
        assert found(WordItem("cased", "BIG CAT"), space) == []
        match = one_match(WordItem("texts", "big cat"), space)
        assert by_document(match, space) == [[1, 2], []]
        assert match.occurrences(every(space)).tolist() == [1, 0]
        match = one_match(WordItem("weights", "big cat"), space)
        assert match.element_weights(every(space)).tolist() == [3]


def test_hit_limits() -> None:
    """Whole values, the lowest or highest first, until there are enough documents; only where there is fast-search."""
    values = [5, 1, 3, 3, 3, 9, 7]
    with space_with(
        *(thing(n, fast=value, int=value, fasts=[value, value, 2]) for n, value in enumerate(values))
    ) as space:
        assert found(RangeItem("fast", 0, 100, hit_limit=2), space) == [1, 2, 3, 4]
        assert found(RangeItem("fast", 0, 100, hit_limit=-2), space) == [5, 6]
        assert found(RangeItem("fast", 2, 100, hit_limit=1), space) == [2, 3, 4]
        assert found(RangeItem("fast", 2, 6, high_inclusive=False, hit_limit=-1), space) == [0]
        assert found(RangeItem("fast", 0, 100, hit_limit=50), space) == list(range(7))
        assert found(WordItem("fast", "[0;100;-1]"), space) == [5]
        assert found(RangeItem("int", 0, 100, hit_limit=1), space) == list(range(7))
        assert found(RangeItem("fasts", 3, 100, hit_limit=2), space) == [2, 3, 4]
        assert found(RangeItem("fasts", 0, 100, hit_limit=2), space) == list(range(7))


def test_in() -> None:
    values = {"int": 7, "text": "Seven", "numbers": [7, 2**62], "weights": {"seven": 1}, "title": "seven stars"}
    with space_with(thing(0, **values), thing(1, int=8, text="eight")) as space:
        for field, item in (
            ("int", (1, 7)), ("int", ("1", "7")), ("int", (2**70, 7)), ("text", ("SEVEN", "x")), ("text", ("seven",)),
            ("numbers", (2**62, -1)), ("weights", ("x", "Seven")), ("title", ("seven", "moons")),
            ("int", (-(2**31), 7)),
        ):  # fmt: skip
            assert found(InItem(field, item), space) == [0], (field, item)
        many = (*range(100, 10_100), 8)
        assert found(InItem("int", many), space) == [1]
        assert found(InItem("text", (*map(str, many), "eight")), space) == [1]
        assert found(InItem("int", ()), space) == []


# ------------------------------------------------------------------------------------------------ patterns

LETTERS = "abAB.\n é"
PATTERNS = ["a", "^a", "b$", "^ab$", "[^a]", "a.b", r"\s", "(?i)A", "a|B$", "^$", "", "x*", r"\Aa", r"b\z", "(?-m)^b",
            r"\C", "[[:upper:]]", "(?s)a.b", "a\\.", r"\w+$", "é", "^[ab]*$", r"\ba", ".*", "\n"]  # fmt: skip


def in_python(pattern: str) -> str:
    """An expression of RE2 as Python's: `$` is the end, classes are of ASCII."""
    for one, other in ((r"\z", r"\Z"), (r"\C", "(?s:.)"), ("[[:upper:]]", "[A-Z]"), ("(?-m)", "")):
        pattern = pattern.replace(one, other)
    return pattern[:-1] + r"\Z" if pattern.endswith("$") else pattern.replace("$)", r"\Z)")


def edits(word: str, text: str, prefix: bool) -> int:
    row = list(range(len(text) + 1))
    for i, a in enumerate(word, 1):
        before, row = row, [i]
        for j, b in enumerate(text, 1):
            row.append(min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (a != b)))
    return min(row) if prefix else row[-1]


FITTING: dict[type[Item], Callable[[str, str], bool]] = {
    PrefixItem: str.startswith,
    SuffixItem: str.endswith,
    SubstringItem: str.__contains__,
}


def fits(item: Item, value: str, cased: bool) -> bool:
    """A plain reading of a pattern."""
    if not value:
        return False
    if isinstance(item, RegexItem):
        flags = re.ASCII | (0 if cased else re.IGNORECASE)
        return re.search(in_python(item.expression), value if cased else value.lower(), flags) is not None
    if isinstance(item, TextRangeItem):  # Vespa: string_range_search_helper.cpp
        return string_matches(item, value if cased else value.lower(), str if cased else str.lower)
    word = item.word if cased else item.word.lower()  # type: ignore[attr-defined]
    value = value if cased else value.lower()
    if isinstance(item, FuzzyItem):
        same = item.prefix_length
        return word[:same] == value[:same] and edits(word[same:], value[same:], item.prefix) <= item.max_edits
    return FITTING[type(item)](value, word)


texts = st.text(st.sampled_from(LETTERS), max_size=4)
fields = st.sampled_from(["text", "cased", "texts", "weights"])
patterns = (
    st.builds(PrefixItem, fields, texts)
    | st.builds(SuffixItem, fields, texts)
    | st.builds(SubstringItem, fields, texts)
    | st.builds(RegexItem, fields, st.sampled_from(PATTERNS))
    | st.builds(TextRangeItem, fields, st.none() | texts, st.none() | texts, st.booleans(), st.booleans())
    | st.builds(FuzzyItem, fields, texts, st.integers(0, 3), st.integers(0, 2), st.booleans())
)


@settings(deadline=None, max_examples=20)
@given(st.lists(st.lists(texts, max_size=3), max_size=12), st.lists(patterns, max_size=60))
def test_patterns(rows: list[list[str]], items: list[Any]) -> None:
    documents = [
        thing(n, texts=row, weights=dict.fromkeys(row, 1), **dict.fromkeys(("text", "cased"), (row or [""])[0]))
        for n, row in enumerate(rows)
    ]
    with space_with(*documents) as space:
        for item in items:
            single = item.index in ("text", "cased")
            values = [
                list(dict.fromkeys(row)) if item.index == "weights" else row[:1] if single else row for row in rows
            ]
            expected = [[place for place, value in enumerate(row) if fits(item, value, item.index == "cased")]
                        for row in values]  # fmt: skip
            if any("" in row for row in values) and isinstance(item, RegexItem | FuzzyItem | TextRangeItem):
                continue  # an empty element is no value to a dictionary
            assert found(item, space) == [lid for lid, each in enumerate(expected) if each], item
            assert by_document(one_match(item, space), space) == expected


def test_patterns_that_cannot_be_matched() -> None:
    with space_with(thing(0, text="a", int=1)) as space:
        for item, message in (
            (RegexItem("text", "(a"), "no regular expression"),
            (RegexItem("text", "(?=a)"), "no regular expression"),
            (RegexItem("text", "(((a{100}){100}){100}){100}"), "no regular expression"),
            (FuzzyItem("int", "1"), "field 'int' is of type int"),
            (FuzzyItem("text", "a" * 2000), "at most 1024 characters"),
            (TextRangeItem("int", "1", None), "lexical range is matched against text, and field 'int' is of type int"),
            (TextRangeItem("title", "a", "b"), "'title' is not an attribute field: Lexical range matching is not"),
        ):
            with pytest.raises(InvalidQuery, match=message):
                found(item, space)
        assert found(RegexItem("text", "(a*)*$" * 50), space) == [0]


@pytest.mark.parametrize("kind", [PrefixItem, SuffixItem, SubstringItem, RegexItem])
def test_numbers_have_no_parts(kind: type[PrefixItem | SuffixItem | SubstringItem | RegexItem]) -> None:
    """A text is compared with a number as one, whatever is to be done with it."""
    with space_with(thing(0, int=1), thing(1, int=12)) as space:
        assert found(kind("int", "1"), space) == [0]
        assert found(kind("int", "a"), space) == []


# ------------------------------------------------------------------------------------------------ weighted tokens

TOKENS = st.dictionaries(st.sampled_from("abcd"), st.integers(-5, 100), max_size=4)


@settings(deadline=None, max_examples=20)
@given(st.lists(TOKENS, max_size=15), TOKENS, st.integers(1, 5), st.integers(-50, 500), st.integers(0, 2**32))
def test_weighted_tokens(rows: list[dict[str, int]], query: dict[str, int], hits: int, least: int, seed: int) -> None:
    documents = [
        thing(n, weights=row, words=row, keys={ord(k): w for k, w in row.items()}) for n, row in enumerate(rows)
    ]
    scores = [sum(weight * row[token] for token, weight in query.items() if token in row) for row in rows]
    matching = [lid for lid, row in enumerate(rows) if row.keys() & query.keys()]
    within_lids = [lid for lid in range(len(rows)) if random.Random(seed + lid).random() < 0.5]
    with space_with(*documents) as space:
        within = space.empty()
        for lid in within_lids:
            within[lid >> 6] |= np.uint64(1) << np.uint64(lid & 63)
        for field in ("weights", "words", "keys"):
            tokens = tuple((token if field != "keys" else ord(token), weight) for token, weight in query.items())
            dot = one_match(DotProductItem(field, tokens), space)
            assert found(DotProductItem(field, tokens), space) == matching
            assert dot.raw_scores(every(space)).tolist() == scores
            assert found(WeightedSetItem(field, tokens), space) == matching
            weights = one_match(WeightedSetItem(field, tokens), space).element_weights(every(space))
            assert sorted(weights.tolist()) == sorted(query[token] for row in rows for token in row if token in query)
            best = sorted((lid for lid in matching if lid in within_lids and scores[lid] > least),
                          key=lambda lid: (-scores[lid], lid))[:hits]  # fmt: skip
            operator = plan(WandItem(field, tokens, hits, least), space)
            assert sorted(lids_of(operator, space, within)) == sorted(best)
            raw = operator.matches[0].raw_scores(every(space)).tolist()  # type: ignore[attr-defined]
            assert raw == [score if lid in best else 0 for lid, score in enumerate(scores)]


def test_tokens_on_values_without_weights() -> None:
    with space_with(thing(0, texts=["a", "b", "A"], int=3), thing(1, texts=["c"], int=4)) as space:
        tokens = (("a", 10), ("b", -1))
        assert one_match(DotProductItem("texts", tokens), space).raw_scores(every(space)).tolist() == [19, 0]
        assert one_match(DotProductItem("int", (("4", 7),)), space).raw_scores(every(space)).tolist() == [0, 7]
        assert found(WandItem("texts", tokens), space) == [0]


# ------------------------------------------------------------------------------------------------ vectors


def tensor(kind: str, *cells: float) -> Tensor:
    builder = TensorBuilder(TensorType.parse(kind))
    builder.subspace((), list(cells))
    return builder.build()


def mixed(**vectors: tuple[float, float]) -> Tensor:
    builder = TensorBuilder(TensorType.parse("tensor<float>(c{},x[2])"))
    for label, cells in vectors.items():
        builder.subspace((label,), list(cells))
    return builder.build()


def haversine_km(a: tuple[float, float], b: tuple[float, float]) -> float:
    (u, v), (p, q) = (tuple(map(math.radians, place)) for place in (a, b))
    part = math.sin((u - p) / 2) ** 2 + math.cos(u) * math.cos(p) * math.sin((v - q) / 2) ** 2
    return 2 * 6371.0088 * math.asin(math.sqrt(part))


def angle(a: tuple[float, float], b: tuple[float, float]) -> float:
    return math.acos((a[0] * b[0] + a[1] * b[1]) / math.hypot(*a) / math.hypot(*b))


METRICS: dict[str, Callable[[Any, Any], float]] = {
    "euclidean": math.dist,
    "angular": angle,
    "dotproduct": lambda a, b: -(a[0] * b[0] + a[1] * b[1]),
    "prenormalized-angular": lambda a, b: 1 - (a[0] * b[0] + a[1] * b[1]) / (a[0] ** 2 + a[1] ** 2),
    "hamming": lambda a, b: sum(bin((int(x) ^ int(y)) & 0xFF).count("1") for x, y in zip(a, b, strict=True)),
    "geodegrees": haversine_km,
}
POINTS = [(3, 4), (4, 3), (0, 5), (-3, 4), (1, 1), (5, 0)]


@pytest.mark.parametrize("metric", METRICS)
def test_nearest_neighbors(metric: str) -> None:
    field, query = metric.replace("-", "_"), (3.0, 4.0)
    points = [(x / 5, y / 5) if metric == "prenormalized-angular" else (x, y) for x, y in POINTS]
    if metric == "prenormalized-angular":
        query = (0.6, 0.8)
    kind = f"tensor<{VECTORS[metric]}>(x[2])"
    documents = [thing(n, **{field: tensor(kind, *point)}) for n, point in enumerate(points)]
    apart = [METRICS[metric](query, point) for point in points]
    with space_with(*documents, thing(99), inputs={"q": tensor("tensor(x[2])", *query)}) as space:
        for hits in (1, 3, 100):
            assert found(NearestNeighborItem(field, "q", hits), space) == nearest_hits(apart, math.inf, hits)
        match = one_match(NearestNeighborItem(field, "q", 100), space)
        scores = [-d for d in apart] if metric == "dotproduct" else [1 / (1 + d) for d in apart]
        assert match.raw_scores(every(space)).tolist() == pytest.approx([*scores, 0], abs=1e-5)
        distances, closeness, _ = match.nearest(every(space))  # type: ignore[attr-defined]
        assert distances.tolist() == pytest.approx([*apart, math.inf], abs=1e-3)
        assert closeness.tolist()[:-1] == pytest.approx(scores, abs=1e-5)
        threshold = (sorted(apart)[2] + max(apart)) / 2
        within = NearestNeighborItem(field, "q", 100, distance_threshold=threshold)
        assert found(within, space) == [lid for lid, distance in enumerate(apart) if distance <= threshold]


def test_the_nearest_vector_of_several_counts() -> None:
    documents = [
        thing(0, many=mixed(a=(9, 9), b=(1, 1))), thing(1, many=mixed(a=(2, 2))), thing(2, many=mixed()),
        thing(3), thing(4, many=mixed(a=(8, 8), b=(7, 7), c=(0, 1))),
    ]  # fmt: skip
    with space_with(*documents, inputs={"q": tensor("tensor<float>(x[2])", 0, 0)}) as space:
        match = one_match(NearestNeighborItem("many", "q", 2), space)
        assert by_document(match, space) == [[1], [0], [], [], [2]]  # all come before two that are nearer
        scores = [1 / (1 + math.sqrt(2)), 1 / (1 + math.sqrt(8)), 0, 0, 0.5]
        assert match.raw_scores(every(space)).tolist() == pytest.approx(scores)
        assert found(NearestNeighborItem("many", "q", 9), space) == [0, 1, 4]
        within = space.empty()
        within[0] = 0b1011
        assert lids_of(plan(NearestNeighborItem("many", "q", 1), space), space, within) == [0]
        assert found(NearestNeighborItem("many", "q", 1), space) == [0, 4]  # 4 is nearer than what was before it


# ------------------------------------------------------------------------------------------------ positions

TRONDHEIM, OSLO = GeoPosition(10_395_051, 63_430_515), GeoPosition(10_746_900, 59_913_900)
SYDNEY = GeoPosition(151_209_300, -33_868_800)
KM = 1000 / (math.pi * 6_356_752.0 / 180)


def test_places() -> None:
    documents = [
        thing(0, place=TRONDHEIM, places=[SYDNEY, TRONDHEIM]), thing(1, place=OSLO, places=[OSLO, TRONDHEIM]),
        thing(2, place=SYDNEY, places=[SYDNEY]), thing(3),
    ]  # fmt: skip
    with space_with(*documents) as space:
        for kilometres, expected in ((1, [0]), (390, [0]), (392, [0, 1]), (-1, [0, 1, 2])):
            item = GeoLocationItem("place", 63.430515, 10.395051, kilometres * KM if kilometres > 0 else -1.0)
            assert found(item, space) == expected, kilometres
        near = GeoLocationItem("places", 63.43, 10.4, 10 * KM)
        match = one_match(near, space)
        assert by_document(match, space) == [[1], [1], [], []]
        box = GeoBoundingBoxItem("place", 59.9139, 10.0, 63.5, 10.7469)
        assert found(box, space) == [0, 1]
        assert found(GeoBoundingBoxItem("places", -90.0, -180.0, 90.0, 180.0), space) == [0, 1, 2]
        for wrong in (GeoBoundingBoxItem("place", 1.0, 0.0, 0.0, 1.0), GeoLocationItem("int", 0.0, 0.0, 1.0)):
            with pytest.raises(InvalidQuery):
                found(wrong, space)


def test_a_circle_is_wider_in_degrees_far_from_the_equator() -> None:
    """At 60 degrees north a degree of longitude is half as long as one of latitude."""
    with space_with(
        *(thing(n, place=GeoPosition(x, 60_000_000)) for n, x in enumerate((1_900_000, 2_100_000, -1_999_000)))
    ) as space:
        assert found(GeoLocationItem("place", 60.0, 0.0, 1.0), space) == [0, 2]
