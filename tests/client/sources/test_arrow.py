"""Rows of Parquet and Arrow files: what each type of column becomes, nulls, vectors, damage."""

from __future__ import annotations

import datetime
import decimal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paperwasp.client.sources.arrow import BadValue, column_values
from paperwasp.client.sources.operations import SourceOperation
from paperwasp.client.sources.read import ReadOptions
from paperwasp.client.sources.rows import RowOptions
from tests.client.sources.reading import fields_of, operations_of, read_items, shown

ROWS = RowOptions(document_type="book")
OPTIONS = ReadOptions(rows=ROWS)


def values_of(column: Any, unit: str = "s") -> list[Any]:
    """What the JSON of a column's values says."""
    values = list(column_values(column, unit))
    found: list[Any] = orjson.loads(orjson.dumps(values, option=orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_NON_STR_KEYS))
    return found


DAY = datetime.date(1970, 1, 3)
MOMENT = datetime.datetime(1970, 1, 1, 0, 0, 1, 500_000)
CASES: list[tuple[Any, list[Any], list[Any]]] = [
    (pa.string(), ["a", None, ""], ["a", None, ""]),
    (pa.large_string(), ["é"], ["é"]),
    (pa.string_view(), ["é", None], ["é", None]),
    (pa.dictionary(pa.int8(), pa.string()), ["a", None, "a"], ["a", None, "a"]),
    (pa.int8(), [-128, None], [-128, None]),
    (pa.uint64(), [2**64 - 1], [2**64 - 1]),
    (pa.bool_(), [True, None, False], [True, None, False]),
    (pa.null(), [None, None], [None, None]),
    (pa.float16(), [np.float16(0.5), None], [0.5, None]),
    (pa.float32(), [0.1, None, float("nan"), float("inf")], [0.1, None, "NaN", "Infinity"]),
    (pa.float64(), [0.1, -float("inf")], [0.1, "-Infinity"]),
    (pa.decimal128(10, 2), [decimal.Decimal("1.10"), None], ["1.10", None]),
    (pa.timestamp("ms"), [MOMENT, None], [1, None]),
    (pa.timestamp("ns", "Europe/Berlin"), [MOMENT], [1]),
    (pa.date32(), [DAY, None], [172_800, None]),
    (pa.date64(), [DAY], [172_800]),
    (pa.time32("s"), [datetime.time(1, 0, 1)], [3601]),
    (pa.time64("us"), [datetime.time(0, 0, 2)], [2]),
    (pa.duration("ms"), [datetime.timedelta(seconds=3)], [3]),
    (pa.binary(), [b"\0\xff", None], ["AP8=", None]),
    (pa.binary(2), [b"\0\xff"], ["AP8="]),
    (pa.list_(pa.int32()), [[1, 2], None, []], [[1, 2], None, []]),
    (pa.list_(pa.float32(), 2), [[0.1, 2], None], [[0.1, 2.0], None]),
    (pa.large_list(pa.string()), [["a", None, "b"]], [["a", "b"]]),
    (pa.list_(pa.float64()), [[1, float("nan")], [2]], [[1.0, "NaN"], [2.0]]),
    (pa.list_(pa.list_(pa.int8(), 2)), [[[1, 2], [3, 4]], []], [[[1, 2], [3, 4]], []]),
    (pa.struct({"a": pa.int8(), "b": pa.string()}), [{"a": 1, "b": None}, None], [{"a": 1}, None]),
    (pa.map_(pa.string(), pa.int8()), [[("a", 1), ("b", None)], None, []], [{"a": 1}, None, {}]),
    (pa.map_(pa.int8(), pa.string()), [[(7, "x")]], [{"7": "x"}]),
]


