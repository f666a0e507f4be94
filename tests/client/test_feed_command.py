"""`paperwasp feed`: files of all formats into a running service, and what it says of those that fail."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from paperwasp.client import feed_files
from paperwasp.client.sources.operations import Item
from paperwasp.client.sources.read import ReadOptions, read_file
from tests import web
from tests.client.commands import Ran, run_command
from tests.service.in_process import Deployed, active, deployed_service
from tests.service.music import FILES


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployed]:
    with deployed_service(tmp_path_factory.mktemp("feeding")) as service:
        active(service.deploy(FILES))
        yield service


def feed(service: Deployed, *arguments: object, content: bytes = b"") -> Ran:
    return run_command("feed", *arguments, "--url", service.url, content=content)


def document(service: Deployed, name: str) -> Any:
    """The fields of a document; None where there is none."""
    return web.get(f"{service.url}/document/v1/shop/music/docid/{name}").json().get("fields")


def file(folder: Path, name: str, content: str) -> Path:
    path = folder / name
    path.write_text(content)
    return path


ROWS = ("--schema", "music", "--namespace", "shop")


def test_files_of_all_formats_are_fed(service: Deployed, tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": ["p1"], "year": [2001], "tags": [["x", "y"]]}), tmp_path / "a.parquet")
    files = (
        file(tmp_path, "a.jsonl", '{"put": "id:shop:music::j1", "fields": {"title": "Blue", "year": 1959}}\n'),
        file(tmp_path, "a.json", '[{"put": "id:shop:music::j2", "fields": {"tags": ["a"]}}]'),
        file(tmp_path, "a.csv", 'id,title,year,tags\nc1,"Blue, green",1960,x;y\n'),
        tmp_path / "a.parquet",
    )
    ran = feed(service, *files, *ROWS, "--field-type", "tags=array<string>")
    assert (ran.code, ran.err.strip()) == (0, ""), ran
    assert ran.out.startswith("4 operations fed in ")
    assert document(service, "c1") == {"title": "Blue, green", "year": 1960, "tags": ["x", "y"]}
    assert document(service, "j1") == {"title": "Blue", "year": 1959}
    assert document(service, "j2") == {"tags": ["a"]}
    assert document(service, "p1") == {"year": 2001, "tags": ["x", "y"]}


def test_whole_numbers_that_a_frame_made_floats(service: Deployed, tmp_path: Path) -> None:
    """What pandas writes of a column of integers in which one is missing. The service says which fields are whole."""
    pq.write_table(
        pa.table({"id": ["f1", "f2"], "year": [1901.0, None], "title": ["1.0", "x"]}), tmp_path / "f.parquet"
    )
    files = (
        file(tmp_path, "f.csv", "id,year,title\nf3,1901.0,1.0\nf4,,x\n"),
        file(tmp_path, "f.jsonl", '{"id":"f5","year":1901.0,"title":1.0}\n{"id":"f6","year":null}\n'),
        tmp_path / "f.parquet",
    )
    ran = feed(service, *files, *ROWS)
    assert (ran.code, ran.err.strip()) == (0, ""), ran
    for name in ("f1", "f3", "f5"):
        assert document(service, name) == {"year": 1901, "title": "1.0"}
    assert [document(service, name) for name in ("f2", "f4", "f6")] == [{"title": "x"}, {"title": "x"}, {}]
    for kind in ("int", "auto"):
        ran = feed(service, files[0], *ROWS, "--field-type", f"year={kind}", "--operation", "update")
        assert (ran.code, ran.err.strip()) == (0, ""), ran
    ran = feed(service, files[2], *ROWS, "--dry-run")
    assert '"year":1901,"title":"1.0"' in ran.out


def test_floats_that_may_have_lost_digits_are_refused(service: Deployed, tmp_path: Path) -> None:
    """Above 2^53 there are fewer doubles than whole numbers: which one it was, nobody knows."""
    path = file(tmp_path, "l.csv", "id,year\nl1,9007199254740992.0\nl2,9007199254740991.0\n")
    ran = feed(service, path, *ROWS, "--field-type", "year=long", "--dry-run", "--keep-going")
    assert "l.csv, line 2, column 'year': expected a whole number, found '9007199254740992.0'" in ran.err
    assert '"year":9007199254740991' in ran.out
    assert feed(service, path, *ROWS).code == 1


def test_standard_input_and_updates_and_removes(service: Deployed) -> None:
    lines = b'{"put": "id:shop:music::s1", "fields": {"title": "a"}}\n{"put": "id:shop:music::s2", "fields": {}}\n'
    assert feed(service, "-", content=lines).code == 0
    changes = b"id,year\ns1,7\ns3,8\n"
    ran = feed(service, "-", "--format", "csv", *ROWS, "--operation", "update", content=changes)
    assert (ran.code, document(service, "s1"), document(service, "s3")) == (0, {"title": "a", "year": 7}, None)
    ran = feed(service, "-", "--format", "csv", *ROWS, "--operation", "update", "--create", content=changes)
    assert (ran.code, document(service, "s3")) == (0, {"year": 8})
    ran = feed(service, "-", "--format", "csv", *ROWS, "--operation", "remove", content=b"id\ns1\ns2\n")
    assert (ran.code, document(service, "s1"), document(service, "s2")) == (0, None, None)


def test_conditions(service: Deployed) -> None:
    assert feed(service, "-", content=b'{"put": "id:shop:music::c1", "fields": {"year": 1}}').code == 0
    change = b'{"update": "id:shop:music::c1", "fields": {"year": {"assign": 2}}}'
    ran = feed(service, "-", "--condition", "music.year > 1", content=change)
    assert (ran.code, document(service, "c1")) == (0, {"year": 1})
    assert "1 had a condition that did not hold" in ran.out
    assert feed(service, "-", "--condition", "music.year == 1", content=change).code == 0
    assert document(service, "c1") == {"year": 2}


BAD = '{"put": "id:shop:music::b%d", "fields": {"year": "no"}}\n'
GOOD = '{"put": "id:shop:music::g%d", "fields": {"year": 7}}\n'


def test_failures_are_shown_counted_and_kept(service: Deployed, tmp_path: Path) -> None:
    path = file(tmp_path, "a.jsonl", "".join(GOOD % n + BAD % n for n in range(20)))
    ran = feed(service, path, "--errors-to", tmp_path / "failed.jsonl")
    assert ran.code == 1
    assert ran.out.startswith("20 operations fed in ") and "20 failed" in ran.out
    shown = re.findall(
        r"a\.jsonl, line (\d+): put of id:shop:music::b(\d+): status 400 of POST [^ ]+: .*\"no\"", ran.err
    )
    assert len(shown) == 10
    assert all(int(number) == 2 * int(name) + 2 for number, name in shown)
    assert "Further errors are counted, not shown" in ran.err
    lines = (tmp_path / "failed.jsonl").read_text().splitlines()
    assert sorted(lines) == sorted(f'{{"put":"id:shop:music::b{n}","fields":{{"year": "no"}}}}' for n in range(20))
    mended = file(tmp_path, "mended.jsonl", "\n".join(lines).replace('"no"', "8"))
    assert feed(service, mended).code == 0
    assert document(service, "b19") == {"year": 8}


def test_nothing_more_is_sent_after_the_most_errors(service: Deployed, tmp_path: Path) -> None:
    path = file(tmp_path, "a.jsonl", "".join(BAD % n for n in range(5000)))
    ran = feed(service, path, "--max-errors", 3, "--connections", 1, "--json")
    assert ran.code == 1
    assert 3 <= orjson.loads(ran.out)["feeder.error.count"] < 2000


def test_what_cannot_be_read_ends_the_feed_unless_it_shall_go_on(service: Deployed, tmp_path: Path) -> None:
    first = file(tmp_path, "a.jsonl", GOOD % 101 + "{nonsense\n" + GOOD % 102)
    second = file(tmp_path, "b.jsonl", GOOD % 103)
    ran = feed(service, first, second)
    assert (ran.code, document(service, "g101"), document(service, "g102")) == (1, {"year": 7}, None)
    assert f"{first}, line 2, column 2: no JSON: " in ran.err
    assert "1 operations fed" in ran.out and "1 could not be read" in ran.out
    ran = feed(service, first, tmp_path / "missing.json", second, "--keep-going")
    assert (ran.code, document(service, "g102"), document(service, "g103")) == (1, {"year": 7}, {"year": 7})
    assert "2 could not be read" in ran.out


def test_the_summary_has_the_names_of_vespa_feed(service: Deployed) -> None:
    ran = feed(service, "-", "--json", content=(GOOD % 1 + BAD % 1 + GOOD % 2).encode())
    summary = orjson.loads(ran.out)
    counts = {name: value for name, value in summary.items() if name.endswith((".count", ".counts"))}
    assert counts == {
        "feeder.operation.count": 3,
        "feeder.ok.count": 2,
        "feeder.error.count": 1,
        "feeder.inflight.count": 0,
        "http.request.count": 3,
        "http.exception.count": 0,
        "http.response.count": 3,
        "http.response.error.count": 1,
        "http.response.code.counts": {"200": 2, "400": 1},
    }
    assert summary["http.request.bytes"] > 0 < summary["http.response.bytes"]
    latencies = [summary[f"http.response.latency.millis.{name}"] for name in ("min", "avg", "max")]
    assert latencies == sorted(latencies)


def test_a_dry_run_needs_no_service(tmp_path: Path) -> None:
    path = file(tmp_path, "a.csv", "id,year\n1,7\n2,x\n3,9\n4,10\n5,11\n")
    arguments = ("--schema", "music", "--field-type", "year=int", "--dry-run", "--keep-going")
    ran = run_command("feed", path, *arguments, "--url", "http://127.0.0.1:9")
    assert ran.code == 1
    assert ran.out.splitlines() == [
        f'{path}, line 2: {{"put":"id:music:music::1","fields":{{"year":7}}}}',
        f'{path}, line 4: {{"put":"id:music:music::3","fields":{{"year":9}}}}',
        f'{path}, line 5: {{"put":"id:music:music::4","fields":{{"year":10}}}}',
        "4 puts; 1 could not be read; nothing was sent",
    ]
    assert ran.err == f"{path}, line 3, column 'year': expected a whole number, found 'x'\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--operation", "get"), "--operation: 'get' is not one of put, update, remove"),
        (("--timestamps", "h"), "--timestamps: 'h' is not one of s, ms, us, ns"),
        (("--map", "a"), "--map: 'a' is not like name=value"),
        (("--header", "a"), "--header: 'a' is not like 'Name: value'"),
        (("--certificate", "a.pem"), "--certificate and --private-key are given together"),
        (("--url", "ftp://127.0.0.1"), "'ftp://127.0.0.1' is not an address like http://127.0.0.1:8080"),
    ],
)
def test_options_that_cannot_be_are_refused(tmp_path: Path, arguments: tuple[str, ...], message: str) -> None:
    ran = run_command("feed", file(tmp_path, "a.jsonl", GOOD % 1), *arguments)
    assert (ran.code, message in ran.out + ran.err) == (1, True), ran


def test_a_file_that_is_fed_is_not_written_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    path = file(tmp_path, "a.jsonl", GOOD % 1)
    ran = run_command("feed", path, "--errors-to", "./a.jsonl", "--url", "http://127.0.0.1:9")
    assert (ran.code, path.read_text()) == (1, GOOD % 1)
    assert "--errors-to: 'a.jsonl' is fed itself, and would be overwritten" in ran.err


def test_no_service_is_said(tmp_path: Path) -> None:
    ran = run_command("feed", file(tmp_path, "a.jsonl", GOOD % 1), "--url", "http://127.0.0.1:9")
    assert ran.code == 1
    assert "Is `paperwasp serve` running?" in ran.err


def test_operations_of_one_document_keep_their_order(service: Deployed, tmp_path: Path) -> None:
    increment = '{"update": "id:shop:music::o1", "fields": {"year": {"increment": 1}}}\n'
    put = '{"put": "id:shop:music::o1", "fields": {"year": 0}}\n'
    path = file(tmp_path, "a.jsonl", (put + increment * 3) * 50 + increment)
    assert feed(service, path).code == 0
    assert document(service, "o1") == {"year": 4}


def test_traces_are_shown(service: Deployed) -> None:
    ran = feed(service, "-", "--trace", 3, "--timeout", 30, "--route", "default", content=(GOOD % 1).encode())
    assert ran.code == 0
    assert '"id:shop:music::g1": [' in ran.err


def test_an_interrupt_says_what_was_done(service: Deployed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(path: str, options: ReadOptions, report: object) -> Iterator[Item]:
        yield from read_file(path, options)
        raise KeyboardInterrupt

    monkeypatch.setattr(feed_files, "read_file", interrupted)
    path = file(tmp_path, "a.jsonl", "".join(GOOD % n for n in range(200, 210)))
    ran = feed(service, path, "--errors-to", tmp_path / "failed.jsonl")
    assert ran.code == 130
    match = re.match(r"(\d+) operations fed in .*, (\d+) failed", ran.out)
    assert match is not None, ran
    assert int(match[1]) + int(match[2]) == 10
    assert (tmp_path / "failed.jsonl").read_bytes().count(b"\n") == int(match[2])
