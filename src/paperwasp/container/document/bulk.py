"""Changing many documents with one request: update-where (PUT), delete-where (DELETE), and copy (POST).

A visit finds the documents, and each is changed by an operation of its own, so that what is written at the same time
is neither lost nor waited for. An update or remove is made only of the document that was visited: one that has been
changed since is left alone. (The selection cannot be asked again then, since it may name imported fields, which only a
visit sees.) A request works for `timeChunk` and answers with a continuation.

Every operation that is before the continuation is durable. One that is repeated, after a failure, finds its document
changed already: arithmetic is then done twice, unless the selection no longer holds.

Runs on the event loop. Vespa: https://docs.vespa.ai/en/reference/api/document-v1.html#update-where
Vespa does the same by the timestamps of documents: visitAndDelete, visitAndUpdate in its DocumentV1ApiHandler.java.
Differs: a condition in the body of an update is refused, since the selection is the condition.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import aclosing
from functools import partial
from typing import Final

import orjson
from msgspec import Struct, structs

from paperwasp import limits
from paperwasp.application.model import ApplicationModel
from paperwasp.base.env import SYSTEM, Environment
from paperwasp.base.records import replace
from paperwasp.container.document.answer import IGNORED_FIELDS, JSON, NO_HEADERS
from paperwasp.container.document.routes import DocumentRoutes
from paperwasp.container.document.visit import Visitor, answer_visit
from paperwasp.container.document.visit_parameters import Parameters, Place, Visit, read_bulk, read_visit
from paperwasp.container.document.visit_rendering import VisitEnd, end_members
from paperwasp.container.document.visited_clusters import VisitClusters
from paperwasp.container.threads import EmbeddingThreads, read_in_turn
from paperwasp.coordination.messages.documents import ApplyRequest, VisitedDocument
from paperwasp.coordination.messenger import Messenger, Reply
from paperwasp.document.ids import DocumentId
from paperwasp.document.json_format import read_body
from paperwasp.document.operations import Operation, Outcome, Put, Refusal, Remove, Update
from paperwasp.errors import InvalidInput, Overload, PaperwaspError, Timeout
from paperwasp.http.messages import Answer, Request, Response
from paperwasp.indexing.components import TimeLeft

Change = Callable[[VisitedDocument, TimeLeft], ApplyRequest]
"""From a visited document, and the time for it, to what is done with it. Errors: InvalidInput; those of a component."""
_NO_FIELDS: Final = frozenset[str]()


class Bulk(Struct, frozen=True):
    """A request that is right: which documents, what is done with them, and where."""

    visit: Visit
    change: Change
    address: str
    """The address of the content cluster that is changed."""
    ignored_fields: bool = False
    is_slow: bool = False
    """Whether `change` may take long: it is not for the event loop then."""


class BulkContext(Struct, frozen=True):
    """The context in which a request is read: clusters, routes and time."""

    clusters: VisitClusters
    routes: DocumentRoutes
    now_us: int


async def answer_bulk(
    request: Request, bulk: Bulk, messenger: Messenger, embedding: EmbeddingThreads, environment: Environment
) -> Response:
    """The answer to a POST, PUT or DELETE for many documents, which asks for `bulk`. Errors: as VisitRequest."""
    visitor = Visitor(bulk.visit, messenger, environment)
    done: VisitEnd | None = None
    status, message = 200, None
    try:
        async with aclosing(visitor.chunks()) as chunks:
            async for documents in chunks:
                await _change_all(documents, bulk, visitor, messenger, embedding)
                done = visitor.end()
    except Timeout as error:
        if done is None:
            status, message = 504, error.message
    except Overload:
        if done is None:
            raise
    except PaperwaspError as error:
        if not visitor.has_moved and isinstance(error, InvalidInput):
            raise
        status, message = 500, error.message
    end = done or VisitEnd(0)
    if message is not None:
        end = replace(end, continuation=None, message=message)
    members = {"pathId": request.raw_path, **end_members(end)}
    return Response(
        status, orjson.dumps(members), JSON, {IGNORED_FIELDS: "true"} if bulk.ignored_fields else NO_HEADERS
    )


async def _change_all(
    documents: Sequence[VisitedDocument],
    bulk: Bulk,
    visitor: Visitor,
    messenger: Messenger,
    embedding: EmbeddingThreads,
) -> None:
    """Returns when all are durable. Errors: Timeout, and what any of them failed with."""

    def time_left() -> float:
        return visitor.left_seconds

    try:
        async with asyncio.timeout(visitor.left_seconds):
            for start in range(0, len(documents), limits.BULK_OPERATIONS):
                together = documents[start : start + limits.BULK_OPERATIONS]
                if bulk.is_slow:
                    changing = (embedding.run(bulk.change, document, time_left) for document in together)
                    changes = await asyncio.gather(*changing)
                else:
                    changes = [bulk.change(document, time_left) for document in together]
                await _apply(changes, bulk.address, messenger)
    except TimeoutError:
        raise Timeout(f"Timeout after {visitor.visit.timeout_ms:.0f}ms") from None


async def _apply(messages: Sequence[ApplyRequest], address: str, messenger: Messenger) -> None:
    """Sends them together, and again what there was no room for. A document that is gone, or not as selected any more,
    is no error."""
    while messages:
        answers = _Answers(len(messages))
        sent_count = messenger.send_all(address, messages, answers.replies)
        refused: list[ApplyRequest] = []
        for message, answer in zip(messages[:sent_count], await answers.first(sent_count), strict=True):
            if isinstance(answer, Overload):
                refused.append(message)
            elif isinstance(answer, BaseException):
                raise answer
            elif isinstance(answer, Outcome) and answer.refusal in (Refusal.TOO_LARGE, Refusal.UNFIT):
                raise InvalidInput(f"{message.operation.id}: {answer.refusal.value}")
        messages = [*refused, *messages[sent_count:]]
        if messages:
            await asyncio.sleep(limits.VISIT_RETRY_SECONDS)


class _Answers:
    """The answers to messages that are sent together, and one future for all of them."""

    def __init__(self, count: int) -> None:
        self._found: list[object] = [None] * count
        self._count = 0
        self._expected = 0
        self._are_there: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.replies: list[Reply] = [partial(self._take, number) for number in range(count)]

    async def first(self, count: int) -> list[object]:
        """The answers, or errors, to the first of them."""
        self._expected = count
        if self._count < count:
            await self._are_there
        return self._found[:count]

    def _take(self, number: int, answer: object) -> None:
        self._found[number] = answer
        self._count += 1
        if self._count == self._expected and not self._are_there.done():
            self._are_there.set_result(None)


def read_request(request: Request, context: BulkContext) -> Bulk:
    """Errors: InvalidInput, also LanguageError for the selection; TooLarge."""
    Parameters(request).refuse("dryRun")
    return _READERS[request.method](request, context)


def _read_update(request: Request, context: BulkContext) -> Bulk:
    parameters = Parameters(request)
    context.clusters.cluster(parameters.required("cluster"))
    visit = _without_fields(read_bulk(request, context.clusters, context.now_us))
    document_type = Place.of(request.raw_path).document_type
    assert document_type is not None  # there is no PUT at the root
    route = context.routes.route(document_type, visit.cluster.id)
    body = read_body(request.body)
    if body.condition is not None:
        raise InvalidInput(f"May not specify 'condition' at '{request.raw_path}': the selection is the condition")
    fields, ignored = context.routes.select_defined(body.fields, route)
    updates, create = route.reader.read_update(fields), bool(body.create)
    size_bytes = len(request.body)

    def change(document: VisitedDocument, time_left: TimeLeft) -> ApplyRequest:
        document_id = DocumentId.parse(document.id)
        processed = route.process(document_id, updates, time_left)
        operation = Update(document_id, processed, create, required_us=document.changed_us)
        return ApplyRequest(operation, size_bytes)

    return Bulk(visit, change, visit.cluster.address, ignored, route.is_slow)


def _read_remove(request: Request, context: BulkContext) -> Bulk:
    visit = _without_fields(read_bulk(request, context.clusters, context.now_us))

    def change(document: VisitedDocument, _: TimeLeft) -> ApplyRequest:
        return ApplyRequest(Remove(DocumentId.parse(document.id), required_us=document.changed_us))

    return Bulk(visit, change, visit.cluster.address)


def _read_copy(request: Request, context: BulkContext) -> Bulk:
    destination = context.clusters.cluster(Parameters(request).required("destinationCluster"))
    visit = read_bulk(request, context.clusters, context.now_us)
    if (document_type := Place.of(request.raw_path).document_type) is not None:
        destination.types_of(document_type)

    def change(document: VisitedDocument, time_left: TimeLeft) -> ApplyRequest:
        document_id, data = DocumentId.parse(document.id), document.fields or b"{}"
        destination.types_of(document_id.document_type)
        route = context.routes.route(document_id.document_type, destination.id)
        operation: Operation = Put(document_id, route.read_put(document_id, orjson.loads(data), time_left))
        return ApplyRequest(operation, len(data))

    return Bulk(visit, change, destination.address, is_slow=bool(context.routes.slow_types))


def _without_fields(visit: Visit) -> Visit:
    return replace(visit, documents=structs.replace(visit.documents, fields=_NO_FIELDS))


_READERS: Final[Mapping[str, Callable[[Request, BulkContext], Bulk]]] = {
    "PUT": _read_update,
    "DELETE": _read_remove,
    "POST": _read_copy,
}


# Requests to /document/v1/ about many documents: GET visits, POST copies, PUT updates, DELETE removes.
#
# Vespa: https://docs.vespa.ai/en/reference/api/document-v1.html


class ManyDocuments:
    """Answers such requests for one application. Immutable."""

    def __init__(
        self,
        messenger: Messenger,
        model: ApplicationModel,
        address_of: Callable[[str], str],
        routes: DocumentRoutes,
        embedding: EmbeddingThreads,
        environment: Environment = SYSTEM,
    ) -> None:
        self._messenger = messenger
        self._clusters = VisitClusters(model, address_of)
        self._routes = routes
        self._embedding = embedding
        self._environment = environment
        self._one_large = asyncio.Lock()

    async def answer(self, request: Request) -> Answer:
        """Errors: what is wrong with the request; Overload, Timeout."""
        now_us = self._environment.time_ns() // 1000
        if request.method == "GET":
            visit = await read_in_turn(self._one_large, request, read_visit, request, self._clusters, now_us)
            return await answer_visit(request, visit, self._messenger, self._environment)
        context = BulkContext(self._clusters, self._routes, now_us)
        bulk = await read_in_turn(self._one_large, request, read_request, request, context)
        return await answer_bulk(request, bulk, self._messenger, self._embedding, self._environment)
