"""`paperwasp init`: from a file to an application that has its documents."""

from __future__ import annotations

from pathlib import Path

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
