"""One small request that asks for far more than its size: what it does to a plain query beside it.

A probe asks the same small query over and over on a connection of its own. Meanwhile each body is sent once. What
counts is the longest time that the probe waited, the memory that the service took, and what it kept.
"""

from __future__ import annotations

import gzip
import itertools
import json
import random
import threading
import time
import urllib.parse
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException
from itertools import chain
from pathlib import Path
from typing import Any, Final

from bench import hostile_numbers, hostile_work
from bench.attack import ANSWER_SECONDS, GZIP, JSON, WHERE, Attack, Siege, query
from bench.corpus import SEED
from bench.documents import anonymous_mb
from bench.hostile_together import COPIES, send_together
from bench.report import Report, Row
from bench.service import Running, data_directory, paperwasp

APPLICATION: Final = Path(__file__).parent / "hostile_application"
MOST_DELAY_MS: Final = 250.0
MOST_BODY_BYTES: Final = 1_000_000
"""Of the random ones. Some of the others have two or three times as much."""
SETTLE_SECONDS: Final = 3.0
"""How long after its answer a body may still show."""
KEPT_SHARE: Final = 0.1
BACK_SECONDS: Final = 30.0
"""So much of the memory before, and no more, may be kept so long after the answer."""
_DOCUMENT: Final = "/document/v1/bench/item/docid/hostile"
_REMOVE: Final = Attack("", "DELETE", _DOCUMENT)
_PROBE: Final = "/search/?" + urllib.parse.urlencode(
    {"yql": "select * from item where title contains 'probe'", "nocache": "true", "timeout": "10s"}
)
_RANK: Final = {"yql": "select * from item where true", "ranking": "products", "timeout": "500ms"}


@dataclass(frozen=True)
class Options:
    """How much is tried."""

    random_count: int = 40
    works: str = ""
    """Only bodies whose name contains this."""


@dataclass(frozen=True)
class Seen:
    """The effect of one request."""

    status: int
    """0: there was no answer."""
    seconds: float
    delay_ms: float
    """The longest that the probe waited."""
    before_mb: float
    peak_mb: float
    after_mb: float
    """Memory before, at the most, and when it was back or had been waited for."""
    back_seconds: float | None
    """How long after the answer, or after what was stored was removed, memory was back; None: not in time."""

    def __str__(self) -> str:
        back = "not back" if self.back_seconds is None else f"back after {self.back_seconds:.0f} s"
        memory = (
            f"+{max(self.peak_mb - self.before_mb, 0):.0f} MB, {self.after_mb - self.before_mb:+.0f} MB kept, {back}"
        )
        return f"{self.delay_ms:.0f} ms; {self.status} after {self.seconds:.2f} s; {memory}"


def run(report: Report, options: Options) -> None:
    """Each body of the list, then random ones."""
    with data_directory() as data, paperwasp(data, APPLICATION) as server:
        _feed(server)
        probe = _Probe(server)
        try:
            alone_ms = probe.longest_ms(*_during(lambda: time.sleep(SETTLE_SECONDS)))
            report.add(Row("a plain query, alone: longest", f"{alone_ms:.0f} ms"))
            kept_from_mb: float | None = None
            every: Iterator[Attack | Siege] = chain(attacks(), hostile_work.attacks(), hostile_numbers.sieges())
            for attack in every:
                if options.works in attack.name:
                    seen = _try(server, probe, attack, kept_from_mb)
                    kept_from_mb = seen.before_mb if attack.keeps else None
                    report.add(_row(attack.name, seen, keeps=attack.keeps))
            if options.works in "together":
                _together(report, server, probe)
            if options.random_count and options.works in "random":
                _random(report, server, probe, options)
        finally:
            probe.stop()


