"""The layout of stored documents: the part of a configuration that decides their types and where each field goes.

The layout is the part of the schemas that applying operations may depend on, and no more. It is written into the
operation log as a marker record, so that a replay meets each change at the same place. Rank profiles, summaries and
what only queries ask (how to sort, whether there is bm25) are not in it: changing those changes no layout.

What a change does to documents that are there: `content.state.relayout`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from hashlib import blake2b
from itertools import count
from operator import itemgetter
from pathlib import Path
from typing import Any, Final

import orjson
from msgspec import Struct
from msgspec.structs import asdict

from paperwasp.base.records import replace
from paperwasp.content.layouts.languages import DocumentLanguages
from paperwasp.content.layouts.parts import part_reader
from paperwasp.document.operations import Value, Valued
from paperwasp.document.predicate import PredicateIndex
from paperwasp.document.types import (
    PREDICATE,
    RAW,
    ArrayType,
    DataType,
    DocumentType,
    MapType,
    TensorFieldType,
    WeightedSetType,
    check_of,
    describe,
    is_uri,
    type_from_description,
)
from paperwasp.errors import InvalidInput, OtherVersion
from paperwasp.schema.model import AttributeSettings, Field, Schema
from paperwasp.schema.pending import is_attribute_now, is_derived, is_indexed_now, language_statements
from paperwasp.schema.streaming import is_streamed_part
from paperwasp.schema.text_profiles import text_profile
from paperwasp.storage.attributes import LONGEST_ROW, Column, create_column, unset_check
from paperwasp.storage.attributes.vector_graph import GraphSettings
from paperwasp.storage.index.segments import IndexedField
from paperwasp.text.linguistics import TextProfile, uri

INDEX_MODE: Final = "index"
"""The mode of document types that are searched. Those of any other are stored only."""
_VERSION: Final = 3
_MOST_TYPES: Final = 0xFFFF
_TYPES_COMPARED: Final = 8
"""The number of document types for which a layout remembers whether it has their fields: containers use one, and
another after a deployment."""


class ColumnSettings(Struct, frozen=True):
    """How a field's column is kept."""

    fast_search: bool = False
    cased: bool = False
    paged: bool = False
    """Whether the cells of its tensors need not be in memory."""
    graph: GraphSettings | None = None
    """The settings of the graph over its vectors."""
    predicate: PredicateIndex | None = None
    """How Vespa cuts the ranges of its predicates, which are shown so."""


class FieldLayout(Struct, frozen=True):
    """One field: how its text becomes terms (None: it is not indexed), and how its column is kept (None: none)."""

    name: str
    type: DataType
    text: TextProfile | None = None
    column: ColumnSettings | None = None
    parts: tuple[FieldLayout, ...] = ()
    """Its parts that have columns (`persons.name`): arrays, with an element for each of the field's."""
    is_derived: bool = False
    """Whether indexing makes it of fields of the document: it is stored with them, and shown on request."""
    languages_before: int = 0
    """How many of the type's statements that set the language run before its text is cut; 0: that is detected."""

    def indexed_fields(self, document_type: str) -> Iterator[IndexedField]:
        """The fields of the index for it: one; for a URI, one for all of it and one for each part."""
        profile = self.text or TextProfile()
        if not is_uri(self.type):
            yield IndexedField(document_type, self.name, profile)
            return
        yield IndexedField(document_type, self.name, profile, uri.ALL)
        for part in uri.PARTS:
            yield IndexedField(document_type, f"{self.name}.{part}", profile, part)

    def create_column(self, folder: Path | None = None) -> Column:
        """An empty column. `folder`: where the file of a paged one is. None: it is for one query, and has neither file
        nor graph."""
        settings = self.column or ColumnSettings()
        return self._column(folder if settings.paged else None, None if folder is None else settings.graph)

    def try_column(self) -> None:
        """Make an empty column with its graph, in memory, and drop it. Errors: why there can be none."""
        self._column(None, (self.column or ColumnSettings()).graph)

    def _column(self, paged_in: Path | None, graph: GraphSettings | None) -> Column:
        settings = self.column or ColumnSettings()
        return create_column(
            self.type, fast_search=settings.fast_search, cased=settings.cased, paged_in=paged_in, graph=graph
        )


