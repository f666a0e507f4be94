"""Results in a real browser: what documents hold stays text, marks are marks, and trees unfold.

Needs Debian's chromium, which tests/embedded/browser.py looks for.
"""

from __future__ import annotations

from typing import Any, Final

import orjson
import pytest

from paperwasp.embedded.results import Explanation, QueryResult
from tests.embedded.browser import BROWSER, look

pytestmark = pytest.mark.skipif(BROWSER is None, reason="chromium is not installed")

HOSTILE: Final = (
    "<script>window.hacked = 1</script>",
    "<img src=x onerror='window.hacked = 2'>",
    "</td></table><svg onload=window.hacked=3>",
    "\"><iframe srcdoc='<script>parent.hacked = 4</script>'>",
    "<hi><script>window.hacked = 5</script></hi>",
    "<hi><img src=x onerror=window.hacked=6></hi> </hi> <hi>",
    "x" * 290 + "<hi onclick=window.hacked=7><script>window.hacked = 8</script>" + "y" * 300,
    "</style><script>window.hacked = 9</script><!--",
    "&lt;script&gt;window.hacked = 10&lt;/script&gt;",
)
FACTS: Final = """
    const all = selector => [...document.querySelectorAll(selector)];
    const before = all("details").map(each => each.open);
    all("summary").forEach(each => each.click());
    all("*").forEach(each => each.dispatchEvent(new MouseEvent("mouseover", {bubbles: true})));
    return {
      hacked: window.hacked ?? null,
      foreign: all("body script:not(#facts), img, iframe, svg, object, a").length,
      marks: all("mark").map(each => each.textContent),
      markColour: all("mark").map(each => getComputedStyle(each).backgroundColor)[0] ?? null,
      colour: getComputedStyle(document.querySelector("td, p, summary")).color,
      cells: all("tbody tr").map(row => [...row.cells].map(each => each.innerText)),
      heads: all("th").map(each => each.innerText),
      captions: all("caption").map(each => each.innerText),
      said: all("p").map(each => each.innerText),
      before,
      after: all("details").map(each => each.open),
      summaries: all("summary").map(each => each.textContent),
      widest: Math.max(0, ...all("td").map(each => each.getBoundingClientRect().width)),
      page: document.documentElement.scrollWidth,
    };
"""


def _result(**root: object) -> QueryResult:
    return QueryResult(orjson.dumps({"root": {"fields": {"totalCount": 9}, **root}}))


def _hits(*fields: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {"id": f"id:n:t::{place}", "relevance": 1.0, "source": "s", "fields": each} for place, each in enumerate(fields)
    ]


@pytest.mark.parametrize("hostile", HOSTILE)
def test_no_script_of_a_document_runs(hostile: str) -> None:
    group = {
        "id": "group:root:0",
        "children": [
            {"id": f"grouplist:{hostile}", "label": hostile, "children": [{"id": "group:x", "value": hostile}]}
        ],
    }
    fields = {
        "text": hostile,
        hostile: "a name",
        "list": [hostile],
        "object": {hostile: hostile},
        "tensor": {"type": hostile, "values": [1.0]},
        "other": {"type": f"tensor{hostile}", "cells": {hostile: 1}},
    }
    hits = [{"id": hostile, "relevance": 1.0, "source": hostile, "fields": fields}, *_hits(fields)]
    problem = {"code": 1, "summary": hostile, "message": hostile}
    tree = {"expression": hostile, "feature": hostile, "value": hostile, "cut": hostile, "children": []}
    phase = {"phase": hostile, "score": 1.0, "note": hostile, "tree": {**tree, "children": [tree]}}
    explained = {"id": hostile, "relevance": 1.0, "explanation": {"note": hostile, "phases": [phase]}}
    page = _result(children=[group, *hits], errors=[problem])._repr_html_() + Explanation([explained])._repr_html_()
    seen = look(page, FACTS)
    assert (seen["hacked"], seen["foreign"]) == (None, 0)
    assert any("hacked" in text for row in seen["cells"] for text in row), "it is there, as text"


@pytest.mark.parametrize("is_dark", [False, True])
def test_what_matched_is_marked_on_light_and_dark_pages(is_dark: bool) -> None:
    result = _result(children=_hits({"title": "Kind of <hi>Blue</hi> & <b>", "year": 1959}, {"title": "<hi>x</hi>"}))
    seen = look(result._repr_html_(), FACTS, is_dark=is_dark)
    assert seen["marks"] == ["Blue", "x"]
    assert seen["heads"] == ["id", "relevance", "title", "year"]
    assert seen["cells"] == [["0", "1", "Kind of Blue & <b>", "1959"], ["1", "1", "x", ""]]
    assert seen["captions"] == ["2 of 9 hits; ids begin with id:n:t::"]
    assert seen["markColour"] == "rgb(255, 224, 138)"
    assert seen["colour"] == ("rgb(221, 221, 221)" if is_dark else "rgb(17, 17, 17)"), "that of the page"


def test_wide_and_long_contents_stay_within_the_page() -> None:
    long = {"url": "https://example.org/" + "x" * 250, "text": "many words " * 100}
    wide = {f"column {number}": "some words here " * 5 for number in range(60)}
    seen = look(_result(children=_hits({**long, **wide}))._repr_html_(), FACTS)
    assert seen["page"] <= 1000, "what is wider scrolls within its frame"
    assert seen["widest"] < 500
    assert len(seen["heads"]) == 40
    assert seen["captions"] == ["1 of 9 hits; ids begin with id:n:t::; the first 40 of 64 columns"], (
        "with id and relevance"
    )


def test_nothing_found_and_what_is_wrong_are_said() -> None:
    seen = look(_result(errors=[{"code": 12, "summary": "Timed out", "message": "<no time>"}])._repr_html_(), FACTS)
    assert seen["said"] == ["Timed out: <no time>", "0 of 9 hits"]
    assert seen["cells"] == []


def test_groups_are_tables_below_the_hits() -> None:
    groups = [{"id": f"group:long:{year}", "value": str(year), "fields": {"count()": 3}} for year in (1957, 1959)]
    root = {"id": "group:root:0", "children": [{"id": "grouplist:year", "label": "year", "children": groups}]}
    seen = look(_result(children=[root])._repr_html_(), FACTS)
    assert (seen["captions"], seen["heads"]) == (["year"], ["year", "count()"])
    assert seen["cells"] == [["1957", "3"], ["1959", "3"]]


def test_an_explanation_unfolds_and_folds() -> None:
    tree = {"expression": "a + b", "value": 3.0, "children": [{"expression": "a", "value": 1.0}]}
    phases = [{"phase": "first-phase", "score": 3.0, "tree": tree}]
    hits = [{"id": name, "relevance": 3.0, "explanation": {"phases": phases}} for name in ("x", "y")]
    seen = look(Explanation(hits)._repr_html_(), FACTS)
    assert seen["summaries"] == ["#1 3 x", "3 first-phase", "3 a + b", "#2 3 y", "3 first-phase", "3 a + b"]
    assert seen["before"] == [True, True, False, False, True, False], "the phases of the best hit are open"
    assert seen["after"] == [not each for each in seen["before"]]