def _random(report: Report, server: Running, probe: _Probe, options: Options) -> None:
    choice = random.Random(SEED)
    seen = [_try(server, probe, random_attack(choice)) for _ in range(options.random_count)]
    worst = max(seen, key=lambda one: one.delay_ms)
    answers = ", ".join(
        f"{status} {sum(s.status == status for s in seen)} times" for status in sorted({s.status for s in seen})
    )
    report.add(_row(f"{options.random_count} random bodies (seed {SEED}), the worst of them; answers {answers}", worst))


def _together(report: Report, server: Running, probe: _Probe) -> None:
    """Several of each request at once."""
    every = [*attacks(), *hostile_work.attacks()]
    seen: dict[str, Seen] = {}
    for attack in every:
        siege = Siege("", lambda server, attack=attack: send_together(server.port, attack))  # type: ignore[misc]
        seen[attack.name] = _try(server, probe, siege, undo=attack.undo)
    name = max(seen, key=lambda each: seen[each].delay_ms)
    late = sum(each.delay_ms >= MOST_DELAY_MS for each in seen.values())
    worst = f"the worst of {len(seen)}, of which {late} are late: {name}"
    report.add(_row(f"{COPIES} at once over HTTP/2, {worst}", seen[name]))
    silent = [each for each, one in seen.items() if one.status == 0]
    assert not silent, silent


def _row(name: str, seen: Seen, *, keeps: bool = False) -> Row:
    """`keeps`: what the attack has deployed takes memory by right."""
    met = seen.delay_ms < MOST_DELAY_MS and seen.status > 0 and (keeps or seen.back_seconds is not None)
    target = f"a query < {MOST_DELAY_MS:g} ms"
    if not keeps:
        target += f"; memory within {KEPT_SHARE:.0%} in {BACK_SECONDS:g} s"
    return Row(f"beside {name}", str(seen), target=target, met=met)


def _feed(server: Running) -> None:
    for number in range(100):
        fields = {"title": f"probe number {number}", "sparse": {"cells": {"a": 1.0, "b": float(number)}}}
        _put_one(server, f"{_DOCUMENT}{number}", json.dumps({"fields": fields}).encode())
    for number, body in hostile_work.documents():
        _put_one(server, f"{_DOCUMENT}-work{number}", body)


def _put_one(server: Running, path: str, body: bytes) -> None:
    status = Attack("", "POST", path, body)(server)
    assert status == 200, status


def _try(
    server: Running,
    probe: _Probe,
    attack: Attack | Siege,
    before_mb: float | None = None,
    undo: Attack | None = None,
) -> Seen:
    """`before_mb`: what memory is to be back to, where that is not what it is now. `undo`: of a siege."""
    before_mb = anonymous_mb(server) if before_mb is None else before_mb
    memory = _Memory(server)
    start = time.perf_counter()
    status = attack(server)
    end = time.perf_counter()
    time.sleep(SETTLE_SECONDS)
    delay_ms = probe.longest_ms(start, time.perf_counter())
    if (undone := undo or attack.undo) is not None:
        assert undone(server) == 200, undone
        end = time.perf_counter()
    back_seconds: float | None = None
    while back_seconds is None and time.perf_counter() - end < BACK_SECONDS:
        if attack.keeps:
            break
        if anonymous_mb(server) <= before_mb * (1 + KEPT_SHARE):
            back_seconds = time.perf_counter() - end
        else:
            time.sleep(1)
    return Seen(status, end - start, delay_ms, before_mb, memory.stop(), anonymous_mb(server), back_seconds)


def _during(work: Callable[[], object]) -> tuple[float, float]:
    start = time.perf_counter()
    work()
    return start, time.perf_counter()


