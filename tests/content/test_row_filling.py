"""The row store of a node: which documents come into it, and what is left of it after a stop, a crash, another layout
and new rows."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from threading import Event
from types import MappingProxyType
from typing import Any, Final

import orjson
import pytest

from paperwasp import limits
from paperwasp.content.node import ContentNode
from paperwasp.content.upkeep.row_filling import RowFilling
from paperwasp.coordination.messages.documents import ApplyChanges
from paperwasp.core._core import PlainChange
from paperwasp.document.operations import Outcome
from paperwasp.document.plain_fields import PlainFields
from paperwasp.storage.documents.document_store import DocumentStore
from paperwasp.storage.documents.row_store import RowStore
from tests.content.nodes import MUSIC, SCHEMAS, TestNode, doc_id, put, remove, start, started, update
from tests.content.row_checks import check_rows, fill_rows

PLAIN: Final = PlainFields(SCHEMAS["music"].document)


def names_with_rows(node: ContentNode) -> list[str]:
    """The last parts of the ids of the documents that are in the row store, in order."""
    view = node.reader.view()
    rows = [view.rows.rows.get(lid) for lid in range(view.limit)]
    return sorted(row[0].decode().rpartition(":")[2] for row in rows if row is not None)


def refuse(*_: object) -> None:
    raise AssertionError("rows are there already")


def test_documents_are_in_the_row_store_as_they_were_put(tmp_path: Path) -> None:
    with started(tmp_path) as node:
        node.apply(*(put(k, title=f"word{k}", year=k) for k in range(5)), put("x", "book", pages=3))
        node.apply(remove(1), put(2, title="again"))
        fill_rows(node.node)
        assert check_rows(node.node.reader.view(), whole=True) == 5
        assert names_with_rows(node.node) == ["0", "2", "3", "4", "x"]
        rows = node.node.reader.view().rows.rows
        assert rows.get(6) == (str(doc_id(2)).encode(), b'{"title":"again"}')
        assert node.node.sizes_bytes()["rows"] == node.node.reader.view().rows.size_bytes() > 0


def test_filling_leaves_the_cache_of_the_store_alone(tmp_path: Path) -> None:
    with started(tmp_path) as node:
        node.apply(*(put(k, title=f"word{k}" * 20) for k in range(500)))
        node.node.checkpoint()
        store = node.node.reader.view().store
        before = store.cache_bytes()
        fill_rows(node.node)
        assert store.cache_bytes() == before
        assert check_rows(node.node.reader.view(), whole=True) == 500  # reads the same documents to show them
        assert store.cache_bytes() > before


def plain(name: str, **fields: object) -> PlainChange:
    found = PLAIN.read_change("id:n:music::", name, orjson.dumps({"fields": fields}), False)
    assert isinstance(found, PlainChange)
    return found


def apply_plain(node: TestNode, *puts: PlainChange) -> None:
    changes = ApplyChanges()
    for change in puts:
        changes.add([change], [1])
    answers: list[Any] = []
    done = Event()

    def take(answer: object) -> None:
        answers.append(answer)
        if len(answers) == len(puts):
            done.set()

    operations = node.node.operations
    with operations.adding():
        operations.add_changes(changes, [take] * len(puts))
    assert done.wait(60) and all(isinstance(answer, Outcome) for answer in answers)


def test_plain_puts_are_added_without_reading_them_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[int] = []
    multi_get = DocumentStore.multi_get

    def counted(self: DocumentStore, gids: Sequence[bytes], in_passing: bool = False) -> Any:
        read.append(len(gids))
        return multi_get(self, gids, in_passing)

    with started(tmp_path) as node:
        apply_plain(node, *(plain(str(k), title=f'"word" {k}', year=k) for k in range(300)))
        node.apply(put("x", "book", pages=3), put(5, title="again"), remove(7), update(8, year=1))
        apply_plain(node, plain("9", title="again"), plain("y", year=1))
        with monkeypatch.context() as patched:
            patched.setattr(DocumentStore, "multi_get", counted)
            fill_rows(node.node)
        assert sum(read) == 2  # the others were no plain puts
        assert check_rows(node.node.reader.view(), whole=True) == 300
        assert node.node.reader.view().rows.noted(range(304)) == [None] * 304


def test_plain_puts_are_shown_without_reading_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with started(tmp_path) as node:
        apply_plain(node, *(plain(str(k), title=f'"word" {k}', year=k) for k in range(20)))
        node.apply(put("x", "book", pages=3), update(8, year=1))
        apply_plain(node, plain("9", title="again"), plain("y"))
        view = node.node.reader.view()
        lids = [lid for lid in range(view.limit) if not view.is_dead(lid)][::-1]
        gids = view.gids_of(lids)
        stored = view.store.multi_get(gids)
        assert None not in stored and view.documents_of(lids, gids) == stored
        puts = [lid for lid in lids if lid != 20]  # all but the book, which is no plain put
        with monkeypatch.context() as patched:
            patched.setattr(DocumentStore, "multi_get", lambda _, gids: [] if not gids else refuse())
            assert len(view.documents_of(puts, view.gids_of(puts))) == len(puts) == 21
        fill_rows(node.node)
        assert view.documents_of(lids, gids) == stored and view.documents_of([], []) == []


def test_few_bytes_of_puts_are_noted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "ROW_NOTED_BYTES", 100)
    with started(tmp_path) as node:
        for name in "abcdef":
            apply_plain(node, plain(name, title="t" * 20))
        noted = [put is not None for put in node.node.reader.view().rows.noted(range(7))]
        assert noted == [False, False, False, True, True, True, False]
        fill_rows(node.node)
        assert check_rows(node.node.reader.view(), whole=True) == 6


def test_a_few_documents_are_added_when_no_more_come(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "ROW_CHUNK_LEAST", 3)
    with started(tmp_path) as node:
        filling = RowFilling(node.node.reader)
        node.apply(put(1))
        assert filling() == limits.ROW_SECONDS and names_with_rows(node.node) == []
        node.apply(put(2))
        assert filling() == limits.ROW_SECONDS and names_with_rows(node.node) == []
        assert filling() == limits.ROW_SECONDS and names_with_rows(node.node) == ["1", "2"]
        node.apply(put(3), put(4), put(5))
        assert filling() == limits.ROW_SECONDS and names_with_rows(node.node) == list("12345")
        assert filling() == limits.ROW_SECONDS


def test_a_chunk_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with started(tmp_path) as node:
        node.apply(*(put(k, title="t" * 100) for k in range(600)))
        filling = RowFilling(node.node.reader)
        monkeypatch.setattr(limits, "ROW_CHUNK_DOCUMENTS", 100)
        filling()
        filling()
        assert node.node.reader.view().rows.limit == 100
        monkeypatch.setattr(limits, "ROW_CHUNK_DOCUMENTS", 1000)
        monkeypatch.setattr(limits, "ROW_CHUNK_BYTES", 1000)
        filling()
        assert node.node.reader.view().rows.limit == 356  # documents are read in steps of 256


def test_what_was_changed_in_place_is_not_added(tmp_path: Path) -> None:
    with started(tmp_path) as node:
        node.apply(put(1, year=1), put(2, year=2))
        node.apply(update(1, year=5))
        fill_rows(node.node)
        assert names_with_rows(node.node) == ["2"]


def test_streamed_documents_are_not_added(tmp_path: Path) -> None:
    with started(tmp_path, None) as node:
        node.node.configure(1, SCHEMAS, MappingProxyType({"music": "streaming"}))
        node.apply(put(1), put("x", "book"), put(2))
        fill_rows(node.node)
        assert names_with_rows(node.node) == ["x"]


@pytest.mark.parametrize("stop", ["close", "crash"])
def test_rows_are_taken_over_after_a_start(tmp_path: Path, stop: str, monkeypatch: pytest.MonkeyPatch) -> None:
    node = start(tmp_path)
    node.apply(*(put(k, title=f"word{k}") for k in range(5)))
    node.node.checkpoint()
    node.apply(put(2, title="again"), put(7))
    fill_rows(node.node)
    getattr(node, stop)()
    monkeypatch.setattr(RowStore, "add", refuse)
    with started(tmp_path) as again:
        assert names_with_rows(again.node) == []  # the start has read none of them
        fill_rows(again.node)
        assert check_rows(again.node.reader.view(), whole=True) == 6


def test_a_row_store_that_is_lost_or_damaged_is_made_again(tmp_path: Path) -> None:
    with started(tmp_path) as node:
        node.apply(*(put(k, title=f"word{k}") for k in range(5)))
        fill_rows(node.node)
    (path,) = tmp_path.glob("index-*/rows/*.rows")
    content = path.read_bytes()
    path.write_bytes(content[:-1] + b"?")
    with started(tmp_path) as node:
        fill_rows(node.node)
        assert check_rows(node.node.reader.view(), whole=True) == 5
    assert path.read_bytes() == content
    shutil.rmtree(path.parent)
    with started(tmp_path) as node:
        fill_rows(node.node)
        assert check_rows(node.node.reader.view(), whole=True) == 5


def test_a_repaired_log_leaves_no_rows(tmp_path: Path) -> None:
    with started(tmp_path) as node:
        node.apply(*(put(k, title=f"word{k}") for k in range(5)))
        fill_rows(node.node)
    node = start(tmp_path, repair=True)
    RowFilling(node.node.reader)()
    assert names_with_rows(node.node) == []
    fill_rows(node.node)
    assert check_rows(node.node.reader.view(), whole=True) == 5
    node.close()


def test_documents_of_a_dropped_type_are_not_added(tmp_path: Path) -> None:
    with started(tmp_path) as node:
        node.apply(put(1), put("x", "book"), put("y", "book"))
        node.node.configure(2, {"music": MUSIC})
        fill_rows(node.node)
        assert names_with_rows(node.node) == ["1"]
        node.node.configure(3, SCHEMAS)
        node.apply(put("x", "book", pages=2))
        fill_rows(node.node)
        assert names_with_rows(node.node) == ["1", "x"] and check_rows(node.node.reader.view(), whole=True) == 2


def test_new_rows_have_files_of_their_own(tmp_path: Path) -> None:
    with started(tmp_path) as node:
        for year in range(4):
            node.apply(*(put(k, year=year) for k in range(20)))
        node.apply(update(3, year=9))
        fill_rows(node.node)
        before = node.node.reader.view()
        assert check_rows(before, whole=True) == 19
        node.node.compact()
        after = node.node.reader.view()
        assert after.limit == 20 and after.rows.rows.get(0) is None
        fill_rows(node.node)
        assert check_rows(after, whole=True) == 20  # what was changed in place is in the document now
        (lid,) = (lid for lid in range(60, 80) if before.gid(lid) == doc_id(0).gid)
        assert before.rows.rows.get(lid) == (str(doc_id(0)).encode(), b'{"year":3}')
        node.node.checkpoint()
        assert [path.name for path in tmp_path.glob("index-*/rows/*")] == ["0-20.rows"]
    with started(tmp_path) as node:
        fill_rows(node.node)
        assert check_rows(node.node.reader.view(), whole=True) == 20


def test_a_node_without_schemas_adds_nothing(tmp_path: Path) -> None:
    with started(tmp_path) as node:
        node.apply(put(1), put(2))
    with started(tmp_path, None) as node:
        filling = RowFilling(node.node.reader)
        assert [filling(), filling()] == [limits.ROW_SECONDS] * 2 and node.node.reader.view().rows.limit == 0
