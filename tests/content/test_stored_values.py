"""A document that is read is the document that was put: all types, with empty, zero, unset and extreme values.

What is seen of a document after its put alone (values, columns, words, summaries, imported fields, selections, and what
scripts make of it) is seen after whatever else is done with it. Run with more examples:
PAPERWASP_MODEL_EXAMPLES=200.
"""

from __future__ import annotations

import math
import os
import shutil
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any, Final

import numpy as np
import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from paperwasp.content.layouts.selected import matcher
from paperwasp.content.views.view import View
from paperwasp.coordination.messages.documents import ReindexRequest
from paperwasp.document.converters import GeoPosition
from paperwasp.document.json_format import DocumentReader
from paperwasp.document.operations import Put, Update
from paperwasp.document.predicate import parse_predicate
from paperwasp.document.tensor.literal import parse_tensor
from paperwasp.document.updates import Assign, FieldUpdate
from paperwasp.indexing import processor_of
from paperwasp.schema import parse_schemas
from paperwasp.search.operators.range_operator import RangeItem
from paperwasp.search.search import search
from paperwasp.search.served import ServedSchemas
from paperwasp.storage.documents.document_store import StoredDocument, StoredForm
from tests.content.nodes import doc_id, put, reindexed, start, update
from tests.search.queries import query_of

THING: Final = """schema thing { document thing {
  struct pair { field a type string {} field n type int {} field tags type array<string> {} }
  field number type int { indexing: attribute }
  field tick type int { indexing: attribute }
  field tock type string { indexing: summary }
  field text_i type string { indexing: index | summary }
  field text_a type string { indexing: attribute | summary }
  field text_ia type string { indexing: index | attribute | summary }
  field text_n type string { indexing: summary }
  field link_i type uri { indexing: index | summary }
  field link_n type uri { indexing: summary }
  field byte_a type byte { indexing: attribute | summary }
  field int_a type int { indexing: attribute | summary }
  field int_n type int { indexing: summary }
  field long_a type long { indexing: attribute | summary
    attribute: fast-search }
  field float_a type float { indexing: attribute | summary }
  field float_n type float { indexing: summary }
  field double_a type double { indexing: attribute | summary }
  field bool_a type bool { indexing: attribute | summary }
  field bool_n type bool { indexing: summary }
  field raw_a type raw { indexing: attribute | summary }
  field raw_n type raw { indexing: summary }
  field rule type predicate { indexing: attribute | summary
    index { arity: 2 } }
  field place_a type position { indexing: attribute | summary }
  field place_n type position { indexing: summary }
  field parent type reference<parent> { indexing: attribute | summary }
  field texts_i type array<string> { indexing: index | summary }
  field texts_a type array<string> { indexing: attribute | summary }
  field texts_n type array<string> { indexing: summary }
  field ints_a type array<int> { indexing: attribute | summary }
  field places_a type array<position> { indexing: attribute | summary }
  field weights_a type weightedset<string> { indexing: attribute | summary }
  field weights_n type weightedset<int> { indexing: summary }
  field map_a type map<string, string> { indexing: summary
    struct-field key { indexing: attribute }
    struct-field value { indexing: attribute } }
  field map_n type map<string, array<int>> { indexing: summary }
  field pair_n type pair { indexing: summary }
  field pairs_a type array<pair> { indexing: summary
    struct-field a { indexing: attribute }
    struct-field n { indexing: attribute } }
  field dense_a type tensor<float>(x[2]) { indexing: attribute | summary }
  field mapped_a type tensor(x{}) { indexing: attribute | summary }
  field mapped_n type tensor<int8>(x{},y[2]) { indexing: summary }
}
  field both type string { indexing: input text_i . " " . input text_n | index | summary }
  field both_a type string { indexing: input text_a . "+" . input text_n | attribute | summary }
  field joined type string { indexing: (input texts_n | join "+") . " " . input text_n | index | summary }
  field named type string { indexing: input text_n || "none" | attribute | summary }
  field more type long { indexing: input int_n | to_long | attribute | summary }
  field copied type array<string> { indexing: input texts_a | attribute | summary }
}"""
CHILD: Final = """schema child { document child {
  field number type int { indexing: attribute }
  field home type reference<thing> { indexing: attribute }
} %s }"""
IMPORTED: Final = (
    "text_a", "byte_a", "int_a", "long_a", "float_a", "double_a", "bool_a", "place_a", "texts_a", "ints_a", "weights_a",
    "dense_a", "mapped_a",
)  # fmt: skip
PARENT: Final = "schema parent { document parent { } }"


