"""A container's face: a request in, a response out, whichever of its interfaces it is for.

`server.roles.listener.Listener` calls it, and has the sockets in an `http.server.HttpServer`. Everything here runs on
the event loop.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final

from paperwasp import limits
from paperwasp.admin.monitoring.api import MetricsApi
from paperwasp.base.env import SYSTEM, Environment
from paperwasp.container.gate.gate import Gate, gate_of
from paperwasp.container.gate.keys import Accounts
from paperwasp.container.metrics import ContainerMetrics
from paperwasp.container.paths import DOCUMENT_ROOT, is_evaluation, is_search, no_application
from paperwasp.container.state import Running, StateApi
from paperwasp.content.addresses import address_of
from paperwasp.coordination.messenger import Messenger
from paperwasp.core import _core
from paperwasp.errors import PaperwaspError
from paperwasp.http.cbor import as_accepted, as_json_request, error_as_accepted, mentions_cbor
from paperwasp.http.description import DescriptionApi
from paperwasp.http.messages import Answer, Request, Response, json_response
from paperwasp.http.pending import Begun, PendingAnswer, settled
from paperwasp.http.request_batch import RequestBatch
from paperwasp.http.routing import Router

if TYPE_CHECKING:
    from paperwasp.container.document.decoded import DecodedPuts
    from paperwasp.container.interfaces import Interfaces


class ContainerApp:
    """Answers every request to one container cluster of an application; without an application, that there is none."""

    def __init__(
        self,
        messenger: Messenger,
        application: str = "",
        environment: Environment = SYSTEM,
        accounts: Accounts | None = None,
        absence: Callable[[], str] = no_application,
    ) -> None:
        """`accounts`: by which clients are known; None: they never need to be. `absence`: what to say where no
        application is served."""
        self._absence = absence
        self.metrics = ContainerMetrics(environment)
        self._messenger = messenger
        self._address_of = partial(address_of, application)
        self._environment = environment
        self._accounts = accounts
        self._gate: Gate | None = None
        self._interfaces: Interfaces | None = None
        self._making_interfaces = threading.Lock()
        self.state: Final = StateApi(self.metrics, environment, absence)
        self._router = Router(not_found=_not_found, method_not_allowed=_method_not_allowed)
        self.state.bind(self._router)
        MetricsApi(self.state, environment).bind(self._router)
        DescriptionApi("container").bind(self._router)

    @property
    def running(self) -> Running | None:
        """The application that is served; None: there is none."""
        return self.state.running

    def configure(self, running: Running | None) -> None:
        """Serves another application from now on; requests under way end as they began. None: there is none.

        May be called from any thread.
        """
        try:
            self._configure(running)
        finally:
            _core.forget_routes()

    def _configure(self, running: Running | None) -> None:
        if self._accounts is not None:
            self._gate = gate_of(running, self._accounts, error_response)
        if running is not None or self._interfaces is not None:
            interfaces = self._make_interfaces()
            interfaces.configure(running)
            self.state.content_metrics = interfaces.content_metrics
            self.state.interface_metrics = interfaces.metrics
        self.state.running = running

    def _make_interfaces(self) -> Interfaces:
        """The interfaces, made at the first call. Any thread; imports most of the service once."""
        from paperwasp.container.interfaces import Interfaces

        with self._making_interfaces:
            if self._interfaces is None:
                self._interfaces = Interfaces(self._messenger, self._address_of, self._environment, self._absence)
            return self._interfaces

    def body_limit_bytes(self, raw_path: str) -> int:
        """How large a request body may be."""
        if not raw_path.startswith(DOCUMENT_ROOT):
            return limits.HTTP_QUERY_BODY_BYTES
        own = self.running.container.max_document_size_bytes if self.running else None
        return limits.HTTP_DOCUMENT_BODY_BYTES if own is None else own

    async def handle(self, request: Request) -> Answer:
        """The answer. Errors: as `begin`."""
        return await settled(self.begin(request))

    def begin(self, request: Request, server: str = "") -> Begun:
        """Begins to answer. Errors, now or later: what is wrong with a body of CBOR, or a request that is for no
        interface. `server`: the id, in services.xml, of the server at which it came."""
        gate = self._gate
        if gate is not None:
            if (answer := gate.refuse(request, server)) is not None:
                return answer
            if gate.filters is not None:
                return gate.filters.begin(request, server, self.admit)
        return self._answer_cbor(request) if mentions_cbor(request) else self._begin(request)

    def begin_batch(self, batch: RequestBatch) -> int:
        """Takes the first requests of a batch for the document API; returns how many."""
        running, interfaces, gate = self.state.running, self._interfaces, self._gate
        if running is None or interfaces is None or not running.container.document_api or mentions_cbor(batch.head):
            return 0
        return interfaces.documents.begin_batch(batch) if gate is None or gate.admits(batch) else 0

    def admit(self, request: Request) -> Begun:
        """Begins to answer what may be asked: what filters let pass, and what this process asks itself."""
        return self._answer_cbor(request) if mentions_cbor(request) else self._begin(request)

    def decoded_puts(self) -> DecodedPuts | None:
        """Takes puts of this process that have no JSON; None: there is no application with documents here."""
        running, interfaces = self.state.running, self._interfaces
        if running is None or interfaces is None or not running.container.document_api:
            return None
        return interfaces.documents.decoded_puts

    def embeds(self, document_type: str) -> bool:
        """Whether indexing such documents may take long, since it embeds: they wait for a model beside the loop."""
        interfaces = self._interfaces
        return interfaces is not None and document_type in interfaces.documents.slow_types

    async def _answer_cbor(self, request: Request) -> Answer:
        request = await as_json_request(request)
        answer = await settled(self._begin(request))
        if is_search(request.raw_path) or is_evaluation(request.raw_path):  # they know the format
            return answer
        return await as_accepted(request, answer)

    def route_of(self, request: Request) -> _core.TextRoute | None:
        """The route of requests that differ from this one in their texts alone; None: it has none, or none is known."""
        running, interfaces = self.state.running, self._interfaces
        if self._gate is not None or running is None or interfaces is None or not running.container.search:
            return None
        if not is_search(request.raw_path) or mentions_cbor(request):
            return None
        return interfaces.search.route_of(request)

    def _begin(self, request: Request) -> Begun:
        path, running, interfaces = request.raw_path, self.state.running, self._interfaces
        if path.startswith(DOCUMENT_ROOT):
            if running is None or running.container.document_api:
                return self._begin_later(request) if interfaces is None else interfaces.documents.begin(request)
        elif is_search(path):
            if running is None:
                return json_response(503, {"message": self._absence()})
            if running.container.search:
                return self._begin_later(request) if interfaces is None else interfaces.search.begin(request)
        elif is_evaluation(path) and running is not None and running.container.model_evaluation:
            return self._begin_later(request) if interfaces is None else interfaces.evaluation.handle(request)
        return self._router.handle(request)

    async def _begin_later(self, request: Request) -> Answer | PendingAnswer:
        """Where there has been no application yet, the interfaces are made first, on a thread beside the event loop."""
        await asyncio.to_thread(self._make_interfaces)
        return await settled(self._begin(request))


def error_response(request: Request, error: PaperwaspError) -> Response:
    """An error as the interface that the request was for says it."""
    path = request.raw_path
    if path.startswith(DOCUMENT_ROOT) or is_search(path) or is_evaluation(path):
        return _interface_error(request, error)
    return error_as_accepted(request, json_response(error.http_status, {"message": error.message}))


def _interface_error(request: Request, error: PaperwaspError) -> Response:
    from paperwasp.container.interfaces import error_response

    return error_response(request, error)


def _not_found(request: Request) -> Response:
    return json_response(404, {"message": f"No binding for URI '{request.url}'."})


def _method_not_allowed(request: Request, allowed: tuple[str, ...]) -> Response:
    message = f"Method '{request.method}' is not allowed at '{request.raw_path}'"
    return json_response(405, {"error": message}, {"Allow": ", ".join(allowed)})
