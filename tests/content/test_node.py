"""The content node: what each operation does, what readers see, and what a restart brings back."""

from __future__ import annotations

import math
import shutil
from collections.abc import Sequence
from pathlib import Path
from threading import Event
from typing import Any

import numpy as np
import orjson
import pytest

from paperwasp import limits
from paperwasp.content import consumer
from paperwasp.content.checkpoints.checkpoint import Checkpoints
from paperwasp.content.log.records import Entry, entry_of
from paperwasp.content.state import replay as replay_module
from paperwasp.content.state.apply import apply_entries
from paperwasp.content.state.node_state import NodeState
from paperwasp.content.views.view import View
from paperwasp.document.operations import Operation, Outcome
from paperwasp.document.types import INT, STRING
from paperwasp.errors import Conflict, Corruption, InternalError, InvalidInput, Overload
from paperwasp.schema.model import Field
from tests.content.nodes import (
    ATTRIBUTE,
    BOOK,
    INDEX,
    MUSIC,
    MUSIC_FIELDS,
    SCHEMAS,
    doc_id,
    put,
    remove,
    schema,
    start,
    started,
    update,
)

FULL = {
    "title": "Abbey Road",
    "artist": "The Beatles",
    "year": 1969,
    "plays": 2**40,
    "score": 0.10000000149011612,
    "weight": 0.1,
    "rating": -7,
    "live": True,
    "genre": "rock",
    "tags": ["a", ""],
    "numbers": [0.5, math.inf],
    "lyrics": ["come together", "something"],
    "note": "ø \U0001f41d",
    "sizes": [1, 2],
}
SHOWN = FULL | {"score": 0.1, "numbers": [0.5, "Infinity"]}


def live_lids(view: View) -> list[int]:
    return np.flatnonzero(np.unpackbits(view.live.view(np.uint8), bitorder="little")).tolist()


def found(view: View, kind: str, field: str, word: str) -> list[int]:
    """Lids, live and of any type, whose field has a term."""
    index = view.index
    term = index.term_id(word)
    if term < 0:
        return []
    lids = np.arange(view.limit, dtype=np.uint32)
    occurrences = index.occurrences(index.number_of((kind, field)), term, lids)
    return sorted(set(np.flatnonzero(occurrences).tolist()) & set(live_lids(view)))


def test_put_get_remove(tmp_path: Path) -> None:
    with started(tmp_path) as node:
        assert node.apply(put("a", **FULL)) == [False]
        assert node.get("a") == SHOWN
        assert node.apply(put("a", title="", tags=[], year=1)) == [True]
        assert node.get("a") == {"year": 1}
        assert node.apply(remove("a"), remove("a"), remove("never")) == [True, False, False]
        assert node.get("a") is None
        assert node.apply(put("a")) == [False]
        assert node.get("a") == {}


def test_one_document_many_times_in_a_batch(tmp_path: Path) -> None:
    with started(tmp_path) as node:
        operations: list[Operation] = [
            put("a", year=1),
            put("b", year=5),
            put("a", title="two"),
            update("a", year=3),
            remove("a"),
            update("a", year=4),
            update("a", create=True, title="four"),
            update("a", genre="x"),
            update("a", title="five", year=5),
            put("b", "book", pages=3),
        ]
        assert node.apply(*operations) == [False, False, True, True, True, False, False, True, True, False]
        assert node.get("a") == {"title": "five", "genre": "x", "year": 5}
        assert node.get("b") == {"year": 5} and node.get("b", "book") == {"pages": 3}
        view = node.node.reader.view()
        assert view.live_count == 3 == len(live_lids(view)) and view.live_counts == {"music": 2, "book": 1}
        assert found(view, "music", "title", "five") == [live_lids(view)[k] for k in range(3) if is_a(view, k)]


def is_a(view: View, place: int) -> bool:
    return view.gid(live_lids(view)[place]) == doc_id("a").gid


