"""Counts what a port has answered: by protocol, method, kind of request and status; and how long that took.

`RequestMetrics.observe` is called after every answer, so all that it does is look up an object and add to it; metrics
are made of these when somebody reads them. What clients say, as methods, comes in a bounded number of forms.

Vespa: ResponseMetricAggregator.java and MetricDefinitions.java (container-core)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final, Protocol

from paperwasp.base.env import Environment
from paperwasp.base.measurements import Latencies, Metric, Numbers, Windows, counted, gauge, metric
from paperwasp.http.messages import Answer, Request
from paperwasp.http.observing import Exchanged
from paperwasp.http.traffic import Traffic

# What the answer to a query says of itself to who counts and logs answers (`http.messages.Response.about`).


class Covered(Protocol):
    """How much of the documents was searched."""

    @property
    def documents(self) -> int: ...

    @property
    def percent(self) -> int: ...

    @property
    def degraded(self) -> frozenset[str]:
        """Why not all was searched: `match-phase`, `timeout`, `adaptive-timeout`, `non-ideal-state`, …"""


SearchFacts = tuple[int, int, Covered | None, int, int]
"""All hits that match, hits that are shown, how much was searched, the code of the first error or -1, and the
nanoseconds that it took to write the hits."""


Key = tuple[str, str, str, str, int]
"""Protocol (`http1`, `http2`), scheme, method, kind, status."""
METHODS: Final = frozenset(("GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"))
OTHER_METHOD: Final = "other"
_LATENCY_NAMES: Final = ("jdisc.http.latency", "http.request.latency")
"""Vespa's name, and the one of the interface specification."""
_ALWAYS_SHOWN: Final = frozenset((2, 4, 5))
_MONITORING: Final = ("/state/v1", "/status.html", "/metrics/", "/prometheus/")


class Answers(Latencies):
    """The answers of one key: their latencies in milliseconds, and the bytes of bodies both ways."""

    __slots__ = ("received_bytes", "sent_bytes")

    def __init__(self) -> None:
        super().__init__()
        self.received_bytes = 0
        self.sent_bytes = 0


