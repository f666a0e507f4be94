"""Where the CPU time of a query over HTTP goes: its stages one after the other on one thread, without the sockets.

These are the general steps: what a compiled plan answers takes less.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import fmean
from typing import TypeVar

from bench.service import APPLICATION
from paperwasp.application.build import build_model
from paperwasp.application.model import ContentCluster
from paperwasp.application.package import load_package
from paperwasp.base.records import replace
from paperwasp.container.search.binding import ReadyQuery
from paperwasp.container.search.handler import ClusterConfig, SearchConfig, merged
from paperwasp.container.search.parameters import read_parameters
from paperwasp.container.search.prepare import prepare_and_bind
from paperwasp.container.search.rendering import respond
from paperwasp.container.search.request import parameter_pairs
from paperwasp.content.node import ContentNode
from paperwasp.coordination.operation_log import FileOperationLog
from paperwasp.http.messages import Request
from paperwasp.search.features import check_profiles
from paperwasp.search.query import QueryDeadline
from paperwasp.search.search import search
from paperwasp.search.served import ServedSchemas

Result = TypeVar("Result")
STAGES = ("parameters and YQL", "match and rank", "fill the hits", "render")


class NothingMeasured(Exception):
    """There are no documents, or a query finds none: its time would say nothing."""


def layers(data: Path, paths: Sequence[str]) -> dict[str, float]:
    """Mean CPU microseconds of each stage, over the queries of `paths`; the first fifth only warms up.

    `data` is the data directory of a service that has stopped, with the application of the benchmarks in it.
    Errors: NothingMeasured.
    """
    (cluster,) = build_model(load_package(APPLICATION), check_profiles).content_clusters
    with _node(data, cluster) as node:
        config = SearchConfig((ClusterConfig(cluster.id, cluster.schemas),))
        profiles = ServedSchemas()
        times = [_stages(node, config, profiles, path) for path in paths]
    kept = times[len(times) // 5 :]
    return {stage: fmean(values) for stage, values in zip(STAGES, zip(*kept, strict=True), strict=True)}


@contextmanager
def _node(data: Path, cluster: ContentCluster) -> Iterator[ContentNode]:
    """The content node of the service's one application, opened where that service has left it."""
    directories = sorted((data / "content").glob(f"*/{cluster.id}"))
    if len(directories) != 1:
        raise NothingMeasured(f"one content cluster '{cluster.id}' was expected in {data}, not {len(directories)}")
    log = FileOperationLog(directories[0] / "log")
    node = ContentNode(directories[0] / "node", log)
    try:
        node.configure(1, cluster.schemas)
        if not node.reader.view().live_count:
            raise NothingMeasured(f"the content node in {directories[0]} has no documents")
        yield node
    finally:
        node.stop()
        log.close()


def _stages(node: ContentNode, config: SearchConfig, profiles: ServedSchemas, path: str) -> tuple[float, ...]:
    raw_path, _, query = path.partition("?")
    request = Request("GET", raw_path, query)

    def ready() -> ReadyQuery:
        parameters = read_parameters(parameter_pairs(request))
        parameters.presentation.format = "json"
        return prepare_and_bind(config, parameters, time.monotonic_ns())

    found, prepare_us = _timed(ready)
    asked = found.queries[0]
    assert asked.query is not None
    message = replace(asked.query, deadline=QueryDeadline())
    _, rank_us = _timed(
        lambda: search(
            node.reader.view(),
            replace(message, order=replace(message.order, hits=0, offset=message.order.hits)),
            profiles,
        )
    )
    answer, search_us = _timed(lambda: search(node.reader.view(), message, profiles))
    if not answer.total_count:
        raise NothingMeasured(f"the query finds nothing: {path}")
    _, render_us = _timed(lambda: respond(merged(found, [(asked.cluster, answer)]), "json"))
    return prepare_us, rank_us, search_us - rank_us, render_us


def _timed(work: Callable[[], Result]) -> tuple[Result, float]:
    start = time.thread_time_ns()
    result = work()
    return result, (time.thread_time_ns() - start) / 1e3
