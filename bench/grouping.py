"""Grouping the matches of a query by attributes: in process, CPU time of one thread, beside DuckDB and NumPy.

All have the same columns in memory, and one row of ten matches. Ours begins with the bitmap of the matches, DuckDB with
a column of booleans, NumPy with the numbers of the rows. Engines take turns, the least time of several passes counts,
and all must give the same groups. `bench.grouping_http` has the rows that go through the service.
"""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from bench.layers import NothingMeasured
from bench.report import Report, Row
from paperwasp.core import _core
from paperwasp.document.types import DOUBLE, INT, LONG
from paperwasp.errors import InvalidQuery
from paperwasp.search.grouping.binding import Binding, bind_filter, bound_request
from paperwasp.search.grouping.execution import Hits, execute
from paperwasp.search.grouping.expressions import Scope, bind
from paperwasp.search.grouping.language import parse_grouping
from paperwasp.search.grouping.partial import PartialResult
from paperwasp.search.grouping.request_builder import layout_of
from paperwasp.storage.attributes.column import bitmap_of
from paperwasp.storage.attributes.dictionary import StringDictionary
from paperwasp.storage.attributes.numeric import NumericView
from paperwasp.storage.attributes.string import StringView

SHARE: Final = 0.1
"""Of the rows that match."""
NAMES, KINDS, USERS = 1000, 100, 1_000_000
QUANTILES: Final = (0.5, 0.9, 0.99)
MOST_QUANTILE_RANK_ERROR: Final = 0.02
"""How far from the wanted share of the values an approximate quantile may stand."""
MOST_COUNT_ERROR: Final = 0.1
"""Of an approximate count, as a share of the exact one: three standard errors of ours, which is 3.25 %."""

Answer = Sequence[tuple[Any, ...]]
Columns = Mapping[str, NDArray[Any]]


@dataclass(frozen=True)
class Options:
    """`engines`: which of the peers run beside ours; without any, NumPy alone says what is right."""

    rows_count: int = 10_000_000
    passes: int = 5
    engines: str = "duckdb"
    works: str = ""


@dataclass(frozen=True)
class Work:
    """One row of the table: the statement, what it is in SQL, and the same in NumPy."""

    name: str
    statement: str
    read: Callable[[PartialResult], Answer]
    sql: str
    plain: Callable[[Columns], Answer]
    agrees: Callable[[Answer, Answer, Columns], bool]
    most: float | None = None
    """The target: our time as a share of DuckDB's."""


def run(report: Report, options: Options) -> None:
    """One row for each work whose name has `options.works` in it."""
    table = _Table(options.rows_count)
    peer = _DuckDB(table) if options.engines == "duckdb" else None
    works = [work for work in WORKS if options.works in work.name]
    for work in works:
        try:
            _measure(report, work, table, peer, options)
        except InvalidQuery as error:
            report.fail(f"grouping: {work.name}: {error}")
    if not works:
        raise NothingMeasured(f"there is no grouping {options.works!r}")


