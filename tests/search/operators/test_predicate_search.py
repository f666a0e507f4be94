"""Predicates: what predicate() matches, beside evaluating each predicate by itself, through updates and restarts.

Authority: https://docs.vespa.ai/en/schemas/predicate-fields.html; what is refused, and how:
com.yahoo.prelude.searcher.ValidatePredicateSearcher.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import reduce
from operator import and_, or_
from pathlib import Path

import pytest

from paperwasp.document.operations import Put
from paperwasp.document.predicate import (
    Conjunction,
    Disjunction,
    FeatureRange,
    FeatureSet,
    Negation,
    Predicate,
    PredicateIndex,
    Truth,
    parse_predicate,
    shown_predicate,
)
from paperwasp.errors import IllegalQuery
from paperwasp.schema import parse_schemas
from paperwasp.schema.model import Schema
from paperwasp.search.operators.item import Item
from paperwasp.search.operators.predicate import PredicateItem
from paperwasp.search.operators.word import WordItem
from paperwasp.search.search import search
from paperwasp.search.served import ServedSchemas
from paperwasp.storage.attributes.predicate import PredicateColumn
from tests.content.nodes import TestNode, doc_id, remove, start, update
from tests.search.queries import query_of

ALL = 2**64 - 1
PROFILES = ServedSchemas()
RANKING = """rank-profile bits { match-features: subqueries(target) subqueries(target).lsb subqueries(target).msb
        first-phase { expression: subqueries(target).msb } }"""
Attributes = tuple[tuple[str, str, int], ...]
Ranges = tuple[tuple[str, int, int], ...]


def schemas(column: bool = True) -> dict[str, Schema]:
    text = f"""schema ad {{ document ad {{
      field target type predicate {{ indexing: {"attribute | summary" if column else "summary"}
        {"index { arity: 8 lower-bound: -100 upper-bound: 200 }" if column else ""} }}
      field title type string {{ indexing: attribute | summary }} }}
      {RANKING if column else ""} }}"""
    return dict(parse_schemas({"schemas/ad.sd": text}).schemas)


SCHEMAS = schemas()
INDEX = PredicateIndex(8, -100, 200)


def matching(predicate: Predicate, attributes: Attributes, ranges: Ranges) -> int:
    """The subqueries in which the predicate holds, a bit each."""
    match predicate:
        case Truth():
            return ALL if predicate.value else 0
        case Negation():
            return ALL & ~matching(predicate.operand, attributes, ranges)
        case Conjunction():
            return reduce(and_, (matching(operand, attributes, ranges) for operand in predicate.operands))
        case Disjunction():
            return reduce(or_, (matching(operand, attributes, ranges) for operand in predicate.operands))
        case FeatureSet(key, values):
            return reduce(or_, (bits for name, value, bits in attributes if name == key and value in values), 0)
        case FeatureRange(key, low, high):
            inside = [bits for name, value, bits in ranges if name == key and _between(low, value, high)]
            return reduce(or_, inside, 0)
    raise AssertionError(predicate)


def _between(low: int | None, value: int, high: int | None) -> bool:
    return (low is None or low <= value) and (high is None or value <= high)


def random_predicate(chance: random.Random, depth: int = 0) -> Predicate:
    kind = chance.random()
    if depth == 3 or kind < 0.4:
        key = chance.choice("abc")
        if kind < 0.05:
            return Truth(chance.random() < 0.5)
        if kind < 0.2:
            return FeatureSet(key, tuple(sorted(set(chance.choices("xyz", k=2)))))
        low, high = sorted((chance.randrange(-6, 7), chance.randrange(-6, 7)))
        return FeatureRange(key, chance.choice((None, low)), chance.choice((None, high)))
    if kind < 0.5:
        return Negation(random_predicate(chance, depth + 1))
    operands = tuple(random_predicate(chance, depth + 1) for _ in range(chance.randrange(2, 4)))
    return chance.choice((Conjunction, Disjunction))(operands)


def random_query(chance: random.Random) -> PredicateItem:
    def subqueries() -> int:
        return chance.choice((ALL, chance.getrandbits(64), 1 << chance.randrange(64)))

    attributes = [(chance.choice("abc"), chance.choice("xyz"), subqueries()) for _ in range(chance.randrange(4))]
    ranges = [(chance.choice("abc"), chance.randrange(-8, 9), subqueries()) for _ in range(chance.randrange(4))]
    return PredicateItem("target", tuple(attributes), tuple(ranges))


@pytest.fixture
def node(tmp_path: Path) -> Iterator[TestNode]:
    started = start(tmp_path, SCHEMAS)
    yield started
    started.close()


def ad(name: object, target: str) -> Put:
    return Put(doc_id(name, "ad"), {"target": target} if target else {})


def found(node: TestNode, item: Item) -> set[str]:
    request = query_of(item, rank_profile="unranked", document_types=("ad",), hits=400)
    hits = search(node.node.reader.view(), request, PROFILES).hits
    return {hit.document_id.rsplit(":", 1)[1] for hit in hits}


@pytest.mark.parametrize("seed", range(10))
def test_random_predicates_through_updates_and_restarts(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    targets: dict[str, str] = {}
    node = start(tmp_path, SCHEMAS)
    for step in range(4):
        for name in chance.sample(range(60), 30):
            targets[str(name)] = str(random_predicate(chance)) if chance.random() < 0.9 else ""
            is_update = str(name) in targets and chance.random() < 0.3
            node.apply(
                update(name, "ad", create=True, target=targets[str(name)] or None)
                if is_update
                else ad(name, targets[str(name)])
            )
        gone = chance.choice(tuple(targets))
        del targets[gone]
        node.apply(remove(gone, "ad"))
        if chance.random() < 0.3:
            node.node.configure(10 + 2 * step, schemas(column=False))
            node.node.configure(11 + 2 * step, SCHEMAS)
        predicates = {name: parse_predicate(text) for name, text in targets.items() if text}
        for _ in range(25):
            item = random_query(chance)
            wanted = {name for name, each in predicates.items() if matching(each, item.attributes, item.ranges)}
            assert found(node, item) == wanted, f"seed {seed}, step {step}: {item}"
        shown = {name: shown_predicate(text, INDEX) if text else "" for name, text in targets.items()}
        assert {name: (node.get(name, "ad") or {}).get("target", "") for name in targets} == shown
        node.crash() if chance.random() < 0.5 else node.close()
        node = start(tmp_path, SCHEMAS)
    node.close()


ADS = {
    "1": "age in [20..30] and gender in [Female, Male] and pos in [1]",
    "2": "gender in [Male] and pos in [1, 2]",
    "3": "age in [20..] and gender in [Female, Male] and pos in [2]",
}
"""The example of the page on predicate fields."""


def test_subqueries_of_the_documentation() -> None:
    column = PredicateColumn()
    column.append(list(ADS.values()))
    view = column.snapshot()
    features = [("gender", "Male", 0b11), ("pos", "1", 0b01), ("pos", "2", 0b10)]
    results = view.evaluate(features, [("age", 25, 0b11)])
    assert results[view.codes].tolist() == [0b01, 0b11, 0b10]


@pytest.mark.parametrize(
    ("target", "attributes", "ranges", "is_found"),
    [
        ("gender in ['male'] and age in [30..40]", (("gender", "male"),), (("age", 30),), True),
        ("gender in ['male'] and age in [30..40]", (("gender", "male"),), (("age", 41),), False),
        ("gender in ['male']", (("gender", "Male"),), (), False),
        ("age in [10..]", (), (("age", 200),), True),
        ("age in [..10]", (), (("age", -100),), True),
        ("age in ['20']", (), (("age", 20),), False),
        ("age not in [20..29]", (), (("age", 25),), False),
        ("age not in [20..29]", (), (), True),
        ("hobby not in [Music]", (("hobby", "Music"), ("hobby", "Hiking")), (), False),
        ("hobby in [Music]", (("hobby", "Music"), ("hobby", "Hiking")), (), True),
        ("not (age in [20..29] or hobby in [Music])", (("hobby", "x"),), (("age", 30),), True),
        ("true", (), (), True),
        ("false", (("a", "b"),), (), False),
        ("", (), (), False),
    ],
    ids=str,
)
def test_what_matches(
    node: TestNode,
    target: str,
    attributes: tuple[tuple[str, str], ...],
    ranges: tuple[tuple[str, int], ...],
    is_found: bool,
) -> None:
    node.apply(ad("1", str(parse_predicate(target)) if target else ""))
    item = PredicateItem("target", tuple((*each, ALL) for each in attributes), tuple((*each, ALL) for each in ranges))
    assert found(node, item) == ({"1"} if is_found else set())


@pytest.mark.parametrize(
    ("item", "said"),
    [
        (PredicateItem("target", (), (("age", 201, ALL),)), "age=201 outside configured predicate bounds."),
        (PredicateItem("target", (), (("age", -101, 1),)), "age=-101 outside configured predicate bounds."),
        (PredicateItem("title"), "Index 'title' is not a predicate attribute."),
        (
            WordItem("target", "true"),
            "Index 'target' is predicate attribute and can only be used in conjunction with a predicate query"
            " operator.",
        ),
    ],
    ids=str,
)
def test_what_is_refused(node: TestNode, item: Item, said: str) -> None:
    node.apply(ad("1", "true"))
    with pytest.raises(IllegalQuery) as caught:
        found(node, item)
    assert str(caught.value) == said


def test_subqueries_are_rank_features(node: TestNode) -> None:
    node.apply(ad("1", "a in [x]"), ad("2", "true"))
    item = PredicateItem("target", (("a", "x", 1 << 63 | 6),))
    request = query_of(item, rank_profile="bits", document_types=("ad",))
    hits = search(node.node.reader.view(), request, PROFILES).hits
    low, full = 2**31, 2**32 - 1
    expected = {"1": (6, 6, low), "2": (full, full, full)}
    for hit in hits:
        assert hit.match_features is not None
        assert tuple(hit.match_features.values()) == expected[hit.document_id[-1]]
    assert [hit.relevance for hit in hits] == [full, low]


def test_a_saved_column_keeps_only_what_is_used() -> None:
    column = PredicateColumn()
    column.append(["a in [x]", "b in [1..2] or a in [x]", None])
    column.set(0, "not (b in [1..2])")
    saved = column.freeze()()
    assert len(saved["kinds"]) == 4, "false, true, and two conditions"
    again = PredicateColumn()
    again.load(saved)
    again.append(["a in [x]"])
    for features, ranges in (([("a", "x", 1)], []), ([], [("b", 2, 1)])):
        for one, rows in ((column, 3), (again, 4)):
            view = one.snapshot()
            results = view.evaluate(features, ranges)[view.codes].tolist()
            assert results[:3] == ([ALL, 1, 0] if features else [ALL - 1, 1, 0]), rows
    assert again.snapshot().gather([3]) == ["a in [x]"]  # type: ignore[arg-type]


def test_a_reader_of_an_earlier_view_passes_over_newer_predicates() -> None:
    column = PredicateColumn()
    column.append(["a in [x]"])
    view = column.snapshot()
    column.append(["a in [x, y]", "a in [y]"])
    assert view.evaluate([("a", "y", ALL), ("a", "x", 1)], []).tolist() == [0, 1]
