"""Changed schemas taken live: what documents, columns and postings become."""

from __future__ import annotations

import threading
from pathlib import Path
from threading import Event
from typing import Any

import orjson
import pytest

from paperwasp import limits
from paperwasp.content.addresses import address_of
from paperwasp.content.layouts.layout import EMPTY, Layout
from paperwasp.content.state.bitmaps import lids_of
from paperwasp.coordination.messages.documents import ReindexRequest
from paperwasp.coordination.operation_log import FileOperationLog
from paperwasp.document.converters import GeoPosition
from paperwasp.document.tensor.literal import parse_tensor
from paperwasp.document.tensor.types import TensorType
from paperwasp.document.types import (
    INT,
    LONG,
    POSITION,
    PREDICATE,
    RAW,
    STRING,
    DataType,
    array_of,
    map_of,
    reference_to,
    struct_of,
    tensor_field,
    weighted_set_of,
)  # fmt: skip
from paperwasp.errors import IllegalQuery, InvalidInput, NoSpace, Overload
from paperwasp.schema import parse_schemas
from paperwasp.schema.model import AttributeSettings, Field, IndexSettings, Schema
from paperwasp.schema.pending import is_indexed_now, is_matched_now
from paperwasp.search.bind import space_of
from paperwasp.search.operators.boolean import TrueItem
from paperwasp.search.operators.item import Item, plan
from paperwasp.search.operators.range_operator import RangeItem
from paperwasp.search.operators.word import WordItem
from paperwasp.search.query import SortKey
from paperwasp.search.search import search
from paperwasp.search.served import ServedSchemas
from paperwasp.storage.attributes import Column, create_column
from tests.content.nodes import (
    ATTRIBUTE,
    BOOK,
    INDEX,
    MUSIC,
    MUSIC_FIELDS,
    SCHEMAS,
    TestNode,
    doc_id,
    put,
    reindexed,
    remove,
    schema,
    start,
    started,
    update,
)  # fmt: skip
from tests.search.queries import query_of

YEAR, NOTE = Field("year", INT, attribute=ATTRIBUTE), Field("note", STRING)


def found(node: TestNode, item: Item, kind: str = "music") -> list[str]:
    """The documents that match, in order of their names."""
    view = node.node.reader.view()
    space = space_of(view, kind)
    lids = lids_of(plan(item, space).bitmap() & space.accept)
    documents = view.store.multi_get([view.gid(int(lid)) for lid in lids])
    return sorted(document.id.rsplit(":", 1)[1] for document in documents if document)


def configure(node: TestNode, generation: int, *fields: Field, **modes: str) -> None:
    node.node.configure(generation, {"music": schema("music", *fields)}, modes)


def values(node: TestNode, field: str, names: str) -> list[Any]:
    view = node.node.reader.view()
    lids = {view.gid(int(lid)): int(lid) for lid in lids_of(view.live)}
    return [view.columns["music", field].get(lids[doc_id(name).gid]) for name in names]


def test_an_attribute_is_filled_from_the_documents(tmp_path: Path) -> None:
    with started(tmp_path, {"music": schema("music", Field("year", INT), NOTE), "book": BOOK}) as node:
        node.apply(
            *[put(k, year=k) for k in (1, 2, 3)], put("4"), put("x", "book", pages=1), put("2", year=5), remove("3")
        )
        configure(node, 2, Field("year", INT, attribute=AttributeSettings(fast_search=True)), NOTE)
        assert values(node, "year", "124") == [1, 5, None]
        assert found(node, RangeItem("year", 1, 4)) == ["1"]
        assert node.apply(update("1", year=7)) == [True] and node.node.reader.view().limit == 6, "changed in place"


def test_what_was_changed_in_place_outlives_its_attribute(tmp_path: Path) -> None:
    node = start(tmp_path, {"music": schema("music", YEAR, NOTE)})
    node.apply(put("1", year=1, note="n"), put("2", year=2), update("1", year=10), update("2", year=None))
    configure(node, 2, Field("year", INT), NOTE)
    shown = [{"year": 10, "note": "n"}, {}]
    assert [node.get("1"), node.get("2")] == shown and not node.node.reader.view().columns
    node.crash()
    with started(tmp_path, None) as again:
        assert [again.get("1"), again.get("2")] == shown
        configure(again, 3, NOTE)
        assert [again.get("1"), again.get("2")] == [{"note": "n"}, {}]
        configure(again, 4, YEAR, NOTE)
        assert [again.get("1"), again.get("2")] == shown and values(again, "year", "12") == [10, None]


