"""New rows for all documents while a node serves: nothing that is seen changes, and what nobody needs goes."""

from __future__ import annotations

import gc
import random
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from threading import Event
from typing import Any

import numpy as np
import orjson
import pytest

from paperwasp import limits
from paperwasp.base.records import replace
from paperwasp.content.checkpoints import compaction
from paperwasp.content.checkpoints.checkpoint import Checkpoints, FrozenState
from paperwasp.content.consumer import Consumer
from paperwasp.content.state.node_state import NodeState
from paperwasp.content.views.view import View
from paperwasp.content.views.visiting import visit
from paperwasp.coordination.messages.documents import VisitRequest
from paperwasp.storage.documents.document_store import DocumentStore, StoredDocument
from tests.chance import SEED
from tests.content.nodes import TestNode, put, remove, start, started, update


def titles(view: View, word: str) -> list[bytes]:
    """The gids of the live documents with a word in their title, in the order of their rows."""
    term, number = view.index.term_id(word), view.index.number_of(("music", "title"))
    if term < 0:
        return []
    lids = view.index.phrase(number, [term], view.live)[0]
    return [view.gid(int(lid)) for lid in lids]


def all_fields(node: TestNode, names: range) -> dict[int, Any]:
    return {name: fields for name in names if (fields := node.get(name)) is not None}


def visited(view: View) -> list[tuple[str, Any]]:
    response = visit(view.store, lambda: view, VisitRequest(("music",)))
    return [(found.id, orjson.loads(found.fields or b"null")) for found in response.documents]


def fed(path: Path) -> TestNode:
    """Fifty documents in four hundred rows, and one of another type."""
    node = start(path)
    for version in range(8):
        node.apply(*[put(k, title=f"word{k} version{version}", year=version, genre=f"g{version}") for k in range(50)])
    node.apply(*[remove(k) for k in range(0, 50, 10)], *[update(k, year=-k, genre=f"G{k}") for k in range(1, 9)])
    node.apply(put("x", "book", title="common", pages=3))
    return node


def test_nothing_that_is_seen_changes(tmp_path: Path) -> None:
    node = fed(tmp_path)
    before, documents = node.node.reader.view(), all_fields(node, range(50))
    order, seen = titles(before, "version7"), visited(before)
    node.node.compact()
    view = node.node.reader.view()
    assert before.limit == 401 and view.limit == view.live_count == 46
    assert view.live_counts == {"music": 45, "book": 1}
    for _ in range(2):
        assert all_fields(node, range(50)) == documents and node.get("x", "book") == {"title": "common", "pages": 3}
        assert titles(node.node.reader.view(), "version7") == order and visited(node.node.reader.view()) == seen
        assert view.index.term_id("version6") < 0 <= before.index.term_id("version6")
        # Whoever has the view from before goes on with it.
        assert titles(before, "version7") == order and visited(before) == seen
        node.apply(update(1, year=5), put("y", title="version8"))
        node.apply(update(1, year=-1), remove("y"))
    node.crash()
    with started(tmp_path) as again:
        assert all_fields(again, range(50)) == documents and titles(again.node.reader.view(), "version7") == order


def test_the_store_from_before_goes_with_its_last_reader(tmp_path: Path) -> None:
    with closing(fed(tmp_path)) as node:
        before = node.node.reader.view()
        node.node.compact()
        assert {path.name for path in tmp_path.glob("store*")} == {"store", "store-1"}
        del before
        gc.collect()
        assert {path.name for path in tmp_path.glob("store*")} == {"store-1"}
        node.node.compact()
        gc.collect()
        assert {path.name for path in tmp_path.glob("store*")} == {"store-2"}
        node.node.checkpoint()
        assert len(list(tmp_path.glob("index-*"))) == 1
    with started(tmp_path) as again:
        assert {path.name for path in tmp_path.glob("store*")} == {"store"}
        assert again.node.reader.view().limit == 46


