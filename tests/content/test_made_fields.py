"""Fields that indexing makes, in a content node: reindexing makes them again, and never over a later change."""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from threading import Event

import orjson
import pytest
from msgspec import structs

from paperwasp import limits
from paperwasp.base.records import replace
from paperwasp.content.log.operation_queue import Adder
from paperwasp.content.log.records import Reindex
from paperwasp.content.upkeep.reindexing import _Answers, next_chunk
from paperwasp.coordination.messages.documents import ReindexRequest, ReindexResponse
from paperwasp.document.ids import DocumentId
from paperwasp.document.operations import Refusal, Update
from paperwasp.document.types import INT, LONG, STRING
from paperwasp.document.updates import Assign, FieldUpdate
from paperwasp.errors import InvalidInput
from paperwasp.indexing import processor_of
from paperwasp.schema import Schema, parse_schemas
from paperwasp.schema.model import Field
from tests.content.nodes import TestNode, doc_id, put, reindexed, schema, started, update

SCHEMA = """
schema music {{
    document music {{
        field title type string {{ indexing: summary }}
        field year type int {{ indexing: attribute }}
    }}
    field lower type string {{ indexing: input title | {script} | index | summary }}
    field decade type int {{ indexing: input year / 10 * 10 | attribute }}
}}
"""


def schemas(script: str) -> dict[str, Schema]:
    return {"music": parse_schemas({"schemas/music.sd": SCHEMA.format(script=script)}).schemas["music"]}


def shown(node: TestNode, name: str) -> dict[str, object]:
    """All fields of a document."""
    found = node.node.reader.get(doc_id(name), frozenset({"title", "year", "lower", "decade"}))
    assert found is not None
    fields: dict[str, object] = orjson.loads(found)
    return fields


def feed(node: TestNode, schema: Schema, name: str, **fields: object) -> None:
    processor = processor_of(schema)
    assert processor is not None
    assert node.apply(put(name, **processor.put(doc_id(name), fields))) in ([True], [False])


def test_fields_are_made_again_by_the_scripts_in_force(tmp_path: Path) -> None:
    before, after = schemas("lowercase"), schemas("substring 0 2")
    with started(tmp_path, before) as node:
        feed(node, before["music"], "a", title="Blue", year=1959)
        feed(node, before["music"], "b", year=1960)
        node.apply(update("a", year=1971))
        assert shown(node, "a") == {"title": "Blue", "year": 1971, "lower": "blue", "decade": 1950}
        node.node.configure(2, after)
        assert shown(node, "a")["lower"] == "blue"
        assert reindexed(node.node, ReindexRequest("music")).documents == 2
        assert shown(node, "a") == {"title": "Blue", "year": 1971, "lower": "Bl", "decade": 1970}
        assert shown(node, "b") == {"year": 1960, "decade": 1960}
        assert node.get("a") == {"title": "Blue", "year": 1971}
        node.crash()
        with started(tmp_path, after) as again:
            assert shown(again, "a") == {"title": "Blue", "year": 1971, "lower": "Bl", "decade": 1970}


def test_a_chunk_ends_where_there_is_no_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What there was room for is written once, counted, and not made again."""
    before, after = schemas("lowercase"), schemas("substring 0 2")
    with started(tmp_path, before) as node:
        for name in "abcdefgh":
            feed(node, before["music"], name, title="Blue", year=1959)
        node.node.configure(2, after)
        monkeypatch.setattr(limits, "OPERATION_QUEUE_LENGTH", 3)
        request, counts = ReindexRequest("music"), []
        while True:
            answer = reindexed(node.node, request)
            counts.append(answer.documents)
            assert sum(shown(node, name)["lower"] == "Bl" for name in "abcdefgh") == sum(counts)
            if answer.token is None:
                break
            request = structs.replace(request, token=answer.token)
        assert counts == [3, 3, 2]


def test_what_changed_before_its_turn_is_made_again_as_there_is_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three fit at first, and have changed since they were read; then two of them, then the last."""
    known = schemas("lowercase")
    rooms = iter([3, 2, 3])
    with started(tmp_path, known) as node:
        for name in "abcdefgh":
            feed(node, known["music"], name, title="Blue", year=1959)
        view, operations = node.node.reader.view(), node.node.operations
        chunk = next_chunk(view.store, ReindexRequest("music"))
        node.apply(*(update(name, title="GREEN") for name in "abcdefgh"))
        adding = operations.adding

        def adding_less() -> AbstractContextManager[Adder]:
            monkeypatch.setattr(limits, "OPERATION_QUEUE_LENGTH", next(rooms))
            return adding()

        monkeypatch.setattr(operations, "adding", adding_less)
        answers, done = list[object](), Event()
        processor = processor_of(known["music"])
        reply = partial(_note, answers, done)
        _Answers(node.node.reader, operations, chunk, processor, reply).begin(view)
        assert done.wait(30)
        (answer,) = answers
        assert isinstance(answer, ReindexResponse) and (answer.documents, next(rooms, None)) == (3, None)
        assert answer.token == DocumentId.parse(chunk.documents[2].id).gid
        made = [DocumentId.parse(document.id).user_specified for document in chunk.documents[:3]]
        assert {name for name in "abcdefgh" if shown(node, name)["lower"] == "green"} == set(made)


