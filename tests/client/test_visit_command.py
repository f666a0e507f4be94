"""`paperwasp visit`: what it writes in each format is what `paperwasp feed` reads, and an interrupted visit goes on."""

from __future__ import annotations

import csv
import io
import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from paperwasp.client.visit_tables import merge, shape_of
from tests import web
from tests.client.commands import Ran, run_command
from tests.service.in_process import Deployed, active, deployed_service

SERVICES = """<services version="1.0">
  <container id="default" version="1.0"><search/><document-api/></container>
  <content id="records" version="1.0">
    <redundancy>1</redundancy>
    <documents>
      <document type="book" mode="index"/>
      <document type="author" mode="index" global="true"/>
    </documents>
    <nodes><node hostalias="node1" distribution-key="0"/></nodes>
  </content>
</services>
"""
BOOK = """schema book {
  document book {
    struct part { field name type string {} field pages type int {} }
    field title type string { indexing: summary | index }
    field id type string { indexing: summary | attribute }
    field year type int { indexing: summary | attribute }
    field isbn type long { indexing: summary | attribute }
    field price type double { indexing: summary | attribute }
    field is_new type bool { indexing: summary }
    field tags type array<string> { indexing: summary | attribute }
    field counts type array<int> { indexing: summary | attribute }
    field weights type weightedset<string> { indexing: summary | attribute }
    field parts type array<part> { indexing: summary }
    field content type raw { indexing: summary }
    field vector type tensor<float>(x[3]) { indexing: summary | attribute }
    field matrix type tensor<double>(x[2],y[2]) { indexing: summary | attribute }
    field cells type tensor<float>(k{}) { indexing: summary | attribute }
  }
}
"""
AUTHOR = "schema author { document author { field name type string { indexing: summary | attribute } } }"
FILES = {"services.xml": SERVICES, "schemas/book.sd": BOOK, "schemas/author.sd": AUTHOR}


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployed]:
    with deployed_service(tmp_path_factory.mktemp("visiting")) as service:
        active(service.deploy(FILES))
        yield service


def run(service: Deployed, command: str, *arguments: object) -> Ran:
    ran = run_command(command, *arguments, "--url", service.url)
    assert ran.code == 0, ran
    return ran


def clear(service: Deployed) -> None:
    for space in ("default", "global"):
        asked = {"cluster": "records", "selection": "true", "bucketSpace": space}
        assert web.delete(f"{service.url}/document/v1/", params=asked).status_code == 200


def visited(service: Deployed, *arguments: object) -> dict[str, Any]:
    """Id → fields, of a visit to the standard output."""
    lines = [orjson.loads(line) for line in run(service, "visit", *arguments).out.splitlines()]
    assert len({line["put"] for line in lines}) == len(lines)
    return {line["put"]: line["fields"] for line in lines}


# What a get shows of a field is what was fed, but for what is empty; so values are taken that are not.
LETTERS = st.characters(exclude_categories=["Cs", "Cc", "Cn", "Co"])
TEXTS = st.text(LETTERS | st.sampled_from("\n\t,;\"'0123456789[]{}"), min_size=1, max_size=8) | st.sampled_from(
    ["null", "true", '"x"', "[1]", "00123", "1.10", "NaN", " a ", '{"a":1}', "-Infinity"]
)
SINGLE = st.floats(width=32, allow_nan=False, allow_infinity=False)
TABLE_FIELDS: dict[str, st.SearchStrategy[Any]] = {
    "title": TEXTS,
    "id": TEXTS,
    "year": st.integers(-(2**31), 2**31 - 1),
    "isbn": st.integers(-(2**63), 2**63 - 1),
    "price": st.floats(allow_nan=False, allow_infinity=False),
    "is_new": st.booleans(),
    "tags": st.lists(TEXTS, min_size=1, max_size=3),
    "counts": st.lists(st.integers(-9, 9), min_size=1, max_size=3),
}
UNSET = {"year": -(2**31), "isbn": -(2**63)}
RICH_FIELDS = {
    **TABLE_FIELDS,
    "price": st.floats(allow_nan=False, allow_infinity=False) | st.sampled_from(["NaN", "Infinity", "-Infinity"]),
    "weights": st.dictionaries(TEXTS, st.integers(-9, 9), min_size=1, max_size=3),
    "parts": st.lists(
        st.fixed_dictionaries({"name": TEXTS}, optional={"pages": st.integers(0, 9)}), min_size=1, max_size=2
    ),
    "content": st.just("VW5r"),
    "vector": st.lists(SINGLE, min_size=3, max_size=3).map(lambda v: {"type": "tensor<float>(x[3])", "values": v}),
    "matrix": st.lists(st.lists(SINGLE, min_size=2, max_size=2), min_size=2, max_size=2).map(
        lambda v: {"type": "tensor(x[2],y[2])", "values": v}
    ),
    "cells": st.dictionaries(st.sampled_from("abc"), SINGLE, min_size=1, max_size=2).map(
        lambda v: {"type": "tensor<float>(k{})", "cells": v}
    ),
}


