"""Rows of CSV: what their cells become, and what is wrong with them, at its line."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any, cast

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paperwasp.client.sources.read import read_delimited
from paperwasp.client.sources.rows import RowMapping, RowOptions
from paperwasp.client.sources.values import converter
from paperwasp.errors import InvalidInput
from tests.client.sources.reading import BOOKS, fields_of, operations_of, read_content, shown

CELLS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\r"), max_size=8)


@given(st.lists(st.tuples(CELLS, CELLS), max_size=6), st.sampled_from(",;\t|"), st.sampled_from(["\n", "\r\n"]))
def test_cells_are_those_that_were_written(rows: list[tuple[str, str]], delimiter: str, end: str) -> None:
    text = io.StringIO(newline="")
    writer = csv.writer(text, delimiter=delimiter, lineterminator=end)
    writer.writerow(["isbn", "title", "text"])
    writer.writerows((number, *row) for number, row in enumerate(rows))
    stream = io.BufferedReader(io.BytesIO(text.getvalue().encode()))
    items = list(read_delimited("x", cast(io.BufferedReader, stream), RowMapping(BOOKS), delimiter))
    expected = [{name: cell for name, cell in zip(("title", "text"), row, strict=True) if cell} for row in rows]
    assert fields_of(items) == expected
    assert [item.id for item in operations_of(items)] == [f"id:shop:book::{number}" for number in range(len(rows))]


TABLE = b"""isbn,title,year,price,is_new,tags,numbers,meta,at
1,"The ""blue""
book",1959,1.10,yes,a; b;,1;2,"{""a"": [1.50]}",2024-05-01T12:00:00Z
2,,,,,,,,
3,x,+7,NaN,0,,"[3, 4]",null,2024-05-01
"""
TYPES = {
    "year": "int",
    "price": "float",
    "is_new": "bool",
    "tags": "array<string>",
    "numbers": "array<int>",
    "meta": "json",
    "at": "timestamp",
}


def typed(**more: Any) -> RowOptions:
    return RowOptions(document_type="book", namespace="shop", id="isbn", types=TYPES, **more)


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_types_say_what_cells_are(tmp_path: Path, mark: bytes, end: bytes) -> None:
    items = operations_of(read_content(tmp_path, "a.csv", mark + TABLE.replace(b"\n", end), typed()))
    newline = end.decode()
    assert [orjson.loads(item.fields or b"") for item in items] == [
        {
            "title": f'The "blue"{newline}book',
            "year": 1959,
            "price": 1.1,
            "is_new": True,
            "tags": ["a", "b"],
            "numbers": [1, 2],
            "meta": {"a": [1.5]},
            "at": 1_714_564_800,
        },
        {},
        {"title": "x", "year": 7, "price": "NaN", "is_new": False, "numbers": [3, 4], "at": 1_714_521_600},
    ]
    assert b'"price":1.10' in (items[0].fields or b"")
    assert [item.place.rpartition(", ")[2] for item in items] == ["line 2", "line 4", "line 5"]


def test_rows_may_be_updates_and_removes(tmp_path: Path) -> None:
    updates = operations_of(read_content(tmp_path, "a.csv", TABLE, typed(operation="update")))
    assert updates[0].kind == "update"
    assert orjson.loads(updates[0].fields or b"")["year"] == {"assign": 1959}
    removes = operations_of(read_content(tmp_path, "a.csv", TABLE, typed(operation="remove")))
    assert [(item.kind, item.id, item.fields) for item in removes][-1] == ("remove", "id:shop:book::3", None)


@pytest.mark.parametrize(
    ("options", "ids"),
    [
        ({"document_type": "book"}, ["id:book:book::7"]),
        ({"document_type": "book", "id": "{id}/{isbn}"}, ["id:book:book::7/3"]),
        ({"id": "id:ns:book:n={id}:{isbn}"}, ["id:ns:book:n=7:3"]),
        ({"document_type": "book", "id": "always"}, ["a.csv: --id names 'always', and the columns are id, isbn"]),
        ({"document_type": "book", "id": "{a}{id}"}, ["a.csv: --id names 'a', and the columns are id, isbn"]),
        ({}, ["a.csv, line 2: say with --schema of which document type the rows are"]),
        ({"document_type": "book", "fields": {"x": "y"}}, ["a.csv: --map names 'x', and the columns are id, isbn"]),
        (
            {"document_type": "book", "types": {"x": "int"}},
            ["a.csv: --field-type names 'x', and the columns are id, isbn"],
        ),
    ],
)
def test_ids(tmp_path: Path, options: dict[str, Any], ids: list[str]) -> None:
    assert shown(read_content(tmp_path, "a.csv", b"id,isbn\n7,3\n", RowOptions(**options)), tmp_path) == ids


def test_columns_become_fields_as_it_is_said(tmp_path: Path) -> None:
    table = b"id,a,b,c\n1,2,3,4\n"
    plain = RowOptions(document_type="t")
    assert fields_of(read_content(tmp_path, "a.csv", table, plain)) == [{"a": "2", "b": "3", "c": "4"}]
    mapped = RowOptions(document_type="t", fields={"a": "x", "b": "", "id": "id"}, types={"x": "int"})
    assert fields_of(read_content(tmp_path, "a.csv", table, mapped)) == [{"id": "1", "x": 2, "c": "4"}]
    template = RowOptions(document_type="t", id="{a}-{b}", types={"*": "auto"})
    assert fields_of(read_content(tmp_path, "a.csv", table, template)) == [{"id": 1, "a": 2, "b": 3, "c": 4}]


def test_other_delimiters(tmp_path: Path) -> None:
    assert fields_of(read_content(tmp_path, "a.tsv", b"isbn\ttitle\n1\ta,b\n", BOOKS)) == [{"title": "a,b"}]


HOSTILE = {
    b"2,x": "line 3: 2 cells, and there are 3 columns",
    b"2,x,1,4": "line 3: 4 cells, and there are 3 columns",
    b"2,x,abc": "line 3, column 'year': expected a whole number, found 'abc'",
    b"2,x,1_0": "line 3, column 'year': expected a whole number, found '1_0'",
    b",x,1": "line 3: column 'isbn' is empty, and the id is made of it",
    b"2,\xe9,1": "line 3, byte 3: no UTF-8 (byte 0xE9); make the file UTF-8, e.g. with `iconv -f LATIN1 -t UTF-8`",
    b'2,"x"y,1': "line 3: ',' expected after '\"'",
    b"2," + b"x" * 500 + b",1": "line 3: longer than any document may be",
    b"2,x\ry,1": "line 3: new-line character seen in unquoted field",
}


@pytest.mark.parametrize("row", HOSTILE, ids=str)
def test_a_bad_row_costs_no_other(tmp_path: Path, row: bytes) -> None:
    options = RowOptions(document_type="book", id="isbn", types={"year": "int"})
    content = b'isbn,title,year\n1,a,1\n%s\n4,"b\nc",4\n5,d,z\n' % row
    found = shown(read_content(tmp_path, "a.csv", content, options, most_bytes=300), tmp_path)
    assert found[0] == "id:book:book::1"
    assert found[1].startswith(f"a.csv, {HOSTILE[row]}")
    assert found[2:] == ["id:book:book::4", "a.csv, line 6, column 'year': expected a whole number, found 'z'"]


def test_a_quote_without_end_is_found_at_the_row_where_it_begins(tmp_path: Path) -> None:
    content = b'isbn,title\n1,a\n2,"b\n3,c\n4,d\n'
    found = shown(read_content(tmp_path, "a.csv", content, BOOKS), tmp_path)
    assert found == ["id:shop:book::1", "a.csv, line 3: a quote that begins in this row does not end"]
    long = content + b"5,e\n" * 200
    found = shown(read_content(tmp_path, "a.csv", long, BOOKS, most_bytes=300), tmp_path)
    assert found[:2] == ["id:shop:book::1", "a.csv, line 3: field larger than field limit (300)"]


@pytest.mark.parametrize(
    ("head", "message"),
    [
        (b"isbn,a,a\n1,2,3\n", "a.csv: there are two columns 'a'"),
        (b"a,b\n1,2\n", "a.csv: --id names 'isbn', and the columns are a, b"),
        (b"\xff,isbn\n1,2\n", "a.csv, line 1, byte 1: no UTF-8 (byte 0xFF)"),
    ],
)
def test_a_bad_head_ends_the_file(tmp_path: Path, head: bytes, message: str) -> None:
    (found,) = shown(read_content(tmp_path, "a.csv", head, BOOKS), tmp_path)
    assert found.startswith(message)


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        ("int", " 12 ", 12),
        ("long", "-9223372036854775808", -(2**63)),
        ("float", "1e3", 1000.0),
        ("double", ".5", 0.5),
        ("float", "-infinity", "-Infinity"),
        ("bool", "T", True),
        ("json", '{"a":1}', {"a": 1}),
        ("json", "null", None),
        ("auto", "[1]", [1]),
        ("auto", '"x"', "x"),
        ("auto", "00123", "00123"),
        ("auto", "", ""),
        ("array<float>", "1;2.50", [1, 2.5]),
        ("array<array<int>>", "[[1], [2]]", [[1], [2]]),
        ("timestamp", "1970-01-01T01:00:00.5+01:00", 0),
        ("string", "12", "12"),
    ],
)
def test_values(kind: str, text: str, value: object) -> None:
    assert orjson.loads(orjson.dumps(converter(kind, ";", "s")(text))) == value


def test_times_in_other_units() -> None:
    assert [converter("timestamp", ";", unit)("1970-01-01T00:00:01.5") for unit in ("s", "ms", "us", "ns")] == [
        1,
        1500,
        1_500_000,
        1_500_000_000,
    ]
    assert converter("timestamp", ";", "s")("1969-12-31T23:59:59.5Z") == -1


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("int", "1.5"),
        ("int", "9007199254740992.0"),
        ("int", "\u0661"),
        ("float", "1,5"),
        ("bool", "maybe"),
        ("json", "{"),
        ("timestamp", "yesterday"),
    ],
)
def test_other_texts_are_refused(kind: str, text: str) -> None:
    with pytest.raises(ValueError, match=r"a whole number|a number|true or false|JSON|a time like"):
        converter(kind, ";", "s")(text)


def test_unknown_types_are_refused() -> None:
    with pytest.raises(InvalidInput, match="'tensor' is not one of string, text"):
        converter("tensor", ";", "s")


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("isbn,a;b", {"a;b": "x;y"}),
        ("isbn;title", {"title": "x,y"}),
        ('"isbn,";title', {"title": "x,y"}),
        ("isbn|title", {"title": "x,y"}),
        ("isbn\ttitle", {"title": "x,y"}),
        ("\r\nisbn;title", {"title": "x,y"}),
    ],
)
def test_the_first_line_says_what_is_between_cells(header: str, expected: dict[str, str]) -> None:
    delimiter = next(character for character in ",\t|;" if character in header.replace('"isbn,"', ""))
    (value,) = expected.values()
    stream = cast(io.BufferedReader, io.BufferedReader(io.BytesIO(f"{header}\n1{delimiter}{value}\n".encode())))
    options = RowOptions(document_type="book", id="isbn," if '"' in header else "isbn")
    assert fields_of(list(read_delimited("x", stream, RowMapping(options)))) == [expected]


def test_numbers_of_rows_are_ids_over_all_files() -> None:
    options = RowOptions(document_type="book", id="jan-{#}-{shop}", types={"year": "int"}, missing=["n/a"])
    ids = []
    for _ in range(2):
        stream = cast(io.BufferedReader, io.BufferedReader(io.BytesIO(b"shop,year\na,1\nb, n/a \n")))
        items = list(read_delimited("x", stream, RowMapping(options)))
        assert fields_of(items) == [{"shop": "a", "year": 1}, {"shop": "b"}]
        ids += [item.id for item in operations_of(items)]
    assert ids == [f"id:book:book::jan-{number}" for number in ("1-a", "2-b", "3-a", "4-b")]
    named = RowMapping(RowOptions(document_type="book", id="{#}"))
    assert named.operation({"#": "7"}, "x").id == "id:book:book::7"