class ColumnSource(Struct, frozen=True):
    """One column: how it is kept, and where its values come from: a field of the document, or a part of it."""

    field: FieldLayout
    source: str
    source_type: DataType
    read: Callable[[Value], Value] | None = None
    """The part's values of a value of the field; None: the field itself."""

    @property
    def name(self) -> str:
        return self.field.name

    def values(self, documents: Iterable[Valued]) -> list[Value | None]:
        """The values of documents for the column; None: a document has none."""
        source, read = self.source, self.read
        if read is None:
            return [document.get(source) for document in documents]
        found = (document.get(source) for document in documents)
        return [read(value) if value else None for value in found]


class TypeLayout(Struct, frozen=True, dict=True):
    """One document type. `number` is what stands for it by lid; it never changes while the type is there."""

    name: str
    number: int
    fields: Mapping[str, FieldLayout]
    inherits: tuple[str, ...] = ()
    """The document types that it inherits: for selections."""
    languages: tuple[str, ...] = ()
    """The statements of the indexing language that set the language of a document, in their order."""

    @cached_property
    def indexed(self) -> tuple[FieldLayout, ...]:
        return tuple(field for field in self.fields.values() if field.text is not None)

    @cached_property
    def attributes(self) -> tuple[FieldLayout, ...]:
        return tuple(field for field in self.fields.values() if field.column is not None)

    @cached_property
    def columns(self) -> tuple[ColumnSource, ...]:
        """All columns: of fields, and of parts of fields."""
        fields = self.fields.values()
        whole = [ColumnSource(field, field.name, field.type) for field in fields if field.column is not None]
        parts = [
            ColumnSource(part, field.name, field.type, part_reader(field.type, part.name))
            for field in fields
            for part in field.parts
        ]
        return (*whole, *parts)

    @cached_property
    def in_place(self) -> frozenset[str]:
        """Fields whose value is changed in their column, without touching index and store."""
        return frozenset(field.name for field in self.attributes if field.text is None)

    @cached_property
    def types(self) -> dict[str, DataType]:
        return {name: field.type for name, field in self.fields.items()}

    @cached_property
    def _languages(self) -> DocumentLanguages:
        return DocumentLanguages(self.languages, self.types)

    def languages_of(self, documents: Sequence[Mapping[str, Any]]) -> list[Mapping[str, str]] | None:
        """For each document the languages set for its indexed fields, by field; None: its type sets none."""
        if not self.languages:
            return None
        counts = {field.name: field.languages_before for field in self.indexed if field.languages_before}
        return self._languages.of_fields(documents, counts)

    @cached_property
    def fed(self) -> frozenset[str] | None:
        """The fields of the document as it was fed; None: there are no others."""
        if not any(field.is_derived for field in self.fields.values()):
            return None
        return frozenset(name for name, field in self.fields.items() if not field.is_derived)

    @cached_property
    def _checks(self) -> dict[str, Callable[[Any], bool]]:
        return {name: _check_of(field) for name, field in self.fields.items()}

    @cached_property
    def _compared(self) -> dict[int, tuple[DocumentType, bool]]:
        """Document types by their identity, which they keep while they are here, and whether `has_all` is so."""
        return {}

    def has_all(self, document_type: DocumentType) -> bool:
        """Return whether the fields of a document type are here, with the same types: what was read as one is right."""
        found = self._compared.get(id(document_type))
        if found is None:
            if len(self._compared) >= _TYPES_COMPARED:
                self._compared.clear()
            is_so = all(self.types.get(name) == data_type for name, data_type in document_type.fields.items())
            found = self._compared[id(document_type)] = document_type, is_so
        return found[1]

    @cached_property
    def unset_checks(self) -> dict[str, Callable[[Any], bool]]:
        """By field, a function that says whether its column keeps a value as it keeps none."""
        return {name: unset_check(data_type) for name, data_type in self.types.items()}

    def check(self, fields: Mapping[str, Any]) -> None:
        """Raise InvalidInput unless every value is of its field's type: what is logged can be applied."""
        checks = self._checks
        for name, value in fields.items():
            check = checks.get(name)
            if check is None:
                raise InvalidInput(f"No field named '{name}' in document type '{self.name}'")
            if not check(value):
                raise InvalidInput(f"Field '{name}' of type '{self.types[name]}' cannot have this value")


