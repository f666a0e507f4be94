"""Counts the answers of a container, and shows the numbers by Vespa's names of container metrics.

Vespa: https://docs.vespa.ai/en/reference/operations/metrics/container.html; StatisticsSearcher.java (container-search),
DocumentV1ApiHandler.java (vespaclient-container-plugin), DocumentApiMetrics.java (documentapi)
Differs: `query_latency` and `httpapi_latency` are of whole requests, with the time that HTTP takes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final, cast

from paperwasp.admin.monitoring.requests import RequestMetrics, SearchFacts, is_monitoring
from paperwasp.base.env import SYSTEM, Environment
from paperwasp.base.measurements import Latencies, Metric, Numbers, counted, gauge, metric
from paperwasp.http.messages import Answer, Request
from paperwasp.http.observing import Exchanged
from paperwasp.http.request_batch import RequestBatch
from paperwasp.http.routed_requests import SentAnswer

if TYPE_CHECKING:
    from paperwasp.admin.monitoring.access_log import AccessLog

QUERY: Final = "query"
EVALUATION: Final = "evaluation"
GET: Final = "get"
VISIT: Final = "visit"
MONITORING: Final = "monitoring"
OTHER: Final = "other"
_DOCUMENTS: Final = "documents"
_KIND_OF_START: Final = {"/search/": QUERY, "/search": QUERY, "/documen": _DOCUMENTS, "/model-e": EVALUATION}
"""The first eight characters of a path → what it is about."""
_CHANGES: Final = {"POST": "put", "PUT": "update", "DELETE": "remove"}
_VISITS: Final = {"GET": VISIT, "HEAD": VISIT, "POST": "copy", "PUT": "update_all", "DELETE": "remove_all"}
_REQUEST_TYPES: Final = {QUERY: "read", MONITORING: "monitoring"}
_SLASHES_OF_ONE: Final = 6
"""Fewer are in no path of a document: `/document/v1/namespace/type/docid/name`."""
_FAILURES: Final = {
    400: "httpapi_parse_error",
    404: "httpapi_not_found",
    412: "httpapi_condition_not_met",
    504: "httpapi_failed_timeout",
    507: "httpapi_failed_insufficient_storage",
}
"""Status → the metric of Vespa that counts it; all others are `httpapi_failed_unknown`."""
ERROR_METRICS: Final = {
    0: "error.backends_oos",
    3: "error.illegal_query",
    4: "error.invalid_query_parameter",
    5: "error.unspecified",
    6: "error.plugin_failure",
    7: "error.invalid_query_transformation",
    9: "error.misconfigured_server",
    10: "error.backend_communication_error",
    12: "error.timeout",
    13: "error.empty_document_summaries",
    18: "error.internal_server_error",
}
"""Code of the first error of an answer → the metric that counts it."""
_OTHER_ERROR: Final = "error.unspecified"
_HANDLERS: Final = {
    QUERY: "com.yahoo.search.handler.SearchHandler",
    EVALUATION: "ai.vespa.models.handler.ModelsEvaluationHandler",
    MONITORING: "com.yahoo.container.jdisc.state.StateHandler",
}
_DOCUMENT_HANDLER: Final = "com.yahoo.document.restapi.resource.DocumentV1ApiHandler"
_DOCUMENT_KINDS: Final = ("put", "update", "remove", GET, *dict.fromkeys(_VISITS.values()))


class ContainerMetrics(RequestMetrics):
    """Count the answers of a container. The event loop adds; any thread reads."""

    def __init__(self, environment: Environment = SYSTEM) -> None:
        super().__init__(kind_of, _REQUEST_TYPES, environment)
        self.access_log: AccessLog | None = None
        """Where answers are logged. Any thread sets it."""
        self._total_hits = Numbers()
        self._hits = Numbers()
        self._covered = Numbers()
        self._degraded = 0
        self._empty = 0
        self._errors: Counter[str] = Counter()

    def observe(self, exchange: Exchanged, request: Request, answer: Answer, elapsed_ns: int) -> None:
        method, path = request.method, request.raw_path
        kind = _KIND_OF_START.get(path[:8])
        if kind is _DOCUMENTS and path[-1] != "/" and path.count("/") >= _SLASHES_OF_ONE:
            kind = _CHANGES.get(method, GET)
        elif kind is None or kind is _DOCUMENTS:
            kind = kind_of(request)
        key = (exchange.line.protocol, exchange.scheme, method, kind, answer.status)
        answers = self._answers.get(key) or self.new_answers(key)
        answers.add(elapsed_ns / 1e6)
        answers.received_bytes += len(request.body)
        answers.sent_bytes += exchange.sent_bytes
        if kind is QUERY and answer.about is not None:
            self._note(cast(SearchFacts, answer.about))

    def observe_batch(
        self, batch: RequestBatch, numbers: Sequence[int], bodies: Sequence[bytes], elapsed_ns: int
    ) -> None:
        """As `observe` of each request of these numbers: changes of documents that were answered with 200."""
        head = batch.head
        key = (batch.lines[0].protocol, head.scheme, head.method, _CHANGES[head.method], 200)
        answers = self._answers.get(key) or self.new_answers(key)
        answers.add(elapsed_ns / 1e6, len(numbers))
        answers.received_bytes += sum(len(batch.bodies[number]) for number in numbers)
        answers.sent_bytes += sum(map(len, bodies))

    def observe_sent(self, sent: Sequence[SentAnswer]) -> None:
        """As `observe` of answers to queries that the core has written."""
        total_hits, hits, covered = self._total_hits, self._hits, self._covered
        for each in sent:
            routed, request = each.routed, each.answers.request
            key = (each.line.protocol, request.scheme, request.method, QUERY, each.answers.shown.status)
            answers = self._answers.get(key) or self.new_answers(key)
            answers.add(routed.elapsed_ns / 1e6)
            answers.sent_bytes += routed.body_bytes
            if request.body:
                answers.received_bytes += each.received_bytes
            total_hits.add(routed.total)
            hits.add(routed.shown)
            covered.add(each.answers.documents)
            if not routed.total:
                self._empty += 1

    def _note(self, about: SearchFacts) -> None:
        total_hits, hits, coverage, error, _ = about
        self._total_hits.add(total_hits)
        self._hits.add(hits)
        if not total_hits:
            self._empty += 1
        if coverage is not None:
            self._covered.add(coverage.documents)
            if coverage.degraded:
                self._degraded += 1
        if error >= 0:
            self._errors[ERROR_METRICS.get(error, _OTHER_ERROR)] += 1

    def numbers(self) -> Iterable[Numbers]:
        return [*super().numbers(), self._total_hits, self._hits, self._covered]

    # Reading

    def all(self) -> list[Metric]:
        """Every metric of what was answered."""
        self.turn_if_due()
        log = self.access_log
        lost = () if log is None else (gauge("paperwasp.access_log.lost_lines", log.lost),)
        return [*self.http(), *self._handled(), *self._queries(), *self._documents(), *self._feed(), *lost]

    def _handled(self) -> Iterator[Metric]:
        seconds = self.windows.seconds
        by_handler: dict[str, list[str]] = {}
        for kind in self.by_kind():
            handler = _DOCUMENT_HANDLER if kind in _DOCUMENT_KINDS else _HANDLERS.get(kind)
            if handler is not None:
                by_handler.setdefault(handler, []).append(kind)
        for handler, kinds in by_handler.items():
            latency = self.of(*kinds)
            yield counted("handled.requests", latency.count, latency.recent_count, seconds, handler=handler)
            yield metric("handled.latency", latency.values(seconds), handler=handler)

    def _queries(self) -> Iterator[Metric]:
        latency, seconds = self.of(QUERY), self.windows.seconds
        if not latency.count:
            return
        yield counted("queries", latency.count, latency.recent_count, seconds)
        yield metric("query_latency", latency.values(seconds))
        failed = [answers for _, status, answers in self.statuses(QUERY) if status >= 400]
        recent = sum(answers.recent_count for answers in failed)
        yield counted("failed_queries", sum(answers.count for answers in failed), recent, seconds)
        if self._hits.count:
            yield metric("hits_per_query", self._hits.values(seconds))
            yield metric("totalhits_per_query", self._total_hits.values(seconds))
        if self._covered.count:
            yield metric("documents_covered", self._covered.values(seconds))
        age_s = max(self.windows.age_seconds, 1.0)
        for name, count in (
            ("degraded_queries", self._degraded),
            ("empty_results", self._empty),
            *self._errors.items(),
        ):
            yield counted(name, count, count, age_s)

    def _documents(self) -> Iterator[Metric]:
        """The metrics of operations on single documents."""
        seconds = self.windows.seconds
        counts: Counter[str] = Counter()
        for kind in ("put", "update", "remove", GET):
            latency = self.of(kind)
            if not latency.count:
                continue
            yield metric("httpapi_latency", latency.values(seconds), operation=kind)
            yield counted("httpapi_num_operations", latency.count, latency.recent_count, seconds, operation=kind)
            if kind != GET:
                yield counted(f"httpapi_num_{kind}s", latency.count, latency.recent_count, seconds)
            for _, status, answers in self.statuses(kind):
                if status < 300:
                    counts["httpapi_succeeded"] += answers.count
                else:
                    counts[_FAILURES.get(status, "httpapi_failed_unknown")] += answers.count
                    counts["httpapi_failed"] += answers.count
        for name, count in counts.items():
            yield counted(name, count, count, max(self.windows.age_seconds, 1.0))

    def _feed(self) -> Iterator[Metric]:
        """Vespa's metrics of feeding. The latency is in seconds."""
        seconds = self.windows.seconds
        for kind in _CHANGES.values():
            outcomes: dict[str, Latencies] = {}
            for _, status, answers in self.statuses(kind):
                outcomes.setdefault(_outcome(status), Latencies()).include(answers)
            for outcome, latency in sorted(outcomes.items()):
                dimensions = {"api": "vespa.http.server", "operation": kind.upper(), "status": outcome}
                yield counted("feed.operations", latency.count, latency.recent_count, seconds, **dimensions)
                shown = Numbers.values(latency, seconds)
                in_seconds = {name: value / 1000 for name, value in shown.items() if name not in ("count", "rate")}
                in_seconds |= {name: shown[name] for name in ("count", "rate")}
                yield metric("feed.latency", in_seconds, **dimensions)


def kind_of(request: Request) -> str:
    """The kind of a request: one of a few, whatever its path is."""
    method, path = request.method, request.raw_path
    kind = _KIND_OF_START.get(path[:8])
    if kind == _DOCUMENTS:
        if path[-1] != "/" and path.count("/") >= _SLASHES_OF_ONE:
            return _CHANGES.get(method, GET)
        return _VISITS.get(method, OTHER)
    return kind or (MONITORING if is_monitoring(path) else OTHER)


def _outcome(status: int) -> str:
    if status < 300:
        return "OK"
    return "SERVER_ERROR" if status >= 500 else "REQUEST_ERROR"
