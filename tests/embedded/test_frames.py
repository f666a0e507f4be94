"""Frames and tables of all kinds as documents, and documents as tables."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import numpy
import pandas
import polars
import pyarrow
import pyarrow.csv
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import paperwasp
from paperwasp.errors import InvalidInput
from tests.document.typed_values import TEXT

SCHEMA: Final = """schema t { document t {
  struct person { field name type string {} field age type int {} }
  field name type string { indexing: summary | index }
  field kind type string { indexing: summary | attribute }
  field n type int { indexing: summary | attribute }
  field at type long { indexing: summary | attribute }
  field real type double { indexing: summary | attribute }
  field price type double { indexing: summary | attribute }
  field flag type bool { indexing: summary }
  field words type array<string> { indexing: summary | attribute }
  field weights type weightedset<string> { indexing: summary | attribute }
  field place type position { indexing: summary | attribute }
  field vector type tensor<float>(x[2]) { indexing: summary | attribute }
  field sparse type tensor<float>(k{}) { indexing: summary | attribute }
  field who type person { indexing: summary }
  field counts type map<string,int> { indexing: summary }
} }"""
IDS: Final = ["a", "b"]
NOON: Final = datetime.datetime(2026, 1, 2, 12)
SECONDS: Final = 1767355200
"""NOON, in UTC, by `date -u -d 2026-01-02T12:00 +%s`."""
VECTOR: Final = {"type": "tensor<float>(x[2])", "values": [1.0, 2.0]}


@pytest.fixture(scope="module")
def service() -> Iterator[paperwasp.Service]:
    with paperwasp.Service(SCHEMA) as service:
        yield service


def _documents(service: paperwasp.Service) -> dict[str, dict[str, Any]]:
    return {document.id.removeprefix("id:t:t::"): dict(document.fields) for document in service.visit()}


def _fed(service: paperwasp.Service, source: Any, **options: Any) -> dict[str, dict[str, Any]]:
    service.clear()
    result = service.feed(source, **options)
    assert result.failed == 0, result.problems
    return _documents(service)


PANDAS: Final[list[tuple[dict[str, Any], dict[str, Any]]]] = [
    ({"real": [1.5, numpy.nan], "name": ["x", None]}, {"real": 1.5, "name": "x"}),
    ({"n": [3, numpy.nan]}, {"n": 3}),
    ({"n": pandas.array([3, None], "Int32")}, {"n": 3}),
    ({"at": [pandas.Timestamp(NOON), pandas.NaT]}, {"at": SECONDS}),
    ({"at": pandas.to_datetime(["2026-01-02T13:00+01:00", None])}, {"at": SECONDS}),
    ({"kind": pandas.Categorical(["x", None])}, {"kind": "x"}),
    ({"words": [["p", "q"], []]}, {"words": ["p", "q"]}),
    ({"vector": [numpy.array([1.0, 2.0], numpy.float16), None]}, {"vector": VECTOR}),
    ({"vector": [numpy.arange(1, 5.0)[::2] / [1, 1.5], None]}, {"vector": VECTOR}),
    ({"price": [Decimal("1.50"), None]}, {"price": 1.5}),
    ({"who": [{"name": "q", "age": 3}, None]}, {"who": {"name": "q", "age": 3}}),
    ({"flag": [True, None]}, {"flag": True}),
    ({"name": [None, None]}, {}),
]


@pytest.mark.parametrize(("columns", "expected"), PANDAS)
def test_frames_of_pandas(service: paperwasp.Service, columns: dict[str, Any], expected: dict[str, Any]) -> None:
    assert _fed(service, pandas.DataFrame({"id": IDS, **columns})) == {"a": expected, "b": {}}


POLARS: Final[list[tuple[polars.Series, dict[str, Any]]]] = [
    (polars.Series("n", [3, None]), {"n": 3}),
    (polars.Series("n", [3.0, None]), {"n": 3}),
    (polars.Series("at", [NOON, None]), {"at": SECONDS}),
    (polars.Series("at", [NOON.date(), None]), {"at": SECONDS - 12 * 3600}),
    (polars.Series("kind", ["x", None], polars.Categorical), {"kind": "x"}),
    (polars.Series("kind", ["x", None], polars.Enum(["x", "y"])), {"kind": "x"}),
    (polars.Series("words", [["p", "q"], None]), {"words": ["p", "q"]}),
    (polars.Series("vector", [[1.0, 2.0], None], polars.Array(polars.Float32, 2)), {"vector": VECTOR}),
    (polars.Series("price", [Decimal("1.50"), None]), {"price": 1.5}),
    (polars.Series("who", [{"name": "q", "age": 3}, None]), {"who": {"name": "q", "age": 3}}),
    (polars.Series("name", [None, None]), {}),
]


@pytest.mark.parametrize(("column", "expected"), POLARS)
def test_frames_of_polars(service: paperwasp.Service, column: polars.Series, expected: dict[str, Any]) -> None:
    assert _fed(service, polars.DataFrame([polars.Series("id", IDS), column])) == {"a": expected, "b": {}}


def _map(key: str, value: Any, kind: Any) -> Any:
    return pyarrow.array([[(key, value)], None], pyarrow.map_(pyarrow.string(), kind))


ARROW: Final[list[tuple[str, Any, dict[str, Any]]]] = [
    ("kind", pyarrow.array(["x", None]).dictionary_encode(), {"kind": "x"}),
    ("kind", pyarrow.array(["x", None], pyarrow.string_view()), {"kind": "x"}),
    ("vector", pyarrow.array([[1, 2], None], pyarrow.list_(pyarrow.float32(), 2)), {"vector": VECTOR}),
    ("vector", pyarrow.array([[1, 2], None], pyarrow.large_list(pyarrow.float16())), {"vector": VECTOR}),
    ("words", pyarrow.array([["p", "q"], None], pyarrow.list_view(pyarrow.string())), {"words": ["p", "q"]}),
    ("who", pyarrow.array([{"name": "q", "age": 3}, None]), {"who": {"name": "q", "age": 3}}),
    ("counts", _map("k", 1, pyarrow.int32()), {"counts": {"k": 1}}),
    ("weights", _map("k", 1, pyarrow.int8()), {"weights": {"k": 1}}),
    ("sparse", _map("k", 1.5, pyarrow.float32()), {"sparse": {"type": "tensor<float>(k{})", "cells": {"k": 1.5}}}),
    ("price", pyarrow.array([Decimal("1.25"), None]), {"price": 1.25}),
    ("at", pyarrow.array([NOON, None], pyarrow.timestamp("ns", "Europe/Berlin")), {"at": SECONDS}),
    ("place", pyarrow.array([{"lat": 1.5, "lng": 2.5}, None]), {"place": {"lat": 1.5, "lng": 2.5}}),
    ("name", pyarrow.nulls(2), {}),
    ("n", pyarrow.chunked_array([[3], [None]], pyarrow.int16()), {"n": 3}),
    ("n", pyarrow.RunEndEncodedArray.from_arrays([1, 2], pyarrow.array([3, None])), {"n": 3}),
]


@pytest.mark.parametrize(("name", "column", "expected"), ARROW)
def test_arrow_tables_of_all_types(
    service: paperwasp.Service, name: str, column: Any, expected: dict[str, Any]
) -> None:
    assert _fed(service, pyarrow.table({"id": IDS, name: column})) == {"a": expected, "b": {}}


@pytest.mark.parametrize(("kind", "exact"), [(pyarrow.float64(), 2**53), (pyarrow.float32(), 2**24)])
def test_floats_that_may_have_lost_digits_are_refused(service: paperwasp.Service, kind: Any, exact: int) -> None:
    """Above 2^53, and 2^24 in 32 bits, there are fewer floats than whole numbers."""
    table = pyarrow.table({"id": IDS, "at": pyarrow.array([float(exact), None], kind)})
    with pytest.raises(InvalidInput, match=r"row 1, column 'at': .*may have lost digits.*Int64"):
        service.feed(table)
    below = pyarrow.table({"id": IDS, "at": pyarrow.array([float(1 - exact), None], kind)})
    assert _fed(service, below) == {"a": {"at": 1 - exact}, "b": {}}


def test_whole_numbers_that_became_floats_in_rows_streams_and_files(service: paperwasp.Service, tmp_path: Path) -> None:
    table = pyarrow.table({"id": IDS, "n": [3.0, None], "name": ["1.0", None], "real": [2.0, None]})
    expected = {"a": {"n": 3, "name": "1.0", "real": 2.0}, "b": {}}
    pyarrow.parquet.write_table(table, tmp_path / "t.parquet")
    pyarrow.csv.write_csv(table, tmp_path / "t.csv")
    (tmp_path / "t.jsonl").write_text('{"id":"a","n":3.0,"name":1.0,"real":2.0}\n{"id":"b","n":null}\n')
    for name in ("t.parquet", "t.csv", "t.jsonl"):
        assert _fed(service, tmp_path / name) == expected
    assert _fed(service, table.to_reader()) == expected
    assert _fed(service, table.to_pylist()) == expected
    ids = pyarrow.table({**dict(zip(table.column_names, table.columns, strict=True)), "id": ["id:t:t::a", "id:t:t::b"]})
    assert _fed(service, ids.to_reader()) == expected


def test_a_stream_is_read_once_and_in_order(service: paperwasp.Service) -> None:
    batches = [pyarrow.record_batch({"id": [str(number)], "n": [number]}) for number in range(3)]
    reader = pyarrow.RecordBatchReader.from_batches(batches[0].schema, iter(batches))
    assert _fed(service, reader) == {"0": {"n": 0}, "1": {"n": 1}, "2": {"n": 2}}
    assert _fed(service, batches[1]) == {"1": {"n": 1}}


def test_an_index_is_the_id_where_nothing_else_is(service: paperwasp.Service) -> None:
    expected = {"a": {"name": "x"}, "b": {"name": "y"}}
    assert _fed(service, pandas.DataFrame({"name": ["x", "y"]}, IDS)) == expected
    assert _fed(service, pandas.DataFrame({"name": ["x", "y"]}, pandas.Index(IDS, name="id"))) == expected
    assert _fed(service, pandas.DataFrame({"name": ["x", "y"]}, pandas.Index(IDS, name="key")), id="key") == expected
    rows = pandas.DataFrame({"id": ["a", "c", "b"], "name": ["x", "no", "y"]}, ["p", "q", "r"])
    assert _fed(service, rows[rows["name"] != "no"]) == expected, "what is left of an index is no field"


ROWS: Final[list[tuple[dict[str, Any], dict[str, Any]]]] = [
    ({"n": numpy.int32(4), "real": numpy.float32(1.5), "flag": numpy.bool_(True)}, {"n": 4, "real": 1.5, "flag": True}),
    ({"vector": numpy.array([1.0, 0.0, 2.0])[::2]}, {"vector": VECTOR}),
    ({"at": NOON}, {"at": SECONDS}),
    ({"at": NOON.replace(tzinfo=datetime.timezone(datetime.timedelta(hours=1)))}, {"at": SECONDS - 3600}),
    ({"at": NOON.date()}, {"at": SECONDS - 12 * 3600}),
    ({"at": NOON.time()}, {"at": 12 * 3600}),
    ({"at": datetime.timedelta(hours=12)}, {"at": 12 * 3600}),
    ({"at": pandas.Timestamp(NOON)}, {"at": SECONDS}),
    ({"at": pandas.NaT, "n": pandas.NA, "real": float("nan")}, {}),
    ({"price": Decimal("1.5")}, {"price": 1.5}),
    ({"words": {"q", "p"}}, {"words": ["p", "q"]}),
]


@pytest.mark.parametrize(("row", "expected"), ROWS)
def test_values_of_python_in_rows(service: paperwasp.Service, row: dict[str, Any], expected: dict[str, Any]) -> None:
    assert _fed(service, ({"id": key, **row} for key in ("a",))) == {"a": expected}


@pytest.mark.parametrize(
    ("source", "options", "message"),
    [
        (pandas.DataFrame({"id": IDS, "year": [1, 2]}), {}, "column 'year': there is no field 'year', but name, kind"),
        (pandas.DataFrame({"id": IDS, "n": [1, 2]}), {"columns": {"n": "m"}}, "column 'n': there is no field 'm'"),
        (pandas.DataFrame({"id": IDS, "n": [1, 1.5]}), {}, "row 2, column 'n': 1.5 is no whole number, .* type int"),
        (pandas.DataFrame({"id": IDS, "at": [1, 1e30]}), {}, "row 2, column 'at': 1e.30 is no whole number"),
        (pandas.DataFrame({"id": IDS, "n": [1, numpy.inf]}), {}, "row 2, column 'n': inf is no whole number"),
        (pandas.DataFrame({"id": IDS, "name": ["x", 1]}), {}, "column name"),
        (pandas.DataFrame({"name": IDS, "n": [1, 2]}), {}, "say with id= which .* columns are name, n"),
        (pandas.DataFrame({"name": IDS}), {"id": "key"}, "id= names 'key', and the columns are name"),
        (pandas.DataFrame({"id": IDS}), {"columns": {"x": "n"}}, "columns= names 'x', and the columns are id"),
        (pandas.DataFrame([["a", "x", "y"]], columns=["id", "name", "name"]), {}, "Duplicate"),
        (pandas.Series([1, 2]), {}, "the table"),
        (polars.LazyFrame({"id": IDS}), {}, "LazyFrame"),
        ({"id": IDS}, {}, "one dict"),
    ],
)
def test_a_table_that_does_not_fit_is_refused_before_anything_is_fed(
    service: paperwasp.Service, source: Any, options: dict[str, Any], message: str
) -> None:
    service.clear()
    with pytest.raises(InvalidInput, match=message):
        service.feed(source, **options)
    assert _documents(service) == {}


COLUMNS: Final[dict[str, Any]] = {
    "name": st.none() | TEXT.filter(bool),
    "n": st.none() | st.integers(1 - 2**31, 2**31 - 1),
    "real": st.none() | st.floats(allow_nan=False, allow_infinity=False),
    "flag": st.none() | st.booleans(),
    "words": st.none() | st.lists(TEXT, min_size=1, max_size=3),
}
DRAWN: Final = st.lists(
    st.fixed_dictionaries({"id": st.text("abz09", min_size=1, max_size=3), **COLUMNS}),
    min_size=1,
    max_size=5,
    unique_by=lambda row: row["id"],
)


@settings(max_examples=25)
@given(rows=DRAWN)
def test_rows_come_out_of_frames_as_they_went_in(service: paperwasp.Service, rows: list[dict[str, Any]]) -> None:
    """Through frames in which whole numbers beside missing ones are floats, and out as a table."""
    expected = {row["id"]: {name: row[name] for name in COLUMNS if row[name] is not None} for row in rows}
    kinds = {"name": polars.String, "n": polars.Int32, "real": polars.Float64, "flag": polars.Boolean}
    schema: dict[str, Any] = {"id": polars.String, **kinds, "words": polars.List(polars.String)}
    for frame in (pandas.DataFrame(rows), polars.DataFrame(rows, schema)):
        assert _fed(service, frame) == expected
    table = service.visit().to_arrow().to_pylist()
    shown = {row.pop("id").removeprefix("id:t:t::"): row for row in table}
    assert {key: {name: value for name, value in row.items() if value is not None} for key, row in shown.items()} == (
        expected
    )


def test_hits_and_documents_of_all_types_are_tables(service: paperwasp.Service) -> None:
    full = {
        "name": "x", "n": 1, "words": ["p"], "weights": {"k": 2}, "place": {"lat": 1.5, "lng": 2.5}, "vector": [1, 2],
        "sparse": {"cells": {"k": 1.5}}, "who": {"name": "q", "age": 3}, "counts": {"k": 1},
    }  # fmt: skip
    service.clear()
    assert service.feed([{"id": "a", **full}, {"id": "b", "n": 2}]).failed == 0
    result = service.query("select * from t where true order by n", ranking="unranked")
    for table in (result.to_arrow(), service.visit().to_arrow().sort_by("n")):
        first, second = table.to_pylist()
        assert (first["name"], first["n"], first["words"]) == ("x", 1, ["p"])
        assert first["vector"] == VECTOR
        assert (first["who"], first["counts"]) == ({"name": "q", "age": 3}, {"k": 1})
        assert second["n"] == 2 and second["vector"] is None and second["weights"] is None
    frame = result.to_pandas()
    assert frame["n"].tolist() == [1, 2] and frame["vector"].isna().tolist() == [False, True]
    assert service.query("select * from t where false").to_arrow().num_rows == 0
    assert service.query("select * from t where false").to_pandas().empty
