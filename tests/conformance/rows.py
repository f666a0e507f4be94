"""The rows of the specification as `rows.toml` lists them."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

FILE: Final = Path(__file__).with_name("rows.toml")


@dataclass(frozen=True)
class Row:
    """A row of a table, a statement, a bullet or a limit of the specification."""

    key: str
    here: str
    """What is served, in a few words."""
    differs: str
    """Where that is otherwise than the specification says, and why; empty: nowhere."""
    tests: tuple[str, ...]
    """Node ids of the tests that prove it."""
    page: str
    """Below `docs/`, perhaps with `#` and a heading."""
    is_open: bool
    """Whether the proof is still to be written."""


@dataclass(frozen=True)
class Section:
    """A heading of the specification, or a part of what is below it."""

    name: str
    count: int
    """The rows that the specification has there."""
    of: str
    """What was counted."""
    rows: tuple[Row, ...]


def read_sections() -> tuple[Section, ...]:
    """Return all sections, in the order of the specification. Errors: a member that is not known, or is missing."""
    return tuple(_section(**table) for table in tomllib.loads(FILE.read_text())["section"])


def _section(*, name: str, count: int, of: str, tests: str, page: str, row: list[dict[str, Any]]) -> Section:
    return Section(name, count, of, tuple(_row(tests, **{"page": page, **table}) for table in row))


def _row(
    file: str, *, key: str, here: str, page: str, differs: str = "", tests: tuple[str, ...] = (), open: bool = False
) -> Row:
    ids = tuple(file + each if each.startswith("::") else each for each in tests)
    return Row(key, here, differs, ids, page, open)
