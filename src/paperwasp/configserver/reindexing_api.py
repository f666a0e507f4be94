"""The Deploy API's reindexing: how far it is, asking for it, its speed, and turning it off and on.

Vespa: https://docs.vespa.ai/en/reference/api/deploy-v2.html#reindex
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

from paperwasp.application.model import ApplicationModel, ContentCluster
from paperwasp.configserver.parameters import APPLICATION, application_in_path, flag
from paperwasp.configserver.reindexing import ApplicationReindexing, ReindexingChange, ReindexingControl, Run, Target
from paperwasp.configserver.running import Activation, RunningApplications
from paperwasp.configserver.workers import Workers
from paperwasp.errors import InvalidInput
from paperwasp.http.messages import Request, Response, json_response
from paperwasp.http.routing import Router

FASTEST: Final = 100.0
_PREDICATE: Final = "predicate"
"""The name of the type whose fields have an index of their own kind, which is an attribute."""


class ReindexingApi:
    """Handlers of `…/reindex` and `…/reindexing`."""

    def __init__(self, applications: RunningApplications, reindexing: ReindexingControl, workers: Workers) -> None:
        self._applications = applications
        self._reindexing = reindexing
        self._workers = workers

    def bind(self, router: Router) -> None:
        router.add("POST", APPLICATION + "/reindex", self.reindex)
        router.add("PUT", APPLICATION + "/reindex", self.set_speed)
        router.add("GET", APPLICATION + "/reindexing", self.status)
        router.add("POST", APPLICATION + "/reindexing", self.enable)
        router.add("DELETE", APPLICATION + "/reindexing", self.disable)

    async def reindex(self, request: Request, names: Mapping[str, str]) -> Response:
        """New runs of the types that the parameters name, from the beginning."""
        running, parameters = self._running(names), request.parameters()
        targets = _targets(running.model, parameters)
        speed, cause = _read_speed(parameters, 1.0), parameters.get("cause") or "asked for by a request"
        await self._change(running, lambda found, now_ms: found.with_ready(targets, now_ms, speed, cause))
        if not targets:
            return _message(f"Not reindexing any document types of application {running.application}")
        return _message(f"Reindexing document types {_list_targets(targets)} of application {running.application}")

    async def set_speed(self, request: Request, names: Mapping[str, str]) -> Response:
        """The speed of the runs of the types that the parameters name."""
        running, parameters = self._running(names), request.parameters()
        targets = _targets(running.model, parameters)
        speed = _read_speed(parameters, None)
        await self._change(running, lambda found, _: found.with_speed(targets, speed))
        if not targets:
            return _message(f"Not changing reindexing of any document types of application {running.application}")
        of_types = f"document types {_list_targets(targets)} of application {running.application}"
        return _message(f"Set reindexing speed to '{speed}' for {of_types}")

    async def enable(self, request: Request, names: Mapping[str, str]) -> Response:
        await self._change(self._running(names), lambda found, _: found.with_enabled(True))
        return _message("Reindexing enabled")

    async def disable(self, request: Request, names: Mapping[str, str]) -> Response:
        """Disables reindexing: runs are halted where they are."""
        await self._change(self._running(names), lambda found, _: found.with_enabled(False))
        return _message("Reindexing disabled")

    async def status(self, request: Request, names: Mapping[str, str]) -> Response:
        running = self._running(names)
        found = await self._workers.read(self._reindexing.of, running.application)
        clusters = {cluster.id: _cluster(cluster, found) for cluster in running.model.content_clusters}
        return json_response(200, {"enabled": found.enabled, "clusters": clusters})

    def _running(self, names: Mapping[str, str]) -> Activation:
        return self._applications.running_of(application_in_path(names))

    async def _change(self, running: Activation, change: ReindexingChange) -> None:
        await self._workers.read(self._reindexing.change, running.application, change)


def _targets(model: ApplicationModel, parameters: Mapping[str, str]) -> list[Target]:
    """The types that `clusterId`, `documentType` (lists with commas) and `indexedOnly` leave. Errors: InvalidInput."""
    clusters, types = _names(parameters, "clusterId"), _names(parameters, "documentType")
    by_id = {cluster.id: cluster for cluster in model.content_clusters}
    indexed_only = flag(parameters, "indexedOnly")
    found: list[Target] = []
    for cluster_id in clusters or sorted(by_id):
        if cluster_id not in by_id:
            only = ", ".join(sorted(by_id))
            raise InvalidInput(f"No content cluster '{cluster_id}' in application — only: {only}")
        cluster = by_id[cluster_id]
        for name in types or sorted(cluster.document_types):
            if name not in cluster.document_types:
                only = ", ".join(sorted(cluster.document_types))
                raise InvalidInput(f"No document type '{name}' in cluster '{cluster_id}' — only: {only}")
            if not indexed_only or _is_indexed(cluster, name):
                found.append((cluster_id, name))
    return found


def _is_indexed(cluster: ContentCluster, document_type: str) -> bool:
    """Whether the type is of mode `index` and has a field with an index.

    Vespa: documentTypesWithIndex of VespaModel.java
    """
    has_mode = any(each.type == document_type and each.mode == "index" for each in cluster.declared.documents)
    fields = cluster.schemas[document_type].fields.values()
    return has_mode and any(field.index is not None and field.type.name != _PREDICATE for field in fields)


def _names(parameters: Mapping[str, str], name: str) -> list[str]:
    parts = (part.strip() for part in parameters.get(name, "").split(","))
    return sorted({part for part in parts if part})


def _read_speed(parameters: Mapping[str, str], default: float | None) -> float:
    text = parameters.get("speed", "")
    if not text:
        if default is None:
            raise InvalidInput("'speed' must be given")
        return default
    try:
        speed = float(text)
    except ValueError:
        speed = math.nan
    if not 0 <= speed <= FASTEST:
        raise InvalidInput(f"Illegal value '{text}' of 'speed': it is a number from 0 to {FASTEST:g}")
    return speed


def _list_targets(targets: list[Target]) -> str:
    by_cluster: dict[str, list[str]] = {}
    for cluster, document_type in targets:
        by_cluster.setdefault(cluster, []).append(document_type)
    return ", ".join(f"[{', '.join(types)}] in '{cluster}'" for cluster, types in by_cluster.items())


def _cluster(cluster: ContentCluster, found: ApplicationReindexing) -> dict[str, Any]:
    types = sorted(cluster.document_types)
    return {
        "pending": [name for name in types if (cluster.id, name) in found.scheduled],
        "ready": {name: _run(found.runs.get((cluster.id, name))) for name in types},
    }


def _run(run: Run | None) -> dict[str, Any]:
    """A run as clients see it; nothing of a type that was never reindexed."""
    if run is None:
        return {}
    shown: dict[str, Any] = {"readyMillis": run.ready_ms, "speed": run.speed, "cause": run.cause, "state": run.state}
    if run.started_ms:
        shown["startedMillis"] = run.started_ms
    if run.ended_ms:
        shown["endedMillis"] = run.ended_ms
    shown["progress"] = run.progress
    if run.message:
        shown["message"] = run.message
    return shown


def _message(text: str) -> Response:
    return json_response(200, {"message": text})