def test_an_index_is_filled_by_puts_and_by_reindexing(tmp_path: Path) -> None:
    title = Field("title", STRING, attribute=ATTRIBUTE)
    with started(tmp_path, {"music": schema("music", title)}) as node:
        node.apply(put("1", title="old song"), put("2", title="x"), update("2", title="old tune"))
        configure(node, 2, Field("title", STRING, index=INDEX, attribute=ATTRIBUTE))
        assert node.get("2") == {"title": "old tune"}
        node.apply(put("3", title="old hat"))
        assert found(node, WordItem("title", "old")) == ["3"]
        answer = reindexed(node.node, ReindexRequest("music", b"", 2))
        assert answer.documents == 2 and answer.token and 0 < answer.progress < 1
        answer = reindexed(node.node, ReindexRequest("music", answer.token, 2))
        assert answer == type(answer)(None, 1.0, 1)
        assert found(node, WordItem("title", "old")) == ["1", "2", "3"]
        configure(node, 3, title)
        assert found(node, WordItem("title", "old")) == [] and found(node, WordItem("title", "old hat")) == ["3"]
        configure(node, 4, Field("title", STRING, index=INDEX))
        assert found(node, WordItem("title", "old")) == [], "begins empty"


def test_text_settings_hold_for_what_is_put_from_then_on(tmp_path: Path) -> None:
    unstemmed = Field("title", STRING, index=IndexSettings(stemming="none"))
    with started(tmp_path, {"music": schema("music", Field("title", STRING, index=INDEX))}) as node:
        node.apply(put("1", title="cars"))
        configure(node, 2, unstemmed)
        node.apply(put("2", title="cars"))
        assert found(node, WordItem("title", "cars")) == ["2"] and found(node, WordItem("title", "car")) == ["1"]
        reindexed(node.node, ReindexRequest("music"))
        assert found(node, WordItem("title", "cars")) == ["1", "2"] and found(node, WordItem("title", "car")) == []


def test_a_field_of_another_type_keeps_what_reads_as_that(tmp_path: Path) -> None:
    with started(tmp_path, {"music": schema("music", Field("year", STRING, index=INDEX))}) as node:
        node.apply(put("1", year="1999"), put("2", year="long ago"))
        configure(node, 2, Field("year", LONG, attribute=ATTRIBUTE))
        assert [node.get("1"), node.get("2")] == [{"year": 1999}, {}]
        assert values(node, "year", "12") == [1999, None]
        node.apply(update("1", year=2000))
        configure(node, 3, Field("year", STRING, index=INDEX))
        assert [node.get("1"), node.get("2")] == [{"year": "2000"}, {"year": "long ago"}]
        assert found(node, WordItem("year", "ago")) == []
        node.node.checkpoint()
        configure(node, 4, Field("year", array_of(STRING), index=INDEX))
        node.apply(put("3", year=["a", "b"]))
        assert [node.get("1"), node.get("3")] == [{}, {"year": ["a", "b"]}] and found(node, WordItem("year", "b")) == [
            "3"
        ]


def test_text_of_another_type_is_indexed_anew(tmp_path: Path) -> None:
    with started(tmp_path, {"music": schema("music", Field("title", STRING, index=INDEX))}) as node:
        node.apply(put("1", title="old"))
        configure(node, 2, Field("title", array_of(STRING), index=INDEX))
        node.apply(put("2", title=["old", "new"]))
        assert node.get("1") == {} and found(node, WordItem("title", "old")) == ["2"]


