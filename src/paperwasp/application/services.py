"""services.xml as a model: which containers there are, and which content clusters with which document types.

Vespa: https://docs.vespa.ai/en/reference/applications/services/services.html
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from paperwasp.application.elements import RULES
from paperwasp.application.findings import Findings
from paperwasp.application.grammar import GrammarCheck, boolean
from paperwasp.application.package_files import LOCALHOST, Hosts
from paperwasp.application.preprocess import DeployProperties, preprocess
from paperwasp.application.services_config import JuniperConfig
from paperwasp.application.services_container import read_container
from paperwasp.application.services_content import processing_chains, read_content
from paperwasp.application.services_model import Container, Content, HttpServer, Services
from paperwasp.application.xml import Element, parse_xml
from paperwasp.base.records import replace
from paperwasp.errors import LanguageError, Position
from paperwasp.text.parsing.tokens import did_you_mean

SERVICES_FILE: Final = "services.xml"
_ROOTS: Final = ("container", "content", "admin", "clients", "routing")
"""Elements that may be all of services.xml, without `services` around them."""
_INDEXING_CHAINS: Final = ("", "indexing", "default")


def parse_services(
    files: Mapping[str, bytes], hosts: Hosts, properties: DeployProperties, findings: Findings
) -> Services:
    """The services of a package with these files, for a deployment with these properties.

    Nothing is raised: all that is wrong is reported in the findings. Broken XML is one of them.
    """
    try:
        root = parse_xml(files[SERVICES_FILE], SERVICES_FILE)
    except LanguageError as error:
        findings.problem(error)
        return Services()
    root = preprocess(root, files, properties, findings)
    if root.tag in _ROOTS:
        root = Element("services", {}, root.position, [root])
    if root.tag != "services":
        findings.error(f"element '{root.tag}' not allowed here; expected element 'services'", root.position)
        return Services()
    return _read(root, hosts, findings)


def _read(root: Element, hosts: Hosts, findings: Findings) -> Services:
    GrammarCheck(findings).check(root, RULES["services"])
    hosts.check(root, findings)
    containers = [read_container(element, root, hosts, findings) for element in root.all("container")]
    configured = JuniperConfig().below(root, findings)
    clusters = [read_content(element, hosts, findings, configured) for element in root.all("content")]
    _check_ids(containers, clusters, findings)
    _check_references(root, containers, clusters, findings)
    _check_document_sizes(containers, clusters, findings)
    _check_legacy(root, findings)
    return Services(_with_free_ports(containers, findings), tuple(clusters))


def _check_ids(containers: Sequence[Container], clusters: Sequence[Content], findings: Findings) -> None:
    seen: set[str] = set()
    all_clusters: list[Container | Content] = [*containers, *clusters]
    for cluster in all_clusters:
        if cluster.id in seen:
            findings.error(f"Cluster id '{cluster.id}' is used more than once", cluster.position)
        seen.add(cluster.id)


def _check_references(
    root: Element, containers: Sequence[Container], clusters: Sequence[Content], findings: Findings
) -> None:
    """That the clusters and chains that other clusters name are there."""
    content_ids = {cluster.id for cluster in clusters}
    for element in root.all("container"):
        nodes = element.first("nodes")
        of = nodes.attributes.get("of") if nodes is not None else None
        if of is not None and of not in content_ids:
            _unknown_cluster("nodes of", of, content_ids, element.position, findings)
    chains = {
        container.id: processing_chains(element)
        for container, element in zip(containers, root.all("container"), strict=True)
    }
    for cluster in clusters:
        name, chain = cluster.processing_cluster, cluster.processing_chain
        if name and name not in chains:
            _unknown_cluster("document-processing of", name, chains, cluster.position, findings)
        elif chain not in _INDEXING_CHAINS:
            known = {chain for found in chains.values() for chain in found}
            if chain not in known:
                message = f"there is no document processing chain '{chain}'{did_you_mean(chain, known)}"
                findings.error(message, cluster.position)
            else:
                findings.warning(f"document processing chain '{chain}' is not executed yet", cluster.position)


def _check_document_sizes(containers: Sequence[Container], clusters: Sequence[Content], findings: Findings) -> None:
    """That what a container takes is not too large for a content cluster. Vespa warns, too (pull request 36391)."""
    for container in containers:
        taken = container.max_document_size_bytes or 0
        for cluster in clusters:
            most = cluster.max_document_size_bytes
            if taken > most:
                message = f"max-document-size of container '{container.id}' is more than the {most} bytes"
                findings.warning(f"{message} that content cluster '{cluster.id}' takes", container.position)


def _check_legacy(root: Element, findings: Findings) -> None:
    """That no older behaviour is wanted. Vespa: LegacyFlags."""
    legacy = root.first("legacy")
    positions = legacy.first("v7-geo-positions") if legacy is not None else None
    if positions is not None and boolean(positions.text):
        findings.warning("'v7-geo-positions' true is not executed yet", positions.position)


def _unknown_cluster(
    what: str, name: str, known: Mapping[str, object] | set[str], position: Position | None, findings: Findings
) -> None:
    findings.error(f"{what} '{name}': there is no such cluster{did_you_mean(name, known)}", position)


def _with_free_ports(containers: Sequence[Container], findings: Findings) -> tuple[Container, ...]:
    """The containers, without the ports that containers on other hosts have already: this is one host."""
    taken: dict[int, Container] = {}
    return tuple(
        replace(container, servers=tuple(_free(server, container, taken, findings) for server in container.servers))
        for container in containers
    )


def _free(server: HttpServer, container: Container, taken: dict[int, Container], findings: Findings) -> HttpServer:
    if not server.port:
        return server
    owner = taken.setdefault(server.port, container)
    servers_before = container.servers[: container.servers.index(server)]
    if owner is container and all(before.port != server.port for before in servers_before):
        return server
    problem = f"port {server.port} of server '{server.id}' in container '{container.id}' is taken by '{owner.id}'"
    hosts = _hosts(owner) & _hosts(container)
    if hosts:
        hint = f'give it another: <server id="{server.id}" port="…"/>'
        findings.error(f"{problem} on host '{min(hosts)}'; {hint}", server.position)
        return server
    findings.warning(f"{problem}, since all hosts are one here; another port is chosen", server.position)
    return replace(server, port=None)


def _hosts(container: Container) -> set[str]:
    return {node.host for node in container.nodes} or {LOCALHOST}
