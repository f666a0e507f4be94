"""One operator, one file: an operator that this file adds is read, printed, filled, checked, searched, shown and seen
by rules like the others, and of each that there is few files know the name."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Final

import pytest

from paperwasp.container.search.rewrites import check_items
from paperwasp.document.ids import DocumentId
from paperwasp.document.operations import Put
from paperwasp.errors import IllegalQuery, InvalidQuery, LanguageError
from paperwasp.query_languages.rules.tree import described, root_of
from paperwasp.query_languages.yql import parse_select, parse_yql
from paperwasp.query_languages.yql.statement import parse_template, slot_values
from paperwasp.schema import parse_schemas
from paperwasp.schema.model import Field, Schema
from paperwasp.search.bind import space_of
from paperwasp.search.operators.boolean import AndItem
from paperwasp.search.operators.equiv import EquivItem
from paperwasp.search.operators.field_match import FieldMatch
from paperwasp.search.operators.item import Item, TermItem
from paperwasp.search.operators.near import NearItem
from paperwasp.search.operators.notation import ARGUMENTS, LEAVES, ArgumentReader, annotated, call, leaf, string
from paperwasp.search.operators.operator import Operator, SearchSpace
from paperwasp.search.operators.same_element import SameElementItem
from paperwasp.search.operators.text import Target, Way
from paperwasp.search.operators.word import WordItem, fields_of, term_operator
from paperwasp.search.search import search
from paperwasp.search.served import ServedSchemas
from paperwasp.search.show.marking import query_parts
from paperwasp.search.yql_syntax import AnnotationScope
from tests.content.nodes import TestNode, started
from tests.search.queries import query_of

# The operator: what follows, up to the tests, is what the file of an operator has.


class BackwardsItem(TermItem, frozen=True):
    """Words, or values, that are the text when they are read backwards."""

    copied = ("word",)
    is_plain = True

    word: str

    def contained(self) -> str:
        return annotated(call("backwards", [string(self.word)]), self.annotations)

    def text_of(self) -> str:
        return self.word

    def check(self, name: str, schemas: Sequence[Schema]) -> None:
        if not self.word:
            raise IllegalQuery(f"backwards in '{name}': there is nothing to read")

    def plan(self, space: SearchSpace) -> Operator:
        found = (self.match_in(field, space) for field in fields_of(self.index, space))
        return term_operator(space, [match for match in found if match is not None], self.annotations)

    def match_in(self, field: Field, space: SearchSpace) -> FieldMatch | None:
        return WordItem(self.index, self.word[::-1], annotations=self.annotations).match_in(field, space)

    def shown_words(self, target: Target) -> Way:
        return target.words(self.annotations, self.word[::-1])


def read_backwards(parser: ArgumentReader, field: str, scope: AnnotationScope, outer: AnnotationScope) -> Item:
    """`backwards("eulb")`."""
    return BackwardsItem(field, parser.copied_text("what is read backwards"), annotations=scope.of_term())


# The tests


@pytest.fixture(autouse=True)
def registered() -> Iterator[None]:
    leaf("backwards")(read_backwards)
    yield
    del LEAVES["backwards"], ARGUMENTS["backwards"]


SCHEMAS: Final = parse_schemas({
    "schemas/song.sd": """