def schemas(thing: str, imports: tuple[str, ...]) -> dict[str, Any]:
    child = CHILD % " ".join(f"import field home.{name} as {name} {{}}" for name in imports)
    files = {"schemas/thing.sd": thing, "schemas/child.sd": child, "schemas/parent.sd": PARENT}
    return dict(parse_schemas(files).schemas)


SCHEMAS: Final = schemas(THING, IMPORTED)
OTHERS: Final = schemas(
    THING.replace("indexing: attribute | summary\n    attribute: fast-search }", "indexing: summary }")
    .replace("type predicate { indexing: attribute", "type predicate { INDEXING: attribute")
    .replace("type reference<parent> { indexing: attribute", "type reference<parent> { INDEXING: attribute")
    .replace("indexing: attribute | summary }", "indexing: summary }")
    .replace("struct-field a { indexing: attribute }", "")
    .replace("INDEXING", "indexing"),
    (),
)
"""The same without most attributes."""
READER: Final = DocumentReader(SCHEMAS["thing"].document)
PROCESSOR: Final = processor_of(SCHEMAS["thing"])
MADE: Final = ("both", "both_a", "joined", "named", "more", "copied")
TEXTS: Final = st.sampled_from(["", " ", "blue train", "Ünï \U0001f41d", '"\\\n:""', "blue :[] :{}", "x" * 300])
LEAST, MOST = -(2**31), 2**31 - 1
PLACES: Final = st.builds(GeoPosition, st.sampled_from([0, LEAST, MOST]), st.sampled_from([0, LEAST, MOST, 5]))
FLOATS: Final = st.sampled_from([0.0, -0.0, 1.5, math.inf, -math.inf, math.nan, 3.4028234663852886e38])
INTS: Final = st.sampled_from([0, -1, LEAST, MOST])
PAIRS: Final = st.fixed_dictionaries({}, optional={"a": TEXTS, "n": INTS, "tags": st.lists(TEXTS, max_size=2)})
_MAPPED: Final = [parse_tensor(f"tensor(x{{}}):{cells}") for cells in ("{}", "{{x:a}:0}", "{{x:a}:-2.5,{x:'é'}:1}")]
VALUES: Final[dict[str, st.SearchStrategy[Any]]] = {
    **dict.fromkeys(("text_i", "text_a", "text_ia", "text_n"), TEXTS),
    **dict.fromkeys(("link_i", "link_n"), st.sampled_from(["", "http://blue/a?b#c"])),
    "byte_a": st.sampled_from([0, -128, 127]),
    **dict.fromkeys(("int_a", "int_n"), INTS),
    "long_a": st.sampled_from([0, -(2**63), 2**63 - 1]),
    **dict.fromkeys(("float_a", "float_n"), FLOATS),
    "double_a": FLOATS | st.just(5e-324),
    **dict.fromkeys(("bool_a", "bool_n"), st.booleans()),
    **dict.fromkeys(("raw_a", "raw_n"), st.sampled_from([b"", b"\0", b"\xff\xfe"])),
    "rule": st.sampled_from(["true", "a in [b]", "x in [..5]"]).map(lambda text: str(parse_predicate(text))),
    **dict.fromkeys(("place_a", "place_n"), PLACES),
    "parent": st.sampled_from(["", "id:n:parent::1"]),
    **dict.fromkeys(("texts_i", "texts_a", "texts_n"), st.lists(TEXTS, max_size=2)),
    "ints_a": st.lists(INTS, max_size=2),
    "places_a": st.lists(PLACES, max_size=2),
    "weights_a": st.dictionaries(TEXTS, INTS, max_size=2),
    "weights_n": st.dictionaries(INTS, INTS, max_size=2),
    "map_a": st.dictionaries(TEXTS, TEXTS, max_size=2),
    "map_n": st.dictionaries(TEXTS, st.lists(INTS, max_size=2), max_size=2),
    "pair_n": PAIRS,
    "pairs_a": st.lists(PAIRS, max_size=2),
    "dense_a": st.sampled_from(["[0,0]", "[1,-2.5]"]).map(lambda cells: parse_tensor(f"tensor<float>(x[2]):{cells}")),
    "mapped_a": st.sampled_from(_MAPPED),
    "mapped_n": st.sampled_from(["{}", "{a:[0,-128]}"]).map(
        lambda cells: parse_tensor(f"tensor<int8>(x{{}},y[2]):{cells}")
    ),
}
DOCUMENTS: Final = st.fixed_dictionaries({}, optional=VALUES)
DEEDS: Final = ("reindex", "tick", "tock", "assign", "relayout", "close", "crash", "compact", "checkpoint", "copy")
SELECTIONS: Final = tuple(
    condition
    for name in VALUES
    for condition in (f"thing.{name}", f"thing.{name} == null", f"thing.{name} == ''", f"thing.{name} == 0")
)
_SERVED: Final = ServedSchemas()