class _Table:
    """The columns, and which rows match."""

    def __init__(self, count: int) -> None:
        chance = np.random.default_rng(18)
        self.count = count
        self.names = [f"value-{number:04}" for number in range(NAMES)]
        users = chance.integers(-(2**62), 2**62, min(USERS, max(1, count // 10)))
        # A tenth of the users has half of the rows.
        skewed = (chance.random(count) ** 3 * len(users)).astype(np.int64)
        self.columns: dict[str, NDArray[Any]] = {
            "name": chance.integers(0, NAMES, count).astype(np.uint32) + np.uint32(1),
            "kind": chance.integers(0, KINDS, count).astype(np.int32),
            "user": users[skewed],
            "amount": chance.integers(-(10**6), 10**6, count),
            "price": chance.normal(100, 15, count),
        }
        self.lids = np.flatnonzero(chance.random(count) < SHARE).astype(np.uint32)
        if not len(self.lids):
            raise NothingMeasured(f"none of {count} rows matches")
        self.bitmap = bitmap_of(self.lids, count)
        self.matched = {name: column[self.lids] for name, column in self.columns.items()}
        dictionary = StringDictionary()
        dictionary.encode(self.names)
        views = {
            "name": StringView(self.columns["name"], dictionary, None),
            "kind": NumericView(INT, self.columns["kind"], None),
            "user": NumericView(LONG, self.columns["user"], None),
            "amount": NumericView(LONG, self.columns["amount"], None),
            "price": NumericView(DOUBLE, self.columns["price"], None),
        }
        scope = Scope(views)
        self._binding = Binding(
            lambda expression, given: bind(expression, Scope(views, given=given)),
            lambda wanted: bind_filter(wanted, scope),
        )

    def grouped(self, statement: str) -> Callable[[], PartialResult]:
        """What answers a statement that is one request, from the bitmap of the matches on."""
        (operation,) = parse_grouping(statement)
        (request,) = layout_of(operation, 0).requests

        def answer() -> PartialResult:
            lids = _core.bitmap_lids(self.bitmap, self.count)
            return execute(bound_request(request, self._binding), Hits(lids, np.zeros(len(lids))))

        return answer


class _DuckDB:
    """DuckDB with one thread."""

    def __init__(self, table: _Table) -> None:
        duckdb: Any = importlib.import_module("duckdb")
        self._connection = duckdb.connect()
        run = self._connection.execute
        run("SET threads = 1")
        matched = np.zeros(table.count, np.bool_)
        matched[table.lids] = True
        self._connection.register("numbers", {**table.columns, "matched": matched})
        self._connection.register("names", {"code": np.arange(1, NAMES + 1), "text": np.array(table.names, object)})
        run("CREATE TYPE name_enum AS ENUM (SELECT text FROM names ORDER BY text)")
        run(
            "CREATE TABLE items AS SELECT text AS name, text::name_enum AS enum, kind, user AS person, amount, price, "
            "matched FROM numbers JOIN names ON numbers.name = names.code"
        )

    def answer(self, sql: str) -> Answer:
        found: Answer = self._connection.execute(sql).fetchall()
        return found


def _measure(report: Report, work: Work, table: _Table, peer: _DuckDB | None, options: Options) -> None:
    ours = table.grouped(work.statement)
    plain = work.plain(table.matched)
    engines: dict[str, Callable[[], object]] = {"ours": ours, "NumPy": lambda: work.plain(_picked(table))}
    found = {"ours": work.read(ours())}
    if peer is not None:
        engines |= {"DuckDB": lambda: peer.answer(work.sql)}
        found |= {"DuckDB": peer.answer(work.sql)}
        if "name" in work.sql:
            by_code = work.sql.replace("name", "enum")
            engines |= {"DuckDB by codes": lambda: peer.answer(by_code)}
            found |= {"DuckDB by codes": peer.answer(by_code)}
    for name, answer in found.items():
        if not answer or not work.agrees(answer, plain, table.matched):
            raise AssertionError(f"{work.name}: {name} gives {list(islice(answer, 3))}, NumPy {list(islice(plain, 3))}")
    spent = {name: least_ms(engine, 1 if name == "NumPy" else options.passes) for name, engine in engines.items()}
    report.add(_row(f"{work.name}, {len(table.lids):,} of {table.count:,} rows", spent, work.most))


def _picked(table: _Table) -> Columns:
    """The columns of the matches, each read when it is first needed."""
    return _Lazy(table)


class _Lazy(dict[str, NDArray[Any]]):
    def __init__(self, table: _Table) -> None:
        super().__init__()
        self._table = table

    def __missing__(self, name: str) -> NDArray[Any]:
        self[name] = found = self._table.columns[name][self._table.lids]
        return found


def _row(work: str, spent: Mapping[str, float], most: float | None) -> Row:
    ours, peer = spent["ours"], spent.get("DuckDB")
    peers = ", ".join(f"{name} {ms:.1f}" for name, ms in spent.items() if name != "ours")
    if peer is None:
        return Row(work, f"{ours:.1f} ms", peers)
    ratio = ", ".join(f"{ours / ms:.2f}" for name, ms in spent.items() if name != "ours")
    target = "" if most is None else f"≤ {most:g} of DuckDB"
    return Row(work, f"{ours:.1f} ms", peers, ratio, target, None if most is None else ours <= most * peer)


def least_ms(work: Callable[[], object], passes: int) -> float:
    """The least CPU time of the process: an engine may have threads of its own, though it is set to work in one."""
    times = []
    for _ in range(passes):
        start = time.process_time_ns()
        work()
        times.append(time.process_time_ns() - start)
    return min(times) / 1e6


# What the groups are, in each engine's words


def _names_with_counts(result: PartialResult) -> Answer:
    groups = result.levels[1]
    return sorted(zip(_ids(groups), groups.states[0].shown(), strict=True))


def _two_levels(result: PartialResult) -> Answer:
    """(name, kind, sum, average) of the first ten of each."""
    first, second = result.levels[1:]
    names = _ids(first)[:10]
    found = []
    for number, name in enumerate(names):
        rows = np.flatnonzero(second.parents == number)[:10]
        sums, averages = (state.shown() for state in second.states[:2])
        kinds = _ids(second)
        found += [(name, kinds[row], sums[row], averages[row]) for row in rows.tolist()]
    return sorted(found)


def _top_users(result: PartialResult) -> Answer:
    """The counts alone: which of those with the same count are shown differs."""
    return sorted((count,) for count in result.levels[1].states[0].shown()[:100])


def _quantiles_of_kinds(result: PartialResult) -> Answer:
    groups = result.levels[1]
    values = ([each["value"] for each in one] for one in groups.states[0].shown())
    return sorted(zip(_ids(groups), values, strict=True))


def _unique_users(result: PartialResult) -> Answer:
    return [(result.levels[0].states[0].shown()[0],)]


def _ids(groups: Any) -> Sequence[Any]:
    ids = groups.ids
    found: Sequence[Any] = ids.data.tolist() if ids.table is None else ids.table.values_of(ids.data)
    return found


def _plain_names(columns: Columns) -> Answer:
    counts = np.bincount(columns["name"], minlength=NAMES + 1)
    return [(f"value-{code - 1:04}", int(counts[code])) for code in np.flatnonzero(counts).tolist()]


def _plain_two_levels(columns: Columns) -> Answer:
    names, kinds, amounts = columns["name"].astype(np.int64), columns["kind"], columns["amount"]
    sums = np.bincount(names, amounts, NAMES + 1)
    best = sorted(np.flatnonzero(np.bincount(names)).tolist(), key=lambda code: -sums[code])[:10]
    pairs = names * KINDS + kinds
    of_pairs, prices = (np.bincount(pairs, column, (NAMES + 1) * KINDS) for column in (amounts, columns["price"]))
    counts = np.bincount(pairs, minlength=(NAMES + 1) * KINDS)
    found = []
    for code in best:
        own = [pair for pair in range(code * KINDS, (code + 1) * KINDS) if counts[pair]]
        found += [
            (f"value-{code - 1:04}", pair % KINDS, int(of_pairs[pair]), float(prices[pair] / counts[pair]))
            for pair in sorted(own, key=lambda pair: -of_pairs[pair])[:10]
        ]
    return sorted(found)


def _plain_users(columns: Columns) -> Answer:
    _, counts = np.unique(columns["user"], return_counts=True)
    return [(count,) for count in np.sort(counts)[-100:].tolist()]


def _plain_quantiles(columns: Columns) -> Answer:
    kinds, prices = columns["kind"], columns["price"]
    order = np.lexsort((prices, kinds))
    ends = np.searchsorted(kinds[order], np.arange(KINDS + 1))
    ranked = prices[order]
    return [
        (kind, [float(ranked[low + int(share * (high - low - 1))]) for share in QUANTILES])
        for kind, (low, high) in enumerate(zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True))
        if high > low
    ]


def _plain_unique(columns: Columns) -> Answer:
    return [(len(np.unique(columns["user"])),)]


def _same(found: Answer, wanted: Answer, columns: Columns) -> bool:
    """Numbers with a fraction may differ in their last digits, as they do by the order in which they are added."""
    return len(found) == len(wanted) and all(map(_same_row, sorted(found), sorted(wanted)))


def _same_row(one: Sequence[Any], other: Sequence[Any]) -> bool:
    return all(abs(a - b) <= 1e-9 * abs(b) if isinstance(b, float) else a == b for a, b in zip(one, other, strict=True))


def _near_quantiles(found: Answer, wanted: Answer, columns: Columns) -> bool:
    kinds, prices = columns["kind"], columns["price"]
    if [row[0] for row in found] != [row[0] for row in wanted]:
        return False
    for kind, values in found:
        ranked = np.sort(prices[kinds == kind])
        shares = np.searchsorted(ranked, values) / len(ranked)
        if np.abs(shares - np.array(QUANTILES)).max() > MOST_QUANTILE_RANK_ERROR + 1 / len(ranked):
            return False
    return True


def _near_counts(found: Answer, wanted: Answer, columns: Columns) -> bool:
    ((one,),), ((other,),) = found, wanted
    return bool(abs(one - other) <= MOST_COUNT_ERROR * other)


WORKS: Final = (
    Work(
        f"count by a string of {NAMES:,} values",
        "all(group(name) max(1000) each(output(count())))",
        _names_with_counts,
        "SELECT name, count(*) FROM items WHERE matched GROUP BY name",
        _plain_names,
        _same,
        0.8,
    ),
    Work(
        "two levels with sum and avg, top 10 by sum",
        "all(group(name) max(10) precision(10) order(-sum(amount)) each(output(sum(amount), avg(price)) "
        "all(group(kind) max(10) precision(10) order(-sum(amount)) each(output(sum(amount), avg(price))))))",
        _two_levels,
        "WITH pairs AS (SELECT name, kind, sum(amount) AS total, sum(price) AS prices, count(*) AS number FROM items "
        "WHERE matched GROUP BY name, kind), best AS (SELECT name, sum(total) AS total, sum(prices) / sum(number) "
        "FROM pairs GROUP BY name ORDER BY 2 DESC LIMIT 10) SELECT pairs.name, kind, pairs.total::BIGINT, "
        "prices / number FROM pairs JOIN best USING (name) "
        "QUALIFY row_number() OVER (PARTITION BY pairs.name ORDER BY pairs.total DESC) <= 10",
        _plain_two_levels,
        _same,
        1.2,
    ),
    Work(
        "top 100 by count of a long of a million values",
        "all(group(user) max(100) precision(100) order(-count()) each(output(count())))",
        _top_users,
        "SELECT number FROM (SELECT person, count(*) AS number FROM items WHERE matched GROUP BY person "
        "ORDER BY number DESC LIMIT 100)",
        _plain_users,
        _same,
        1.2,
    ),
    Work(
        f"three quantiles in {KINDS} groups",
        f"all(group(kind) max(1000) each(output(quantiles([{', '.join(map(str, QUANTILES))}], price))))",
        _quantiles_of_kinds,
        f"SELECT kind, approx_quantile(price, {list(QUANTILES)}) FROM items WHERE matched GROUP BY kind ORDER BY kind",
        _plain_quantiles,
        _near_quantiles,
        1.2,
    ),
    Work(
        "unique values of a long of a million",
        "all(group(user) output(count()))",
        _unique_users,
        "SELECT approx_count_distinct(person) FROM items WHERE matched",
        _plain_unique,
        _near_counts,
        1.2,
    ),
)  # fmt: skip
