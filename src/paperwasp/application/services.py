"""services.xml as a model: which containers there are, and which content clusters with which document types.

Vespa: https://docs.vespa.ai/en/reference/applications/services/services.html
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from paperwasp.application.services_grammar import SERVICES, Rule, Use
from paperwasp.application.xml import Element, parse_xml
from paperwasp.errors import LanguageError, Position


@dataclass(frozen=True, slots=True)
class Note:
    """A line of the deployment log: something in the package that is right and yet worth telling."""

    message: str
    level: str = "WARNING"


@dataclass(frozen=True, slots=True)
class Container:
    """A container cluster and which of the interfaces it has."""

    id: str
    search: bool = False
    document_api: bool = False
    document_processing: bool = False
    port: int | None = None
    """As services.xml has it. The service listens where its command line says."""
    position: Position | None = None


@dataclass(frozen=True, slots=True)
class DeclaredContent:
    """A content cluster and the names of the document types in it, in the order of services.xml."""

    id: str
    document_types: tuple[str, ...] = ()
    redundancy: int = 1
    node_count: int = 1
    position: Position | None = None


@dataclass(frozen=True, slots=True)
class Services:
    """Everything that services.xml says, and everything that is wrong with it."""

    containers: tuple[Container, ...] = ()
    content_clusters: tuple[DeclaredContent, ...] = ()
    notes: tuple[Note, ...] = ()
    problems: tuple[LanguageError, ...] = ()


def parse_services(content: bytes, source: str = "services.xml") -> Services:
    """The services of a package. Problems are collected, not raised; broken XML is one problem."""
    try:
        root = parse_xml(content, source)
    except LanguageError as error:
        return Services(problems=(error,))
    return _Reader().read(root)


_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")
_NAMESPACES: Final = ("deploy:", "preprocess:")
_MAX_REDUNDANCY: Final = 65534


@dataclass(slots=True)
class _Reader:
    """One reading of services.xml."""

    notes: list[Note] = field(default_factory=list)
    problems: list[LanguageError] = field(default_factory=list)

    def read(self, root: Element) -> Services:
        if root.tag in ("container", "content", "admin"):
            root = Element("services", {}, root.position, [root])
        if root.tag != "services":
            self._problem(root, f"element '{root.tag}' not allowed here; expected element 'services'")
            return Services(problems=tuple(self.problems))
        self._check(root, SERVICES)
        containers = tuple(self._container(element) for element in root.all("container"))
        clusters = tuple(self._content(element) for element in root.all("content"))
        self._check_ids(containers, clusters)
        self.problems.sort(key=_place)
        return Services(containers, clusters, tuple(self.notes), tuple(self.problems))

    # The grammar

    def _check(self, element: Element, rule: Rule) -> None:
        self._check_attributes(element, rule)
        seen: set[str] = set()
        for child in element.children:
            if child.tag in seen & rule.once:
                self._problem(child, f"element '{child.tag}' is allowed only once in '{element.tag}'")
            seen.add(child.tag)
            self._check_child(element, child, rule.children.get(child.tag))

    def _check_child(self, element: Element, child: Element, rule: Rule | None) -> None:
        if child.tag.startswith(_NAMESPACES):
            self._problem(child, f"element '{child.tag}' is not supported yet")
        elif rule is None:
            self._problem(child, f"element '{child.tag}' not allowed here, in '{element.tag}'")
        elif rule.use is Use.LATER:
            self._problem(child, f"element '{child.tag}' in '{element.tag}' is not supported yet")
        elif rule.use is Use.NOTED:
            self._note(child, f"element '{child.tag}' in '{element.tag}' has no effect", rule.why)
        else:
            self._check(child, rule)

    def _check_attributes(self, element: Element, rule: Rule) -> None:
        for name in sorted(rule.required - element.attributes.keys()):
            self._problem(element, f"element '{element.tag}' missing required attribute '{name}'")
        for name, value in element.attributes.items():
            use = rule.attributes.get(name)
            if name == "xmlns" or name.startswith("xmlns:"):
                continue
            if use is Use.LATER or name.startswith(_NAMESPACES):
                self._problem(element, f"attribute '{name}' of '{element.tag}' is not supported yet")
            elif use is None:
                self._problem(element, f"attribute '{name}' not allowed here, in '{element.tag}'")
            elif use is Use.NOTED:
                self._note(element, f"attribute '{name}' of '{element.tag}' has no effect")
            elif name == "version" and value != "1.0":
                self._problem(
                    element, f"value of attribute 'version' is invalid; must be equal to '1.0', not '{value}'"
                )

    # What is used

    def _container(self, element: Element) -> Container:
        http = element.first("http")
        servers = list(http.all("server")) if http else []
        if len(servers) > 1:
            self._note(servers[1], "only one 'server' is started")
        return Container(
            id=self._name(element, "id", "container"),
            search=element.first("search") is not None,
            document_api=element.first("document-api") is not None,
            document_processing=element.first("document-processing") is not None,
            port=self._port(servers[0]) if servers else None,
            position=element.position,
        )

    def _port(self, server: Element) -> int | None:
        if "port" not in server.attributes:
            return None
        port = self._integer(server, server.attributes["port"], 0, 65535)
        self._note(server, f"port {port} has no effect: the port is an option of the command line")
        return port

    def _content(self, element: Element) -> DeclaredContent:
        documents = element.first("documents")
        if documents is None:
            self._problem(element, "element 'content' incomplete; missing required element 'documents'")
        return DeclaredContent(
            id=self._name(element, "id", "content"),
            document_types=self._document_types(documents) if documents else (),
            redundancy=self._redundancy(element),
            node_count=self._nodes(element),
            position=element.position,
        )

    def _document_types(self, documents: Element) -> tuple[str, ...]:
        types: dict[str, None] = {}
        for element in documents.all("document"):
            name = element.attributes.get("type", "")
            if name in types:
                self._problem(element, f"Document type '{name}' is in the cluster more than once")
            types[name] = None
            self._check_mode(element)
        types.pop("", None)
        if not types:
            self._problem(documents, "element 'documents' incomplete; missing required element 'document'")
        return tuple(types)

    def _check_mode(self, document: Element) -> None:
        mode = document.attributes.get("mode", "index")
        if mode in ("streaming", "store-only"):
            self._problem(document, f"mode '{mode}' is not supported yet")
        elif mode != "index":
            self._problem(document, f"value of attribute 'mode' is invalid; must be 'index', not '{mode}'")

    def _redundancy(self, content: Element) -> int:
        redundancy = 1
        for tag in ("min-redundancy", "redundancy"):
            element = content.first(tag)
            if element is not None:
                redundancy = self._integer(element, element.text, 1, _MAX_REDUNDANCY)
        if redundancy > 1:
            self._note(content, f"redundancy {redundancy} means 1 here: a cluster is one node")
        return redundancy

    def _nodes(self, content: Element) -> int:
        nodes = content.first("nodes")
        found = list(nodes.all("node")) if nodes else []
        keys: set[int] = set()
        for node in found:
            key = self._integer(node, node.attributes.get("distribution-key", "0"), 0, _MAX_REDUNDANCY)
            if key in keys:
                self._problem(node, f"Distribution key {key} is used by more than one node")
            keys.add(key)
        if len(found) > 1:
            self._note(content, f"{len(found)} nodes are one node here: everything runs in this one process")
        return max(1, len(found))

    def _check_ids(self, containers: Sequence[Container], clusters: Sequence[DeclaredContent]) -> None:
        seen: set[str] = set()
        named = [(c.id, c.position) for c in containers] + [(c.id, c.position) for c in clusters]
        for name, position in named:
            if name in seen:
                self.problems.append(LanguageError(f"Cluster id '{name}' is used more than once", position))
            seen.add(name)
        if len(containers) > 1:
            self.notes.append(Note("services.xml: all container clusters are one container here, on one port"))

    # Values

    def _name(self, element: Element, attribute: str, default: str) -> str:
        name = element.attributes.get(attribute, default)
        if not _NAME.fullmatch(name):
            self._problem(element, f"value of attribute '{attribute}' is invalid; '{name}' is not a name")
        return name

    def _integer(self, element: Element, text: str, lowest: int, highest: int) -> int:
        if not re.fullmatch(r"\s*[0-9]{1,9}\s*", text) or not lowest <= int(text) <= highest:
            self._problem(element, f"'{text}' in '{element.tag}' is not an integer from {lowest} to {highest}")
            return lowest
        return int(text)

    def _problem(self, element: Element, message: str) -> None:
        self.problems.append(LanguageError(message, element.position))

    def _note(self, element: Element, message: str, why: str = "") -> None:
        self.notes.append(Note(f"{element.position}: {message}" + (f": {why}" if why else "")))


def _place(problem: LanguageError) -> tuple[int, int]:
    return (problem.position.line, problem.position.column) if problem.position else (0, 0)