class Layout(Struct, frozen=True, dict=True):
    """All document types of a content cluster, at one generation."""

    generation: int
    types: Mapping[str, TypeLayout]

    def changed(self, generation: int, schemas: Iterable[Schema], modes: Mapping[str, str]) -> Layout:
        """The layout of these schemas. Types that stay keep their numbers. Errors: InvalidInput for too many types."""
        wanted = {schema.document.name: schema for schema in schemas}
        if len(wanted) > _MOST_TYPES:
            raise InvalidInput(f"{len(wanted)} document types; at most {_MOST_TYPES}")
        taken = {kind.number for name, kind in self.types.items() if name in wanted}
        free = (number for number in count() if number not in taken)
        types = {}
        for name, schema in wanted.items():
            number = self.types[name].number if name in self.types else next(free)
            is_searched = modes.get(name, INDEX_MODE) == INDEX_MODE
            fields = _fields_of(schema, is_searched)
            languages = language_statements(schema).statements if is_searched else ()
            types[name] = TypeLayout(name, number, fields, _ancestors(name, wanted), languages)
        return Layout(generation, types)

    @cached_property
    def fingerprint(self) -> str:
        """32 hexadecimal digits: those of every layout that lays out documents as this one. Numbers of types may
        differ."""
        types = {name: _describe_type(replace(kind, number=0)) for name, kind in self.types.items()}
        for described in types.values():
            described["fields"].sort(key=itemgetter("name"))
        return blake2b(orjson.dumps(types, option=orjson.OPT_SORT_KEYS), digest_size=16).hexdigest()

    def to_bytes(self) -> bytes:
        types = [_describe_type(kind) for kind in self.types.values()]
        return orjson.dumps({"version": _VERSION, "generation": self.generation, "types": types})

    @classmethod
    def from_bytes(cls, data: bytes) -> Layout:
        content = orjson.loads(data)
        if content["version"] != _VERSION:
            raise OtherVersion(f"a configuration marker of version {content['version']}; known is {_VERSION}")
        types = (_read_type(found) for found in content["types"])
        return cls(content["generation"], {kind.name: kind for kind in types})


EMPTY: Final = Layout(0, {})


def _ancestors(name: str, schemas: Mapping[str, Schema]) -> tuple[str, ...]:
    """The document types that one inherits, and that those inherit, as far as their schemas are here."""
    found: list[str] = []
    waiting = [name]
    while waiting:
        schema = schemas.get(waiting.pop())
        parents = schema.document.inherits if schema is not None else ()
        waiting += [parent for parent in parents if parent not in found]
        found += [parent for parent in parents if parent not in found]
    return tuple(sorted(found))


def _fields_of(schema: Schema, is_searched: bool) -> dict[str, FieldLayout]:
    """The stored fields of a document: its own, and those that indexing makes of them."""
    fields = {name: FieldLayout(name, data_type) for name, data_type in schema.document.fields.items()}
    before = language_statements(schema).before or {}
    for field in schema.fields.values():
        derived = is_derived(field)
        if derived:
            fields[field.name] = FieldLayout(field.name, field.type, is_derived=True)
        if is_searched and is_streamed_part(field):
            fields[field.name] = _field_layout(field)
        elif is_searched and field.name in fields:
            found = replace(_field_layout(field), parts=_parts_of(schema, field), is_derived=derived)
            languages = before.get(field.name, 0) if found.text is not None else 0
            fields[field.name] = replace(found, languages_before=languages)
    return fields


def _parts_of(schema: Schema, field: Field) -> tuple[FieldLayout, ...]:
    """Return the parts of a field that have columns: in streaming search parts are fields of their own."""
    names = (f"{field.name}.{path}" for path in field.sub_fields)
    found = (schema.field_named(name) for name in names if name not in schema.fields)
    return tuple(_field_layout(part) for part in found if part is not None and is_attribute_now(part))


def _field_layout(field: Field) -> FieldLayout:
    text = column = None
    if field.index is not None and is_indexed_now(field):
        text = text_profile(field)
    if field.attribute is not None and is_attribute_now(field):
        paged = field.attribute.paged and isinstance(field.type, TensorFieldType)
        cased = field.attribute.cased or field.cased
        graph = _graph_of(field, field.attribute)
        column = ColumnSettings(field.attribute.fast_search, cased, paged, graph, _predicate_index_of(field))
    return FieldLayout(field.name, field.type, text, column)


