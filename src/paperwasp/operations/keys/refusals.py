"""Refused requests: the header fields of their answers, and what the log says of them: who asked what, and why it was
refused; a limited number in each interval; the rest is counted.

Runs on one event loop.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from paperwasp.base.env import SYSTEM, Environment
from paperwasp.errors import PaperwaspError, Unauthenticated
from paperwasp.http.messages import Request
from paperwasp.limits.access import ACCESS_REFUSALS, ACCESS_REFUSALS_SECONDS

_NOT_KEPT: Final[Mapping[str, str]] = MappingProxyType({"Cache-Control": "must-revalidate,no-cache,no-store"})
_CHALLENGE: Final[Mapping[str, str]] = MappingProxyType({**_NOT_KEPT, "WWW-Authenticate": 'Bearer realm="paperwasp"'})
_LOG: Final = logging.getLogger("paperwasp.access")
_PATH_CHARACTERS: Final = 200


def refusal_headers(refusal: PaperwaspError) -> Mapping[str, str]:
    """Nobody may keep the answer; it says how clients can tell who they are, where they have not (RFC 9110, 11.6.1)."""
    return _CHALLENGE if isinstance(refusal, Unauthenticated) else _NOT_KEPT


class Refusals:
    """Logs refusals, a limited number in a time."""

    def __init__(self, environment: Environment = SYSTEM) -> None:
        self._environment = environment
        self._since_ns: int | None = None
        self._logged = 0
        self._omitted = 0

    def note(self, request: Request, status: int, why: str) -> None:
        """Neither the query string nor a header field is logged: there may be secrets in them."""
        now_ns = self._environment.monotonic_ns()
        if self._since_ns is None or now_ns - self._since_ns >= ACCESS_REFUSALS_SECONDS * 1e9:
            if self._omitted:
                _LOG.warning("%d more requests were refused, without a line for each", self._omitted)
            self._since_ns, self._logged, self._omitted = now_ns, 0, 0
        if self._logged >= ACCESS_REFUSALS:
            self._omitted += 1
            return
        self._logged += 1
        path = request.raw_path[:_PATH_CHARACTERS]
        _LOG.warning("Refused %s %r from %s with %d: %s", request.method[:20], path, _who(request), status, why)


def _who(request: Request) -> str:
    """The address of a client, and its certificate."""
    address = request.address or "an unknown address"
    client = request.client
    return address if client is None else f"{address} with certificate {client.common_name[:100]!r} {client.sha256}"