@pytest.mark.parametrize(("kind", "given_values", "expected"), CASES, ids=[str(case[0]) for case in CASES])
def test_types(kind: Any, given_values: list[Any], expected: list[Any]) -> None:
    column = pa.array(given_values, kind)
    assert values_of(column) == expected
    # A slice of a column, and one that stands behind others.
    padded = pa.concat_arrays([column, column, column]) if not pa.types.is_dictionary(kind) else column
    if padded is not column:
        assert values_of(padded.slice(1, len(padded) - 2)) == (expected * 3)[1:-1]


def test_tensors_of_a_fixed_shape_are_lists() -> None:
    column = pa.FixedShapeTensorArray.from_numpy_ndarray(np.arange(8, dtype=np.float32).reshape(2, 2, 2))
    assert values_of(column) == [[0, 1, 2, 3], [4, 5, 6, 7]]


def test_times_in_other_units() -> None:
    column = pa.array([MOMENT], pa.timestamp("us"))
    assert [values_of(column, unit) for unit in ("ms", "us", "ns")] == [[1500], [1_500_000], [1_500_000_000]]
    assert values_of(pa.array([-1], pa.int64()).cast(pa.timestamp("ms"))) == [-1]


def test_a_vector_with_a_hole_is_refused() -> None:
    with pytest.raises(BadValue, match="a list of 2 numbers of which 1 are missing") as refused:
        column_values(pa.array([[1.0], [1.0, None]], pa.list_(pa.float32())))
    assert refused.value.row == 1


NUMBERS = st.lists(st.none() | st.lists(st.floats(allow_nan=False, width=32), max_size=4), max_size=6)
NESTED = st.lists(
    st.none() | st.lists(st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=3))), max_size=4
)


@given(NUMBERS, st.integers(0, 3), st.integers(0, 6))
def test_slices_of_vectors(vectors: list[list[float] | None], start: int, count: int) -> None:
    column = pa.array(vectors, pa.list_(pa.float32())).slice(start, count)
    infinite: dict[float, Any] = {float("inf"): "Infinity", -float("inf"): "-Infinity"}
    expected = [each and [infinite.get(number, number) for number in each] for each in vectors[start : start + count]]
    found = values_of(column)
    assert len(found) == len(expected)
    for value, wanted in zip(found, expected, strict=True):
        assert (value is None) == (wanted is None)
        assert [number if isinstance(number, str) else np.float32(number) for number in value or []] == (wanted or [])


@given(NESTED, st.integers(0, 3))
def test_slices_of_nested_lists(values: list[list[list[str]] | None], start: int) -> None:
    assert values_of(pa.array(values, pa.list_(pa.list_(pa.string()))).slice(start)) == values[start:]


def table(count: int = 600) -> Any:
    return pa.table(
        {
            "id": [f"b{number}" for number in range(count)],
            "title": [None if number % 3 == 0 else f"title {number}" for number in range(count)],
            "vector": pa.array([[number, 0.5] for number in range(count)], pa.list_(pa.float32(), 2)),
        }
    )


def write(path: Path, content: Any) -> Path:
    if path.suffix == ".parquet":
        pq.write_table(content, path, row_group_size=100)
        return path
    make = pa.ipc.new_file if path.suffix == ".feather" else pa.ipc.new_stream
    with make(path, content.schema) as writer:
        writer.write_table(content, max_chunksize=100 if path.suffix == ".feather" else None)
    return path


@pytest.mark.parametrize("name", ["a.parquet", "a.feather", "a.arrow"])
def test_all_rows_of_a_file_come_in_their_order(tmp_path: Path, name: str) -> None:
    items = read_items(write(tmp_path / name, table()), OPTIONS)
    operations = operations_of(items)
    assert [item.id for item in operations] == [f"id:book:book::b{number}" for number in range(600)]
    assert operations[-1].place.endswith("row 600")
    expected = [
        {"vector": [number, 0.5], **({"title": f"title {number}"} if number % 3 else {})} for number in range(600)
    ]
    assert fields_of(items) == expected


