"""What a node holds beside what it shows, and what queries find, compared with the plain model of `document_model`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import orjson

from paperwasp.content.state.bitmaps import lids_of
from paperwasp.content.upkeep.graph_building import unbuilt_graphs
from paperwasp.content.views.view import View
from paperwasp.document.ids import DocumentId
from paperwasp.document.shown import DEFAULT_FORM, render_tensors
from paperwasp.document.tensor.types import TensorType
from paperwasp.document.tensor.value import TensorBuilder
from paperwasp.search.operators.item import Item
from paperwasp.search.operators.predicate import PredicateItem
from paperwasp.search.operators.range_operator import RangeItem
from paperwasp.search.operators.same_element import SameElementItem
from paperwasp.search.operators.word import WordItem
from paperwasp.search.search import search
from paperwasp.search.served import ServedSchemas
from paperwasp.storage.attributes import looks_unset
from paperwasp.storage.attributes.tensor import TensorView
from tests.content.document_model import RULES, Fields
from tests.content.document_schemas import ALL_FIELDS, Json, attributes_of, parts_of
from tests.content.nodes import TestNode
from tests.search.queries import query_of
from tests.storage.attributes.graph_checks import check_graph


def check_columns(view: View, documents: Mapping[int, Fields | None]) -> None:
    """Every column of the type `thing` has what its documents show, and its live rows are those of the documents."""
    there = {name: fields for name, fields in documents.items() if fields is not None}
    live = lids_of(view.live)
    assert len(live) == view.live_count == sum(view.live_counts.values())
    live = live[view.document_types[live] == view.type_numbers["thing"]]
    lids = {view.gid(int(lid)): int(lid) for lid in live}
    assert len(lids) == view.live_counts["thing"] == len(there)
    codec = view.codecs["thing"]
    for name, fields in there.items():
        lid = lids[DocumentId("n", "thing", str(name)).gid]
        typed = codec.decode(orjson.dumps(fields))
        for field in view.layout.types["thing"].attributes:
            found = view.columns["thing", field.name].get(lid)
            value = typed.get(field.name)
            expected = None if looks_unset(field.type, value) else value
            assert found == expected, f"document {name}, field {field.name}"

        for source in view.layout.types["thing"].columns:
            if source.read is not None:
                (elements,) = source.values([typed])
                found = view.columns["thing", source.name].get(lid)
                assert found == (elements or None), f"document {name}, part {source.name}"


def check_graphs(view: View) -> None:
    """Graphs over vectors that are built find what comparing all vectors finds."""
    for (name, _), column in view.columns.items():
        if isinstance(column, TensorView) and column.graph is not None:
            lids = lids_of(view.live)
            lids = lids[view.document_types[lids] == view.type_numbers[name]]
            query = TensorBuilder(TensorType(column.type.indexed, column.type.cell_type))
            query.subspace((), [1.5] * column.type.shape[0])
            check_graph(column, lids.tolist(), "", query.build())


def build_graphs(node: TestNode) -> None:
    """Has the node build the graphs that it lacks."""
    chore = node.node.graph_building()
    while any(unbuilt_graphs(node.node.reader.view())):
        chore()


def stored_of(node: TestNode, name: int) -> Fields | None:
    """All that is kept of a document, as JSON; empty values too."""
    view, id_ = node.node.reader.view(), DocumentId("n", "thing", str(name))
    document = view.store.get(id_.gid)
    if document is None:
        return None
    kept = render_tensors(view.fields_of(document), view.layout.types["thing"].types, DEFAULT_FORM)
    fields: Fields = orjson.loads(kept)
    return fields


def shown_of(node: TestNode, name: int) -> Fields | None:
    """All fields of a document, those that are made too."""
    found = node.node.reader.get(DocumentId("n", "thing", str(name)), frozenset(ALL_FIELDS))
    fields: Fields | None = None if found is None else orjson.loads(found)
    return fields


def _has_pair(pairs: list[Json], least: int, word: str) -> bool:
    return any(least <= pair.get("a", -99) <= 5 and pair.get("b") == word for pair in pairs)


_EVERY: Final = 2**64 - 1
_PROFILES: Final = ServedSchemas()
SEARCHES: Final[tuple[tuple[str, Item, Callable[[Fields], bool]], ...]] = (
    ("title", WordItem("title", "two"), lambda fields: fields.get("title") == "two words"),
    ("lower", WordItem("lower", "words"), lambda fields: fields.get("lower") == "two words"),
    ("lyrics", WordItem("lyrics", "one"), lambda fields: "one" in fields.get("lyrics", ())),
    ("rule", PredicateItem("rule", (("a", "b", _EVERY),), (("x", 3, _EVERY),)),
     lambda fields: "rule" in fields and RULES[fields["rule"]]),
    ("count", RangeItem("count", -5, 5), lambda fields: -5 <= fields.get("count", 9) <= 5),
    ("echo", RangeItem("echo", -5, 5), lambda fields: -5 <= fields.get("echo", 9) <= 5),
    ("tenfold", RangeItem("tenfold", -90, 30), lambda fields: -90 <= fields.get("tenfold", 99) <= 30),
    ("copied", WordItem("copied", "x"), lambda fields: "x" in fields.get("copied", ())),
    ("votes", WordItem("votes", "b"), lambda fields: "b" in fields.get("votes", ())),
    ("pairs", RangeItem("pairs.a", 2, 4), lambda fields: any(2 <= p.get("a", 0) <= 4 for p in fields.get("pairs", ()))),
    ("pairs", SameElementItem("pairs", (RangeItem("a", 1, 5), WordItem("b", "x"))),
     lambda fields: _has_pair(fields.get("pairs", []), 1, "x")),
    ("sizes", SameElementItem("sizes", (WordItem("key", "a"), RangeItem("value", -9, 9))),
     lambda fields: -9 <= fields.get("sizes", {}).get("a", 99) <= 9),
    ("sizes", WordItem("sizes.key", "c"), lambda fields: "c" in fields.get("sizes", ())),
    ("named", SameElementItem("named", (WordItem("key", "b"), RangeItem("value.a", 0, 5))),
     lambda fields: 0 <= fields.get("named", {}).get("b", {}).get("a", -1) <= 5),
    ("named", WordItem("named.value.b", "one"),
     lambda fields: any(pair.get("b") == "one" for pair in fields.get("named", {}).values())),
)  # fmt: skip
"""A field, a query for it or its parts, and the documents that it finds."""


def check_searches(view: View, documents: Mapping[int, Fields | None], variant: int) -> None:
    """Queries find the documents that the model has for them, where the variant has what they look into."""
    searched = {*attributes_of(variant), *parts_of(variant), "title", "lower", "lyrics"}
    for name, item, is_found in SEARCHES:
        if name in searched:
            request = query_of(item, ("thing",), rank_profile="unranked", hits=len(documents) + 1)
            found = {hit.gid for hit in search(view, request, _PROFILES).hits}
            expected = {key for key, fields in documents.items() if fields and is_found(fields)}
            assert {key for key in documents if DocumentId("n", "thing", str(key)).gid in found} == expected, item
            assert len(found) == len(expected), item


def check_stored(view: View, documents: Mapping[int, Fields | None]) -> set[str]:
    """The store has the documents, with their rows, and tombstones of no others; gives the names of those."""
    there = {str(name) for name, fields in documents.items() if fields is not None}
    found: set[str] = set()
    removed: set[str] = set()
    for gid, document in view.store.scan(removes=True):
        (removed if document.is_removed else found).add(DocumentId.parse(document.id).user_specified)
        assert document.is_removed or view.gid(document.lid) == gid
        assert document.is_removed or int(view.timestamps[document.lid]) >= document.timestamp_us
    assert found == there and not removed & there
    return removed
