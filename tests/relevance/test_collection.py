"""Queries and judgments in all their forms, and what is said of those that are wrong."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from paperwasp.relevance.collection import BadCollection, check_fit, read_judgments, read_queries

QUERIES = {"q1": "blue train", "q2": "giant steps"}
JUDGMENTS = {"q1": {"d1": 2, "d2": 0}, "q2": {"d3": 1}}


@pytest.mark.parametrize(
    "text",
    [
        "q1\tblue train\nq2\tgiant steps\n",
        "\ufeffquery_id\ttext\r\nq1\tblue train\r\n\r\nq2\tgiant steps",
        '{"q1": "blue train", "q2": "giant steps"}',
        '{"q1": {"query": "blue train"}, "q2": {"query": "giant steps"}}',
        '{"_id": "q1", "text": "blue train"}\n{"id": "q2", "query": "giant steps"}\n',
        "<top>\n<num> Number: q1\n<title> Topic: blue\n train\n<desc> x\n</top>\n"
        "<top><num>q2<title>giant steps</title></top>",
    ],
)
def test_queries(tmp_path: Path, text: str) -> None:
    (tmp_path / "q").write_text(text)
    assert read_queries(tmp_path / "q") == QUERIES


@pytest.mark.parametrize(
    "text",
    [
        "q1 0 d1 2\nq1 0 d2 0\n\nq2 0 d3 1\n",
        "query-id\tcorpus-id\tscore\nq1\td1\t2\nq1\td2\t0\nq2\td3\t1.0\n",
        "q1,d1,2\nq1,d2,0\nq2,d3,1\n",
        "q1 0\td1 2\nq1\t\t0 d2  0\nq2 0 d3\t1\n",
        '{"q1": {"d1": 2, "d2": 0}, "q2": ["d3"]}',
        '{"q1": {"d1": 2, "d2": 0}, "q2": "d3"}',
        '{"query_id": "q1", "document_id": "d1", "relevance": 2}\n{"query_id": "q1", "doc_id": "d2", "label": 0}\n'
        '{"qid": "q2", "corpus-id": "d3", "score": 1}',
    ],
)
def test_judgments(tmp_path: Path, text: str) -> None:
    (tmp_path / "j").write_text(text)
    assert read_judgments(tmp_path / "j") == JUDGMENTS


@pytest.mark.parametrize(
    ("text", "document"),
    [
        ("q1\tdoc 7\t1\n", "doc 7"),
        ("q1\t0\tdoc 7\t1\n", "doc 7"),
        ('query\tdocument\trelevance\nq1\t"d\t1"\t1.0\n', "d\t1"),
        ("q1\td,1\t1\n", "d,1"),
        ('q1,"d,1",1\r\n', "d,1"),
        ('q1,0,"say ""d"" 1",1\n', 'say "d" 1'),
        ('"q1","doc 7 of 9","1"\n', "doc 7 of 9"),
        ("query, document, relevance\nq1, d1, 1\n", "d1"),
        ("q1 0 d,1 1\n", "d,1"),
        ("q1 0 d,1,2 1 \n", "d,1,2"),
        ("q1  d,1  1\n", "d,1"),
        ("q1 0 d\x85\u20281 1\n", "d\x85\u20281"),
    ],
)
def test_ids_hold_what_separates_in_other_forms(tmp_path: Path, text: str, document: str) -> None:
    (tmp_path / "j").write_bytes(text.encode())
    assert read_judgments(tmp_path / "j") == {"q1": {document: 1}}


@pytest.mark.parametrize("between", ["\u2028", "\u2029", "\x85", "\x0b", "\x0c", "\x1c"])
def test_only_line_feeds_end_lines(tmp_path: Path, between: str) -> None:
    name, text = tmp_path / "file", f"blue{between}train"
    name.write_bytes(f"q1\t{text}\r\nq2\tgiant steps\r\n".encode())
    assert read_queries(name) == {"q1": text, "q2": "giant steps"}
    name.write_text("\n".join(json.dumps({"id": query, "text": text}, ensure_ascii=False) for query in ("q1", "q2")))
    assert read_queries(name) == {"q1": text, "q2": text}
    row = {"query_id": "q1", "document_id": text, "relevance": 1}
    name.write_text(f"{json.dumps(row, ensure_ascii=False)}\n{json.dumps({**row, 'document_id': 'd2'})}\n")
    assert read_judgments(name) == {"q1": {text: 1, "d2": 1}}


@pytest.mark.parametrize(
    ("read", "text", "message"),
    [
        (read_queries, "", "no query"),
        (read_queries, "q1 blue", "line 1: expected an id, a tab"),
        (read_queries, '{"_id": 1}\n{"_id": 2, "text": "x"}', "line 1: expected one of text"),
        (read_queries, '{"id": "1", "text": "x"}\nnothing', "line 2: not JSON"),
        (read_queries, '{"q1": 7}', "'q1' has no text"),
        (read_queries, "<top><title>x</top>", "without <num>"),
        (read_queries, "q1\tblue\nq1\tgiant", "two queries 'q1'"),
        (read_queries, '{"id": 1, "text": "x"}\n{"id": 1, "text": "y"}', "two queries '1'"),
        (read_judgments, "", "no judgment in it: expected lines"),
        (read_judgments, "q1 0 d1 much", "no judgment in it but the names of columns: expected lines"),
        (read_judgments, "q1 0 d1 2\nq1 d1", "line 2: expected 'query 0 document relevance'"),
        (read_judgments, "q1 0 d1 2\nq1 0 d2 much", "line 2: 'much' is not a number"),
        (read_judgments, '{"q1": {"d1": "much"}}', "query 'q1': 'much'"),
        (read_judgments, "q1\td1\t0.9\nq2\td3\t1", "line 1: '0.9' is not a whole number"),
        (read_judgments, "q1 0 d1 1\nq1 0 d2 1.5", "line 2: '1.5' is not a whole number"),
        (read_judgments, "q1,d1,1\nq1,d2,nan", "line 2: 'nan' is not a whole number"),
        (read_judgments, '{"q1": {"d1": 0.5}}', "query 'q1': '0.5' is not a whole number"),
        (read_judgments, "q1 0 d1 1\nq1\tdoc 7", "line 2: expected 'query 0 document relevance'"),
        (read_judgments, 'q1,d1,1\nq1,"d2,1', "line 2: expected 'query 0 document relevance'"),
        (read_judgments, "q1,d1,1\nq1,,1", "line 2: expected 'query 0 document relevance'"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, read: type, text: str, message: str) -> None:
    (tmp_path / "file").write_text(text)
    with pytest.raises(BadCollection, match=message):
        read(tmp_path / "file")
    with pytest.raises(BadCollection, match="Could not read"):
        read(tmp_path / "absent")


def test_only_queries_with_something_relevant_are_asked() -> None:
    assert check_fit({**QUERIES, "q3": "x"}, {**JUDGMENTS, "q3": {"d9": 0}}) == ["q1", "q2"]
    with pytest.raises(BadCollection, match="named like '1', and in the judgments like 'q1'"):
        check_fit({"1": "x"}, JUDGMENTS)
    with pytest.raises(BadCollection, match="all that are judged have relevance 0"):
        check_fit(QUERIES, {"q1": {"d1": 0}})
