"""Fields that indexing makes, in a content node: reindexing makes them again, and never over a later change."""

from __future__ import annotations

import sys
from pathlib import Path

import orjson

sys.path.insert(0, str(Path(__file__).parent))
from nodes import TestNode, doc_id, put, reindexed, started, update

from paperwasp.content.messages import ReindexRequest
from paperwasp.content.records import Reindex
from paperwasp.document.operations import Refusal
from paperwasp.indexing import processor_of
from paperwasp.schema import Schema, parse_schemas

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
    found = node.node.get(doc_id(name), frozenset({"title", "year", "lower", "decade"}))
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


def test_what_was_made_of_an_earlier_document_is_not_written(tmp_path: Path) -> None:
    """By a put, in place, or in the same batch."""
    known = schemas("lowercase")
    with started(tmp_path, known) as node:
        feed(node, known["music"], "a", title="Blue", year=1959)
        read_us = int(node.node.view().timestamps[0])
        late = Reindex(doc_id("a"), {"lower": "late", "decade": None}, read_us)
        node.apply(update("a", year=1960))
        (outcome,) = node.outcomes(late)  # type: ignore[arg-type]
        assert outcome.refusal is Refusal.NOT_MET
        first, second = node.outcomes(put("a", title="New", lower="new"), late)  # type: ignore[arg-type]
        assert (first.refusal, second.refusal) == (None, Refusal.NOT_MET)
        assert shown(node, "a") == {"title": "New", "lower": "new"}
        assert reindexed(node.node, ReindexRequest("music")).documents == 1
        assert shown(node, "a") == {"title": "New", "lower": "new"}
