"""`paperwasp init`: from a file to an application that has its documents."""

from __future__ import annotations

import json
from datetime import UTC, datetime, time, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest

from paperwasp.embedded.service import Service
from tests.client.commands import run_command

BOOKS = """ISBN,Title,Published,Price,In Stock,Tags,Author
978-1,Kind of Blue,1999-02-01,12.5,true,jazz;blue,Ann
978-2,Blue Trains,2001-05-01,8,false,trains;blue,Bob
978-3,The Green Mile,1996-01-01,,true,prison,Ann
978-4,,2010-01-01,3.25,true,void;zero,Bob
978-5,Night,2010-01-01,3.25,true,night,Ann,more
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "books.csv").write_text(BOOKS)
    return tmp_path


def test_from_a_file_to_the_first_hits() -> None:
    ran = run_command("init", "books.csv", "--query", "blue")
    assert ran.code == 0, ran.err
    assert "Fed 4 documents" in ran.out
    assert "1 row refused; the first: books.csv, line 6: 8 cells, and there are 7 columns" in ran.out
    assert "Query: blue   (2 documents found, in books)" in ran.out
    assert ran.out.index("Blue Trains") < ran.out.index("Kind of Blue"), "the shorter text is the better one"
    assert "paperwasp serve books\n" in ran.out
    with Service(data_dir="paperwasp-data") as service:
        document = service.get("978-1")
        assert document is not None
        assert dict(document.fields) == {
            "title": "Kind of Blue",
            "published": 917827200,
            "price": 12.5,
            "in_stock": True,
            "tags": ["jazz", "blue"],
            "author": "Ann",
        }
        assert service.query("select * from books where true").total == 4


EXCEL = "\ufeffKunde;Größe;Menge;Datum\nMüller;L;3;2024-05-01\nSchmidt;L;n/a;-\nMüller;L;NA;2024-05-02\n"


def test_a_table_as_people_have_it(folder: Path) -> None:
    """Semicolons, a byte order mark, umlauts in names, words for what is missing, and no ids."""
    (folder / "Verkauf 2024.csv").write_text(EXCEL)
    ran = run_command("init", "Verkauf 2024.csv")
    assert ran.code == 0, ran.err
    assert "Fed 3 documents" in ran.out and "refused" not in ran.out
    with Service(data_dir="paperwasp-data") as service:
        rows = [service.get(str(number)) for number in (1, 2, 3)]
        assert [row and dict(row.fields) for row in rows] == [
            {"kunde": "Müller", "grosse": "L", "menge": 3, "datum": 1714521600},
            {"kunde": "Schmidt", "grosse": "L"},
            {"kunde": "Müller", "grosse": "L", "datum": 1714608000},
        ]
    readme = (folder / "Verkauf 2024" / "README.md").read_text()
    assert "--id '{#}'" in readme and "--missing=- --missing=NA --missing=n/a" in readme


def test_columns_of_parquet_are_what_their_types_say(folder: Path) -> None:
    """Times are numbers and bytes texts in JSON: the schema says what they are, and none of them becomes the id."""
    moment = datetime(2024, 5, 1, 12, tzinfo=UTC)
    columns = {
        "at": pa.array([moment, moment.replace(hour=13)], pa.timestamp("us", "UTC")),
        "day": pa.array([moment.date(), None], pa.date32()),
        "open": pa.array([time(8, 30), time(9)], pa.time64("us")),
        "took": pa.array([timedelta(minutes=2), None], pa.duration("ms")),
        "blob": pa.array([b"\x00\xff", b"a"], pa.binary()),
        "count": pa.array([None, 3], pa.int32()),
    }
    pyarrow.parquet.write_table(pa.table(columns), folder / "my rows.parquet")
    ran = run_command("init", "my rows.parquet", "--data-dir", "my data")
    assert ran.code == 0, ran.err
    assert "paperwasp serve 'my rows' --data-dir 'my data'\n" in ran.out
    assert "paperwasp serve 'my rows' --data-dir 'my data'\n" in (folder / "my rows" / "README.md").read_text()
    with Service(data_dir="my data") as service:
        rows = [service.get(str(number)) for number in (1, 2)]
        assert [row and dict(row.fields) for row in rows] == [
            {"at": 1714564800, "day": 1714521600, "open": 30600, "took": 120, "blob": "AP8="},
            {"at": 1714568400, "open": 32400, "blob": "YQ==", "count": 3},
        ]
    schema = (folder / "my rows" / "schemas" / "my_rows.sd").read_text()
    for said in ("# dates, as seconds since 1970,", "# times of day, as seconds since midnight,", "type raw {"):
        assert said in schema


def test_objects_are_structs_and_maps(folder: Path) -> None:
    maker = {"name": "Ann", "at": {"city": "Oslo", "zip": None}}
    rows = (
        {"id": "a", "maker": maker, "parts": [{"no": 1, "w": 0.5}, {"no": 2}], "more": {"a b": "x"}},
        {"id": "b", "maker": {"name": "Bob"}, "parts": [{"no": 1, "w": 2}], "more": {"c d": "y"}},
    )
    (folder / "things.jsonl").write_text("\n".join(map(json.dumps, rows)))
    ran = run_command("init", "things.jsonl")
    assert ran.code == 0, ran.err
    assert "Fed 2 documents" in ran.out and "refused" not in ran.out
    with Service(data_dir="paperwasp-data") as service:
        row = service.get("a")
        assert row is not None
        assert dict(row.fields) == {
            "maker": {"name": "Ann", "at": {"city": "Oslo"}},
            "parts": [{"no": 1, "w": 0.5}, {"no": 2}],
            "more": {"a b": "x"},
        }
        for condition in ("parts contains sameElement(no = 1, w > 1)", 'more contains sameElement(key contains "c d")'):
            found = service.query(f"select * from things where {condition}")
            assert [hit.id for hit in found.hits] == ["id:things:things::b"], condition


def test_dates_are_fed_by_the_form_of_the_sample(folder: Path) -> None:
    (folder / "days.csv").write_text("id,day\na,05.07.2025\nb,31.12.1969 23:00\n")
    ran = run_command("init", "days.csv")
    assert ran.code == 0, ran.err
    assert "--field-type day=timestamp:DD.MM.YYYY" in (folder / "days" / "README.md").read_text()
    with Service(data_dir="paperwasp-data") as service:
        assert [row.fields["day"] for name in "ab" if (row := service.get(name))] == [1751673600, -3600]


def test_rows_that_took_the_place_of_others_are_counted(folder: Path) -> None:
    (folder / "twice.csv").write_text("isbn|text\n1|old words\n1|new words\n")
    ran = run_command("init", "twice.csv", "--id", "isbn", "--delimiter", "|")
    assert "1 row took the place of an earlier one with the same isbn: name another column with --id" in ran.out
    assert "--delimiter '|'" in (folder / "twice" / "README.md").read_text()


def test_what_cannot_be_read_is_named(folder: Path) -> None:
    (folder / "latin.csv").write_bytes("name\nMüller\n".encode("latin-1"))
    assert "latin.csv, line 2, byte 2: no UTF-8 (byte 0xFC)" in run_command("init", "latin.csv").err
    (folder / "none.csv").write_text("name\n")
    assert "'none.csv' has no rows" in run_command("init", "none.csv").err
    (folder / "two.csv").write_text("id,a,a\n1,2,3\n")
    assert "two.csv: there are two columns 'a': rename one of them" in run_command("init", "two.csv").err


def test_nothing_that_is_there_is_written_over(folder: Path) -> None:
    (folder / "books").mkdir()
    assert "'books' is there already" in run_command("init", "books.csv").err
    (folder / "paperwasp-data").mkdir()
    refused = run_command("init", "books.csv", "other")
    assert refused.code == 1 and "'paperwasp-data' has documents already" in refused.err
    assert not (folder / "other").exists()
    written = run_command("init", "books.csv", "other", "--no-feed", "--name", "library")
    assert written.code == 0 and "paperwasp feed books.csv --schema library --id ISBN" in written.out
    assert sorted(path.name for path in (folder / "other").rglob("*.*")) == ["README.md", "library.sd", "services.xml"]
    assert list((folder / "paperwasp-data").iterdir()) == []
    assert (
        "'My Books' is no name of a schema; 'my_books' would be one"
        in run_command("init", "books.csv", "third", "--no-feed", "--name", "My Books").err
    )
