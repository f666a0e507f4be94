"""Answers as rows, frames and HTML."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paperwasp.embedded.html import marked, value_html
from paperwasp.embedded.results import Explanation, QueryResult


def _result(**root: object) -> QueryResult:
    return QueryResult(orjson.dumps({"root": {"fields": {"totalCount": 9}, **root}}))


HITS = [
    {"id": "a", "relevance": 0.5, "source": "s", "fields": {"title": "<hi>Blue</hi> & <b>", "year": 1}},
    {"id": "b", "relevance": 0.25, "source": "s", "fields": {"title": "x", "tags": ["p", "q"]}},
]


class Table(HTMLParser):
    """The rows of all tables, as text in which marks are shown."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.rows: list[list[str]] = []
        self.open: list[str] = []
        self.feed(html)
        assert not self.open, "all that was opened is closed"

    def handle_starttag(self, tag: str, attrs: object) -> None:
        if tag == "br":
            return
        self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self.rows[-1].append("")
        elif tag == "mark":
            self.rows[-1][-1] += "["

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag
        if tag == "mark":
            self.rows[-1][-1] += "]"

    def handle_data(self, data: str) -> None:
        if self.rows and any(tag in ("td", "th") for tag in self.open):
            self.rows[-1][-1] += data


def test_hits_are_a_table_with_what_matched_marked_and_all_else_escaped() -> None:
    html = _result(children=HITS)._repr_html_()
    assert "2 of 9 hits" in html
    assert Table(html).rows == [
        ["id", "relevance", "title", "year", "tags"],
        ["a", "0.5", "[Blue] & <b>", "1", ""],
        ["b", "0.25", "x", "", '["p","q"]'],
    ]


@pytest.mark.parametrize("at", [220, 240, 241, 280, 296, 299, 300, 301, 305, 3000])
def test_of_a_long_text_the_part_around_the_first_mark_is_shown(at: int) -> None:
    text = "x" * at + "<hi>blue</hi>" + "y" * 300
    (_, row) = Table(_result(children=[{"id": "a", "relevance": 1.0, "fields": {"t": text}}])._repr_html_()).rows
    assert row[2].endswith("…") and len(row[2]) <= 302
    assert "[blue]" in row[2]
    assert row[2].startswith("…") == (at > 240)


@pytest.mark.parametrize("at", [270, 280, 285, 287, 289, 290, 291, 292, 294, 296, 299, 300])
def test_a_mark_at_the_end_of_what_is_shown_is_whole_or_left_out(at: int) -> None:
    text = "<hi>a</hi>" + "x" * (at - 10) + "<hi>blue</hi>" + "y" * 300
    (_, row) = Table(_result(children=[{"id": "a", "relevance": 1.0, "fields": {"t": text}}])._repr_html_()).rows
    assert row[2].removesuffix("…").replace("y", "") in ("[a]" + "x" * (at - 10), "[a]" + "x" * (at - 10) + "[blue]")


@given(
    st.lists(
        st.sampled_from(["<hi>", "</hi>", "<sep />", "x" * 97, " ", "<b>", "&amp;", "\n", "<h", "<hi"]), max_size=12
    )
)
def test_any_text_is_a_cell_in_which_nothing_but_marks_is_a_tag(parts: list[str]) -> None:
    text = "".join(parts)
    shown = marked(text)
    (_, row) = Table(f"<table><tr></tr><tr><td>{shown}</td></tr></table>").rows
    assert set(re.findall("<[^>]*>?", shown)) <= {"<mark>", "</mark>"}
    if len(text) <= 300:
        plain = text.replace("<sep />", " … ")
        assert row[0] == re.sub("<hi>(.*?)</hi>", r"[\1]", plain, flags=re.DOTALL)


def test_vectors_objects_and_ids_are_shown_short() -> None:
    fields = {
        "vector": {"type": "tensor<float>(x[6])", "values": [0.123456789, 1, 2, 3, 4, 5]},
        "sparse": {"type": "tensor(x{})", "cells": {"a": 1}},
        "matchfeatures": {"bm25(title)": 1.23456789, "x": 2.0},
        "flag": True,
        "none": None,
    }
    rows = [{"id": f"index:content/0/{name}", "relevance": 1.0, "source": "s", "fields": fields} for name in "ab"]
    table = Table(_result(children=rows)._repr_html_()).rows
    assert table[0] == ["relevance", *fields], "ids that say nothing, and what all have in common, are left out"
    assert value_html(fields["vector"]) == (
        '<span class="line" title="tensor&lt;float&gt;(x[6])">[0.123457, 1, 2, 3, … 6 values]</span>'
    )
    assert value_html(fields["sparse"]) == '<span class="line" title="tensor(x{})">{&quot;a&quot;:1}</span>'
    assert re.sub("<(?!br)[^>]*>", "", value_html(fields["matchfeatures"])) == "bm25(title) 1.23457<br>x 2"
    assert (value_html(True), value_html(None)) == ("true", "")
    assert value_html({str(number): number for number in range(20)}).endswith("<br>… 12 more")


