"""The notebook: each cell runs, and what is stored with it is what it gives."""

from __future__ import annotations

import platform
import sysconfig
import tempfile
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient.exceptions import CellExecutionError

from tests.children import ROOT
from tests.examples.notebook import NOTEBOOK, read, run, shown


@pytest.fixture(scope="module")
def notebook() -> Any:
    """The notebook with what its cells give here and now."""
    notebook = read()
    run(notebook)
    return notebook


def test_every_cell_gives_what_is_stored(notebook: Any) -> None:
    """The standard library of another version has other texts: then the forms of outputs are compared."""
    stored = read()
    is_same = stored.metadata["language_info"]["version"] == platform.python_version()
    assert [cell.id for cell in notebook.cells] == [cell.id for cell in stored.cells]
    for cell, before in zip(notebook.cells, stored.cells, strict=True):
        now, then = shown(cell), shown(before)
        if not is_same:
            now, then = ([text.partition("\n")[0] for text in texts] for texts in (now, then))
        assert now == then, f"{cell.id} gives something else: python -m tests.examples.notebook stores it"
    given = [text for cell in notebook.cells for text in shown(cell)]
    assert len(given) > 20
    assert sum("<mark>" in text for text in given) > 2


def test_what_is_stored_names_no_place_of_a_machine() -> None:
    text = NOTEBOOK.read_text()
    for place in (ROOT, Path.home(), tempfile.gettempdir(), sysconfig.get_path("stdlib"), "site-packages", " at 0x"):
        assert str(place) not in text
    nbformat.validate(read())


def test_the_docs_that_it_names_are_there() -> None:
    links = [
        part.partition(")")[0]
        for cell in read().cells
        if cell.cell_type == "markdown"
        for part in cell.source.split("](")[1:]
    ]
    assert len(links) > 4
    for link in links:
        assert (NOTEBOOK.parent / link).exists(), link


def test_a_cell_that_fails_is_an_error() -> None:
    broken = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("1 / 0")])
    with pytest.raises(CellExecutionError, match="ZeroDivisionError"):
        run(broken)
