"""Values, names and ids that could be taken for others: infinities, columns like operations, halves of characters."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from decimal import Decimal
from math import inf, nan
from typing import Any, Final

import numpy
import orjson
import pyarrow
import pytest

import paperwasp
from paperwasp.client.sources.values import json_of, plain_value
from paperwasp.document.ids import DocumentId
from paperwasp.embedded.calls import get_call
from paperwasp.embedded.frames import arrow_table
from paperwasp.embedded.requests import RequestFailed
from paperwasp.embedded.results import QueryResult
from paperwasp.errors import InvalidInput

SCHEMA: Final = """schema m { document m {
  field s type string { indexing: summary }
  field d type double { indexing: summary | attribute }
  field n type int { indexing: summary | attribute }
  field many type array<double> { indexing: summary }
  field t type tensor<float>(x[2]) { indexing: summary | attribute }
  field put type string { indexing: summary }
  field remove type string { indexing: summary }
  field fields type map<string,string> { indexing: summary }
  field id type string { indexing: summary }
  field source type array<string> { indexing: summary }
} }"""
NO_DOCUMENTS_HERE: Final = """<services version="1.0"><container id="q" version="1.0"><search/></container>
<container id="f" version="1.0"><document-api/></container>
<content id="content" version="1.0"><redundancy>1</redundancy><documents><document type="m" mode="index"/></documents>
<nodes><node distribution-key="0" hostalias="node1"/></nodes></content></services>"""
HALF: Final = "\ud800"


@pytest.fixture(scope="module")
def shared() -> Iterator[paperwasp.Service]:
    with paperwasp.Service(SCHEMA) as service:
        yield service


@pytest.fixture
def service(shared: paperwasp.Service) -> paperwasp.Service:
    shared.clear()
    return shared


def _fed(service: paperwasp.Service, *rows: dict[str, Any]) -> dict[str, Any]:
    """The fields of the documents that a feed leaves, by the last part of their ids."""
    service.clear()
    assert service.feed(rows).problems == []
    return {document.id.removeprefix("id:m:m::"): dict(document.fields) for document in service.visit()}


@dataclasses.dataclass
class Point:
    x: float
    _hidden: float = inf


def test_infinities_are_kept_by_their_names(service: paperwasp.Service) -> None:
    infinite = numpy.array([0.1, -inf], numpy.float32)
    for value, expected in ((inf, "Infinity"), (numpy.float32(-inf), "-Infinity"), (Decimal("-Infinity"), "-Infinity")):
        assert _fed(service, {"id": "1", "d": value}) == {"1": {"d": expected}}
        service.update("1", {"d": 1.0})
        service.update("1", {"d": value})
        assert dict(service.get("1") or ()) == {"d": expected}
    assert _fed(service, {"id": "1", "many": [1.0, inf], "t": infinite, "d": nan}) == {
        "1": {
            "many": [1.0, "Infinity"],
            "t": {"type": "tensor<float>(x[2])", "values": [pytest.approx(0.1), "-Infinity"]},
        }
    }
    service.put("1", {"d": inf, "many": {1.5, -inf}})
    assert dict(service.get("1") or ()) == {"d": "Infinity", "many": ["-Infinity", 1.5]}
    assert _fed(service, {"put": "1", "fields": {"d": -inf}}) == {"1": {"d": "-Infinity"}}


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ([[inf], (nan, None)], [["Infinity"], [None, None]]),
        ({"a": {"b": -inf}, inf: "null"}, {"a": {"b": "-Infinity"}, "Infinity": "null"}),
        (numpy.array([[1, inf], [nan, 2]]), [[1.0, "Infinity"], [None, 2.0]]),
        (numpy.array([[1, inf], [0.1, 2]], numpy.float32), [[1.0, "Infinity"], [0.1, 2.0]]),
        (numpy.array(inf), "Infinity"),
        (numpy.float16(-inf), "-Infinity"),
        (numpy.array([inf, None, 1], object), ["Infinity", None, 1]),
        (pyarrow.array([1.5, inf, None]), [1.5, "Infinity", None]),
        (pyarrow.scalar(inf), "Infinity"),
        (Point(inf), {"x": "Infinity"}),
        ([inf, orjson.Fragment("[null]")], ["Infinity", [None]]),
        ([inf, numpy.arange(2), numpy.datetime64("2026-01-02")], ["Infinity", [0, 1], "2026-01-02T00:00:00"]),
        ([None, numpy.array([0.5, nan])], [None, [0.5, None]]),
    ],
)
def test_infinities_have_names_at_any_depth(value: Any, expected: Any) -> None:
    assert orjson.loads(json_of(value, plain_value("s"))) == expected


def test_columns_named_like_operations_are_fields(service: paperwasp.Service) -> None:
    assert _fed(service, {"id": "1", "s": "a", "remove": "no"}) == {"1": {"s": "a", "remove": "no"}}
    row = {"id": "1", "put": "2", "fields": {"a": "b"}}
    service.clear()
    assert service.feed([row], id="{id}", columns={"id": ""}).ok == 1
    assert dict(service.get("1") or ()) == {"put": "2", "fields": {"a": "b"}}


def test_operations_are_still_taken_as_they_are(service: paperwasp.Service) -> None:
    put = {"put": "1", "fields": {"s": "a"}}
    whole = {"put": "id:m:m::2", "fields": {"s": "b"}, "note": "of no field"}
    assert _fed(service, put, whole) == {"1": {"s": "a"}, "2": {"s": "b"}}
    updates: list[dict[str, Any]] = [{"update": "3", "fields": {"s": {"assign": "c"}}, "create": True}, {"remove": "1"}]
    assert service.feed([*updates, {"remove": "id:m:m::2", "note": "of no field"}]).ok == 3
    assert [document.id for document in service.visit()] == ["id:m:m::3"]


def test_fields_named_like_what_a_hit_has_are_shown_besides(service: paperwasp.Service) -> None:
    service.put("1", {"id": "own", "source": ["x"]})
    result = service.query("select * from m where true")
    (row,) = result.rows()
    assert (row["id"], row["source"]) == ("id:m:m::1", "content")
    assert (row["fields.id"], row["fields.source"]) == ("own", ["x"])
    assert result[0]["id"] == "own"
    (visited,) = service.visit().rows()
    assert (visited["id"], visited["fields.id"]) == (result[0].id, "own")
    assert {"id", "fields.id"} <= set(result.to_arrow().column_names) & set(result.to_pandas().columns)
    assert "fields.source" in result._repr_html_()
    hit = {"id": "a", "relevance": 0.5, "source": "s", "fields": {"relevance": "much"}}
    assert QueryResult(orjson.dumps({"root": {"children": [hit]}})).rows() == [
        {"id": "a", "relevance": 0.5, "source": "s", "fields.relevance": "much"}
    ]


def test_none_is_only_a_document_that_is_not_there(service: paperwasp.Service) -> None:
    assert service.get("none") is None
    with paperwasp.Service({"schemas/m.sd": SCHEMA, "services.xml": NO_DOCUMENTS_HERE}) as other:
        assert other.get("1") is None
        call = get_call(other.named("1", None, None), {})
        with pytest.raises(RequestFailed, match="No binding") as raised:
            call.read(other.request(call.request, "q"))
        assert raised.value.status == 404


def test_an_id_without_its_last_part_is_refused(service: paperwasp.Service) -> None:
    service.put("1", {"s": "a"})
    message = "id 'id:m:m::': the part behind the last ':' is empty"
    with pytest.raises(InvalidInput, match=message):
        service.get("")
    with pytest.raises(InvalidInput, match=message):
        service.put("", {})
    with pytest.raises(InvalidInput, match=message):
        service.remove("", selection="true", cluster="content")
    assert service.get("1") is not None


def test_half_of_a_surrogate_pair_is_refused_with_its_place(service: paperwasp.Service) -> None:
    for row in (
        {"id": HALF, "s": "a"},
        {"put": f"id:m:m::{HALF}", "fields": {}},
        {"remove": f"id:m:m:g={HALF}:x"},
        {"put": "1", "fields": {"s": HALF}},
    ):
        with pytest.raises(InvalidInput, match=r"^row 2: .*surrogate") as raised:
            service.feed([{"id": "1", "s": "é"}, row])
        assert raised.value.message.isprintable()
    with pytest.raises(InvalidInput, match=r"id 'id:m:m::\\ud800'"):
        service.put(HALF, {})
    with pytest.raises(InvalidInput, match="surrogate"):
        DocumentId(HALF, "m", "1", number=5)
    assert DocumentId.parse("id:m:m::é😀").text == "id:m:m::é😀"


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([1.5, None, "NaN"], [1.5, None, nan]),
        (["-Infinity", 1, 2.5, "Infinity"], [-inf, 1.0, 2.5, inf]),
        (["NaN", None], ["NaN", None]),
        ([True, "NaN"], ["true", '"NaN"']),
        ([1.5, "NaN", "x"], ["1.5", '"NaN"', '"x"']),
        ([1.5, [1]], ["1.5", "[1]"]),
    ],
)
def test_names_of_numbers_are_numbers_among_numbers(values: list[Any], expected: list[Any]) -> None:
    found = arrow_table([{"d": value} for value in values])["d"].to_pylist()
    assert found == [pytest.approx(each, nan_ok=True) if isinstance(each, float) else each for each in expected]


def test_documents_with_nan_come_back_from_a_table(service: paperwasp.Service) -> None:
    rows: list[dict[str, Any]] = [
        {"put": "1", "fields": {"d": 1.5}},
        {"put": "2", "fields": {"d": "NaN"}},
        {"id": "3", "d": inf},
    ]
    before = _fed(service, *rows)
    table = service.visit().to_arrow()
    assert table.schema.field("d").type == pyarrow.float64()
    service.clear()
    assert service.feed(table).problems == []
    assert {document.id[-1]: dict(document.fields) for document in service.visit()} == before


@pytest.mark.parametrize("kind", ["decimal32", "decimal64", "decimal128", "decimal256"])
def test_whole_decimals_are_whole_numbers(service: paperwasp.Service, kind: str) -> None:
    if (make := getattr(pyarrow, kind, None)) is None:
        pytest.skip("this pyarrow does not have them")
    column = pyarrow.array([Decimal("5.00"), None], make(6, 2))
    assert service.feed(pyarrow.table({"id": ["1", "2"], "n": column, "s": column})).problems == []
    assert dict(service.get("1") or ()) == {"n": 5, "s": "5.00"}
    with pytest.raises(InvalidInput, match=r"row 1, column 'n': 5\.50 is no whole number"):
        service.feed(pyarrow.table({"id": ["1"], "n": pyarrow.array([Decimal("5.50")], make(6, 2))}))
