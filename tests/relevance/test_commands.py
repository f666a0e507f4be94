"""The commands over a small collection, on a package started for them and on a service over HTTP."""

from __future__ import annotations

import json
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import pyarrow.parquet
import pytest

import paperwasp
from tests.children import ROOT
from tests.service.warm import run_warm

SCHEMA = """
schema article {
    document article {
        field title type string {
            indexing: summary | index
            index: enable-bm25
        }
        field votes type int {
            indexing: summary | attribute
        }
    }
    fieldset default {
        fields: title
    }
    rank-profile words {
        first-phase {
            expression: bm25(title)
        }
        match-features: bm25(title) attribute(votes)
    }
    rank-profile votes {
        first-phase {
            expression: attribute(votes)
        }
    }
}
"""
DOCUMENTS = [
    {"id": "a", "title": "blue blue train", "votes": 1},
    {"id": "b", "title": "blue sky over a very long and wide and quiet land", "votes": 9},
    {"id": "c", "title": "giant steps", "votes": 2},
    {"id": "d", "title": "giant", "votes": 1},
    {"id": "e", "title": "small steps of a giant in the snow", "votes": 7},
]
QUERIES = "q1\tblue\nq2\tgiant steps\nq3\tnothing judged\n"
JUDGMENTS = "q1 0 b 1\nq1 0 a 0\nq2 0 c 1\n"


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "app" / "schemas").mkdir(parents=True)
    (tmp_path / "app" / "schemas" / "article.sd").write_text(SCHEMA)
    (tmp_path / "app" / "services.xml").write_text(
        '<services version="1.0"><container id="c" version="1.0"><search/><document-api/></container>'
        '<content id="content" version="1.0"><redundancy>1</redundancy><documents>'
        '<document type="article" mode="index"/>'
        '</documents><nodes><node distribution-key="0" hostalias="h"/></nodes></content></services>'
    )
    operations = [{"put": f"id:n:article::{row['id']}", "fields": {**row, "id": None}} for row in DOCUMENTS]
    for operation in operations:
        operation["fields"].pop("id")  # type: ignore[attr-defined]
    (tmp_path / "documents.jsonl").write_text("\n".join(map(json.dumps, operations)))
    (tmp_path / "queries.tsv").write_text(QUERIES)
    (tmp_path / "qrels.txt").write_text(JUDGMENTS)
    return tmp_path