def _note(answers: list[object], done: Event, answer: object) -> None:
    answers.append(answer)
    done.set()


def test_what_was_made_by_a_script_that_went_is_no_reason_to_refuse(tmp_path: Path) -> None:
    """The container made a field, and a deployment took it away before the node's turn: the rest is taken."""
    before = schemas("lowercase")
    after = {"music": without(before["music"], "lower")}
    processor = processor_of(before["music"])
    assert processor is not None
    with started(tmp_path, before) as node:
        feed(node, before["music"], "a", title="Blue", year=1959)
        late_put = put("b", **processor.put(doc_id("b"), {"title": "Kind", "year": 1961}))
        title = (FieldUpdate("title", Assign("Green")),)
        late_update = Update(doc_id("a"), processor.update(doc_id("a"), title))
        assert "lower" in late_put.fields and any(update.field == "lower" for update in late_update.updates)
        read_us = node.node.reader.view().timestamp_us
        late_reindex = Reindex(doc_id("a"), {"lower": "blue", "decade": 1970}, read_us)
        node.node.configure(2, after)
        assert node.apply(late_reindex, late_put, late_update) == [True, False, True]  # type: ignore[arg-type]
        assert shown(node, "a") == {"title": "Green", "year": 1959, "decade": 1970}
        assert shown(node, "b") == {"title": "Kind", "year": 1961, "decade": 1960}
        (refused,) = node.apply(put("c", nothing="of the kind"))
        assert isinstance(refused, InvalidInput) and "No field named 'nothing'" in refused.message
        (refused,) = node.apply(put("c", lower=3))
        assert isinstance(refused, InvalidInput), "valid under no layout"
        node.crash()
        with started(tmp_path, after) as again:
            assert shown(again, "b") == {"title": "Kind", "year": 1961, "decade": 1960}


def without(known: Schema, name: str) -> Schema:
    return replace(known, fields={field: value for field, value in known.fields.items() if field != name})


def test_a_value_of_the_type_before_is_kept_where_it_reads_as_the_new_one(tmp_path: Path) -> None:
    """As of the documents that are there: see `test_relayout`."""
    before = schema("music", Field("title", STRING), Field("year", INT), Field("note", STRING))
    after = schema("music", Field("title", STRING), Field("year", LONG), Field("note", INT))
    with started(tmp_path, {"music": before}) as node:
        node.apply(put("a", year=1, note="x"))
        node.node.configure(2, {"music": after})
        assert node.apply(put("b", title="t", year=2, note="y"), update("a", title="u", note="z")) == [False, True]
        assert node.get("b") == {"title": "t", "year": 2}
        assert node.get("a") == {"title": "u", "year": 1}


def test_what_was_made_of_an_earlier_document_is_not_written(tmp_path: Path) -> None:
    """By a put, in place, or in the same batch."""
    known = schemas("lowercase")
    with started(tmp_path, known) as node:
        feed(node, known["music"], "a", title="Blue", year=1959)
        read_us = int(node.node.reader.view().timestamps[0])
        late = Reindex(doc_id("a"), {"lower": "late", "decade": None}, read_us)
        node.apply(update("a", year=1960))
        (outcome,) = node.outcomes(late)  # type: ignore[arg-type]
        assert outcome.refusal is Refusal.NOT_MET
        first, second = node.outcomes(put("a", title="New", lower="new"), late)  # type: ignore[arg-type]
        assert (first.refusal, second.refusal) == (None, Refusal.NOT_MET)
        assert shown(node, "a") == {"title": "New", "lower": "new"}
        assert reindexed(node.node, ReindexRequest("music")).documents == 1
        assert shown(node, "a") == {"title": "New", "lower": "new"}