schema song {
  document song {
    field title type string { indexing: index | summary
      stemming: none }
    field lines type array<string> { indexing: index
      stemming: none }
    field kind type string { indexing: attribute }
  }
}
"""
})  # fmt: skip
SELECT: Final = "select * from song where "


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestNode]:
    with started(tmp_path_factory.mktemp("node"), dict(SCHEMAS.schemas)) as node:
        node.apply(
            Put(DocumentId("n", "song", "a"), {"title": "kind of blue", "lines": ["blue train"], "kind": "jazz"}),
            Put(DocumentId("n", "song", "b"), {"title": "eulb", "lines": ["blue", "train"], "kind": "zzaj"}),
        )
        yield node


def found(node: TestNode, tree: Item) -> str:
    response = search(node.node.reader.view(), query_of(tree, document_types=("song",), hits=10), ServedSchemas())
    return "".join(sorted(hit.document_id[-1] for hit in response.hits))


def read(condition: str) -> Item:
    return parse_yql(SELECT + condition).tree


@pytest.mark.parametrize(
    "condition",
    [
        'title contains backwards("eulb")',
        'title contains ({weight: 200}backwards("eulb"))',
        'lines contains sameElement(backwards("eulb"), "train")',
        'title contains backwards("a") and (kind contains backwards("b") or !(true))',
    ],
)
def test_it_is_read_and_printed(condition: str) -> None:
    tree = read(condition)
    assert any(isinstance(item, BackwardsItem) for item in tree.walk())
    assert read(tree.to_yql()) == tree


def test_it_is_read_from_json() -> None:
    where = '{"contains": ["title", {"backwards": {"children": ["eulb"], "attributes": {"weight": 200}}}]}'
    assert parse_select(where).tree == read('title contains ({weight: 200}backwards("eulb"))')


def test_an_unknown_operator_is_named_among_the_known() -> None:
    with pytest.raises(LanguageError, match="backwards"):
        read('title contains forwards("blue")')


def test_its_literal_is_filled() -> None:
    statement, other = (f'{SELECT}title contains backwards("{word}")' for word in ("eulb", "dnik"))
    template = parse_template(statement, {})
    assert template.fill is not None
    assert template.fill(slot_values(template, other, {})) == read('title contains backwards("dnik")')


def test_it_is_searched_alone_and_in_others(node: TestNode) -> None:
    blue = BackwardsItem("title", "eulb")
    assert found(node, blue) == "a"
    assert found(node, BackwardsItem("kind", "jazz")) == "b"
    assert found(node, AndItem((blue, WordItem("kind", "jazz")))) == "a"
    assert found(node, EquivItem((blue, WordItem("title", "eulb")))) == "ab"
    assert found(node, NearItem((WordItem("title", "kind"), blue))) == "a"
    assert found(node, SameElementItem("lines", (BackwardsItem("", "eulb"), WordItem("", "train")))) == "a"


def test_it_is_checked() -> None:
    check_items(BackwardsItem("title", "eulb"), [])
    with pytest.raises(IllegalQuery, match=r"backwards in 'lines\.x': there is nothing to read"):
        check_items(AndItem((SameElementItem("lines", (BackwardsItem("x", ""),)),)), [])


def test_it_is_marked_in_shown_text(node: TestNode) -> None:
    space = space_of(node.node.reader.view(), "song")
    title = SCHEMAS.schemas["song"].field_named("title")
    assert title is not None
    ((way,),) = query_parts(BackwardsItem("title", "eulb"), title, space)
    assert [word.terms for word in way] == [frozenset({"blue"})]


def test_rules_see_it() -> None:
    assert described(root_of(AndItem((WordItem("default", "a"), BackwardsItem("title", "eulb"))))) == "AND a title:eulb"


def test_what_an_item_does_not_say_is_refused(node: TestNode) -> None:
    class NothingItem(TermItem, frozen=True):
        """Says nothing of itself."""

    with pytest.raises(InvalidQuery, match="NothingItem is not supported yet"):
        found(node, NothingItem("title"))
    with pytest.raises(InvalidQuery, match="NothingItem in 'title' cannot be part of a phrase, near or equiv"):
        found(node, NearItem((NothingItem("title"), WordItem("title", "a"))))


# Who knows of an operator

SOURCES: Final = Path(__file__).parents[3] / "src" / "paperwasp"
MOST_FILES: Final = 2
"""Of an item: its own, and where parameters of requests or another language ask for it."""
MADE_ELSEWHERE: Final = {
    "AndItem": 12,
    "EquivItem": 3,
    "FalseItem": 8,
    "NearItem": 3,
    "NearestNeighborItem": 4,
    "NotItem": 6,
    "OrItem": 7,
    "PhraseItem": 6,
    "RangeItem": 6,
    "RankItem": 7,
    "SameElementItem": 4,
    "TermItem": 22,
    "TrueItem": 7,
    "WeakAndItem": 7,
    "WordItem": 15,
}
"""The words of all query languages, and bases of operators: items that others make, and how many files name them."""


@cache
def named() -> Counter[str]:
    """How many files name each item that an operator's file defines."""
    files = {path: ast.parse(path.read_text()) for path in SOURCES.rglob("*.py")}
    items = {
        node.name
        for path, tree in files.items()
        if path.parent.name == "operators"
        for node in tree.body
        if isinstance(node, ast.ClassDef) and node.name.endswith("Item") and node.name != "Item"
    }
    return Counter(name for tree in files.values() for name in items & _names_in(tree))


def _names_in(tree: ast.AST) -> set[str]:
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    return names | {node.name for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}


def test_few_files_name_an_item() -> None:
    assert "FuzzyItem" in named()
    too_many = {name: count for name, count in named().items() if count > MADE_ELSEWHERE.get(name, MOST_FILES)}
    assert too_many == {}, "let the item say so itself: see operators/item.py"


def test_the_bounds_are_those_that_are_reached() -> None:
    assert {name: named()[name] for name in MADE_ELSEWHERE} == MADE_ELSEWHERE
