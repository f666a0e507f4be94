"""Answers as rows, frames and HTML."""

from __future__ import annotations

from html.parser import HTMLParser

import orjson
import pytest

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
        if self.open and self.open[-1] in ("td", "th", "mark"):
            self.rows[-1][-1] += data


def test_hits_are_a_table_with_what_matched_marked_and_all_else_escaped() -> None:
    html = _result(children=HITS)._repr_html_()
    assert "2 of 9 hits" in html
    assert Table(html).rows == [
        ["id", "relevance", "source", "title", "year", "tags"],
        ["a", "0.5", "s", "[Blue] & <b>", "1", ""],
        ["b", "0.25", "s", "x", "", '["p","q"]'],
    ]


@pytest.mark.parametrize("at", [280, 290, 294, 296, 299, 300, 301, 305, 310])
def test_a_long_text_is_cut_and_marks_stay_whole(at: int) -> None:
    text = "x" * at + "<hi>blue</hi>" + "y" * 300
    (_, row) = Table(_result(children=[{"id": "a", "relevance": 1.0, "fields": {"t": text}}])._repr_html_()).rows
    assert row[3].endswith("…") and len(row[3]) <= 301
    assert row[3].count("[") == row[3].count("]")
    assert "hi" not in row[3]


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
