"""What the columns of a sample are guessed to be, and that a package of any columns can be deployed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from paperwasp.application.build import build_model
from paperwasp.application.package import ApplicationPackage
from paperwasp.authoring.guessing import Guess, Sample, Use, field_name, guess, read_sample
from paperwasp.authoring.new_package import NewPackage
from paperwasp.client.sources.read import ReadOptions
from paperwasp.client.sources.rows import RowOptions
from paperwasp.errors import InvalidInput
from paperwasp.server.schema_check import check_schema

READING = ReadOptions(rows=RowOptions(document_type="t"))


def sample_of(*values: Any) -> Sample:
    """A column `c` of these values beside an id."""
    return Sample(("id", "c"), tuple({"id": str(number), "c": value} for number, value in enumerate(values)))


def guessed(*values: Any) -> tuple[str, Use, str]:
    """Type, use and what --field-type says of a column of these values."""
    (column,) = guess(sample_of(*values), None).columns
    return column.type, column.use, column.said_type


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (("1", "-20", " 3 "), ("int", Use.NUMBER, "int")),
        (("1", "2147483648"), ("long", Use.NUMBER, "long")),
        (("1901.0", "1902"), ("int", Use.NUMBER, "int")),
        (("9223372036854775808", "1"), ("string", Use.TEXT, "")),
        (("01234", "98765"), ("string", Use.TEXT, "")),
        (("0.5", "1e3", "2"), ("double", Use.NUMBER, "double")),
        (("1", "n/a"), ("int", Use.NUMBER, "int")),
        (("n/a", "1.5", " NULL "), ("double", Use.NUMBER, "double")),
        (("2024-05-01", "-"), ("long", Use.NUMBER, "timestamp")),
        ((1, "n/a"), ("int", Use.NUMBER, "int")),
        (("1", "n/a", "unknown"), ("string", Use.TEXT, "")),
        (("n/a", "NULL"), ("string", Use.TEXT, "")),
        (("a;b", "c;d", "n/a"), ("array<string>", Use.CATEGORY, "array<string>")),
        (("true", "False"), ("bool", Use.CATEGORY, "bool")),
        (("2024-05-01", "1969-12-31T23:59:59Z"), ("long", Use.NUMBER, "timestamp")),
        (("2024-05-01", "2024-13-01"), ("string", Use.TEXT, "")),
        (("05.07.2025", "5.7.1999 12:30"), ("long", Use.NUMBER, "timestamp:DD.MM.YYYY")),
        (("05.07.2025", "07.25.2025"), ("string", Use.TEXT, "")),
        (("31/12/2025", "01/02/2025"), ("long", Use.NUMBER, "timestamp:DD/MM/YYYY")),
        (("12/31/2025 3:04 PM", "n/a"), ("long", Use.NUMBER, "timestamp:MM/DD/YYYY")),
        (("01/02/2025", "03/04/2025"), ("string", Use.CATEGORY, "")),
        (("5 Jul 2025", "31 December 1999"), ("long", Use.NUMBER, "timestamp:DD Mon YYYY")),
        (("Jul 5, 2025", "Sept. 1, 1999"), ("long", Use.NUMBER, "timestamp:Mon DD, YYYY")),
        (("a;b", "c", "d ; e"), ("array<string>", Use.CATEGORY, "array<string>")),
        (("One; or the other, which is a sentence of its own; three", "x"), ("string", Use.TEXT, "")),
        (('["a","b"]', "[]", '["c"]'), ("array<string>", Use.CATEGORY, "json")),
        (("[1,2]", "[3]"), ("array<int>", Use.NUMBER, "json")),
        (("[draft]", "[final]"), ("string", Use.TEXT, "")),
        (("red", "blue", "red", "blue"), ("string", Use.CATEGORY, "")),
        (("https://a.b/c", "http://d.e"), ("string", Use.SHOWN, "")),
        ((1, 2.0), ("int", Use.NUMBER, "int")),
        ((1, 2.5), ("double", Use.NUMBER, "")),
        ((True, False), ("bool", Use.CATEGORY, "")),
        ((1, "x"), ("string", Use.TEXT, "")),
        (([0.5] * 8, [1] * 8), ("tensor<float>(x[8])", Use.VECTOR, "")),
        (([0.5] * 8, [1] * 9), ("array<double>", Use.NUMBER, "")),
        (([1, 2], [3]), ("array<int>", Use.NUMBER, "")),
        (([2**63], [3]), ("array<double>", Use.NUMBER, "")),
        ((["a"], []), ("array<string>", Use.CATEGORY, "")),
        (({"a": 1}, {"a": 2}), ("c_type", Use.SHOWN, "")),
        (({"a": {"b": True, "c": ["x"]}, "d": None}, {"d": 1.5}), ("c_type", Use.SHOWN, "")),
        (([{"a": 1, "b": [1]}], []), ("array<c_type>", Use.PARTS, "")),
        (({"no name": 1}, {"a": 2}), ("map<string, long>", Use.PARTS, "")),
        (({"no name": {"a": 1}}, {"a": 2}), ("string", Use.LEFT_OUT, "")),
        (({"a": 1}, {"a": "x"}), ("string", Use.LEFT_OUT, "")),
        (({"a": 1}, [{"a": 2}]), ("string", Use.LEFT_OUT, "")),
        ((None, ""), ("string", Use.LEFT_OUT, "")),
    ],
)
def test_types(values: tuple[Any, ...], expected: tuple[str, Use, str]) -> None:
    assert guessed(*values) == expected


def test_dates_whose_day_and_month_cannot_be_told_apart_say_so() -> None:
    (column,) = guess(sample_of("01/02/2025", "01/02/2025"), None).columns
    assert column.why.startswith("dates as DD/MM/YYYY or MM/DD/YYYY")


def ids_of(*rows: dict[str, Any], said: str | None = None) -> Guess:
    return guess(Sample(tuple(rows[0]), rows), said)


def test_ids() -> None:
    assert ids_of({"a": "x", "isbn": "1"}, {"a": "y", "isbn": "2"}).id == "isbn"
    assert ids_of({"a": "x", "isbn": "1"}, {"a": "y", "isbn": "1"}).id == "a"
    assert ids_of({"a": "x", "isbn": "1"}, {"a": "x", "isbn": "1"}, said="isbn").id == "isbn"
    assert ids_of({"a": 1}, {"a": 1}).id == "{#}"
    assert ids_of({"a": 1, "b": 2}, {"a": 1, "b": 3}, said="{a}-{b}").id == "{a}-{b}"
    with pytest.raises(InvalidInput, match=r"--id names '\{a\}-\{c\}', and the columns are a"):
        ids_of({"a": 1}, said="{a}-{c}")
    with pytest.raises(InvalidInput, match="--id names 'b', and the columns are a"):
        ids_of({"a": 1}, said="b")
    found = ids_of({"name": "a long name"}, {"name": "another long name"})
    assert (found.id, [column.field for column in found.columns]) == ("name", ["name"])


def test_names_of_fields() -> None:
    assert field_name("Release Date (UTC)") == "release_date_utc"
    assert field_name("Prix €", {"prix"}) == "prix_2"
    assert [field_name(name) for name in ("id", "9 lives", "日本", "all", "float")] == [
        "field_id",
        "field_9_lives",
        "field",
        "field_all",
        "float",
    ]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("rows.csv", "id,a b\n1,x\n2,y\n"),
        ("rows.tsv", "id\ta b\n1\tx\n2\ty\n"),
        ("rows.jsonl", '{"id": "1", "a b": "x"}\n{"id": "2", "a b": "y"}\n'),
        ("rows.json", '[{"id": "1", "a b": "x"}, {"id": "2", "a b": "y"}]'),
    ],
)
def test_samples(name: str, content: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(content)
    found = read_sample(str(tmp_path / name), READING)
    assert found == Sample(("id", "a b"), ({"id": "1", "a b": "x"}, {"id": "2", "a b": "y"}))


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("a.csv", "", "has no rows"),
        ("a.csv", "a,b\n", "has no rows"),
        ("a.csv", "a,a\n1,2\n", "there are two columns 'a'"),
        ("a.jsonl", '{"put": "id:a:a::1", "fields": {}}\n', "has no rows"),
        ("a.jsonl", '{"x": "1", "fields": {"a": 1}}\n', "has operations of Vespa's feed format"),
        ("a.txt", "a,b\n", "does not say its format"),
    ],
)
def test_files_that_are_no_rows(name: str, content: str, problem: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(InvalidInput, match=problem):
        read_sample(str(tmp_path / name), READING)


VALUES = st.sampled_from(
    [
        1,
        2**40,
        0.5,
        True,
        "a",
        "some words of text",
        "a;b",
        ["x"],
        [1],
        [0.5] * 8,
        {"k": 1},
        {"k": {"x": "y"}},
        [{"k": 1}, {}],
        {"a b": "c"},
        "",
        None,
    ]
)
COLUMNS = st.dictionaries(st.text(min_size=1, max_size=12), st.lists(VALUES, min_size=2, max_size=2), max_size=6)


@given(columns=COLUMNS)
@example(columns={"tensor": [{"k": 1}, {"k": 2}]}).via("a struct is named after its column")
def test_a_package_of_any_columns_can_be_deployed(columns: dict[str, list[Any]]) -> None:
    columns = {"documentid": ["1", "2"], **{name: values for name, values in columns.items() if name != "documentid"}}
    rows = tuple({name: values[number] for name, values in columns.items()} for number in range(2))
    made = NewPackage("rows", guess(Sample(tuple(columns), rows), "documentid"), "rows\n.csv")
    files = {path: text.encode() for path, text in made.files().items()}
    model = build_model(ApplicationPackage(files), check_schema)
    fields = {column.field for column in made.guess.columns if column.use is not Use.LEFT_OUT}
    assert set(model.schemas["rows"].document.fields) == fields
    assert [finding for finding in model.findings if finding.level != "INFO"] == []
