"""Requests that differ from one before in nothing but a user's text, or a vector: `http.http1_line.Http1Line` has the
core answer them.

    bytes → TextRoutes.begin → RoutedText → a thread writes the answer → its connection goes on     (no request is read)
    bytes without a route → the connection reads them as usual; its route is kept if it has one

A connection that was answered so gives its socket to threads of the core (`watch`), which read it, and answer the
requests whose routes they know (`core/http/watched_sockets.cpp`); the event loop is told of many at once.

What a route is stands in `core/http/text_route.hpp`; who finds one, and answers what the core has not, is behind
`Routing`.

Everything here runs on the event loop, but for those threads.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from copy import copy
from functools import partial
from typing import Final, NamedTuple, Protocol, cast

from paperwasp import limits
from paperwasp.base.asyncio_internals import has_more_to_do
from paperwasp.base.env import threads_for_cores
from paperwasp.base.records import replace
from paperwasp.core import _core
from paperwasp.errors import PaperwaspError
from paperwasp.http.compression import compress, gzipped, takes_gzip
from paperwasp.http.exchange import PortContext
from paperwasp.http.http1 import RequestReader, first_lines
from paperwasp.http.messages import Request, Response
from paperwasp.http.observing import Peer, Spoken
from paperwasp.http.pending import Begun
from paperwasp.http.traffic import Traffic

_HEAD_END: Final = b"\r\n\r\n"


class Answers(Protocol):
    """The part of a route's requests that the core leaves to Python: `container.search.text_routes.RouteAnswers`."""

    request: Request
    """The one that the route was found for: others have another text, or vector."""
    shown: Response
    """The status and content type of all answers that the core writes."""
    documents: int
    """The number of documents that are searched."""
    note_waiting: Callable[[bool], None]
    """Called when a request waits for a thread; with True where too many wait, and the event loop is to help."""

    def note_sent(self, count: int) -> None:
        """So many answers were written."""

    def about(self, routed: _core.RoutedText) -> object:
        """The facts of an answer, as in `Response.about`."""

    def begin(self, request: Request, routed: _core.RoutedText) -> Begun:
        """Begins to answer a request that the core has not answered."""


class Routing(Protocol):
    """Who knows the routes of the requests to a port: `server.roles.listener.Listener`."""

    def route_of(self, request: Request) -> _core.TextRoute | None:
        """The route of a request; None: it has none, or none is known yet."""

    def observe_sent(self, sent: Sequence[SentAnswer]) -> None:
        """Answers were sent. It must not raise."""


class WatchedLine(Protocol):
    """A connection whose socket the core reads: `http.watch.Watch`."""

    def receive_watched(self, came: bytes | _core.RoutedText | None) -> None:
        """Receive bytes, or a request that was answered (`is_here`), or is being; None: the socket is read no
        more, and says why to whoever reads it next. It must not raise."""


class SentAnswer(NamedTuple):
    """An answer that the core has written."""

    answers: Answers
    routed: _core.RoutedText
    line: Spoken
    peer: Peer

    @property
    def scheme(self) -> str:
        return self.answers.request.scheme

    @property
    def sent_bytes(self) -> int:
        """Of the answer's body."""
        return self.routed.body_bytes

    @property
    def received_bytes(self) -> int:
        """Of the request's body."""
        request = self.routed.request
        return len(request) - request.index(_HEAD_END) - len(_HEAD_END)

    @property
    def answer(self) -> Response:
        """The answer without its body."""
        return replace(self.answers.shown, about=self.answers.about(self.routed))

    def whole_request(self) -> Request:
        """The request as it came."""
        request = _plain_request(self.routed.request, self.peer)
        assert request is not None
        return request