class _Probe:
    """Asks a plain query over and over, on a thread of its own."""

    def __init__(self, server: Running) -> None:
        self._port = server.port
        self._times: list[tuple[float, float]] = []
        """When each query began and ended."""
        self._began = 0.0
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._ask, daemon=True)
        self._thread.start()

    def _ask(self) -> None:
        connection = HTTPConnection("127.0.0.1", self._port, timeout=ANSWER_SECONDS)
        while not self._stopped.wait(0.002):
            self._began = time.perf_counter()
            try:
                connection.request("GET", _PROBE)
                connection.getresponse().read()
            except (OSError, HTTPException):
                connection.close()
            self._times.append((self._began, time.perf_counter()))

    def longest_ms(self, start: float, end: float) -> float:
        """Of the queries that were under way between the two; one that still is counts until now."""
        times = [ended - began for began, ended in list(self._times) if ended >= start and began <= end]
        return 1000 * max([*times, time.perf_counter() - self._began if not times else 0.0])

    def stop(self) -> None:
        self._stopped.set()
        self._thread.join()


class _Memory:
    """The most memory that a process has while this looks."""

    def __init__(self, server: Running) -> None:
        self._server = server
        self._most_mb = 0.0
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()

    def _look(self) -> None:
        while not self._stopped.wait(0.02):
            self._most_mb = max(self._most_mb, anonymous_mb(self._server))

    def stop(self) -> float:
        """Megabytes."""
        self._stopped.set()
        self._thread.join()
        return self._most_mb


# The bodies


def attacks() -> Iterator[Attack]:
    """One of each kind."""
    yield from _documents()
    yield from _updates()
    yield from _queries()


def _documents() -> Iterator[Attack]:
    yield _put("3,000,000 tensor cells, gzip", _joined(b'{"fields":{"sparse":{"cells":[', _cells(3_000_000), b"]}}}"))
    yield _put("2,000,000 tensor cells by label, gzip", _joined(b'{"fields":{"sparse":{', _labels(2_000_000), b"}}}"))
    yield _put(
        "an array of 22,000,000 strings, gzip",
        _joined(b'{"fields":{"tags":[', itertools.repeat(b'""', 22_000_000), b"]}}"),
    )
    yield _put(
        "an array of 900,000 strings, gzip", _joined(b'{"fields":{"tags":[', itertools.repeat(b'"x"', 900_000), b"]}}")
    )
    yield _put(
        "an array of 900,000 numbers, gzip", _joined(b'{"fields":{"numbers":[', itertools.repeat(b"7", 900_000), b"]}}")
    )
    yield _put(
        "a map of 500,000 entries, gzip",
        _joined(b'{"fields":{"properties":{', (b'"%d":"v"' % n for n in range(500_000)), b"}}}"),
    )
    yield _put("a text of 90 MB, gzip", b'{"fields":{"title":"' + b"word " * 18_000_000 + b'"}}')
    yield _put("an unknown field of 20,000,000 arrays, gzip", b'{"fields":{"x":[' + b"[]," * 20_000_000 + b"[]]}}")
    yield _put("20,000,000 opening brackets, gzip", b'{"fields":{"tags":' + b"[" * 20_000_000)
    yield _put("100 MB of white space, gzip", b" " * 100_000_000)
    yield _put("1 GB of zeros, gzip", None)
    cbor = b"\xa1\x66fields\xa1\x64tags\x9a" + (80_000_000).to_bytes(4, "big") + b"\x80" * 80_000_000
    headers = {"Content-Type": "application/cbor", **GZIP}
    yield Attack("80,000,000 empty arrays of CBOR, gzip", "POST", _DOCUMENT, gzip.compress(cbor), headers, _REMOVE)
    words = b" ".join(b"w%x" % n for n in range(150_000))
    plain = {
        "1 MB of opening brackets": b'{"fields":{"tags":' + b"[" * 900_000,
        "1 MB of opening objects": b'{"a":' * 190_000,
        "1 MB of text": b'{"fields":{"title":"' + b"word " * 190_000 + b'"}}',
        "150,000 words": b'{"fields":{"title":"' + words + b'"}}',
    }
    for name, body in plain.items():
        yield Attack(name, "POST", _DOCUMENT, body, JSON, _REMOVE)


