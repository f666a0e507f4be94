"""The declarations of the compiled kernels are complete, exact, and those of the module that is built."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

from paperwasp.core import _core

FILE = Path(__file__).parents[2] / "src" / "paperwasp" / "core" / "_core.pyi"
TREE = ast.parse(FILE.read_text())


def _declared() -> dict[str, list[list[str]]]:
    """Each public name, and a method as `Class.method`, with the parameters of its overloads."""
    found: dict[str, list[list[str]]] = {}
    for node in TREE.body:
        match node:
            case ast.FunctionDef():
                found.setdefault(node.name, []).append(_names(node.args))
            case ast.ClassDef() if not any(ast.unparse(base) == "TypedDict" for base in node.bases):
                found[node.name] = []
                for member in node.body:
                    if isinstance(member, ast.FunctionDef) and not member.decorator_list:
                        found[f"{node.name}.{member.name}"] = [_names(member.args)]
            case ast.AnnAssign(target=ast.Name(id=name), value=None):
                found[name] = []
    return found


def _names(arguments: ast.arguments) -> list[str]:
    """The names of parameters, with a star before those that are given by name alone."""
    by_name = [each.arg for each in arguments.kwonlyargs]
    return [*(each.arg for each in arguments.args), *(["*", *by_name] if by_name else ())]


def _parameters(signature: str) -> list[str]:
    """The names of the parameters in a signature as nanobind writes it: brackets and defaults hold none."""
    inner = signature[signature.index("(") + 1 : signature.rindex(") ->")]
    while inner != (flat := re.sub(r"\[[^\[\]]*\]", "", inner)):
        inner = flat
    return [each.split(":")[0].split(" =")[0].strip() for each in inner.split(",") if each.strip() not in ("", "/")]


def _signatures(built: Any) -> list[str]:
    return [each[0] for each in getattr(built, "__nb_signature__", ())]


def test_every_kernel_is_declared() -> None:
    declared = {name for name in _declared() if "." not in name}
    assert declared == {name for name in dir(_core) if not name.startswith("__")}


def test_parameters_are_declared_as_they_are_built() -> None:
    for name, overloads in _declared().items():
        built: Any = _core
        for part in name.split("."):
            built = getattr(built, part)
        if signatures := _signatures(built):
            assert {tuple(_parameters(each)) for each in signatures} == set(map(tuple, overloads)), name


def test_no_kernel_is_declared_as_anything() -> None:
    assert [node.lineno for node in ast.walk(TREE) if isinstance(node, ast.Name) and node.id == "Any"] == []
