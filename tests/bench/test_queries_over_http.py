"""The benchmark of queries over HTTP: its client, its kinds of query, what it asks the kernel, and its rows."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import random
import socket
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from bench import feed as feed_benchmark
from bench import http_kinds as kinds
from bench import http_load
from bench.calls import InProcess, get, in_process
from bench.connection import Connection
from bench.http_kinds import KINDS, PLAIN, Kind
from bench.http_load import Engine, Measured, Options
from bench.layers import NothingMeasured
from bench.load import Load, load, load_beside
from bench.report import Report
from bench.service import APPLICATION, Running

SEED = 11
DOCUMENTS = 300
WORDS = ("red", "green", "blue", "white", "black", "grey", "brown", "pink")
FIELDS = ("title", "body", "category", "year")


class Echo:
    """Answers each GET with its path, in pieces, and notes all of them. `/missing` is not found."""

    def __init__(self) -> None:
        self.paths: list[str] = []
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._server.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._server.close()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._server.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        # A client that was told of a failure goes without reading the rest.
        with contextlib.suppress(ConnectionError), connection, connection.makefile("rb") as lines:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            while request := lines.readline():
                while lines.readline().strip():
                    pass
                path = request.split()[1].decode()
                self.paths.append(path)
                status = "404 Not Found" if path == "/missing" else "200 OK"
                head = f"HTTP/1.1 {status}\r\nContent-Length: {len(path)}\r\n\r\n"
                for piece in (head[:20], head[20:] + path[:1], path[1:]):
                    connection.sendall(piece.encode())


@pytest.fixture
def echo() -> Iterator[Echo]:
    server = Echo()
    yield server
    server.close()


def test_an_answer_is_whole(echo: Echo) -> None:
    connection = Connection(echo.port)
    assert [connection.answer(path) for path in ("/a", "/search/?query=b")] == [b"/a", b"/search/?query=b"]
    with pytest.raises(AssertionError, match="404"):
        connection.answer("/missing")
    connection.close()


@pytest.mark.parametrize("connections_count", [1, 3, 50])
def test_a_load_asks_for_every_path_once(echo: Echo, connections_count: int) -> None:
    paths = [f"/{number}" for number in range(20)]
    found = load(echo.port, paths, connections_count, cores={max(os.sched_getaffinity(0))})
    assert sorted(echo.paths) == sorted(paths)
    assert len(found.times_us) == len(paths)
    assert 0 < min(found.times_us) <= max(found.times_us) <= found.seconds * 1e6
    assert found.client_seconds > 0
    assert os.sched_getaffinity(0) >= {max(os.sched_getaffinity(0))}


def test_one_connection_asks_in_order(echo: Echo) -> None:
    paths = [f"/{number}" for number in range(5)]
    load(echo.port, paths, 1)
    assert echo.paths == paths


def test_a_load_with_a_failure_fails(echo: Echo) -> None:
    with pytest.raises(AssertionError, match="404 Not Found"):
        load(echo.port, ["/a", "/missing"], 1)
    with pytest.raises(AssertionError, match="nothing to ask"):
        load(echo.port, [], 1)


def test_a_load_beside_work_goes_on_until_it_is_done(echo: Echo) -> None:
    def until_asked_twice() -> str:
        end = time.monotonic() + 60
        while echo.paths.count("/1") < 2:
            assert time.monotonic() < end
        return "done"

    result, found = load_beside(until_asked_twice, echo.port, ["/0", "/1", "/2"], 2)
    assert result == "done"
    assert len(found.times_us) == len(echo.paths) >= 5
    assert set(echo.paths) == {"/0", "/1", "/2"}


def test_a_load_is_shown_by_rate_and_quantiles() -> None:
    found = Load([40, 10, 30, 20], 0.5)
    assert (found.rate, found.quantile_us(0.5), found.quantile_us(0.99)) == (8, 30, 40)


# The server's process, seen from outside


@pytest.fixture
def this_process() -> Running:
    process: Any = SimpleNamespace(pid=os.getpid())
    return Running(process, port=0, ready_seconds=0)


def test_cpu_time_is_that_of_the_process(this_process: Running) -> None:
    before, told, after = time.process_time(), this_process.cpu_seconds(), time.process_time()
    assert before <= told <= after


def test_waiting_is_a_context_switch() -> None:
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as echoing:
        assert echoing.stdin is not None and echoing.stdout is not None
        process: Any = SimpleNamespace(pid=echoing.pid)
        running = Running(process, port=0, ready_seconds=0)
        before = running.context_switches()
        for _ in range(3):
            echoing.stdin.write(b"line\n")
            echoing.stdin.flush()
            assert echoing.stdout.readline() == b"line\n"
        assert running.context_switches() >= before + 3
        echoing.stdin.close()


def test_a_pinned_process_gets_its_cores_back(this_process: Running) -> None:
    cores = os.sched_getaffinity(0)
    with this_process.pinned():
        assert os.sched_getaffinity(0) == {min(cores)}
    assert os.sched_getaffinity(0) == cores


# Kinds of query


@pytest.fixture(scope="module")
def documents() -> list[dict[str, Any]]:
    choice = random.Random(SEED)
    return [json.loads(feed_benchmark.document(number, *_texts(choice))) for number in range(DOCUMENTS)]


def _texts(choice: random.Random) -> tuple[str, str]:
    return " ".join(choice.choices(WORDS, k=3)), " ".join(choice.choices(WORDS, k=300))


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory, documents: list[dict[str, Any]]) -> Iterator[InProcess]:
    with in_process(tmp_path_factory.mktemp("content"), APPLICATION, documents) as service:
        yield service


def _found(service: InProcess, kind: Kind, text: str) -> dict[str, Any]:
    root: dict[str, Any] = json.loads(service.answer(get(kinds.patient_path(kind, text))))["root"]
    return root


def _named(name: str) -> Kind:
    (kind,) = (kind for kind in (PLAIN, *KINDS) if kind.name.startswith(name) and (name != "OR" or kind is PLAIN))
    return kind


def _count(service: InProcess, name: str, text: str) -> int:
    return int(_found(service, _named(name), text)["fields"]["totalCount"])


def test_our_queries_are_what_their_names_say(service: InProcess, documents: list[dict[str, Any]]) -> None:
    bodies = [document["fields"]["body"].split() for document in documents]
    rare = "green blue"
    either = sum(any(word in body for word in rare.split()) for body in bodies)
    both = sum(all(word in body for word in rare.split()) for body in bodies)
    together = sum(("green", "blue") in itertools.pairwise(body) for body in bodies)
    assert _count(service, "OR", rare) == either
    assert _count(service, "AND", rare) == both
    assert _count(service, "phrase", rare) == together
    for percent in (1, 10, 50):
        passing = sum(document["fields"]["percentile"] < percent for document in documents)
        assert _count(service, f"OR, filter of {percent} %", "red") == passing
    years = [hit["fields"]["year"] for hit in _found(service, _named("OR sorted"), "red")["children"]]
    assert years == sorted((document["fields"]["year"] for document in documents), reverse=True)[: kinds.HITS]


def test_ranking_by_native_rank_finds_the_same_in_another_order(service: InProcess) -> None:
    plain, native = (_found(service, _named(name), "pink grey") for name in ("OR", "OR ranked"))
    assert plain["fields"]["totalCount"] == native["fields"]["totalCount"]
    assert 0 < native["children"][0]["relevance"] < 1
    assert plain["children"][0]["relevance"] != native["children"][0]["relevance"]
    assert len(_found(service, _named("all defaults"), "pink grey")["children"]) == kinds.HITS


def test_words_that_no_document_has_are_not_found(service: InProcess, tmp_path: Path) -> None:
    kind = _named("a query that finds nothing")
    texts = kinds.texts(kind, tmp_path / "no file", 5)
    assert len(set(texts)) == 5
    assert [_found(service, kind, text)["fields"]["totalCount"] for text in texts] == [0] * 5


def test_phrases_stand_in_documents(documents: list[dict[str, Any]], tmp_path: Path) -> None:
    file = tmp_path / "feed.jsonl"
    file.write_text("".join(json.dumps(document) + "\n" for document in documents))
    phrases = kinds.texts(_named("phrase"), file, DOCUMENTS + 2)
    assert phrases[:2] == phrases[-2:]
    assert phrases == kinds.texts(_named("phrase"), file, DOCUMENTS + 2)
    for phrase, document in zip(phrases, documents, strict=False):
        assert f" {phrase} " in f" {document['fields']['body']} "


def test_opensearch_gets_the_text_wherever_it_belongs() -> None:
    for kind in (PLAIN, *KINDS):
        if kind.opensearch is not None:
            parameters = parse_qs(urlsplit(kinds.opensearch_path(kind, 'a "quoted" word')).query)
            search = json.loads(parameters["source"][0])
            assert json.dumps(search).count(json.dumps('a "quoted" word')) == 1
            assert kinds.TEXT not in json.dumps(search)
            assert search["_source"] == list(FIELDS)


def test_hits_are_read_by_their_document_ids() -> None:
    assert kinds.our_hits(b'{"root":{"children":[{"id":"x"},{"id":"y"}]}}') == {"x", "y"}
    assert kinds.our_hits(b'{"root":{"fields":{"totalCount":0}}}') == set()
    assert kinds.lucene_hits(b'{"hits":[{"id":"x"}]}') == {"x"}
    assert kinds.opensearch_hits(b'{"hits":{"hits":[{"_id":"x"}]}}') == {"x"}


# What is reported


def _engines(*names: str) -> list[Engine]:
    server: Any = None
    return [Engine(name, server, kinds.our_path, kinds.our_hits, is_java=name != "ours") for name in names]


@contextmanager
def _answering(monkeypatch: pytest.MonkeyPatch, hits: Mapping[str, list[set[str]]]) -> Iterator[Report]:
    monkeypatch.setattr(http_load, "_hits", lambda engine, kind, texts: hits[engine.name])
    yield Report()


def test_a_kind_that_finds_nothing_of_what_it_should_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    with _answering(monkeypatch, {"ours": [set(), set()]}) as report:
        with pytest.raises(NothingMeasured, match="AND: 0 of 2 queries find something"):
            http_load._check_hits(report, _named("AND"), _engines("ours"), ["a", "b"])
        http_load._check_hits(report, _named("a query that finds nothing"), _engines("ours"), ["a", "b"])
    with (
        _answering(monkeypatch, {"ours": [{"1"}], "Lucene": [set()]}) as report,
        pytest.raises(NothingMeasured, match="AND: Lucene finds nothing"),
    ):
        http_load._check_hits(report, _named("AND"), _engines("ours", "Lucene"), ["a"])
    assert report.remarks == []


def test_the_peers_hits_are_compared_where_the_ranking_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    hits = {"ours": [{"1", "2"}, {"3"}], "Lucene": [{"1", "2"}, {"3", "4"}]}
    with _answering(monkeypatch, hits) as report:
        http_load._check_hits(report, PLAIN, _engines("ours", "Lucene"), ["a", "b"])
        http_load._check_hits(report, _named("OR sorted"), _engines("ours", "Lucene"), ["a", "b"])
    assert report.remarks == ["http_load, OR: of Lucene's hits 75% are ours too"]


def test_the_median_of_rounds_counts_by_figure() -> None:
    rounds = [Measured(rate, 1000, p50, 9, 4) for rate, p50 in ((1, 30), (2, 10), (3, 20))]
    assert http_load._median(rounds) == Measured(2, 1000, 20, 9, 4)
    assert rounds[0].cpu_us == 1000
    assert Measured(1900, 1000, 1, 1, 1, client_us=50).used_cores == pytest.approx(1.995)


def test_each_peer_has_its_ratio() -> None:
    measured = {"ours": Measured(1, 1000, 1, 1, 6), "Lucene": Measured(1, 2000, 1, 1, 3)}
    measured["OpenSearch"] = Measured(1, 400, 1, 1, 2)
    row = http_load._row("w", http_load.figures(PLAIN, 1000)[0], measured)
    assert (row.ours, row.peers, row.ratio) == ("1,000", "Lucene 2,000, OpenSearch 400", "0.50, 2.50")
    assert (row.target, row.met) == ("", None)


def _judged(kind: Kind, documents_count: int, measured: Mapping[str, Measured]) -> dict[str, tuple[str, bool | None]]:
    """Attribute → target, and whether it is met."""
    rows = {each: http_load._row("w", each, measured) for each in http_load.figures(kind, documents_count)}
    return {figure.attribute: (row.target, row.met) for figure, row in rows.items() if row.target}


def test_a_load_beside_lucene_is_judged_when_it_is_large() -> None:
    ours = Measured(1300, 1000, 40, 90, 5, 700, 1300, 30, 60, 20)
    measured = {"ours": ours, "Lucene": Measured(450, 400, 50, 80, 5, 400, 790, 30, 60, 20)}
    rest = {
        "rate": ("≥ 2.5 of Lucene", True), "two_over_one": ("≥ 1.85 times", True), "p99_us": ("≤ 1 of Lucene", False),
    }  # fmt: skip
    assert _judged(PLAIN, 60_000, measured) == {"core_rate": ("≥ 3 of Lucene", False), **rest}
    assert _judged(PLAIN, 500_000, measured) == {"core_rate": ("≥ 2.2 of Lucene", True), **rest}
    assert _judged(PLAIN, 59_999, measured) == {}
    alone = _judged(PLAIN, 60_000, {"ours": replace(ours, two_rate=1200)})
    assert [met for _, met in alone.values()] == [None, None, False, None]


@pytest.mark.parametrize(
    ("name", "attribute", "target", "is_met"),
    [
        *((name, "core_rate", "≥ 2.5 of Lucene", True) for name in ("AND", "phrase", "OR, filter of 50 %")),
        ("all defaults", "cpu_us", "≤ 1 of Lucene", True),
        ("a query that finds nothing", "cpu_us", "≤ 60 µs", False),
    ],
)
def test_each_kind_has_its_target(name: str, attribute: str, target: str, is_met: bool) -> None:
    measured = {"ours": Measured(1, 10_000, 1, 1, 1), "Lucene": Measured(1, 4_000, 1, 1, 1)}
    assert _judged(_named(name), 60_000, measured) == {attribute: (target, is_met)}


def test_it_is_told_where_the_client_runs() -> None:
    assert http_load.shared_cores(1) == "the client shares the server's one core"
    assert http_load.shared_cores(2).endswith("but for two cores and all cores, which it shares")
    assert http_load.shared_cores(8).endswith("but for all cores, which it shares")


def test_a_server_has_the_cores_that_are_counted(monkeypatch: pytest.MonkeyPatch, this_process: Running) -> None:
    every, seen = sorted(os.sched_getaffinity(0)), []

    def loaded(port: int, paths: list[str], connections_count: int, cores: list[int]) -> Load:
        seen.append((sorted(os.sched_getaffinity(0)), list(cores)))
        return Load([1.0], 0.5)

    monkeypatch.setattr(http_load, "load", loaded)
    assert [http_load._rate_on(count, this_process, [], Options()) for count in (1, len(every))] == [2, 2]
    assert seen == [(every[:1], every[1:]), (every, [])]


def test_a_turn_begins_when_all_servers_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    class Server:
        used = iter((1.0, 1.4, 1.6, 1.605))

        def cpu_seconds(self) -> float:
            return next(self.used)

    waited: list[float] = []
    monkeypatch.setattr(time, "sleep", waited.append)
    http_load._wait_for_rest([Server()])  # type: ignore[list-item]
    assert waited == [http_load.REST_SECONDS] * 3
    assert list(Server.used) == []
