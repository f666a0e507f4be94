"""Requests to /document/v1/ about many documents: GET visits, POST copies, PUT updates, DELETE removes.

Vespa: https://docs.vespa.ai/en/reference/api/document-v1.html
"""

from __future__ import annotations

from collections.abc import Callable

from paperwasp.application import ApplicationModel
from paperwasp.cluster.messenger import Messenger
from paperwasp.container.document_bulk import answer_bulk
from paperwasp.container.document_routes import Routes
from paperwasp.container.document_visit import answer_visit
from paperwasp.container.visit_clusters import VisitClusters
from paperwasp.env import SYSTEM, Environment
from paperwasp.http.messages import Answer, Request


class ManyDocuments:
    """Answers such requests for one application. Immutable."""

    def __init__(
        self,
        messenger: Messenger,
        model: ApplicationModel,
        address_of: Callable[[str], str],
        routes: Routes,
        environment: Environment = SYSTEM,
    ) -> None:
        self._messenger = messenger
        self._clusters = VisitClusters(model, address_of)
        self._routes = routes
        self._environment = environment

    async def answer(self, request: Request) -> Answer:
        """Errors: what is wrong with the request; Overload, Timeout."""
        if request.method == "GET":
            return await answer_visit(request, self._clusters, self._messenger, self._environment)
        return await answer_bulk(request, self._clusters, self._routes, self._messenger, self._environment)
