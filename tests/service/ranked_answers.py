"""Asks for hits with their relevance and features, for the golden scripts of ranking.

A case is a YQL statement, or `where …` for `select * from music where …`; lines `name=value` are further parameters.
The answer is the HTTP status and the total count, then for each hit the last part of its id, its relevance, and the
features that it shows; or `400 error CODE: message`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from tests import web

_FEATURES = ("matchfeatures", "summaryfeatures", "rankfeatures")


def ranked(url: str, statement: str, *parameters: str) -> str:
    yql = f"select * from music {statement}" if statement.startswith("where") else statement
    body = {"timeout": "20s", "yql": yql, **dict(line.split("=", 1) for line in parameters)}
    answer = web.post(url, json=body, timeout=30)
    return f"{answer.status_code} {_told(answer.json()['root'])}"


def _told(root: Mapping[str, Any]) -> str:
    if errors := root.get("errors"):
        return "\n".join(f"error {error['code']}: {error['message']}" for error in errors)
    return "\n".join([str(root["fields"]["totalCount"]), *(_hit(hit) for hit in root.get("children", []))])


def _hit(hit: Mapping[str, Any]) -> str:
    relevance = hit["relevance"] if isinstance(hit["relevance"], str) else f"{hit['relevance']:.10g}"
    shown = [orjson.dumps(hit["fields"][name]).decode() for name in _FEATURES if name in hit["fields"]]
    return " ".join([str(hit["id"]).rpartition(":")[2], relevance, *shown])
