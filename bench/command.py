"""The command of the benchmarks: prints each row of what is asked for when it is measured, and one table at the end."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from typing import Any, Final

from rich.console import Console

from bench import (
    access,
    beside_feed,
    crashes,
    deploy,
    documents,
    embedding,
    feed,
    feed_client,
    feed_clients,
    filters,
    front,
    grouping,
    grouping_http,
    hostile,
    http2_kernels,
    http_load,
    http_query,
    hybrid,
    in_process,
    large_query,
    model_evaluation,
    own_vectors,
    ranking,
    recall,
    relevance,
    soak,
    sorting,
    start,
    top_k,
    vectors,
    warm_query,
)
from bench.java_program import NotInstalled
from bench.report import Report

_Arguments = argparse.Namespace
_Run = Callable[[Report, _Arguments], None]


def _count(arguments: _Arguments) -> dict[str, Any]:
    """How many documents are fed, if that was said."""
    return {} if arguments.documents is None else {"documents_count": arguments.documents}


def _run_grouping_http(report: Report, arguments: _Arguments) -> None:
    engines = _grouping_options(arguments).engines
    grouping_http.run(report, grouping_http.Options(engines=engines, **_count(arguments)))


def _run_http_load(report: Report, arguments: _Arguments) -> None:
    options = http_load.Options(rounds=arguments.passes, works=arguments.works, **_count(arguments))
    http_load.run(report, options)


def _run_http_load_large(report: Report, arguments: _Arguments) -> None:
    documents_count = arguments.documents or http_load.LARGE_DOCUMENTS
    http_load.run_large(report, http_load.Options(documents_count, rounds=arguments.passes))


def _run_in_process(report: Report, arguments: _Arguments) -> None:
    fed = {} if arguments.documents is None else {"fed_count": arguments.documents}
    in_process.run(report, in_process.Options(**_count(arguments), **fed))


BENCHMARKS: Final[dict[str, _Run]] = {
    "top_k": lambda report, asked: top_k.run(report, _top_k_options(asked)),
    "sorting": lambda report, asked: sorting.run(report, sorting.Options(**_count(asked))),
    "filters": lambda report, _: filters.run(report, filters.Options()),
    "grouping": lambda report, asked: grouping.run(report, _grouping_options(asked)),
    "grouping_http": _run_grouping_http,
    "ranking": lambda report, _: ranking.run(report, ranking.Options()),
    "recall": lambda report, asked: recall.run(report, recall.Options(**_count(asked))),
    "relevance": lambda report, asked: relevance.run(
        report, relevance.Options(has_lucene="lucene" in asked.engines.split(","))
    ),
    "vectors": lambda report, asked: vectors.run(
        report, vectors.Options(passes=asked.passes, works=asked.works, **_count(asked))
    ),
    "own_vectors": lambda report, asked: own_vectors.run(report, own_vectors.Options(**_count(asked))),
    "embedding": lambda report, asked: embedding.run(report, asked.documents or embedding.TEXTS, asked.passes),
    "model_evaluation": lambda report, asked: model_evaluation.run(
        report, model_evaluation.Options(rounds=asked.passes)
    ),
    "feed": lambda report, asked: feed.run(report, feed.Options(**_count(asked))),
    "feed_client": lambda report, asked: feed_client.run(report, feed_client.Options(**_count(asked))),
    "feed_clients": lambda report, asked: feed_clients.run(report, feed_clients.Options(**_count(asked))),
    "update": lambda report, asked: documents.run_update(report, documents.Options(**_count(asked))),
    "documents": lambda report, asked: documents.run_read(report, documents.Options(**_count(asked))),
    "front": lambda report, _: front.run(report, front.Options()),
    "http2_kernels": lambda report, asked: http2_kernels.run(report, http2_kernels.Options(rounds=asked.passes)),
    "http_query": lambda report, asked: http_query.run(report, http_query.Options(**_count(asked))),
    "http_load": _run_http_load,
    "http_load_large": _run_http_load_large,
    "warm_query": lambda report, asked: warm_query.run(
        report, warm_query.Options(rounds=asked.passes, **_count(asked))
    ),
    "large_query": lambda report, asked: large_query.run(
        report, large_query.Options(rounds=asked.passes, **_count(asked))
    ),
    "access": lambda report, asked: access.run(report, access.Options(**_count(asked))),
    "hybrid": lambda report, asked: hybrid.run(report, hybrid.Options(passes=asked.passes, **_count(asked))),
    "in_process": _run_in_process,
    "beside_feed": lambda report, asked: beside_feed.run(report, beside_feed.Options(**_count(asked))),
    "start": lambda report, _: start.run_empty(report, start.Options()),
    "start_full": lambda report, asked: start.run_full(report, start.Options(**_count(asked))),
    "memory": lambda report, _: start.run_demo(report),
    "deploy": lambda report, _: deploy.run(report, deploy.Options()),
    "hostile": lambda report, asked: hostile.run(report, hostile.Options(works=asked.works)),
}
"""What is run by default, in this order."""
ON_REQUEST: Final[dict[str, _Run]] = {
    "soak": lambda report, asked: soak.run(
        report, soak.Options(minutes=asked.minutes, rate=asked.rate, kills=asked.kills)
    ),
    "crashes": lambda report, asked: crashes.run(report, crashes.Options(asked.works, asked.passes, asked.seed)),
}
"""What takes too long to be run by default, or needs more than others."""
_ALL: Final = BENCHMARKS | ON_REQUEST


def main() -> None:
    arguments = _parser().parse_args()
    names = arguments.only.split(",") if arguments.only else BENCHMARKS
    for name in names:
        if name not in _ALL:
            sys.exit(f"no benchmark {name!r}; there are {', '.join(_ALL)}")
    console = Console(width=arguments.width)
    report = Report(console=console)
    try:
        for name in names:
            _run(name, report, arguments)
    except KeyboardInterrupt:
        report.fail("the run was ended before all was measured")
    report.show()
    sys.exit(1 if report.failures else 0)


def _run(name: str, report: Report, arguments: _Arguments) -> None:
    began = time.monotonic()
    report.say(f"{name} …")
    try:
        _ALL[name](report, arguments)
    except NotInstalled as error:
        report.remark(f"{name} is left out: {error}")
    except Exception as error:  # the others still count
        report.fail(f"{name}: {type(error).__name__}: {error}")
    report.say(f"{name}: {time.monotonic() - began:.0f} s")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help=f"names separated by commas, of {', '.join(_ALL)}")
    parser.add_argument("--engines", default="pisa,tantivy,lucene", help="peers to run beside ours, or none")
    parser.add_argument("--copies", type=int, default=1, help="repeat the corpus, with a rotated vocabulary")
    parser.add_argument(
        "--passes",
        type=int,
        default=3,
        help="runs of each query; the least time counts, of http_load the median; rounds of crashes",
    )
    parser.add_argument("--queries", type=int, default=None, help="queries of each kind; all by default")
    parser.add_argument("--documents", type=int, default=None, help="documents fed, in place of the usual number")
    parser.add_argument("--works", default="", help="only kinds of query, or hostile bodies, whose name contains this")
    parser.add_argument("--encoding", default="block_simdbp", help="PISA's encoding of postings")
    parser.add_argument("--minutes", type=float, default=60, help="how long the soak takes")
    parser.add_argument("--kills", type=int, default=0, help="how often the soak kills the service")
    parser.add_argument("--rate", type=float, default=200, help="operations a second of the soak")
    parser.add_argument("--seed", type=int, default=1, help="of the crashes")
    parser.add_argument("--no-check", action="store_true", help="leave out the comparison of results")
    parser.add_argument("--width", type=int, default=150, help="columns of the table")
    return parser


def _grouping_options(arguments: _Arguments) -> grouping.Options:
    usual = grouping.Options()
    return grouping.Options(
        rows_count=usual.rows_count if arguments.documents is None else arguments.documents,
        passes=arguments.passes,
        engines="none" if arguments.engines == "none" else usual.engines,
        works=arguments.works,
    )


def _top_k_options(arguments: _Arguments) -> top_k.Options:
    return top_k.Options(
        engines=tuple(arguments.engines.split(",")),
        copies=arguments.copies,
        documents_limit=arguments.documents,
        passes=arguments.passes,
        queries_limit=arguments.queries,
        encoding=arguments.encoding,
        check=not arguments.no_check,
        works=arguments.works,
    )
