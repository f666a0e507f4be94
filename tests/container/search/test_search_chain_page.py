"""docs/internals/search-chain.md names files that exist, and each of Vespa's searchers once."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "internals" / "search-chain.md").read_text()
ROWS = [line.split("|")[1:-1] for line in PAGE.splitlines() if line.startswith("| `")]
FILES = sorted(
    set(re.findall(r"`([a-z_]+(?:/[a-z_]+)+\.py)`", PAGE)) - {f"tests/container/search/{Path(__file__).name}"}
)
SEARCHERS = [name for row in ROWS for name in re.findall(r"`(\w+)`", row[0])]


@pytest.mark.parametrize("name", FILES)
def test_file_exists(name: str) -> None:
    assert (ROOT / "src" / "paperwasp" / name).is_file() or (ROOT / name).is_file()


def test_searchers_have_one_row_each() -> None:
    assert len(SEARCHERS) == len(set(SEARCHERS)) > 45


@pytest.mark.parametrize("row", [row for row in ROWS if len(row) == 3], ids=lambda row: row[0].strip())
def test_row_names_a_file_or_says_why_there_is_none(row: list[str]) -> None:
    assert re.search(r"`[a-z_/]+\.py`", row[2]) or row[2].strip().startswith("nothing: ")