def test_updates_of_attributes_touch_rows_alone(tmp_path: Path) -> None:
    with started(tmp_path) as node:
        node.apply(put("a", **FULL))
        before = node.node.reader.view()
        values: dict[str, Any] = {"year": 5, "genre": "pop", "tags": ["z"], "live": False, "score": None, "numbers": []}
        assert node.apply(update("a", **values)) == [True]
        after = node.node.reader.view()
        assert before.limit == 1 and after.limit == 2, "a column cannot tell no numbers from none"
        assert node.apply(update("a", year=5, live=False)) == [True]
        assert node.node.reader.view().limit == 2
        gone = {"score", "numbers", "live"}
        assert node.get("a") == {k: v for k, v in (SHOWN | values).items() if k not in gone}
        assert after.columns["music", "year"].gather(np.array([1], np.uint32)) == [5]
        assert node.apply(update("a", note="new", plays=1)) == [True]
        assert node.node.reader.view().limit == 3
        assert node.get("a") == {
            k: v for k, v in (SHOWN | values | {"note": "new", "plays": 1}).items() if k not in gone
        }
        assert node.apply(update("a", artist="x")) == [True]
        assert node.node.reader.view().limit == 4


def test_a_bool_is_unset_false_or_true(tmp_path: Path) -> None:
    with started(tmp_path) as node:
        node.apply(put("a", title="t"), update("a", year=1))
        for value in (None, False, True, None):
            node.apply(update("a", live=value))
            view = node.node.reader.view()
            assert view.columns["music", "live"].get(view.limit - 1) is value
            assert orjson.loads(view.fields_of(view.store.get(doc_id("a").gid))).get("live") is value  # type: ignore[arg-type]
            shown = orjson.loads(node.node.reader.get(doc_id("a")) or b"")
            assert shown == {"title": "t", "year": 1, "live": bool(value)}, "Vespa: document_field_retriever.cpp"


def test_a_view_never_changes_its_documents(tmp_path: Path) -> None:
    with started(tmp_path) as node:
        node.apply(*[put(k, year=k, title=f"word{k}") for k in range(300)])
        view = node.node.reader.view()
        lids = live_lids(view)
        node.apply(*[remove(k) for k in range(150)], *[put(k, year=0) for k in range(150, 500)])
        assert live_lids(view) == lids and view.limit == 300 and view.live_count == 300
        lid = found(view, "music", "title", "word7")
        assert len(lid) == 1 and view.columns["music", "year"].gather(np.array(lid, np.uint32)) == [7]
        assert found(node.node.reader.view(), "music", "title", "word7") == []


def test_rows_that_are_added_while_the_index_merges_stay_found(tmp_path: Path) -> None:
    with started(tmp_path) as node:
        for k in range(200):
            node.apply(*[put(f"{k}-{n}", title="common " * 400) for n in range(1 + k % 3)], remove("0-0"))
        view = node.node.reader.view()
        assert len(found(view, "music", "title", "common")) == view.live_count == 398


def test_every_column_covers_every_lid(tmp_path: Path) -> None:
    with started(tmp_path) as node:
        node.apply(put("a", year=1), put("b", "book", pages=2), put("c", year=3))
        view = node.node.reader.view()
        assert all(column.limit == 3 for column in view.columns.values())
        types = [view.type_numbers["music"], view.type_numbers["book"]]
        assert sorted(view.document_types[:3].tolist()) == sorted([types[0], types[1], types[0]])
        pages = view.columns["book", "pages"].gather(np.arange(3, dtype=np.uint32))
        assert sorted(pages, key=str) == [2, None, None]


def test_wrong_values_are_refused_and_the_rest_is_applied(tmp_path: Path) -> None:
    with started(tmp_path) as node:
        answers = node.apply(
            put("a", year=2**31),
            put("b", year=1),
            put("c", nothing=1),
            put("d", title="\ud800"),
            put("e", score=1e300),
            update("b", tags=["a", 1]),
            update("b", nothing=None),
        )
        assert [isinstance(answer, InvalidInput) for answer in answers] == [True, False, True, True, True, True, True]
        assert answers[1] is False and node.get("b") == {"year": 1}
        with pytest.raises(InvalidInput, match="Document type film does not exist"):
            node.apply(put("a", "film"))


