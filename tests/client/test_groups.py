"""`paperwasp query` shows groups as tables."""

from __future__ import annotations

from io import StringIO
from typing import Any

from rich.console import Console

from paperwasp.client.query import show_answer


def group(value: str, fields: dict[str, Any], *children: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {"id": f"group:string:{value}", "relevance": 1.0, "value": value, "fields": fields}
    return found | ({"children": list(children)} if children else {})


def listed(label: str, *children: dict[str, Any], kind: str = "grouplist", **more: Any) -> dict[str, Any]:
    return {"id": f"{kind}:{label}", "relevance": 1.0, "label": label, "children": list(children), **more}


def shown(*children: dict[str, Any]) -> list[str]:
    console = Console(width=100, record=True, file=StringIO())
    show_answer(console, {"root": {"fields": {"totalCount": 9}, "children": list(children)}})
    return [line.rstrip() for line in console.export_text().splitlines()]


def root(*lists: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"id": "group:root:0", "relevance": 1.0, "continuation": {"this": ""}, "children": list(lists), **more}


def test_groups_within_groups() -> None:
    years = listed("year", group("1959", {"count()": 2}), group("1960", {"count()": 5}))
    lines = shown(root(listed("genre", group("jazz", {"count()": 7, "avg(price)": 2.5}, years))))
    assert [line.split() for line in lines] == [
        ["group", "count()", "avg(price)"],
        ["jazz", "7", "2.5"],
        ["1959", "2"],
        ["1960", "5"],
        ["9", "matches,", "0", "shown"],
    ]
    assert lines[2].startswith("  1959")


def test_lists_with_pages_hits_and_outputs_of_all() -> None:
    limits = {"from": "0", "to": "10"}
    bucket = {"id": "group:long_bucket:0:10", "relevance": 1.0, "limits": limits, "fields": {"n": 1.0}}
    hits = listed("hits", {"id": "id:n:song::1", "relevance": 2.0}, kind="hitlist")
    null = {"id": "group:null", "relevance": 0.5, "fields": {"n": "text"}, "children": [hits]}
    turned = listed("price", bucket, null, continuation={"next": "BGAAABEBEBC"})
    lines = shown(root(turned, fields={"count()": 9}), {"id": "a", "relevance": 1.0, "fields": {"title": "Blue"}})
    text = "\n".join(lines)
    assert "Blue" in text
    assert "price (next BGAAABEBEBC)" in text
    rows = [line.split() for line in lines]
    assert ["all", "9"] in rows
    assert ["0", "…", "10", "1"] in rows
    assert ["null", "text"] in rows
    assert ["•", "2.000", "id:n:song::1"] in rows
    assert rows[-1] == ["9", "matches,", "1", "shown"]


def test_hits_of_groups_are_one_line() -> None:
    long = {"id": "b", "relevance": 1.5, "fields": {"sddocname": "song", "year": 1959, "text": "word " * 100}}
    titled = {"id": "a", "relevance": 2.25, "fields": {"year": 1960, "title": "<hi>Blue</hi> Train"}}
    jazz = group("jazz", {"count()": 2}, listed("hits", titled, long, kind="hitlist"))
    lines = shown(root(listed("genre", jazz)))
    assert [line.split() for line in lines[:3]] == [
        ["group", "count()"],
        ["jazz", "2"],
        ["•", "2.250", "Blue", "Train"],
    ]
    assert lines[3].startswith("  • 1.500 year: 1959, text: word word") and lines[3].endswith("word …")
    assert len(lines) == 5


def test_long_values_leave_room_for_outputs() -> None:
    lines = shown(root(listed("text", group("word " * 100, {"count()": 2, "sum(price)": 3.5}))))
    assert len(lines) == 3 and lines[1].split()[-3:] == ["w…", "2", "3.5"]
