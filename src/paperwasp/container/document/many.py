"""Requests to /document/v1/ about many documents: GET visits, POST copies, PUT updates, DELETE removes.

Vespa: https://docs.vespa.ai/en/reference/api/document-v1.html
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from paperwasp.application.model import ApplicationModel
from paperwasp.base.env import SYSTEM, Environment
from paperwasp.cluster.messenger import Messenger
from paperwasp.container.document.bulk import BulkContext, answer_bulk, read_request
from paperwasp.container.document.routes import Routes
from paperwasp.container.document.visit import answer_visit
from paperwasp.container.document.visit_clusters import VisitClusters
from paperwasp.container.document.visit_parameters import read_visit
from paperwasp.container.embedding_threads import EmbeddingThreads
from paperwasp.container.large_requests import read_in_turn
from paperwasp.http.messages import Answer, Request


class ManyDocuments:
    """Answers such requests for one application. Immutable."""

    def __init__(
        self,
        messenger: Messenger,
        model: ApplicationModel,
        address_of: Callable[[str], str],
        routes: Routes,
        embedding: EmbeddingThreads,
        environment: Environment = SYSTEM,
    ) -> None:
        self._messenger = messenger
        self._clusters = VisitClusters(model, address_of)
        self._routes = routes
        self._embedding = embedding
        self._environment = environment
        self._one_large = asyncio.Lock()

    async def answer(self, request: Request) -> Answer:
        """Errors: what is wrong with the request; Overload, Timeout."""
        now_us = self._environment.time_ns() // 1000
        if request.method == "GET":
            visit = await read_in_turn(self._one_large, request, read_visit, request, self._clusters, now_us)
            return await answer_visit(request, visit, self._messenger, self._environment)
        context = BulkContext(self._clusters, self._routes, now_us)
        bulk = await read_in_turn(self._one_large, request, read_request, request, context)
        return await answer_bulk(request, bulk, self._messenger, self._embedding, self._environment)
