"""Top-10 by BM25 in process: CPU time a query, engines interleaved pass by pass on one thread.

Every engine in turn answers all queries one after the other, `passes` times in all; a query's time is the least of its
own, which is what a shared machine disturbs least. Each finds the caches as its own queries left them, not as another
engine's or a Java virtual machine's did. PISA answers all queries in one call and pulls them from an iterator: the time
between two pulls is a query's. So its reading of the index at the start of the call is not counted.
Lucene's process answers a query at a time and says what its thread took; its queries run for a while beforehand.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from bench import corpus as corpora
from bench.agreement import agreement
from bench.corpus import Corpus, word_of
from bench.engines import Paperwasp, Pisa, Search, Tantivy
from bench.java_program import NotInstalled
from bench.lucene_peer import Lucene
from bench.report import Report, Row, Times

Words = list[list[str]]
Timed = Callable[[], int]
"""Runs a query and says its nanoseconds of CPU time."""
LEAST_DOCUMENTS = 100_000
"""Of a smaller corpus the calls from Python are most of what is timed; the targets are not for it."""


@dataclass(frozen=True)
class Task:
    """One kind of query. `build` names the engine's method; target: peer → the largest ratio allowed."""

    work: str
    queries: Words
    build: str
    target: dict[str, float]
    percent: int | None = None
    algorithm: str | None = None


@dataclass(frozen=True)
class Options:
    engines: tuple[str, ...] = ("pisa", "tantivy", "lucene")
    copies: int = 1
    documents_limit: int | None = None
    passes: int = 3
    queries_limit: int | None = None
    encoding: str = "block_simdbp"
    check: bool = True
    works: str = ""


def run(report: Report, options: Options) -> None:
    """Adds one row for each kind of query."""
    corpus = corpora.load(options.copies, options.documents_limit)
    report.remark(f"top-k on {corpus.name} documents, {len(corpus.tokens):,} tokens; PISA encoding {options.encoding}")
    ours = Paperwasp(corpus)
    tantivy = Tantivy(corpus) if "tantivy" in options.engines else None
    pisa = Pisa(corpus, options.encoding) if "pisa" in options.engines else None
    if tantivy is not None:
        report.remark(f"tantivy segments: {tantivy.segments_count}; our segment {ours.size_mb:.0f} MB")
    lucene = _lucene(corpus, report) if "lucene" in options.engines else None
    for task in _tasks(corpus, options):
        times = _measure(task, ours, tantivy, pisa, options.passes, lucene)
        target = task.target if corpus.documents_count >= LEAST_DOCUMENTS else {}
        report.add(_row(f"{corpus.name}: {task.work}", times, target))
    if options.check:
        for line in agreement(corpus, ours, tantivy, pisa, lucene):
            report.remark(line)
    if lucene is not None:
        lucene.close()


def _lucene(corpus: Corpus, report: Report) -> Lucene | None:
    try:
        lucene = Lucene(corpus)
    except NotInstalled as error:
        report.remark(str(error))
        return None
    report.remark(f"Lucene segments: {lucene.segments_count}")
    return lucene


def _tasks(corpus: Corpus, options: Options) -> list[Task]:
    short = _words(corpus.queries, options.queries_limit)
    long = _words(corpus.titles, options.queries_limit)
    many = [words for words in short if len(words) > 1]
    pairs = [words[:2] for words in many]
    short_target = {"PISA": 1.0, "tantivy": 0.55, "Lucene": 0.55}
    long_target = {**short_target, "tantivy": 0.35}
    best = {"PISA": 0.9, "tantivy": 0.9, "Lucene": 0.9}
    tasks = [
        Task("OR, queries", short, "any_of", short_target, algorithm="block_max_maxscore"),
        Task("OR, titles", long, "any_of", long_target, algorithm="block_max_maxscore"),
        Task("OR, titles, PISA's idf", long, "any_of_as_pisa", {}, algorithm="block_max_maxscore"),
        Task("AND, queries", many, "all_of", best, algorithm="block_max_ranked_and"),
        Task("phrase of two", pairs, "phrase", best),
        *(Task(f"OR, filter {p} %", short, "filtered", best, p) for p in (1, 10, 50)),
        *(Task(f"OR, filter {p} %, bitmap ready", short, "masked", {}, p) for p in (1, 10, 50)),
    ]
    return [task for task in tasks if options.works in task.work]


def _words(queries: corpora.Queries, limit: int | None) -> Words:
    return [[word_of(t) for t in query] for query in queries[:limit]]


def _measure(
    task: Task, ours: Paperwasp, tantivy: Tantivy | None, pisa: Pisa | None, passes: int, lucene: Lucene | None = None
) -> dict[str, Times]:
    """Least CPU time of each query by engine."""
    searches = {"ours": _searches(ours, task)}
    if tantivy is not None and task.build not in ("masked", "any_of_as_pisa"):
        searches["tantivy"] = _searches(tantivy, task)
    if lucene is not None and task.build != "any_of_as_pisa":
        questions = [getattr(lucene, task.build)(words, *_percent(task)) for words in task.queries]
        lucene.warm(questions)
        searches["Lucene"] = [question.nanoseconds for question in questions]
    with_pisa = pisa is not None and task.algorithm is not None
    names = [*searches, "PISA"] if with_pisa else list(searches)
    least: dict[str, list[int]] = {name: [1 << 62] * len(task.queries) for name in names}
    for number in range(passes + 1):  # the first warms up
        for name in names if number % 2 == 0 else reversed(names):
            if name == "PISA":
                assert pisa is not None and task.algorithm is not None
                spent = _pass_of_pisa(pisa, task.queries, task.algorithm)
            else:
                spent = [search() for search in searches[name]]
            if number > 0:
                least[name] = list(map(min, least[name], spent))
    return {name: Times(values) for name, values in least.items()}


def _searches(engine: Paperwasp | Tantivy, task: Task) -> list[Timed]:
    return [_timed(getattr(engine, task.build)(words, *_percent(task))) for words in task.queries]


def _percent(task: Task) -> tuple[int, ...]:
    return () if task.percent is None else (task.percent,)


def _timed(search: Search) -> Timed:
    def timed() -> int:
        start = time.thread_time_ns()
        search()
        return time.thread_time_ns() - start

    return timed


def _pass_of_pisa(pisa: Pisa, queries: Words, algorithm: str) -> list[int]:
    spent = []

    def pulled() -> Iterator[Sequence[str]]:
        for words in queries:
            start = time.thread_time_ns()
            yield words
            spent.append(time.thread_time_ns() - start)

    pisa.run(pulled(), len(queries), algorithm)
    return spent


def _row(work: str, times: dict[str, Times], target: dict[str, float]) -> Row:
    ours = times["ours"]
    peers = {name: value for name, value in times.items() if name != "ours"}
    ratios = {name: ours.mean_us / value.mean_us for name, value in peers.items()}
    met = (
        all(ratios[name] <= most for name, most in target.items() if name in ratios) if target.keys() & ratios else None
    )
    return Row(
        work,
        str(ours),
        "\n".join(f"{name} {value}" for name, value in peers.items()),
        "\n".join(f"{ratio:.2f}" for ratio in ratios.values()),
        ", ".join(f"≤ {most} of {name}" for name, most in target.items() if name in ratios),
        met,
    )
