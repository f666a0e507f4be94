"""Random rows fed in process, in every form that rows come in: the same documents. PAPERWASP_FUZZ: how many.

Rows that do not fit are refused one by one, or as a whole with the place; the others are there.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas
import pyarrow
import pyarrow.parquet
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import paperwasp
from paperwasp.embedded.sources import Source
from paperwasp.errors import InvalidInput, PaperwaspError
from tests.document.typed_values import TEXT

EXAMPLES = int(os.environ.get("PAPERWASP_FUZZ", "25"))
SCHEMA = """schema t { document t {
  field name type string { indexing: summary | index }
  field small type int { indexing: summary | attribute }
  field large type long { indexing: summary | attribute }
  field real type double { indexing: summary | attribute }
  field flag type bool { indexing: summary }
  field words type array<string> { indexing: summary | attribute }
  field vector type tensor<float>(x[2]) { indexing: summary | attribute }
} }"""
TYPES = {
    "name": (pyarrow.string(), TEXT),
    "small": (pyarrow.int32(), st.integers(1 - 2**31, 2**31 - 1)),
    "large": (pyarrow.int64(), st.integers(1 - 2**63, 2**63 - 1)),
    "real": (pyarrow.float64(), st.floats(allow_nan=False, allow_infinity=False)),
    "flag": (pyarrow.bool_(), st.booleans()),
    "words": (pyarrow.list_(pyarrow.string()), st.lists(TEXT, max_size=3)),
    "vector": (pyarrow.list_(pyarrow.float32(), 2), st.lists(st.floats(-9, 9, width=32), min_size=2, max_size=2)),
}
IDS = st.text("abz09 é/:#", min_size=1, max_size=4)
Row = dict[str, Any]
ROWS = st.lists(
    st.fixed_dictionaries({"id": IDS}, optional={name: st.none() | values for name, (_, values) in TYPES.items()}),
    max_size=5,
    unique_by=lambda row: row["id"],
)
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | TEXT | st.binary(max_size=2),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(TEXT, inner, max_size=2),
    max_leaves=3,
)
WRONG = st.lists(
    st.dictionaries(st.sampled_from([*TYPES, "id", "absent", "put", "fields", ""]), ANYTHING | IDS, max_size=4)
    | st.tuples(IDS, st.sampled_from(list(TYPES)), ANYTHING).map(lambda drawn: {"id": drawn[0], drawn[1]: drawn[2]}),
    max_size=4,
)


@pytest.fixture(scope="module")
def service() -> Iterator[paperwasp.Service]:
    with paperwasp.Service(SCHEMA) as service:
        yield service


def _table(rows: list[Row]) -> pyarrow.Table:
    schema = pyarrow.schema([("id", pyarrow.string()), *((name, kind) for name, (kind, _) in TYPES.items())])
    return pyarrow.Table.from_pylist(rows, schema=schema)


def _forms(rows: list[Row], folder: Path) -> Iterator[tuple[str, Source]]:
    table = _table(rows)
    operations = [
        {
            "put": f"id:t:t::{row['id']}",
            "fields": {name: row[name] for name in row if name != "id" and row[name] is not None},
        }
        for row in rows
    ]
    (folder / "rows.jsonl").write_text("".join(f"{json.dumps(each)}\n" for each in operations))
    pyarrow.parquet.write_table(table, folder / "rows.parquet")
    yield "rows", rows
    yield "operations", operations
    yield "an Arrow table", table
    yield "a frame", table.to_pandas(types_mapper=pandas.ArrowDtype)
    yield "a JSONL file", folder / "rows.jsonl"
    yield "a Parquet file", folder / "rows.parquet"


def _documents(service: paperwasp.Service) -> dict[str, Any]:
    return {document.id: document.fields for document in service.visit()}


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
@given(rows=ROWS)
def test_every_form_of_rows_makes_the_same_documents(
    service: paperwasp.Service, tmp_path_factory: pytest.TempPathFactory, rows: list[Row]
) -> None:
    folder = tmp_path_factory.mktemp("rows")
    expected: dict[str, Any] = {}
    for form, source in _forms(rows, folder):
        service.clear()
        result = service.feed(source, schema="t")
        assert (result.ok, result.failed) == (len(rows), 0), (form, result)
        found = _documents(service)
        if form == "rows":
            expected = found
            assert found.keys() == {f"id:t:t::{row['id']}" for row in rows}
            for row in rows:
                shown = found[f"id:t:t::{row['id']}"]
                for name in ("name", "small", "large", "real", "flag"):
                    fed = row.get(name)
                    assert shown.get(name) == (None if fed == "" else fed), name  # empty texts are not stored
        assert found == expected, form


@settings(max_examples=EXAMPLES * 3, deadline=None, suppress_health_check=list(HealthCheck))
@given(rows=WRONG)
def test_rows_that_do_not_fit_are_refused_with_their_place(service: paperwasp.Service, rows: list[Row]) -> None:
    service.clear()
    try:
        result = service.feed(rows, schema="t")
    except PaperwaspError as error:
        assert isinstance(error, InvalidInput), error
        (number,) = re.findall(r"^row (\d+)", error.message)
        assert 1 <= int(number) <= len(rows)
        return
    assert result.ok + result.failed == len(rows)
    assert result.failed == 0 or result.problems[0].message
    assert len(_documents(service)) <= result.ok
