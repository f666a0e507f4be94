"""The gate of a container: what a request must pass before an interface sees it.

Containers that ask nothing of their clients have none.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from paperwasp.access.refusals import refusal_headers
from paperwasp.application.client_rules import client_rules
from paperwasp.container.access.rules import AccessRules, Accounts
from paperwasp.errors import PaperwaspError
from paperwasp.http.messages import Request, Response
from paperwasp.http.pending import Begun

if TYPE_CHECKING:
    from paperwasp.container.state import Running

ErrorResponse = Callable[[Request, PaperwaspError], Response]


class Gate:
    """Lets requests in, or answers them. Runs on the event loop."""

    def __init__(self, rules: AccessRules, error_response: ErrorResponse) -> None:
        """`error_response` says an error as the interface does that the request was for."""
        self._rules = rules
        self._error_response = error_response

    def begin(self, request: Request, admitted: Callable[[Request], Begun]) -> Begun:
        """What `admitted` begins, or the refusal."""
        refusal = self._rules.refusal(request)
        return admitted(request) if refusal is None else refused(request, refusal, self._error_response)


def refused(request: Request, refusal: PaperwaspError, error_response: ErrorResponse) -> Response:
    """The answer to a request that is not let in, which nobody may keep."""
    answer = error_response(request, refusal)
    return replace(answer, headers={**answer.headers, **refusal_headers(refusal)})


def gate_of(running: Running | None, accounts: Accounts, error_response: ErrorResponse) -> Gate | None:
    """The gate of a container with this application; None: everybody may ask everything."""
    if running is None or not running.container.access.is_required(accounts.authenticates):
        return None
    rules = client_rules(running.container.access, running.model.files)
    return Gate(AccessRules(rules, accounts), error_response)
