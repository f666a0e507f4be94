"""What `paperwasp query` makes of its words and shows of answers: hits as text, groups as tables.

Then paths of documents that the client makes, and the command without a service.
"""

from __future__ import annotations

import subprocess
import sys
from io import StringIO
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from paperwasp.client.feeding.operations import document_path
from paperwasp.client.query import excerpt, highlight, parameters_of, show_answer
from paperwasp.container.document.request import read_path
from paperwasp.document.ids import DocumentId
from paperwasp.errors import InvalidInput

PARTS = st.text(
    st.characters(exclude_categories=["Cs", "Cc", "Cn", "Co"], exclude_characters=":"), min_size=1, max_size=8
)


@given(PARTS, PARTS, PARTS, st.none() | st.integers(0, 2**64 - 1), st.none() | PARTS)
def test_the_path_of_a_document_is_read_back_as_its_id(
    namespace: str, document_type: str, user_specified: str, number: int | None, group: str | None
) -> None:
    document_id = DocumentId(namespace, document_type, user_specified, number, None if number is not None else group)
    assert read_path(document_path(document_id)) == document_id


def test_highlights_and_excerpts() -> None:
    text = highlight("a <hi>blue</hi> train, <hi>blue")
    assert text.plain == "a blue train, blue"
    assert [(span.start, span.end) for span in text.spans] == [(2, 6)]
    long = "word " * 100 + "<hi>here</hi> " + "word " * 100
    shown = excerpt(long)
    assert "<hi>here</hi>" in shown
    assert shown.startswith("… word")
    assert shown.endswith(" …")
    assert len(shown) < 220


def test_words_and_yql_are_told_apart() -> None:
    assert parameters_of("blue train", ["hits=3"])["query"] == "blue train"
    assert parameters_of("select * from music where true", []) == {"yql": "select * from music where true"}
    with pytest.raises(InvalidInput):
        parameters_of("blue", ["hits"])


def paperwasp(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "paperwasp", *arguments], capture_output=True, text=True, timeout=30)


def test_help_teaches_and_loads_nothing_heavy() -> None:
    shown = paperwasp("--help")
    assert shown.returncode == 0
    assert all(command in shown.stdout for command in ("serve", "deploy", "feed", "query", "status"))
    heavy = ("numpy", "paperwasp.http.server", "rocksdict")
    script = f"import sys, paperwasp.cli; sys.exit(any(name in sys.modules for name in {heavy}))"
    assert subprocess.run([sys.executable, "-c", script], timeout=30).returncode == 0


def test_no_service_is_said_in_one_line() -> None:
    for arguments in (("query", "blue", "--url", "http://127.0.0.1:9"), ("status", "--url", "http://127.0.0.1:9")):
        told = paperwasp(*arguments)
        assert told.returncode == 1
        assert "Is `paperwasp serve` running?" in told.stdout + told.stderr
        assert "Traceback" not in told.stderr


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
