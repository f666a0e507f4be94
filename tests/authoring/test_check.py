"""`paperwasp check`: what it prints of a package, and of a change from one package to another."""

from __future__ import annotations

import io
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NoReturn

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from typer.testing import CliRunner

from paperwasp import limits
from paperwasp.application.package import load_package
from paperwasp.authoring.check import check_application
from paperwasp.cli import app
from paperwasp.client.terminal import describe, excerpts
from paperwasp.errors import Finding, LanguageError, Position, UnreadablePackage
from paperwasp.schema.model import Schema

SERVICES = """<services version="1.0">
  <container id="default" version="1.0"><search/><document-api/></container>
  <content id="music" version="1.0">
    <redundancy>1</redundancy>
    <documents><document type="music" mode="index"/></documents>
  </content>
</services>
"""
SCHEMA = """schema music {
    document music {
        field title type string {
            indexing: index | summary
        }
\t\tfield year type int { indexing: summary }
    }
}
"""


def write(folder: Path, schema: str = SCHEMA, services: str = SERVICES, **files: str) -> Path:
    texts = {"services.xml": services, "schemas/music.sd": schema, **files}
    for path, text in texts.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    return folder


def nothing_wrong(schema: Schema, files: object) -> tuple[()]:
    """Instead of the check of rank profiles."""
    return ()


def checked(folder: Path, against: Path | None = None) -> tuple[bool, list[str]]:
    console = Console(file=io.StringIO(), width=40)
    fine = check_application(folder, nothing_wrong, against, console)
    assert isinstance(console.file, io.StringIO)
    return fine, console.file.getvalue().replace(str(folder), "PACKAGE").splitlines()


def shown(line: str, column: int, message: str = "wrong", level: str = "ERROR") -> list[str]:
    finding = Finding(message, Position("a.sd", 1, column), level)  # type: ignore[arg-type]
    return [text.plain for text in describe(finding, {"a.sd": line.encode("utf-8", "surrogatepass")})]


def test_a_package_without_problems(tmp_path: Path) -> None:
    assert checked(write(tmp_path)) == (True, ["'PACKAGE' can be deployed: 1 schema in 1 content cluster"])


def test_an_archive_is_a_package_too(tmp_path: Path) -> None:
    archive = tmp_path / "app.zip"
    archive.write_bytes(load_package(write(tmp_path / "app")).to_zip())
    assert checked(archive)[0]


def test_every_problem_is_shown_at_its_place(tmp_path: Path) -> None:
    fine, lines = checked(write(tmp_path, SCHEMA.replace("type int", "type imt").replace("type string", "type strin")))
    assert not fine
    assert [line for line in lines if ": error: " in line] == [lines[0], lines[3]]
    assert lines[0].startswith("schemas/music.sd:3:")
    assert "unknown type 'strin'" in lines[0]
    assert lines[1] == "        field title type strin {"
    assert lines[3].startswith("schemas/music.sd:6:")
    for line, caret in (lines[1:3], lines[4:6]):
        assert caret.strip() == "^"
        assert line[len(caret) - 1 :].startswith(("field", "strin", "imt"))
    assert lines[6] == "'PACKAGE' cannot be deployed: 2 errors"


def test_problems_of_rank_profiles_are_among_them(tmp_path: Path) -> None:
    def check(schema: Schema, files: object) -> NoReturn:
        raise LanguageError("no such feature", Position(schema.source, 2, 5))

    console = Console(file=io.StringIO())
    assert not check_application(write(tmp_path), check, console=console)
    assert isinstance(console.file, io.StringIO)
    assert console.file.getvalue().splitlines()[:3] == [
        "schemas/music.sd:2:5: error: no such feature",
        "    document music {",
        "    ^",
    ]


def test_what_is_no_package_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UnreadablePackage):
        checked(tmp_path)


def test_levels_have_names() -> None:
    assert [shown("x", 1, level=level)[0] for level in ("ERROR", "WARNING", "INFO")] == [
        "a.sd:1:1: error: wrong",
        "a.sd:1:1: warning: wrong",
        "a.sd:1:1: note: wrong",
    ]
    assert [text.plain for text in describe(Finding("all"), {})] == ["warning: all"]


def test_tabs_and_wide_letters_keep_the_caret_in_place() -> None:
    assert shown("\tab\tc", 5)[1:] == ["\tab\tc", "\t  \t^"]
    assert shown("日本 x", 4)[1:] == ["日本 x", "     ^"]


def test_long_lines_are_cut_around_the_place() -> None:
    line = "".join(chr(ord("a") + number % 26) for number in range(1000))
    _, text, caret = shown(line, 501)
    assert text[0] == text[-1] == "…"
    assert len(text) == 102
    assert text[len(caret) - 1] == line[500]
    assert shown(line, 1)[1:] == [line[:100] + "…", "^"]
    assert shown(line, 100)[1:] == [line[:100] + "…", " " * 99 + "^"]
    assert shown(line, 1000)[1][-1] == line[-1]


def test_places_that_are_not_there_are_only_named() -> None:
    assert shown("", 7) == ["a.sd:1:7: error: wrong"]
    assert shown("ab", 99)[1:] == ["ab", "  ^"]
    beyond = Finding("wrong", Position("a.sd", 9, 1))
    other = Finding("wrong", Position("b.sd", 1, 1))
    assert [len(list(describe(finding, {"a.sd": b"ab"}))) for finding in (beyond, other)] == [1, 1]