def test_strings_that_no_row_has_any_more_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Changes in place leave no dead rows, but strings."""
    monkeypatch.setattr(limits, "DEAD_ROWS_SERVED_LEAST", 100)
    with started(tmp_path) as node:
        node.apply(*[put(k, title="t", year=k) for k in range(10)])
        for version in range(60):
            node.apply(*[update(k, genre=f"g{k} {version}", tags=[f"t{k} {version}", "all"]) for k in range(10)])
            for thread in (node.node._checkpoints._thread, node.node._checkpoints._compactor._thread):
                if thread is not None:
                    thread.join()
        for name in ("genre", "tags"):
            assert len(node.node.reader.view().columns["music", name].dictionary) < 150  # type: ignore[attr-defined]
        assert node.get(3)["tags"] == ["t3 59", "all"] and node.get(3)["genre"] == "g3 59"
        assert node.node.reader.view().limit == 10


@pytest.mark.parametrize("in_place", [False, True], ids=["put", "update"])
def test_few_large_values_that_were_replaced_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, in_place: bool
) -> None:
    """Rows and strings are too few to count; bytes are not. Also after a restart, and never the values that live."""
    monkeypatch.setattr(limits, "DEAD_BYTES_LEAST", 100_000)

    def change(node: TestNode, version: int) -> None:
        """About 24,000 bytes of new strings."""
        tags = [f"a tag of version {version} {number:04}" for number in range(700)]
        node.apply(update(0, tags=tags) if in_place else put(0, title="t", tags=tags))
        for thread in (node.node._checkpoints._thread, node.node._checkpoints._compactor._thread):
            if thread is not None:
                thread.join()

    def strings(node: TestNode) -> int:
        return len(node.node.reader.view().columns["music", "tags"].dictionary)  # type: ignore[attr-defined]

    with started(tmp_path) as node:
        node.apply(*[put(k, title="t", year=k) for k in range(50)])
        most = 0
        for version in range(30):
            change(node, version)
            most = max(most, strings(node))
        assert 3 * 700 < most < 12 * 700, "100,000 bytes of dead strings, and what came until they were gone"
    dead_bytes = node.node._current.state.dead_bytes
    with started(tmp_path) as again:
        kept = dead_bytes if dead_bytes < limits.DEAD_BYTES_LEAST else 0
        assert again.node._current.state.dead_bytes == kept, "a restart forgets nothing, or leaves it behind"
        assert again.node._current.state.live_bytes > 20_000 or in_place
        for further in range(5):
            change(again, version + 1 + further)
            assert strings(again) < 12 * 700
        assert again.get(0)["tags"][0] == f"a tag of version {version + 5} 0000" and again.get(49)["year"] == 49


def tags_of(version: int) -> list[str]:
    return [f"tag {number} of {version}" for number in range(200)]


@pytest.fixture
def few_strings(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that columns go on without 100 strings that no row has any more."""
    monkeypatch.setattr(limits, "SPARE_STRINGS_LEAST", 100)


@pytest.mark.usefixtures("few_strings")
def test_strings_of_replaced_documents_go_at_once(tmp_path: Path) -> None:
    """The writer itself goes on without them, so that it makes no more than it takes away; no document gets another
    row, and no checkpoint is written."""
    with started(tmp_path) as node:
        node.apply(*[put(k, title="t", tags=[f"own {k}", "all"]) for k in range(1, 50)])
        views, own = [], node.node.reader.view().columns["music", "tags"].gather(np.arange(49, dtype=np.uint32))
        assert ["own 7", "all"] in own
        for version in range(60):
            node.apply(put(0, title="t", tags=tags_of(version)))
            views.append(node.node.reader.view())
            assert len(views[-1].columns["music", "tags"].dictionary) < 50 + 2 * 200 + 2  # type: ignore[attr-defined]
        state = node.node._current.state
        assert state.limit == 49 + 60 and state.dead_bytes >= state.given_back_bytes > 0.9 * state.dead_bytes
        assert state.dead_bytes > 59 * len(orjson.dumps(tags_of(0)))
        for version, view in enumerate(views):
            assert view.columns["music", "tags"].get(49 + version) == tags_of(version)
            assert view.columns["music", "tags"].gather(np.arange(49, dtype=np.uint32)) == own
        documents = all_fields(node, range(50))
        assert documents[0]["tags"] == tags_of(59) and documents[7]["tags"] == ["own 7", "all"]
        node.node.checkpoint()
        node.crash()
    with started(tmp_path) as again:
        assert all_fields(again, range(50)) == documents
        assert len(again.node.reader.view().columns["music", "tags"].dictionary) < 50 + 200 + 2  # type: ignore[attr-defined]