def test_texts_may_be_converted(tmp_path: Path) -> None:
    content = pa.table({"id": ["1"], "meta": ['{"a": 1}'], "tags": ["x;y"]})
    rows = RowOptions(document_type="book", types={"meta": "json", "tags": "array<string>"})
    items = read_items(write(tmp_path / "a.parquet", content), ReadOptions(rows=rows))
    assert fields_of(items) == [{"meta": {"a": 1}, "tags": ["x", "y"]}]


@pytest.mark.parametrize("name", ["a.parquet", "a.feather", "a.arrow"])
def test_a_bad_row_costs_no_other(tmp_path: Path, name: str) -> None:
    vectors = pa.array([[1, 2]] * 5 + [[1, None]] + [[3, 4]] * 4, pa.list_(pa.int8()))
    ids = ["a", "b", None, *"defghij"]
    found = shown(read_items(write(tmp_path / name, pa.table({"id": ids, "v": vectors})), OPTIONS), tmp_path)
    assert found[:2] == ["id:book:book::a", "id:book:book::b"]
    assert found[2] == f"{name}, row 3: column 'id' is empty, and the id is made of it"
    assert found[5] == f"{name}, row 6: column 'v': a list of 2 numbers of which 1 are missing"
    assert found[6:] == [f"id:book:book::{letter}" for letter in "ghij"]


def test_a_column_that_json_has_not_is_named(tmp_path: Path) -> None:
    union = pa.UnionArray.from_dense(pa.array([0], pa.int8()), pa.array([0], pa.int32()), [pa.array([1])])
    path = write(tmp_path / "a.arrow", pa.table({"id": ["1"], "u": union}))
    (found,) = shown(read_items(path, OPTIONS), tmp_path)
    assert found.startswith("a.arrow, row 1: column 'u': there is no JSON for dense_union")
    assert found.endswith("leave it out with --map u=")


@pytest.mark.parametrize("name", ["a.parquet", "a.feather", "a.arrow"])
def test_damaged_files_are_named_with_the_row(tmp_path: Path, name: str) -> None:
    path = write(tmp_path / name, table())
    content = path.read_bytes()
    if name == "a.parquet":
        middle = len(content) // 2
        path.write_bytes(content[:middle] + b"\xff" * 600 + content[middle + 600 :])
    else:
        path.write_bytes(content[: len(content) * 2 // 3])
    items = read_items(path, OPTIONS)
    found = shown(items, tmp_path)
    good = [item for item in items if isinstance(item, SourceOperation)]
    assert found[-1].startswith(f"{name}, behind row {len(good)}: damaged: ")
    assert [item.id for item in good] == [f"id:book:book::b{number}" for number in range(len(good))]
    assert name == "a.arrow" or good  # its one batch is cut


@pytest.mark.parametrize("name", ["a.parquet", "a.feather", "a.arrow"])
def test_other_files_are_refused(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(b"isbn,title\n1,2\n" * 10)
    (found,) = shown(read_items(path, OPTIONS), tmp_path)
    assert found.startswith(f"Could not read '{name}' as ")
    (missing,) = shown(read_items(tmp_path / f"no{name}", OPTIONS), tmp_path)
    assert missing == f"Could not read 'no{name}': No such file or directory"


def test_parquet_does_not_come_through_a_pipe(tmp_path: Path) -> None:
    (found,) = shown(read_items(Path("-"), ReadOptions(format="parquet", rows=ROWS)), tmp_path)
    assert found == "-: Parquet is read from its end: save it to a file, not compressed as a whole"


def test_without_pyarrow_it_is_said_what_to_install(tmp_path: Path) -> None:
    path = write(tmp_path / "a.parquet", table(1))
    program = (
        "import sys; sys.modules['pyarrow'] = None\n"
        "from paperwasp.client.sources.read import ReadOptions, read_file\n"
        f"print(*read_file({str(path)!r}, ReadOptions()))"
    )
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert "need pyarrow, which is not installed: pip install pyarrow" in said.stdout, said.stderr
