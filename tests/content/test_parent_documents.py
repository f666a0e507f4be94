"""References and imported fields: random operations on children and parents, in any order and across restarts, against
dicts of documents.

Authority: https://docs.vespa.ai/en/schemas/parent-child.html
"""

from __future__ import annotations

import math
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from threading import Event, Thread
from types import MappingProxyType
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from paperwasp import limits
from paperwasp.content.views.view import View
from paperwasp.document.operations import Operation, Put, Remove
from paperwasp.schema import parse_schemas
from paperwasp.storage.attributes import ColumnView
from paperwasp.storage.attributes.sort_order import SortOrder, order_keys
from tests.content.nodes import TestNode, assigned, doc_id, put, remove, start, started, update

PACKAGE = {
    "country": """document country {
        field size type long { indexing: attribute } field motto type string { indexing: attribute } }""",
    "city": """document city {
        field country type reference<country> { indexing: attribute }
        field people type int { indexing: attribute | summary }
        field title type string { indexing: attribute }
        field open type bool { indexing: attribute }
        field marks type array<int> { indexing: attribute }
        field tags type weightedset<string> { indexing: attribute }
        field place type position { indexing: attribute }
      }
      import field country.size as country_size {}
      import field country.motto as motto {}""",
    "person": """document person {
        field home type reference<city> { indexing: attribute }
        field work type reference<city> { indexing: attribute }
        field age type int { indexing: attribute }
      }
      import field home.people as people {}
      import field home.title as city_name {}
      import field work.title as work_name {}
      import field home.open as open {}
      import field home.marks as marks {}
      import field home.tags as tags {}
      import field home.place as place {}
      import field home.country_size as country_size {}
      import field home.motto as motto {}""",
}
SCHEMAS = dict(parse_schemas({f"schemas/{n}.sd": f"schema {n} {{ {t} }}" for n, t in PACKAGE.items()}).schemas)
IMPORTED = {
    "city": {"country_size": ("country", "size"), "motto": ("country", "motto")},
    "person": {
        "people": ("home", "people"), "city_name": ("home", "title"), "work_name": ("work", "title"),
        "open": ("home", "open"), "marks": ("home", "marks"), "tags": ("home", "tags"), "place": ("home", "place"),
        "country_size": ("home", "country_size"), "motto": ("home", "motto"),
    },
}  # fmt: skip
PARENTS = {"country": "country", "home": "city", "work": "city"}

NAMES = st.integers(0, 4)


def ids(kind: str) -> st.SearchStrategy[str]:
    return st.one_of(st.just(""), NAMES.map(lambda name: str(doc_id(name, kind))))


VALUES: dict[str, dict[str, st.SearchStrategy[Any]]] = {
    "country": {"size": st.integers(-3, 3), "motto": st.sampled_from(["", "E pluribus", "e PLURIBUS", "fi"])},
    "city": {
        "country": ids("country"), "people": st.integers(-3, 3), "title": st.sampled_from(["", "Oslo", "oslo", "Rom"]),
        "open": st.booleans(), "marks": st.lists(st.integers(0, 3), max_size=3),
        "tags": st.dictionaries(st.sampled_from(["a", "b"]), st.integers(-2, 2)),
        "place": st.tuples(st.integers(-9, 9), st.integers(-9, 9)),
    },
    "person": {"home": ids("city"), "work": ids("city"), "age": st.integers(0, 9)},
}  # fmt: skip
KINDS = list(VALUES)


def documents_of(kind: str) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({}, optional=VALUES[kind])


def assigned_to(kind: str) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({}, optional={name: st.one_of(st.none(), v) for name, v in VALUES[kind].items()})


OPERATIONS = st.sampled_from(KINDS).flatmap(
    lambda kind: st.one_of(
        st.builds(lambda name, fields: put(name, kind, **fields), NAMES, documents_of(kind)),
        st.builds(lambda name, fields: update(name, kind, **fields), NAMES, assigned_to(kind)),
        st.builds(lambda name: remove(name, kind), NAMES),
    )
)
Documents = dict[tuple[str, str], dict[str, Any]]


def applied(documents: Documents, operation: Operation) -> None:
    key = (operation.id.document_type, operation.id.text)
    if isinstance(operation, Put):
        documents[key] = dict(operation.fields)
    elif isinstance(operation, Remove):
        documents.pop(key, None)
    elif key in documents:
        documents[key] |= assigned(operation)


def value_of(documents: Documents, key: tuple[str, str], name: str) -> Any:
    """A field of a document, imported ones by looking through the documents."""
    kind = key[0]
    if name not in IMPORTED.get(kind, {}):
        return documents[key].get(name) or (documents[key].get(name) if name in ("people", "open", "size") else None)
    reference, target = IMPORTED[kind][name]
    parent = (PARENTS[reference], documents[key].get(reference) or "")
    return value_of(documents, parent, target) if parent in documents else None


