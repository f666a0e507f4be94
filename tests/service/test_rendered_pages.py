"""The golden queries, asked of an application whose hits are rendered from rows and of the same without: the answers
are the same bytes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from paperwasp.search import search as search_module
from paperwasp.search.query import Hit
from paperwasp.search.show.hits import Page, rendered_hits
from tests import web
from tests.content.row_checks import check_rows, fill_rows
from tests.service.in_process import Deployed, deployed_service
from tests.service.query_scripts import SCRIPTS, deploy_and_feed

RENDERED_LEAST = 20
"""Hits that are rendered from rows over all scripts, at least: else the comparison says nothing."""


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployed]:
    with deployed_service(tmp_path_factory.mktemp("pages")) as service:
        deploy_and_feed(service)
        for cluster in service.service.applications._content._running.values():
            cluster._housekeeping.stop()  # which fills the row store by and by
            fill_rows(cluster._node)
            check_rows(cluster._node.reader.view())
        yield service


def raw(url: str, request: str, *rest: str) -> tuple[int, bytes]:
    """The answer to a case as it comes, never one that was kept."""
    more = {"noCache": "true", "timeout": "20s"}
    if request.startswith("GET "):
        query = request.removeprefix("GET ").replace(" ", "+")
        answer = web.get(f"{url}?{query}&{urlencode(more)}", timeout=30)
    else:
        # The default summary of the application bolds words.
        yql = f"select artist, year, genre, documentid from music {request}" if request.startswith("where") else request
        given: dict[str, Any] = {**more, **dict(line.split("=", 1) for line in rest if "=" in line)}
        answer = web.post(url, json=given if request == "query" else {**given, "yql": yql}, timeout=30)
    return answer.status_code, answer.content


def cases(script: Path) -> Iterator[list[str]]:
    """The lines of each question of a script whose answer does not say how long it took."""
    for case in script.read_text().strip().split("\n\n"):
        lines = [line for line in case.partition("\n---")[0].splitlines() if not line.startswith("#")]
        is_timed = any("trac" in line or "timing" in line for line in lines)
        if lines and not is_timed and not lines[0].startswith("POST"):
            yield lines


def test_the_golden_queries_have_the_same_answers(service: Deployed, monkeypatch: pytest.MonkeyPatch) -> None:
    rendered = 0

    def count(*given: Any) -> tuple[Page, list[Hit]] | None:
        nonlocal rendered
        found = rendered_hits(*given)
        rendered += 0 if found is None else len(found[0]) - found[0].count(None)
        return found

    for script in sorted(SCRIPTS.glob("*.txt")):
        for case in cases(script):
            answers = []
            for render in (count, lambda *_: None):
                monkeypatch.setattr(search_module, "rendered_hits", render)
                answers.append(raw(f"{service.url}/search/", *case))
            assert answers[0] == answers[1], f"{script.name}: {case}"
    assert rendered >= RENDERED_LEAST
