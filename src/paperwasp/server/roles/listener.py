"""A port of a container: its server, and whichever container answers there at the moment."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, Protocol

from paperwasp.container.app import ContainerApp, error_response
from paperwasp.container.paths import DOCUMENT_ROOT
from paperwasp.core import _core
from paperwasp.http.messages import Answer, Request, Response
from paperwasp.http.observing import Exchanged
from paperwasp.http.pending import Begun
from paperwasp.http.request_batch import Batches, RequestBatch
from paperwasp.http.routed_requests import SentAnswer
from paperwasp.http.server import HttpServer
from paperwasp.http.tls_files import ReloadedTls
from paperwasp.http.traffic import Traffic

if TYPE_CHECKING:
    from paperwasp.admin.monitoring.telemetry import Telemetry


class Server(Protocol):
    """The server of a port, such as `http.server.HttpServer`."""

    port: int

    @property
    def traffic(self) -> Traffic: ...

    @property
    def is_secure(self) -> bool: ...

    def secure(self, tls: ReloadedTls | None) -> None: ...

    def start(self) -> None: ...

    async def restart(self) -> None: ...

    async def stop(self) -> None: ...

    def close(self) -> None: ...


class NoServer:
    """Listens nowhere: the port is a number by which containers are distinguished, and nothing more."""

    is_secure = False

    def __init__(self, port: int) -> None:
        self.port = port
        self.traffic = Traffic()

    def secure(self, tls: ReloadedTls | None) -> None:
        pass

    def start(self) -> None:
        pass

    async def restart(self) -> None:
        pass

    async def stop(self) -> None:
        pass

    def close(self) -> None:
        pass


class Listener:
    """Hands the requests to a port to `app`: exchanges call its handler, the core's routes are asked of it. `app` may
    be replaced at any time; requests under way end where they began."""

    def __init__(self, host: str | None, port: int, app: ContainerApp) -> None:
        """Binds; `server.start()` listens. `host` None: there is no server. Errors: PortTaken, Conflict."""
        self._app = app
        self.place = ""
        """The id of the server in services.xml; empty: it has none there."""
        self._tls: ReloadedTls | None = None
        self.telemetry: Telemetry | None = None
        """Where spans of answers are sent. Set before the start."""
        self.server: Final = NoServer(port) if host is None else self._make_server(host, port)
        self.port: Final = self.server.port
        self.app = app

    def _make_server(self, host: str, port: int) -> Server:
        return HttpServer(
            self._handle,
            host,
            port,
            error_response=error_response,
            body_limit_bytes=self._body_limit_bytes,
            observe=self._observe,
            batches=Batches(DOCUMENT_ROOT, self._begin_batch, self._observe_batch),
            routing=self,
        )

    @property
    def app(self) -> ContainerApp:
        return self._app

    @app.setter
    def app(self, app: ContainerApp) -> None:
        self._app.metrics.ports.pop(self.port, None)
        app.metrics.ports[self.port] = self.server.traffic
        self._app = app
        _core.forget_routes()

    @property
    def scheme(self) -> str:
        """`https` where the port speaks TLS."""
        return "https" if self.server.is_secure else "http"

    def secure(self, tls: ReloadedTls | None) -> bool:
        """Speaks TLS by these settings, or none, on connections to come. Returns whether others still go by other
        settings."""
        before = None if self._tls is None else self._tls.settings
        if before == (None if tls is None else tls.settings):
            return False
        self._tls = tls
        self.server.secure(tls)
        return True

    def _handle(self, request: Request) -> Begun:
        return self._app.begin(request, self.place)

    def _begin_batch(self, batch: RequestBatch) -> int:
        return self._app.begin_batch(batch)

    def route_of(self, request: Request) -> _core.TextRoute | None:
        """See `http.routed_requests.Routing`."""
        return self._app.route_of(request)

    def observe_sent(self, sent: Sequence[SentAnswer]) -> None:
        """Counts answers that the core has written, as `_observe` does others."""
        metrics, log, telemetry = self._app.metrics, self._app.metrics.access_log, self.telemetry
        metrics.observe_sent(sent)
        if log is None and telemetry is None:
            return
        for each in sent:
            noted = each, each.whole_request(), each.answer, each.routed.elapsed_ns
            if log is not None:
                log.note(self.port, *noted)
            if telemetry is not None:
                telemetry.note(self.port, *noted)

    def _body_limit_bytes(self, raw_path: str) -> int:
        return self._app.body_limit_bytes(raw_path)

    def _observe(self, exchange: Exchanged, request: Request, answer: Answer, elapsed_ns: int) -> None:
        metrics = self._app.metrics
        metrics.observe(exchange, request, answer, elapsed_ns)
        if metrics.access_log is not None:
            metrics.access_log.note(self.port, exchange, request, answer, elapsed_ns)
        if self.telemetry is not None:
            self.telemetry.note(self.port, exchange, request, answer, elapsed_ns)

    def _observe_batch(
        self, batch: RequestBatch, numbers: Sequence[int], bodies: Sequence[bytes], elapsed_ns: int
    ) -> None:
        metrics = self._app.metrics
        metrics.observe_batch(batch, numbers, bodies, elapsed_ns)
        if metrics.access_log is None and self.telemetry is None:
            return
        for number, body in zip(numbers, bodies, strict=True):
            exchanged, request = batch.exchanged(number, len(body)), batch.request(number)
            answer = Response(200, body, batch.content_type)
            if metrics.access_log is not None:
                metrics.access_log.note(self.port, exchanged, request, answer, elapsed_ns)
            if self.telemetry is not None:
                self.telemetry.note(self.port, exchanged, request, answer, elapsed_ns)