class RoutedRequests:
    """Has the core answer the requests to one port whose routes are known; connections of HTTP/1.1 ask it first."""

    def __init__(self, routing: Routing, loop: asyncio.AbstractEventLoop, traffic: Traffic) -> None:
        self._routing = routing
        self._traffic = traffic
        self._sent: list[SentAnswer] = []
        """The answers that are not counted yet."""
        self._loop = loop
        self._routes = _core.TextRoutes(limits.REQUEST_FORMS)
        self._sockets: _core.WatchedSockets[WatchedLine] = _core.WatchedSockets(
            self._routes, limits.HTTP_RECEIVE_BYTES, max(limits.QUERY_THREADS, threads_for_cores())
        )
        loop.add_reader(self._sockets.fd, self._receive)

    def close(self) -> None:
        """The port has no connections any more."""
        self._loop.remove_reader(self._sockets.fd)
        self._sockets.close()

    def __len__(self) -> int:
        return len(self._routes)

    def begin(
        self, data: bytes, socket: _core.AnswerSocket, asker: Callable[[_core.RoutedText], None], peer: Peer
    ) -> _core.RoutedText | None:
        """Has a request answered that is known but for its own values, and calls the asker afterwards, unless it is
        here that it was answered (`is_here`). None: it is to be read.

        Until then nobody else may write to the socket.
        """
        routed = self._routes.begin(data, socket, asker, not has_more_to_do(self._loop))
        if isinstance(routed, bytes):
            routed = self._routes.begin(data, socket, asker, False) if self._learn(data, routed, peer) else None
        if routed is None or isinstance(routed, bytes):
            return None
        _note_waiting(routed)
        return routed

    def watch(
        self, socket: int, answers: _core.AnswerSocket, line: WatchedLine, asker: Callable[[_core.RoutedText], None]
    ) -> int:
        """Has the core read a socket from now on, and answer what comes next if it can. The number under which it is
        watched; 0: it cannot be."""
        try:
            return self._sockets.watch(socket, answers, line, asker)
        except OSError:  # the system watches no more, or the port has closed
            return 0

    def expect(self, number: int, *, request: bool) -> None:
        """Has a socket read again of which something was left to Python. request: whether the core may answer what
        comes next."""
        self._sockets.expect(number, request)

    def unwatch(self, number: int) -> bool:
        """Has the core read it no more. False: what it has read last is still to be told; then None is."""
        return self._sockets.unwatch(number)

    def is_read(self, number: int) -> bool:
        """Whether the core has read something of it that is still to be told."""
        return self._sockets.is_read(number)

    @property
    def watched(self) -> int:
        """How many sockets the core reads."""
        return len(self._sockets)

    def _receive(self) -> None:
        came, size_bytes = self._sockets.receive()
        self._traffic.received_bytes += size_bytes
        for line, each in came:
            if isinstance(each, _core.RoutedText):
                _note_waiting(each)
            line.receive_watched(each)

    def _learn(self, data: bytes, rest: bytes, peer: Peer) -> bool:
        """Keeps the route of a request. False: it has none."""
        changes = _core.route_changes()
        request = _plain_request(data, peer)
        route = None if request is None else self._routing.route_of(request)
        if route is None or request is None:
            return False
        shown = cast(Answers, route.answers).shown
        gzip = takes_gzip(request, shown)
        fields = gzipped(shown.headers) if gzip else shown.headers
        head = first_lines(shown.status, shown.content_type, fields, is_old=False)
        self._routes.put(rest, route, head, gzip, changes)
        return True

    @staticmethod
    def complete(routed: _core.RoutedText) -> bool:
        """Compresses and writes an answer that waits for it, unless it is small, or takes long to compress. False: a
        request is left, without an answer."""
        if routed.waits_for_gzip:
            answer = routed.answer
            if limits.HTTP_COMPRESSED_LEAST_BYTES <= len(answer) <= limits.HTTP_INLINE_GZIP_BYTES:
                routed.send(compress(answer))
        return routed.is_sent

    def note_sent(self, routed: _core.RoutedText, line: Spoken, peer: Peer) -> None:
        """An answer was written by the core. All of a round of the event loop are counted together."""
        if not self._sent:
            self._loop.call_soon(self._count)
        self._sent.append(SentAnswer(cast(Answers, routed.route.answers), routed, line, peer))

    def _count(self) -> None:
        sent, self._sent = self._sent, []
        counts: dict[Answers, int] = {}
        for each in sent:
            self._traffic.sent_bytes += each.routed.sent_bytes
            if each.routed.is_unsent:  # it is counted when it is written
                self._traffic.sent_bytes -= len(each.routed.unsent)
            counts[each.answers] = counts.get(each.answers, 0) + 1
        for answers, count in counts.items():
            answers.note_sent(count)
        self._routing.observe_sent(sent)


def _note_waiting(routed: _core.RoutedText) -> None:
    if not routed.is_here:
        cast(Answers, routed.route.answers).note_waiting(routed.is_worth_help)


def context_again(context: PortContext, routed: _core.RoutedText) -> PortContext:
    """The context of a port that answers a request that the core has left, in the time that it has left."""
    again = copy(context)
    again.handler = partial(cast(Answers, routed.route.answers).begin, routed=routed)
    return again


def _plain_request(data: bytes, peer: Peer) -> Request | None:
    """The only request that has come; None: it is not whole, or asks for more of the connection than an answer, or is
    broken, which reading it says."""
    reader = RequestReader()
    reader.feed(data)
    try:
        head = reader.read_head()
        if head is None or head.closes or head.fields.host_problem is not None or head.fields.h2_settings is not None:
            return None
        body = reader.read_body()
    except PaperwaspError:
        return None
    if not reader.is_body_over or reader.waiting_bytes:
        return None
    fields = head.fields
    return Request(head.method, head.raw_path, head.query, fields.headers, body, "http", head.host, None, peer.address)