class World:
    """A node with documents, which is started again now and then."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._copies = folder, count(1)
        self.numbers = count(1)
        self.node = start(folder / "0", SCHEMAS)
        self._generation = 1

    def do(self, deed: str, number: int, fields: dict[str, Any], field: str) -> None:
        node = self.node.node
        match deed:
            case "reindex":
                token: bytes | None = b""
                while token is not None:
                    token = reindexed(node, ReindexRequest("thing", token)).token
            case "tick":
                assert self.node.apply(update(number, "thing", tick=7)) == [True]
            case "tock":
                assert self.node.apply(update(number, "thing", tock="7")) == [True]
            case "assign":
                self._assign(number, fields, field)
            case "relayout":
                node.configure(self._generation + 1, OTHERS)
                node.configure(self._generation + 2, SCHEMAS)
                self._generation += 2
            case "compact":
                node.compact()
            case "checkpoint":
                node.checkpoint()
            case _:
                self._start_again(deed)

    def _assign(self, number: int, fields: dict[str, Any], field: str) -> None:
        """Another value, and then its own again."""
        for value in (VALUES_BETWEEN.get(field), fields.get(field)):
            updates = (FieldUpdate(field, Assign(value)),)
            assert self.node.outcomes(Update(doc_id(number, "thing"), updates))[0].existed

    def _start_again(self, deed: str) -> None:
        """`copy`: in a copy of what a crash leaves, as a backup is."""
        path = self._path()
        (self.node.close if deed == "close" else self.node.crash)()
        if deed == "copy":
            shutil.copytree(path, self._folder / str(next(self._copies)))
        self.node = start(self._path(), None)
        self.node.node.configure(self._generation, SCHEMAS)

    def _path(self) -> Path:
        return max(self._folder.iterdir(), key=lambda path: int(path.name))

    def document(self, number: int) -> StoredDocument:
        found = self.node.node.reader.view().store.get(doc_id(number, "thing").gid)
        assert found is not None
        return found

    def seen(self, number: int) -> dict[str, str]:
        """All that is seen of a document, but of what deeds change."""
        view, document = self.node.node.reader.view(), self.document(number)
        codec = view.codecs["thing"]
        typed = {k: v for k, v in codec.decode(view.fields_of(document)).items() if k not in ("tick", "tock")}
        lid = document.lid
        columns = {
            n: view.columns[k, n].get(lid) for k, n in view.columns if k == "thing" and n not in ("tick", "tock")
        }
        subject = view.subject(document)
        assert PROCESSOR is not None
        fed = {name: value for name, value in typed.items() if name not in MADE}
        made = {name: typed[name] for name in MADE if name in typed}
        assert repr(sorted(PROCESSOR.derived(doc_id(number, "thing"), fed).items())) == repr(sorted(made.items()))
        assert document.form is StoredForm.WHOLE
        get = orjson.loads(self.node.node.reader.get(doc_id(number, "thing")) or b"")
        return {
            "typed": repr(sorted(typed.items())),
            "columns": repr(sorted(columns.items())),
            "words": repr(words(view, lid)),
            "summary": repr(sorted((k, v) for k, v in self.hit(number, "thing").items() if k != "tock")),
            "child": repr(self.hit(number, "child")),
            "selections": repr([matcher(text)(subject, 0) for text in SELECTIONS]),
            "get": repr(sorted((name, value) for name, value in get.items() if name not in ("tick", "tock"))),
        }

    def hit(self, number: int, kind: str) -> dict[str, Any]:
        """What a hit shows, or for a child, the imported values."""
        item = RangeItem("number", number, number)
        more = {"prefetch": IMPORTED} if kind == "child" else {}
        (hit,) = search(self.node.node.reader.view(), query_of(item, (kind,), "unranked", **more), _SERVED).hits
        if kind == "child":
            return dict(hit.attributes or {})
        shown: dict[str, Any] = orjson.loads(hit.fields)
        return shown


VALUES_BETWEEN: Final[dict[str, Any]] = {"text_a": "other", "int_a": 3, "texts_a": ["other"], "weights_a": {"other": 1}}
"""What is assigned between; nothing else is cleared."""


def words(view: View, lid: int) -> list[tuple[str, str, bool]]:
    """Which words are in which fields."""
    found = []
    for field in view.layout.types["thing"].indexed:
        for indexed in field.indexed_fields("thing"):
            for word in ("blue", "train", "none", "ünï"):
                term = view.index.term_id(word)
                number = view.index.number_of(("thing", indexed.name))
                is_there = term >= 0 and bool(view.index.occurrences(number, term, np.array([lid], np.uint32))[0])
                found.append((indexed.name, word, is_there))
    return found


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with pytest.MonkeyPatch.context() as patch:  # nothing here loses power, and syncs take most of the time
        patch.setattr(os, "fsync", lambda _: None)
        patch.setattr(os, "fdatasync", lambda _: None)
        world = World(tmp_path_factory.mktemp("worlds"))
        yield world
        world.node.close()


def fed(world: World, fields: dict[str, Any]) -> int:
    """Puts a document and a child of it; gives its number."""
    assert PROCESSOR is not None
    number = next(world.numbers)
    id_ = doc_id(number, "thing")
    document = PROCESSOR.put(id_, {"number": number, **fields})
    child = put(number, "child", number=number, home=id_.text)
    assert world.node.apply(Put(id_, document), child) == [False, False]
    return number


@given(DOCUMENTS, st.lists(st.tuples(st.sampled_from(DEEDS), st.sampled_from(sorted(VALUES))), min_size=1, max_size=6))
@settings(
    max_examples=int(os.environ.get("PAPERWASP_MODEL_EXAMPLES", "12")),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_what_is_read_is_what_was_put(world: World, fields: dict[str, Any], deeds: list[tuple[str, str]]) -> None:
    number = fed(world, fields)
    before = world.seen(number)
    assert before["typed"] == repr(sorted((typed_of(number, fields)).items()))
    for deed, field in deeds:
        world.do(deed, number, fields, field)
        assert world.seen(number) == before, deed


def typed_of(number: int, fields: dict[str, Any]) -> dict[str, Any]:
    assert PROCESSOR is not None
    return PROCESSOR.put(doc_id(number, "thing"), {"number": number, **fields})


@given(DOCUMENTS)
@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_visit_that_is_fed_again_shows_the_same(world: World, fields: dict[str, Any]) -> None:
    """As in Vespa: what JSON hides is unset then, and what it shows is as it was."""
    number = fed(world, fields)
    shown = orjson.loads(world.node.node.reader.get(doc_id(number, "thing")) or b"")
    again = fed(world, READER.read_put({name: value for name, value in shown.items() if name != "number"}))
    found = orjson.loads(world.node.node.reader.get(doc_id(again, "thing")) or b"")
    assert found == {**shown, "number": again}


def test_hits_and_gets_hide_what_stands_for_none(world: World) -> None:
    """Vespa: attributedfw.cpp (`isDefaultValue`), JsonRenderer.java (`shouldRender`), document_field_retriever.cpp,
    JsonSerializationHelper.java."""
    none = {"byte_a": -128, "int_a": LEAST, "long_a": -(2**63), "float_a": math.nan, "raw_a": b"", "text_a": ""}
    shown = {"int_n": LEAST, "raw_n": b"", "pair_n": {"a": "", "tags": []}, "parent": "", "text_n": "", "texts_i": []}
    number = fed(world, none | shown)
    get = orjson.loads(world.node.node.reader.get(doc_id(number, "thing")) or b"")
    assert get == {"number": number, "int_n": LEAST, "raw_n": "", "pair_n": {}, "parent": "", "bool_a": False}
    hit = {name: value for name, value in world.hit(number, "thing").items() if name not in MADE}
    assert hit == {"int_n": LEAST, "raw_n": "", "pair_n": {"a": "", "tags": []}, "bool_a": False}
    assert world.hit(number, "child") == {**dict.fromkeys(IMPORTED), "bool_a": None}


def test_a_reindexed_document_keeps_the_words_that_an_empty_text_gave(world: World) -> None:
    number = fed(world, {"text_i": "", "text_n": "blue train", "texts_n": []})
    world.do("reindex", number, {}, "")
    view = world.node.node.reader.view()
    found = {name for name, word, is_there in words(view, world.document(number).lid) if is_there and word == "blue"}
    assert found == {"both", "joined"}
    world.do("tock", number, {}, "")
    assert ("both", "train", True) in words(world.node.node.reader.view(), world.document(number).lid)
