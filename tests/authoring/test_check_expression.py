"""`paperwasp check --rank`: the type of one expression over the rank profiles of a package; what is wrong with it."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from paperwasp.cli import app

SERVICES = """<services version="1.0">
  <container id="default" version="1.0"><search/></container>
  <content id="c" version="1.0">
    <redundancy>1</redundancy>
    <documents><document type="music" mode="index"/><document type="book" mode="streaming"/></documents>
  </content>
</services>
"""
SCHEMA = """schema {0} {{
    document {0} {{
        field title type string {{ indexing: index
            index: enable-bm25 }}
        field plain type string {{ indexing: index }}
        field year type int {{ indexing: attribute }}
        {1}
    }}
    rank-profile p {{
        inputs {{ query(v) tensor<float>(x[4]) }}
        constants {{ c tensor(x[4]): [1, 2, 3, 4] }}
        function doubled(y) {{ expression: y * 2 }}
        function itself() {{ expression: itself }}
    }}
    {2}
}}
"""


@pytest.fixture
def package(tmp_path: Path) -> Path:
    only = 'rank-profile only { first-phase { expression: xgboost("none.json") } }'
    files = {
        "services.xml": SERVICES,
        "schemas/music.sd": SCHEMA.format("music", "field price type double { indexing: attribute }", only),
        "schemas/book.sd": SCHEMA.format("book", "", ""),
    }
    for path, text in files.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(text)
    return tmp_path


def checked(package: Path, *arguments: str) -> tuple[int, list[str]]:
    result = CliRunner().invoke(app, ["check", "--rank", str(package), *arguments])
    return result.exit_code, result.output.splitlines()


def test_the_type_of_an_expression_and_what_it_reads(package: Path) -> None:
    text = "reduce(query(v) * constant(c) * doubled(attribute(year)), sum) + bm25(title) + query(w)"
    assert checked(package, text, "--profile", "p", "--schema", "book") == (
        0,
        [
            "schema book, rank-profile p: a number",
            "  reads: query(v), attribute(year), bm25(title), query(w)",
            "  may stand in: first-phase, second-phase, global-phase",
            "warning: query(w) is not declared in the profile's inputs: it is a number",
        ],
    )


def test_bm25_of_a_field_that_keeps_too_little_for_it(package: Path) -> None:
    code, lines = checked(package, "bm25(title) + bm25(plain)", "--profile", "p", "--schema", "music")
    assert (code, lines[-1]) == (
        0,
        "warning: bm25(plain) takes each match for one in a text of average length, as Vespa does: field plain has no "
        "'index: enable-bm25'",
    )


def test_a_tensor_is_no_phase(package: Path) -> None:
    code, lines = checked(package, "concat(query(v), c, x)", "--profile", "p", "--schema", "music")
    assert (code, lines) == (0, ["schema music, rank-profile p: tensor(x[8])", "  reads: query(v)"])


@pytest.mark.parametrize(
    ("text", "phases"),
    [
        ("firstPhase * 2", "second-phase, global-phase"),
        ("secondPhase", "global-phase"),
        ("normalize_linear(bm25(title))", "global-phase"),
        ("1", "first-phase, second-phase, global-phase"),
    ],
)
def test_where_it_may_stand(package: Path, text: str, phases: str) -> None:
    code, lines = checked(package, text, "--schema", "book")
    assert (code, lines[-1]) == (0, f"  may stand in: {phases}")


def test_all_schemas_with_the_profile_are_looked_at(package: Path) -> None:
    assert checked(package, "doubled(\n  attribute(price))", "--profile", "p") == (
        1,
        [
            "schema book, rank-profile p: wrong",
            "expression:2:13: error: rank feature 'attribute': schema 'book' has no field 'price'",
            "  attribute(price))",
            "            ^",
            "schema music, rank-profile p: a number",
            "  reads: attribute(price)",
            "  may stand in: first-phase, second-phase, global-phase",
        ],
    )


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("1 +", "expression:1:4: error: expected a value, found the end"),
        ("itself", "function 'itself' calls itself"),
        ("(" * 300, "nested deeper than 200 levels"),
        ("map(c, f(x)(x + attribute(year)))", "sees its parameters only"),
    ],
)
def test_what_is_wrong(package: Path, text: str, told: str) -> None:
    code, lines = checked(package, text, "--profile", "p", "--schema", "music")
    assert code == 1
    assert lines[0] == "schema music, rank-profile p: wrong"
    assert told in "\n".join(lines)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("1", "--profile", "q"), "There is no rank profile 'q': the schemas have default, only, p, unranked"),
        (
            ("1", "--profile", "only", "--schema", "book"),
            "There is no rank profile 'only': schema 'book' has default, p",
        ),
        (("1", "--schema", "musik"), "There is no schema 'musik'; did you mean 'music'?"),
    ],
)
def test_what_there_is_not(package: Path, arguments: tuple[str, ...], told: str) -> None:
    result = CliRunner().invoke(app, ["check", "--rank", str(package), *arguments])
    assert result.exit_code == 1
    assert told in str(result.exception)


def test_a_package_that_is_wrong(package: Path) -> None:
    (package / "schemas/book.sd").write_text("schema book {")
    code, lines = checked(package, "1")
    assert code == 1
    assert lines[0].startswith("schemas/book.sd:1:")


@pytest.mark.parametrize("arguments", [("--rank", "."), (".", "1 + 1")])
def test_an_expression_and_its_option_go_together(arguments: tuple[str, ...]) -> None:
    assert CliRunner().invoke(app, ["check", *arguments]).exit_code == 2
