"""Traces and metrics for an OpenTelemetry collector, by OTLP over HTTP. Needs the packages of the extra `otel`.

    note (event loop) → a bounded queue → a thread (`gathering`): spans → OpenTelemetry's batches → the collector
                                          a thread, once a minute: metrics → the collector

Only a service that is given a collector imports this, so that for others it costs nothing. A span is made of an
answer that was sent, with the times that it had. Its parent is the one that the request names (W3C traceparent). The
usual variables of the environment are in force: `OTEL_TRACES_SAMPLER`, `OTEL_BSP_SCHEDULE_DELAY`,
`OTEL_METRIC_EXPORT_INTERVAL`, `OTEL_RESOURCE_ATTRIBUTES`, `OTEL_EXPORTER_OTLP_HEADERS`.

Conventions: https://opentelemetry.io/docs/specs/semconv/http/http-spans/
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, cast

from msgspec import Struct
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.metrics.export import (
    AggregationTemporality,
    Gauge,
    Histogram,
    HistogramDataPoint,
    MetricsData,
    NumberDataPoint,
    ResourceMetrics,
    ScopeMetrics,
    Sum,
)
from opentelemetry.sdk.metrics.export import Metric as ExportedMetric
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import SpanKind, StatusCode, set_span_in_context
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from paperwasp.admin.monitoring.access_log import Gathering
from paperwasp.admin.monitoring.requests import SearchFacts
from paperwasp.base.measurements import BOUNDS_MS, Latencies, Metric
from paperwasp.base.version import VERSION
from paperwasp.http.messages import Answer, Request
from paperwasp.http.observing import Exchanged
from paperwasp.limits.monitoring import (
    TELEMETRY_CHARACTERS,
    TELEMETRY_EXPORT_SECONDS,
    TELEMETRY_QUEUE_LENGTH,
)

_LOG: Final = logging.getLogger("paperwasp.monitoring")
_DURATION: Final = "paperwasp.request.duration"
_PROPAGATOR: Final = TraceContextTextMapPropagator()
_INTERVAL_MS: Final = 60_000
_Entry = tuple[int, int, int, str, str, str, str, str, int, int, int, str | None, str, object]


class Reading(Struct, frozen=True):
    """The measurements of one part of the service, at one moment."""

    attributes: Mapping[str, str]
    """Which part it is."""
    metrics: Sequence[Metric]
    histograms: Mapping[str, Latencies]


class Telemetry:
    """Sends spans and metrics. `note` is the event loop's; all else any thread's."""

    def __init__(
        self, endpoint: str, kind_of: Callable[[str, str], str], read: Callable[[], Iterable[Reading]]
    ) -> None:
        """`endpoint`: the address of the collector, without `/v1/traces`. `kind_of`: method and path → the kind of a
        request. `read` gives what there is to send, and may block for a while."""
        address = endpoint.rstrip("/")
        resource = Resource.create({"service.name": "paperwasp", "service.version": VERSION})
        self._resource = resource
        self._kind_of = kind_of
        self._read = read
        self._started_ns = time.time_ns()
        self._spans = TracerProvider(resource=resource, shutdown_on_exit=False)
        self._spans.add_span_processor(
            BatchSpanProcessor(OTLPSpanExporter(f"{address}/v1/traces", timeout=TELEMETRY_EXPORT_SECONDS))
        )
        self._tracer = self._spans.get_tracer("paperwasp", VERSION)
        self._metrics = OTLPMetricExporter(f"{address}/v1/metrics", timeout=TELEMETRY_EXPORT_SECONDS)
        self._gathering = Gathering[_Entry]("telemetry", self._make_spans, TELEMETRY_QUEUE_LENGTH)
        self._is_closed = threading.Event()
        interval_ms = int(os.environ.get("OTEL_METRIC_EXPORT_INTERVAL", _INTERVAL_MS))
        self._thread = threading.Thread(
            target=self._send_metrics, args=(max(interval_ms, 1) / 1000,), name="telemetry-metrics", daemon=True
        )
        self._thread.start()

    def note(self, port: int, exchange: Exchanged, request: Request, answer: Answer, elapsed_ns: int) -> None:
        """Has a span made for an answer on that port."""
        headers = request.headers
        self._gathering.add(
            (
                time.time_ns(),
                elapsed_ns,
                port,
                exchange.peer.address,
                exchange.line.version,
                request.method,
                request.raw_path[:TELEMETRY_CHARACTERS],
                request.scheme,
                answer.status,
                exchange.sent_bytes,
                exchange.received_bytes,
                headers.get("traceparent"),
                headers.get("tracestate", ""),
                answer.about,
            )
        )

    def close(self) -> None:
        """Sends what there is, and ends the threads."""
        self._gathering.close()
        self._is_closed.set()
        self._thread.join()
        self._spans.shutdown()
        self._metrics.shutdown()

    # Traces

    def _make_spans(self, entries: Sequence[_Entry]) -> None:
        for entry in entries:
            self._make_span(entry)

    def _make_span(self, entry: _Entry) -> None:
        now_ns, elapsed_ns, port, client, version, method, path, scheme, status, sent, received = entry[:11]
        traceparent, tracestate, about = entry[11:]
        carrier = {} if traceparent is None else {"traceparent": traceparent, "tracestate": tracestate}
        kind = self._kind_of(method, path)
        attributes: dict[str, Any] = {
            "http.request.method": method,
            "http.response.status_code": status,
            "http.request.body.size": received,
            "http.response.body.size": sent,
            "url.path": path,
            "url.scheme": scheme,
            "server.port": port,
            "client.address": client,
            "network.protocol.version": version.partition("/")[2],
            "paperwasp.kind": kind,
        }
        begun_ns = now_ns - elapsed_ns
        span = self._tracer.start_span(
            f"{method} {kind}", _PROPAGATOR.extract(carrier), SpanKind.SERVER, attributes, start_time=begun_ns
        )
        if span.is_recording():
            if status >= _ERROR:
                span.set_status(StatusCode.ERROR)
            if about is not None:
                self._make_phases(span, begun_ns, now_ns, cast(SearchFacts, about))
        span.end(end_time=now_ns)

    def _make_phases(self, span: Any, begun_ns: int, now_ns: int, about: SearchFacts) -> None:
        """The phases of a query: matching and ranking, then the hits that are shown."""
        total_hits, hits, coverage, error, fill_ns = about
        span.set_attribute("paperwasp.search.total_hits", total_hits)
        span.set_attribute("paperwasp.search.show.hits", hits)
        if coverage is not None:
            span.set_attribute("paperwasp.search.coverage", coverage.percent)
        if error >= 0:
            span.set_attribute("paperwasp.search.error_code", error)
        context, filled_ns = set_span_in_context(span), max(begun_ns, now_ns - fill_ns)
        for name, start_ns, end_ns in (("search", begun_ns, filled_ns), ("fill", filled_ns, now_ns)):
            if end_ns > start_ns:
                self._tracer.start_span(name, context, start_time=start_ns).end(end_time=end_ns)

    # Metrics

    def _send_metrics(self, seconds: float) -> None:
        is_last = False
        while not is_last:
            is_last = self._is_closed.wait(seconds)
            try:
                self._metrics.export(self._metrics_data(), timeout_millis=TELEMETRY_EXPORT_SECONDS * 1000)
            except Exception as error:  # a collector that is gone, or a part of the service that stops
                _LOG.warning("metrics were not sent: %r", error)

    def _metrics_data(self) -> MetricsData:
        now_ns = time.time_ns()
        metrics = [each for reading in self._read() for each in self._exported(reading, now_ns)]
        scope = ScopeMetrics(InstrumentationScope("paperwasp", VERSION), metrics, "")
        return MetricsData([ResourceMetrics(self._resource, [scope], "")])

    def _exported(self, reading: Reading, now_ns: int) -> Iterator[ExportedMetric]:
        cumulative: Final = AggregationTemporality.CUMULATIVE
        points: dict[tuple[str, bool], list[NumberDataPoint]] = {}
        for metric in reading.metrics:
            attributes = {**reading.attributes, **metric["dimensions"]}
            grows = "rate" in metric["values"]
            for kind, value in metric["values"].items():
                point = NumberDataPoint(attributes, self._started_ns, now_ns, value)
                points.setdefault((f"{metric['name']}.{kind}", grows and kind in ("count", "sum")), []).append(point)
        for (name, is_sum), several in points.items():
            yield ExportedMetric(name, "", "", Sum(several, cumulative, True) if is_sum else Gauge(several))
        if reading.histograms:
            yield ExportedMetric(
                _DURATION,
                "Time from the head of a request to its whole answer",
                "s",
                Histogram([self._spread(reading, *each, now_ns) for each in reading.histograms.items()], cumulative),
            )

    def _spread(self, reading: Reading, kind: str, latencies: Latencies, now_ns: int) -> HistogramDataPoint:
        return HistogramDataPoint(
            attributes={**reading.attributes, "kind": kind},
            start_time_unix_nano=self._started_ns,
            time_unix_nano=now_ns,
            count=sum(latencies.buckets),
            sum=latencies.total / 1000,
            bucket_counts=list(latencies.buckets),
            explicit_bounds=[bound / 1000 for bound in BOUNDS_MS],
            min=_bound(latencies, -1),
            max=_bound(latencies, 0),
        )


def _bound(latencies: Latencies, place: int) -> float:
    """Seconds: a bound of the lowest bucket that holds something (`place` -1: the one below it) or of the highest
    (0: the one above it)."""
    filled = [index for index, count in enumerate(latencies.buckets) if count] or [0]
    index = filled[0] - 1 if place else filled[-1]
    return BOUNDS_MS[min(index, len(BOUNDS_MS) - 1)] / 1000 if index >= 0 else 0.0


_ERROR: Final = 500
"""From here on a status is an error of the server."""