def check(view: View, documents: Documents) -> None:
    """Everything that a view says of its imported fields beside what the documents say."""
    lids = np.flatnonzero(np.unpackbits(view.live.view(np.uint8), bitorder="little")).astype(np.uint32)
    stored = view.store.multi_get([view.gid(int(lid)) for lid in lids])
    by_id = {document.id: int(lid) for document, lid in zip(stored, lids, strict=True) if document is not None}
    assert by_id.keys() == {text for _, text in documents}
    for kind, imported in IMPORTED.items():
        keys = [key for key in documents if key[0] == kind]
        rows = np.array([by_id[text] for _, text in keys], np.uint32)
        for name in imported:
            column = view.columns[kind, name]
            check_column(column, rows, [value_of(documents, key, name) for key in keys], is_bool=name == "open")


def check_column(column: ColumnView, rows: np.ndarray, values: list[Any], is_bool: bool) -> None:
    assert [column.get(int(row)) for row in rows] == values
    if is_bool:  # that is unset in a parent counts as false
        assert [bool(value) for value in column.gather(rows)] == [bool(value) for value in values]
        keys = order_keys(column, rows, SortOrder(missing="as", missing_value="false")).tolist()
        assert [key > 0 for key in keys] == [bool(value) for value in values]
        return
    if not column.is_searched:
        return
    check_matches(column, rows, values)
    single = [value for value in values if isinstance(value, int)]
    if single and not column.is_array and not column.is_string:
        numbers = column.as_float64(rows).tolist()
        for number, value in zip(numbers, values, strict=True):
            assert number == value if value is not None else math.isnan(number)
    if column.is_array:
        assert column.counts(rows).tolist() == [len(value or ()) for value in values]
        weights = column.weights(rows, "a").tolist()
        expected = [value.get("a") if isinstance(value, dict) else None for value in values]
        assert [None if math.isnan(weight) else weight for weight in weights] == expected
        firsts = [float(value[0]) if isinstance(value, list) and value else 0.0 for value in values]
        assert column.element(rows, 0).tolist() == firsts
    else:
        keys = order_keys(column, rows, SortOrder())
        texts = [value.lower() if isinstance(value, str) else value for value in values]
        order = sorted(range(len(rows)), key=lambda place: (texts[place] is not None, texts[place] or 0))
        assert np.argsort(keys, kind="stable").tolist() == order


def is_text(text: str, each: str) -> bool:
    return each.lower() == text.lower()


def is_within(low: int | None, high: int | None, each: float) -> bool:
    return (low is None or each >= low) and (high is None or each <= high)


def check_matches(column: ColumnView, rows: np.ndarray, values: list[Any]) -> None:
    def is_in(bitmap: np.ndarray) -> list[bool]:
        assert len(bitmap) == (column.limit + 63) // 64
        return [bool(int(bitmap[row >> 6]) >> (int(row) & 63) & 1) for row in rows]

    def elements(value: Any) -> list[Any]:
        return list(value) if isinstance(value, list | dict) else [value]

    def any_of(matches: Callable[[Any], bool]) -> list[bool]:
        return [any(each is not None and matches(each) for each in elements(value)) for value in values]

    if column.is_string:
        for text in ("oslo", "E PLURIBUS", "a"):
            expected = any_of(partial(is_text, text))
            assert is_in(column.equal_bitmap(text)) == expected
    else:
        for low, high in ((-1, 2), (None, 0), (1, None), (2, 2)):
            expected = any_of(partial(is_within, low, high))
            assert is_in(column.range_bitmap(low, high)) == expected
    assert 0 <= column.estimate(column.any_of("a")) <= column.limit
    assert 0 <= column.estimate(column.in_range(0, 1)) <= column.limit


@pytest.fixture(autouse=True, scope="module")
def _without_syncs() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(os, "fsync", lambda _: None)
        patched.setattr(os, "fdatasync", lambda _: None)
        yield


class ReferencesModel(RuleBasedStateMachine):
    """`documents` is what the node should hold."""

    @initialize()
    def begin(self) -> None:
        self.path = Path(tempfile.mkdtemp())
        self.schemas = SCHEMAS
        self.node = start(self.path, SCHEMAS)
        self.documents: Documents = {}
        self.earlier: list[tuple[View, list[list[Any]]]] = []

    @rule(operations=st.lists(OPERATIONS, max_size=12))
    def apply(self, operations: list[Operation]) -> None:
        for operation in operations:
            applied(self.documents, operation)
        self.node.apply(*operations)

    @rule()
    def save(self) -> None:
        self.node.node.checkpoint()

    @rule(crash=st.booleans(), dense=st.booleans())
    def restart(self, crash: bool, dense: bool) -> None:
        (self.node.crash if crash else self.node.close)()
        with patch.object(limits, "DEAD_ROWS_LEAST", 1 if dense else limits.DEAD_ROWS_LEAST):
            self.node = start(self.path, SCHEMAS)
        self.earlier = []

    @rule(kind=st.sampled_from(["country", "city"]))
    def a_type_goes_and_comes(self, kind: str) -> None:
        self.node.node.configure(2, {name: schema for name, schema in SCHEMAS.items() if name != kind})
        self.documents = {key: fields for key, fields in self.documents.items() if key[0] != kind}
        self.node.node.configure(3, SCHEMAS)

    @rule()
    def hold_a_view(self) -> None:
        view = self.node.node.reader.view()
        self.earlier.append((view, parents_in(view)))

    @invariant()
    def all_is_as_the_documents_say(self) -> None:
        if hasattr(self, "node"):
            check(self.node.node.reader.view(), self.documents)
            for view, parents in self.earlier:
                assert_not_beyond(view, parents)

    def teardown(self) -> None:
        self.node.close()
        shutil.rmtree(self.path)


