"""Whether memory is flat: mixed feed, updates, removes, queries, visits and deployments on a bounded set of keys.

Hostile clients are connected to the same port all the while. At the end every key has what was written last.

It runs only when it is named, since it takes as long as `--minutes` says, an hour by default. The memory
that counts is that of no file (`RssAnon`), sampled every second; each minute has the median of its samples. The soak
ends well if the last twelfth of the time has the memory that the second sixth began with, within 5 percent.

With `--kills N` the service is killed N times, while requests are under way, and started again on what it has left.
After each start every key is read: it has what was acknowledged last. What counts then is the memory at the end of the
second process and of the last one.
"""

from __future__ import annotations

import http.client
import json
import random
import statistics
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from bench.deploy import config_port, deploy_zip, zip_of
from bench.hostile_clients import HostileClients
from bench.report import Report, Row
from bench.service import Running, data_directory, paperwasp

MOST_GROWTH: Final = 0.05
VOCABULARY: Final = 30_000
DEPLOY_SECONDS: Final = 60
_SHARES: Final[tuple[tuple[str, float], ...]] = (
    ("put", 0.40), ("update", 0.20), ("grow", 0.05), ("remove", 0.08), ("search", 0.24), ("get", 0.02), ("visit", 0.01),
)  # fmt: skip
_NEAREST: Final = "{targetHits:10}nearestNeighbor(vector, near)"
_CONDITIONS: Final = (
    "userQuery()",
    "userQuery() and year > 1000",
    "tags contains 'tag 1' or userQuery()",
    "true order by year",
    _NEAREST,
    f"{_NEAREST} and year > 1000",
    f"userQuery() or {_NEAREST}",
)


@dataclass(frozen=True)
class Options:
    minutes: float = 60
    rate: float = 200
    """Operations a second, of all kinds."""
    keys_count: int = 5_000
    seed: int = 7
    kills: int = 0


@dataclass
class _Curve:
    """Samples of memory, in MB."""

    begun: float = field(default_factory=time.monotonic)
    samples: list[tuple[float, float]] = field(default_factory=list)
    """(seconds since the beginning, MB)."""

    def take(self, server: Running) -> None:
        now = time.monotonic() - self.begun
        if not self.samples or now - self.samples[-1][0] >= 1:
            self.samples.append((now, anonymous_mb(server)))

    def median_mb(self, start_seconds: float, end_seconds: float) -> float:
        found = [mb for second, mb in self.samples if start_seconds <= second < end_seconds]
        return statistics.median(found) if found else float("nan")


def run(report: Report, options: Options, show: Callable[[str], None] = print) -> None:
    """Run the soak; `show` is called with a line for every minute, or for every process that is killed."""
    if options.kills:
        _run_with_kills(report, options, show)
        return
    with data_directory() as data, paperwasp(data, None) as server:
        client = _Client(options)
        client.connect(server)
        curve, counts = _Curve(), Counter[str]()
        with HostileClients(server.port, options.seed) as hostile:
            for minute in range(1, round(options.minutes) + 1):
                counts += _work(client, server, curve, minute * 60.0)
                show(f"minute {minute}: {curve.median_mb(60 * (minute - 1), 60 * minute):.1f} MB {dict(client.failed)}")
        report.remark(f"soak: {hostile.connected:,} hostile connections beside it")
        if lost := client.lost():
            report.fail(f"soak: {len(lost)} documents are not as they were written, such as {lost[0]}")
    report.add(Row("work of the soak", ", ".join(f"{count:,} {name}" for name, count in sorted(counts.items()))))
    if client.failed:
        report.fail(f"soak: requests failed: {dict(client.failed)}")
    seconds = 60 * options.minutes
    before = curve.median_mb(seconds / 6, seconds / 4)
    after = curve.median_mb(seconds * 11 / 12, seconds + 60)
    report.add(growth_row(before, after))


