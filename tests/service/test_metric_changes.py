"""The settings of a field's vectors change under its documents: the next query is answered by the new ones."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests import web
from tests.service.in_process import Deployed, active, deployed_service
from tests.service.music import FILES

OVERRIDES = """<validation-overrides>
  <allow until="{until}">hnsw-settings-change</allow>
</validation-overrides>"""
VECTORS = {"short": [1, 0], "long": [10, 10]}
QUERY = [2, 2]
EUCLIDEAN = {"short": 1 / (1 + math.sqrt(5)), "long": 1 / (1 + math.sqrt(128))}
ANGULAR = {"long": 1.0, "short": 1 / (1 + math.pi / 4)}


def package(metric: str, links: int, until: str = "") -> Mapping[str, str]:
    """`until`: the day until which the graph may be built again."""
    schema = f"""schema music {{
      document music {{
        field v type tensor<float>(x[2]) {{
          indexing: attribute | index
          attribute {{ distance-metric: {metric} }}
          index {{ hnsw {{ max-links-per-node: {links} }} }}
        }}
      }}
      rank-profile near {{
        inputs {{ query(q) tensor<float>(x[2]) }}
        first-phase {{ expression: closeness(field, v) }}
      }}
    }}"""
    files = {"services.xml": FILES["services.xml"], "schemas/music.sd": schema}
    return files | ({"validation-overrides.xml": OVERRIDES.format(until=until)} if until else {})


def found(service: Deployed, *, approximate: bool) -> dict[str, float]:
    """Name → closeness, in the order of the hits."""
    how = f"{{targetHits: 2, approximate: {str(approximate).lower()}}}"
    body = {"yql": f"select * from music where {how}nearestNeighbor(v, q)", "ranking": "near", "input.query(q)": QUERY}
    root = web.post(f"{service.url}/search/", json=body, timeout=30).json()["root"]
    return {hit["id"].rpartition(":")[2]: hit["relevance"] for hit in root["children"]}


def restart_messages(answer: Mapping[str, Any]) -> list[str]:
    return [message for action in answer["configChangeActions"]["restart"] for message in action["messages"]]


def test_a_new_metric_is_in_force_after_the_deployment(tmp_path: Path) -> None:
    """The deployment says what Vespa would restart for; here it has been done when it ends."""
    with deployed_service(tmp_path) as service:
        active(service.deploy(package("euclidean", 16)))
        for name, vector in VECTORS.items():
            answer = web.post(f"{service.url}/document/v1/ns/music/docid/{name}", json={"fields": {"v": vector}})
            assert answer.status_code == 200
        for approximate in (True, False):
            assert list(found(service, approximate=approximate)) == list(EUCLIDEAN)
            assert found(service, approximate=approximate) == pytest.approx(EUCLIDEAN)

        refused = service.deploy(package("angular", 16))
        assert refused.status_code == 412 and "hnsw-settings-change" in refused.text
        assert found(service, approximate=True) == pytest.approx(EUCLIDEAN)

        until = (datetime.now(UTC).date() + timedelta(days=20)).isoformat()
        changed = active(service.deploy(package("angular", 4, until)))
        where = "Document type 'music': Field 'v' changed: "
        assert restart_messages(changed) == [
            f"{where}change hnsw index property 'max-links-per-node' from '16' to '4'",
            f"{where}change property 'distance-metric' from 'EUCLIDEAN' to 'ANGULAR'",
        ]
        for approximate in (True, False):
            assert list(found(service, approximate=approximate)) == list(ANGULAR)
            assert found(service, approximate=approximate) == pytest.approx(ANGULAR)
