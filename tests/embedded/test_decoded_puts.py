"""Tables whose values need not become JSON: fed so, they make the same documents and the same refusals as with JSON."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import paperwasp
from paperwasp.client.sources.arrow import plain_puts
from paperwasp.client.sources.rows import RowMapping, RowOptions
from paperwasp.container.document import decoded
from paperwasp.container.document.decoded import DecodedPuts
from paperwasp.embedded.requests import Document
from paperwasp.errors import InvalidInput
from tests.document.typed_values import TEXT
from tests.embedded.music import SCHEMA as MUSIC

SCHEMA = """schema t { document t {
  field text type string { indexing: summary | index }
  field whole type int { indexing: summary | attribute }
  field real type double { indexing: summary | attribute }
  field flag type bool { indexing: summary }
  field words type array<string> { indexing: summary | attribute }
  field weights type weightedset<string> { indexing: summary | attribute }
  field address type uri { indexing: summary | index }
  field vector type tensor<float>(x[1]) { indexing: summary | attribute }
} }"""
FIELDS = ("text", "whole", "real", "flag", "words", "weights", "address", "vector")
COLUMNS = (
    (pyarrow.string(), TEXT | st.sampled_from(["7", "1.5", "true", "NaN", "http://host:port/", "\x01"])),
    (pyarrow.int64(), st.integers(-(2**63), 2**63 - 1) | st.integers(-1, 1)),
    (pyarrow.uint64(), st.integers(0, 2**64 - 1)),
    (pyarrow.float64(), st.floats() | st.sampled_from([0.0, -0.0, 1e300, 1.5])),
    (pyarrow.bool_(), st.booleans()),
    (pyarrow.list_(pyarrow.string()), st.lists(TEXT | st.none(), max_size=3)),
    (pyarrow.dictionary(pyarrow.int32(), pyarrow.string()), st.sampled_from(["a", "b", ""])),
    (pyarrow.null(), st.none()),
)
IDS = st.text("abz09 é/:#%", min_size=1, max_size=4) | st.sampled_from(["id:t:t::x", "id:n:t::y", "id:t:t:g=a:b"])


@st.composite
def tables(draw: st.DrawFn) -> pyarrow.Table:
    """A table with columns of any plain kind for fields of any type."""
    ids = draw(st.lists(IDS, min_size=1, max_size=6))
    columns = {"id": pyarrow.array(ids)}
    for name in draw(st.lists(st.sampled_from(FIELDS + ("absent",) * (draw(st.integers(0, 9)) == 0)), unique=True)):
        kind, values = draw(st.sampled_from(COLUMNS))
        row = st.lists(st.none() | values, min_size=len(ids), max_size=len(ids))
        columns[name] = pyarrow.array(draw(row), kind)
    return pyarrow.table(columns)


@pytest.fixture(scope="module")
def service() -> Iterator[paperwasp.Service]:
    with paperwasp.Service(SCHEMA) as service:
        yield service


def _fed(service: paperwasp.Service, table: pyarrow.Table, **options: Any) -> tuple[Any, ...]:
    service.clear()
    try:
        result = service.feed(table, schema="t", **options)
    except InvalidInput as error:
        return (str(error),)
    documents = {document.id: document.fields for document in service.visit()}
    return result.ok, result.failed, sorted(map(repr, result.problems)), repr(documents)


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(table=tables())
def test_documents_and_refusals_are_those_of_json(service: paperwasp.Service, table: pyarrow.Table) -> None:
    here = _fed(service, table)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(DecodedPuts, "can_take", lambda self, types: False)
        assert here == _fed(service, table)


def _counted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    sent: list[str] = []
    send = DecodedPuts._send

    def note(self: DecodedPuts, document_id: Any, *more: Any) -> None:
        sent.append(document_id.text)
        send(self, document_id, *more)

    monkeypatch.setattr(decoded.DecodedPuts, "_send", note)
    return sent


def test_plain_tables_need_no_json(service: paperwasp.Service, monkeypatch: pytest.MonkeyPatch) -> None:
    sent = _counted(monkeypatch)
    table = pyarrow.table({"id": [str(n) for n in range(600)], "text": ["words"] * 600, "whole": [*range(599), None]})
    assert service.feed(table, schema="t").ok == 600
    assert sent == [f"id:t:t::{n}" for n in range(600)]
    assert service.get("598", schema="t") == Document("id:t:t::598", {"text": "words", "whole": 598})
    assert service.get("599", schema="t") == Document("id:t:t::599", {"text": "words"})


@pytest.mark.parametrize(
    ("table", "options"),
    [
        (pyarrow.table({"id": ["1"], "vector": [[0.5]]}), {}),
        (pyarrow.table({"id": ["1"], "real": pyarrow.array([0.5], pyarrow.float32())}), {}),
        (pyarrow.table({"id": ["é"], "text": ["x"]}), {}),
        (pyarrow.table({"id": ["1"], "text": ["x" * 40_000]}), {}),
        (pyarrow.table({"key": ["1"], "text": ["x"]}), {"id": "{key}-a", "columns": {"key": ""}}),
        (pyarrow.table({"id": ["1"], "text": ["x"]}), {"operation": "update"}),
        (pyarrow.table({"id": ["1"], "text": ["x"]}), {"namespace": "é"}),
    ],
)
def test_all_else_goes_by_json(
    service: paperwasp.Service, monkeypatch: pytest.MonkeyPatch, table: pyarrow.Table, options: dict[str, Any]
) -> None:
    sent = _counted(monkeypatch)
    assert service.feed(table, schema="t", **options).ok == 1
    assert sent == []


def test_types_in_several_clusters_or_with_selections_go_by_json(monkeypatch: pytest.MonkeyPatch) -> None:
    content = """<content id="{}" version="1.0"><redundancy>1</redundancy>
        <documents><document type="music" mode="index" {}/></documents>
        <nodes><node distribution-key="0" hostalias="h"/></nodes></content>"""
    container = '<container id="c" version="1.0"><search/><document-api/></container>'
    selection = "selection='music.year &gt; 1958'"
    for clusters, found in (((("a", ""), ("b", "")), 2), ((("a", selection),), 1)):
        services = "".join([container, *(content.format(*each) for each in clusters)])
        files = {"services.xml": f'<services version="1.0">{services}</services>', "schemas/music.sd": MUSIC}
        sent = _counted(monkeypatch)
        with paperwasp.Service(files) as service:
            table = pyarrow.table({"id": ["1", "2"], "year": [1957, 1959]})
            assert service.feed(table).ok == 2
            ids = {document.id for document in service.visit()}
        assert (sent, len(ids)) == ([], found)


def test_ids_and_columns_of_plain_puts() -> None:
    table = pyarrow.table({"id": ["id:n:t::1", "2", "id:n:t::3"], "a": [1, None, 3], "b": ["x", "y", "z"]})
    columns = RowMapping(RowOptions("t", None, None, {"b": "c", "id": "a"})).plain_columns(table.schema.names)
    assert columns is not None
    puts = plain_puts(table.to_batches()[0], columns)
    assert puts is not None and puts.document_types == {"t"}
    assert [(str(put.document_id), put.fields) for put in puts.puts] == [
        ("id:n:t::1", {"a": 1, "c": "x"}),
        ("id:t:t::2", {"a": "2", "c": "y"}),
        ("id:n:t::3", {"a": 3, "c": "z"}),
    ]


@pytest.mark.parametrize(
    "options",
    [
        RowOptions("t", id="{id}"),
        RowOptions("t", operation="remove"),
        RowOptions("t", types={"b": "int"}),
        RowOptions("a:b"),
        RowOptions("t", "é"),
        RowOptions("t", id="absent"),
    ],
)
def test_options_that_need_the_general_way(options: RowOptions) -> None:
    assert RowMapping(options).plain_columns(["id", "b"]) is None


@pytest.mark.parametrize("ids", [["1", None], ["1", ""], ["1", "id:t"], ["1", "id:n:t:n=1:a"], ["a\tb"]])
def test_ids_that_are_not_plain(ids: list[str | None]) -> None:
    columns = RowMapping(RowOptions("t")).plain_columns(["id"])
    assert columns is not None
    assert plain_puts(pyarrow.table({"id": pyarrow.array(ids, pyarrow.string())}).to_batches()[0], columns) is None