@pytest.mark.usefixtures("few_strings")
@pytest.mark.parametrize("removed", [False, True])
def test_a_document_that_is_replaced_while_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, removed: bool
) -> None:
    """Between the look into the store and that at the columns, which know what was changed in place: the row from
    before has no values any more."""
    with started(tmp_path) as node:
        node.apply(put(1, title="u"))
        expected = None if removed else {"title": "new", "tags": ["new"]}
        get, scan = DocumentStore.get, DocumentStore.scan
        waiting: list[int] = []

        def replace_it() -> None:
            """Once, with so many new strings that the column goes on without those of `row`."""
            while waiting:
                row = waiting.pop()
                node.apply(remove(0) if removed else put(0, **expected or {}), put(2, tags=tags_of(row)))
                node.apply(put(2, tags=tags_of(row + 1)))
                assert node.node.reader.view().columns["music", "tags"].get(row) is None, "it has its values still"

        def get_late(store: DocumentStore, gid: bytes) -> StoredDocument | None:
            found = get(store, gid)
            replace_it()
            return found

        def scan_late(store: DocumentStore, *given: Any, **named: Any) -> Iterator[tuple[bytes, StoredDocument]]:
            found = list(scan(store, *given, **named))
            replace_it()
            yield from found

        for way in ("get", "scan"):
            node.apply(put(0, title="t"))
            node.apply(update(0, tags=tags_of(0)))
            waiting.append(node.node._current.state.limit - 1)
            with monkeypatch.context() as patch:
                if way == "get":
                    patch.setattr(DocumentStore, "get", get_late)
                    assert node.get(0) == expected
                else:
                    patch.setattr(DocumentStore, "scan", scan_late)
                    store = node.node.reader.view().store
                    response = visit(store, node.node.reader.view, VisitRequest(("music",)))
                    seen = [orjson.loads(found.fields or b"") for found in response.documents if found.id[-2:] == ":0"]
                    assert seen == ([] if expected is None else [expected | {"live": False}])
            assert not waiting


def test_a_checkpoint_without_sizes_of_rows_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One from before they were kept: those rows count nothing."""
    freeze = Checkpoints.freeze

    def without_sizes(checkpoints: Checkpoints, state: NodeState) -> FrozenState:
        frozen = freeze(checkpoints, state)
        return replace(frozen, rows={name: rows for name, rows in frozen.rows.items() if name != "row_bytes"})

    with monkeypatch.context() as patch:
        patch.setattr(Checkpoints, "freeze", without_sizes)
        with started(tmp_path) as node:
            node.apply(put("a", note="x" * 1000), put("b"))
    with started(tmp_path) as again:
        assert again.apply(put("a", note="y" * 100), remove("b")) == [True, True]
        state = again.node._current.state
        assert state.dead_bytes == 0 and state.live_bytes == len('{"note":""}') + 100
        assert len(state.row_bytes.view()) == 3


def test_dead_rows_are_left_behind_while_documents_are_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With clients that write, look up and search all the time; and rows, words and strings that stay few."""
    seed = SEED
    monkeypatch.setattr(limits, "DEAD_ROWS_SERVED_LEAST", 200)
    over = Event()
    taken: list[int] = []
    take_over = Consumer.take_over

    def counted(consumer: Consumer, state: NodeState) -> None:
        take_over(consumer, state)
        taken.append(consumer._current.reader.view().limit)

    monkeypatch.setattr(Consumer, "take_over", counted)

    def feed(node: TestNode, first: int) -> dict[int, Any]:
        chance = random.Random(f"{seed} {first}")
        documents: dict[int, dict[str, Any]] = {}
        while not over.is_set():
            number, version = chance.randrange(first, first + 20), chance.randrange(10**6)
            choice = chance.random()
            if choice < 0.6:
                documents[number] = {"title": f"all v{version}", "genre": f"g{version}", "year": version}
                node.apply(put(number, **documents[number]))
            elif choice < 0.8:
                if number in documents:
                    documents[number] |= {"genre": f"h{version}"}
                node.apply(update(number, genre=f"h{version}"))
            else:
                documents.pop(number, None)
                node.apply(remove(number))
            assert node.get(number) == documents.get(number), (seed, number)
        return documents

    def look(node: TestNode) -> None:
        while not over.is_set():
            view = node.node.reader.view()
            assert len(titles(view, "all")) == view.live_count, seed
            for _, fields in visited(node.node.reader.view()):
                assert fields["title"] == f"all v{fields['year']}", seed

    with started(tmp_path) as node, ThreadPoolExecutor(4) as pool:
        working = [pool.submit(feed, node, first) for first in (0, 100, 200)]
        looking = pool.submit(look, node)
        while len(taken) < 3 and not looking.done() and not any(work.done() for work in working):
            over.wait(0.02)
        over.set()
        looking.result()
        expected = {number: fields for work in working for number, fields in work.result().items()}
        assert len(taken) >= 3 and all_fields(node, range(300)) == expected, seed
        node.crash()
        with started(tmp_path) as again:
            assert all_fields(again, range(300)) == expected, seed


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """The first attempt fails after its first documents."""
    attempts: list[int] = []
    real = compaction.compact

    def compact(*given: Any) -> NodeState:
        attempts.append(1)
        if len(attempts) == 1:
            raise OSError("no space")
        return real(*given)

    monkeypatch.setattr(compaction, "compact", compact)
    yield attempts


