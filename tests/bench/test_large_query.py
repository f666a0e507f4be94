"""The benchmark of one large query by several threads: its queries find what they say, and its rows tell the ratio."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest

import paperwasp
from bench import large_query
from bench.large_query import APPLICATION, THREADS, Options, Work, check, row, works
from bench.layers import NothingMeasured

DOCUMENTS = 300


def test_each_query_finds_as_many_by_one_thread_as_by_two(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(large_query, "CACHE", tmp_path)
    large_query.fill_large(tmp_path / "data", DOCUMENTS)
    with paperwasp.Service(data_dir=tmp_path / "data", port=0) as service:
        found = [check(_answers(service, work)) for work in works(Options(documents_count=DOCUMENTS))]
    assert 0 < found[0] < DOCUMENTS / 3
    assert found[1:] == [DOCUMENTS, DOCUMENTS // 10]


def _answers(service: paperwasp.Service, work: Work) -> list[bytes]:
    paths = [urlsplit(work.path(threads)) for threads in THREADS]
    assert APPLICATION.is_dir()
    return [json.dumps(service.query(dict(parse_qsl(path.query))).json).encode() for path in paths]


def _root(count: int, *hits: str) -> bytes:
    root: dict[str, Any] = {"fields": {"totalCount": count}, "children": [{"id": hit} for hit in hits]}
    return json.dumps({"root": root}).encode()


def test_answers_that_differ_or_find_nothing_are_no_measurement() -> None:
    assert check([_root(3, "a"), _root(3, "a")]) == 3
    with pytest.raises(AssertionError, match="differ"):
        check([_root(3, "a"), _root(3, "b")])
    for nothing in (_root(0), _root(0, "a"), _root(3)):
        with pytest.raises(NothingMeasured):
            check([nothing, nothing])


def test_two_threads_are_judged_where_there_are_two_cores() -> None:
    spent = [large_query._Spent(9.0, 8.5), large_query._Spent(5.0, 9.5)]
    judged = row("w", spent, cores=2)
    assert (judged.ours, judged.peers) == ("5.0 ms (CPU 9.5)", "with one thread 9.0 ms (CPU 8.5)")
    assert (judged.ratio, judged.met) == ("1.80 times as fast", True)
    assert row("w", [spent[0], spent[0]], cores=2).met is False
    assert row("w", spent, cores=1).met is None
