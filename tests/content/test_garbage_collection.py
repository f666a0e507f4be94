"""Documents that do not belong to their cluster go; those that do, or that change in time, stay.

Authority: https://docs.vespa.ai/en/schemas/documents.html#document-expiry, and of comparisons with fields that are not
set https://docs.vespa.ai/en/reference/document-select-language.html
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from paperwasp import limits
from paperwasp.application.model import ContentCluster
from paperwasp.application.services_model import Content, ContentDocument
from paperwasp.base.env import SYSTEM, Environment
from paperwasp.base.records import replace
from paperwasp.content.upkeep import garbage_collection
from paperwasp.content.upkeep.garbage_collection import Collection, GarbageCollector
from paperwasp.content.views.view import View
from paperwasp.content.views.visiting import visit
from paperwasp.coordination.messages.documents import VisitRequest, VisitResponse
from paperwasp.document.types import INT
from paperwasp.errors import InternalError
from paperwasp.schema.model import Field, ImportedField
from paperwasp.server.roles.content_cluster import collection_of
from paperwasp.storage.documents.document_store import DocumentStore
from tests.content.nodes import SCHEMAS, TestNode, doc_id, put, started, update


def cluster(selection: str = "", interval_s: int = 100, **selections: str) -> ContentCluster:
    """Of document types with these selections, collected."""
    documents = tuple(ContentDocument(name, selection=selections[name]) for name in selections)
    declared = Content("c", documents, selection, garbage_collection=True, garbage_collection_interval_s=interval_s)
    return ContentCluster(declared, SCHEMAS)


class Collector:
    """Garbage collection of a node, by a clock that is moved."""

    def __init__(self, node: TestNode, collected: ContentCluster) -> None:
        self.now_ns = self.due_ns = 0
        environment = Environment(time_ns=lambda: 10**18 + self.now_ns, monotonic_ns=lambda: self.now_ns)
        collection = collection_of(collected)
        assert collection is not None
        self.chore = GarbageCollector(node.node.reader, node.node.operations, collection, environment)
        self.node = node

    def forward(self, seconds: float) -> int:
        """Does what is due until then; gives the number of documents left."""
        end_ns = self.now_ns + round(seconds * 1e9)
        while self.due_ns <= end_ns:
            self.now_ns = self.due_ns
            self.due_ns += max(1, round(self.chore() * 1e9))
        self.now_ns = end_ns
        return self.node.node.reader.view().live_count


def test_what_is_collected() -> None:
    assert collection_of(cluster(music="music.year > 5", book="")) == Collection(
        ("music",), "not (music and music.year > 5 or book)", 100, "not (music and music.year > 5 or book)"
    )
    both = collection_of(cluster("id.namespace == 'n'", music="music.year > 5", book=""))
    assert both is not None and both.document_types == ("music", "book")
    assert collection_of(cluster(music="", book="")) is None
    assert collection_of(cluster(music="music.year > 5", interval_s=0)) is None, "an interval of 0 is none in Vespa"
    off = cluster(music="music.year > 5")
    assert collection_of(replace(off, declared=replace(off.declared, garbage_collection=False))) is None


def test_there_is_no_condition_on_imported_fields() -> None:
    music = SCHEMAS["music"]
    imported = Field("size", INT, imported=ImportedField("size", "ref", "size", "book"))
    schemas = {"music": replace(music, fields={**music.fields, "size": imported})}
    found = collection_of(replace(cluster(music="music.size > 5"), schemas=schemas))
    assert found is not None and found.condition is None


def test_documents_that_do_not_match_go(tmp_path: Path) -> None:
    with started(tmp_path) as node:
        node.apply(*(put(year, year=year) for year in range(20)), put("none"), put("book", "book", pages=1))
        collector = Collector(node, cluster(music="music.year >= 15", book=""))
        assert collector.forward(59) == 22, "not at once"
        assert collector.forward(2) == 7
        assert node.get("none") is not None, "of a field that is not set there is nothing to tell"
        node.apply(*(put(year, year=year) for year in range(5)))
        assert collector.forward(90) == 12
        assert collector.forward(20) == 7


def test_the_selection_of_the_cluster_counts_too(tmp_path: Path) -> None:
    with started(tmp_path) as node:
        node.apply(*(put(year, year=year) for year in range(20)), put(3, "book", pages=1), put(4, "book", pages=1))
        collector = Collector(
            node, cluster('id.specific != "3" and id.specific != "16"', music="music.year >= 15", book="")
        )
        assert collector.forward(61) == 5
        assert node.get("4", "book") is not None


def test_documents_expire(tmp_path: Path) -> None:
    """`now()` is the time of the round, in seconds, and of the operation."""
    with started(tmp_path) as node:
        now_s = SYSTEM.time_ns() // 10**9
        node.apply(*(put(days, plays=now_s - days * 86400) for days in range(5)))
        collector = Collector(node, cluster(music="music.plays > now() - 180000"))
        collector.due_ns = SYSTEM.time_ns() - 10**18
        assert collector.forward(collector.due_ns / 1e9 + 1) == 3


def test_a_change_that_comes_between_wins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with started(tmp_path) as node:
        node.apply(put("a", year=1), put("b", year=1))

        def visited(store: DocumentStore, view_of: Callable[[], View], request: VisitRequest) -> VisitResponse:
            found = visit(store, view_of, request)
            node.apply(update("a", year=9))
            return found

        monkeypatch.setattr(garbage_collection, "visit", visited)
        assert Collector(node, cluster(music="music.year > 5")).forward(61) == 1
        assert node.get("a") == {"year": 9}


def test_clients_go_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with started(tmp_path) as node:
        node.apply(put("a", year=1))
        monkeypatch.setattr(node.node.operations, "waiting", lambda: limits.OPERATION_QUEUE_LENGTH)
        collector = Collector(node, cluster(music="music.year > 5"))
        assert collector.forward(80) == 1
        monkeypatch.setattr(node.node.operations, "waiting", lambda: 0)
        assert collector.forward(1) == 0


def test_it_goes_on_in_chunks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "COLLECT_DOCUMENTS", 7)
    with started(tmp_path) as node:
        node.apply(*(put(year, year=year) for year in range(50)))
        collector = Collector(node, cluster(music="music.year > 100"))
        collector.now_ns = round(limits.COLLECT_FIRST_SECONDS * 1e9)
        for left in (43, 36, 29, 22, 15, 8, 1, 0):
            assert collector.chore() >= limits.COLLECT_PAUSE_SECONDS
            assert node.node.reader.view().live_count == left


def test_a_node_that_fails_fails_the_chore(tmp_path: Path) -> None:
    with started(tmp_path) as node:
        node.apply(put("a", year=1))
        collector = Collector(node, cluster(music="music.year > 5"))
        node.node.fault.begin(OSError("the disk is gone"))
        with pytest.raises(InternalError):
            collector.forward(61)
        node.node.fault.end()
        assert collector.forward(1) == 0, "the round goes on"
        assert node.get("a") is None and doc_id("a") is not None