class RequestMetrics:
    """Count the answers on a port, or on all ports of a container. The event loop adds; any thread reads."""

    def __init__(
        self, kind_of: Callable[[Request], str], request_types: Mapping[str, str], environment: Environment
    ) -> None:
        """`kind_of` names the kind of a request, one of a few; `request_types`: Vespa's `requestType` of kinds, where
        it is not that of the method."""
        self.windows = Windows(environment)
        self.ports: dict[int, Traffic] = {}
        """The traffic over the connections of each port. Any thread changes it."""
        self._kind_of = kind_of
        self._request_types = request_types
        self._answers: dict[Key, Answers] = {}

    def observe(self, exchange: Exchanged, request: Request, answer: Answer, elapsed_ns: int) -> None:
        """One answer was sent."""
        kind = self._kind_of(request)
        key = (exchange.line.protocol, exchange.scheme, request.method, kind, answer.status)
        answers = self._answers.get(key) or self.new_answers(key)
        answers.add(elapsed_ns / 1e6)
        answers.received_bytes += len(request.body)
        answers.sent_bytes += exchange.sent_bytes

    def new_answers(self, key: Key) -> Answers:
        """The answers that are counted under the key, which is new, or of a method that is not counted by itself."""
        protocol, scheme, method, kind, status = key
        bounded = (protocol, scheme, method if method in METHODS else OTHER_METHOD, kind, status)
        return self._answers.setdefault(bounded, Answers())

    # Reading

    def turn_if_due(self) -> None:
        """Lets older values be no longer recent, where it is time."""
        self.windows.turn_if_due(self.numbers())

    def numbers(self) -> Iterable[Numbers]:
        """All numbers that have recent values."""
        return list(self._answers.values())

    def by_kind(self) -> dict[str, Latencies]:
        """The latencies of each kind of request, in milliseconds."""
        return {kind: self.of(kind) for kind in sorted({key[3] for key in list(self._answers)})}

    def of(self, *kinds: str) -> Latencies:
        """The latencies of these kinds together; without a kind, of all."""
        return _merged(answers for key, answers in list(self._answers.items()) if not kinds or key[3] in kinds)

    def statuses(self, *kinds: str) -> Iterator[tuple[str, int, Answers]]:
        """Kind, status and answers of these kinds; without a kind, of all."""
        several = list(self._answers.items())
        return ((key[3], key[4], answers) for key, answers in several if not kinds or key[3] in kinds)

    def health(self) -> list[Metric]:
        """The two metrics of `/state/v1/health`."""
        seconds, latency = self.windows.seconds, self.of()
        count = {"count": latency.count, "rate": latency.recent_count / seconds}
        values = Numbers.values(latency, seconds)
        in_seconds = {name: value if name in ("count", "rate") else value / 1000 for name, value in values.items()}
        return [
            {"name": "requestsPerSecond", "values": count},
            {"name": "latencySeconds", "values": in_seconds},
        ]

    def http(self) -> list[Metric]:
        """The metrics of the port."""
        return [*self._by_status(), *self._latencies(), *self._connections()]

    def _by_status(self) -> Iterator[Metric]:
        ports = _port_dimensions(next(iter(self.ports))) if len(self.ports) == 1 else {}
        found: dict[Key, list[Answers]] = {}
        for (protocol, scheme, method, kind, status), answers in list(self._answers.items()):
            request_type = self._request_types.get(kind) or ("read" if method in ("GET", "HEAD") else "write")
            found.setdefault((protocol, scheme, method, request_type, status), []).append(answers)
        for (protocol, scheme, method, request_type, status), several in sorted(
            found.items(), key=lambda item: item[0]
        ):
            dimensions = {
                "httpMethod": method,
                "protocol": protocol,
                "requestType": request_type,
                "scheme": scheme,
                "statusCode": str(status),
                **ports,
            }
            count, recent = sum(each.count for each in several), sum(each.recent_count for each in several)
            name = f"http.status.{status // 100}xx"
            yield counted(name, count, recent, self.windows.seconds, **dimensions)
        for digit in _ALWAYS_SHOWN - {key[4] // 100 for key in found}:  # who watches them sees them from the start on
            yield counted(f"http.status.{digit}xx", 0, 0, 1.0)

    def _latencies(self) -> Iterator[Metric]:
        latency = self.of()
        if latency.count:
            values = latency.values(self.windows.seconds)
            yield from (metric(name, values) for name in _LATENCY_NAMES)
            yield counted("jdisc.http.requests", latency.count, latency.recent_count, self.windows.seconds)
            received = sum(answers.received_bytes for answers in list(self._answers.values()))
            size = {"average": received / latency.count, "sum": received, "count": latency.count}
            yield metric("jdisc.http.request.content_size", size)

    def _connections(self) -> Iterator[Metric]:
        seconds = max(self.windows.age_seconds, 1.0)
        for port, traffic in sorted(self.ports.items()):
            dimensions = _port_dimensions(port)
            yield gauge("serverNumOpenConnections", traffic.open_connections, **dimensions)
            totals = {
                "serverNumConnections": traffic.connections,
                "serverBytesReceived": traffic.received_bytes,
                "serverBytesSent": traffic.sent_bytes,
            }
            for name, count in totals.items():
                yield counted(name, count, count, seconds, **dimensions)


def _port_dimensions(port: int) -> dict[str, str]:
    return {"serverName": "default", "serverPort": str(port)}


def is_monitoring(raw_path: str) -> bool:
    """Whether a request of that path is of who watches the service: `requestType` is `monitoring`."""
    return raw_path.startswith(_MONITORING)


def _merged(several: Iterable[Latencies]) -> Latencies:
    whole = Latencies()
    for each in several:
        whole.include(each)
    return whole
