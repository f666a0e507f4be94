"""services.xml, read: every file in `scripts/` holds cases of one topic.

A case is a services.xml, `---`, and what it means: one line per container, content cluster and finding. Further files
of the package follow the services.xml, each after a line `@@ path`. Cases are divided by `===`. A deployment that is
not the default one is described in a line like `# deploy: instance=beta`.
To write the answers anew: `PAPERWASP_WRITE_SCRIPTS=1 pytest tests/application`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from paperwasp.application.findings import Findings
from paperwasp.application.package_files import Hosts, parse_hosts
from paperwasp.application.preprocess import DeployProperties
from paperwasp.application.services import parse_services
from paperwasp.application.services_model import Container, Content

SCRIPTS = Path(__file__).parent / "scripts"
INTERFACES = ("search", "document_api", "document_processing", "model_evaluation")
DEPLOY = "# deploy:"


@pytest.mark.parametrize("path", sorted(SCRIPTS.glob("*.txt")), ids=lambda path: path.stem)
def test_script(path: Path) -> None:
    expected = path.read_text().rstrip("\n")
    told = []
    for case in expected.split("\n===\n"):
        text = case.partition("\n---")[0]
        told.append("\n---\n".join([text, "\n".join(answer(text))]))
    if os.environ.get("PAPERWASP_WRITE_SCRIPTS"):
        path.write_text("\n===\n".join(told) + "\n")
    assert "\n===\n".join(told) == expected


def answer(text: str) -> Iterator[str]:
    properties = DeployProperties()
    for line in text.splitlines():
        if line.startswith(DEPLOY):
            said = dict(word.split("=") for word in line.removeprefix(DEPLOY).split())
            tags = frozenset(said.pop("tags", "").split(",")) - {""}
            properties = DeployProperties(**said, tags=tags)
    uncommented = "\n".join(line for line in text.splitlines() if not line.startswith("#"))
    services, *others = re.split(r"^@@ (.*)\n", uncommented, flags=re.MULTILINE)
    files = {path: content.encode() for path, content in zip(others[::2], others[1::2], strict=True)}
    findings = Findings()
    hosts = parse_hosts(files["hosts.xml"], findings) if "hosts.xml" in files else Hosts()
    files["services.xml"] = services.encode()
    found = parse_services(files, hosts, properties, findings)
    for container in found.containers:
        yield from container_lines(container)
    for content in found.content_clusters:
        yield from content_lines(content)
    yield from (f"{finding.level} {finding}" for finding in (*findings.errors, *findings.notes))


def container_lines(container: Container) -> Iterator[str]:
    found = [name for name in INTERFACES if getattr(container, name)]
    options = [f"{server.id}:{server.port}" for server in container.servers]
    options += [f"on {node.host}" for node in container.nodes if node.host != "localhost"]
    options += [f"chain {chain}" for chain in container.search_chains]
    options += ["ignores undefined fields"] if container.ignore_undefined_fields else []
    options += [f"{container.max_document_size_bytes} bytes"] if container.max_document_size_bytes else []
    yield "; ".join([f"container {container.id}: {', '.join(found) or 'nothing'}", *options])
    for component in container.components:
        what = component.type or component.class_name or "no class"
        settings = ", ".join(f"{name}={text}" for name, text in component.settings.items())
        yield f"  {component.kind} {component.id}: {what} {settings}".rstrip()


def content_lines(content: Content) -> Iterator[str]:
    types = ", ".join(
        " ".join(
            [document.type]
            + ([document.mode] if document.mode != "index" else [])
            + (["global"] if document.is_global else [])
            + ([f"where {document.selection}"] if document.selection else [])
        )
        for document in content.documents
    )
    options = [f"redundancy {content.redundancy}/{content.searchable_copies}"]
    options += [f"groups {content.groups}"] if content.groups > 1 else []
    options += [f"nodes {' '.join(f'{n.group}#{n.distribution_key}' for n in content.nodes)}"] if content.nodes else []
    options += [f"where {content.selection}"] if content.selection else []
    options += [f"collected every {content.garbage_collection_interval_s} s"] if content.garbage_collection else []
    options += [f"processed in {content.processing_cluster or 'itself'}"] if content.processing_cluster else []
    options += [f"by {content.processing_chain}"] if content.processing_chain else []
    yield "; ".join([f"content {content.id}: {types or 'no types'}", *options])
    yield from (f"  {path} = {text}" for path, text in content.tuning.items())
