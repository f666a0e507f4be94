"""ARCHITECTURE.md names real things: every path, module, class, function and constant in backticks exists.

So do docstrings and comments of the package, where a name begins with a package of it or with a module beside.
"""

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
NOT_PLACES = frozenset(
    {
        *("ranking.firstPhase.expression", "ranking.listFeatures", "ranking.location", "ranking.rerankCount"),
        *("ranking.secondPhase.rerankCount", "model.language", "select.grouping", "tracelevel.rules"),
        *("search/query-timeout", "container/server", "vespa.container", "metrics.values", "state.applied"),
    }
)
"""Parameters of requests, elements of services.xml, members of objects: what looks like a name of the package."""


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
        if place.is_dir() and (not rest or rest in _words_of_kernels(place) or rest in _exported_by(place)):
            return True
        if place.with_suffix(".py").is_file():
            return not rest or rest in _defined_in(place.with_suffix(".py"))
    return name in _anywhere()


def _words_of_kernels(folder: Path) -> frozenset[str]:
    """`core.top_k` is bound in C++."""
    return frozenset(re.findall(r'm\.def\(\s*"(\w+)"', "".join(path.read_text() for path in folder.rglob("*.cpp"))))


@cache
def _exported_by(package: Path) -> frozenset[str]:
    """`limits.QUERY_ITEMS` and `document.selection.Subject` are imported by the package's `__init__`."""
    found: set[str] = set()
    for node in ast.parse((package / "__init__.py").read_text()).body if (package / "__init__.py").is_file() else ():
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            names = {alias.name for alias in node.names}
            module = PACKAGE.joinpath(*node.module.split(".")[1:]).with_suffix(".py")
            found |= _defined_in(module) if names == {"*"} else names
    return frozenset(found)


@pytest.mark.parametrize("path", PATHS)
def test_paths_exist(path: str) -> None:
    assert (ROOT / path).exists() or (PACKAGE / path).exists()


@pytest.mark.parametrize("name", NAMES)
def test_names_exist(name: str) -> None:
    assert _exists(name)


def _is_gone(quoted: str, file: Path) -> bool:
    """Whether a docstring or comment of the file names a module or a path of ours that does not exist.

    Beginnings that are not ours are left alone, unless a place of ours follows: `cluster.messages.documents`.
    """
    if "/" in quoted or quoted.endswith(".py"):
        is_ours = quoted.endswith((".py", ".cpp", ".hpp", ".md")) or (PACKAGE / quoted.split("/")[0]).is_dir()
        return is_ours and not any(
            (place / quoted).exists() for place in (ROOT, PACKAGE, PACKAGE / "core", file.parent)
        )
    parts = quoted.removeprefix("paperwasp.").split(".")
    first, rest = parts[0], ".".join(parts[1:])
    if (PACKAGE / first).is_dir() or (PACKAGE / f"{first}.py").is_file():
        return not _exists(".".join(parts))
    if places := _folders().get(first):
        return not any(_exists(f"{place}.{rest}") for place in places)
    if (module := file.parent / f"{first}.py").is_file():
        return rest not in _defined_in(module)
    return any(_exists(f"{place}.{'.'.join(parts[2:])}") for place in _folders().get(parts[1], ()))


@cache
def _folders() -> dict[str, list[str]]:
    """Name of a folder → the packages of that name, from `paperwasp` on."""
    found: dict[str, list[str]] = {}
    for path in PACKAGE.rglob("*"):
        if path.is_dir() and path.name != "__pycache__":
            found.setdefault(path.name, []).append(".".join(path.relative_to(PACKAGE).parts))
    return found


def test_docstrings_and_comments_name_what_exists() -> None:
    dotted = re.compile(r"[a-z_]\w*(\.[A-Za-z_]\w*)+")
    gone = [
        f"{file.relative_to(PACKAGE)}: {quoted}"
        for file in PACKAGE.rglob("*.py")
        for quoted in dict.fromkeys(re.findall(r"`([^`\s]+)`", file.read_text()))
        if (dotted.fullmatch(quoted) or ("/" in quoted and _PATH.fullmatch(quoted))) and quoted not in NOT_PLACES
        if _is_gone(quoted, file)
    ]
    assert gone == []


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
