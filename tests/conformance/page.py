"""The documentation page of the specification's rows: `python -m tests.conformance.page` writes it."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from tests.conformance.rows import Row, Section, read_sections

ROOT: Final = Path(__file__).parent.parent.parent
PAGE: Final = ROOT / "docs" / "internals" / "conformance.md"
HEAD: Final = """# Conformance

Every row of every table, every numbered statement and every limit of the interface specification: what is served, the
tests that prove it, and the page that describes it. The list is `tests/conformance/rows.toml`. This page is made of it
by `python -m tests.conformance.page`; `tests/docs/test_conformance.py` fails where a row has no test, where a test is
not there, where a row is missing, and where this page is not up to date.

**Differs** says where the answer is otherwise than the specification has it: there, what Vespa does decides, and what
its clients need.
"""


def rendered() -> str:
    """Return the page."""
    return HEAD + "".join(_section(section) for section in read_sections())


def _section(section: Section) -> str:
    head = f"\n## {section.name}\n\n{_count(section)}: {section.of}.\n\n"
    table = "| Row | Here | Proof | Page |\n|---|---|---|---|\n"
    return head + table + "".join(_row(row) for row in section.rows)


def _count(section: Section) -> str:
    return f"{section.count} row{'' if section.count == 1 else 's'}"


def _row(row: Row) -> str:
    here = f"{row.here} **Differs:** {row.differs}." if row.differs else row.here
    tests = "<br>".join(f"[{_name(test)}](../../{_file(test)})" for test in row.tests)
    name = row.page.partition("#")[0].partition("/")[2]
    cells = (f"`{row.key}`" if _is_code(row.key) else row.key, here, tests or "open", f"[{name}](../{row.page})")
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n"


def _is_code(key: str) -> bool:
    return any(character in key for character in "<{[/") or ("." in key and " " not in key)


def _name(test: str) -> str:
    _, _, name = test.rpartition("::")
    parameter = script_of(test)
    return f"script {parameter.stem}" if parameter else name.removeprefix("test_").replace("_", " ")


def _file(test: str) -> str:
    script = script_of(test)
    return script.relative_to(ROOT).as_posix() if script else test.partition("::")[0]


def script_of(test: str) -> Path | None:
    """Return the golden script that a test of scripts is named with; None: with none, or with one that is not there."""
    path, _, name = test.partition("::")
    _, _, script = name.rstrip("]").partition("[")
    found = sorted((ROOT / path).parent.glob(f"*/{script}.txt")) if script else []
    return found[0] if found else None


if __name__ == "__main__":
    PAGE.write_text(rendered())
