"""Texts of metrics: all that the page of metrics lists have one, also those that seldom come."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from paperwasp.admin.monitoring.exposition import described, sanitized
from paperwasp.container.metrics import ERROR_METRICS

PAGE = (Path(__file__).parents[3] / "docs" / "reference" / "metrics.md").read_text()
LISTED = [
    name
    for row in re.findall(r"^\| (`.*?) \|", PAGE[PAGE.index("## Metrics of containers") :], re.MULTILINE)
    for name in re.findall(r"`([\w.-]+)`", row)
]


@pytest.mark.parametrize("name", [*LISTED, *ERROR_METRICS.values()])
def test_every_metric_of_the_page_has_a_text(name: str) -> None:
    for value in ("count", "rate", "95percentile"):
        assert re.fullmatch(r"[A-Z1].+; .+", described(f"{sanitized(name)}_{value}")), name


def test_what_is_no_metric_has_none() -> None:
    assert described("nothing_of_the_kind_count") == ""
