"""Who may speak to the config server: whoever has a key of scope deploy, or shows a certificate that its port trusts.

Health, version and metrics are open to all, as they are in containers. Differs: Vespa leaves this to a network of its
own, or to its cloud.
"""

from __future__ import annotations

from paperwasp.base.env import SYSTEM, Environment
from paperwasp.errors import Forbidden, PaperwaspError, Unauthenticated
from paperwasp.http.messages import Request
from paperwasp.operations.access import DEPLOY, KnownKeys, Refusals, bearer_token, is_open, shown_id


class DeployGuard:
    """Says who is refused. Runs on the event loop."""

    def __init__(self, keys: KnownKeys, refusals: Refusals, environment: Environment = SYSTEM) -> None:
        self._keys = keys
        self._refusals = refusals
        self._environment = environment

    def refusal(self, request: Request) -> PaperwaspError | None:
        """The reason to refuse a request, which the log has then; None: it may be served."""
        if request.client is not None or is_open(request.raw_path):
            return None
        token = bearer_token(request.headers)
        if token is None:
            self._refusals.note(request, Unauthenticated.http_status, "no key and no certificate")
            return Unauthenticated("Unauthorized")
        key = self._keys.find(token)
        if key is None:
            why = f"an unknown or revoked key {shown_id(token)}".rstrip()
        elif key.is_expired(self._environment.now_seconds()):
            why = f"key '{key.name}' ({key.id}) has expired"
        elif DEPLOY not in key.scopes:
            why = f"key '{key.name}' ({key.id}) has no scope '{DEPLOY}'"
        else:
            return None
        self._refusals.note(request, Forbidden.http_status, why)
        return Forbidden("Forbidden")
