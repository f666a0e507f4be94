"""Filters of requests: objects of Python that see the head of a request, and answer it, change it or let it pass.

    request ─ bindings ─▶ the chain of its path ─ filter ─ filter ─▶ interface
                              └─ none: 403 where filtering is strict

A chain runs on a thread of its container, at most ACCESS_FILTER_THREADS at a time, so that the event loop waits for
none. What a filter raises, or returns that is nothing a filter may, is answered with 500 without the reason; the log
has that, with its place in the package's file.

Vespa: https://docs.vespa.ai/en/reference/applications/services/http.html#filtering
Differs: a filter is a class in Python, or one of Vespa's for pages of other origins; chains are in the order in which
they stand.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from paperwasp.application.services_model import strictest_first
from paperwasp.base.records import replace
from paperwasp.base.threads import ThreadPool
from paperwasp.components import ChangedHead, FilterAnswer, RequestHead
from paperwasp.components.cors import ANSWERS, PREFLIGHT, Cors, cors_class
from paperwasp.components.python_components import is_python, load, place_of
from paperwasp.errors import InternalError, InvalidInput, Overload, Timeout
from paperwasp.http.messages import Answer, Request, Response, decode, text_response
from paperwasp.http.pending import Begun, settled
from paperwasp.limits.access import ACCESS_FILTER_SECONDS, ACCESS_FILTER_THREADS, ACCESS_FILTERS_WAITING
from paperwasp.schema.files import PackageFiles

if TYPE_CHECKING:
    from paperwasp.application.services_model import Container, FilterChain, HttpServer

_LOG: Final = logging.getLogger("paperwasp.access")
_REJECTED: Final = text_response(403, "Request did not match any request filter chain", "text/plain")
"""As Vespa says it."""
_STATUSES: Final = range(200, 600)

C = TypeVar("C")
Chain = Sequence[tuple[str, Callable[[RequestHead], Any]]]
"""Id and method of each filter."""


class RequestFilters:
    """The filter chains of one container. Runs on the event loop; its filters on threads."""

    def __init__(self, container: Container, files: PackageFiles) -> None:
        """`files`: those of the package, where the modules of its filters are. `container` has filtering."""
        filtering = container.filtering
        assert filtering is not None
        components = [each for each in container.components if each.kind == "filter"]
        loaded = {each.id: load(each, files) for each in components if is_python(each)}
        self._held = tuple(loaded.values())  # with their modules, where what they import late is found
        cors = {each.id: (cors_class(each), Cors(each)) for each in components if cors_class(each)}
        filters = {id: each.object.filter for id, each in loaded.items()}
        filters |= {id: each.filter for id, (name, each) in cors.items() if name == PREFLIGHT}
        answers = {id: each for id, (name, each) in cors.items() if name == ANSWERS}
        self._requests = _Chosen(
            {chain.id: tuple((id, filters[id]) for id in chain.filters if id in filters) for chain in filtering.chains},
            filtering.chains,
            container.servers,
            lambda server: server.request_chain,
        )
        self._answers = _Chosen(
            {chain.id: tuple(answers[id] for id in chain.filters if id in answers) for chain in filtering.answers},
            filtering.answers,
            container.servers,
            lambda server: server.response_chain,
        )
        self._preflights = frozenset(id for id, (name, _) in cors.items() if name == PREFLIGHT)
        self._is_strict = filtering.is_strict
        self._threads = ThreadPool("filter", ACCESS_FILTER_THREADS)

    def begin(self, request: Request, server: str, admitted: Callable[[Request], Begun]) -> Begun:
        """Begin to answer a request at the server of that id: by `admitted`, or by the answer of a filter."""
        chain = self._requests.chain(request.raw_path, server)
        if chain is None and self._is_strict:
            return _REJECTED
        if answers := self._answers.chain(request.raw_path, server):
            admitted = partial(_with_fields, answers, admitted)
        return self._run(chain, request, admitted) if chain else admitted(request)

    def preflight(self, request: Request, server: str) -> Response | None:
        """The answer to a browser that asks, without saying who it is, whether a page may ask; None: it is no such
        request, or the filter for it is not the first of its chain."""
        chain = self._requests.chain(request.raw_path, server) if request.method == "OPTIONS" else None
        if not chain or chain[0][0] not in self._preflights:
            return None
        answer = chain[0][1](_head_of(request))
        return None if answer is None else _response(answer)

    async def _run(self, chain: Chain, request: Request, admitted: Callable[[Request], Begun]) -> Answer:
        """Errors: Overload where too many requests wait for filters; Timeout; InternalError."""
        if (undone := self._threads.undone()) >= ACCESS_FILTERS_WAITING:
            raise Overload(f"Rejecting execution due to overload: {undone} requests already wait for filters")
        try:
            running = asyncio.wrap_future(self._threads.submit(_pass, chain, request))
            passed = await asyncio.wait_for(running, ACCESS_FILTER_SECONDS)
        except TimeoutError:
            raise Timeout(f"The filters of the request took longer than {ACCESS_FILTER_SECONDS:g} s") from None
        return passed if isinstance(passed, Response) else await settled(admitted(passed))


class _Chosen(Generic[C]):
    """Which chain a request goes through."""

    def __init__(
        self,
        chains: Mapping[str, C],
        declared: Sequence[FilterChain],
        servers: Sequence[HttpServer],
        default_of: Callable[[HttpServer], str],
    ) -> None:
        by_binding = {binding: chains[chain.id] for chain in declared for binding in chain.bindings}
        self._bindings = [(each, by_binding[each]) for each in strictest_first(list(by_binding))]
        self._ports = {server.id: server.port for server in servers}
        self._defaults = {server.id: chains.get(default_of(server)) for server in servers}

    def chain(self, raw_path: str, server: str) -> C | None:
        """The chain of a path; None: there is none."""
        port = self._ports.get(server)
        for binding, chain in self._bindings:
            if binding.fits(port, raw_path):
                return chain
        if "%" in raw_path and (found := self._decoded_chain(raw_path, port)) is not None:
            return found
        return self._defaults.get(server)

    def _decoded_chain(self, raw_path: str, port: int | None) -> C | None:
        """The chain of the path that this one means: it must not get past a filter by being written in another way."""
        try:
            path = decode(raw_path)
        except InvalidInput:
            return None
        return next((chain for binding, chain in self._bindings if binding.fits(port, path)), None)


def _with_fields(answers: Sequence[Cors], admitted: Callable[[Request], Begun], request: Request) -> Begun:
    """Begin the answer by `admitted`, with the header fields that the filters of answers add."""
    origin = request.headers.get("origin")
    begun = admitted(request)
    if origin is None:
        return begun
    fields: dict[str, str] = {}
    for each in answers:
        fields |= each.fields(origin)
    return _add_fields(begun, fields)


async def _add_fields(begun: Begun, fields: Mapping[str, str]) -> Answer:
    answer = await settled(begun)
    return replace(answer, headers={**answer.headers, **fields})


def _pass(chain: Chain, request: Request) -> Request | Response:
    """The request as the filters of a chain leave it, or the answer of one of them. Errors: InternalError."""
    for id, method in chain:
        try:
            made = method(_head_of(request))
            if made is None:
                continue
            if isinstance(made, FilterAnswer):
                return _response(made)
            request = _changed(request, made)
        except (Exception, SystemExit) as error:
            _LOG.error("Filter '%s' failed for %r: %s", id, request.raw_path[:200], place_of(error))
            raise InternalError("A filter of the request failed; the log says why") from None
    return request


def _head_of(request: Request) -> RequestHead:
    certificate = request.client
    return RequestHead(
        request.method,
        request.raw_path,
        request.query,
        request.headers,
        request.scheme,
        request.address,
        "" if certificate is None else certificate.common_name,
        "" if certificate is None else certificate.sha256,
    )


def _response(answer: FilterAnswer) -> Response:
    """Errors: TypeError, ValueError for what is no answer."""
    if type(answer.status) is not int or answer.status not in _STATUSES:
        raise ValueError(f"{answer.status!r} is no status from {_STATUSES.start} to {_STATUSES.stop - 1}")
    body = answer.body.encode() if isinstance(answer.body, str) else bytes(answer.body)
    return Response(answer.status, body, str(answer.content_type), _texts(answer.headers))


def _changed(request: Request, made: object) -> Request:
    """Errors: TypeError for what is no change."""
    if not isinstance(made, ChangedHead):
        raise TypeError(f"a filter gave a {type(made).__name__} where None, FilterAnswer or ChangedHead is wanted")
    headers = dict(request.headers)
    for name, value in made.headers.items():
        headers.pop(name.lower(), None)
        if value is not None:
            headers |= _texts({name.lower(): value})
    return replace(request, headers=headers)


def _texts(headers: Mapping[str, str]) -> dict[str, str]:
    """Errors: TypeError."""
    for name, value in headers.items():
        if not isinstance(name, str) or not isinstance(value, str):
            raise TypeError(f"the header field {name!r} must be a str, and its value too")
    return dict(headers)
