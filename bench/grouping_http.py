"""Grouping through the service: what a request costs the server, beside DuckDB's grouping alone, and without groups.

The documents have short texts, all with the word "common", a tenth each with "left" and "right". Facets are measured
when half of the documents are fed. CPU time of all the server's threads, the least of the passes.
"""

from __future__ import annotations

import importlib
import json
import urllib.parse
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from bench.connection import Connection
from bench.corpus import CACHE, SEED
from bench.feed import feed
from bench.grouping import least_ms
from bench.layers import NothingMeasured
from bench.report import Report, Row
from bench.service import Running, data_directory, paperwasp

APPLICATION: Final = Path(__file__).parent / "grouping_application"
WORDS: Final = 8164
TOP: Final = 1000
FACETS: Final = {"color": 20, "maker": 300, "year": 40}
"""Attribute → how many values it has."""
FACET_GROUPS: Final = 20
PROFILES: Final = ("unranked", "default")
"""Without scores, and by bm25 of all that match: a group has the relevance of its best hit."""
MOST_OF_DUCKDB, MOST_OF_QUERY = 1.0, 1.3


@dataclass(frozen=True)
class Options:
    documents_count: int = 1_000_000
    queries_count: int = 20
    passes: int = 5
    engines: str = "duckdb"


@dataclass(frozen=True)
class Documents:
    """What the documents have, by number."""

    words: Sequence[str]
    facets: dict[str, Sequence[Any]]
    bodies: Sequence[str]


def run(report: Report, options: Options) -> None:
    documents = made(options.documents_count)
    half = options.documents_count // 2
    with data_directory() as data:
        for count, measure in ((half, _facets), (options.documents_count, _top)):
            with paperwasp(data, APPLICATION) as server:
                feed(server, _file(documents, 0 if count == half else half, count))
            with paperwasp(data, None) as server:  # documents are flushed
                measure(report, server, documents, count, options)


def made(count: int) -> Documents:
    """Some documents, always the same."""
    chance = np.random.default_rng(SEED)
    # Frequent values have a hundred times as many documents as rare ones.
    shares = 1 / (np.arange(WORDS) + WORDS / 100)
    numbers = chance.choice(WORDS, count, p=shares / shares.sum())
    has = chance.random((2, count)) < 0.1
    fillers = chance.integers(0, 5000, (count, 3)).tolist()
    bodies = [
        " ".join(["common", *(word for word, is_there in (("left", left), ("right", right)) if is_there)])
        + "".join(f" filler{number}" for number in own)
        for left, right, own in zip(*has.tolist(), fillers, strict=True)
    ]
    facets: dict[str, Sequence[Any]] = {
        name: [number if name == "year" else f"{name}{number}" for number in chance.integers(0, size, count).tolist()]
        for name, size in FACETS.items()
    }
    return Documents([f"word{number:04}" for number in numbers.tolist()], facets, bodies)


def _file(documents: Documents, start: int, end: int) -> Path:
    CACHE.mkdir(exist_ok=True)
    path = CACHE / "feed-grouping.jsonl"
    with path.open("w", encoding="utf-8") as file:
        for number in range(start, end):
            fields = {"body": documents.bodies[number], "word": documents.words[number]}
            fields |= {name: values[number] for name, values in documents.facets.items()}
            file.write(json.dumps({"put": f"id:bench:entry::{number}", "fields": fields}) + "\n")
    return path


def top_path(profile: str) -> str:
    """The request for the words of all documents."""
    grouping = f"all(group(word) max({TOP}) precision({TOP}) order(-count()) each(output(count())))"
    return _path(f'select * from entry where body contains "common" | {grouping}', 0, profile)


def facets_path(*, has_facets: bool) -> str:
    """The request for a page of documents with two words."""
    yql = 'select * from entry where body contains "left" and body contains "right"'
    lists = (f"all(group({name}) max({FACET_GROUPS}) order(-count()) each(output(count())))" for name in FACETS)
    return _path(f"{yql} | all({' '.join(lists)})" if has_facets else yql, 10)


def _path(yql: str, hits: int, profile: str = "default") -> str:
    parameters = {"yql": yql, "hits": str(hits), "ranking": profile, "nocache": "true", "timeout": "20s"}
    return "/search/?" + urllib.parse.urlencode(parameters)