def _predicate_index_of(field: Field) -> PredicateIndex | None:
    index = field.index
    if field.type != PREDICATE or index is None or index.arity is None:
        return None
    return PredicateIndex(index.arity, index.lower_bound, index.upper_bound)


def _graph_of(field: Field, attribute: AttributeSettings) -> GraphSettings | None:
    """The kind of the graph over the vectors of a field with an index."""
    if field.index is None or field.index.hnsw is None or not isinstance(field.type, TensorFieldType):
        return None
    indexed = field.type.tensor.indexed
    if len(indexed) != 1 or (attribute.distance_metric == "geodegrees" and indexed[0].size != 2):
        return None
    hnsw = field.index.hnsw
    return GraphSettings(
        attribute.distance_metric,
        hnsw.max_links_per_node,
        hnsw.neighbors_to_explore_at_insert,
        hnsw.multi_threaded_indexing,
    )


def _describe_type(kind: TypeLayout) -> dict[str, Any]:
    fields = [_describe(field) for field in kind.fields.values()]
    described: dict[str, Any] = {"name": kind.name, "number": kind.number, "fields": fields}
    described |= {"inherits": kind.inherits} if kind.inherits else {}
    return described | ({"languages": kind.languages} if kind.languages else {})


def _describe(field: FieldLayout) -> dict[str, Any]:
    """Describe a field by what it has: a layout may have thousands of fields, and every partition gets it."""
    described: dict[str, Any] = {"name": field.name, "type": describe(field.type)}
    if field.text is not None:
        described["text"] = asdict(field.text)
    if field.column is not None:
        described["column"] = _describe_column(field.column)
    if field.parts:
        described["parts"] = [_describe(part) for part in field.parts]
    if field.is_derived:
        described["derived"] = True
    if field.languages_before:
        described["languages_before"] = field.languages_before
    return described


def _describe_column(column: ColumnSettings) -> dict[str, Any]:
    described: dict[str, Any] = {"fast_search": column.fast_search, "cased": column.cased}
    described |= {"paged": True} if column.paged else {}
    described |= {"predicate": list(column.predicate)} if column.predicate is not None else {}
    return described | ({"graph": asdict(column.graph)} if column.graph is not None else {})


def _read_column(found: Mapping[str, Any]) -> ColumnSettings:
    graph, predicate = found.get("graph"), found.get("predicate")
    read: dict[str, Any] = {
        "graph": None if graph is None else GraphSettings(**graph),
        "predicate": None if predicate is None else PredicateIndex(*predicate),
    }
    return ColumnSettings(**{**found, **read})


def _read_type(found: Mapping[str, Any]) -> TypeLayout:
    fields = (_read_field(field) for field in found["fields"])
    by_name = {field.name: field for field in fields}
    inherits = tuple(found.get("inherits", ()))
    return TypeLayout(found["name"], found["number"], by_name, inherits, tuple(found.get("languages", ())))


def _read_field(found: Mapping[str, Any]) -> FieldLayout:
    return FieldLayout(
        found["name"],
        type_from_description(found["type"]),
        TextProfile(**found["text"]) if "text" in found else None,
        _read_column(found["column"]) if "column" in found else None,
        tuple(map(_read_field, found.get("parts", ()))),
        found.get("derived", False),
        found.get("languages_before", 0),
    )


def _check_of(field: FieldLayout) -> Callable[[Any], bool]:
    """Return the function that checks a field's values."""
    check = check_of(field.type)
    length_of = _length_of(field.type)
    return check if length_of is None else lambda value: check(value) and length_of(value) <= LONGEST_ROW


def _length_of(data_type: DataType) -> Callable[[Any], int] | None:
    """Return the function that counts the elements of a value in a row; None: its columns have no rows of elements.

    More than a row can have are refused even where there is no column: another layout may have one.
    """
    match data_type:
        case ArrayType() | WeightedSetType() | MapType():
            return len
        case TensorFieldType():
            return lambda value: len(value.labels)
    return len if data_type == RAW else None


def fits(data_type: DataType, value: Any) -> bool:
    """Return whether a column, if there is one, has room for a value of this type."""
    length_of = _length_of(data_type)
    return length_of is None or length_of(value) <= LONGEST_ROW