def _run_with_kills(report: Report, options: Options, show: Callable[[str], None]) -> None:
    seconds = 60 * options.minutes / (options.kills + 1)
    client, counts, memory = _Client(options), Counter[str](), []
    with data_directory() as data:
        for number in range(options.kills + 1):
            with paperwasp(data, None) as server:
                client.connect(server)
                if lost := client.lost():
                    report.fail(
                        f"soak: after kill {number} {len(lost)} documents are not as written, such as {lost[0]}"
                    )
                with HostileClients(server.port, options.seed + number):
                    curve = _Curve()
                    counts += _until_killed(client, server, curve, seconds)
                memory.append(curve.median_mb(seconds * 2 / 3, seconds + 60))
                failed = dict(client.failed)
                show(f"process {number}: {memory[-1]:.1f} MB, {counts.total():,} operations, failed: {failed}")
        with paperwasp(data, None) as server:
            client.connect(server)
            if lost := client.lost():
                report.fail(f"soak: at the end {len(lost)} documents are not as written, such as {lost[0]}")
    report.add(Row("work of the soak", ", ".join(f"{count:,} {name}" for name, count in sorted(counts.items()))))
    report.add(Row("kills of the soak", f"{options.kills + 1}, {client.checked:,} documents read after them"))
    if client.failed:
        report.fail(f"soak: requests failed: {dict(client.failed)}")
    report.add(
        growth_row(memory[min(1, options.kills)], memory[-1], "memory at the end of the second process → the last")
    )


def _until_killed(client: _Client, server: Running, curve: _Curve, seconds: float) -> Counter[str]:
    """Works for so long, and kills the service, which has no time to do anything, in the middle of it."""
    done: Counter[str] = Counter()
    killer = threading.Timer(seconds, server.process.kill)
    killer.start()
    try:
        client.begin()
        while True:
            done += _work(client, server, curve, time.monotonic() - curve.begun + 1)
    except (http.client.HTTPException, OSError):
        return done
    finally:
        killer.join()
        server.process.wait()


def growth_row(before_mb: float, after_mb: float, work: str = "memory after a sixth of the soak → at its end") -> Row:
    """The verdict."""
    growth = after_mb / before_mb - 1
    shown = f"{before_mb:.0f} MB → {after_mb:.0f} MB ({growth:+.1%})"
    met = abs(growth) <= MOST_GROWTH
    return Row(work, shown, target=f"± {MOST_GROWTH:.0%}", met=met)


