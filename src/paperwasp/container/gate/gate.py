"""The gate of a container: what a request must pass before an interface sees it.

Containers that ask nothing of their clients have none.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from paperwasp.admin.access import refusal_headers
from paperwasp.application.client_rules import client_rules
from paperwasp.base.records import replace
from paperwasp.container.gate.keys import AccessRules, Accounts
from paperwasp.errors import PaperwaspError
from paperwasp.http.messages import Request, Response
from paperwasp.http.request_batch import RequestBatch

if TYPE_CHECKING:
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
