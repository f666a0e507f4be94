"""The document API: one request about one document, turned into a message to its content clusters.

    plain fields   request → plain change (`PlainChanges.read`)                            → queue → messenger → answer
    all others     request → path and options → typed fields → operation (`_call_of`)      → queue → messenger → answer

`begin` takes the first way that fits: plain fields, also of a batch (`begin_batch`), at once; beside the loop where
indexing may take long, as that of an embedder does (`_begin_beside`); on a thread, one after the other, where the
request is large (`_begin_large`); all others at once. `_call_of` finds all that the client can have done wrong.
All else runs on the event loop and never blocks it. The configuration is one reference that a deployment swaps.

Vespa: https://docs.vespa.ai/en/reference/api/document-v1.html
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from collections.abc import Set as AbstractSet
from functools import partial
from time import monotonic
from typing import Any, Final

from paperwasp import limits
from paperwasp.application.model import ApplicationModel
from paperwasp.application.services_model import Container
from paperwasp.base.env import SYSTEM, Environment
from paperwasp.base.records import replace
from paperwasp.base.yielding import yielding_if_large
from paperwasp.container.document.answer import (
    JSON,
    document_response,
    error_response,
    message_response,
    other_method,
)
from paperwasp.container.document.asking import Asking, AskingTogether, Changing, ChangingTogether
from paperwasp.container.document.bulk import ManyDocuments
from paperwasp.container.document.decoded import DecodedPuts
from paperwasp.container.document.operation import METHODS, Call, read_call
from paperwasp.container.document.plain_changes import ChangesTogether, PlainCall, PlainChanges
from paperwasp.container.document.queue import DocumentQueue
from paperwasp.container.document.request import ROOT, read_options, read_path
from paperwasp.container.document.routes import DocumentRoutes, Target
from paperwasp.container.document.sequencer import Sequenced, Sequencer
from paperwasp.container.paths import no_application
from paperwasp.container.threads import EmbeddingThreads, is_large, read_in_turn
from paperwasp.coordination.messages.documents import ApplyRequest, GetResponse
from paperwasp.coordination.messenger import Messenger
from paperwasp.document.operations import Outcome
from paperwasp.errors import PaperwaspError, Timeout
from paperwasp.http.messages import Answer, Request, Response
from paperwasp.http.pending import Begun, PendingAnswer, settled
from paperwasp.http.request_batch import RequestBatch
from paperwasp.indexing.components import TimeLeft, no_end

_CHANGES: Final = frozenset({"POST", "PUT", "DELETE"})
_ROOT_METHODS: Final = tuple(method for method in METHODS if method != "PUT")


class DocumentApi:
    """Answers `/document/v1/`. `configure` may be called at any time from any thread."""

    def __init__(
        self,
        messenger: Messenger,
        address_of: Callable[[str], str] = "content/{}".format,
        environment: Environment = SYSTEM,
        absence: Callable[[], str] = no_application,
    ) -> None:
        """`address_of` says where a content cluster of the application is served. `absence`: what to say where no
        application is."""
        self._absence = absence
        self._messenger = messenger
        self.queue: Final = DocumentQueue(messenger)
        self._address_of = address_of
        self._environment = environment
        self._one_large = asyncio.Lock()
        self._sequencer = Sequencer()
        self.embedding: Final = EmbeddingThreads("document-embedding", limits.embedding.DOCUMENT_THREADS)
        self._routes: DocumentRoutes | None = None
        self._plain_changes: PlainChanges | None = None
        self._many: ManyDocuments | None = None
        self.decoded_puts: DecodedPuts | None = None
        """Takes puts that have no JSON; None: there is no application."""

    def configure(self, model: ApplicationModel | None, container: Container | None = None) -> None:
        """Serves the documents of `model` from now on, as the container says; None: there is no application."""
        if model is None:
            self._routes = self._plain_changes = self._many = self.decoded_puts = None
            return
        routes = DocumentRoutes(model, self._address_of, container)
        self._many = ManyDocuments(self._messenger, model, self._address_of, routes, self.embedding, self._environment)
        self.decoded_puts = DecodedPuts(routes, self.queue)
        self._plain_changes = PlainChanges(routes)
        self._routes = routes

    @property
    def slow_types(self) -> AbstractSet[str]:
        """The document types of which indexing may take long."""
        return frozenset() if self._routes is None else self._routes.slow_types

    async def handle(self, request: Request) -> Answer:
        """The answer to any request below /document/v1/. Raises only defects."""
        return await settled(self.begin(request))

    def begin(self, request: Request) -> Begun:
        """As `handle`; where one content cluster is asked for one document, no task waits for the answer."""
        if self._plain_changes is not None and (plain := self._plain_changes.read(request)) is not None:
            return self._ask_one(request, plain) if isinstance(plain, Call) else self._ask_change(request, plain)
        if self._routes is not None and self._routes.slow_types and (slow := _slow_id(request, self._routes)):
            return self._begin_beside(request, slow)
        if is_large(request):
            return self._begin_large(request)
        try:
            return self._begin(request, self._call_of(request))
        except PaperwaspError as error:
            return error_response(request, error)

    def begin_batch(self, batch: RequestBatch) -> int:
        """Takes the first requests of a batch, up to one that is no plain change; returns how many."""
        read = [] if self._plain_changes is None else self._plain_changes.read_batch(batch)
        batch.content_type = JSON
        if isinstance(read, ChangesTogether):
            sizes_bytes = list(map(len, batch.bodies[: len(read.changes)]))
            take = ChangingTogether(batch, read).take
            self.queue.send_changes(read.address, read.changes, sizes_bytes, read.timeout_ms, take)
            return len(read.changes)
        asking = AskingTogether(batch, read)
        for number, call in enumerate(read):
            take_one = partial(asking.take, number)
            if isinstance(call, Call):
                self.queue.send(call.targets[0].address, call.message, call.options.timeout_ms, take_one)
            else:
                size_bytes = len(batch.bodies[number])
                self.queue.send_change(call.address, call.change, size_bytes, call.timeout_ms, take_one)
        return len(read)

    async def _begin_large(self, request: Request) -> Answer | PendingAnswer:
        try:
            call = await read_in_turn(self._one_large, request, self._call_of, request)
        except PaperwaspError as error:
            return error_response(request, error)
        return await settled(self._begin(request, call))

    def _begin(self, request: Request, call: Call | ManyDocuments | Response, since: float | None = None) -> Begun:
        """`since`: when the request's time began, by the monotonic clock; None: now."""
        if isinstance(call, Call):
            if len(call.targets) != 1:
                return self._ask_several(Asking(request, call), call, since)
            return self._ask_one(request, call, since)
        return call if isinstance(call, Response) else _answer_many(request, call)

    def _ask_one(self, request: Request, call: Call, since: float | None = None) -> PendingAnswer:
        asking = Asking(request, call)
        self.queue.send(call.targets[0].address, call.message, call.options.timeout_ms, asking.take, since)
        return asking

    def _ask_change(self, request: Request, call: PlainCall) -> PendingAnswer:
        changing, (change, address, timeout_ms) = Changing(request, call.change), call
        self.queue.send_change(address, change, len(request.body), timeout_ms, changing.take)
        return changing

    async def _begin_beside(self, request: Request, document_id: str) -> Answer | PendingAnswer:
        """Reads the request on a thread, and sends it behind the changes of the same document that came before."""
        sequenced, since = self._sequencer.join(document_id), monotonic()
        try:
            call = await self._read_in_time(request, sequenced, since)
        except PaperwaspError as error:
            return error_response(request, error)
        finally:
            sequenced.end_soon()
        return await settled(self._begin(request, call, since))

    async def _read_in_time(
        self, request: Request, sequenced: Sequenced, since: float
    ) -> Call | ManyDocuments | Response:
        """Read the request, and wait for the operations before it. Errors: Timeout, after the request's own timeout."""
        timeout_ms = read_options(request.query, request.method).timeout_ms
        end = since + timeout_ms / 1000
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                call = await self._read_outside(request, lambda: end - monotonic())
                await sequenced.wait()
        except TimeoutError:
            raise Timeout(f"Timeout after {timeout_ms:.0f}ms") from None
        return call

    async def _read_outside(self, request: Request, time_left: TimeLeft) -> Call | ManyDocuments | Response:
        def read() -> Call | ManyDocuments | Response:
            with yielding_if_large(len(request.body)):
                return self._call_of(request, time_left)

        return self._call_of(request) if request.method == "DELETE" else await self.embedding.run(read)

    def _call_of(self, request: Request, time_left: TimeLeft = no_end) -> Call | ManyDocuments | Response:
        document_id = read_path(request.raw_path)
        methods = METHODS if request.raw_path != ROOT else _ROOT_METHODS
        if request.method not in methods:
            return other_method(request, methods)
        if document_id is None:
            return self._many or message_response(503, request, self._absence())
        options = read_options(request.query, request.method)
        if options.dry_run and request.method != "GET" and not request.body:
            return document_response(
                200, request, document_id
            )  # the feed clients' handshake, before any deployment too
        if self._routes is None:
            return message_response(503, request, self._absence())
        if time_left is not no_end:
            options = replace(options, time_left=time_left)
        call = read_call(request, document_id, options, self._routes)
        return document_response(200, request, document_id) if options.dry_run else call

    async def _ask_several(self, asking: Asking, call: Call, since: float | None) -> Response:
        """Changes the document in all clusters, or reads it from the first that has it."""
        found: Any = GetResponse(None)
        try:
            if isinstance(call.message, ApplyRequest):
                found = _worst(await asyncio.gather(*(self._ask(call, target, since) for target in call.targets)))
            else:
                for target in call.targets:
                    found = await self._ask(call, target, since)
                    if found.fields is not None:
                        break
        except PaperwaspError as error:
            found = error
        return asking.response_to(found)

    def _ask(self, call: Call, target: Target, since: float | None) -> Coroutine[Any, Any, Any]:
        return self.queue.ask(target.address, call.message, call.options.timeout_ms, since)


async def _answer_many(request: Request, many: ManyDocuments) -> Answer:
    try:
        return await many.answer(request)
    except PaperwaspError as error:
        return error_response(request, error)


def _slow_id(request: Request, routes: DocumentRoutes) -> str:
    """The id of the document that the request changes, if indexing may take long for its type; else empty."""
    try:
        found = read_path(request.raw_path) if request.method in _CHANGES else None
    except PaperwaspError:
        return ""  # whoever reads the request tells it
    return found.text if found is not None and found.document_type in routes.slow_types else ""


def _worst(outcomes: Sequence[Outcome]) -> Outcome | None:
    """A change that one of its clusters refused was not done as it was asked for. None: it went to none."""
    refused = [outcome for outcome in outcomes if outcome.refusal is not None]
    return refused[0] if refused else outcomes[0] if outcomes else None


__all__ = ["ROOT", "DocumentApi", "error_response"]
