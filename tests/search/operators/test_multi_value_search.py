"""Elements of arrays, maps and structs: sameElement and parts of fields beside a plain reading of the query.

Authority: https://docs.vespa.ai/en/reference/querying/yql.html#sameelement and
https://docs.vespa.ai/en/reference/schemas/schemas.html#struct-field
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from paperwasp.document.operations import Put, Remove, Update
from paperwasp.document.updates import Assign, FieldUpdate, Index, Member
from paperwasp.errors import InvalidQuery
from paperwasp.schema import parse_schemas
from paperwasp.schema.model import Schema
from paperwasp.search.bind import space_of
from paperwasp.search.operators.boolean import AndItem, NotItem, OrItem, RankItem
from paperwasp.search.operators.equiv import EquivItem
from paperwasp.search.operators.in_operator import InItem
from paperwasp.search.operators.item import Item, plan
from paperwasp.search.operators.near import NearItem
from paperwasp.search.operators.patterns import PrefixItem
from paperwasp.search.operators.phrase import PhraseItem
from paperwasp.search.operators.range_operator import RangeItem
from paperwasp.search.operators.same_element import SameElementItem
from paperwasp.search.operators.word import WordItem
from paperwasp.search.search import search
from paperwasp.search.served import ServedSchemas
from paperwasp.search.show.matched_elements import matched_elements
from tests.content.nodes import TestNode, doc_id, start
from tests.search.queries import query_of

PARENT = """
schema crew {{
  document crew {{
    struct person {{ field name type string {{}}
      field age type int {{}}
      field score type double {{}}
      field away type bool {{}}
      field secret type string {{}} }}
    field persons type array<person> {{ indexing: summary
      struct-field name {{ indexing: attribute }}
      struct-field away {{ indexing: attribute }}
      struct-field age {{ indexing: attribute
        attribute: fast-search }}
      {score} }}
    field people type map<string, person> {{ indexing: summary
      struct-field key {{ indexing: attribute }}
      struct-field value.name {{ indexing: attribute }}
      struct-field value.away {{ indexing: attribute }}
      struct-field value.age {{ indexing: attribute }} }}
    field counts type map<string, int> {{ indexing: summary
      struct-field key {{ indexing: attribute }}
      struct-field value {{ indexing: attribute }} }}
    field tags type array<string> {{ indexing: attribute | summary }}
    field numbers type array<int> {{ indexing: attribute | summary }}
    field votes type weightedset<string> {{ indexing: attribute | summary }}
    field texts type array<string> {{ indexing: index | summary
      stemming: none }}
    field other type string {{ indexing: attribute | summary }}
    field place type string {{ indexing: index | summary
      alias: location }}
  }}
  fieldset mixed {{ fields: persons.name, people.value.name, other }}
}}
"""
CHILD = """
schema task {
  document task { field crew type reference<crew> { indexing: attribute } }
  import field crew.persons as staff {}
  import field crew.counts as counts {}
  import field crew.tags as tags {}
  import field crew.votes as votes {}
}
"""
SCORE = "struct-field score { indexing: attribute }"
PROFILES = ServedSchemas()
NAMES = ("ann", "Bob", "bobby", "cy")
KEYS = ("x", "y", "z")
WORDS = ("red", "green", "blue")
Fields = dict[str, Any]
Element = dict[str, Any]
"""By the name of a part; `""`: the element itself, if it has no parts."""
INT_MIN = -(2**31)


def schemas(score: bool = True) -> dict[str, Schema]:
    files = {"schemas/crew.sd": PARENT.format(score=SCORE if score else ""), "schemas/task.sd": CHILD}
    return dict(parse_schemas(files).schemas)


SCHEMAS = schemas()


# A plain reading


def elements_of(fields: Fields, name: str) -> list[Element]:
    value: Any = fields.get(name) or ({} if name in ("people", "counts") else [])
    if name == "persons":
        return [_person("", each) for each in value]
    if name == "people":
        return [{"key": key, **_person("value.", each)} for key, each in value.items()]
    if name == "counts":
        return [{"key": key, "value": each} for key, each in value.items()]
    return [{"": each} for each in value]


def _person(prefix: str, person: Fields) -> Element:
    return {
        f"{prefix}name": person.get("name", ""),
        f"{prefix}age": person.get("age", INT_MIN),
        f"{prefix}score": person.get("score", float("nan")),
        f"{prefix}away": person.get("away", False),
    }


def holds(item: Item, element: Element, is_text: bool) -> bool:
    match item:
        case AndItem():
            return all(holds(child, element, is_text) for child in item.children)
        case OrItem() | EquivItem():
            return any(holds(child, element, is_text) for child in item.children)
        case NotItem():
            first, *others = item.children
            return holds(first, element, is_text) and not any(holds(child, element, is_text) for child in others)
        case RankItem():
            return holds(item.children[0], element, is_text)
        case PhraseItem():
            words = element[""].lower().split()
            wanted = list(item.words)
            return any(words[at : at + len(wanted)] == wanted for at in range(len(words)))
        case NearItem():
            words = element[""].lower().split()
            sought = [each.word for each in item.children if isinstance(each, WordItem)]
            assert len(sought) == len(item.children) == 2
            places = [[at for at, word in enumerate(words) if word == wanted] for wanted in sought]
            return any(abs(a - b) <= item.distance for a in places[0] for b in places[1])
        case RangeItem():
            value = element[item.index]
            return (item.low is None or value >= item.low) and (item.high is None or value <= item.high)
        case InItem():
            return any(same(element[item.index], value) for value in item.values)
        case PrefixItem():
            return bool(element[item.index].lower().startswith(item.word.lower()))
        case WordItem() if is_text:
            return item.word in element[""].lower().split()
        case WordItem():
            return same(element[item.index], item.word)
    raise AssertionError(item)


def same(value: Any, wanted: Any) -> bool:
    return str(value).lower() == str(wanted).lower()


def matches(item: Item, fields: Fields) -> bool:
    match item:
        case SameElementItem():
            return bool(matched(item, fields))
        case AndItem():
            return all(matches(child, fields) for child in item.children)
        case OrItem():
            return any(matches(child, fields) for child in item.children)
        case NotItem():
            first, *others = item.children
            return matches(first, fields) and not any(matches(child, fields) for child in others)
        case WordItem() | RangeItem():
            name, _, part = item.index.partition(".")
            leaf = WordItem(part, item.word) if isinstance(item, WordItem) else RangeItem(part, item.low, item.high)
            return any(holds(leaf, element, name == "texts") for element in elements_of(fields, name))
    raise AssertionError(item)


def matched(item: SameElementItem, fields: Fields) -> list[int]:
    """The numbers of the elements."""
    found = enumerate(elements_of(fields, item.index))
    conditions = AndItem(item.children)
    numbers = [number for number, element in found if holds(conditions, element, item.index == "texts")]
    return [number for number in numbers if not item.elements or number in item.elements]


# Random documents and queries


def person(chance: random.Random) -> Fields:
    found: Fields = {}
    if chance.random() < 0.8:
        found["name"] = chance.choice(NAMES)
    if chance.random() < 0.8:
        found["age"] = chance.randrange(4)
    if chance.random() < 0.5:
        found["score"] = chance.randrange(4) / 2
    if chance.random() < 0.6:
        found["away"] = chance.random() < 0.5
    return found | ({"secret": "s"} if chance.random() < 0.3 else {})


def some(chance: random.Random, value: Callable[[], Any]) -> list[Any]:
    return [value() for _ in range(chance.randrange(4))]


def keyed(chance: random.Random, value: Callable[[], Any]) -> dict[str, Any]:
    return {key: value() for key in chance.sample(KEYS, chance.randrange(4))}


VALUES: dict[str, Callable[[random.Random], Any]] = {
    "persons": lambda chance: some(chance, lambda: person(chance)),
    "people": lambda chance: keyed(chance, lambda: person(chance)),
    "counts": lambda chance: keyed(chance, lambda: chance.randrange(4)),
    "tags": lambda chance: some(chance, lambda: chance.choice(NAMES)),
    "numbers": lambda chance: some(chance, lambda: chance.randrange(4)),
    "votes": lambda chance: dict.fromkeys(chance.sample(NAMES, chance.randrange(4)), 1),
    "texts": lambda chance: some(chance, lambda: " ".join(chance.choices(WORDS, k=chance.randrange(1, 5)))),
}


def fields(chance: random.Random) -> Fields:
    return {name: value(chance) for name, value in VALUES.items() if chance.random() < 0.8}


PARTS: dict[str, tuple[tuple[str, str], ...]] = {
    "persons": (("name", "text"), ("age", "int"), ("score", "float"), ("away", "bool")),
    "people": (("key", "key"), ("value.name", "text"), ("value.age", "int"), ("value.away", "bool")),
    "counts": (("key", "key"), ("value", "int")),
    "tags": (("", "text"),),
    "numbers": (("", "int"),),
    "votes": (("", "text"),),
    "texts": (("", "index"),),
}


def leaf(chance: random.Random, name: str, kind: str) -> Item:
    if kind == "index":
        word, other = WordItem(name, chance.choice(WORDS)), WordItem(name, chance.choice(WORDS))
        if other.word == word.word:
            return word
        phrase = PhraseItem(name, (word.word, other.word))
        return chance.choice((word, phrase, EquivItem((word, other)), NearItem((word, other), chance.randrange(1, 4))))
    if kind == "float":
        low = chance.randrange(4) / 2
        return RangeItem(name, low, low + 0.5)
    if kind == "int":
        value = chance.randrange(4)
        bounds = RangeItem(name, chance.choice((None, value)), chance.choice((None, value)))
        return chance.choice((WordItem(name, str(value)), bounds, InItem(name, (value, 3))))
    if kind == "bool":
        return WordItem(name, chance.choice(("true", "false")))
    text = chance.choice(KEYS if kind == "key" else NAMES)
    choices = (WordItem(name, text), PrefixItem(name, text[: chance.randrange(1, 4)]), InItem(name, (text, "cy")))
    return chance.choice(choices)


def condition(chance: random.Random, field: str, depth: int = 0) -> Item:
    if depth == 2 or chance.random() < 0.5:
        return leaf(chance, *chance.choice(PARTS[field]))
    children = tuple(condition(chance, field, depth + 1) for _ in range(chance.randrange(1, 4)))
    return chance.choice((AndItem, OrItem, NotItem, RankItem))(children)


def same_element(chance: random.Random, field: str) -> SameElementItem:
    children = tuple(condition(chance, field) for _ in range(chance.randrange(1, 4)))
    only = tuple(chance.sample(range(4), chance.randrange(1, 3))) if chance.random() < 0.2 else ()
    return SameElementItem(field, children, only)


def query(chance: random.Random, depth: int = 0) -> Item:
    if depth == 2 or chance.random() < 0.6:
        field = chance.choice(tuple(PARTS))
        return same_element(chance, field)
    children = tuple(query(chance, depth + 1) for _ in range(2))
    return chance.choice((AndItem, OrItem, NotItem))(children)


# Nodes


def found(node: TestNode, item: Item, kind: str = "crew") -> set[str]:
    request = query_of(item, rank_profile="unranked", document_types=(kind,), hits=400)
    hits = search(node.node.reader.view(), request, PROFILES).hits
    return {hit.document_id.rsplit(":", 1)[1] for hit in hits}


@pytest.fixture
def node(tmp_path: Path) -> Iterator[TestNode]:
    started = start(tmp_path, SCHEMAS)
    yield started
    started.close()


def change(chance: random.Random, documents: dict[str, Fields]) -> Put | Update | Remove:
    """An operation, after doing to the model what it does."""
    name = str(chance.randrange(30))
    kind = chance.random()
    if name not in documents or kind < 0.5:
        documents[name] = fields(chance)
        return Put(doc_id(name, "crew"), documents[name])
    if kind < 0.6:
        del documents[name]
        return Remove(doc_id(name, "crew"))
    changed = {each: VALUES[each](chance) for each in chance.sample(tuple(VALUES), 2)}
    documents[name] = documents[name] | changed
    return Update(doc_id(name, "crew"), tuple(FieldUpdate(each, Assign(value)) for each, value in changed.items()))


def check(node: TestNode, chance: random.Random, documents: dict[str, Fields], score: bool, said: str) -> None:
    for _ in range(60):
        item = query(chance)
        if not score and any(getattr(each, "index", "") == "score" for each in item.walk()):
            with pytest.raises(InvalidQuery, match=r"Field 'persons\.score' of schema 'crew' is not searched"):
                found(node, item)
            continue
        expected = {name for name, each in documents.items() if matches(item, each)}
        assert found(node, item) == expected, f"{said}: {item}"


@pytest.mark.parametrize("seed", range(12))
def test_random_queries_through_restarts_and_schemas(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    documents: dict[str, Fields] = {}
    node, score = start(tmp_path, SCHEMAS), True
    for step in range(4):
        node.apply(*(change(chance, documents) for _ in range(40)))
        check(node, chance, documents, score, f"seed {seed}, step {step}")
        if chance.random() < 0.5:
            score = not score
            node.node.configure(2 + step, schemas(score))
            check(node, chance, documents, score, f"seed {seed}, step {step}, other columns")
        node.crash() if chance.random() < 0.5 else node.close()
        node = start(tmp_path, None)
        node.node.configure(2 + step, schemas(score))
        check(node, chance, documents, score, f"seed {seed}, step {step}, again")
    node.close()


@pytest.mark.parametrize("seed", range(8))
def test_elements_of_parents(node: TestNode, seed: int) -> None:
    chance = random.Random(seed)
    parents = {str(number): fields(chance) for number in range(10)}
    node.apply(*(Put(doc_id(name, "crew"), each) for name, each in parents.items()))
    children = {str(number): str(chance.randrange(12)) for number in range(30)}
    node.apply(*(Put(doc_id(name, "task"), {"crew": str(doc_id(to, "crew"))}) for name, to in children.items()))
    for _ in range(60):
        field = chance.choice(("persons", "counts", "tags", "votes"))
        item = same_element(chance, field)
        wanted = {name for name, to in children.items() if matches(item, parents.get(to, {}))}
        asked = SameElementItem("staff" if field == "persons" else field, item.children, item.elements)
        assert found(node, asked, "task") == wanted, f"seed {seed}: {item}"


@pytest.mark.parametrize("seed", range(8))
def test_matched_elements(node: TestNode, seed: int) -> None:
    chance = random.Random(seed)
    documents = [fields(chance) for _ in range(20)]
    node.apply(*(Put(doc_id(number, "crew"), each) for number, each in enumerate(documents)))
    view = node.node.reader.view()
    lids = np.arange(len(documents), dtype=np.uint32)
    stored = view.store.multi_get([view.gid(lid) for lid in lids.tolist()])
    by_lid = [documents[int(each.id.rsplit(":", 1)[1])] for each in stored if each]
    for _ in range(40):
        field = chance.choice(tuple(PARTS))
        first, second, negated = (same_element(chance, field) for _ in range(3))
        tree = RankItem((NotItem((OrItem((first, query(chance))), negated)), second))
        others = [each for each in tree.walk() if isinstance(each, SameElementItem) and each.index == field]
        counted = [each for each in others if each is not negated and not _is_negated(tree, each)]
        offsets, numbers = matched_elements(plan(tree, space_of(view, "crew")), field, lids)
        for lid, document in enumerate(by_lid):
            wanted = sorted({number for each in counted for number in matched(each, document)})
            assert numbers[offsets[lid] : offsets[lid + 1]].tolist() == wanted, f"seed {seed}: {tree}"


def _is_negated(tree: Item, wanted: Item) -> bool:
    if isinstance(tree, NotItem) and any(each is wanted for child in tree.children[1:] for each in child.walk()):
        return True
    return any(_is_negated(child, wanted) for child in tree.children_of())


# By hand

SMITHS = {"persons": [{"name": "Joe", "age": 80}, {"name": "Ann", "age": 20}], "counts": {"a": 1, "b": 2}}
CROWD = {"persons": [{"name": "Joe", "age": 20}, {"name": "Ann", "age": 80}], "other": "joe"}


def _shown(value: object) -> str:
    """The name of a case: the same in every process, also where it is a set."""
    return " ".join(sorted(value)) if isinstance(value, set) else str(value)


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        (AndItem((WordItem("persons.name", "joe"), RangeItem("persons.age", 50, None))), {"smiths", "crowd"}),
        (SameElementItem("persons", (WordItem("name", "joe"), RangeItem("age", 50, None))), {"smiths"}),
        (SameElementItem("persons", (WordItem("name", "joe"),), (1,)), set()),
        (SameElementItem("persons", (WordItem("name", "ann"),), (1, 7)), {"smiths", "crowd"}),
        (SameElementItem("counts", (WordItem("key", "a"), WordItem("value", "2"))), set()),
        (SameElementItem("counts", (WordItem("key", "b"), WordItem("value", "2"))), {"smiths"}),
        (WordItem("counts.key", "A"), {"smiths"}),
        (WordItem("mixed", "joe"), {"smiths", "crowd"}),
        (WordItem("nowhere.name", "joe"), set()),
        (SameElementItem("nowhere", (WordItem("name", "joe"),)), set()),
    ],
    ids=_shown,
)
def test_what_matches(node: TestNode, item: Item, expected: set[str]) -> None:
    node.apply(Put(doc_id("smiths", "crew"), SMITHS), Put(doc_id("crowd", "crew"), CROWD))
    assert found(node, item) == expected


@pytest.mark.parametrize(
    ("item", "said"),
    [
        (WordItem("secret", "s"), r"Field 'persons\.secret' of schema 'crew' is not searched: its struct-field"),
        (WordItem("nothing", "s"), r"Field 'persons' of type 'array<person>' has no part 'nothing'"),
        (WordItem("", "s"), r"Field 'persons' of schema 'crew' is not searched: name the part"),
        (SameElementItem("", (WordItem("name", "s"),)), "cannot be used within another sameElement"),
    ],
    ids=str,
)
def test_what_cannot_be_asked(node: TestNode, item: Item, said: str) -> None:
    with pytest.raises(InvalidQuery, match=said):
        found(node, SameElementItem("persons", (item,)))


def test_a_field_of_structs_is_not_searched_as_a_whole(node: TestNode) -> None:
    with pytest.raises(InvalidQuery, match="not searched as a whole: name one of its parts, or use sameElement: key, "):
        found(node, WordItem("people", "joe"))


def test_fields_are_searched_by_their_aliases(node: TestNode) -> None:
    node.apply(Put(doc_id("a", "crew"), {"place": "Oslo"}))
    assert found(node, WordItem("location", "oslo")) == {"a"}


def test_references_are_matched_by_id(node: TestNode) -> None:
    node.apply(Put(doc_id("a", "task"), {"crew": "id:n:crew::1"}), Put(doc_id("b", "task"), {"crew": "id:n:crew::2"}))
    assert found(node, WordItem("crew", "id:n:crew::2"), "task") == {"b"}


def test_a_bool_in_a_struct_is_updated_in_place(node: TestNode) -> None:
    """Vespa: ComplexAttributeFieldUtils.isPrimitiveType has bool among the types of struct-fields."""
    people = [{"name": "ann"}, {"name": "cy", "away": True}]
    node.apply(Put(doc_id("1", "crew"), {"persons": people}))
    away = SameElementItem("persons", (WordItem("name", "ann"), WordItem("away", "true")))
    assert found(node, away) == set()
    set_away = FieldUpdate("persons", Assign(True), (Index(0), Member("away")))
    node.apply(Update(doc_id("1", "crew"), (set_away,)))
    assert found(node, away) == {"1"}
    assert found(node, WordItem("persons.away", "false")) == set()
