"""Document summaries: which fields a hit shows, under which names.

The summary `default` always exists. It holds every field that says `summary` and, as in Vespa, what other summaries
show of fields that are no attributes. The document id and type of a hit are not listed here: the search adds them.

Vespa: https://docs.vespa.ai/en/reference/schemas/schemas.html#document-summary
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from types import MappingProxyType

from paperwasp import limits
from paperwasp.schema.model import DocumentSummary, Field, SummaryField
from paperwasp.schema.problems import Problems
from paperwasp.schema.tree import Node

DOCUMENT_ID = "documentid"
"""A source that is no field: the id of the document."""


def resolve_summaries(
    declared: Mapping[str, Node],
    inherited: Mapping[str, DocumentSummary],
    fields: Mapping[str, Field],
    unusable: Collection[str],
    problems: Problems,
) -> dict[str, DocumentSummary]:
    """All summaries of a schema: those of the schemas it inherits, its own, and `default`.

    `unusable` are the names of fields that have a problem already, so that to name them is not another one.
    """
    resolution = _Resolution(declared, inherited, fields, unusable, problems)
    summaries = {name: _sources(summary) for name, summary in inherited.items() if name != "default"}
    summaries |= {name: resolution.effective(name) for name in declared}
    shown = {name: name for name, field in fields.items() if field.summary}
    shown |= summaries.pop("default", {})
    for sources in summaries.values():
        shown |= {name: source for name, source in sources.items() if name not in shown and _is_stored(fields, source)}
    return {name: _summary(name, sources) for name, sources in {"default": shown, **summaries}.items()}


def _summary(name: str, sources: Mapping[str, str]) -> DocumentSummary:
    fields = {shown: SummaryField(shown, (source,)) for shown, source in sources.items()}
    return DocumentSummary(name, MappingProxyType(fields))


def _sources(summary: DocumentSummary) -> dict[str, str]:
    return {name: field.sources[0] for name, field in summary.fields.items()}


def _is_stored(fields: Mapping[str, Field], source: str) -> bool:
    return source in fields and fields[source].attribute is None


class _Resolution:
    """One walk up the inheritance of summaries."""

    def __init__(
        self,
        declared: Mapping[str, Node],
        inherited: Mapping[str, DocumentSummary],
        fields: Mapping[str, Field],
        unusable: Collection[str],
        problems: Problems,
    ) -> None:
        self.declared = declared
        self.inherited = inherited
        self.fields = fields
        self.unusable = unusable
        self.problems = problems
        self.done: dict[str, dict[str, str]] = {}
        self.path: list[str] = []

    def effective(self, name: str) -> dict[str, str]:
        """Output name → source field of summary `name`, the inherited ones first."""
        if name in self.done:
            return self.done[name]
        node = self.declared[name]
        shown: dict[str, str] = {}
        self.path.append(name)
        for parent in node.inherits:
            shown |= self.parent(parent, node)
        self.path.pop()
        shown |= self.own(node)
        self.done[name] = shown
        return shown

    def parent(self, name: str, node: Node) -> Mapping[str, str]:
        if name in self.path and not (name == node.name and name in self.inherited):
            self.problems.error(f"a cycle of document summaries: {node.name} inherits {name}", node.position)
        elif name in self.declared and name != node.name and len(self.path) < limits.INHERITANCE_DEPTH:
            return self.effective(name)
        elif name in self.inherited:
            return _sources(self.inherited[name])
        elif name == "default":
            return {name: name for name, field in self.fields.items() if field.summary}
        else:
            message = f"document-summary {node.name} inherits {name!r}, which does not exist"
            self.problems.error(message, node.position)
        return {}

    def own(self, node: Node) -> dict[str, str]:
        shown: dict[str, str] = {}
        for child in node.children:
            if child.keyword == "from-disk":
                self.problems.without_effect(child, "it silences a warning that is not given")
            elif child.keyword != "summary":
                self.problems.unsupported(child, node.describe())
            elif child.name in shown:
                self.problems.error(f"{child.describe()} is twice in {node.describe()}", child.position)
            else:
                shown[child.name] = self.source(child, node)
        return shown

    def source(self, node: Node, summary: Node) -> str:
        """The field that a summary field takes its value from: of its own name, or the one of `source:`."""
        source, position = node.name, node.position
        for child in node.children:
            if child.keyword == "source" and len(child.values) == 1:
                source, position = child.text, child.value_position or child.position
            elif child.keyword not in ("full", "static"):
                self.problems.unsupported(child, f"{node.describe()} in {summary.describe()}")
        if source in self.unusable:
            return source
        field = self.fields.get(source)
        if field is None and source != DOCUMENT_ID:
            message = f"{node.describe()} in {summary.describe()} has no valid source: there is no field {source!r}"
            self.problems.error(message, position)
        elif node.type and node.type != (str(field.type) if field else "string"):
            message = f"{node.describe()} in {summary.describe()} has type {node.type}, but its source has another"
            self.problems.error(message, node.position)
        return source
