"""The metrics of a content node, by Vespa's names where it has them.

Everything is read from what the node keeps anyway; only the size of the log asks the system. Any thread.
Vespa: https://docs.vespa.ai/en/reference/operations/metrics/searchnode.html
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from paperwasp.base.measurements import Metric, counted, gauge, metric
from paperwasp.content.node import ContentNode
from paperwasp.content.upkeep.graph_building import unbuilt_graphs
from paperwasp.content.upkeep.resources import FeedGate
from paperwasp.content.views.view import View
from paperwasp.coordination.worker_pool import WorkerPool

_PROTON: Final = "content.proton"
_DOCUMENTDB: Final = "content.proton.documentdb"


def content_figures(node: ContentNode, gate: FeedGate, pool: WorkerPool, queries: int) -> Iterator[Metric]:
    """Every metric of the node. `queries`: how many it was asked."""
    view = node.reader.view()
    yield from _documents(view)
    yield from _sizes(node, gate)
    yield from _feeding(node)
    yield from _graphs(view)
    yield from _resources(node, gate)
    seconds = node.windows.age_seconds or 1.0
    yield counted(f"{_DOCUMENTDB}.matching.queries", queries, queries, seconds)
    yield gauge(f"{_PROTON}.executor.match.queuesize", pool.waiting())


def _documents(view: View) -> Iterator[Metric]:
    for name in sorted(view.layout.types):
        count = view.live_counts.get(name, 0)
        for state in ("active", "ready", "total"):
            yield gauge(f"{_DOCUMENTDB}.documents.{state}", count, documenttype=name)
    yield gauge(f"{_PROTON}.config.generation", view.generation)
    lids = f"{_DOCUMENTDB}.ready.lid_space"
    yield gauge(f"{lids}.lid_limit", view.limit)
    yield gauge(f"{lids}.used_lids", view.live_count)
    yield gauge(f"{lids}.lid_bloat_factor", (view.limit - view.live_count) / view.limit if view.limit else 0.0)


def _sizes(node: ContentNode, gate: FeedGate) -> Iterator[Metric]:
    sizes = node.sizes_bytes()
    memory = "memory_usage.allocated_bytes"
    yield gauge(f"{_DOCUMENTDB}.{memory}", sizes["attributes"] + sizes["index_memory"])
    yield gauge(f"{_DOCUMENTDB}.attribute.{memory}", sizes["attributes"])
    yield gauge(f"{_DOCUMENTDB}.index.{memory}", sizes["index_memory"])
    yield gauge(f"{_DOCUMENTDB}.ready.document_store.disk_usage", sizes["store"])
    yield gauge("content.paperwasp.row_store.disk_usage", sizes["rows"])
    if gate.usage is not None:
        yield gauge(f"{_DOCUMENTDB}.disk_usage", gate.usage.disk.own_bytes)
    log_bytes, operations = node.log_sizes()
    yield gauge(f"{_PROTON}.transactionlog.disk_usage", log_bytes)
    yield gauge(f"{_PROTON}.transactionlog.entries", operations)


def _feeding(node: ContentNode) -> Iterator[Metric]:
    yield gauge(f"{_DOCUMENTDB}.threading_service.master.queuesize", node.operations.waiting())
    node.windows.turn_if_due(node.commits)
    latency, operations = node.commits
    seconds = node.windows.seconds
    yield metric(f"{_DOCUMENTDB}.feeding.commit.latency", latency.values(seconds))
    yield metric(f"{_DOCUMENTDB}.feeding.commit.operations", operations.values(seconds))


def _graphs(view: View) -> Iterator[Metric]:
    building = list(unbuilt_graphs(view))
    yield gauge("content.paperwasp.graphs.building", len(building))
    yield gauge("content.paperwasp.graphs.building_vectors", sum(unbuilt.graph.nodes for _, unbuilt in building))


def _resources(node: ContentNode, gate: FeedGate) -> Iterator[Metric]:
    figures = gate.metrics()
    is_down = float(node.fault.reason is not None)
    blocked = f"{_PROTON}.resource_usage.feeding_blocked"
    figures[blocked] = max(figures[blocked], is_down)
    figures |= {"cluster-controller.up.count": 1.0 - is_down, "cluster-controller.down.count": is_down}
    yield from (gauge(name, value) for name, value in figures.items())
