"""The document API: one request about one document, turned into a message to its content cluster.

    request → path and options → typed fields → operation → messenger → answer

Everything up to the messenger is one synchronous step, `_call_of`, which finds all that the client can have done wrong.
Runs on the event loop and never blocks it. The configuration is one reference that a deployment swaps.

Vespa: https://docs.vespa.ai/en/reference/api/document-v1.html
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import orjson

from paperwasp.application import ApplicationModel, Container
from paperwasp.cluster.messenger import Messenger
from paperwasp.container.document_request import ROOT, Options, read_options, read_path
from paperwasp.container.document_routes import Route, Routes
from paperwasp.content.messages import ApplyRequest, GetRequest, GetResponse
from paperwasp.document.ids import DocumentId
from paperwasp.document.json_format import read_body
from paperwasp.document.operations import Put, Remove, Update
from paperwasp.errors import InvalidInput, PaperwaspError, Timeout
from paperwasp.http.messages import Request, Response

_JSON: Final = "application/json; charset=UTF-8"
_METHODS: Final = ("GET", "POST", "PUT", "DELETE")
_WHOLE_DOCUMENT: Final = ("[document]", "[all]")
_ID_ONLY: Final = ("[id]", "[none]")
_IGNORED_FIELDS: Final = {"X-Vespa-Ignored-Fields": "true"}
_TICK_SECONDS: Final = 0.05


@dataclass(frozen=True, slots=True)
class _Call:
    """A request that is right: what to send, where to, and what the answer needs."""

    id: DocumentId
    route: Route
    message: ApplyRequest | GetRequest
    options: Options
    ignored_fields: bool = False
    """Whether fields were left out that the document type does not have."""


class DocumentApi:
    """Answers `/document/v1/`. `configure` may be called at any time from any thread."""

    def __init__(self, messenger: Messenger, address_of: Callable[[str], str] = "content/{}".format) -> None:
        """`address_of` says where a content cluster of the application is served."""
        self._messenger = messenger
        self._address_of = address_of
        self._routes: Routes | None = None
        self._deadlines = _Deadlines()

    def configure(self, model: ApplicationModel | None, container: Container | None = None) -> None:
        """Serves the documents of `model` from now on, as the container says; None: there is no application."""
        self._routes = None if model is None else Routes(model, self._address_of, container)

    async def handle(self, request: Request) -> Response:
        """The answer to any request below /document/v1/. Raises only defects."""
        try:
            call = self._call_of(request)
        except PaperwaspError as error:
            return error_response(request, error)
        if isinstance(call, Response):
            return call
        try:
            answer = await self._ask(call)
            return _answer(request, call, answer)
        except PaperwaspError as error:
            return error_response(request, error, call.id)

    def _call_of(self, request: Request) -> _Call | Response:
        document_id = read_path(request.raw_path)
        if request.method not in _METHODS:
            return _other_method(request)
        options = read_options(request.query)
        if document_id is None:
            if self._routes is not None:
                self._routes.check_cluster(options.cluster)  # `vespa visit` asks for '*' to be told what there is
            raise InvalidInput(
                f"Visiting, and changing many documents at once, are not supported yet: {request.method}"
            )
        if options.dry_run and request.method != "GET" and not request.body:
            return _response(200, request, document_id)  # how the feed clients shake hands, before any deployment too
        routes = self._routes
        if routes is None:
            return _failure(503, request, "No application is active yet: deploy one")
        route = routes.route(document_id.document_type, options.cluster)
        if options.condition is not None:
            raise InvalidInput("Test-and-set conditions are not supported yet")
        call = _READERS[request.method](request, document_id, route, options, routes)
        return _response(200, request, document_id) if options.dry_run else call

    async def _ask(self, call: _Call) -> Any:
        addresses = list(call.route.addresses.values())
        if len(addresses) == 1:
            return await self._ask_one(addresses[0], call)
        if isinstance(call.message, ApplyRequest):
            return (await asyncio.gather(*(self._ask_one(address, call) for address in addresses)))[0]
        return await self._ask_in_turn(addresses, call)

    async def _ask_in_turn(self, addresses: Sequence[str], call: _Call) -> Any:
        """The document of the first cluster that has it."""
        for address in addresses:
            answer = await self._ask_one(address, call)
            if answer.fields is not None:
                break
        return answer

    async def _ask_one(self, address: str, call: _Call) -> Any:
        reply = asyncio.ensure_future(self._messenger.request(address, call.message))
        if not reply.done():
            self._deadlines.add(reply, call.options.timeout_ms)
        return await reply


def _get(request: Request, document_id: DocumentId, route: Route, options: Options, _: Routes) -> _Call:
    if options.dry_run:
        raise InvalidInput(f"May not specify 'dryRun' at '{request.raw_path}'")
    _shown_fields(options.field_set, document_id.document_type, route)
    return _Call(document_id, route, GetRequest(document_id), options)


def _put(request: Request, document_id: DocumentId, route: Route, options: Options, routes: Routes) -> _Call:
    routes.check_size(len(request.body))
    body = read_body(request.body)
    _refuse_condition(body.condition)
    if options.create if options.create is not None else body.create:
        raise InvalidInput(
            "'create' on a put is not supported yet: a put without it creates the document or replaces it"
        )
    fields, ignored = routes.defined(body.fields, route)
    put = Put(document_id, route.reader.read_put(fields, document_id.text))
    return _Call(document_id, route, ApplyRequest(put, len(request.body)), options, ignored)


def _update(request: Request, document_id: DocumentId, route: Route, options: Options, routes: Routes) -> _Call:
    routes.check_size(len(request.body))
    body = read_body(request.body)
    _refuse_condition(body.condition)
    create = options.create if options.create is not None else body.create
    fields, ignored = routes.defined(body.fields, route)
    update = Update(document_id, route.reader.read_update(fields, document_id.text), bool(create))
    return _Call(document_id, route, ApplyRequest(update, len(request.body)), options, ignored)


def _remove(_: Request, document_id: DocumentId, route: Route, options: Options, __: Routes) -> _Call:
    return _Call(document_id, route, ApplyRequest(Remove(document_id)), options)


_Read = Callable[[Request, DocumentId, Route, Options, Routes], _Call]
_READERS: Final[Mapping[str, _Read]] = {"GET": _get, "POST": _put, "PUT": _update, "DELETE": _remove}


def _refuse_condition(condition: str | None) -> None:
    if condition is not None:
        raise InvalidInput("Test-and-set conditions are not supported yet")


def _shown_fields(field_set: str | None, document_type: str, route: Route) -> frozenset[str] | None:
    """The fields that a fieldSet names; None: all of them. `type:` before it may be left out. Errors: InvalidInput."""
    if field_set is None:
        return None
    prefix, colon, names = field_set.rpartition(":")
    if colon and prefix != document_type:
        raise InvalidInput(f"The fieldSet '{field_set}' is not of document type '{document_type}'")
    if names in _WHOLE_DOCUMENT:
        return None
    if names in _ID_ONLY:
        return frozenset()
    fields = frozenset(name.strip() for name in names.split(","))
    if unknown := sorted(fields - route.fields):
        raise InvalidInput(f"No such field '{unknown[0]}' in document type '{document_type}' (fieldSet '{field_set}')")
    return fields


def _answer(request: Request, call: _Call, answer: Any) -> Response:
    if not isinstance(answer, GetResponse):
        return _response(200, request, call.id, b"", call)
    if answer.fields is None:
        return _response(404, request, call.id, b"", call)
    fields = answer.fields
    shown = _shown_fields(call.options.field_set, call.id.document_type, call.route)
    if shown is not None:
        fields = orjson.dumps({name: value for name, value in orjson.loads(fields).items() if name in shown})
    return _response(200, request, call.id, b',"fields":' + fields, call)


def _response(
    status: int, request: Request, document_id: DocumentId, members: bytes = b"", call: _Call | None = None
) -> Response:
    """`{"pathId","id"}` and more members, already JSON: stored documents are shown without being parsed."""
    if call is not None and call.options.trace_level > 0:
        message = f"Sent {type(call.message).__name__} to content cluster {call.route.clusters}"
        members += b',"trace":' + orjson.dumps([{"message": message}])
    head = orjson.dumps({"pathId": request.raw_path, "id": document_id.text})
    headers = _IGNORED_FIELDS if call is not None and call.ignored_fields else {}
    return Response(status, head[:-1] + members + b"}", _JSON, headers)


def error_response(request: Request, error: PaperwaspError, document_id: DocumentId | None = None) -> Response:
    """`{"pathId", "message"}`, with the id where the content cluster answered so."""
    return _failure(error.http_status, request, error.message, document_id)


def _failure(status: int, request: Request, message: str, document_id: DocumentId | None = None) -> Response:
    identity = {} if document_id is None else {"id": document_id.text}
    return Response(status, orjson.dumps({"pathId": request.raw_path, **identity, "message": message}), _JSON)


def _other_method(request: Request) -> Response:
    allowed = {"Allow": ",".join(_METHODS)}
    if request.method == "OPTIONS":
        return Response(204, b"", _JSON, allowed)
    message = f"'{request.method}' not allowed at '{request.raw_path}'. Allowed methods are: {', '.join(_METHODS)}"
    return Response(405, orjson.dumps({"pathId": request.raw_path, "message": message}), _JSON, allowed)


class _Deadlines:
    """Fails the futures whose time has come. One timer for all of them: a timer for each would cost more than a put."""

    def __init__(self) -> None:
        self._waiting: dict[asyncio.Future[Any], tuple[float, float]] = {}
        self._is_ticking = False

    def add(self, future: asyncio.Future[Any], timeout_ms: float) -> None:
        loop = future.get_loop()
        self._waiting[future] = (loop.time() + timeout_ms / 1000, timeout_ms)
        if not self._is_ticking:
            self._is_ticking = True
            loop.call_later(_TICK_SECONDS, self._tick, loop)

    def _tick(self, loop: asyncio.AbstractEventLoop) -> None:
        now = loop.time()
        self._waiting = {future: entry for future, entry in self._waiting.items() if not future.done()}
        for future, (deadline, timeout_ms) in self._waiting.items():
            if deadline <= now:
                future.set_exception(Timeout(f"Timeout after {timeout_ms:.0f}ms"))
        self._is_ticking = bool(self._waiting)
        if self._is_ticking:
            loop.call_later(_TICK_SECONDS, self._tick, loop)


__all__ = ["ROOT", "DocumentApi", "error_response"]
