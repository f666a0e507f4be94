"""Document summaries: which fields a hit shows, under which names and how.

The summary `default` always exists. It holds every field that says `summary` and, as in Vespa, what other summaries
show of fields that are no attributes. The document id and type of a hit are not listed here: the search adds them.
`attributeprefetch` exists where there are attributes of single values, and holds these, also those that do not say
`summary`; one that an application declares holds them besides (ImplicitSummaries.java in Vespa's config-model).

A field that one summary shows dynamic, bold or as tokens is shown so by all that name it and say nothing else.

Vespa: https://docs.vespa.ai/en/reference/schemas/schemas.html#document-summary
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import Final

from msgspec import Struct, field

from paperwasp import limits
from paperwasp.base.records import replace
from paperwasp.document.types import (
    POSITION,
    PREDICATE,
    ArrayType,
    DataType,
    MapType,
    StructType,
    WeightedSetType,
    part_of,
)
from paperwasp.errors import Position
from paperwasp.schema.data_types import holds_struct, is_single, is_text
from paperwasp.schema.fields import summary_of
from paperwasp.schema.model import DocumentSummary, Field, SummaryField
from paperwasp.schema.pending import Z_CURVE_SUFFIX
from paperwasp.schema.tree import Problems, SchemaNode, nearest

DOCUMENT_ID: Final = "documentid"
"""A source that is no field: the id of the document."""
DEFAULT: Final = "default"
PREFETCHED: Final = "attributeprefetch"
_TRANSFORMS: Final = ("dynamic", "bolding", "tokens")


class _Draft(Struct):
    """A document summary in the making."""

    name: str
    fields: dict[str, SummaryField] = field(default_factory=dict)
    from_disk: bool = False
    omit_summary_features: bool = False
    inherits: tuple[str, ...] = ()
    position: Position | None = None

    def summary(self) -> DocumentSummary:
        fields = MappingProxyType(self.fields)
        return DocumentSummary(
            self.name, fields, self.from_disk, self.omit_summary_features, self.inherits, self.position
        )


def resolve_summaries(
    declared: Mapping[str, SchemaNode],
    inherited: Mapping[str, DocumentSummary],
    fields: Mapping[str, Field],
    unusable: Collection[str],
    problems: Problems,
) -> dict[str, DocumentSummary]:
    """All summaries of a schema: those of the schemas it inherits, its own, and `default`.

    `unusable` are the names of fields that have a problem already: a summary may name them without a further one.
    """
    resolution = _Resolution(declared, inherited, fields, unusable, problems)
    return {name: draft.summary() for name, draft in resolution.run().items()}


class _Resolution:
    """All summaries of one schema, each resolved once."""

    def __init__(
        self,
        declared: Mapping[str, SchemaNode],
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
        self.by_fields = _of_fields(fields)
        self.done: dict[str, _Draft] = {}
        self.size = 0
        self.path: list[str] = []

    def run(self) -> dict[str, _Draft]:
        found = {name: _draft_of(summary) for name, summary in self.inherited.items() if name != DEFAULT}
        found |= {name: self.effective(name) for name in self.declared}
        for name in (name for name in self.by_fields if name != DEFAULT):
            found.setdefault(name, self.effective(name))
        default = self.done.get(DEFAULT) or _Draft(DEFAULT, dict(self.by_fields[DEFAULT]))
        found.pop(DEFAULT, None)
        if DEFAULT in self.inherited:
            default.fields = {**self.inherited[DEFAULT].fields, **default.fields}
        for summary in found.values():
            self.complete(default, summary)
        summaries = {DEFAULT: default, **found}
        self.agree_on_sources(summaries)
        self.check(summaries)
        if attributes := self.single_attributes(summaries):
            summaries.setdefault(PREFETCHED, _Draft(PREFETCHED)).fields |= attributes
        return summaries

    def single_attributes(self, summaries: Mapping[str, _Draft]) -> dict[str, SummaryField]:
        """The attributes of single values as they are: those whose words some summary marks are left out."""
        marked = {
            name
            for summary in summaries.values()
            for name, shown in summary.fields.items()
            if shown.dynamic or shown.bolding
        }
        return {
            each.name: SummaryField(each.name, (each.name,))
            for each in self.fields.values()
            if each.attribute is not None and not each.imported and is_single(each.type)
            if each.type not in (POSITION, PREDICATE) and each.name not in marked and not each.bolding
            if each.name.removesuffix(Z_CURVE_SUFFIX) == each.name
        }

    def effective(self, name: str) -> _Draft:
        """The summary with what it inherits first, then what fields say, then its own."""
        if name in self.done:
            return self.done[name]
        node = self.declared.get(name)
        draft = _Draft(name, position=node.position if node else None, inherits=node.inherits if node else ())
        self.path.append(name)
        for parent in node.inherits if node else ():
            self.inherit(draft, parent, node)
        self.path.pop()
        draft.fields |= self.by_fields.get(name, {})
        if node:
            self.own(draft, node)
        self.done[name] = draft
        self.size += len(draft.fields)
        return draft

    def inherit(self, draft: _Draft, name: str, node: SchemaNode | None) -> None:
        position = node.position if node else None
        if self.size > limits.SCHEMA_PARTS:
            message = f"the document summaries show more than {limits.SCHEMA_PARTS} fields together"
            self.problems.error(message, position)
        elif name in self.path and not (name == draft.name and name in self.inherited):
            self.problems.error(f"a cycle of document summaries: {draft.name} inherits {name}", position)
        elif name in self.declared and name != draft.name and len(self.path) < limits.INHERITANCE_DEPTH:
            draft.fields |= self.effective(name).fields
        elif name in self.inherited:
            draft.fields |= self.inherited[name].fields
        elif name in self.by_fields:
            draft.fields |= self.by_fields[name]
        else:
            hint = nearest(name, {*self.declared, *self.inherited, DEFAULT} - {draft.name})
            message = f"document-summary {draft.name} inherits {name!r}, which does not exist{hint}"
            self.problems.error(message, position)

    def own(self, draft: _Draft, node: SchemaNode) -> None:
        seen: set[str] = set()
        for child in node.children:
            match child.keyword:
                case "from-disk":
                    draft.from_disk = True
                    self.problems.without_effect(child, "it silences a warning that is not given")
                case "omit-summary-features":
                    draft.omit_summary_features = True
                case _:
                    if child.name in seen:
                        self.problems.error(f"{child.describe()} is twice in {node.describe()}", child.position)
                    seen.add(child.name)
                    self.read_summary(draft, child, node)

    def read_summary(self, draft: _Draft, node: SchemaNode, summary: SchemaNode) -> None:
        """Reads one `summary name { }` of a document summary into the draft."""
        described = f"{node.describe()} in {summary.describe()}"
        shown = summary_of(node, node.name, node.name, self.problems)
        if any(True for _ in node.all("to")):
            self.problems.warn(f"'to' of {described} has no effect: it is in that summary already", node.position)
        for source in shown.sources:
            if not self.is_known(source):
                message = f"{described} has no valid source: there is no field {source!r}"
                self.problems.error(message + nearest(source, self.fields), node.position)
        if node.type:
            known = self.fields.get(shown.sources[0])
            type_ = str(known.type) if known else "string"
            if node.type != type_ and shown.sources[0] not in self.unusable:
                message = f"the type of {described} is ignored: it has that of its source, {type_}"
                self.problems.warn(message, node.position)
        draft.fields[node.name] = self.with_transform(shown)

    def is_known(self, source: str) -> bool:
        """Return whether there is what the source names: a field, a part of one by its path, or the document id."""
        outer, _, path = source.partition(".")
        if not path or outer not in self.fields:
            return source in self.fields or source in self.unusable or source == DOCUMENT_ID
        return part_of(self.fields[outer].type, path) is not None

    def with_transform(self, shown: SummaryField) -> SummaryField:
        """The summary field with the transform that `default` has for it, where it has none itself."""
        known = self.by_fields[DEFAULT].get(shown.name)
        if known is None or known.sources != shown.sources:
            return shown
        own, others = _transform(shown), _transform(known)
        if own and others and own != others:
            message = f"summary {shown.name} is {own[0]} here and {others[0]} in another document-summary"
            self.problems.error(message, shown.position)
        if own:
            return shown
        return replace(shown, dynamic=known.dynamic, bolding=known.bolding, tokens=known.tokens)

    def complete(self, default: _Draft, summary: _Draft) -> None:
        """Adds to `default` what the other summary shows of fields that are no attributes."""
        for name, shown in summary.fields.items():
            known = self.fields.get(shown.sources[0])
            if name not in default.fields and known and known.attribute is None and not known.imported:
                default.fields[name] = shown

    def agree_on_sources(self, summaries: Mapping[str, _Draft]) -> None:
        """A name means the same sources in all summaries but `default`."""
        seen: dict[str, tuple[str, tuple[str, ...]]] = {}
        for summary in summaries.values():
            for name, shown in summary.fields.items() if summary.name != DEFAULT else ():
                other, sources = seen.setdefault(name, (summary.name, shown.sources))
                if sources != shown.sources:
                    message = (
                        f"summary {name} in document-summary {summary.name} has another source than"
                        f" in document-summary {other}: {', '.join(shown.sources)} instead of {', '.join(sources)}"
                    )
                    self.problems.error(message, shown.position or summary.position)

    def check(self, summaries: Mapping[str, _Draft]) -> None:
        """Checks the transforms against the types of the sources."""
        for summary in summaries.values():
            for shown in summary.fields.values():
                for known in map(self.fields.get, shown.sources):
                    if known is not None:
                        self.check_transform(shown, known)

    def check_transform(self, shown: SummaryField, source: Field) -> None:
        described = f"summary {shown.name} with source {source.name} of type {source.type}"
        if shown.tokens and not is_text(source.type):
            message = f"{described} cannot be tokens: that is for strings, arrays and weighted sets of strings"
            self.problems.error(message, shown.position)
        elif shown.tokens and source.index is None and source.attribute is None:
            self.problems.error(f"{described} cannot be tokens: it has no index and is no attribute", shown.position)
        if (shown.dynamic or shown.bolding) and not is_text(source.type):
            self.problems.warn(f"{described} is shown as it is: dynamic and bolding are for strings", shown.position)
        if source.imported and isinstance(source.type, MapType) and (missing := _missing_part(source)):
            message = f"{described} shows nothing: of an imported map only attributes are shown, and its {missing} none"
            self.problems.warn(message, shown.position)
        for name in shown.struct_fields:
            if name not in (selectable := _selectable(source.type)):
                message = f"{described} cannot show struct-field {name}{nearest(name, selectable)}"
                self.problems.error(message, shown.position)
        has_elements = isinstance(source.type, ArrayType | WeightedSetType | MapType) or holds_struct(source.type)
        for word in ("matched_elements_only", "select_elements_by"):
            if getattr(shown, word) and not has_elements:
                keyword = word.replace("_", "-")
                message = (
                    f"{described} cannot be {keyword}: that is for arrays and weighted sets of primitive types,"
                    " arrays of structs and maps"
                )
                self.problems.error(message, shown.position)


def _missing_part(source: Field) -> str:
    """Return the part of a map that must be an attribute for its columns to be of use, and is not; empty: none."""
    attributes = [path for path, part in source.sub_fields.items() if part.attribute is not None]
    if "key" not in attributes:
        return "key is"
    return "" if len(attributes) > 1 else "values have"


def _selectable(type_: DataType) -> tuple[str, ...]:
    """The parts that may be shown alone: of arrays of structs, and of maps."""
    match type_:
        case ArrayType(element=StructType(fields=fields)):
            return tuple(name for name, _ in fields)
        case MapType(value=StructType(fields=fields)):
            return ("key", *(f"value.{name}" for name, _ in fields))
        case MapType():
            return ("key", "value")
    return ()


def _of_fields(fields: Mapping[str, Field]) -> dict[str, dict[str, SummaryField]]:
    """Document summary → what fields say that it shows. Holds `default`."""
    found: dict[str, dict[str, SummaryField]] = {DEFAULT: {}}
    for each in fields.values():
        if each.imported:
            continue
        if each.summary and not any(declared.shown.name == each.name for declared in each.summaries):
            found[DEFAULT][each.name] = SummaryField(each.name, (each.name,))
        for declared in each.summaries:
            for to in declared.to or (DEFAULT,):
                found.setdefault(to, {})[declared.shown.name] = declared.shown
    return found


def _draft_of(summary: DocumentSummary) -> _Draft:
    return _Draft(
        summary.name,
        dict(summary.fields),
        summary.from_disk,
        summary.omit_summary_features,
        summary.inherits,
        summary.position,
    )


def _transform(shown: SummaryField) -> tuple[str, ...]:
    return tuple(name for name in _TRANSFORMS if getattr(shown, name))
