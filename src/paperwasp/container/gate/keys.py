"""Decides whether the sender of a request may ask it: by a client certificate, or a key sent as a bearer token.

    neither                                    401
    one of them has the permission             served
    none has, or the key is unknown, or over   403

Vespa: https://docs.vespa.ai/en/security/guide.html; the answers of its data-plane filters.
"""

from __future__ import annotations

from msgspec import Struct

from paperwasp.admin.access import Key, KnownKeys, Refusals, bearer_token, shown_id
from paperwasp.application.client_rules import ClientRules
from paperwasp.base.env import Environment
from paperwasp.container.gate.permissions import needed_permission
from paperwasp.errors import Forbidden, PaperwaspError, Unauthenticated
from paperwasp.http.messages import Request


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
