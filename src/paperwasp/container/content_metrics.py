"""The metrics of the content clusters of an application, as `/state/v1/metrics` shows them.

Vespa: https://docs.vespa.ai/en/reference/operations/metrics/searchnode.html
Differs: Vespa's content nodes have a status port of their own; here the containers tell it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable

from paperwasp.base.measurements import Metric
from paperwasp.coordination.messages.documents import HealthRequest, HealthResponse, StatusRequest, StatusResponse
from paperwasp.coordination.messenger import Messenger
from paperwasp.errors import PaperwaspError
from paperwasp.limits.monitoring import CONTENT_METRICS_SECONDS


class ContentMetrics:
    """Asks content clusters. A cluster that does not answer soon is left out."""

    def __init__(self, messenger: Messenger, address_of: Callable[[str], str]) -> None:
        self._messenger = messenger
        self._address_of = address_of

    async def values(self, cluster_ids: Iterable[str]) -> list[Metric]:
        """Every metric of the clusters, as in `metrics.values`."""
        shown: list[Metric] = []
        for cluster_id in cluster_ids:
            try:
                request = self._messenger.request(self._address_of(cluster_id), StatusRequest())
                status: StatusResponse = await asyncio.wait_for(request, CONTENT_METRICS_SECONDS)
            except (PaperwaspError, TimeoutError):
                continue
            shown += (
                {**each, "dimensions": {"clusterid": cluster_id, **each["dimensions"]}} for each in status.metrics
            )
        return shown

    async def faults(self, cluster_ids: Iterable[str]) -> list[str]:
        """Why clusters take no operations."""
        found: list[str] = []
        for cluster_id in cluster_ids:
            try:
                request = self._messenger.request(self._address_of(cluster_id), HealthRequest())
                health: HealthResponse = await asyncio.wait_for(request, CONTENT_METRICS_SECONDS)
            except (PaperwaspError, TimeoutError):
                continue  # being restarted, or not there yet
            if health.fault is not None:
                found.append(f"content cluster '{cluster_id}': {health.fault}")
        return found
