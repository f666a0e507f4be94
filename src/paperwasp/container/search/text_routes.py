"""Routes of known requests, by which the core answers them without Python. `http.routed_requests` asks for them, by way
of `container.search.handler.SearchHandler.route_of`.

    KnownRequest → RouteQuery → Messenger.hand → route      what the core leaves → TextAnswers, or the general way

Runs on the event loop.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Protocol

from msgspec import Struct

from paperwasp.container.search.answer_cache import AnswerCache
from paperwasp.container.search.known_requests import KnownRequest, OwnValues
from paperwasp.container.search.rendering import JSON_TYPE
from paperwasp.container.search.text_answers import GeneralWay, Messenger, TextAnswers
from paperwasp.core import _core
from paperwasp.http.messages import Request, Response
from paperwasp.http.pending import Begun
from paperwasp.search.text_query import RouteQuery, TextAnswer

_SHOWN: Final = Response(200, b"", JSON_TYPE)


class ClusterRoute(Protocol):
    """The route as a content cluster has it: `server.roles.plan_runs.ClusterRoute`."""

    @property
    def route(self) -> _core.TextRoute: ...

    @property
    def documents(self) -> int: ...

    @property
    def note_waiting(self) -> Callable[[bool], None]: ...

    def note_sent(self, count: int) -> None: ...

    def answer(self, run: _core.PlanRun) -> TextAnswer | None: ...


class RouteAnswers(Struct, eq=False):
    """The part of a route's requests that the core leaves to Python: `http.routed_requests.Answers`."""

    known: KnownRequest
    request: Request
    """The one that the route was found for: others have another text, or vector."""
    texts: TextAnswers
    cache: AnswerCache
    config: object
    generally: Callable[[Request, int], GeneralWay]
    """(a request, when it began) → the general way of it."""
    cluster_route: ClusterRoute | None = None
    """Of the content cluster; None until that has answered."""
    documents: int = 0
    """The number of documents that are searched."""
    note_waiting: Callable[[bool], None] = lambda _: None
    """The content cluster's."""
    shown: Response = _SHOWN

    def note_sent(self, count: int) -> None:
        """So many answers were written."""
        assert self.cluster_route is not None
        self.cluster_route.note_sent(count)
        self.cache.lookups += self.known.reads_cache * count

    def about(self, routed: _core.RoutedText) -> object:
        """The facts of an answer for monitoring."""
        return self.known.texts.about(routed.total, routed.shown, self.documents, routed.writing_ns)

    def begin(self, request: Request, routed: _core.RoutedText) -> Begun:
        """Begins to answer a request that the core has not answered, in the time that it has left."""
        known, values, began_ns = self.known, OwnValues(routed.text, routed.vector), routed.begun_ns
        generally = self.generally(request, began_ns)
        run = routed.take_run() if routed.has_run else None
        if run is None:
            if routed.takes_long and known.reads_cache and self.cache.may_have(known.key(values), self.config):
                return generally()
            return self.texts.begin(known, values, began_ns, self.config, generally, counts=True)
        assert self.cluster_route is not None
        found = self.cluster_route.answer(run)
        if found is None:
            return generally()
        return self.texts.response_of(known, values, found, self.config, counts=True)


def find_route(messenger: Messenger, answers: RouteAnswers) -> _core.TextRoute | None:
    """The route of a known request; None: it has none."""
    known = answers.known
    hits, offset, timeout_ns = known.window
    keeps_long = known.reads_cache or known.texts.may_be_kept
    found: list[Any] = []
    query = RouteQuery(known.texts.template, hits, offset, timeout_ns, known.literals, keeps_long, answers)
    messenger.hand(known.address, query, found.append)
    if not found or found[0] is None or isinstance(found[0], Exception):
        return None
    cluster_route: ClusterRoute = found[0]
    answers.cluster_route = cluster_route
    answers.documents, answers.note_waiting = cluster_route.documents, cluster_route.note_waiting
    return cluster_route.route
