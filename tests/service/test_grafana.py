"""The dashboard for Grafana: every name in its expressions is a name that a service reports."""

from __future__ import annotations

import json
import re
from pathlib import Path

import httpx
from prometheus_client.parser import text_string_to_metric_families

from tests import web
from tests.service.music import write_package
from tests.service.running import RunningService, running_service
from tools.grafana import FILE, dashboard, written

_WORD = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")
_LABELS = re.compile(r"\{[^}]*\}|\[[^]]*\]|\bby \([^)]*\)")
_FUNCTION = re.compile(r"\b[a-z_]+ *(?=\()")


def names_in(expression: str) -> set[str]:
    """The names of metrics."""
    return set(_WORD.findall(_FUNCTION.sub("", _LABELS.sub("", expression))))


def test_names_in_an_expression() -> None:
    expression = 'histogram_quantile(0.5, sum by (le, kind) (rate(a_b{x="y",z=~"c"}[$__rate_interval]))) / sum (d_e{})'
    assert names_in(expression) == {"a_b", "d_e"}


def test_the_file_is_what_the_tool_writes() -> None:
    assert FILE.read_text() == written()
    panels = [panel for panel in dashboard()["panels"] if panel["type"] != "row"]
    assert len({panel["id"] for panel in dashboard()["panels"]}) == len(dashboard()["panels"])
    assert all(panel["targets"] for panel in panels)


def _load(service: RunningService) -> None:
    """A request of each kind that a panel is about."""
    document = "/document/v1/ns/music/docid/1"
    with httpx.Client(base_url=service.url, timeout=30, event_hooks={"request": [web.give_time]}) as client:
        assert client.post(document, json={"fields": {"title": "Blue"}}).status_code == 200
        assert client.post(document, json={"fields": {"no": 1}}).status_code == 400
        assert client.get("/search/", params={"query": "blue", "type": "all"}).status_code == 200
        assert client.get("/search/", params={"yql": "nonsense"}).status_code == 400


def _reported(url: str) -> set[str]:
    text = httpx.get(url + "/prometheus/v1/values", timeout=30).text
    return {sample.name for family in text_string_to_metric_families(text) for sample in family.samples}


def test_every_panel_shows_what_is_reported(tmp_path: Path) -> None:
    with running_service(tmp_path / "data", str(write_package(tmp_path / "music"))) as service:
        _load(service)
        reported = _reported(service.url)
    panels = json.loads(FILE.read_text())["panels"]
    expressions = [target["expr"] for panel in panels for target in panel.get("targets", ())]
    assert len(expressions) > 40
    unknown = {name: expression for expression in expressions for name in names_in(expression) - reported}
    assert unknown == {}
    for variable in json.loads(FILE.read_text())["templating"]["list"]:
        assert "label_values(" not in variable["query"] or "vespa_container_status" in reported
