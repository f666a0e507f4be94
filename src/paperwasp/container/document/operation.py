"""A request about one document, read and checked: the message for the content clusters, or what is wrong.

All that the client can have done wrong is found here, before any content cluster has heard of it.

Vespa: https://docs.vespa.ai/en/reference/api/document-v1.html
Differs: a dry run with a body checks it; Vespa does not look at it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from msgspec import Struct

from paperwasp.container.document.request import Options, read_field_set
from paperwasp.container.document.routes import DocumentRoute, DocumentRoutes, Target
from paperwasp.coordination.messages.documents import ApplyRequest, GetRequest
from paperwasp.document.ids import DocumentId
from paperwasp.document.json_format import Body, read_body
from paperwasp.document.operations import Put, Remove, Update
from paperwasp.errors import InvalidInput
from paperwasp.http.messages import Request

METHODS: Final = ("GET", "POST", "PUT", "DELETE")


class Call(Struct, frozen=True):
    """A request that is right: what to send, where to, and what the answer needs."""

    id: DocumentId
    targets: tuple[Target, ...]
    """None of them: what the content clusters select does not include the document."""
    message: ApplyRequest | GetRequest
    options: Options
    ignored_fields: bool = False
    """Whether fields were left out that the document type does not have."""


def read_call(request: Request, document_id: DocumentId, options: Options, routes: DocumentRoutes) -> Call:
    """Errors: InvalidInput, also LanguageError for the condition; TooLarge."""
    return _READERS[request.method](request, document_id, options, routes)


def _get(request: Request, document_id: DocumentId, options: Options, routes: DocumentRoutes) -> Call:
    if options.dry_run:
        raise InvalidInput(f"May not specify 'dryRun' at '{request.raw_path}'")
    if not routes.has_type(document_id.document_type):  # nobody has such a document
        routes.check_cluster(options.cluster)
        return Call(document_id, (), GetRequest(document_id, None, options.tensor_form), options)
    route = routes.route(document_id.document_type, options.cluster)
    name = route.type.name
    fields = read_field_set(options.field_set, {name: route.type}, {name: route.derived})
    return Call(document_id, route.targets, GetRequest(document_id, fields, options.tensor_form), options)


def _put(request: Request, document_id: DocumentId, options: Options, routes: DocumentRoutes) -> Call:
    route = route_of_change(document_id.document_type, options, routes)
    if (plain := route.plain.read_put(request.body)) is not None:
        condition = _condition_of(options, routes)
        fields, json = route.finish_plain_put(document_id, plain, options.time_left)
        made = Put(document_id, fields, condition, bool(options.create), json)
        return Call(document_id, route.accepting(made), ApplyRequest(made, len(request.body)), options)
    body, condition, create = _read_body(request, options, routes)
    fields, ignored = routes.select_defined(body.fields, route)
    put = Put(document_id, route.read_put(document_id, fields, options.time_left), condition, create)
    return Call(document_id, route.accepting(put), ApplyRequest(put, len(request.body)), options, ignored)


def _update(request: Request, document_id: DocumentId, options: Options, routes: DocumentRoutes) -> Call:
    route = route_of_change(document_id.document_type, options, routes)
    if (plain := route.plain.read_update(request.body)) is not None:
        condition = _condition_of(options, routes)
        updates, json = route.finish_plain_update(document_id, plain, options.time_left)
        made = Update(document_id, updates, bool(options.create), condition, json=json)
        return Call(document_id, route.accepting(made), ApplyRequest(made, len(request.body)), options)
    body, condition, create = _read_body(request, options, routes)
    fields, ignored = routes.select_defined(body.fields, route)
    update = Update(document_id, route.read_update(document_id, fields, options.time_left), create, condition)
    return Call(document_id, route.accepting(update), ApplyRequest(update, len(request.body)), options, ignored)


def _remove(_: Request, document_id: DocumentId, options: Options, routes: DocumentRoutes) -> Call:
    cluster = _cluster_of_change(options, routes)
    if options.condition is not None:
        routes.check_condition(options.condition)
    remove = Remove(document_id, options.condition)
    if routes.ignores(document_id.document_type, cluster):
        return Call(document_id, (), ApplyRequest(remove), options)
    route = routes.route(document_id.document_type, cluster)
    return Call(document_id, route.accepting(remove), ApplyRequest(remove), options)


_Read = Callable[[Request, DocumentId, Options, DocumentRoutes], Call]
_READERS: Final[Mapping[str, _Read]] = {"GET": _get, "POST": _put, "PUT": _update, "DELETE": _remove}


def route_of_change(document_type: str, options: Options, routes: DocumentRoutes) -> DocumentRoute:
    """The route of a change of a document. Errors: InvalidInput."""
    return routes.route(document_type, _cluster_of_change(options, routes))


def _cluster_of_change(options: Options, routes: DocumentRoutes) -> str | None:
    """The cluster that is named for a change; None: all with the document type."""
    cluster = options.cluster
    if options.route is not None:
        named = routes.cluster_of(options.route)
        if named is not None and cluster not in (None, named):
            raise InvalidInput(f"Route '{options.route}' does not lead to content cluster '{cluster}'")
        cluster = named if named is not None else cluster
    return cluster


def _condition_of(options: Options, routes: DocumentRoutes) -> str | None:
    """The condition of a request whose body has none. Errors: InvalidInput, LanguageError."""
    condition = options.condition or None  # an empty one is none
    if condition is not None:
        routes.check_condition(condition)
    return condition


def _read_body(request: Request, options: Options, routes: DocumentRoutes) -> tuple[Body, str | None, bool]:
    """The body with the condition and `create` of the request: those of the query string win over those in the body."""
    body = read_body(request.body)
    condition = options.condition or body.condition or None  # an empty one is none
    create = options.create if options.create is not None else body.create
    if condition is not None:
        routes.check_condition(condition)
    return body, condition, bool(create)
