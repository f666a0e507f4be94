"""Metrics in the text form that Prometheus scrapes.

Vespa: https://docs.vespa.ai/en/reference/api/prometheus-v1.html
Format: https://prometheus.io/docs/instrumenting/exposition_formats/
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

PROMETHEUS: Final = "text/plain; version=0.0.4"
"""The media type."""
_NOT_IN_NAMES: Final = re.compile("[^a-zA-Z0-9_:]")


@dataclass(frozen=True, slots=True)
class Sample:
    """One value of one metric. `name` and the names of `labels` may hold dots and hyphens, which become `_`."""

    name: str
    labels: Mapping[str, str]
    value: float
    time_ms: int


def prometheus_text(samples: Iterable[Sample]) -> str:
    """The samples as text. Those of one metric stand together, behind its comment, in the order of the first ones."""
    lines_of: dict[str, list[str]] = {}
    for sample in samples:
        name = _NOT_IN_NAMES.sub("_", sample.name)
        labels = ",".join(f'{_NOT_IN_NAMES.sub("_", key)}="{_escaped(text)}"' for key, text in sample.labels.items())
        lines_of.setdefault(name, []).append(f"{name}{{{labels}}} {float(sample.value)} {sample.time_ms}")
    groups = ([f"# HELP {name}", f"# TYPE {name} untyped", *lines] for name, lines in lines_of.items())
    return "\n".join(line for group in groups for line in group) + "\n"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
