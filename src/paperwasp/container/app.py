"""A container's face: a request in, a response out, whichever of its interfaces it is for.

A server shell adds the sockets and nothing else. Everything here runs on the event loop.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Final

from paperwasp import limits
from paperwasp.application.query_profiles import NO_QUERY_PROFILES
from paperwasp.application.significance import significance_models
from paperwasp.cluster.messenger import Messenger
from paperwasp.container.content_metrics import ContentMetrics
from paperwasp.container.document.request import ROOT as DOCUMENT_ROOT
from paperwasp.container.document.v1 import DocumentApi
from paperwasp.container.document.v1 import error_response as document_error
from paperwasp.container.metrics import HttpMetrics
from paperwasp.container.search.handler import ClusterConfig, SearchConfig, SearchHandler
from paperwasp.container.search.rendering import SearchError, SearchResult, accepted_format, respond
from paperwasp.container.state import Running, StateApi
from paperwasp.content.messages import address_of
from paperwasp.env import SYSTEM, Environment
from paperwasp.errors import PaperwaspError
from paperwasp.http.cbor import as_accepted, as_json_request, error_as_accepted, mentions_cbor
from paperwasp.http.messages import Answer, Request, Response, json_response
from paperwasp.http.routing import Router
from paperwasp.linguistics.significance import NO_MODELS
from paperwasp.semantics import NO_RULES

_SEARCH_ROOT: Final = "/search"


class ContainerApp:
    """Answers every request to one container cluster of an application; without an application, that there is none."""

    def __init__(self, messenger: Messenger, application: str = "", environment: Environment = SYSTEM) -> None:
        self.metrics = HttpMetrics()
        address = partial(address_of, application)
        self._documents = DocumentApi(messenger, address)
        self._search = SearchHandler(messenger, environment=environment, address_of=address)
        self._state = StateApi(self.metrics, ContentMetrics(messenger, address), environment)
        self._router = Router(not_found=_not_found, method_not_allowed=_method_not_allowed)
        self._state.bind(self._router)

    @property
    def running(self) -> Running | None:
        """What is served; None: there is no application."""
        return self._state.running

    def configure(self, running: Running | None) -> None:
        """Serves another application from now on; requests under way end as they began. None: there is none.

        May be called from any thread.
        """
        model = running.model if running else None
        clusters = [ClusterConfig(cluster.id, cluster.schemas) for cluster in model.content_clusters] if model else []
        profiles = model.query_profiles if model else NO_QUERY_PROFILES
        self._documents.configure(model, running.container if running else None)
        rules = model.rules if model else NO_RULES
        models = significance_models(running.container, running.model.files) if running else NO_MODELS
        self._search.configure(SearchConfig(tuple(clusters), profiles, rules, models))
        self._state.running = running

    def body_limit_bytes(self, raw_path: str) -> int:
        """How large a request body may be."""
        if not raw_path.startswith(DOCUMENT_ROOT):
            return limits.HTTP_QUERY_BODY_BYTES
        own = self.running.container.max_document_size_bytes if self.running else None
        return limits.HTTP_DOCUMENT_BODY_BYTES if own is None else own

    async def handle(self, request: Request) -> Answer:
        """The answer. Errors: what is wrong with a body of CBOR, or a request that is for no interface."""
        if not mentions_cbor(request):
            return await self._answer(request)
        request = await as_json_request(request)
        answer = await self._answer(request)
        return answer if _is_search(request.raw_path) else await as_accepted(request, answer)  # it knows `format`

    async def _answer(self, request: Request) -> Answer:
        path, running = request.raw_path, self._state.running
        if path.startswith(DOCUMENT_ROOT):
            if running is None or running.container.document_api:
                return await self._documents.handle(request)
        elif _is_search(path):
            if running is None:
                return json_response(503, {"message": "No application is active yet: deploy one"})
            if running.container.search:
                return await self._search.handle(request)
        return await self._router.handle(request)


def error_response(request: Request, error: PaperwaspError) -> Response:
    """An error as the interface that the request was for says it."""
    if request.raw_path.startswith(DOCUMENT_ROOT):
        return error_as_accepted(request, document_error(request, error))
    if _is_search(request.raw_path):
        answer = respond(SearchResult(errors=[SearchError.of(error)]), accepted_format(request))
        return replace(answer, status=error.http_status)
    return error_as_accepted(request, json_response(error.http_status, {"message": error.message}))


def _is_search(raw_path: str) -> bool:
    return raw_path.startswith("/search/") or raw_path == _SEARCH_ROOT


def _not_found(request: Request) -> Response:
    return json_response(404, {"message": f"No handler is bound to '{request.raw_path}'"})


def _method_not_allowed(request: Request, allowed: tuple[str, ...]) -> Response:
    message = f"Method '{request.method}' is not allowed at '{request.raw_path}'"
    return json_response(405, {"error": message}, {"Allow": ", ".join(allowed)})
