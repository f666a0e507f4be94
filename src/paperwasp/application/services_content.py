"""A `content` cluster of services.xml as a value: its document types, its nodes and groups, and its tuning."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Final, cast

from msgspec import Struct, field

from paperwasp import limits
from paperwasp.application.elements import RULES
from paperwasp.application.findings import Findings
from paperwasp.application.grammar import Rule, Use, boolean, integer, size_bytes
from paperwasp.application.package_files import Hosts
from paperwasp.application.services_config import JuniperConfig
from paperwasp.application.services_model import ClusterNode, Content, ContentDocument, Mode
from paperwasp.application.xml import Element
from paperwasp.document.selection import check_cluster_selection, parse_selection
from paperwasp.errors import InvalidInput

_MODES: Final = ("index", "streaming", "store-only")
_TUNING: Final = ("search", "tuning", "engine")
_KEPT: Final = (Use.USED, Use.PENDING)
_SEARCHABLE_COPIES: Final = "engine/proton/searchable-copies"
_DOCUMENT_SIZE: Final = "tuning/max-document-size"
_NODE_LIMITS: Final = "engine/proton/resource-limits/"
_GARBAGE_COLLECTION_S: Final = 3600


def read_content(element: Element, hosts: Hosts, findings: Findings, configured: JuniperConfig) -> Content:
    """Reads a cluster; `configured`: the settings around it. What the grammar found wrong is left out; what it cannot
    know is reported."""
    configured = configured.below(element, findings)
    documents = element.first("documents") or Element("documents", {}, element.position)
    processing = documents.first("document-processing")
    nodes = _Nodes(hosts, findings)
    nodes.read(element)
    rules = RULES["content"].children
    parts = [child for child in element.children if child.tag in _TUNING]
    tuning = dict(each for part in parts for each in _find_settings(part, rules[part.tag], part.tag))
    if any(path.startswith(_NODE_LIMITS) for path in tuning):
        findings.warning(
            "resource-limits of 'proton' are better set in 'tuning': for the whole cluster", element.position
        )
    types = _documents(documents, findings, configured)
    is_streamed = bool(types) and all(each.mode == "streaming" for each in types)
    searchable = tuning.pop(_SEARCHABLE_COPIES, "")
    redundancy, searchable_copies = _copies(element, searchable, nodes.groups, findings, is_streamed=is_streamed)
    _check_selection(documents, findings)
    interval = integer(documents.attributes.get("garbage-collection-interval", ""))
    return Content(
        id=element.attributes.get("id", "content"),
        documents=types,
        selection=documents.attributes.get("selection", ""),
        garbage_collection=boolean(documents.attributes.get("garbage-collection", "")),
        garbage_collection_interval_s=_GARBAGE_COLLECTION_S if interval is None else interval,
        redundancy=redundancy,
        searchable_copies=searchable_copies,
        nodes=tuple(nodes.found),
        groups=nodes.groups,
        tuning=MappingProxyType(tuning),
        max_document_size_bytes=_document_bytes(tuning.get(_DOCUMENT_SIZE, ""), findings, element),
        processing_cluster=processing.attributes.get("cluster", "") if processing is not None else "",
        processing_chain=processing.attributes.get("chain", "") if processing is not None else "",
        position=element.position,
    )


def _document_bytes(text: str, findings: Findings, element: Element) -> int:
    """The most bytes of an operation. Vespa warns above its default, too (pull request 34608)."""
    most = size_bytes(text) or limits.DOCUMENT_BYTES
    if most > limits.DOCUMENT_BYTES:
        message = f"max-document-size {text} is more than {limits.DOCUMENT_BYTES >> 20} MiB"
        findings.warning(f"{message}: large documents take much memory and time", element.position)
    return most


def _documents(documents: Element, findings: Findings, configured: JuniperConfig) -> tuple[ContentDocument, ...]:
    """The document types in their order; of a type that is there twice the last is taken, as in Vespa."""
    found: dict[str, ContentDocument] = {}
    for element in documents.all("document"):
        name = element.attributes.get("type", "")
        if name in found:
            message = f"Document type '{name}' is in the cluster more than once; the last one counts"
            findings.warning(message, element.position)
        mode = element.attributes.get("mode", "index")
        is_global = boolean(element.attributes.get("global", ""))
        if is_global and mode != "index":
            findings.error(f"'global' is for mode 'index' only, not '{mode}'", element.position)
        _check_selection(element, findings, name)
        if name:
            known = cast(Mode, mode) if mode in _MODES else "index"
            selection = element.attributes.get("selection", "")
            teasers = configured.below(element, findings).teasers()
            found[name] = ContentDocument(name, known, selection, is_global, teasers, element.position)
    return tuple(found.values())


def _check_selection(element: Element, findings: Findings, document_type: str = "") -> None:
    """Reports what is wrong with a selection, as far as that is known before the schemas are."""
    try:
        check_cluster_selection(parse_selection(element.attributes.get("selection", "")), document_type)
    except InvalidInput as error:
        findings.error(f"value of attribute 'selection' is invalid: {error.message}", element.position)


def _copies(
    element: Element, searchable: str, groups: int, findings: Findings, *, is_streamed: bool
) -> tuple[int, int]:
    """How many copies there are to be, and how many of them searchable. Here they are one.

    `is_streamed`: whether all document types are of mode streaming. Vespa: RedundancyBuilder.java
    """
    declared = {tag: element.first(tag) for tag in ("redundancy", "min-redundancy")}
    copies = [max(1, integer(found.text) or 1) for found in declared.values() if found is not None]
    if not copies:
        findings.warning("either 'redundancy' or 'min-redundancy' must be set for Vespa; 1 is taken", element.position)
    redundancy = max(copies, default=1)
    ready = integer(searchable)
    by_default = redundancy if is_streamed else min(redundancy, max(groups, 2))
    searchable_copies = by_default if ready is None else ready
    final = declared["redundancy"]
    reply_after = integer(final.attributes.get("reply-after", "0")) if final is not None else 0
    if final is not None and (reply_after or 0) > (integer(final.text) or 1):
        findings.error("'reply-after' cannot be higher than the redundancy", final.position)
    if searchable_copies > redundancy:
        findings.error("searchable-copies cannot be higher than the redundancy", element.position)
    elif redundancy % groups:
        message = f"the number of leaf groups ({groups}) must be a factor of the redundancy ({redundancy})"
        findings.error(message, element.position)
    elif searchable_copies % groups:
        message = f"{searchable_copies} searchable copies cannot be shared equally by {groups} groups"
        findings.error(message, element.position)
    elif redundancy > 1:
        findings.info(f"redundancy {redundancy} means 1 here: a cluster is one node", element.position)
    return redundancy, searchable_copies


def _find_settings(element: Element, rule: Rule, path: str) -> Iterator[tuple[str, str]]:
    """Path → text of everything that has an effect in Vespa and could have one here."""
    if rule.use not in _KEPT:
        return
    if element.text:
        yield path, element.text
    for name, text in element.attributes.items():
        if name in rule.attributes and rule.attributes[name].use in _KEPT:
            yield f"{path}@{name}", text
    for child in element.children:
        if child.tag in rule.children:
            yield from _find_settings(child, rule.children[child.tag], f"{path}/{child.tag}")


class _Nodes(Struct):
    """The nodes of one cluster, from `nodes` or from a tree of groups."""

    hosts: Hosts
    findings: Findings
    found: list[ClusterNode] = field(default_factory=list)
    groups: int = 1
    _keys: set[int] = field(default_factory=set)

    def read(self, content: Element) -> None:
        nodes, top = content.first("nodes"), content.first("group")
        if nodes is not None and top is not None:
            self.findings.error("both 'nodes' and 'group' are in the cluster; there can be one of them", top.position)
        if nodes is not None:
            self._nodes(nodes, "")
        elif top is not None:
            self._top_group(top)
        if len(self.found) > 1:
            message = f"{len(self.found)} nodes are one node here: everything runs in this one process"
            self.findings.info(message, content.position)

    def _nodes(self, parent: Element, group: str) -> None:
        for node in parent.all("node"):
            alias = node.attributes.get("hostalias", "")
            key = integer(node.attributes.get("distribution-key", "")) or 0
            if key in self._keys:
                self.findings.error(f"Distribution key {key} is used by more than one node", node.position)
            self._keys.add(key)
            self.found.append(ClusterNode(alias, self.hosts.host(alias), key, group))

    def _top_group(self, top: Element) -> None:
        groups = self._subgroups(top)
        self.groups = max(1, len(groups))
        for group in groups:
            if group.first("group") is not None:
                self.findings.error("all groups below the top group must be leaf groups", group.position)
        for number, group in enumerate(groups):
            self._group(group, group.attributes.get("name", str(number)))
        self._nodes(top, "")

    def _group(self, group: Element, path: str) -> None:
        subgroups = self._subgroups(group)
        self._nodes(group, path)
        for subgroup in subgroups:
            self._group(subgroup, f"{path}/{subgroup.attributes.get('name', '')}")
        if not subgroups and group.first("node") is None and group.first("nodes") is None:
            self.findings.error("element 'group' incomplete; missing required element 'node'", group.position)

    def _subgroups(self, group: Element) -> list[Element]:
        """The groups in a group. Tells where they cannot stand side by side like this."""
        found = list(group.all("group"))
        if found and group.first("node") is not None:
            self.findings.error("a group can contain groups or nodes, but not both", group.position)
        distribution = group.first("distribution")
        if found and distribution is None:
            message = "element 'group' incomplete; missing required element 'distribution'"
            self.findings.error(message, group.position)
        elif not found and distribution is not None:
            self.findings.error("'distribution' is for groups of groups only", distribution.position)
        keys: set[str] = set()
        for subgroup in found:
            key = subgroup.attributes.get("distribution-key", "")
            if key in keys:
                self.findings.error(f"Distribution key {key} is used by more than one group", subgroup.position)
            keys.add(key)
        return found


def processing_chains(container: Element) -> Mapping[str, Element]:
    """Id → chain of document processors that a container declares."""
    processing = container.first("document-processing")
    chains = processing.all("chain") if processing is not None else ()
    return {chain.attributes.get("id", chain.attributes.get("name", "")): chain for chain in chains}