def parents_in(view: View) -> list[list[Any]]:
    columns = [view.columns[kind, name] for kind, imported in IMPORTED.items() for name in imported]
    return [column.targets.tolist() for column in columns]  # type: ignore[attr-defined]


def assert_not_beyond(view: View, parents: list[list[Any]]) -> None:
    """A view that a reader holds leads where it led, and never to rows that it does not have."""
    assert parents_in(view) == parents
    everyone = np.arange(view.limit, dtype=np.uint32)
    for kind, imported in IMPORTED.items():
        for name in imported:
            column = view.columns[kind, name]
            lids, is_there = column.parents(everyone)  # type: ignore[attr-defined]
            assert (lids[is_there] < view.limit).all()
            assert len(column.gather(everyone)) == view.limit


ReferencesModel.TestCase.settings = settings(
    max_examples=30, stateful_step_count=25, deadline=None, suppress_health_check=list(HealthCheck), print_blob=True
)
TestReferences = ReferencesModel.TestCase


@pytest.fixture
def node(tmp_path: Path) -> Iterator[TestNode]:
    with started(tmp_path, SCHEMAS) as running:
        yield running


def imported(node: TestNode, name: str, kind: str = "person", field: str = "people") -> Any:
    view = node.node.reader.view()
    document = view.store.get(doc_id(name, kind).gid)
    assert document is not None
    return view.columns[kind, field].get(document.lid)


def test_a_parent_that_comes_after_its_children(node: TestNode) -> None:
    node.apply(put("anna", "person", home=str(doc_id("oslo", "city"))))
    assert imported(node, "anna") is None
    node.apply(put("oslo", "city", people=7))
    assert imported(node, "anna") == 7
    node.apply(update("oslo", "city", people=8))
    assert imported(node, "anna") == 8
    node.apply(put("oslo", "city", people=9))
    assert imported(node, "anna") == 9
    node.apply(remove("oslo", "city"))
    assert imported(node, "anna") is None


def test_parents_and_children_of_one_batch(node: TestNode) -> None:
    home = str(doc_id("oslo", "city"))
    node.apply(put("oslo", "city", people=1), put("anna", "person", home=home), put("oslo", "city", people=2))
    assert imported(node, "anna") == 2


def test_ids_that_name_one_document_in_two_ways(node: TestNode) -> None:
    """A number may be written with zeros before it."""
    ways = ["id:n:city:n=7:x", "id:n:city:n=07:x", "id:n:city:n=007:x"]
    node.apply(*(put(place, "person", home=way) for place, way in enumerate(ways)))
    city = doc_id("x", "city")
    by_number = type(city)("n", "city", "x", number=7)
    node.apply(Put(by_number, {"people": 3}))
    assert [imported(node, str(place)) for place in range(3)] == [3, 3, 3]
    node.apply(Remove(by_number))
    assert [imported(node, str(place)) for place in range(3)] == [None, None, None]


def test_nothing_is_kept_where_nothing_refers(tmp_path: Path) -> None:
    only = {"country": SCHEMAS["country"]}
    with started(tmp_path, only) as node:
        node.apply(put("no", "country", size=1))
        assert node.node._current.state.references.snapshot(node.node._current.state.gid_map) == {}


def test_a_field_whose_parent_has_no_such_column_is_not_there(tmp_path: Path) -> None:
    """The child's schema is deployed, the parent's is stored only."""
    with started(tmp_path, None) as node:
        node.node.configure(1, SCHEMAS, MappingProxyType({"city": "store-only"}))
        assert ("person", "people") not in node.node.reader.view().columns


def test_readers_beside_the_writer(node: TestNode) -> None:
    """Parents are put again with the same number in two fields, while readers ask: they never see two moments mixed."""
    node.apply(*(put(place, "person", home=str(doc_id(place % 3, "city"))) for place in range(60)))
    node.apply(*(put(place, "city", people=0, marks=[0]) for place in range(3)))
    failures: list[BaseException] = []
    is_done = Event()

    def read() -> None:
        try:
            while not is_done.is_set():
                view = node.node.reader.view()
                lids = np.arange(60, dtype=np.uint32)
                people, marks = view.columns["person", "people"], view.columns["person", "marks"]
                assert people.as_float64(lids).tolist() == marks.element(lids, 0).tolist()
        except BaseException as error:
            failures.append(error)

    readers = [Thread(target=read) for _ in range(2)]
    for reader in readers:
        reader.start()
    for number in range(1, 100):
        node.apply(*(put(place, "city", people=number, marks=[number]) for place in range(3)))
    is_done.set()
    for reader in readers:
        reader.join()
    assert not failures, failures[0]
    assert imported(node, "59") == 99