def test_an_attempt_that_fails_leaves_all_as_it_was(tmp_path: Path, failing: list[int]) -> None:
    with closing(fed(tmp_path)) as node:
        documents = all_fields(node, range(50))
        node.node.compact()
        assert node.node.reader.view().limit == 401 and all_fields(node, range(50)) == documents
        assert {path.name for path in tmp_path.glob("store*")} == {"store"}
        assert not node.node._checkpoints._compactor.is_due(node.node._current.state)
        node.node.compact()
        assert node.node.reader.view().limit == 46 and all_fields(node, range(50)) == documents


@pytest.mark.parametrize("ending", ["checkpoint", "stop", "crash", "compact"])
def test_a_checkpoint_or_a_stop_ends_an_attempt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: str) -> None:
    monkeypatch.setattr(limits, "COMPACTION_DOCUMENTS", 1)
    node = fed(tmp_path)
    documents = all_fields(node, range(50))
    begun, real = Event(), compaction.Compactor._pause

    def pause(compactor: compaction.Compactor, cancelled: Event) -> None:
        if not begun.is_set():
            begun.set()
            assert cancelled.wait(30)
        real(compactor, cancelled)

    monkeypatch.setattr(compaction.Compactor, "_pause", pause)
    with ThreadPoolExecutor(1) as pool:
        compacting = pool.submit(node.node.compact)
        assert begun.wait(30)
        node.apply(put("new", title="version9"))
        if ending in ("checkpoint", "compact"):
            getattr(node.node, ending)()
            assert node.node.reader.view().limit == (402 if ending == "checkpoint" else 47)
            assert all_fields(node, range(50)) == documents
        (node.crash if ending == "crash" else node.close)()
        compacting.result()
    with started(tmp_path) as again:
        assert all_fields(again, range(50)) == documents and again.get("new") == {"title": "version9"}


def test_no_attempt_follows_a_checkpoint_that_failed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "DEAD_ROWS_SERVED_LEAST", 10)
    tried: list[int] = []

    def freeze(*_: Any) -> Any:
        tried.append(1)
        raise OSError("no space")

    with started(tmp_path) as node:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(node.node._checkpoints._checkpoints, "freeze", freeze)
            for version in range(40):
                node.apply(put("a", year=version))
            assert len(tried) == 1
        assert node.get("a") == {"year": 39}


def test_stores_that_are_made_at_once_have_folders_of_their_own(tmp_path: Path) -> None:
    with started(tmp_path) as node:
        checkpoints = node.node._checkpoints._checkpoints
        assert len({checkpoints._new_store_directory() for _ in range(3)}) == 3