def documents_of(fields: dict[str, st.SearchStrategy[Any]]) -> st.SearchStrategy[dict[str, Any]]:
    names = st.text(LETTERS, min_size=1, max_size=4)
    return st.dictionaries(names.map("id:shop:book::{}".format), st.fixed_dictionaries({}, optional=fields), max_size=5)


def write_table(path: Path, documents: dict[str, Any]) -> None:
    """Documents as a table, written by libraries that know nothing of paperwasp."""
    rows = [{"documentid": document_id, **fields} for document_id, fields in documents.items()]
    if path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    elif path.suffix == ".parquet":
        types = [pa.string(), pa.string(), pa.string(), pa.int32(), pa.int64(), pa.float64(), pa.bool_()]
        types += [pa.list_(pa.string()), pa.list_(pa.int32())]
        schema = pa.schema(list(zip(("documentid", *TABLE_FIELDS), types, strict=True)))
        pq.write_table(pa.Table.from_pylist(rows, schema), path)
    else:
        with path.open("w", newline="") as file:
            writer = csv.DictWriter(file, ["documentid", *TABLE_FIELDS])
            writer.writeheader()
            lists = ("tags", "counts")
            writer.writerows(
                {name: json.dumps(value) if name in lists else value for name, value in row.items()} for row in rows
            )


def shown(fields: dict[str, Any]) -> dict[str, Any]:
    """What a visit shows of the fields of a table: an attribute's least number of its type is as none, as in Vespa."""
    return {name: value for name, value in fields.items() if value != UNSET.get(name)}


@pytest.mark.parametrize("name", ["a.jsonl", "a.csv", "a.parquet"])
@settings(max_examples=15)
@example({"id:shop:book::a": {"isbn": -(2**63), "year": -(2**31)}, "id:shop:book::b": {"isbn": 1 - 2**63, "year": 0}})
@given(documents=documents_of(TABLE_FIELDS))
def test_tables_are_fed_and_visited(service: Deployed, tmp_path: Path, name: str, documents: dict[str, Any]) -> None:
    clear(service)
    write_table(tmp_path / name, documents)
    types = ("--field-type", "tags=json", "--field-type", "counts=json") if name == "a.csv" else ("--schema", "book")
    run(service, "feed", tmp_path / name, *types)
    assert visited(service) == {document_id: shown(fields) for document_id, fields in documents.items()}


@pytest.mark.parametrize("name", ["a.jsonl", "a.csv", "a.tsv", "a.parquet"])
@settings(max_examples=15)
@given(documents=documents_of(RICH_FIELDS), slices=st.integers(1, 3))
def test_what_a_visit_writes_is_fed_back(
    service: Deployed, tmp_path: Path, name: str, documents: dict[str, Any], slices: int
) -> None:
    clear(service)
    lines = [{"put": document_id, "fields": fields} for document_id, fields in documents.items()]
    (tmp_path / "fed.json").write_bytes(orjson.dumps(lines))
    run(service, "feed", tmp_path / "fed.json")
    first = visited(service)
    assert first.keys() == documents.keys()
    run(service, "visit", "--output", tmp_path / name, "--slices", slices)
    clear(service)
    assert visited(service) == {}
    more = ("--field-type", "*=auto") if name in ("a.csv", "a.tsv") else ()
    run(service, "feed", tmp_path / name, *more)
    assert visited(service) == first
    assert not [path.name for path in tmp_path.iterdir() if path.name.startswith(f"{name}.")]


@pytest.fixture
def shelf(service: Deployed, tmp_path: Path) -> Deployed:
    """A service with some books and an author, who is global."""
    clear(service)
    lines = [f'{{"put": "id:shop:book::{n}", "fields": {{"title": "Title {n}", "year": {n}}}}}\n' for n in range(50)]
    path = tmp_path / "shelf.jsonl"
    path.write_text("".join(lines) + '{"put": "id:shop:author::ann", "fields": {"name": "Ann"}}\n')
    run(service, "feed", path)
    return service


