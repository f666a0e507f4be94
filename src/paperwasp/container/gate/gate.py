"""The gate of a container: what a request must pass before an interface sees it.

Containers that ask nothing of their clients have none.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from paperwasp.admin.access import (
    READ,
    WRITE,
    Key,
    KnownKeys,
    Refusals,
    bearer_token,
    is_open,
    refusal_headers,
    shown_id,
)
from paperwasp.application.client_rules import client_rules
from paperwasp.base.env import Environment
from paperwasp.base.records import replace
from paperwasp.container.paths import is_evaluation, is_search
from paperwasp.errors import Forbidden, PaperwaspError, Unauthenticated
from paperwasp.http.messages import Request, Response
from paperwasp.http.request_batch import RequestBatch

if TYPE_CHECKING:
    from paperwasp.application.client_rules import ClientRules
    from paperwasp.container.gate.filters import RequestFilters
    from paperwasp.container.state import Running

ErrorResponse = Callable[[Request, PaperwaspError], Response]


class Gate:
    """Lets requests in, or answers them. Runs on the event loop."""

    def __init__(
        self, rules: AccessRules | None, filters: RequestFilters | None, error_response: ErrorResponse
    ) -> None:
        """`rules`: None where everybody may ask; `filters`: None where there are none. `error_response` says an error
        as the interface does that the request was for."""
        self._rules = rules
        self.filters: Final = filters
        self._error_response = error_response

    def admits(self, batch: RequestBatch) -> bool:
        """Whether each request of a batch may be asked for sure: else `refuse` and filters say it of each."""
        if self.filters is not None:
            return False
        clients = {id(line): line.peer.certificate for line in batch.lines}.values()
        rules = self._rules
        return rules is None or all(rules.permits(replace(batch.head, client=client)) for client in clients)

    def refuse(self, request: Request, server: str) -> Response | None:
        """The answer to a request at the server of that id that may not be asked; None: it may, or filters say."""
        refusal = None if self._rules is None else self._rules.refusal(request)
        if refusal is None:
            return None
        preflight = None if self.filters is None else self.filters.preflight(request, server)
        return preflight or refused(request, refusal, self._error_response)


def refused(request: Request, refusal: PaperwaspError, error_response: ErrorResponse) -> Response:
    """The answer to a request that is not let in, which nobody may keep."""
    answer = error_response(request, refusal)
    return replace(answer, headers={**answer.headers, **refusal_headers(refusal)})


def gate_of(running: Running | None, accounts: Accounts, error_response: ErrorResponse) -> Gate | None:
    """The gate of a container with this application; None: everybody may ask everything."""
    if running is None:
        return None
    container, files = running.container, running.model.files
    rules = None
    if container.access.is_required(accounts.authenticates):
        rules = AccessRules(client_rules(container.access, files), accounts)
    filters = None if container.filtering is None else _filters_of(running)
    return None if rules is None and filters is None else Gate(rules, filters, error_response)


def _filters_of(running: Running) -> RequestFilters:
    from paperwasp.components.registry import files_of
    from paperwasp.container.gate.filters import RequestFilters
    from paperwasp.schema.files import PackageFiles

    schemas = running.model.schemas.values()
    return RequestFilters(running.container, files_of(schemas) if schemas else PackageFiles(running.model.files))


# Whether whoever sends a request may ask it: by a client certificate, or a key sent as a bearer token.
#
#     neither                                    401
#     one of them has the permission             served
#     none has, or the key is unknown, or over   403
#
# Vespa: https://docs.vespa.ai/en/security/guide.html; the answers of its data-plane filters.


class Accounts(Struct, frozen=True):
    """The parts that the containers of a service share."""

    keys: KnownKeys
    refusals: Refusals
    environment: Environment
    authenticates: bool = False
    """Whether clients of containers that do not say otherwise must tell who they are."""


class AccessRules:
    """The rules of one container. Runs on the event loop."""

    def __init__(self, rules: ClientRules, accounts: Accounts) -> None:
        self._certificates = rules.certificates
        self._names = rules.keys
        self._keys = accounts.keys
        self._refusals = accounts.refusals
        self._now_seconds = accounts.environment.now_seconds

    def permits(self, request: Request) -> bool:
        """Whether a request may be served, as far as is known without a closer look: else `refusal` says it."""
        permission = needed_permission(request.method, request.raw_path)
        if permission is None:
            return True
        client = request.client
        if client is not None and client.sha256 in self._certificates[permission]:
            return True
        sent = request.headers.get("authorization")
        key = None if sent is None else self._keys.find_sent(sent)
        return key is not None and not self._fault(key, permission)

    def refusal(self, request: Request) -> PaperwaspError | None:
        """The reason to refuse a request, which the log has then; None: it may be served."""
        permission, client = needed_permission(request.method, request.raw_path), request.client
        if permission is None or self.permits(request):
            return None
        token = bearer_token(request.headers)
        if token is None:
            if client is None:
                self._refusals.note(request, Unauthenticated.http_status, "no key and no certificate")
                return Unauthenticated("Unauthorized")
            why = f"the certificate has no permission '{permission}'"
        elif not (why := self._problem(request, token, permission)):
            return None
        self._refusals.note(request, Forbidden.http_status, why)
        return Forbidden("Forbidden")

    def _problem(self, request: Request, token: str, permission: str) -> str:
        """Why a token does not give the permission; empty: it does."""
        key = self._keys.find(token)
        if key is None:
            id = shown_id(token)
            return f"an unknown or revoked key {id}" if id else "an unknown key"
        self._keys.remember(request.headers["authorization"], key)
        return self._fault(key, permission)

    def _fault(self, key: Key, permission: str) -> str:
        """Why a key does not give the permission; empty: it does."""
        if key.is_expired(self._now_seconds()):
            return f"key {_shown(key)} has expired"
        if permission not in key.scopes:
            return f"key {_shown(key)} has no scope '{permission}'"
        if self._names is not None and key.name not in self._names[permission]:
            return f"key {_shown(key)} is of no client with permission '{permission}' in services.xml"
        return ""


def _shown(key: Key) -> str:
    return f"'{key.name}' ({key.id})"


# The permission that a request needs, by its path and method.
#
#     pages of health, version and metrics   none (`access.open_pages`)
#     /search, /model-evaluation/v1          GET, HEAD, OPTIONS and POST read, anything else writes
#     everything else, known or not          GET, HEAD and OPTIONS read, anything else writes
#
# So what is not known to be open is closed. Paths are compared as they came.
#
# Vespa: https://docs.vespa.ai/en/security/guide.html#request-mapping
# Differs: POST to the models reads too, since it changes nothing.


_READING: Final = frozenset(("GET", "HEAD", "OPTIONS"))


@lru_cache(maxsize=256)
def needed_permission(method: str, raw_path: str) -> str | None:
    """`read` or `write`; None: everybody may."""
    if is_open(raw_path):
        return None
    if method in _READING or (method == "POST" and (is_search(raw_path) or is_evaluation(raw_path))):
        return READ
    return WRITE