def anonymous_mb(server: Running) -> float:
    lines = Path(f"/proc/{server.process.pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("RssAnon:")) / 1000


def _work(client: _Client, server: Running, curve: _Curve, until_seconds: float) -> Counter[str]:
    """Goes on until that many seconds after the beginning; gives what was done."""
    done: Counter[str] = Counter()
    while (now := time.monotonic() - curve.begun) < until_seconds:
        for name in client.due(now):
            done[name] += 1
        curve.take(server)
        time.sleep(0.005)
    return done


class _Client:
    """One connection, one request after the other, at a rate."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._chance = random.Random(options.seed)
        self._done = 0
        self._deployed = 0
        self.checked = 0
        """How many documents were read to see whether they are as written."""
        self.failed: Counter[str] = Counter()
        """By status and kind, of what should not have failed."""
        self._years: dict[str, int | None] = {}
        """By key, what `year` is by now; None: the document is removed. Every put and update changes it."""
        self._under_way: tuple[str, int | None] | None = None
        """The key that is being changed, and what its `year` is then: whether it was done is not known."""

    def connect(self, server: Running) -> None:
        """Asks this service from now on, which is deployed to where it has no application yet."""
        self._server = server
        self._connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=120)
        if not self._years:
            self.deploy(0)

    def begin(self) -> None:
        """What is due is counted from now on."""
        self._done = self._deployed = 0

    def due(self, now: float) -> Iterator[str]:
        """Does what the rate says is due by now, and a deployment every minute."""
        if now >= (self._deployed + 1) * DEPLOY_SECONDS:
            self.deploy(self._deployed + 1)
            yield "deploy"
        names, shares = zip(*_SHARES, strict=True)
        for name in self._chance.choices(names, shares, k=min(50, max(0, int(now * self._options.rate) - self._done))):
            self._done += 1
            getattr(self, f"_{name}")()
            yield name

    def deploy(self, version: int) -> None:
        """Every other version has a field more, and every one another expression."""
        self._deployed = version
        deploy_zip(config_port(self._server), zip_of(_files(version)))

    def _key(self) -> str:
        return f"/document/v1/soak/item/docid/{self._chance.randrange(self._options.keys_count)}"

    def _words(self, count: int) -> str:
        """As frequent as 1/n, about."""
        return " ".join(f"w{int(VOCABULARY ** self._chance.random())}" for _ in range(count))

    def lost(self) -> list[str]:
        """The keys whose documents are not as they were written last. What was under way may be done or not."""
        found = {key: self._read_year(key) for key in self._years}
        self.checked += len(found)
        if self._under_way is not None:
            key, year = self._under_way
            if found.get(key, self._read_year(key)) == year:
                self._years[key] = year
        self._under_way = None
        return [key for key, year in self._years.items() if found.get(key, year) != year]

    def _read_year(self, key: str) -> int | None:
        self._connection.request("GET", key)
        answer = self._connection.getresponse()
        fields = json.loads(answer.read()).get("fields")
        return None if fields is None else int(fields.get("year", 0))

    def _put(self) -> None:
        chance = self._chance
        fields: dict[str, Any] = {
            "title": self._words(6),
            "body": self._words(int(min(2_000, chance.lognormvariate(4.5, 0.8)))),
            "year": chance.randrange(3_000),
            "tags": [f"tag {chance.randrange(10**6)}" for _ in range(int(chance.expovariate(0.2)))],
            "vector": {"values": [round(chance.random(), 4) for _ in range(16)]},
        }
        key = self._key()
        self._change("POST", key, {"fields": fields}, fields["year"])

    def _update(self) -> None:
        key = self._key()
        year = self._years.get(key)
        self._change("PUT", key, {"fields": {"year": {"increment": 1}}}, None if year is None else year + 1)

    def _grow(self) -> None:
        tag = f"tag {self._chance.randrange(10**6)}"
        self._ask("PUT", self._key(), {"fields": {"tags": {"add": [tag]}, "title": {"assign": self._words(5)}}})

    def _remove(self) -> None:
        self._change("DELETE", self._key(), None, None)

    def _change(self, method: str, key: str, body: Any, year: int | None) -> None:
        self._under_way = key, year
        self._ask(method, key, body)
        self._under_way = None
        if method != "PUT" or year is not None:
            self._years[key] = year

    def _get(self) -> None:
        self._ask("GET", self._key(), expected=(200, 404))

    def _search(self) -> None:
        words = self._words(self._chance.randrange(1, 4))
        yql = self._chance.choice(_CONDITIONS)
        profile = self._chance.choice(("default", "text", "closest"))
        query: dict[str, Any] = {"yql": f"select * from item where {yql}", "query": words, "ranking.profile": profile}
        near = [round(self._chance.random(), 4) for _ in range(16)]
        self._ask("POST", "/search/", {**query, "input.query(near)": near, "timeout": "20s", "hits": 10})

    def _visit(self) -> None:
        self._ask("GET", "/document/v1/soak/item/docid/?cluster=items&wantedDocumentCount=200")

    def _ask(self, method: str, path: str, body: Any = None, expected: tuple[int, ...] = (200,)) -> None:
        content = None if body is None else json.dumps(body)
        self._connection.request(method, path, content, {"Content-Type": "application/json"})
        answer = self._connection.getresponse()
        answer.read()
        if answer.status not in expected:
            self.failed[f"{answer.status} {method}"] += 1


def _files(version: int) -> dict[str, str]:
    more = "field more type string { indexing: attribute | summary }" if version % 2 else ""
    schema = f"""schema item {{
  document item {{
    field title type string {{ indexing: index | summary
      index: enable-bm25 }}
    field body type string {{ indexing: index | summary
      index: enable-bm25 }}
    field year type int {{ indexing: attribute | summary
      attribute: fast-search }}
    field tags type array<string> {{ indexing: attribute | summary }}
    field vector type tensor<float>(x[16]) {{ indexing: attribute | index | summary
      attribute {{ distance-metric: angular }} }}
    {more}
  }}
  fieldset default {{ fields: title, body }}
  rank-profile default {{ inputs {{ query(near) tensor<float>(x[16]) }} }}
  rank-profile text inherits default {{ first-phase {{ expression: bm25(title) + {version + 1} * bm25(body) }} }}
  rank-profile closest inherits default {{
    first-phase {{ expression: sum(query(near) * attribute(vector)) }}
  }}
}}
"""
    services = (
        '<services version="1.0"><container id="default" version="1.0"><search/><document-api/></container>'
        '<content id="items" version="1.0"><redundancy>1</redundancy>'
        '<documents><document type="item" mode="index"/></documents>'
        '<nodes><node hostalias="node1" distribution-key="0"/></nodes></content></services>'
    )
    return {"services.xml": services, "schemas/item.sd": schema}
