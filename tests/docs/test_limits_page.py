"""docs/reference/limits.md beside the code: its names are limits, and its tests are there."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from paperwasp import limits

ROOT = Path(__file__).parents[2]
LIMITS = Path(limits.__file__).parent
PAGE = ROOT / "docs" / "reference" / "limits.md"
OVER_HTTP = ROOT / "tests" / "service" / "test_limits_over_http.py"
REQUESTS = OVER_HTTP.with_name("large_requests.py")
_LINES = re.compile(r'^    "([^"]+)": ', re.MULTILINE)


def rows() -> Iterator[list[str]]:
    """Limit, names, what is beyond it, tests."""
    for line in PAGE.read_text().splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("| ") and cells[0] != "Limit":
            yield cells


def requests_of(tests: str) -> list[str]:
    """The names of requests in a cell, and of functions of that file."""
    found = re.search(r"over http: ([^;]*)", tests)
    return [name.strip().strip("`") for name in found[1].split(",")] if found else []


def test_no_name_is_in_two_of_the_files_that_share_theirs() -> None:
    """The package takes all of these by `*`: one would hide the other."""
    package = (LIMITS / "__init__.py").read_text()
    shared = re.findall(r"^from paperwasp\.limits\.(\w+) import \*", package, re.MULTILINE)
    names = Counter(
        name for file in shared for name in re.findall(r"^[A-Z]\w+", (LIMITS / f"{file}.py").read_text(), re.M)
    )
    assert len(names) > 250
    assert [name for name, count in names.items() if count > 1] == []


def test_every_name_is_a_limit() -> None:
    names = [name for _, cell, *_ in rows() for name in re.findall(r"`(\w+)`", cell)]
    assert len(names) > 50
    places = (limits, limits.grouping, limits.messages)
    assert [name for name in names if not any(hasattr(place, name) for place in places)] == []


def test_every_row_has_a_test_that_is_there() -> None:
    there = {*_LINES.findall(REQUESTS.read_text()), *re.findall(r"def (test_\w+)", OVER_HTTP.read_text())}
    for limit, _, _, tests in rows():
        files = re.findall(r"`(tests/[\w/]+\.py)`", tests)
        requests = requests_of(tests)
        assert files or requests, limit
        assert set(requests) <= there, (limit, set(requests) - there)
        assert all((ROOT / file).is_file() for file in files), limit


def test_every_request_that_is_refused_is_on_the_page() -> None:
    text = REQUESTS.read_text()
    refused = text[text.index("ROWS: Final[") : text.index("ANSWERED: Final[")]
    listed = {name for *_, tests in rows() for name in requests_of(tests)}
    assert set(_LINES.findall(refused)) - listed <= {
        *("an Accept header of thousands", "a number of a million digits", "a long address for the config server"),
        *("a deep condition of nots", "an input of a billion cells", "deep conditions in JSON"),
    }