def test_what_is_shown_does_not_depend_on_starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A start that gives all documents new rows keeps what earlier layouts left in them."""
    monkeypatch.setattr(limits, "DEAD_ROWS_LEAST", 1)
    monkeypatch.setattr(limits, "DEAD_ROWS_SHARE", 0.1)
    node = start(tmp_path, {"music": schema("music", YEAR, NOTE)})
    node.apply(put("1", year=1, note="n"), put("2", year=2), put("3"))
    configure(node, 2, NOTE)
    node.apply(remove("3"), put("4", note="m"))
    node.crash()
    for generation in (3, 4):
        node = start(tmp_path, None)
        assert node.node.reader.view().limit == node.node.reader.view().live_count == 3, "new rows"
        shown = [{"note": "n"}, {}, {"note": "m"}]
        assert [node.get(name) for name in "124"] == shown
        configure(node, generation, NOTE, Field("year", LONG))
        assert [node.get(name) for name in "124"] == [{"note": "n", "year": 1}, {"year": 2}, {"note": "m"}]
        configure(node, generation, NOTE)
        node.crash()


ANY_TYPE: list[tuple[DataType, Any, Any]] = [
    (map_of(STRING, INT), {"a": 1}, {"a": 1}),
    (weighted_set_of(STRING), {"a": 3}, {"a": 3}),
    (struct_of("pair", {"a": INT, "b": STRING}), {"a": 1, "b": "x"}, {"a": 1, "b": "x"}),
    (array_of(struct_of("one", {"a": INT})), [{"a": 1}, {"a": 2}], [{"a": 1}, {"a": 2}]),
    (reference_to("book"), "id:n:book::1", "id:n:book::1"),
    (PREDICATE, "a in [b]", "a in [b]"),
    (RAW, b"a\x00b", "YQBi"),
    (POSITION, GeoPosition(-1_500_000, 2_000_000), {"lat": 2.0, "lng": -1.5}),
    (weighted_set_of(LONG), {7: -1}, {"7": -1}),
]


@pytest.mark.parametrize("compacted_at", [None, 1, 2, 3])
def test_what_is_stored_does_not_depend_on_when_documents_got_new_rows(
    tmp_path: Path, compacted_at: int | None
) -> None:
    """A document with a change in place comes to a layout that reads another of its fields otherwise, in a column."""
    year, numbers, texts = MUSIC_FIELDS[2], Field("f", array_of(INT)), Field("f", array_of(STRING), attribute=ATTRIBUTE)
    with started(tmp_path, {}) as node:
        for generation, fields in enumerate(((year, numbers), (year, texts), (year, numbers)), 1):
            configure(node, generation, *fields)
            if generation == 1:
                node.apply(put("1", year=1, f=[1]), update("1", year=2))
            if generation == compacted_at:
                node.node.compact()
        assert node.get("1") == {"year": 2, "f": [1]}
        stored = node.node.reader.view().store.get(doc_id("1").gid)
        assert stored is not None and orjson.loads(stored.fields)["f"] == [1]


@pytest.mark.parametrize(("data_type", "value", "shown"), ANY_TYPE, ids=[str(one[0]) for one in ANY_TYPE])
def test_values_of_any_type_are_kept(tmp_path: Path, data_type: DataType, value: Any, shown: Any) -> None:
    field = Field("any", data_type, attribute=ATTRIBUTE, index=INDEX)
    node = start(tmp_path, {"music": schema("music", field)})
    assert node.apply(put("1", any=value)) == [False]
    node.crash()
    with started(tmp_path, None) as again:
        assert again.get("1") == {"any": shown}
        again.node.configure(2, {"music": schema("music", field)})
        words = () if is_indexed_now(field) else (WordItem("any", "a"),)
        for item in (*words, *(() if is_matched_now(field) else (RangeItem("any", 1, 2),))):
            with pytest.raises(
                InvalidInput, match=r"Field 'any' of type .* is not searched (yet|by)|'any' is predicate"
            ):
                found(again, item)


def test_a_tensor_of_another_cell_type_keeps_its_cells(tmp_path: Path) -> None:
    """The hex in which it is stored is of the cells that it was stored with."""
    kinds = [tensor_field(TensorType.parse(f"tensor<{cells}>(x[2])")) for cells in ("double", "float", "bfloat16")]
    with started(tmp_path, {"music": schema("music", Field("at", kinds[0], attribute=ATTRIBUTE))}) as node:
        node.apply(put("1", at=parse_tensor("tensor(x[2]):[1.5,-2]")))
        for generation, kind in enumerate((*kinds[1:], kinds[0]), 2):
            configure(node, generation, Field("at", kind, attribute=ATTRIBUTE))
            assert node.get("1") == {"at": {"type": str(kind), "values": [1.5, -2.0]}}
            (cells,) = values(node, "at", "1")[0].cells.tolist()
            assert cells == [1.5, -2.0]


def test_members_of_structs_come_and_go(tmp_path: Path) -> None:
    def field(**members: DataType) -> Field:
        return Field("all", map_of(STRING, array_of(struct_of("one", members))))

    with started(tmp_path, {"music": schema("music", field(a=INT, b=STRING))}) as node:
        node.apply(put("1", all={"k": [{"a": 1, "b": "x"}, {"b": "y"}]}))
        configure(node, 2, field(a=INT, c=LONG))
        assert node.get("1") == {"all": {"k": [{"a": 1}, {}]}}


def test_structs_within_themselves(tmp_path: Path) -> None:
    text = "schema music {{ document music {{ struct folder {{ {} }} field top type folder {{}} }} }}"

    def folders(members: str) -> dict[str, Schema]:
        return dict(parse_schemas({"schemas/music.sd": text.format(members)}).schemas)

    name, size = "field name type string {}", "field size type int {}"
    whole = folders(f"{name} {size} field sub type array<folder> {{}}")
    value = {"name": "a", "sub": [{"size": 1}, {"name": "b", "sub": [{"name": "c", "size": 2}]}]}
    with started(tmp_path, whole) as node:
        assert node.apply(put("a", top=value)) == [False]
    with started(tmp_path, whole) as node:
        assert node.get("a") == {"top": value}
        node.node.configure(2, folders(f"{name} field sub type array<folder> {{}}"))
        assert node.get("a") == {"top": {"name": "a", "sub": [{}, {"name": "b", "sub": [{"name": "c"}]}]}}


def test_layouts_say_every_type() -> None:
    types: list[DataType] = [one[0] for one in ANY_TYPE]
    types.append(tensor_field(TensorType.parse("tensor<float>(x[3],y{})")))
    wide = schema("wide", *[Field(f"f{number}", data_type) for number, data_type in enumerate(types)])
    layout = EMPTY.changed(1, [wide], {})
    assert Layout.from_bytes(layout.to_bytes()) == layout


def test_a_removed_type_takes_its_documents_along(tmp_path: Path) -> None:
    node = start(tmp_path)
    node.apply(*[put(k, year=k, title="word") for k in range(50)], *[put(k, "book", pages=k) for k in range(50)])
    before = node.node.reader.view()
    node.node.configure(2, {"book": BOOK})
    view = node.node.reader.view()
    assert view.live_counts == {"book": 50} and view.live_count == 50 == len(lids_of(view.live))
    assert node.get(1) is None and node.get(1, "book") == {"pages": 1}
    assert {kind for kind, _ in view.columns} == {kind for kind, _ in view.index.fields} == {"book"}
    assert before.live_counts["music"] == 50, "a view does not change"
    with pytest.raises(InvalidInput, match="Document type music does not exist"):
        node.apply(put("a"))
    node.crash()
    with started(tmp_path, None) as again:
        assert again.node.reader.view().live_counts == {"book": 50} and again.get(1) is None
        again.node.configure(3, SCHEMAS)
        assert again.node.reader.view().live_counts == {"book": 50, "music": 0} and again.get(1) is None
        assert again.apply(put(1, title="word")) == [False] and found(again, WordItem("title", "word")) == ["1"]


def test_an_operation_that_waits_while_its_type_goes_is_refused(tmp_path: Path) -> None:
    entered, release, answers = Event(), Event(), list[object]()
    with started(tmp_path) as node:

        def block(_: object) -> None:
            entered.set()
            assert release.wait(30)

        node.node.operations.submit(put("a"), block)
        assert entered.wait(30)
        changing = threading.Thread(target=node.node.configure, args=(2, {"book": BOOK}))
        changing.start()
        while node.node.operations._items.empty():
            pass
        node.node.operations.submit(put("b"), answers.append)
        node.node.operations.submit(put("c", "book", pages=1), answers.append)
        release.set()
        changing.join()
        node.node.checkpoint()
        assert isinstance(answers[0], InvalidInput) and not isinstance(answers[1], Exception)


def test_documents_that_are_only_stored(tmp_path: Path) -> None:
    with started(tmp_path, {"music": MUSIC}) as node:
        node.apply(put("1", title="word", year=1), update("1", year=2))
        configure(node, 2, *MUSIC_FIELDS, music="store-only")
        node.apply(put("2", title="word", year=3), update("1", year=4))
        assert node.get("1") == {"title": "word", "year": 4} and not node.node.reader.view().columns
        assert search(node.node.reader.view(), query_of(TrueItem()), ServedSchemas()).hits == ()
        configure(node, 3, *MUSIC_FIELDS, music="streaming")
        with pytest.raises(IllegalQuery, match=r"requires either streaming\.groupname or streaming\.selection"):
            search(node.node.reader.view(), query_of(TrueItem()), ServedSchemas())
        configure(node, 4, *MUSIC_FIELDS)
        assert values(node, "year", "12") == [4, 3] and found(node, WordItem("title", "word")) == []


def test_a_redeployment_that_changes_nothing_writes_nothing(tmp_path: Path) -> None:
    with started(tmp_path) as node:
        before = node.log.last()
        for generation in range(2, 50):
            node.node.configure(generation, dict(SCHEMAS))
        assert node.log.last() == before and node.node.reader.view().generation == 49


def test_many_deployments_leave_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "CHECKPOINT_LOG_BYTES", 200_000)
    monkeypatch.setattr(limits, "LOG_FILE_BYTES", 100_000)
    with started(tmp_path) as node:
        node.apply(*[put(k, title="some words", year=k) for k in range(20)])
        for generation in range(2, 200):
            is_odd = generation % 2
            name = f"text{generation}"
            more = [Field(name, STRING, index=INDEX)] if is_odd else [Field(name, INT, attribute=ATTRIBUTE)]
            configure(node, generation, *MUSIC_FIELDS, *more)
            if is_odd:
                node.apply(put(1, **{name: "x"}))
        node.node.checkpoint()
        node.node.checkpoint()
        size = sum(path.stat().st_size for path in (tmp_path / "log").iterdir())
        assert size < 1_000_000 and len(list((tmp_path / "index-1").iterdir())) < 40
        snapshot = node.node.reader.view().index
        assert snapshot.numbers < 20 and len(node.node.reader.view().columns) <= len(MUSIC_FIELDS) + 1


def test_many_small_operations_make_a_checkpoint_due(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "CHECKPOINT_OPERATIONS", 50)
    with started(tmp_path) as node:
        node.apply(put("a", year=0))
        for year in range(60):
            node.apply(update("a", year=year))
        saver = node.node._checkpoints._thread
        assert saver is not None
        saver.join()
        assert list((tmp_path / "checkpoints").glob("*/manifest.json"))


def test_where_the_marker_cannot_be_written_nothing_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise NoSpace("the disk is full")

    with started(tmp_path) as node:
        node.apply(put("1", year=1, tags=["a"]))
        with monkeypatch.context() as patch:
            patch.setattr(FileOperationLog, "append", full)
            with pytest.raises(NoSpace):
                configure(node, 2, NOTE)
        assert node.node.reader.view().generation == 1 and node.get("1") == {"year": 1, "tags": ["a"]}
        assert node.apply(update("1", year=2)) == [True]
        node.node.check(2, {"music": schema("music", NOTE)})
        assert node.node.reader.view().generation == 1


def test_what_cannot_be_made_is_not_logged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A schema that passes all checks, and whose column fails: as a graph would that memory does not suffice for."""

    def failing(data_type: DataType, **settings: Any) -> Column:
        if data_type == LONG:
            raise MemoryError("no column of this type")
        return create_column(data_type, **settings)

    with started(tmp_path) as node:
        node.apply(put("1", year=1, tags=["a"]))
        with monkeypatch.context() as patch:
            patch.setattr("paperwasp.content.layouts.layout.create_column", failing)
            more = {**SCHEMAS, "music": schema("music", *MUSIC_FIELDS, Field("big", LONG, attribute=ATTRIBUTE))}
            logged = node.node.log_sizes()
            for act in (node.node.check, node.node.configure):
                with pytest.raises(MemoryError, match="no column of this type"):
                    act(2, more)
            assert node.node.log_sizes() == logged
            assert node.apply(update("1", year=2)) == [True]
        assert node.get("1") == {"year": 2, "tags": ["a"]}
    with started(tmp_path, more) as node:
        assert node.get("1") == {"year": 2, "tags": ["a"]}


