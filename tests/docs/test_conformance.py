"""The list of the specification's rows is whole, each row has tests that exist, and the page shows it."""

from __future__ import annotations

import ast
import re
from collections import Counter
from functools import cache

import pytest

from tests.conformance.page import PAGE, ROOT, rendered, script_of
from tests.conformance.rows import Row, Section, read_sections
from tests.docs.pages import DOCS, anchors

SECTIONS = read_sections()
ROWS = 278
"""All rows of the specification: counted in it, like those of each section."""
OPEN = 0
"""Rows without a proof: the number may only fall."""
_NODE = re.compile(r"(tests/[\w/]+\.py)::(test_\w+)(?:\[([\w.]+)\])?")
EACH_SECTION = pytest.mark.parametrize("section", SECTIONS, ids=lambda section: section.name)


@cache
def functions(path: str) -> frozenset[str]:
    """Return the names of the tests in a file, without those that are always skipped. Not collected: read."""
    file = ROOT / path
    tree = ast.parse(file.read_text() if file.is_file() else "")
    return frozenset(
        node.name
        for node in tree.body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not _is_skipped(node)
    )


def _is_skipped(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return any("mark.skip" in ast.unparse(each) or "mark.xfail" in ast.unparse(each) for each in node.decorator_list)


def problem_of(test: str) -> str | None:
    """Return what is wrong with a node id; None: there is such a test."""
    match = _NODE.fullmatch(test)
    if match is None:
        return f"{test} is no node id"
    path, name, parameter = match.groups()
    if name not in functions(path):
        return f"{test} is not there"
    if parameter and script_of(test) is None:
        return f"{test}: there is no script of that name"
    return None


def test_no_row_has_vanished() -> None:
    assert sum(section.count for section in SECTIONS) == ROWS
    assert len({section.name for section in SECTIONS}) == len(SECTIONS)


@EACH_SECTION
def test_a_section_has_all_its_rows(section: Section) -> None:
    assert len(section.rows) == section.count
    assert sum(map(int, re.findall(r"\d+", section.of))) == section.count
    assert [key for key, times in Counter(row.key for row in section.rows).items() if times > 1] == []


@EACH_SECTION
def test_every_row_has_tests_that_exist(section: Section) -> None:
    without = [row.key for row in section.rows if not row.tests and not row.is_open]
    assert without == []
    wrong = [problem for row in section.rows for test in row.tests if (problem := problem_of(test))]
    assert wrong == []
    twice = [row.key for row in section.rows if len(set(row.tests)) < len(row.tests)]
    assert twice == []


@EACH_SECTION
def test_every_row_says_what_is_here_and_where_it_is_described(section: Section) -> None:
    def is_described(row: Row) -> bool:
        page, _, heading = row.page.partition("#")
        return bool(row.here) and (DOCS / page).is_file() and (not heading or heading in anchors(DOCS / page))

    assert [row.key for row in section.rows if not is_described(row)] == []


def test_open_rows_only_become_fewer() -> None:
    assert sum(row.is_open for section in SECTIONS for row in section.rows) == OPEN


def test_every_test_of_the_specification_is_a_proof() -> None:
    """What was written for a row is named by one."""
    named = {test for section in SECTIONS for row in section.rows for test in row.tests}
    files = [path.relative_to(ROOT).as_posix() for path in (ROOT / "tests" / "conformance").glob("test_*.py")]
    own = {f"{path}::{name}" for path in files for name in functions(path) if name.startswith("test_")}
    assert own - named == set()


def test_the_page_is_up_to_date() -> None:
    """Where not: python -m tests.conformance.page."""
    assert PAGE.read_text() == rendered()