def test_an_operation_that_cannot_be_encoded_costs_nobody_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def entry(operation: Operation, *rest: Any) -> Entry:
        if operation.id.user_specified == "bad":
            raise OverflowError("too much")
        return entry_of(operation, *rest)

    monkeypatch.setattr("paperwasp.content.log.late_operations.logged_of", entry)
    with started(tmp_path) as node:
        answers = node.apply(put("a", year=1), put("bad"), put("b", year=2))
        assert isinstance(answers[1], InternalError)
        assert node.get("a") == {"year": 1} and node.get("b") == {"year": 2}
        assert node.apply(put("c", year=3)) == [False]


@pytest.mark.parametrize("ending", ["crash", "close", "checkpoint"])
def test_a_restart_brings_everything_back(tmp_path: Path, ending: str) -> None:
    node = start(tmp_path)
    node.apply(*[put(k, year=k, title=f"word{k} common", tags=["t"]) for k in range(100)])
    node.apply(
        *[update(k, year=-k) for k in range(10)], *[remove(k) for k in range(90, 100)], put("x", "book", pages=1)
    )
    if ending == "checkpoint":
        node.node.checkpoint()
        node.apply(update(0, year=77), put("after", note="n"), update(1, create=True, note="m"), remove(50))
    expected = {k: node.get(k) for k in [*range(100), "after"]}
    (node.close if ending == "close" else node.crash)()
    again = start(tmp_path)
    assert again.node.replayed_operations == {"crash": 121, "close": 0, "checkpoint": 4}[ending]
    assert {k: again.get(k) for k in expected} == expected
    assert again.get("x", "book") == {"pages": 1}
    view = again.node.reader.view()
    assert view.live_count == len(live_lids(view)) == 91 + (ending == "checkpoint") - (ending == "checkpoint")
    assert len(found(view, "music", "title", "common")) == 90 - (ending == "checkpoint")
    assert again.apply(put("new", year=3), update(5, year=4)) == [False, True]
    again.close()
    with started(tmp_path) as third:
        assert third.get("new") == {"year": 3} and third.get(5) == expected[5] | {"year": 4}


def test_documents_are_there_before_the_schemas_are(tmp_path: Path) -> None:
    with started(tmp_path) as node:
        node.apply(put("a", year=1))
    with started(tmp_path, None) as node:
        assert node.get("a") == {"year": 1}
        assert node.node.reader.view().generation == 1 and not node.node.reader.view().schemas


def test_fields_and_types_are_added_live(tmp_path: Path) -> None:
    node = start(tmp_path, {"music": MUSIC})
    node.apply(put("a", title="one", year=1))
    wider = schema("music", *MUSIC_FIELDS, Field("extra", INT, attribute=ATTRIBUTE), Field("text", STRING, index=INDEX))
    node.node.configure(2, {"music": wider, "book": BOOK})
    node.apply(put("b", extra=5, text="hello"), put("b", "book", pages=1), update("a", extra=4))
    expected = [{"title": "one", "year": 1, "extra": 4}, {"extra": 5, "text": "hello"}]
    assert [node.get("a"), node.get("b")] == expected
    assert len(found(node.node.reader.view(), "music", "text", "hello")) == 1
    node.crash()
    again = start(tmp_path, None)
    assert [again.get("a"), again.get("b")] == expected and again.node.reader.view().generation == 2
    again.close()


