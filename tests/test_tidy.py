"""Tidiness that no formatter keeps: rules with their reasons, over all files of the repository."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "paperwasp"
FOLDERS = (".ci", "bench", "docs", "examples", "src", "tests", "tools")
KINDS = frozenset({".cpp", ".hpp", ".md", ".py", ".pyi", ".sd", ".sh", ".toml", ".txt", ".xml"})
TESTED_FOLDERS = frozenset({"bench", "docs", "examples", "packaging"})
"""Folders of the repository, beside the package's, that have tests in a folder of their name."""
ROOMS = frozenset({"conformance", "fuzz", "oracles", "real_clients", "service", "upgrade"})
"""Folders of tests that are of the whole service, and the plain twins of kernels."""
KERNEL_LINES = 500
"""Of a file in C++, whose functions no linter here measures. ruff's rules bound what a function in Python may be."""
Definition = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


@pytest.fixture(autouse=True, scope="module")
def _forgotten() -> Iterator[None]:
    """A million nodes of trees, which every later garbage collection of this process would look at."""
    yield
    sources.cache_clear()


@cache
def texts() -> dict[str, str]:
    """Path in the repository → content, of all that people write."""
    found = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*") if path.suffix in KINDS]
    paths = (path for path in (*found, *ROOT.glob("*.*"), ROOT / "Makefile") if path.is_file())
    readable = (path for path in paths if path.suffix in KINDS or path.name == "Makefile")
    return {path.relative_to(ROOT).as_posix(): path.read_text() for path in readable if ".cache" not in path.parts}


@cache
def sources() -> dict[str, tuple[ast.Module, list[Definition]]]:
    """Path in the repository → syntax tree, and the classes and functions in it, of all modules of the package."""
    trees = {
        name: ast.parse(text) for name, text in texts().items() if name.startswith("src/") and name.endswith(".py")
    }
    return {name: (tree, list(definitions(tree))) for name, tree in trees.items()}


def definitions(node: ast.AST) -> Iterator[Definition]:
    """All classes and functions below a node, wherever statements may be."""
    for part in ("body", "orelse", "handlers", "finalbody", "cases"):
        for child in getattr(node, part, ()):
            if isinstance(child, Definition):
                yield child
            yield from definitions(child)


def places(pattern: str, *, below: str = "") -> list[str]:
    """`file:line: text` of every line that matches."""
    expression = re.compile(pattern)
    return [
        f"{name}:{number}: {line.strip()}"
        for name, text in texts().items()
        if name.startswith(below) and name != "tests/test_tidy.py"
        for number, line in enumerate(text.splitlines(), 1)
        if expression.search(line)
    ]


def test_nothing_is_put_off_in_a_comment() -> None:
    """What is not done is said in the documentation, where users look, or refused by name."""
    assert places(r"\b(TODO|FIXME|XXX|HACK)\b") == []


def test_no_paths_of_one_machine() -> None:
    assert places(r"(?<![\w.}>:])/(work|root|home|Users)/") == []


def test_no_test_sleeps() -> None:
    """A test that sleeps is slow where it waits too long and fails where it waits too short: wait for what is due."""
    assert places(r"\bsleep\(", below="tests/") == []


def test_no_line_ends_in_space() -> None:
    assert places(r"[ \t]+$", below="docs/") == []


def test_kernels_are_short() -> None:
    lines = {name: len(text.splitlines()) for name, text in texts().items() if name.endswith((".cpp", ".hpp"))}
    assert {name: count for name, count in lines.items() if count > KERNEL_LINES} == {}


def test_tests_stand_where_what_they_test_does() -> None:
    """Whoever changes a package finds its tests in the folder of the same name."""
    tests = ROOT / "tests"
    folders = {path.parent.relative_to(tests) for path in tests.rglob("*.py") if path.name.startswith("test_")}
    folders |= {path.parent.relative_to(tests) for path in tests.rglob("__init__.py")}
    known = {Path(name) for name in TESTED_FOLDERS | ROOMS}
    strange = {folder.as_posix() for folder in folders - known if not (PACKAGE / folder).is_dir()}
    assert strange == set()


def test_modules_and_classes_say_what_they_are() -> None:
    silent = [name for name, (tree, _) in sources().items() if not ast.get_docstring(tree)]
    silent += [
        f"{name}: {node.name}"
        for name, (_, defined) in sources().items()
        for node in defined
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_") and not ast.get_docstring(node)
    ]
    assert silent == []


def test_every_format_shows_an_example_and_its_downsides() -> None:
    for page in (ROOT / "docs" / "internals" / "formats").glob("*.md"):
        headings = re.findall(r"^## (.*)$", page.read_text(), re.MULTILINE)
        assert {"Worked example", "Downsides"} <= set(headings), page.name


def test_the_package_is_typed_and_licensed() -> None:
    assert (PACKAGE / "py.typed").is_file()
    assert "Apache License" in (ROOT / "LICENSE").read_text()
