"""The benchmarks of grouping: all rows are measured, and what differs from NumPy or from the documents fails."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import vespacli

from bench import feed as feed_benchmark
from bench import grouping, grouping_http, service
from bench.layers import NothingMeasured
from bench.report import Report

SMALL = grouping.Options(rows_count=20_000, passes=1, engines="none")


@pytest.mark.parametrize("work", grouping.WORKS, ids=lambda work: work.name)
def test_our_groups_are_those_that_numpy_finds(work: grouping.Work) -> None:
    report = Report()
    grouping.run(report, replace(SMALL, works=work.name))
    assert report.failures == []
    (row,) = report.rows
    assert row.work.startswith(f"{work.name}, ")
    assert row.work.endswith(" of 20,000 rows")
    assert row.ours.endswith(" ms") and row.peers.startswith("NumPy ")


def test_other_groups_than_those_of_numpy_are_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = replace(grouping.WORKS[0], plain=lambda columns: [("value-0000", 1)])
    monkeypatch.setattr(grouping, "WORKS", (wrong,))
    with pytest.raises(AssertionError, match="NumPy"):
        grouping.run(Report(), SMALL)


def test_nothing_to_measure_is_a_failure() -> None:
    with pytest.raises(NothingMeasured, match="no grouping 'unknown'"):
        grouping.run(Report(), replace(SMALL, works="unknown"))
    with pytest.raises(NothingMeasured, match="matches"):
        grouping.run(Report(), replace(SMALL, rows_count=1))


def test_the_most_frequent_values_are_checked() -> None:
    values = ["a", "b", "a", "c", "b", "a"]
    grouping_http.check([("a", 3), ("b", 2)], values, 2)
    for wrong in ([], [("a", 3)], [("a", 3), ("c", 2)], [("b", 2), ("a", 3)]):
        with pytest.raises(AssertionError, match="the most frequent"):
            grouping_http.check(wrong, values, 2)


def test_a_few_documents_are_grouped_over_http(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (service, feed_benchmark, grouping_http):
        monkeypatch.setattr(module, "CACHE", tmp_path)
    folder = Path(vespacli.__file__).parent / "go-binaries"
    monkeypatch.setattr(feed_benchmark, "vespa_cli", lambda: next(folder.glob("*linux_amd64/bin/vespa")))
    report = Report()
    grouping_http.run(report, grouping_http.Options(documents_count=1200, queries_count=2, passes=1, engines="none"))
    facets, *top = report.rows
    assert facets.work.endswith(" of 600 documents") and facets.ours.endswith(" µs")
    for row, profile in zip(top, grouping_http.PROFILES, strict=True):
        assert row.work.endswith(f", 1,200 documents, rank profile {profile}") and row.ours.endswith(" ms")
