"""services.xml, read: every file in `scripts/` holds cases of one topic.

A case is a services.xml, `---`, and what it means: one line per container, content cluster, problem and note. Cases are
divided by `===`. To write the answers anew: `PAPERWASP_WRITE_SCRIPTS=1 pytest tests/application`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from paperwasp.application.services import Services, parse_services

SCRIPTS = Path(__file__).parent / "scripts"
PARTS = ("search", "document_api", "document_processing")


@pytest.mark.parametrize("path", sorted(SCRIPTS.glob("*.txt")), ids=lambda path: path.stem)
def test_script(path: Path) -> None:
    expected = path.read_text().rstrip("\n")
    told = []
    for case in expected.split("\n===\n"):
        text = case.partition("\n---")[0]
        xml = "\n".join(line for line in text.splitlines() if not line.startswith("#"))
        told.append("\n---\n".join([text, "\n".join(lines(parse_services(xml.encode())))]))
    if os.environ.get("PAPERWASP_WRITE_SCRIPTS"):
        path.write_text("\n===\n".join(told) + "\n")
    assert "\n===\n".join(told) == expected


def lines(services: Services) -> Iterator[str]:
    for container in services.containers:
        found = [name for name in PARTS if getattr(container, name)]
        yield f"container {container.id}: {', '.join(found) or 'nothing'}"
    for content in services.content_clusters:
        types = ", ".join(content.document_types) or "no types"
        yield f"content {content.id}: {types}; redundancy {content.redundancy}, nodes {content.node_count}"
    yield from (f"problem: {problem}" for problem in services.problems)
    yield from (f"note: {note.level} {note.message}" for note in services.notes)
