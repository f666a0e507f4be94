"""Reads the documentation of a Python installation out of its sources, importing nothing.

Every module, class, function and method becomes one document. Files that are not Python after all are skipped.
Run by itself, it prints a feed: `python index_pydoc.py > pydoc.jsonl`; with names of packages, of these alone, of which
`python` is the standard library.
"""

from __future__ import annotations

import ast
import json
import sys
import sysconfig
import tokenize
import warnings
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Definition = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
Document = dict[str, Any]

SKIPPED_FOLDERS = frozenset(
    ("test", "tests", "testing", "idle_test", "__pycache__", "lib2to3", "_vendor", "site-packages")
)
DOCUMENTATION_CHARACTERS = 20_000
SIGNATURE_CHARACTERS = 1_000


@dataclass(frozen=True)
class Root:
    """A folder of sources. `package` names the distribution; None: the first part of each module is its name."""

    folder: Path
    package: str | None


def installation_roots() -> list[Root]:
    """The standard library and the installed packages of the Python that runs this."""
    paths = sysconfig.get_paths()
    roots = {Path(paths["stdlib"]): "python", Path(paths["purelib"]): None, Path(paths["platlib"]): None}
    return [Root(folder, package) for folder, package in roots.items() if folder.is_dir()]


def documents(roots: list[Root], packages: Collection[str] = ()) -> Iterator[Document]:
    """The documents of all sources below the roots, each id once; of these packages alone, if any are named."""
    seen: set[str] = set()
    for root in roots:
        for path in source_files(root.folder):
            if packages and (root.package or path.relative_to(root.folder).with_suffix("").parts[0]) not in packages:
                continue
            for document in documents_of(root, path):
                if document["fields"]["qualified_name"] not in seen:
                    seen.add(document["fields"]["qualified_name"])
                    yield document


def source_files(folder: Path) -> Iterator[Path]:
    """The Python files below `folder`, in a stable order, tests and vendored copies left out."""
    for path in sorted(folder.iterdir()):
        if path.is_dir() and not path.is_symlink():
            if path.name not in SKIPPED_FOLDERS and path.name.isidentifier():
                yield from source_files(path)
        elif path.suffix == ".py" and (path.stem.isidentifier()):
            yield path


def documents_of(root: Root, path: Path) -> Iterator[Document]:
    """The documents of one file; none if it cannot be read or parsed."""
    tree = parsed(path)
    if tree is None:
        return
    parts = list(path.relative_to(root.folder).with_suffix("").parts)
    if parts[-1] == "__init__" and len(parts) > 1:
        parts.pop()
    module = ".".join(parts)
    package = root.package or parts[0]
    yield document(package, module, parts, "module", "", ast.get_docstring(tree), tree)
    yield from _definitions(package, module, parts, tree, "function")


def parsed(path: Path) -> ast.Module | None:
    """The syntax tree of a file in whatever encoding it declares."""
    try:
        with tokenize.open(path) as file:
            text = file.read()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(text, str(path))
    except (SyntaxError, UnicodeError, ValueError, OSError, RecursionError, MemoryError):
        return None


def _definitions(package: str, module: str, parts: list[str], parent: ast.AST, kind: str) -> Iterator[Document]:
    """The classes and functions in a module or class, also below `if` and `try`; not those local to a function."""
    for node in ast.iter_child_nodes(parent):
        if isinstance(node, Definition):
            path = [*parts, node.name]
            is_class = isinstance(node, ast.ClassDef)
            shown = "class" if is_class else kind
            yield document(package, module, path, shown, signature(node), ast.get_docstring(node), node)
            if is_class:
                yield from _definitions(package, module, path, node, "method")
        elif isinstance(node, ast.If | ast.Try | ast.ExceptHandler | ast.With):
            yield from _definitions(package, module, parts, node, kind)


def signature(node: Definition) -> str:
    """How the thing is called: `def f(x: int) -> str`, `class A(B)`."""
    if isinstance(node, ast.ClassDef):
        bases = ", ".join(ast.unparse(base) for base in node.bases)
        return f"class {node.name}({bases})" if bases else f"class {node.name}"
    start = "async def" if isinstance(node, ast.AsyncFunctionDef) else "def"
    returns = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    return f"{start} {node.name}({ast.unparse(node.args)}){returns}"[:SIGNATURE_CHARACTERS]


def document(
    package: str, module: str, path: list[str], kind: str, call: str, documentation: str | None, node: ast.AST
) -> Document:
    """One line of a feed."""
    qualified_name = ".".join(path)
    text = clean(documentation or "")[:DOCUMENTATION_CHARACTERS]
    fields: Document = {
        "name": path[-1],
        "qualified_name": qualified_name,
        "module": module,
        "kind": kind,
        "package": package,
        "signature": clean(call),
        "documentation": text,
        "documentation_words": len(text.split()),
        "depth": len(path),
        "line_count": line_count(node),
        "is_public": not any(part.startswith("_") for part in path),
    }
    return {"put": f"id:python:pydoc::{qualified_name}", "fields": fields}


def line_count(node: ast.AST) -> int:
    if isinstance(node, ast.Module):
        return max((getattr(child, "end_lineno", 0) or 0 for child in node.body), default=0)
    return int(getattr(node, "end_lineno", 0)) - int(getattr(node, "lineno", 0)) + 1


def clean(text: str) -> str:
    """The text without the control characters that a document may not have."""
    if text.isprintable():
        return text
    kept = (c for c in text if c >= " " or c in "\n\t\r")
    return "".join(kept).encode("utf-8", "ignore").decode()


if __name__ == "__main__":
    for found in documents(installation_roots(), sys.argv[1:]):
        sys.stdout.write(json.dumps(found) + "\n")
