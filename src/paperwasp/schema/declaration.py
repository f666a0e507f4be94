"""Reads the declarations of a schema that others refer to: types and fields.

Fields that nobody wrote are made here, too: z-curves of positions, and words as they are (`rank: literal`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final

from msgspec import Struct, field

from paperwasp.base.records import replace
from paperwasp.core.clock import check_time
from paperwasp.document.types import LONG, STRING, DataType, DocumentType, array_of
from paperwasp.errors import Position
from paperwasp.schema.connections import Connected
from paperwasp.schema.data_types import TypeScope, is_position, is_single
from paperwasp.schema.field_checks import Draft
from paperwasp.schema.fields import resolve_field, stemming_of
from paperwasp.schema.model import AttributeSettings, Field, IndexingScript, Stemming
from paperwasp.schema.pending import Z_CURVE_SUFFIX
from paperwasp.schema.syntax import parse_schema_text
from paperwasp.schema.tree import Problems, SchemaNode, nearest

_ROOT_DOCUMENT: Final = "document"
"""The type that every document inherits anyway."""
LITERAL_SUFFIX: Final = "_literal"
_LITERAL_WEIGHT: Final = 100
_LITERAL_FIELD: Final = """schema made {
  field %(name)s_literal type string {
    indexing: input %(name)s | tokenize | index
    stemming: none
    normalizing: none
    rank-type: empty
    weight: %(weight)d
  }
}"""


class Source(Struct):
    """A schema before it is resolved."""

    path: str
    root: SchemaNode
    document: SchemaNode
    profiles: list[SchemaNode]

    @property
    def name(self) -> str:
        return self.root.name

    @property
    def is_schema(self) -> bool:
        """Whether it is more than a document alone."""
        return self.root.keyword == "schema"

    @property
    def inherited_schemas(self) -> tuple[str, ...]:
        return self.root.inherits if self.is_schema else ()

    @property
    def inherited_documents(self) -> tuple[str, ...]:
        return tuple(name for name in self.document.inherits if name != _ROOT_DOCUMENT)

    def elements(self, *keywords: str) -> Iterable[SchemaNode]:
        """Elements of the schema, outside the document."""
        return self.root.all(*keywords) if self.is_schema else ()


class Declared(Struct):
    """A schema's types and fields, inherited ones among them."""

    source: Source
    scope: TypeScope
    connected: Connected
    drafts: list[Draft] = field(default_factory=list)
    """The drafts of the fields that are its own."""
    ids: dict[int, str] = field(default_factory=dict)
    """The numbers that the schema gives fields of the document, inherited ones among them → the names of the fields."""

    @property
    def fields(self) -> dict[str, Field]:
        return self.connected.fields

    @property
    def unusable(self) -> set[str]:
        """Names of fields that are declared but have a problem; to name them elsewhere is none."""
        return self.connected.unusable

    def document_type(self) -> DocumentType:
        types = {name: each.type for name, each in self.fields.items() if each.in_document}
        return DocumentType(self.source.name, MappingProxyType(types), self.source.inherited_documents)


def declare(source: Source, parents: Mapping[str, Declared], problems: Problems) -> Declared:
    """The types and fields of one schema with everything that it inherits resolved already."""
    declaration = _Declaration(source, parents, problems)
    declaration.inherit()
    declaration.own()
    return declaration.declared


