"""A content node at its address: which message goes where.

Operations go past the gate of feeding to the node's queue and are answered by its writer; short queries are answered on
the thread that asks, and compiled plans there or on threads of the core; everything else runs on the worker pool, where
what takes little time does not wait for what takes long, visits on a share of it. Reindexing begins on the pool, which
finds the documents, and is answered by the writer.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from math import inf
from threading import Lock
from typing import Any, Final

from paperwasp import limits
from paperwasp.base.records import replace
from paperwasp.base.yielding import switching_soon
from paperwasp.content.addresses import address_of
from paperwasp.content.node import ContentNode
from paperwasp.content.upkeep.reindexing import reindex
from paperwasp.content.upkeep.resources import FeedGate
from paperwasp.content.views.visiting import visit
from paperwasp.coordination.messages.documents import (
    ApplyChanges,
    ApplyRequest,
    GetRequest,
    GetResponse,
    HealthRequest,
    HealthResponse,
    ReindexRequest,
    Request,
    Response,
    StampRequest,
    StatusRequest,
    StatusResponse,
    VisitRequest,
    VisitResponse,
)
from paperwasp.coordination.messenger import Messenger, Reply, answered_together, in_turn
from paperwasp.coordination.worker_pool import PoolShare, WorkerPool
from paperwasp.errors import InternalError, Overload, PaperwaspError
from paperwasp.search.mutations import mutate
from paperwasp.search.plan.runs import Plans
from paperwasp.search.query import Query, SearchResponse
from paperwasp.search.search import BoundSearch, search
from paperwasp.search.served import ServedSchemas
from paperwasp.search.text_query import RouteQuery, TextQuery
from paperwasp.server.roles.content_figures import content_figures
from paperwasp.server.roles.plan_runs import ClusterRoute, PlanRuns

_OPERATIONS: Final = frozenset({ApplyRequest, ApplyChanges})


class ContentService:
    """Serves the messages to one content cluster: those of `coordination.messages.documents`, and queries. The
    messenger calls `handle`."""

    def __init__(
        self, node: ContentNode, pool: WorkerPool, served: ServedSchemas, gate: FeedGate | None = None
    ) -> None:
        self._node = node
        self._pool = pool
        self._visits = PoolShare(pool, limits.VISITS_AT_ONCE, limits.VISITS_WAITING)
        self._served = served
        self._inline_lock = Lock()
        self._gate = gate or FeedGate("content")
        self._queries = 0
        self._plans = Plans(served)
        self._runs = PlanRuns(limits.QUERY_THREADS, self._inline_lock)

    def serve(self, messenger: Messenger, application_name: str, cluster_id: str) -> None:
        messenger.serve(address_of(application_name, cluster_id), self.handle, self.handle_all)

    def handle(self, message: Request | Query | TextQuery | RouteQuery, reply: Reply) -> None:
        """The handler: never blocks. Errors: Overload, NoSpace, InvalidInput."""
        if type(message) is ApplyRequest:
            self._gate.check(message.operation, message.size_bytes)
            self._node.operations.submit(message.operation, reply, message.size_bytes)
        elif type(message) is ApplyChanges:
            with self._node.operations.adding():
                self._add_changes(message, reply)
        elif type(message) is ReindexRequest:
            self._gate.check_any()
            node = self._node
            self._pool.answer(
                lambda request: reindex(node.reader, node.operations, request, reply), message, _if_error(reply)
            )
        elif type(message) is HealthRequest:
            reply(HealthResponse(self._node.fault.reason))
        elif type(message) is StampRequest:
            reply(self._node.reader.view().stamp)
        elif type(message) is VisitRequest:
            self._visits.answer(self._visit, message, reply)
        elif type(message) is Query:
            self._queries += 1
            self._search(message, reply)
        elif type(message) is TextQuery:
            self._search_text(message, reply)
        elif type(message) is RouteQuery:
            reply(self._route(message))
        else:
            self._pool.answer_short(self._answer, message, reply)

    def handle_all(self, messages: Sequence[Any], replies: Sequence[Reply]) -> int:
        """The handler of messages that come together: the writer is woken once for all operations among them."""
        if not _OPERATIONS.issuperset(map(type, messages)):
            return in_turn(self.handle)(messages, replies)
        with self._node.operations.adding() as add:
            check = self._gate.check
            for number, (message, reply) in enumerate(zip(messages, replies, strict=True)):
                try:
                    if type(message) is ApplyChanges:
                        self._add_changes(message, reply)
                        continue
                    check(message.operation, message.size_bytes)
                    add(message.operation, reply, message.size_bytes)
                except Overload:
                    return number
                except Exception as error:
                    reply(error)
        return len(messages)

    def _add_changes(self, changes: ApplyChanges, reply: Reply) -> None:
        """Adds to the queue what the gate lets through. Errors: as of `handle`; then nothing is added."""
        replies = answered_together(reply, len(changes.changes))
        if self._gate.lets_through(changes):
            self._node.operations.add_changes(changes, replies)
            return
        kept, kept_replies, refused = ApplyChanges(), [], []
        for change, size_bytes, reply_one in zip(changes.changes, changes.sizes_bytes, replies, strict=True):
            try:
                self._gate.check(change, size_bytes)
            except PaperwaspError as error:
                refused.append((reply_one, error))
            else:
                kept.add([change], [size_bytes])
                kept_replies.append(reply_one)
        self._node.operations.add_changes(kept, kept_replies)
        for reply_one, refusal in refused:
            reply_one(refusal)

    def resize(self, threads: int, most_of_query: int = 0) -> None:
        """Has so many threads of the core for compiled plans from now on, and as many at most for one; 0: all."""
        self._runs.resize(threads, most_of_query)

    def close(self) -> None:
        """Return when no query is being answered on a calling thread, and none will be any more."""
        self._inline_lock.acquire()
        self._runs.close()

    def _search(self, query: Query, reply: Reply) -> None:
        """Answer a short query here, since a hand-off takes longer than it does, and others on the pool."""
        work: Callable[[Query], SearchResponse] = self._answer_query
        answer = self._pool.answer
        if self._inline_lock.acquire(blocking=False):
            try:
                bound = BoundSearch.if_short(self._node.reader.view(), query, self._served)
                expected_ns = inf if bound is None else bound.expected_ns()
                if bound is not None and expected_ns <= limits.INLINE_QUERY_NS:
                    self._reply(bound.answer(), reply)
                    return
            finally:
                self._inline_lock.release()
            if bound is not None:
                work = partial(_answer_bound, bound)
            if expected_ns <= limits.SHORT_QUERY_NS:
                answer = self._pool.answer_short
            else:
                work = _switching_soon(work)
        answer(work, query, lambda response: self._reply(response, reply), query.deadline.at_ns)

    def _search_text(self, query: TextQuery, reply: Reply) -> None:
        """Answer by a compiled plan; None where there is none for the query."""
        ready = None
        if self._inline_lock.acquire(blocking=False):
            try:
                ready = self._plans.run_of(self._node.reader.view(), query, time.monotonic_ns())
            finally:
                self._inline_lock.release()
        if ready is None:
            reply(None)
        else:
            self._runs.start(ready, reply)

    def _route(self, query: RouteQuery) -> ClusterRoute | None:
        pool = self._runs.threads_for_routes()
        if pool is None or not self._inline_lock.acquire(blocking=False):
            return None
        try:
            planned = self._plans.route_of(self._node.reader.view(), query, pool.threads)
        finally:
            self._inline_lock.release()
        return None if planned is None else ClusterRoute(planned, self._runs, pool)

    def _answer_query(self, query: Query) -> SearchResponse:
        return search(self._node.reader.view(), query, self._served)

    def _reply(self, answer: object, reply: Reply) -> None:
        """Answers a search, once what it changes is applied. What there is no room for is not changed."""
        if not isinstance(answer, SearchResponse) or not answer.mutations:
            reply(answer)
        elif self._gate.reason is not None:
            reply(replace(answer, mutations=()))
        else:
            mutate(self._node.operations, answer, reply)

    def _visit(self, request: VisitRequest) -> VisitResponse:
        return visit(self._node.reader.view().store, self._node.reader.view, request)

    def _answer(self, message: Request) -> Response:
        if isinstance(message, GetRequest):
            return GetResponse(self._node.reader.get(message.id, message.fields, message.tensor_form))
        if isinstance(message, StatusRequest):
            view = self._node.reader.view()
            metrics = list(content_figures(self._node, self._gate, self._pool, self._queries + self._runs.answered))
            return StatusResponse(view.live_count, view.generation, self._node.sizes_bytes(), metrics)
        raise InternalError(f"a content node does not serve {type(message).__name__}")


def _if_error(reply: Reply) -> Reply:
    """The reply to work that answers by itself unless it fails."""
    return lambda answer: reply(answer) if isinstance(answer, BaseException) else None


def _switching_soon(work: Callable[[Query], SearchResponse]) -> Callable[[Query], SearchResponse]:
    """Long work, which many short queries run beside: they ask for the interpreter's lock many times each."""

    def run(query: Query) -> SearchResponse:
        with switching_soon:
            return work(query)

    return run


def _answer_bound(bound: BoundSearch, _: Query) -> SearchResponse:
    return bound.answer()
