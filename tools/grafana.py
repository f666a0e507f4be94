"""`python -m tools.grafana` writes the dashboard for Grafana, which is shipped with the package.

A test compares the file with what is written here, and each name in the expressions with what a service reports.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

FILE: Final = Path(__file__).parent.parent / "src" / "paperwasp" / "admin" / "monitoring" / "grafana.json"
_SOURCE: Final = {"type": "prometheus", "uid": "${datasource}"}
_SELECTED: Final = 'job="$job",instance=~"$instance"'
_COLUMNS: Final = 24
_WIDTH, _HEIGHT = 8, 8

Query = tuple[str, str]
"""An expression, in which `$s` are the labels of the chosen service, and the legend."""
Panel = tuple[str, str, Sequence[Query]]
"""Title, unit and queries."""


def _percentiles(kinds: str) -> Sequence[Query]:
    name = "paperwasp_request_duration_seconds_bucket"
    return [
        (f'histogram_quantile({share}, sum by (le, kind) (rate({name}{{$s,kind=~"{kinds}"}}[$__rate_interval])))',
         f"{{{{kind}}}} p{int(share * 100)}")
        for share in (0.5, 0.95, 0.99)
    ]  # fmt: skip


def _rate(name: str, legend: str, by: str = "", matching: str = "") -> Query:
    grouped = f"sum by ({by}) " if by else "sum "
    return f"{grouped}(rate({name}{{$s{matching}}}[$__rate_interval]))", legend


def _gauge(name: str, legend: str, by: str = "") -> Query:
    grouped = f"sum by ({by}) " if by else "sum "
    return f"{grouped}({name}{{$s}})", legend


_PROTON: Final = "content_proton_documentdb"
_COMMIT: Final = f"{_PROTON}_feeding_commit"
ROWS: Final[Sequence[tuple[str, Sequence[Panel]]]] = (
    (
        "Requests",
        (
            ("Requests per second", "reqps", [_rate("paperwasp_request_duration_seconds_count", "{{kind}}", "kind")]),
            ("Answers by status", "reqps", [
                _rate(f"http_status_{first}xx_count", f"{first}xx {{{{requestType}}}}", "requestType")
                for first in (2, 4, 5)
            ]),
            ("Errors, share of answers", "percentunit", [
                ("sum (rate(http_status_5xx_count{$s}[$__rate_interval])) / "
                 "sum (rate(http_request_latency_count{$s}[$__rate_interval]))", "5xx"),
            ]),
        ),
    ),
    (
        "Queries",
        (
            ("Latency of queries", "s", _percentiles("query")),
            ("Queries per second", "reqps", [
                _rate("queries_count", "queries"),
                _rate("failed_queries_count", "failed"),
                _rate("degraded_queries_count", "degraded"),
                _rate("empty_results_count", "without hits"),
            ]),
            ("Hits per query", "short", [
                ("sum (rate(totalhits_per_query_sum{$s}[$__rate_interval])) / "
                 "sum (rate(totalhits_per_query_count{$s}[$__rate_interval]))", "all that match"),
                ("sum (rate(hits_per_query_sum{$s}[$__rate_interval])) / "
                 "sum (rate(hits_per_query_count{$s}[$__rate_interval]))", "shown"),
            ]),
            ("Answers that were kept, share of lookups", "percentunit", [
                ("sum (rate(paperwasp_search_cache_hits_last{$s}[$__rate_interval])) / "
                 "sum (rate(paperwasp_search_cache_lookups_last{$s}[$__rate_interval]))", "found"),
            ]),
            ("Queries that wait for a thread", "short", [
                _gauge("content_proton_executor_match_queuesize_last", "{{clusterid}}", "clusterid"),
            ]),
        ),
    ),
    (
        "Documents",
        (
            ("Latency of operations", "s", _percentiles("put|update|remove|get")),
            ("Operations per second", "ops", [
                _rate("feed_operations_count", "{{operation}} {{status}}", "operation, status"),
            ]),
            ("Operations that failed, per second", "ops", [_rate("httpapi_failed_count", "failed")]),
            ("Operations that wait", "short", [
                _gauge("httpapi_queued_operations_last", "for room, in containers"),
                _gauge(f"{_PROTON}_threading_service_master_queuesize_last", "for the writer of {{clusterid}}",
                       "clusterid"),
            ]),
            ("Commits", "s", [
                (f"sum by (clusterid) (rate({_COMMIT}_latency_sum{{$s}}[$__rate_interval])) / "
                 f"sum by (clusterid) (rate({_COMMIT}_latency_count{{$s}}[$__rate_interval]))", "{{clusterid}}"),
            ]),
            ("Operations in a commit", "short", [
                (f"sum by (clusterid) (rate({_COMMIT}_operations_sum{{$s}}[$__rate_interval])) / "
                 f"sum by (clusterid) (rate({_COMMIT}_operations_count{{$s}}[$__rate_interval]))", "{{clusterid}}"),
            ]),
        ),
    ),
    (
        "Content",
        (
            ("Documents", "short", [_gauge(f"{_PROTON}_documents_active_last", "{{documenttype}}", "documenttype")]),
            ("Memory of documents", "bytes", [
                _gauge(f"{_PROTON}_attribute_memory_usage_allocated_bytes_last", "attributes {{clusterid}}",
                       "clusterid"),
                _gauge(f"{_PROTON}_index_memory_usage_allocated_bytes_last", "index {{clusterid}}", "clusterid"),
            ]),
            ("Disk", "bytes", [
                _gauge(f"{_PROTON}_disk_usage_last", "all of {{clusterid}}", "clusterid"),
                _gauge(f"{_PROTON}_ready_document_store_disk_usage_last", "documents {{clusterid}}", "clusterid"),
                _gauge("content_proton_transactionlog_disk_usage_last", "operation log {{clusterid}}", "clusterid"),
            ]),
            ("Use of the machine", "percentunit", [
                ("max (content_proton_resource_usage_disk_last{$s})", "disk"),
                ("max (content_proton_resource_usage_memory_last{$s})", "memory"),
            ]),
            ("Feeding is blocked", "bool_yes_no", [
                ("max by (clusterid) (content_proton_resource_usage_feeding_blocked_last{$s})", "{{clusterid}}"),
            ]),
            ("Operations since the last checkpoint", "short", [
                _gauge("content_proton_transactionlog_entries_last", "{{clusterid}}", "clusterid"),
            ]),
            ("Graphs that are being built", "short", [
                _gauge("content_paperwasp_graphs_building_last", "{{clusterid}}", "clusterid"),
            ]),
            ("Rows that are no document, share", "percentunit", [
                (f"max by (clusterid) ({_PROTON}_ready_lid_space_lid_bloat_factor_last{{$s}})", "{{clusterid}}"),
            ]),
        ),
    ),
    (
        "Process",
        (
            ("Processors", "short", [("rate(process_cpu_seconds_total{$s}[$__rate_interval])", "{{instance}}")]),
            ("Memory", "bytes", [
                ("process_resident_memory_bytes{$s}", "resident {{instance}}"),
                ("mem_heap_used_last{$s}", "allocated {{instance}}"),
            ]),
            ("Collections of garbage, share of time", "percentunit", [
                ("rate(jdisc_gc_ms_last{$s}[$__rate_interval]) / 1000", "{{instance}}"),
            ]),
            ("Threads and descriptors", "short", [
                ('jdisc_thread_pool_size_last{$s,threadpool="process"}', "threads"),
                ("process_open_fds{$s}", "descriptors"),
            ]),
            ("Connections", "short", [_gauge("serverNumOpenConnections_last", "port {{serverPort}}", "serverPort")]),
            ("Network", "Bps", [
                _rate("serverBytesReceived_count", "received, port {{serverPort}}", "serverPort"),
                _rate("serverBytesSent_count", "sent, port {{serverPort}}", "serverPort"),
            ]),
        ),
    ),
)  # fmt: skip


def dashboard() -> dict[str, Any]:
    """The dashboard as Grafana imports it."""
    variables = [
        {"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus"},
        _variable("job", "Job", "label_values(vespa_container_status, job)", several=False),
        _variable("instance", "Instance", 'label_values(vespa_container_status{job="$job"}, instance)', several=True),
    ]
    return {
        "title": "paperwasp",
        "uid": "paperwasp",
        "description": "Requests, queries, documents and resources of paperwasp, from /prometheus/v1/values.",
        "tags": ["paperwasp", "vespa"],
        "schemaVersion": 39,
        "version": 1,
        "editable": True,
        "refresh": "30s",
        "time": {"from": "now-1h", "to": "now"},
        "templating": {"list": variables},
        "panels": list(_panels()),
    }


def _variable(name: str, label: str, query: str, *, several: bool) -> dict[str, Any]:
    return {
        "name": name,
        "label": label,
        "type": "query",
        "datasource": _SOURCE,
        "query": query,
        "refresh": 2,
        "multi": several,
        "includeAll": several,
    }


def _panels() -> Iterator[dict[str, Any]]:
    number, top = 0, 0
    for name, panels in ROWS:
        number += 1
        place = {"x": 0, "y": top, "w": _COLUMNS, "h": 1}
        yield {"id": number, "type": "row", "title": name, "collapsed": False, "gridPos": place, "panels": []}
        top += 1
        for index, (title, unit, queries) in enumerate(panels):
            number += 1
            across = _COLUMNS // _WIDTH
            place = {"x": index % across * _WIDTH, "y": top + index // across * _HEIGHT, "w": _WIDTH, "h": _HEIGHT}
            yield _panel(number, title, unit, queries, place)
        top += -(-len(panels) // (_COLUMNS // _WIDTH)) * _HEIGHT


def _panel(number: int, title: str, unit: str, queries: Sequence[Query], place: dict[str, int]) -> dict[str, Any]:
    targets = [
        {
            "refId": chr(ord("A") + index),
            "datasource": _SOURCE,
            "expr": expr.replace("$s", _SELECTED),
            "legendFormat": legend,
        }
        for index, (expr, legend) in enumerate(queries)
    ]
    return {
        "id": number,
        "type": "timeseries",
        "title": title,
        "datasource": _SOURCE,
        "gridPos": place,
        "fieldConfig": {"defaults": {"unit": unit, "min": 0}, "overrides": []},
        "targets": targets,
    }


def written() -> str:
    """The content of the file."""
    return json.dumps(dashboard(), indent=1) + "\n"


if __name__ == "__main__":
    FILE.write_text(written())