class _Declaration:
    """One schema on its way to being declared."""

    def __init__(self, source: Source, parents: Mapping[str, Declared], problems: Problems) -> None:
        self.source = source
        self.parents = parents
        self.problems = problems
        self.own_names: set[str] = set()
        """Of the fields that this schema itself defines, so far."""
        connected = Connected(
            name=source.name,
            fields={},
            unusable={name for parent in parents.values() for name in parent.unusable},
            imports=tuple(source.elements("import")),
            inherited_documents=source.inherited_documents,
            inherited_schemas=source.inherited_schemas,
        )
        self.declared = Declared(source, self.scope(), connected)

    def scope(self) -> TypeScope:
        structs: dict[str, DataType] = {}
        ambiguous: set[str] = set()
        for parent in self.parents.values():
            ambiguous |= parent.scope.ambiguous
            for struct, type_ in parent.scope.structs.items():
                if structs.setdefault(struct, type_) != type_:
                    ambiguous.add(struct)
        for struct in ambiguous:
            structs.pop(struct, None)
        annotations = {name for parent in self.parents.values() for name in parent.scope.annotations}
        document = self.source.document
        return TypeScope(
            [*document.all("struct"), *self.source.elements("struct")],
            [*document.all("annotation"), *self.source.elements("annotation")],
            structs,
            ambiguous,
            annotations,
            self.problems,
        )

    def inherit(self) -> None:
        """Takes over the document fields of inherited documents, and the others of inherited schemas."""
        position = self.source.document.position
        for name in self.source.inherited_documents:
            fields = self.parents[name].fields
            for inherited in fields.values():
                made_of = fields.get(inherited.name.removesuffix(Z_CURVE_SUFFIX))
                literal_of = fields.get(inherited.name.removesuffix(LITERAL_SUFFIX))
                is_made = (made_of and is_position(made_of.type)) or (literal_of and has_literal(literal_of))
                if inherited.in_document or is_made:
                    self.add(inherited, f"inherited from {name}", position)
            for number, field_name in self.parents[name].ids.items():
                self.number(number, field_name, position)
        for name in self.source.inherited_schemas:
            for inherited in self.parents[name].fields.values():
                self.add(inherited, f"inherited from {name}", position)

    def own(self) -> None:
        for node in self.source.document.all("compression"):
            self.problems.without_effect(node, "the document store chooses its compression")
        stemming = self.stemming()
        indexes = self.indexes()
        for node in self.source.document.all("field"):
            self.field(node, stemming, indexes, in_document=True)
        for node in self.source.elements("field"):
            self.field(node, stemming, indexes, in_document=False)

    def field(
        self, node: SchemaNode, stemming: Stemming, indexes: Mapping[str, list[SchemaNode]], *, in_document: bool
    ) -> None:
        check_time()
        own_indexes = indexes.get(node.name, [])
        scope = self.declared.scope
        resolved = resolve_field(node, scope, stemming, own_indexes, self.problems, in_document=in_document)
        if resolved is None:
            self.declared.unusable.add(node.name)
            return
        added, draft = resolved
        self.add(added, "defined", node.position, is_own=True)
        self.declared.drafts.append(draft)
        if in_document and draft.id is not None:
            self.number(draft.id, added.name, draft.place("id"))
        if added.attribute and is_position(added.type):
            self.add(_z_curve(added), f"made of {added.name}", node.position, is_own=True)
        literal = literal_field(added, scope, self.problems) if has_literal(added) else None
        if literal is not None:
            self.add(literal, f"made of {added.name}", node.position, is_own=True)

    def indexes(self) -> Mapping[str, list[SchemaNode]]:
        """The `index` elements outside of fields, by the names of their fields."""
        indexes: dict[str, list[SchemaNode]] = {}
        for node in self.source.elements("index"):
            indexes.setdefault(node.name, []).append(node)
        names = {node.name for node in (*self.source.document.all("field"), *self.source.elements("field"))}
        for name in indexes.keys() - names:
            message = f"index {name} has no effect: the schema defines no field of that name{nearest(name, names)}"
            self.problems.warn(message, indexes[name][0].position)
        return indexes

    def add(self, added: Field, how: str, position: Position | None, *, is_own: bool = False) -> None:
        """Adds a field. What was inherited gives way to a field of the schema's own of the same type."""
        fields = self.declared.fields
        known = fields.setdefault(added.name, added)
        is_alike = (known.type, known.in_document) == (added.type, added.in_document)
        if known is not added and (added.name in self.own_names or not is_alike):
            message = f"field {added.name} is {how}, but was already defined at {known.position}"
            self.problems.error(message, position)
        elif is_own:
            fields[added.name] = added
            self.own_names.add(added.name)

    def number(self, number: int, name: str, position: Position | None) -> None:
        """Notes the id of a field, which no other field of the document may have, inherited ones among them."""
        known = self.declared.ids.setdefault(number, name)
        if known != name:
            self.problems.error(f"field {name} has id {number}, which field {known} has already", position)

    def stemming(self) -> Stemming:
        found = {stemming_of(node, self.problems): node for node in self.source.elements("stemming")}
        if len(found) > 1:
            position = list(found.values())[-1].position
            self.problems.error(f"schema {self.source.name} has different default stemmings", position)
        return next(iter(found), "best")


def _z_curve(field: Field) -> Field:
    """The attribute that Vespa makes of a position, to search it by: its coordinates interleaved in one number."""
    name = f"{field.name}{Z_CURVE_SUFFIX}"
    each = "zcurve" if is_single(field.type) else "for_each { zcurve; }"
    text = f"input {field.name} | {each} | attribute {name}"
    return Field(
        name=name,
        type=LONG if is_single(field.type) else array_of(LONG),
        attribute=AttributeSettings(fast_search=True),
        in_document=False,
        position=field.position,
        script=IndexingScript(text, (field.name,), attributes=(name,), is_plain=False),
    )


def has_literal(field: Field) -> bool:
    """Return whether another field is made of its words as they are."""
    return field.rank_literal and field.in_document and field.type == STRING and field.imported is None


def literal_field(field: Field, scope: TypeScope, problems: Problems) -> Field | None:
    """Make the field of `rank: literal`: the words of a text as they are, beside its index, for ranking alone.

    A string field `title` of the document makes the field `title_literal`, neither stemmed nor rid of accents, whose
    rank type is `empty` and whose weight is that of `title` and 100 more. Queries for words in `title` rank by it too.

    Vespa: the same, by its processor of literal boosts; its reference no longer tells of it.
    """
    text = _LITERAL_FIELD % {"name": field.name, "weight": field.weight + _LITERAL_WEIGHT}
    node = next(parse_schema_text(text, "").all("field"))
    resolved = resolve_field(node, scope, "none", (), problems, in_document=False)
    return None if resolved is None else replace(resolved[0], position=field.position)