def _updates() -> Iterator[Attack]:
    yield _update(
        "add of 3,000,000 cells, gzip", _joined(b'{"fields":{"sparse":{"add":{"cells":[', _cells(3_000_000), b"]}}}}")
    )
    yield _update(
        "add of 300,000 cells, gzip", _joined(b'{"fields":{"sparse":{"add":{"cells":[', _cells(300_000), b"]}}}}")
    )
    modify = b'{"fields":{"sparse":{"modify":{"operation":"add","create":true,"cells":['
    yield _update("modify of 300,000 cells, gzip", _joined(modify, _cells(300_000), b"]}}}}"))
    yield _update(
        "remove of 300,000 cells, gzip",
        _joined(b'{"fields":{"sparse":{"remove":{"addresses":[', (b'{"x":"%d"}' % n for n in range(300_000)), b"]}}}}"),
    )
    paths = (b'"properties{%d}":{"assign":"v"}' % n for n in range(300_000))
    yield _update("300,000 field paths, gzip", _joined(b'{"fields":{', paths, b"}}"))
    paths = (b'"properties{%d}":{"assign":"v"}' % n for n in range(10_000))
    yield _update("10,000 field paths", _joined(b'{"fields":{', paths, b"}}"), squeeze=False)
    deep = b'{"fields":{"tags":{"match":' + b'{"element":0,"match":' * 40_000
    yield _update("match within match, 40,000 deep", deep, squeeze=False)


def _queries() -> Iterator[Attack]:
    cells = ",".join(f'{{"address":{{"x":"{n}"}},"value":1}}' for n in range(400_000))
    yield query("a tensor input of 400,000 cells, gzip", {**_RANK, "input.query(t)": f'{{"cells":[{cells}]}}'})
    labels = ",".join(f"{n}:1" for n in range(1_000_000))
    yield query("a tensor input of 1,000,000 cells, gzip", {**_RANK, "input.query(t)": "{" + labels + "}"})
    labels = ",".join(f"{n}:1" for n in range(300_000))
    yield query("a tensor input of 300,000 cells, gzip", {**_RANK, "input.query(t)": "{" + labels + "}"})
    yield query("9,000 parameters", {f"p{n}": "x" for n in range(9_000)} | _RANK, squeeze=False)
    yield query("1,000,000 parameters, gzip", {f"p{n}": "x" for n in range(1_000_000)})
    numbers = ", ".join(map(str, range(140_000)))
    yield query("in with 140,000 numbers", {"yql": f"{WHERE}numbers in ({numbers})"}, squeeze=False)
    yield query(
        "an or of 9,000 words",
        {"yql": WHERE + " or ".join(f"title contains 'w{n}'" for n in range(9_000))},
        squeeze=False,
    )
    yield query("900,000 words for weakAnd", {"yql": f"{WHERE}userQuery()", "query": "probe " * 150_000}, squeeze=False)
    yield query("10,000 parentheses", {"yql": WHERE + "(" * 10_000 + "true" + ")" * 10_000}, squeeze=False)
    yield query(
        "a regular expression of 60,000 characters",
        {"yql": f"{WHERE}title matches '{'(a?b*){9}' * 6000}'"},
        squeeze=False,
    )
    yield query(
        "grouping 2,000 deep",
        {"yql": f"{WHERE}true | all(" + "group(numbers) each(" * 2_000 + "output(count())" + ")" * 2_001},
        squeeze=False,
    )
    yield query("select as JSON, 100,000 deep", {"select": None}, raw=b'{"select":{"where":' + b'{"not":[' * 100_000)
    yield query("15 MB of a string, gzip", {"yql": f"{WHERE}title contains '{'x' * 15_000_000}'"})
    yield query("15 MB of escapes, gzip", {"yql": "\\u0041" * 2_000_000})
    yield query("a broken body of 15 MB, gzip", {}, raw=b"{'a':" + b"[" * 15_000_000, squeeze=True)
    form = "&".join(f"p{n}=%41" for n in range(1_000_000)).encode()
    yield Attack(
        "a form of 1,000,000 pairs, gzip",
        "POST",
        "/search/",
        gzip.compress(form),
        {"Content-Type": "application/x-www-form-urlencoded", **GZIP},
    )
    yield Attack("an address of 60,000 characters", "GET", "/search/?yql=" + "%41" * 20_000)
    values = " or ".join(f"item.numbers[{n}] == {n}" for n in range(2_000))
    yield Attack(
        "a visit's selection of 2,000 comparisons",
        "GET",
        "/document/v1/?" + urllib.parse.urlencode({"cluster": "items", "selection": values}),
    )