def test_selections(shelf: Deployed) -> None:
    assert len(visited(shelf)) == 51
    assert len(visited(shelf, "--cluster", "records", "--slices", 4)) == 51
    assert visited(shelf, "--schema", "author") == {"id:shop:author::ann": {"name": "Ann"}}
    assert len(visited(shelf, "--schema", "book")) == 50
    found = visited(shelf, "--schema", "book", "--selection", "book.year < 2 or book.year == 7")
    assert sorted(found) == ["id:shop:book::0", "id:shop:book::1", "id:shop:book::7"]
    named = visited(shelf, "--selection", "book.year == 7", "--field-set", "book:title")
    assert named == {"id:shop:book::7": {"title": "Title 7"}}


def test_tables_have_a_column_a_field(shelf: Deployed, tmp_path: Path) -> None:
    ran = run(shelf, "visit", "-o", tmp_path / "a.parquet", "--schema", "book")
    assert ran.err.strip().endswith("50 documents visited")
    table = pq.read_table(tmp_path / "a.parquet")
    assert {field.name: str(field.type) for field in table.schema} == {
        "documentid": "string",
        "title": "string",
        "year": "int64",
    }
    run(shelf, "visit", "-o", tmp_path / "a.csv", "--selection", "book.year == 7")
    assert (tmp_path / "a.csv").read_text() == "documentid,title,year\nid:shop:book::7,Title 7,7\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--cluster", "other"), "no content cluster 'other', only 'records'"),
        (("--selection", "book.year <"), "The visit was refused with status 400: "),
        (("-o", "a.xls"), "--output: the ending of 'a.xls' is none of .jsonl, .ndjson, .json, .csv, .tsv, .parquet"),
        (("--continue-from", "a.continue"), "--continue-from needs an --output to write on"),
        (("-o", "a.jsonl", "--continue-from", "missing"), "Could not read 'missing': No such file"),
    ],
)
def test_what_cannot_be_visited_is_said(
    service: Deployed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: Sequence[str], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    ran = run_command("visit", *arguments, "--url", service.url)
    assert (ran.code, message in ran.err) == (1, True), ran


def line(number: int) -> bytes:
    return b'{"put":"id:a:b::%d","fields":{"n":%d}}\n' % (number, number)


def go_on(token: str) -> bytes:
    return orjson.dumps({"continuation": {"token": token, "percentFinished": 50}}) + b"\n"


END = b'{"sessionStats":{"documentCount":1}}\n{"continuation":{"percentFinished":100.0}}\n'
ONLY_A = b"{\"message\":\"Your Vespa deployment has no content cluster '*', only 'a'\"}"
Script = dict[tuple[str, str], list[tuple[int, bytes, bool]]]
"""Bucket space and continuation → status and body of the answers, in their order, and whether one is cut off."""


class _Quiet(ThreadingHTTPServer):
    """Says nothing of clients that go: what a command says is what the tests read."""

    def handle_error(self, request: object, client_address: object) -> None:
        pass


@contextmanager
def scripted(script: Script, content_type: str = "application/jsonl; charset=UTF-8") -> Iterator[tuple[str, list[str]]]:
    """A server that answers visits by a script; gives its address, and the continuations that it was asked for."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            parameters = dict(part.split("=", 1) for part in self.path.partition("?")[2].split("&"))
            if parameters["cluster"] in ("%2A", "*"):
                self._answer(400, ONLY_A, False, "application/json")
                return
            place = (parameters["bucketSpace"], parameters.get("continuation", ""))
            asked.append(place[1] or place[0])
            answers = script.get(place, [(200, END if "jsonl" in content_type else b'{"documents":[]}', False)])
            status, body, is_cut = answers.pop(0) if len(answers) > 1 else answers[0]
            self._answer(status, body, is_cut, content_type)

        def _answer(self, status: int, body: bytes, is_cut: bool, kind: str) -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            self.wfile.write(b"%x\r\n%s\r\n" % (len(body), body))
            if is_cut:
                self.close_connection = True
            else:
                self.wfile.write(b"0\r\n\r\n")

        def log_message(self, format: str, *args: object) -> None:
            pass

    with _Quiet(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", asked
        finally:
            server.shutdown()
            thread.join()


def test_what_breaks_off_goes_on_behind_the_last_place_and_nothing_comes_twice() -> None:
    script: Script = {
        ("default", ""): [
            (429, b'{"message":"too much"}', False),
            (200, line(1) + go_on("A") + line(2), True),
        ],
        ("default", "A"): [
            (503, b"", False),
            (200, line(2) + b'{"put":"id:a:', False),
            (200, line(2) + b'{"message":{"severity":"error","text":"ouch"}}\n' + go_on("A2"), False),
        ],
        ("default", "A2"): [(200, line(3) + END, False)],
    }
    with scripted(script) as (url, asked):
        ran = run_command("visit", "--url", url)
    assert (ran.code, ran.out.encode()) == (0, line(1) + line(2) + line(3)), ran
    assert asked == ["global", "default", "default", "A", "A", "A", "A2"]


def test_services_without_json_lines_are_asked_page_by_page() -> None:
    def page(number: int, token: str | None) -> bytes:
        documents = [{"id": f"id:a:b::{number}", "fields": {"n": number}}]
        return orjson.dumps({"documents": documents, "documentCount": 1, **({"continuation": token} if token else {})})

    script: Script = {
        ("default", ""): [(200, page(1, "A"), False)],
        ("default", "A"): [(429, b"{}", False), (200, page(2, None), False)],
    }
    with scripted(script, "application/json") as (url, _):
        ran = run_command("visit", "--url", url)
    assert (ran.code, ran.out.encode()) == (0, line(1) + line(2)), ran


@pytest.mark.parametrize("name", ["a.jsonl", "a.csv"])
def test_an_interrupted_visit_goes_on(tmp_path: Path, name: str) -> None:
    output = tmp_path / name
    script: Script = {
        ("default", ""): [(200, line(1) + go_on("A") + line(2), True)],
        ("default", "A"): [(400, b'{"message":"gone"}', False)],
    }
    with scripted(script) as (url, _):
        ran = run_command("visit", "-o", output, "--url", url)
    state = tmp_path / f"{name}.continue"
    assert ran.code == 1
    assert f"1 documents are written. To go on: --continue-from {state}" in ran.err
    assert "The visit was refused with status 400: gone" in ran.err
    lines = output if name == "a.jsonl" else tmp_path / f"{name}.part"
    assert lines.read_bytes() == line(1)
    with lines.open("ab") as file:
        file.write(line(2)[:7])  # what a process that was killed may have written behind the place
    ran = run_command(
        "visit", "-o", output, "--continue-from", state, "--selection", "b", "--url", "http://127.0.0.1:9"
    )
    assert (ran.code, "is of a visit with selection None, and this one has 'b'" in ran.err) == (1, True)
    with scripted({("default", "A"): [(200, line(2) + END, False)]}) as (url, asked):
        ran = run_command("visit", "-o", output, "--continue-from", state, "--url", url)
    assert (ran.code, asked, ran.err.strip()) == (0, ["A"], "2 documents visited")
    expected = line(1) + line(2) if name == "a.jsonl" else b"documentid,n\nid:a:b::1,1\nid:a:b::2,2\n"
    assert output.read_bytes() == expected
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_a_service_that_stays_broken_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []
    monkeypatch.setattr("paperwasp.client.visit.time.sleep", waits.append)
    with scripted({("global", ""): [(503, b'{"message":"closed"}', False)]}) as (url, asked):
        ran = run_command("visit", "--url", url)
    assert (ran.code, len(asked), len(waits)) == (1, 11, 10)
    assert "Visiting 'a' failed 11 times; the last time: status 503: closed" in ran.err
    assert waits == sorted(waits) and waits[-1] == 5.0


@pytest.mark.parametrize(
    ("values", "shape"),
    [
        ([1, 2], "int"),
        ([1, 2.5], "float"),
        (["NaN", 1.5, "Infinity"], "float"),
        (["NaN", "a"], "text"),
        ([True], "bool"),
        ([True, 1], "json"),
        ([2**63], "json"),
        ([[1], [2.5], []], "json"),
        ([[1], [2.5]], "list:float"),
        ([["a"], ["b", "c"]], "list:text"),
        ([[["a"]]], "json"),
        ([{"a": 1}], "json"),
        ([{"type": "tensor<float>(x[2])", "values": [1, 2]}], "vector:float:2"),
        ([{"type": "tensor(x[2])", "values": [1, 2]}], "vector:double:2"),
        ([{"type": "tensor(x[2])", "values": [1, None]}], "json"),
        ([{"type": "tensor(x[2],y[1])", "values": [[1], [2]]}], "json"),
    ],
)
def test_shapes(values: list[Any], shape: str) -> None:
    found: str | None = None
    for value in values:
        found = merge(found, shape_of(value))
    assert found == shape
    # In the other order it is the same.
    found = None
    for value in reversed(values):
        found = merge(found, shape_of(value))
    assert found == shape


def test_csv_of_a_visit_is_read_by_any_reader(shelf: Deployed, tmp_path: Path) -> None:
    run(shelf, "visit", "-o", tmp_path / "a.csv", "--schema", "book")
    rows = list(csv.DictReader(io.StringIO((tmp_path / "a.csv").read_text())))
    assert {row["documentid"]: row["year"] for row in rows} == {f"id:shop:book::{n}": str(n) for n in range(50)}
