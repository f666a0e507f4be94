"""A schema as streaming search sees it: the parts of structs, arrays of structs and maps are fields of their own.

A part (`persons.name`, `scores.key`) is searched, ranked and sorted by as its `struct-field` says, or else as the field
does that it is a part of. The name of such a field, and of a struct within it, stands for all of its parts.

Vespa: https://docs.vespa.ai/en/performance/streaming-search.html; config-model/.../schema/derived/VsmFields.java
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Final

from paperwasp.base.records import replace
from paperwasp.document.types import (
    PRIMITIVES,
    STRING,
    ArrayType,
    DataType,
    MapType,
    StructType,
    WeightedSetType,
    array_of,
    unroll,
)
from paperwasp.schema.data_types import holds_struct
from paperwasp.schema.model import AttributeSettings, Field, FieldSet, IndexSettings, Schema, SubField

_DEEPEST: Final = 8
"""Names in a path: structs may have members of their own type."""


def streamed_schema(schema: Schema) -> Schema:
    """The schema with the parts of its fields, known as streamed."""
    fields = dict(schema.fields)
    fieldsets = dict(schema.fieldsets)
    for field in schema.fields.values():
        parts = [part for part in _parts_of(field) if part.name not in fields]
        fields.update((part.name, part) for part in parts)
        for name, members in _names_above(parts).items():
            fieldsets.setdefault(name, FieldSet(name, tuple(members)))
    return replace(schema, fields=MappingProxyType(fields), fieldsets=MappingProxyType(fieldsets), is_streamed=True)


def is_streamed_part(field: Field) -> bool:
    """Return whether a field of a schema is a part of another: such are there in streaming search only."""
    return bool(field.outer)


def _parts_of(field: Field) -> Iterator[Field]:
    if field.imported is None and field.in_document and holds_struct(field.type):
        for path, type_ in _leaves(field.type, ()):
            if (part := _part(field, path, type_)) is not None:
                yield part


def _leaves(type_: DataType, path: tuple[str, ...]) -> Iterator[tuple[str, DataType]]:
    """The paths of all values that are no structs or maps, each with its type: an array where there are several."""
    match type_:
        case ArrayType():
            for below, leaf in _leaves(type_.element, path):
                yield below, leaf if isinstance(leaf, ArrayType) else array_of(leaf)
        case StructType() if len(path) < _DEEPEST:
            for name, inner in type_.fields:
                yield from _leaves(unroll(inner), (*path, name))
        case MapType() if len(path) < _DEEPEST:
            for name, inner in (("key", type_.key), ("value", type_.value)):
                for below, leaf in _leaves(inner, (*path, name)):
                    yield below, leaf if isinstance(leaf, ArrayType) else array_of(leaf)
        case WeightedSetType():
            pass
        case _ if path and type_ in PRIMITIVES.values():
            yield ".".join(path), type_


def _part(field: Field, path: str, type_: DataType) -> Field | None:
    """The field of a part; None where it is not searched."""
    sub = field.sub_fields.get(path) or SubField(path, type_)
    script = sub.script or field.script
    if script is None or not (script.indexes or script.attributes):
        return None
    is_text = type_ == STRING or (isinstance(type_, ArrayType) and type_.element == STRING)
    index = None
    if is_text and script.indexes:
        index = IndexSettings(stemming="none", normalizing=sub.match not in ("word", "exact", "gram"))
    return Field(
        name=f"{field.name}.{path}",
        type=type_,
        index=index,
        attribute=sub.attribute or AttributeSettings(),
        match=sub.match,
        rank_filter=sub.rank_filter,
        position=sub.position or field.position,
        cased=sub.attribute is not None and sub.attribute.cased,
        match_settings=sub.match_settings,
        outer=field.name,
    )


def _names_above(parts: list[Field]) -> Mapping[str, list[str]]:
    """Names of fields and of structs within them → their parts."""
    found: dict[str, list[str]] = {}
    for part in parts:
        name = part.name
        while "." in name:
            name = name.rpartition(".")[0]
            found.setdefault(name, []).append(part.name)
    return found