def test_a_start_decodes_no_more_of_the_log_at_once_than_a_batch_has_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    node = start(tmp_path)
    for number in range(20):
        node.apply(put(number, note="x" * 1000))
    node.crash()
    monkeypatch.setattr(limits, "LOG_BATCH_BYTES", 5000)
    batches: list[int] = []

    def counted(state: NodeState, entries: Sequence[Entry]) -> list[Outcome]:
        batches.append(len(entries))
        return apply_entries(state, entries)

    monkeypatch.setattr(replay_module, "apply_entries", counted)
    with started(tmp_path) as again:
        assert again.node.reader.view().live_count == sum(batches) == 20 and max(batches) <= 5


def test_checkpoints_run_by_themselves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "CHECKPOINT_DOCUMENTS", 50)
    node = start(tmp_path)
    for start_at in range(0, 1000, 20):
        node.apply(*[put(k, year=k, title="t") for k in range(start_at, start_at + 20)])
        if node.node._checkpoints._thread is not None:
            node.node._checkpoints._thread.join()
    node.crash()
    with started(tmp_path) as again:
        assert again.node.replayed_operations < 200
        assert [again.get(k)["year"] for k in range(1000)] == list(range(1000))
        assert len(list((tmp_path / "checkpoints").glob("0*"))) == 1


def test_a_node_has_its_directory_alone(tmp_path: Path) -> None:
    with started(tmp_path) as node, pytest.raises(Conflict, match="in use"):
        type(node.node)(tmp_path, node.log)


def test_a_node_stops_where_no_checkpoint_can_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise OSError("no space left on device")

    node = start(tmp_path)
    node.apply(put("a", year=1))
    monkeypatch.setattr(Checkpoints, "freeze", fail)
    node.close()
    monkeypatch.undo()
    with started(tmp_path) as again:
        assert again.get("a") == {"year": 1}


def test_what_comes_after_the_end_is_answered(tmp_path: Path) -> None:
    node = start(tmp_path)
    node.close()
    with pytest.raises(InternalError, match="is stopping"):
        node.node.configure(2, SCHEMAS)
    with pytest.raises(InternalError, match="is stopping"):
        node.node.operations.submit(put("a"), lambda _: None)


def test_a_full_queue_refuses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "OPERATION_QUEUE_LENGTH", 3)
    entered, release, answered = Event(), Event(), list[object]()
    with started(tmp_path) as node:

        def block(_: object) -> None:
            entered.set()
            release.wait(30)

        node.node.operations.submit(put("a"), block)
        assert entered.wait(30)
        for k in range(3):
            node.node.operations.submit(put(k), answered.append)
        with pytest.raises(Overload, match="3 operations are waiting"):
            node.node.operations.submit(put("b"), answered.append)
        release.set()
    assert len(answered) == 3


def test_bytes_that_wait_are_limited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "OPERATION_QUEUE_BYTES", 100)
    monkeypatch.setattr(limits, "LOG_BATCH_BYTES", 50)
    entered, release, answered = Event(), Event(), list[object]()
    with started(tmp_path) as node:

        def block(_: object) -> None:
            entered.set()
            release.wait(30)

        node.node.operations.submit(put("a"), block)
        assert entered.wait(30)
        node.node.operations.submit(put("large"), answered.append, 1000)  # nothing waits before it
        with pytest.raises(Overload, match="1000 bytes are waiting"):
            node.node.operations.submit(put("b"), answered.append, 1)
        release.set()
        node.node.checkpoint()
        for k in range(10):
            node.node.operations.submit(put(k), answered.append, 10)
    assert [type(answer) for answer in answered] == [Outcome] * 11


def test_a_log_of_another_past_is_refused(tmp_path: Path) -> None:
    with started(tmp_path / "one") as node:
        node.apply(put("a", year=1))
    with started(tmp_path / "two") as node:
        node.apply(put("a", year=2))
    shutil.rmtree(tmp_path / "one" / "log")
    shutil.copytree(tmp_path / "two" / "log", tmp_path / "one" / "log")
    with pytest.raises(Corruption, match="another than the one that was applied"):
        start(tmp_path / "one")
    shutil.rmtree(tmp_path / "one" / "log")
    with pytest.raises(Corruption, match="are applied and not in the log"):
        start(tmp_path / "one")
    again = start(tmp_path / "one", repair=True)
    assert again.get("a") == {"year": 1}
    again.apply(put("b", year=3))
    again.close()
    with started(tmp_path / "one") as node:
        assert node.get("b") == {"year": 3}


