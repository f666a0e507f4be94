"""The command of the benchmarks: runs what is asked for and prints one table."""

from __future__ import annotations

import argparse
import sys

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

BENCHMARKS = (
    "top_k",
    "sorting",
    "filters",
    "grouping",
    "grouping_http",
    "ranking",
    "recall",
    "relevance",
    "vectors",
    "own_vectors",
    "embedding",
    "model_evaluation",
    "feed",
    "feed_client",
    "feed_clients",
    "update",
    "documents",
    "front",
    "http_query",
    "http_load",
    "http_load_large",
    "warm_query",
    "large_query",
    "access",
    "hybrid",
    "in_process",
    "beside_feed",
    "start",
    "start_full",
    "memory",
    "deploy",
    "hostile",
)
ON_REQUEST = ("soak", "crashes")
"""What takes too long to be run by default, or needs more than others."""


def main() -> None:
    arguments = _parser().parse_args()
    report, console = Report(), Console(width=arguments.width)
    for name in arguments.only.split(",") if arguments.only else BENCHMARKS:
        if name not in BENCHMARKS + ON_REQUEST:
            sys.exit(f"no benchmark {name!r}; there are {', '.join(BENCHMARKS + ON_REQUEST)}")
        console.print(f"[dim]{name} …[/]")
        try:
            _run(name, report, arguments)
        except NotInstalled as error:
            report.remark(f"{name} is left out: {error}")
        except Exception as error:  # the others still count
            report.fail(f"{name}: {type(error).__name__}: {error}")
    report.show(console)
    sys.exit(1 if report.failures else 0)


def _run(name: str, report: Report, arguments: argparse.Namespace) -> None:
    count = {} if arguments.documents is None else {"documents_count": arguments.documents}
    if name == "top_k":
        top_k.run(report, _top_k_options(arguments))
    elif name == "filters":
        filters.run(report, filters.Options())
    elif name == "grouping":
        grouping.run(report, _grouping_options(arguments))
    elif name == "grouping_http":
        grouping_http.run(report, grouping_http.Options(engines=_grouping_options(arguments).engines, **count))
    elif name == "sorting":
        sorting.run(report, sorting.Options(**count))
    elif name == "ranking":
        ranking.run(report, ranking.Options())
    elif name == "recall":
        recall.run(report, recall.Options(**count))
    elif name == "relevance":
        relevance.run(report, relevance.Options(has_lucene="lucene" in arguments.engines.split(",")))
    elif name == "vectors":
        vectors.run(report, vectors.Options(passes=arguments.passes, works=arguments.works, **count))
    elif name == "own_vectors":
        own_vectors.run(report, own_vectors.Options(**count))
    elif name == "embedding":
        embedding.run(report, arguments.documents or embedding.TEXTS, arguments.passes)
    elif name == "model_evaluation":
        model_evaluation.run(report, model_evaluation.Options(rounds=arguments.passes))
    elif name == "feed":
        feed.run(report, feed.Options(**count))
    elif name == "feed_client":
        feed_client.run(report, feed_client.Options(**count))
    elif name == "feed_clients":
        feed_clients.run(report, feed_clients.Options(**count))
    elif name == "update":
        documents.run_update(report, documents.Options(**count))
    elif name == "documents":
        documents.run_read(report, documents.Options(**count))
    elif name == "front":
        front.run(report, front.Options())
    elif name == "http_query":
        http_query.run(report, http_query.Options(**count))
    elif name == "http_load":
        http_load.run(report, http_load.Options(rounds=arguments.passes, works=arguments.works, **count))
    elif name == "http_load_large":
        large = arguments.documents or http_load.LARGE_DOCUMENTS
        http_load.run_large(report, http_load.Options(large, rounds=arguments.passes))
    elif name == "large_query":
        large_query.run(report, large_query.Options(rounds=arguments.passes, **count))
    elif name == "warm_query":
        warm_query.run(report, warm_query.Options(rounds=arguments.passes, **count))
    elif name == "access":
        access.run(report, access.Options(**count))
    elif name == "hybrid":
        hybrid.run(report, hybrid.Options(passes=arguments.passes, **count))
    elif name == "in_process":
        fed = {} if arguments.documents is None else {"fed_count": arguments.documents}
        in_process.run(report, in_process.Options(**count, **fed))
    elif name == "beside_feed":
        beside_feed.run(report, beside_feed.Options(**count))
    elif name == "soak":
        soak.run(report, soak.Options(minutes=arguments.minutes, rate=arguments.rate, kills=arguments.kills))
    elif name == "crashes":
        crashes.run(report, crashes.Options(arguments.works, arguments.passes, arguments.seed))
    elif name == "deploy":
        deploy.run(report, deploy.Options())
    elif name == "hostile":
        hostile.run(report, hostile.Options(works=arguments.works))
    elif name == "start":
        start.run_empty(report, start.Options())
    elif name == "start_full":
        start.run_full(report, start.Options(**count))
    else:
        start.run_demo(report)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--only", default="", help=f"names separated by commas, of {', '.join(BENCHMARKS + ON_REQUEST)}"
    )
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


def _grouping_options(arguments: argparse.Namespace) -> grouping.Options:
    usual = grouping.Options()
    return grouping.Options(
        rows_count=usual.rows_count if arguments.documents is None else arguments.documents,
        passes=arguments.passes,
        engines="none" if arguments.engines == "none" else usual.engines,
        works=arguments.works,
    )


def _top_k_options(arguments: argparse.Namespace) -> top_k.Options:
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
