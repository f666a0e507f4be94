"""What a collector of OpenTelemetry gets from a running service: spans with their parents and phases, and metrics."""

from __future__ import annotations

import gzip
import queue
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tests.service.music import write_package
from tests.service.running import running_service

TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
FASTER = "import os; os.environ.update(OTEL_BSP_SCHEDULE_DELAY='100', OTEL_METRIC_EXPORT_INTERVAL='500')"


class Collector:
    """Keeps what is sent to it."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.spans: queue.Queue[Any] = queue.Queue()
        self.metrics: queue.Queue[Any] = queue.Queue()

    def take(self, path: str, body: bytes) -> None:
        if path == "/v1/traces":
            for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
                for scope in resource.scope_spans:
                    for span in scope.spans:
                        self.spans.put(span)
        else:
            self.metrics.put(ExportMetricsServiceRequest.FromString(body))

    def next_spans(self, count: int) -> list[Any]:
        return [self.spans.get(timeout=30) for _ in range(count)]


@contextmanager
def collecting() -> Iterator[Collector]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.headers.get("Content-Encoding") == "gzip":
                body = gzip.decompress(body)
            collector.take(self.path, body)
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        collector = Collector(f"http://127.0.0.1:{server.server_address[1]}")
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield collector
        finally:
            server.shutdown()
            thread.join()


def _attributes(values: Any) -> dict[str, Any]:
    return {each.key: getattr(each.value, each.value.WhichOneof("value")) for each in values}


def test_spans_and_metrics(tmp_path: Path) -> None:
    package = str(write_package(tmp_path / "music"))
    with collecting() as collector:
        began_ns = time.time_ns()
        arguments = (package, "--otlp-endpoint", collector.address)
        with running_service(tmp_path / "data", *arguments, first=FASTER) as service:
            with httpx.Client(base_url=service.url, timeout=30) as client:
                put = client.post("/document/v1/ns/music/docid/1", json={"fields": {"title": "Blue"}})
                assert put.status_code == 200
                headers = {"traceparent": f"00-{TRACE}-{PARENT}-01", "Authorization": "Bearer secret-word"}
                query = {"query": "blue", "type": "all", "api_key": "secret-word"}
                client.get("/search/", params=query, headers=headers)
                not_sampled = {"traceparent": f"00-{TRACE}-{PARENT}-00"}
                client.get("/search/", params={"query": "none", "type": "all"}, headers=not_sampled)
                client.get("/document/v1/ns/music/docid/none")
            spans = {span.name: span for span in collector.next_spans(5)}
            assert service.stop() == 0
        assert collector.spans.empty()
        assert spans.keys() == {"POST put", "GET query", "search", "fill", "GET get"}
        search, write, read = spans["GET query"], spans["POST put"], spans["GET get"]
        assert (search.trace_id.hex(), search.parent_span_id.hex()) == (TRACE, PARENT)
        assert write.parent_span_id == b""
        for name in ("search", "fill"):
            assert (spans[name].trace_id, spans[name].parent_span_id) == (search.trace_id, search.span_id)
        order = [search.start_time_unix_nano, spans["search"].start_time_unix_nano, spans["search"].end_time_unix_nano]
        order += [spans["fill"].start_time_unix_nano, spans["fill"].end_time_unix_nano, search.end_time_unix_nano]
        assert began_ns < order[0]
        assert order == sorted(order)
        shown = _attributes(search.attributes)
        assert shown["http.response.status_code"] == 200
        assert (shown["url.path"], shown["paperwasp.search.total_hits"]) == ("/search/", 1)
        assert _attributes(read.attributes)["http.response.status_code"] == 404
        assert not any("secret-word" in str(span) for span in spans.values())
        _check_metrics(collector)


def _check_metrics(collector: Collector) -> None:
    """The last metrics that were sent: at the stop, with all counts."""
    last = None
    while not collector.metrics.empty():
        last = collector.metrics.get()
    assert last is not None
    (resource,) = last.resource_metrics
    assert _attributes(resource.resource.attributes)["service.name"] == "paperwasp"
    found = {metric.name: metric for scope in resource.scope_metrics for metric in scope.metrics}
    (queries,) = found["queries.count"].sum.data_points
    assert (queries.as_int or queries.as_double, found["queries.count"].sum.is_monotonic) == (2, True)
    durations = found["paperwasp.request.duration"].histogram.data_points
    histogram = {_attributes(each.attributes)["kind"]: each for each in durations}
    assert histogram["query"].count == sum(histogram["query"].bucket_counts) == 2
    assert histogram["put"].sum > 0
    (documents,) = found["content.proton.documentdb.documents.active.last"].gauge.data_points
    assert (documents.as_int or documents.as_double) == 1


def test_a_collector_that_is_not_there(tmp_path: Path) -> None:
    with collecting() as collector:
        nobody = collector.address
    package = str(write_package(tmp_path / "music"))
    with running_service(tmp_path / "data", package, "--otlp-endpoint", nobody, first=FASTER) as service:
        for _ in range(20):
            assert httpx.get(service.url + "/state/v1/health").status_code == 200
        assert service.stop() == 0