def counts_of(answer: bytes) -> Iterator[list[tuple[str, int]]]:
    """The value and count of each group, list by list."""
    children = json.loads(answer)["root"].get("children", [])
    for root in (child for child in children if child["id"].startswith("group:root")):
        for groups in root["children"]:
            yield [(group["value"], group["fields"]["count()"]) for group in groups.get("children", [])]


def check(found: list[tuple[str, int]], values: Sequence[Any], most: int) -> None:
    """Errors: AssertionError unless these are `most` of the most frequent values, with how often they are there."""
    counts = Counter(map(str, values))
    wanted = [count for _, count in counts.most_common(most)]
    if not found or [count for _, count in found] != wanted or any(counts[value] != count for value, count in found):
        raise AssertionError(f"groups are {found[:3]}, the most frequent values have {wanted[:3]}")


def _facets(report: Report, server: Running, documents: Documents, count: int, options: Options) -> None:
    connection = Connection(server.port)
    paths = [facets_path(has_facets=has) for has in (False, True)]
    own = [number for number in range(count) if " left right" in documents.bodies[number]]
    for (name, values), found in zip(documents.facets.items(), counts_of(connection.answer(paths[1])), strict=True):
        check(found, [values[number] for number in own], min(FACET_GROUPS, FACETS[name]))
    total = int(json.loads(connection.answer(paths[0]))["root"]["fields"]["totalCount"])
    if not own or total != len(own):
        raise NothingMeasured(f"{total} documents are found, {len(own)} have both words")
    alone, faceted = _least_us(server, connection, paths, options)
    connection.close()
    report.add(
        Row(
            f"query of two words with three facets of {FACET_GROUPS}, over HTTP, {total:,} of {count:,} documents",
            f"{faceted:.0f} µs",
            f"without facets {alone:.0f} µs",
            f"{faceted / alone:.2f}",
            f"≤ {MOST_OF_QUERY:g} of the query alone",
            faceted <= MOST_OF_QUERY * alone,
        )
    )


def _top(report: Report, server: Running, documents: Documents, count: int, options: Options) -> None:
    connection = Connection(server.port)
    paths = [top_path(profile) for profile in PROFILES]
    for path in paths:
        (found,) = counts_of(connection.answer(path))
        check(found, documents.words, TOP)
    times_us = _least_us(server, connection, paths, options)
    connection.close()
    peer = _duckdb_ms(documents, options) if options.engines == "duckdb" else None
    values_count = len(set(documents.words))
    for profile, spent_us in zip(PROFILES, times_us, strict=True):
        ours = spent_us / 1e3
        work = f"top {len(found):,} of {values_count:,} values with the query, over HTTP, {count:,} documents"
        report.add(
            Row(
                f"{work}, rank profile {profile}",
                f"{ours:.1f} ms",
                "" if peer is None else f"DuckDB's grouping alone {peer:.1f} ms",
                "" if peer is None else f"{ours / peer:.2f}",
                f"≤ {MOST_OF_DUCKDB:g} of DuckDB",
                None if peer is None else ours <= MOST_OF_DUCKDB * peer,
            )
        )


def _least_us(server: Running, connection: Connection, paths: Sequence[str], options: Options) -> list[float]:
    """The server's CPU time of a request of each path, which take turns."""
    found: list[list[float]] = [[] for _ in paths]
    for _ in range(options.passes):
        for times, path in zip(found, paths, strict=True):
            before = server.cpu_seconds()
            for _ in range(options.queries_count):
                connection.answer(path)
            times.append((server.cpu_seconds() - before) / options.queries_count * 1e6)
    return [min(times) for times in found]


def _duckdb_ms(documents: Documents, options: Options) -> float:
    duckdb: Any = importlib.import_module("duckdb")
    connection = duckdb.connect()
    connection.execute("SET threads = 1")
    connection.register("given", {"word": np.array(documents.words, object)})
    connection.execute("CREATE TABLE items AS SELECT word FROM given")
    sql = f"SELECT word, count(*) FROM items GROUP BY word ORDER BY 2 DESC LIMIT {TOP}"
    check([tuple(row) for row in connection.execute(sql).fetchall()], documents.words, TOP)
    return least_ms(lambda: connection.execute(sql).fetchall(), options.passes)
