"""Health, versions, metrics and status pages of both ports."""

from __future__ import annotations

from typing import Final

from paperwasp.http.description import PATH
from tools.openapi.parts import (
    HTML,
    TEXT,
    Json,
    answer,
    enum,
    errors,
    json_answer,
    operation,
    query,
    ref,
    with_default,
)

_TAG: Final = "state"
_CONSUMER: Final = query(
    "consumer", {"type": "string"}, "`default` is shown a part of the metrics, any other all of them."
)
_FORMAT: Final = query(
    "format", with_default(enum("json", "prometheus"), "json"), "The metrics as JSON, or as text for Prometheus."
)


def _get(name: str, summary: str, schema: str, *more: int, parameters: tuple[Json, ...] = ()) -> dict[str, Json]:
    responses = {"200": json_answer(summary, ref(schema)), **errors(ref("Error"), *more)}
    return {"get": operation(name, summary, _TAG, responses, parameters=parameters)}


def _text(name: str, summary: str, media: str, *more: int) -> dict[str, Json]:
    responses = {"200": answer(summary, {media: {"type": "string"}}), **errors(ref("Error"), *more)}
    return {"get": operation(name, summary, _TAG, responses)}


def _of_both() -> dict[str, dict[str, Json]]:
    return {
        PATH: _get("description", "This description.", "Description"),
        "/state/v1": _get("stateResources", "The addresses of the pages below.", "Resources"),
        "/state/v1/health": _get("health", "Whether the service is up, and why it is not.", "Health"),
        "/state/v1/version": _get("version", "The version of Vespa whose interfaces are spoken.", "Version"),
        "/state/v1/config": _get("config", "The generation that is served, and the one that is wanted.", "Config"),
        "/ApplicationStatus": _get("applicationStatus", "The application that is served.", "ApplicationStatus"),
        **_metrics(),
    }


def _metrics() -> dict[str, dict[str, Json]]:
    metrics = _get("metrics", "Health with all metrics.", "Health", 400, parameters=(_FORMAT,))
    metrics["get"]["responses"]["200"]["content"][TEXT] = {"schema": {"type": "string"}}
    prometheus = _text("prometheus", "All metrics as text for Prometheus, with histograms.", TEXT)
    prometheus["get"]["parameters"] = [_CONSUMER]
    return {
        "/state/v1/metrics": metrics,
        "/state/v1/metrics/histograms": _text("histograms", "Latencies in buckets, as text for Prometheus.", TEXT),
        "/metrics/v1": _get("servicesResources", "The address of the metrics.", "Resources"),
        "/metrics/v1/values": _get("metricsOfServices", "All metrics.", "Services", parameters=(_CONSUMER,)),
        "/metrics/v2": _get("nodesResources", "The address of the metrics.", "Resources"),
        "/metrics/v2/values": _get("metricsOfNodes", "All metrics, by nodes.", "Nodes", parameters=(_CONSUMER,)),
        "/prometheus/v1": _get("prometheusResources", "The address of the metrics.", "Resources"),
        "/prometheus/v1/values": prometheus,
    }


def container_paths() -> dict[str, dict[str, Json]]:
    """The paths of a container."""
    page = _text("statusPage", "A page that is there while an application is active.", HTML)
    page["get"]["responses"]["404"] = answer("No application is active yet.", {TEXT: {"type": "string"}})
    return {
        **_of_both(),
        "/": _get("handlers", "The handlers of the port.", "Handlers"),
        "/status.html": page,
    }


def config_server_paths() -> dict[str, dict[str, Json]]:
    """The paths of the config server."""
    return {
        **_of_both(),
        "/": _get("handlers", "The handlers of the port.", "Handlers"),
        "/status": _get("status", "The versions of Vespa that can be deployed.", "Status"),
        "/status.html": _text("statusPage", "A page that is there while the service is.", HTML),
    }
