"""The JSON of `configChangeActions`: what a change of an application needs, in the words of the Deploy API."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from paperwasp.application.changes.found import Action, Changes

NO_ACTIONS: Final[Mapping[str, list[Any]]] = {"restart": [], "refeed": [], "reindex": []}


def actions_as_json(changes: Changes) -> dict[str, Any]:
    """The three lists of actions. Vespa: clients read them after `prepared` and `prepareandactivate`."""
    return {
        "restart": [_restart(action) for action in changes.of_kind("restart")],
        "refeed": [_of_type(action) for action in changes.of_kind("refeed")],
        "reindex": [_of_type(action) for action in changes.of_kind("reindex")],
    }


def _restart(action: Action) -> dict[str, Any]:
    return {
        "clusterName": action.cluster,
        "clusterType": action.cluster_type,
        "serviceType": action.service_type,
        **_reasons(action),
    }


def _of_type(action: Action) -> dict[str, Any]:
    return {
        "name": action.name,
        "documentType": action.document_type,
        "clusterName": action.cluster,
        **_reasons(action),
    }


def _reasons(action: Action) -> dict[str, Any]:
    services = [
        {
            "serviceName": service.name,
            "serviceType": service.type,
            "configId": service.config_id,
            "hostName": service.host,
        }
        for service in action.services
    ]
    return {"messages": list(action.messages), "services": services}
