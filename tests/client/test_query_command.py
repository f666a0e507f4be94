"""`paperwasp query`: the same answer in every format, golden; where queries come from; what goes wrong."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest

from tests import web
from tests.client.commands import Ran, run_command
from tests.service.in_process import Deployed, active, deployed_service
from tests.service.music import FILES

ALBUMS = {
    "1": {"title": "Blue Train", "year": 1957, "tags": ["jazz", "hard bop"]},
    "2": {"title": 'Say "Blue", twice', "year": 1959},
}
YQL = "select * from music where title contains 'blue' order by year"
FIRST = {"id": "id:ns:music::1", "relevance": 0.0, "source": "records"}


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployed]:
    with deployed_service(tmp_path_factory.mktemp("querying")) as service:
        active(service.deploy(FILES))
        for name, fields in ALBUMS.items():
            web.post(f"{service.url}/document/v1/ns/music/docid/{name}", json={"fields": fields}).raise_for_status()
        yield service


def query(service: Deployed, *arguments: object, content: bytes = b"") -> Ran:
    return run_command("query", *arguments, "--url", service.url, content=content)


def test_csv(service: Deployed) -> None:
    assert query(service, YQL, "--format", "csv", "--hits", 5).out == (
        "id,relevance,sddocname,documentid,title,year,tags\n"
        'id:ns:music::1,0.0,music,id:ns:music::1,<hi>Blue</hi> Train,1957,"[""jazz"",""hard bop""]"\n'
        'id:ns:music::2,0.0,music,id:ns:music::2,"Say ""<hi>Blue</hi>"", twice",1959,\n'
    )


def test_json_lines(service: Deployed) -> None:
    lines = query(service, YQL, "bolding=false", "--format", "jsonl").out.splitlines()
    found = [orjson.loads(line) for line in lines]
    assert [hit["fields"]["title"] for hit in found] == [album["title"] for album in ALBUMS.values()]
    assert found[0]["id"] == "id:ns:music::1"


def test_table(service: Deployed) -> None:
    lines = [line.rstrip() for line in query(service, YQL, "bolding=false", "--format", "table").out.splitlines()]
    assert lines == [
        "id              relevance  sddocname  documentid      title              year  tags",
        'id:ns:music::1  0.0        music      id:ns:music::1  Blue Train         1957  ["jazz","hard bop"]',
        'id:ns:music::2  0.0        music      id:ns:music::2  Say "Blue", twice  1959',
    ]


def test_json_is_the_answer_as_it_came(service: Deployed) -> None:
    for arguments in (("--json",), ("--format", "json")):
        answer = orjson.loads(query(service, YQL, *arguments).out)
        assert answer["root"]["fields"] == {"totalCount": 2}
        assert [hit["fields"]["year"] for hit in answer["root"]["children"]] == [1957, 1959]


def test_pretty_is_for_reading(service: Deployed) -> None:
    assert [line.rstrip() for line in query(service, YQL, "--hits", 1).out.splitlines()] == [
        "# score hit",
        "",
        "1 0.000 Blue Train",
        "        year: 1957",
        '        tags: ["jazz","hard bop"]',
        "",
        "2 matches of 2 documents, 1 shown",
    ]


def test_queries_come_from_anywhere(service: Deployed, tmp_path: Path) -> None:
    def years(ran: Ran) -> list[int]:
        assert ran.code == 0, ran
        return [orjson.loads(line)["fields"]["year"] for line in ran.out.splitlines()]

    lines = ("--format", "jsonl")
    assert years(query(service, "-", *lines, content=YQL.encode() + b"\n")) == [1957, 1959]
    assert years(query(service, "train", *lines)) == [1957]
    assert years(query(service, "-", *lines, content=b"train\n")) == [1957]
    long = f"{YQL.replace(' order', ' or title in (' + ','.join(map(repr, ['word'] * 3000)) + ') order')}"
    assert years(query(service, "-", *lines, content=long.encode())) == [1957, 1959]
    file = tmp_path / "query.json"
    file.write_text('{"yql": "select * from music where userQuery() order by year desc", "query": "blue", "hits": 1}')
    assert years(query(service, "--file", file, *lines)) == [1959]
    assert years(query(service, "hits=2", "--file", file, *lines)) == [1959, 1957]
    assert years(query(service, "hits=2", "query=train", "--file", file, *lines)) == [1957]
    assert years(query(service, "--file", file, "--hits", 2, "--timeout", 7.5, *lines)) == [1959, 1957]


@pytest.mark.parametrize("form", ["pretty", "json", "table", "jsonl", "csv"])
def test_errors_end_with_1_and_say_why(service: Deployed, form: str) -> None:
    ran = query(service, "select * from music where nosuch contains 'a'", "--format", form)
    assert ran.code == 1
    assert "nosuch" in (ran.out if form == "pretty" else ran.err)
    if form == "json":
        assert orjson.loads(ran.out)["root"]["errors"]
    elif form == "jsonl":
        assert ran.out == ""


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "Say what to search for, or give --file"),
        (("a", "--format", "xml"), "--format: 'xml' is not one of pretty, json, table, jsonl, csv"),
        (("--file", "missing.json"), "Could not read 'missing.json': No such file or directory"),
        (("--file", "list.json"), "list.json: expected an object with the parameters of a query"),
        (("--file", "bad.json"), "bad.json, line 2, column 2: no JSON: "),
        (("a", "hits"), "'hits' is not a parameter like name=value"),
        (("a", "ranking=nosuch"), "nosuch"),
    ],
)
def test_what_cannot_be_asked_is_said(
    service: Deployed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "list.json").write_text("[]")
    (tmp_path / "bad.json").write_text("{\n}}")
    ran = query(service, *arguments)
    assert (ran.code, message in ran.out + ran.err) == (1, True), ran