def test_places_that_a_text_names_are_shown() -> None:
    """As a service says them, whose package is here."""
    text = "2 problems:\na.sd, line 1, column 1: unknown 'b'; is it 'c'?\nc.sd, line 1, column 1: no file\nend"
    assert excerpts(text, {"a.sd": b"a b"}) == [
        "2 problems:",
        "a.sd:1:3: error: unknown 'b'; is it 'c'?",
        "a b",
        "  ^",
        "c.sd, line 1, column 1: no file",
        "end",
    ]
    assert excerpts("Invalid: a.sd, line 1, column 1: x", {"a.sd": b"y"}, "WARNING") == [
        "Invalid:",
        "a.sd:1:1: warning: x",
        "y",
        "^",
    ]


@given(st.text(), st.integers(-5, 300), st.text())
def test_no_source_does_harm(line: str, column: int, message: str) -> None:
    lines = shown(line, column, message)
    assert len(lines) in (1, 3)
    assert all(character.isprintable() or character in "\t\n" for text in lines for character in text)


def test_what_a_change_needs(tmp_path: Path) -> None:
    active = write(tmp_path / "active")
    new = write(tmp_path / "new", SCHEMA.replace("int { indexing: summary", "long { indexing: attribute"))
    fine, lines = checked(new, active)
    assert not fine
    told = "\n".join(lines)
    assert "        1) Document type 'music': Field 'year' changed: add attribute aspect" in lines
    assert "    1) Document type 'music': Field 'year' changed: data type: 'int' -> 'long'" in lines
    assert "\nerror: field-type-change: " in told
    assert "add <allow until='yyyy-mm-dd'>field-type-change</allow>" in told
    assert lines[-1] == "'PACKAGE' cannot be deployed: 1 error"


def test_what_an_override_allows(tmp_path: Path) -> None:
    today = datetime.now(UTC).date() + timedelta(days=1)
    overrides = f"<validation-overrides><allow until='{today}'>field-type-change</allow></validation-overrides>"
    files = {"validation-overrides.xml": overrides}
    new = write(tmp_path / "new", SCHEMA.replace("type int", "type long"), **files)
    fine, lines = checked(new, write(tmp_path / "active"))
    assert fine
    assert any(line.startswith("field-type-change is allowed: Document type 'music': Field 'year'") for line in lines)


def test_a_change_that_needs_nothing(tmp_path: Path) -> None:
    active = write(tmp_path / "active")
    fine, lines = checked(write(tmp_path / "new"), active)
    assert fine
    assert lines[0] == f"To take the place of '{active}' it needs nothing but its activation"


WRONG = """schema music {
    document music {
        field title type strin { indexing: index }
        field year type int { indexing: attribute }
    }
    fieldset default {
        fields: yeer
    }
    document-summary s {
        summary x { source: yaer }
    }
    rank-profile p { first-phase { expression: attribute(year) + attribute(yearr) + bm25(title) } }
}
"""


def test_the_caret_is_below_the_word_that_is_wrong(tmp_path: Path) -> None:
    """Also in the block of an element; and an unknown type hides nothing but what is made of the field."""
    status, told = run(os.fspath(write(tmp_path, WRONG)))
    assert status == 1
    lines = told.splitlines()
    found = {}
    for number, line in enumerate(lines):
        if line.strip() == "^":
            found[lines[number - 2]] = lines[number - 1][line.index("^") :].split("}")[0].split(" ")[0].split(")")[0]
    assert [(told.split(": ")[0], word) for told, word in found.items()] == [
        ("schemas/music.sd:3:26", "strin"),
        ("schemas/music.sd:7:17", "yeer"),
        ("schemas/music.sd:10:29", "yaer"),
        ("schemas/music.sd:12:76", "yearr"),
    ]
    assert "there is no field 'yaer'; did you mean 'year'?" in " ".join(found)


def run(*arguments: str) -> tuple[int, str]:
    result = CliRunner(env={"TERM": "dumb", "NO_COLOR": "1"}).invoke(app, ["check", *arguments])
    return result.exit_code, result.output


def test_the_command_ends_with_the_status_of_a_compiler(tmp_path: Path) -> None:
    status, told = run(os.fspath(write(tmp_path / "good")))
    assert (status, "\x1b" in told) == (0, False)
    bad = "rank-profile a { first-phase { expression: nosuch(x) } } }"
    status, told = run(os.fspath(write(tmp_path / "bad", SCHEMA.rstrip().removesuffix("}") + bad)))
    assert status == 1
    assert "schemas/music.sd:8:" in told
    assert "nosuch" in told
    assert told.count("error") == 2


def test_python_is_run_only_where_that_is_allowed(tmp_path: Path) -> None:
    component = '<component id="c" class="c.C" bundle="python"/></container>'
    code = "raise RuntimeError('it runs')"
    services = SERVICES.replace("</container>", component)
    package = str(write(tmp_path, services=services, **{"components/c.py": code}))
    refused, run = (CliRunner().invoke(app, ["check", package, *more]) for more in ([], ["--allow-python-components"]))
    assert refused.exit_code == run.exit_code == 1
    assert "start it with --allow-python-components" in refused.output and "it runs" not in refused.output
    assert "component 'c': components/c.py, line 1: RuntimeError: it runs" in run.output


def test_the_active_application_must_be_one(tmp_path: Path) -> None:
    broken = write(tmp_path / "broken", "schema x")
    result = CliRunner().invoke(app, ["check", os.fspath(write(tmp_path / "new")), "--against", os.fspath(broken)])
    assert result.exit_code == 1
    assert "cannot be compared with: it has 1 error" in str(result.exception)


def test_help_teaches() -> None:
    status, told = run("--help")
    assert status == 0
    for word in ("--against", "error", "warning", "note", "services.xml", "status"):
        assert word in told


def test_a_check_has_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "CHECK_SECONDS", 0.0)
    fine, lines = checked(write(tmp_path))
    assert not fine
    assert lines[0].endswith(
        "The package was not checked within 0 seconds (CHECK_SECONDS): 0.0 seconds of it were for services.xml"
    )
