"""All that the grammar has as a function can be bound or aggregated."""

from __future__ import annotations

import pkgutil
import re
from pathlib import Path

import pytest

from paperwasp.search.grouping import expressions
from paperwasp.search.grouping.expression_node import BINDERS
from paperwasp.search.grouping.language import operation

_ROOT = Path(__file__).parents[3]
_SCRIPTS = _ROOT / "tests" / "service" / "grouping_value_scripts"
_AGGREGATORS = operation.AGGREGATORS | {"avg", "stddev", "summary"}
_OTHERWISE_WRITTEN = {"geo_distance": ("geo_distance.km", "geo_distance.miles")}
"""What functions are called once they are read."""
_NOT_WRITTEN_AS_FUNCTIONS = frozenset({"constant", "map", "map_source"})


def test_every_function_of_the_grammar_is_registered() -> None:
    computed = (operation.ALL - _AGGREGATORS) | {"max", "min", "xor"}
    wanted = {name for each in computed for name in _OTHERWISE_WRITTEN.get(each, (each,))}
    assert wanted | _NOT_WRITTEN_AS_FUNCTIONS == BINDERS.keys()


def test_every_family_registers_something() -> None:
    families = {binder.__module__.rpartition(".")[2] for binder in BINDERS.values()}
    assert families == {module.name for module in pkgutil.iter_modules(expressions.__path__)}


def _rows(page: str) -> list[list[str]]:
    """The cells of a page's table of expressions."""
    table = (_ROOT / "docs" / page).read_text().partition("\n## Expressions\n")[2].partition("\n## ")[0]
    return [line.strip("|").split(" | ") for line in table.splitlines() if line.startswith("| `")]


def _names(cell: str) -> set[str]:
    """The functions that a row is about."""
    calls = [(call[1], call[2]) for call in re.finditer(r"`([a-z_0-9.]+)\([^`]*\)(\.[a-z]+)?`", cell)]
    return {name + part for name, part in ((name, part or "") for name, part in calls)}


@pytest.mark.parametrize("name", sorted(BINDERS.keys() - _NOT_WRITTEN_AS_FUNCTIONS))
def test_every_function_has_a_row_and_a_script(name: str) -> None:
    (_,) = [row for row in _rows("reference/grouping.md") if name in _names(row[0])]
    (row,) = [row for row in _rows("internals/grouping.md") if name in _names(row[0])]
    file, script = (cell.strip(" `") for cell in row[1:])
    assert BINDERS[name].__module__ == f"paperwasp.search.grouping.expressions.{file.removesuffix('.py')}"
    function, _, unit = name.partition(".") if name.startswith("geo_distance") else (name, "", "")
    text = (_SCRIPTS / f"{script}.txt").read_text()
    assert f"{function}(" in text
    assert unit in text


def test_every_row_has_its_file_and_its_script() -> None:
    rows = _rows("internals/grouping.md")
    files = {row[1].strip(" `") for row in rows}
    assert files == {f"{module.name}.py" for module in pkgutil.iter_modules(expressions.__path__)}
    assert {row[2].strip(" `") for row in rows} == {path.stem.partition(".")[0] for path in _SCRIPTS.glob("*.txt")}