def _command(files: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    given = ["-q", str(files / "queries.tsv"), "-j", str(files / "qrels.txt")]
    environment = {"COLUMNS": "160", "PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin", **variables}
    return run_warm([*arguments, *given], files, environment, 180)


def _local(files: Path) -> list[str]:
    return [str(files / "app"), "--feed", str(files / "documents.jsonl")]


def test_profiles_are_measured_and_compared(files: Path) -> None:
    done = _command(
        files, "evaluate", *_local(files), "-p", "words", "-p", "votes", "-m", "RR@10", "-m", "R@1", "--json"
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["queries"] == 2
    words, votes = found["rankings"]
    # By words: q1 has b second, q2 has c first. By votes: q1 has b first, q2 has c behind e.
    assert words["queries"] == {"q1": {"RR@10": 0.5, "R@1": 0.0}, "q2": {"RR@10": 1.0, "R@1": 1.0}}
    assert votes["queries"] == {"q1": {"RR@10": 1.0, "R@1": 1.0}, "q2": {"RR@10": 0.5, "R@1": 0.0}}
    assert words["measures"]["RR@10"]["mean"] == votes["measures"]["RR@10"]["mean"] == 0.75
    against = votes["against first"]["RR@10"]
    assert (against["won"], against["lost"], against["mean"]) == (1, 1, 0.0)


def test_the_table_and_the_page_show_what_changed(files: Path) -> None:
    report = files / "report.html"
    done = _command(
        files,
        *("evaluate", *_local(files), "-p", "words", "-p", "votes", "-e", "bm25(title)"),
        *("-m", "RR@10", "--report", str(report)),
    )
    assert done.returncode == 0, done.stderr
    for said in (
        "2 queries",
        "0.500 to 1.000",
        "won: query q1 “blue” 0.500 → 1.000",
        "lost: query q2 “giant steps” 1.000 → 0.500",
        "1 c 1.875   - e 7",
        "bm25(title) changes RR@10 of no query",
    ):
        assert said in done.stdout
    page = report.read_text()
    Balanced(page)
    for said in ("<h1>2 queries, 3 rankings</h1>", "bm25(title)", "attribute(votes)", "q1: blue (+0.500)"):
        assert said in page


def test_the_page_is_utf_8_where_nothing_else_is(files: Path) -> None:
    ascii_only = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    given = ("-p", "words", "-p", "votes", "-m", "RR@10", "--json", "--report", "report.html")
    done = _command(files, "evaluate", *_local(files), *given, **ascii_only)
    assert done.returncode == 0, done.stderr
    assert "0.500 → 1.000" in (files / "report.html").read_text(encoding="utf-8")


def test_measures_are_known_to_be_wrong_before_anything_is_fed(files: Path) -> None:
    (files / "documents.jsonl").write_text("what cannot be fed")
    done = _command(files, "evaluate", *_local(files), "-p", "words", "-m", "R@0")
    assert done.returncode == 1
    assert "'R@0' is no measure of ir-measures: its cutoff is less than 1" in " ".join(done.stderr.split())


class Balanced(HTMLParser):
    """All that a page opens is closed."""

    VOID = frozenset(("meta", "line", "br"))

    def __init__(self, page: str) -> None:
        super().__init__()
        self.opened: list[str] = []
        self.feed(page)
        assert self.opened == []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        if tag not in self.VOID:
            self.opened.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert tag in self.VOID or self.opened.pop() == tag


@pytest.mark.parametrize(
    ("judgments", "said"),
    [
        ("q1 0 x7 1\n", "No document that was found is judged: they are named like"),
        ("q3 0 a 1\n", "No query found a document: is anything fed?"),
    ],
)
def test_a_table_of_nothing_but_0_says_why(files: Path, judgments: str, said: str) -> None:
    (files / "qrels.txt").write_text(judgments)
    done = _command(files, "evaluate", *_local(files), "-p", "words")
    assert done.returncode == 0, done.stderr
    assert "1 query;" in done.stdout
    assert said in " ".join(done.stdout.split())


def test_files_that_cannot_be_written_are_known_before_anything_is_asked(files: Path) -> None:
    for arguments in (("features", "-o"), ("evaluate", "--report")):
        done = _command(files, arguments[0], *_local(files), arguments[1], "absent/page.csv")
        assert done.returncode == 1
        assert "'absent/page.csv' cannot be written: there is no folder 'absent'" in " ".join(done.stderr.split())


def test_a_running_service_is_asked(files: Path) -> None:
    with paperwasp.Service(files / "app", port=0) as service:
        service.feed(files / "documents.jsonl")
        done = _command(files, "evaluate", "--url", service.url, "-p", "words", "-m", "AP", "--json")
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["rankings"][0]["measures"]["AP"]["mean"] == 0.75


@pytest.mark.parametrize("ending", ["parquet", "csv", "jsonl"])
def test_features_are_rows_with_judgments(files: Path, ending: str) -> None:
    output = files / f"features.{ending}"
    done = _command(files, "features", *_local(files), "-p", "words", "-o", str(output))
    assert done.returncode == 0, done.stderr
    assert "5 rows of 2 queries, 2 of them relevant" in done.stdout
    if ending == "parquet":
        rows = pyarrow.parquet.read_table(output).to_pylist()
        found = {(row["query"], row["document"]): row for row in rows}
        assert found["q1", "b"]["relevance"] == 1 and found["q1", "a"]["relevance"] == 0
        assert found["q2", "e"]["attribute(votes)"] == 7
        assert found["q2", "c"]["bm25(title)"] == found["q2", "c"]["score"] > 0
    else:
        assert output.read_text().count("\n") == 5 + (ending == "csv")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("evaluate", "-p", "absent"), "absent"),
        (("evaluate", "-p", "words", "-m", "Beauty"), "Beauty"),
        (("evaluate", "-p", "words", "--id-field", "isbn"), "no field 'isbn'"),
        (("evaluate", "-p", "words", "--parameter", "hits"), "not name=value"),
        (("features", "-p", "votes", "-o", "features.csv"), "no match features"),
        (("features", "-p", "words", "-o", "features.txt"), "is to end in one of"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(files: Path, arguments: tuple[str, ...], message: str) -> None:
    done = _command(files, arguments[0], *_local(files), *arguments[1:])
    assert done.returncode == 1
    assert message in done.stderr.replace("\n", " ") and "Traceback" not in done.stderr


def test_judgments_of_other_queries_are_refused(files: Path) -> None:
    (files / "qrels.txt").write_text("7 0 b 1\n")
    done = _command(files, "evaluate", *_local(files), "-p", "words")
    assert done.returncode == 1
    assert "named like 'q1', and in the judgments like '7'" in done.stderr.replace("\n", " ")


def test_query_profiles_say_how_documents_match(files: Path) -> None:
    """`giant` asks for one word of its own, whatever the query is, and so finds nothing for q1; the command's YQL goes
    before."""
    profiles = files / "app" / "search" / "query-profiles"
    profiles.mkdir(parents=True)
    (profiles / "giant.xml").write_text(
        '<query-profile id="giant"><field name="yql">select * from article where title contains "giant"</field>'
        '<field name="ranking.profile">words</field></query-profile>'
    )
    given = ("evaluate", "app", "--feed", "documents.jsonl", "--query-profile", "giant", "--json", "-m", "R@5")
    found = [_command(files, *given), _command(files, *given, "--yql", "select * from article where userQuery()")]
    first, second = (json.loads(done.stdout)["rankings"] for done in found)
    assert [each["name"] for each in first] == ["giant"] == [each["name"] for each in second]
    assert [first[0]["queries"][query]["R@5"] for query in ("q1", "q2")] == [0, 1]
    assert [second[0]["queries"][query]["R@5"] for query in ("q1", "q2")] == [1, 1]


def test_more_hits_than_the_application_gives_are_refused_in_its_words_unless_its_query_profile_says_more(
    files: Path,
) -> None:
    many = ("evaluate", *_local(files), "-p", "words", "-m", "RR@10", "--hits", "500", "--json")
    done = _command(files, *many)
    assert (done.returncode, "500 hits requested, configured limit: 400" in done.stderr) == (1, True), done.stderr
    profiles = files / "app" / "search" / "query-profiles"
    profiles.mkdir(parents=True)
    (profiles / "default.xml").write_text(
        '<query-profile id="default"><field name="maxHits">500</field></query-profile>'
    )
    done = _command(files, *many)
    assert done.returncode == 0, done.stderr
