"""ARCHITECTURE.md names real things: every path, module, class, function and constant in backticks exists."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "paperwasp"
PAGE = ROOT / "ARCHITECTURE.md"

_PATH = re.compile(r"[\w.-]+(/[\w.-]*)+|[\w-]+\.(py|md|cpp|hpp|toml)")
_NAME = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")
NOT_OURS = frozenset({"and", "or", "not", "bm25", "services.xml"})
"""Words of Vespa's languages and of packages."""


def _quoted() -> list[str]:
    text = re.sub(r"^```.*?^```", "", PAGE.read_text(), flags=re.MULTILINE | re.DOTALL)
    return sorted(set(re.findall(r"`([^`\n]+)`", text)) - NOT_OURS)


PATHS = [quoted for quoted in _quoted() if _PATH.fullmatch(quoted)]
NAMES = [quoted for quoted in _quoted() if _NAME.fullmatch(quoted) and quoted not in PATHS]


@cache
def _defined_in(path: Path) -> frozenset[str]:
    """What a Python file defines: `name` and, within a class, `Class.name`."""
    found: set[str] = set()

    def visit(node: ast.AST, prefix: str) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                found.add(prefix + child.name)
                if isinstance(child, ast.ClassDef):
                    visit(child, f"{prefix}{child.name}.")
            elif isinstance(child, ast.AnnAssign) and isinstance(child.target, ast.Name):
                found.add(prefix + child.target.id)
            elif isinstance(child, ast.Assign):
                found.update(prefix + target.id for target in child.targets if isinstance(target, ast.Name))

    visit(ast.parse(path.read_text()), "")
    return frozenset(found)


@cache
def _anywhere() -> frozenset[str]:
    """What any file of the package defines, and every word of the kernels' sources."""
    python = (name for path in PACKAGE.rglob("*.py") for name in _defined_in(path))
    kernels = (word for path in (PACKAGE / "core").rglob("*.?pp") for word in re.findall(r"\w+", path.read_text()))
    packages = (path.name for path in PACKAGE.iterdir() if path.is_dir())
    return frozenset(last for name in python for last in (name, name.split(".")[-1])) | {*kernels, *packages}


def _exists(name: str) -> bool:
    """`package.module`, `package.module.Class.method`, or a name that is defined somewhere."""
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        place, rest = PACKAGE.joinpath(*parts[:length]), ".".join(parts[length:])
        if place.is_dir() and (not rest or rest in _words_of_kernels(place)):
            return True
        if place.with_suffix(".py").is_file():
            return not rest or rest in _defined_in(place.with_suffix(".py"))
    return name in _anywhere()


def _words_of_kernels(folder: Path) -> frozenset[str]:
    """`core.top_k` is bound in C++."""
    return frozenset(re.findall(r'm\.def\(\s*"(\w+)"', "".join(path.read_text() for path in folder.rglob("*.cpp"))))


@pytest.mark.parametrize("path", PATHS)
def test_paths_exist(path: str) -> None:
    assert (ROOT / path).exists() or (PACKAGE / path).exists()


@pytest.mark.parametrize("name", NAMES)
def test_names_exist(name: str) -> None:
    assert _exists(name)


def test_links_lead_somewhere() -> None:
    for target in re.findall(r"\]\(([^)#:]+)\)", PAGE.read_text()):
        assert (ROOT / target).exists(), target


def test_something_is_checked() -> None:
    assert len(PATHS) > 20
    assert len(NAMES) > 30


def test_files_that_the_kernels_name_exist() -> None:
    """In comments: by their place in the repository, the package or the core, or beside the file that names them."""
    pattern = re.compile(r"(?<![\w/.*])\w+(?:/\w+)*\.(?:py|cpp|hpp)\b")
    core = PACKAGE / "core"
    gone = [
        f"{file.relative_to(core)}: {named}"
        for file in core.rglob("*.?pp")
        for comment in re.findall(r"//.*", file.read_text())
        for named in pattern.findall(comment)
        if not any((place / named).is_file() for place in (ROOT, PACKAGE, core, file.parent))
    ]
    assert gone == []