def test_ids_of_several_types_are_shown_whole() -> None:
    hits: list[dict[str, object]] = [
        {"id": f"id:n:{name}::1", "relevance": 1.0, "source": name, "fields": {}} for name in ("music", "film")
    ]
    assert Table(_result(children=hits)._repr_html_()).rows[1:] == [
        ["id:n:music::1", "1", "music"],
        ["id:n:film::1", "1", "film"],
    ]
    grouped = [{**hits[0], "id": f"id:n:t:g=u:{number}:x"} for number in range(2)]
    assert [row[0] for row in Table(_result(children=grouped)._repr_html_()).rows[1:]] == ["0:x", "1:x"]


def test_long_tables_say_what_they_leave_out() -> None:
    hits = [{"id": f"id:n:t::{number}", "relevance": 1.0, "source": "s", "fields": {}} for number in range(150)]
    html = _result(children=hits)._repr_html_()
    assert len(Table(html).rows) == 101
    assert "150 of 9 hits; ids begin with id:n:t::; the first 100 of 150 rows" in html


def test_problems_are_shown() -> None:
    result = _result(errors=[{"code": 12, "summary": "Timed out", "message": "<no time>"}])
    assert [(each.code, each.summary) for each in result.problems] == [(12, "Timed out")]
    assert "Timed out: &lt;no time&gt;" in result._repr_html_()


def test_groups_are_tables() -> None:
    inner = {
        "id": "grouplist:tag",
        "label": "tag",
        "children": [
            {"id": "group:string:p", "value": "p", "fields": {"count()": 2}},
            {"id": "group:string:q", "value": "q", "fields": {"count()": 1}},
        ],
    }
    years = {
        "id": "grouplist:year",
        "label": "year",
        "children": [
            {"id": "group:long:1", "value": "1", "fields": {"count()": 3}, "children": [inner]},
            {"id": "group:b", "limits": {"from": "2", "to": "5"}, "children": [inner]},
        ],
    }
    root = {"id": "group:root:0", "relevance": 1.0, "fields": {"sum(x)": 7}, "children": [years]}
    result = _result(children=[root, *HITS])
    assert len(result.hits) == 2
    whole, table = result.groups
    assert [dict(row) for row in whole.rows] == [{"sum(x)": 7}]
    assert [dict(row) for row in table.rows] == [
        {"year": "1", "count()": 3},
        {"year": "1", "tag": "p", "count()": 2},
        {"year": "1", "tag": "q", "count()": 1},
        {"year": "2 … 5", "tag": "p", "count()": 2},
        {"year": "2 … 5", "tag": "q", "count()": 1},
    ]
    assert table.to_pandas().shape == (5, 3)
    assert table.to_arrow().column_names[:2] == ["year", "count()"]


def test_hits_are_frames() -> None:
    result = _result(children=HITS)
    frame = result.to_pandas()
    assert list(frame.columns) == ["id", "relevance", "source", "title", "year", "tags"]
    assert frame["relevance"].tolist() == [0.5, 0.25]
    assert result.to_arrow()["tags"].to_pylist() == [None, ["p", "q"]]


def test_an_explanation_is_a_tree_to_unfold() -> None:
    tree = {
        "expression": "a + <b>",
        "value": 3.0,
        "children": [
            {"expression": "a", "value": 1.0},
            {"expression": "if", "taken": False},
            {"expression": "b", "feature": "f", "value": 2},
        ],
    }
    hit = {
        "id": "x",
        "relevance": 3.0,
        "explanation": {"note": "n", "phases": [{"phase": "first-phase", "score": 3.0, "tree": tree}]},
    }
    html = Explanation([hit])._repr_html_()
    assert "a + &lt;b&gt;" in html and "<b>3</b>" in html and "<i>f</i>" in html and "not taken" in html
    assert html.count("<details") == html.count("</details>") == 3