def test_reindexing_loses_no_write(tmp_path: Path) -> None:
    """Clients write while all is written anew, again and again."""
    with started(tmp_path) as node:
        node.apply(*[put(k, year=0, title="t", note="n") for k in range(300)])
        is_done = Event()

        def reindex_all() -> None:
            while not is_done.is_set():
                token: bytes | None = b""
                while token is not None:
                    token = reindexed(node.node, ReindexRequest("music", token, 37)).token

        reindexing = threading.Thread(target=reindex_all)
        reindexing.start()
        try:
            for turn in range(1, 30):
                node.apply(*[update(k, year=turn) for k in range(0, 300, 3)])
                node.apply(*[update(k, note=str(turn)) for k in range(1, 300, 3)])
                node.apply(*[remove(k) for k in range(2, 300, 6)])
        finally:
            is_done.set()
            reindexing.join()
        assert [node.get(k)["year"] for k in range(0, 300, 3)] == [29] * 100
        assert [node.get(k)["note"] for k in range(1, 300, 3)] == ["29"] * 100
        assert [node.get(k) for k in range(2, 300, 6)] == [None] * 50
        assert node.node.reader.view().live_count == 250


def test_reindexing_waits_for_clients_and_says_what_is_wrong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with started(tmp_path) as node:
        node.apply(*[put(k, note="long " * 30) for k in range(9)], put("x", "book", pages=1))
        with pytest.raises(InvalidInput, match="film does not exist"):
            reindexed(node.node, ReindexRequest("film"))
        with pytest.raises(InvalidInput, match="token of 3 bytes"):
            reindexed(node.node, ReindexRequest("music", b"abc"))
        monkeypatch.setattr(limits, "REINDEX_BYTES", 400)
        assert reindexed(node.node, ReindexRequest("music")).documents == 3
        monkeypatch.setattr(limits, "REINDEX_SCANNED", 1)
        token: bytes | None = b""
        written: list[int] = []
        while token is not None:
            answer = reindexed(node.node, ReindexRequest("music", token))
            token, written = answer.token, [*written, answer.documents]
        assert sorted(written) == [0] * 2 + [1] * 9
        monkeypatch.setattr(limits, "OPERATION_QUEUE_LENGTH", -4)
        with pytest.raises(Overload, match="reindexing waits"):
            reindexed(node.node, ReindexRequest("music"))


def test_queries_go_on_while_layouts_change(tmp_path: Path) -> None:
    """Every query is answered, by a layout that was there."""
    text = """schema music { document music {
      field title type string { indexing: index | summary }
      field year type int { indexing: %s summary } } }"""
    versions = [dict(parse_schemas({"schemas/music.sd": text % indexing}).schemas) for indexing in ("", "attribute |")]
    with started(tmp_path, versions[0]) as node:
        node.apply(*[put(k, year=k, title="word") for k in range(2000)])
        is_done, problems, profiles = Event(), list[object](), ServedSchemas()

        def ask() -> None:
            while not is_done.is_set():
                request = query_of(WordItem("title", "word"), hits=20, order_by=(SortKey("year"),))
                response = search(node.node.reader.view(), request, profiles)
                if response.total_count != 2000 or any(b'"year":' not in hit.fields for hit in response.hits):
                    problems.append(response)

        asking = [threading.Thread(target=ask) for _ in range(2)]
        for thread in asking:
            thread.start()
        for generation in range(2, 20):
            node.node.configure(generation, versions[generation % 2])
        is_done.set()
        for thread in asking:
            thread.join()
        assert problems == []


def test_addresses() -> None:
    assert address_of("default.music.default", "store") == "content/default.music.default/store"
