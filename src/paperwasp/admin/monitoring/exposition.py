"""Metrics in the text form that Prometheus reads, by prometheus-client.

    Vespa's metrics      one value a name (`http_status_2xx_rate`), untyped, as Vespa's metrics proxy shows them
    histograms           `paperwasp_request_duration_seconds`, by kind of request: for percentiles over several services
    of the process       prometheus-client's own `process_…` and `python_gc_…`

Nothing is kept between two readings: every one makes families of the numbers that there are.
Vespa: https://docs.vespa.ai/en/reference/api/prometheus-v1.html, PrometheusUtil.java (metrics-proxy)
Format: https://prometheus.io/docs/instrumenting/exposition_formats/
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from prometheus_client import CollectorRegistry, GCCollector, ProcessCollector, generate_latest
from prometheus_client.core import HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from paperwasp.base.measurements import Latencies
from paperwasp.base.patterns import compile_later

_NOT_IN_NAMES: Final = compile_later("[^a-zA-Z0-9_]")
BOUNDS_MS: Final = (0.1, 0.25, 0.5, 1, 2.5, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10_000, 25_000, 50_000)
"""Of the buckets of histograms; a part of those of `base.measurements`."""
HISTOGRAM: Final = "paperwasp_request_duration_seconds"

Sample = tuple[str, Mapping[str, str], float]
"""A name, which may hold dots and hyphens, labels, which may too, and the value."""


class _Families(Collector):
    """Families that are there already."""

    def __init__(self, families: Iterable[Metric]) -> None:
        self._families = families

    def collect(self) -> Iterable[Metric]:
        return self._families


_PROCESS: Final = (ProcessCollector(registry=None), GCCollector(registry=CollectorRegistry()))


def exposition(
    samples: Iterable[Sample], time_seconds: int | None, histograms: Mapping[str, Latencies] | None = None
) -> bytes:
    """The samples with the time that they are of, and where `histograms` are given (by kind of request), these and the
    metrics of the process."""
    return generate_latest(_Families(list(_families(samples, time_seconds, histograms))))


def _families(
    samples: Iterable[Sample], time_seconds: int | None, histograms: Mapping[str, Latencies] | None
) -> Iterator[Metric]:
    untyped: dict[str, Metric] = {}
    for name, labels, value in samples:
        shown = sanitized(name)
        family = untyped.get(shown) or untyped.setdefault(shown, Metric(shown, described(shown), "unknown"))
        family.add_sample(shown, {sanitized(key): text for key, text in labels.items()}, value, time_seconds)
    yield from untyped.values()
    if histograms is None:
        return
    yield histogram_family(histograms)
    for collector in _PROCESS:
        yield from collector.collect()


def histogram_family(histograms: Mapping[str, Latencies]) -> Metric:
    """The latencies of the kinds of requests, in seconds."""
    family = HistogramMetricFamily(HISTOGRAM, "Time from the head of a request to its whole answer", labels=["kind"])
    for kind, latencies in histograms.items():
        counts = latencies.cumulative(BOUNDS_MS)
        buckets = [(str(bound / 1000), count) for bound, count in zip(BOUNDS_MS, counts, strict=True)]
        family.add_metric([kind], [*buckets, ("+Inf", sum(latencies.buckets))], latencies.total / 1000)
    return family


def sanitized(name: str) -> str:
    """The name as Prometheus takes it: all but letters, digits and `_` become `_`."""
    return _NOT_IN_NAMES.sub("_", name)


# What each metric is, in a sentence: the `# HELP` lines of Prometheus's text form.


_VALUES: Final = {
    "average": "average of the last minutes",
    "sum": "sum since the start of the process, or the gauge now",
    "count": "how many since the start of the process",
    "rate": "a second, in the last minutes",
    "last": "the last value",
    "max": "greatest of the last minutes",
    "min": "least of the last minutes",
    "95percentile": "95th percentile of the last minutes",
    "99percentile": "99th percentile of the last minutes",
}
"""The ending of a name → what the value is of the metric."""
_ENDING: Final = compile_later(rf"_({'|'.join(_VALUES)})")
_CODE: Final = compile_later(r"http_status_([1-5])xx|error_(\w+)")

_TEXTS: Final = {
    "application_generation": "Generation of the application that is served",
    "cluster-controller.down.count": "Content clusters that take no operations",
    "cluster-controller.resource_usage.nodes_above_limit": "Content nodes whose disk or memory is too full to be fed",
    "cluster-controller.up.count": "Content clusters that take operations",
    "configserver.activeApplications": "Applications that are deployed",
    "configserver.failedRequests": "Requests to the config server that failed",
    "configserver.generation": "Generation of each application",
    "configserver.latency": "Milliseconds of requests to the config server",
    "configserver.requests": "Requests to the config server",
    "content.paperwasp.graphs.building": "Graphs over vectors that are being built",
    "content.paperwasp.graphs.building_vectors": "Vectors in the graphs that are being built",
    "content.paperwasp.row_store.disk_usage": "Bytes on disk of documents by row",
    "content.proton.config.generation": "Generation of the application that the content cluster serves",
    "content.proton.documentdb.attribute.memory_usage.allocated_bytes": "Bytes in memory of attributes",
    "content.proton.documentdb.disk_usage": "Bytes on disk of the content cluster",
    "content.proton.documentdb.documents.active": "Documents that are searched",
    "content.proton.documentdb.documents.ready": "Documents that are indexed",
    "content.proton.documentdb.documents.total": "Documents",
    "content.proton.documentdb.feeding.commit.latency": "Seconds until a batch of operations is durable and visible",
    "content.proton.documentdb.feeding.commit.operations": "Operations of a batch",
    "content.proton.documentdb.index.memory_usage.allocated_bytes": "Bytes in memory of the text index",
    "content.proton.documentdb.matching.queries": "Queries to the content cluster",
    "content.proton.documentdb.memory_usage.allocated_bytes": "Bytes in memory of the content cluster",
    "content.proton.documentdb.ready.document_store.disk_usage": "Bytes on disk of documents",
    "content.proton.documentdb.ready.lid_space.lid_bloat_factor": "Share of the rows that hold no document",
    "content.proton.documentdb.ready.lid_space.lid_limit": "Rows",
    "content.proton.documentdb.ready.lid_space.used_lids": "Rows that hold a document",
    "content.proton.documentdb.threading_service.master.queuesize": "Operations that wait for the writer",
    "content.proton.executor.match.queuesize": "Queries that wait for a thread",
    "content.proton.resource_usage.disk": "Share of the disk that is in use",
    "content.proton.resource_usage.feeding_blocked": "1 where operations are refused since disk or memory is too full",
    "content.proton.resource_usage.memory": "Share of the memory that is in use",
    "content.proton.transactionlog.disk_usage": "Bytes on disk of the operation log",
    "content.proton.transactionlog.entries": "Operations in the log since the last checkpoint",
    "degraded_queries": "Queries that were answered from a part of the documents",
    "documents_covered": "Documents that a query searched",
    "embedder.latency": "Milliseconds of calls of embedders",
    "embedder.request.count": "Calls of embedders",
    "empty_results": "Queries that found nothing",
    "failed_queries": "Queries that failed",
    "feed.latency": "Seconds of puts, updates and removes",
    "feed.operations": "Puts, updates and removes",
    "handled.latency": "Milliseconds of requests, by handler",
    "handled.requests": "Requests, by handler",
    "hits_per_query": "Hits that a query returned",
    "http.request.latency": "Milliseconds of requests",
    "httpapi_condition_not_met": "Document operations whose condition did not hold",
    "httpapi_failed": "Document operations that failed",
    "httpapi_failed_insufficient_storage": "Document operations that were refused since disk or memory is too full",
    "httpapi_failed_timeout": "Document operations that took too long",
    "httpapi_failed_unknown": "Document operations that failed otherwise",
    "httpapi_latency": "Milliseconds of document operations",
    "httpapi_not_found": "Document operations on documents that are not there",
    "httpapi_num_operations": "Document operations",
    "httpapi_num_puts": "Puts",
    "httpapi_num_removes": "Removes",
    "httpapi_num_updates": "Updates",
    "httpapi_parse_error": "Document operations that could not be read",
    "httpapi_queued_bytes": "Bytes of the document operations that wait for room",
    "httpapi_queued_operations": "Document operations that wait for room",
    "httpapi_succeeded": "Document operations that succeeded",
    "in_service": "1 where the container serves an application",
    "inference.pending": "Evaluations of models that wait or run",
    "jdisc.gc.count": "Collections of garbage",
    "jdisc.gc.ms": "Milliseconds of collections of garbage",
    "jdisc.http.latency": "Milliseconds of requests",
    "jdisc.http.request.content_size": "Bytes of a request's body",
    "jdisc.http.requests": "Requests",
    "jdisc.open_file_descriptors": "Files and sockets that are open",
    "jdisc.thread_pool.size": "Threads of a pool",
    "jdisc.thread_pool.work_queue.size": "What waits for a thread of a pool, or is done by one",
    "mem.heap.free": "Bytes that the process could still allocate",
    "mem.heap.total": "Bytes that the process could allocate in all",
    "mem.heap.used": "Bytes that the process has allocated",
    "mem.native.used": "Bytes of the process that are in memory",
    "paperwasp.access_log.lost_lines": "Lines that are missing in the access log",
    "paperwasp.prepared_queries.elements": "Prepared queries that are kept",
    "paperwasp.search_cache.elements": "Answers that are kept",
    "paperwasp.search_cache.hits": "Queries that were answered from kept answers",
    "paperwasp.search_cache.lookups": "Queries whose answer may have been kept",
    "paperwasp.search_cache.memory_usage": "Bytes of the answers that are kept",
    "queries": "Queries",
    "query_latency": "Milliseconds of queries",
    "reindexing.progress": "Share of the documents that are reindexed",
    "serverBytesReceived": "Bytes that came over connections",
    "serverBytesSent": "Bytes that went over connections",
    "serverNumConnections": "Connections that were opened",
    "serverNumOpenConnections": "Connections that are open",
    "totalhits_per_query": "Documents that match a query",
}
_BY_SHOWN_NAME: Final = {name.replace(".", "_").replace("-", "_"): text for name, text in _TEXTS.items()}


def described(shown: str) -> str:
    """Describe the value of this name for Prometheus: its metric, and its ending. "" for a metric that
    has no text."""
    if shown.endswith("_status"):
        return "1 while the service is up"
    found = _ENDING.fullmatch(shown, shown.rfind("_"))
    name = shown[: found.start()] if found else shown
    text = _BY_SHOWN_NAME.get(name) or _of_code(name)
    return f"{text}; {_VALUES[found[1]]}" if text and found else text


def _of_code(name: str) -> str:
    found = _CODE.fullmatch(name)
    if found is None:
        return ""
    if found[1]:
        return f"Answers with a status of {found[1]}00 to {found[1]}99"
    return f"Queries whose first error is {found[2]}"