def test_a_checkpoint_without_rows_has_no_columns(tmp_path: Path) -> None:
    """A schema may have ten thousands of attributes: a file for each, synced, kept a service from its end."""
    with started(tmp_path):
        pass
    (directory,) = (tmp_path / "checkpoints").glob("0*")
    assert list(directory.glob("column-*")) == []
    for round_ in range(2):
        with started(tmp_path) as node:
            assert node.get("a") == (SHOWN if round_ else None)
            node.apply(put("a", **FULL))
    with started(tmp_path) as node:
        assert node.get("a") == SHOWN


def test_damage_in_a_checkpoint_is_reported(tmp_path: Path) -> None:
    with started(tmp_path) as node:
        node.apply(put("a", **FULL))
    (directory,) = (tmp_path / "checkpoints").glob("0*")
    for name in ("manifest.json", "rows.arrays", "column-0.arrays"):
        data = (directory / name).read_bytes()
        (directory / name).write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
        with pytest.raises(Corruption, match=rf"{name}: offset \d+: "):
            start(tmp_path)
        (directory / name).write_bytes(data)
    with started(tmp_path) as node:
        assert node.get("a") == SHOWN


def test_what_could_not_be_applied_stays_in_the_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    node = start(tmp_path)
    with monkeypatch.context() as patch:
        for module in (consumer, replay_module):
            patch.setattr(module, "apply_entries", lambda state, entries: 1 / 0)
        (answer,) = node.apply(put("a", year=1))
        assert isinstance(answer, InternalError) and "is logged, and is applied as soon as" in answer.message
    with pytest.raises(InternalError, match=r"takes no operations until .* division by zero"):
        node.apply(put("b"))
    node.close()
    with started(tmp_path, SCHEMAS) as again:
        assert again.get("a") == {"year": 1} and again.get("b") is None


def test_dead_rows_are_left_behind_at_a_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "DEAD_ROWS_LEAST", 100)
    with started(tmp_path) as node:
        for year in range(4):
            node.apply(*[put(k, year=year, title=f"word{k} common", note="n") for k in range(100)])
        node.apply(*[remove(k) for k in range(50, 100)], *[update(k, year=-k, genre="g") for k in range(1, 20)])
        node.apply(put("x", "book", title="common", pages=3))
        before = {k: node.get(k) for k in range(100)}
    for ending in ("crash", "close", "close"):
        node = start(tmp_path)
        view = node.node.reader.view()
        assert view.limit == view.live_count == 51 and view.live_counts == {"music": 50, "book": 1}
        assert {k: node.get(k) for k in range(100)} == before and node.get("x", "book") == {
            "title": "common",
            "pages": 3,
        }
        assert len(found(view, "music", "title", "common")) == 50
        assert not view.changed[: view.limit].any()
        (node.crash if ending == "crash" else node.close)()
    assert len(list(tmp_path.glob("index-*"))) == 1
    with started(tmp_path) as node:
        assert node.node.replayed_operations == 0
        assert node.apply(update(3, title="new"), put("y", "book", pages=1)) == [True, False]
        assert node.node.reader.view().limit == 53


def test_a_defect_of_the_writer_costs_its_own_batch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("a defect")

    with started(tmp_path) as node, monkeypatch.context() as broken:
        broken.setattr(node.node._producer, "encode", fail)
        [answer] = node.apply(put("a"))
        assert isinstance(answer, RuntimeError)
        broken.undo()
        broken.setattr(node.node._checkpoints, "start_if_due", fail)
        assert node.apply(put("a"), put("b")) == [False, False]
        assert node.apply(put("a")) == [True]