def _put(name: str, body: bytes | None) -> Attack:
    squeezed = _bomb() if body is None else gzip.compress(body)
    return Attack(name, "POST", _DOCUMENT, squeezed, {**JSON, **GZIP}, _REMOVE)


def _update(name: str, body: bytes, squeeze: bool = True) -> Attack:
    headers = {**JSON, **GZIP} if squeeze else JSON
    sent = gzip.compress(body) if squeeze else body
    return Attack(name, "PUT", _DOCUMENT + "?create=true", sent, headers, _REMOVE)


def _bomb() -> bytes:
    """A gzip body of a gigabyte."""
    part = gzip.compress(bytes(10_000_000), 9)
    return part * 90


def _joined(head: bytes, parts: Iterator[bytes], tail: bytes) -> bytes:
    return head + b",".join(parts) + tail


def _cells(count: int) -> Iterator[bytes]:
    """A tensor of few labels, so that it compresses well."""
    return (b'{"address":{"x":"%d"},"value":1}' % (n % 7 if count > 1_000_000 else n) for n in range(count))


def _labels(count: int) -> Iterator[bytes]:
    return (b'"%d":1' % (n % 1000 if count > 1_000_000 else n) for n in range(count))


def random_attack(choice: random.Random) -> Attack:
    """A request of random JSON, compressed or not, for any of the interfaces."""
    content = _random_value(choice, choice.choice((10, 1000, 100_000)))
    target = choice.choice(("put", "update", "search"))
    if target == "search":
        body = json.dumps({**_RANK, choice.choice(("yql", "query", "input.query(t)", "select", "x")): content}).encode()
    else:
        name = choice.choice(("title", "tags", "numbers", "properties", "sparse", "dense", "absent"))
        operation = choice.choice(("assign", "add", "remove", "modify", "match"))
        body = json.dumps({"fields": {name: content if target == "put" else {operation: content}}}).encode()
    squeeze = len(body) > MOST_BODY_BYTES or choice.random() < 0.5
    sent = gzip.compress(body) if squeeze else body
    if choice.random() < 0.2:
        sent = sent[: choice.randrange(len(sent))]
    sent = sent[:MOST_BODY_BYTES]
    method, path = {"put": ("POST", _DOCUMENT), "update": ("PUT", _DOCUMENT), "search": ("POST", "/search/")}[target]
    return Attack("random", method, path, sent, {**JSON, **GZIP} if squeeze else JSON, _REMOVE)


def _random_value(choice: random.Random, size: int) -> Any:
    kinds: tuple[Callable[[], Any], ...] = (
        lambda: [_leaf(choice) for _ in range(size)],
        lambda: {str(n): _leaf(choice) for n in range(size)},
        lambda: {"cells": [{"address": {"x": str(n)}, "value": n} for n in range(size)]},
        lambda: "word " * size,
        lambda: [[_leaf(choice)] * 10 for _ in range(size // 10)],
        lambda: _leaf(choice),
    )
    return choice.choice(kinds)()


def _leaf(choice: random.Random) -> Any:
    return choice.choice((0, 1.5, "x", "", None, True, [], {}, -(10**18), "\ud7ff", "a" * 50))
