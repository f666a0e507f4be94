"""The packages stand on the floors that ARCHITECTURE.md draws, imports go only downwards, and no module imports itself
by way of others.

A package that is missing there, or that reaches up or sideways, fails here with the import to mend.
Imports for annotations alone (`if TYPE_CHECKING`) and those inside functions obey all of this too.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from itertools import takewhile
from pathlib import Path

ROOT = Path(__file__).parent.parent / "src"

FLOOR = re.compile(r"^(\d+) +(\w+(?: · \w+)*)", re.MULTILINE)
"""A line of the floors in ARCHITECTURE.md: a number, and the packages that stand there."""


def _read_floors() -> tuple[tuple[str, ...], ...]:
    """The packages of each floor, from the ground up. Packages on the ground may use their neighbours."""
    text = (ROOT.parent / "ARCHITECTURE.md").read_text()
    [block] = re.findall(r"^## The floors$.*?^```$(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    floors = {int(number): tuple(packages.split(" · ")) for number, packages in FLOOR.findall(block)}
    return tuple(floors[number] for number in range(len(floors)))


FLOORS = _read_floors()
FLOOR_OF = {package: floor for floor, packages in enumerate(FLOORS) for package in packages}
BACKENDS = ("coordination",)
BACKEND_USERS = ("configserver", "container", "content", "server")
"""Nothing else may know that there is a log, a config store or a messenger; what messages are, search knows, too."""

LATE_IMPORTS = {
    "paperwasp.server.process": "a start without an application needs no code of applications",
    "paperwasp.application.model": "the same",
    "paperwasp.client.sources.read": "pyarrow, for Parquet and Arrow files: it is optional",
    "paperwasp.client.visit": "pyarrow, to write Parquet files: it is optional",
    "paperwasp.configserver.preparation": "applications, as above",
    "paperwasp.container.gate.gate": "request filters, for containers that have some",
    "paperwasp.container.app": "applications, as above",
    "paperwasp.server.roles.content_clusters": "the same",
    "paperwasp": "what a service needs, for the first who asks for one: pytest loads the package in every run",
    "paperwasp.testing.plugin": "the service, where a test uses it: pytest loads the plugin in every run",
    "paperwasp.embedded.feeding": "rich, for bars in terminals",
    "paperwasp.embedded.results": "rich, for explanations as text",
    "paperwasp.components.embedders.text_tokenizer": "tokenizers, for embedders",
    "paperwasp.admin.monitoring.log_files": "zstandard, for files of the access log that are ended",
    "paperwasp.admin.monitoring.api": "prometheus-client, for the first who collects metrics",
    "paperwasp.text.linguistics.collation": "ICU, for profiles and queries that sort by a locale",
    "paperwasp.text.linguistics.significance": "zstandard, for models that are so compressed",
    "paperwasp.ranking.onnx.child": "in a process of its own, which limits its memory first",
    "paperwasp.ranking.onnx.memory": "onnxruntime, as below",
    "paperwasp.ranking.onnx.session": "onnxruntime, for profiles that have a model",
    "paperwasp.document.tensor.json_format": "lz4, for constants that are so compressed",
}
"""The modules that import inside functions, each with the reason. All others import at their top."""


@cache
def _modules() -> dict[str, Path]:
    """Every module of the package by its dotted name; a package is its `__init__`."""
    paths = sorted((ROOT / "paperwasp").rglob("*.py"))
    return {".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path for path in paths}


@cache
def _read(module: str) -> tuple[list[ast.stmt], list[tuple[ast.stmt, list[ast.stmt]]]]:
    """All imports of a module, for annotations and inside functions too; and of these latter each, with the imports at
    the head of its function, below its docstring."""
    everything, late = [], []
    for node in ast.walk(ast.parse(_modules()[module].read_text())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            heads = list(takewhile(_is_import, node.body[1 if ast.get_docstring(node) else 0 :]))
            late += [(each, heads) for each in ast.walk(node) if isinstance(each, ast.stmt) and _is_import(each)]
        elif isinstance(node, ast.stmt) and _is_import(node):
            everything.append(node)
    return everything, late


def _is_import(node: ast.stmt) -> bool:
    return isinstance(node, ast.Import | ast.ImportFrom)


@cache
def _imports(module: str) -> tuple[str, ...]:
    """The modules of paperwasp that this one imports anywhere in it."""
    return tuple(target for node in _read(module)[0] for target in _targets(node))


def _targets(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names if alias.name.split(".")[0] == "paperwasp")
    elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "paperwasp":
        assert node.module is not None
        for alias in node.names:
            whole = f"{node.module}.{alias.name}"
            yield whole if whole in _modules() else node.module


def _package(module: str) -> str:
    """The part that stands on a floor: `paperwasp.content.node` is of `content`; the root, which names what is public,
    has none."""
    return [*module.split("."), ""][1]


def test_every_package_has_a_floor() -> None:
    assert {_package(module) for module in _modules()} - {""} == set(FLOOR_OF)


def test_imports_go_downwards() -> None:
    imports = ((module, target) for module in _modules() for target in _imports(module))
    assert [f"{module} imports {target}" for module, target in imports if not _may_import(module, target)] == []


def _may_import(module: str, target: str) -> bool:
    package, below = _package(module), _package(target)
    if package == "" or below in ("", package) or FLOOR_OF[below] < FLOOR_OF[package]:
        return True
    return FLOOR_OF[below] == FLOOR_OF[package] == 0


def test_only_the_roles_use_the_backends() -> None:
    others = (module for module in _modules() if _package(module) not in (*BACKENDS, *BACKEND_USERS))
    assert [module for module in others if any(map(_is_backend, _imports(module)))] == []


def _is_backend(module: str) -> bool:
    return _package(module) in BACKENDS and not module.startswith("paperwasp.coordination.messages")


def test_no_relative_imports() -> None:
    for module in _modules():
        assert not any(isinstance(node, ast.ImportFrom) and node.level for node in _read(module)[0]), module


def test_no_import_cycles() -> None:
    done: set[str] = set()

    def visit(module: str, path: tuple[str, ...]) -> None:
        assert module not in path, " → ".join((*path[path.index(module) :], module))
        if module not in done:
            for target in _imports(module):
                if target in _modules() and target != "paperwasp":
                    visit(target, (*path, module))
            done.add(module)

    for module in _modules().keys() - {"paperwasp"}:  # the root imports what is public when it is asked for
        visit(module, ())


def test_only_these_modules_import_late() -> None:
    """Besides the commands, each of which loads what it needs when it is called."""
    late = {module for module in _modules() if _package(module) != "cli" and _read(module)[1]}
    assert late == set(LATE_IMPORTS)


def test_late_imports_come_first_in_their_functions() -> None:
    """Who reads a function sees at its head what a first call loads. Only commands check what they are given before."""
    late = ((module, node, heads) for module in LATE_IMPORTS for node, heads in _read(module)[1])
    assert [f"{module}:{node.lineno}" for module, node, heads in late if node not in heads] == []


def test_kernels_include_only_what_is_further_down() -> None:
    """The wings of the core, as ARCHITECTURE.md lists them; what is in none is for all of them and needs none."""
    text = (ROOT.parent / "ARCHITECTURE.md").read_text()
    [block] = re.findall(r"^http  .*?(?=^```$)", text, re.MULTILINE | re.DOTALL)
    core, wings = ROOT / "paperwasp" / "core", [*re.findall(r"^\w+", block, re.MULTILINE), ""]
    includes = [
        (path.relative_to(core).as_posix(), included)
        for path in core.rglob("*.?pp")
        for included in re.findall(r'^#include "(.*)"', path.read_text(), re.MULTILINE)
    ]
    assert {name.rpartition("/")[0] for name, _ in includes} == set(wings)
    assert all((core / included).is_file() for _, included in includes)
    heights = {wing: -place for place, wing in enumerate(wings)}
    reaches_up = [
        f"{name} includes {included}"
        for name, included in includes
        if heights[included.rpartition("/")[0]] > heights[name.rpartition("/")[0]]
    ]
    assert reaches_up == []
