"""What of a configuration decides how documents are kept: their types, fields, and where each field goes.

The layout is the part of the schemas that applying operations may depend on. It is written into the operation log as a
marker record, so that a replay meets each change at the same place. Rank profiles and summaries are not in it: only
queries see those.

Layouts only grow: types and fields are added, nothing else changes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, Final

import orjson

from paperwasp.attribute import Column, can_be_attribute, create_column
from paperwasp.document.types import BOOL, FLOAT, PRIMITIVES, STRING, ArrayType, DataType, NumericType, array_of
from paperwasp.errors import InvalidInput
from paperwasp.index.text_index import IndexedField
from paperwasp.linguistics import profile_of
from paperwasp.schema.model import AttributeSettings, Field, IndexSettings, Schema

_VERSION: Final = 1
_FLOAT_MAX: Final = 3.4028234663852886e38
_MOST_TYPES: Final = 0xFFFF


@dataclass(frozen=True, slots=True)
class FieldLayout:
    """One field: its type by name, and how it is indexed and kept as attribute."""

    name: str
    type_name: str
    index: IndexSettings | None
    attribute: AttributeSettings | None
    match: str | None
    cased: bool = False

    @property
    def type(self) -> DataType:
        return type_of(self.type_name)

    def indexed_field(self, document_type: str) -> IndexedField:
        index = self.index or IndexSettings()
        profile = profile_of(index.stemming, index.normalizing, self.match, self.cased)
        return IndexedField(document_type, self.name, profile)

    @property
    def how_indexed(self) -> tuple[object, ...]:
        """What must not change while there are documents."""
        return self.type_name, self.index, self.match, self.cased

    def create_column(self) -> Column:
        settings = self.attribute or AttributeSettings()
        return create_column(self.type, fast_search=settings.fast_search, cased=settings.cased)


@dataclass(frozen=True)
class TypeLayout:
    """One document type. `number` is what stands for it by lid; it never changes."""

    name: str
    number: int
    fields: Mapping[str, FieldLayout]

    @cached_property
    def indexed(self) -> tuple[FieldLayout, ...]:
        return tuple(field for field in self.fields.values() if field.index is not None)

    @cached_property
    def attributes(self) -> tuple[FieldLayout, ...]:
        return tuple(field for field in self.fields.values() if field.attribute is not None)

    @cached_property
    def in_place(self) -> frozenset[str]:
        """Fields whose value is changed in their column, without touching index and store."""
        return frozenset(field.name for field in self.attributes if field.index is None)

    @cached_property
    def types(self) -> dict[str, DataType]:
        return {name: field.type for name, field in self.fields.items()}

    @cached_property
    def _checks(self) -> dict[str, Callable[[Any], bool]]:
        return {name: _check_of(data_type) for name, data_type in self.types.items()}

    def check(self, fields: Mapping[str, Any]) -> None:
        """Raises InvalidInput unless every value is of its field's type: what is logged can be applied."""
        checks = self._checks
        for name, value in fields.items():
            check = checks.get(name)
            if check is None:
                raise InvalidInput(f"No field named '{name}' in document type '{self.name}'")
            if not check(value):
                raise InvalidInput(f"Field '{name}' of type '{self.fields[name].type_name}' cannot have this value")


@dataclass(frozen=True)
class Layout:
    """All document types of a content cluster, at one generation."""

    generation: int
    types: Mapping[str, TypeLayout]

    def grown(self, generation: int, schemas: Iterable[Schema]) -> Layout:
        """This layout with what the schemas add. Errors: InvalidInput where a field that is there would change."""
        types = dict(self.types)
        for schema in schemas:
            known = types.get(schema.document.name)
            number = known.number if known else len(types)
            fields = dict(known.fields) if known else {}
            for field in _fields_of(schema):
                _check_change(schema.document.name, fields.get(field.name), field)
                fields[field.name] = field
            types[schema.document.name] = TypeLayout(schema.document.name, number, fields)
        if len(types) > _MOST_TYPES:
            raise InvalidInput(f"{len(types)} document types; at most {_MOST_TYPES}")
        return Layout(generation, types)

    def to_bytes(self) -> bytes:
        types = [
            {"name": kind.name, "number": kind.number, "fields": [asdict(field) for field in kind.fields.values()]}
            for kind in self.types.values()
        ]
        return orjson.dumps({"version": _VERSION, "generation": self.generation, "types": types})

    @classmethod
    def from_bytes(cls, data: bytes) -> Layout:
        content = orjson.loads(data)
        if content["version"] != _VERSION:
            raise InvalidInput(f"a configuration marker of version {content['version']}; known is {_VERSION}")
        types = (_read_type(described) for described in content["types"])
        return cls(content["generation"], {kind.name: kind for kind in types})


EMPTY: Final = Layout(0, {})


def type_of(name: str) -> DataType:
    """The data type of that name. Errors: InvalidInput for one that documents cannot have yet."""
    if name.startswith("array<") and name.endswith(">"):
        return array_of(_primitive(name[6:-1]))
    return _primitive(name)


def _primitive(name: str) -> DataType:
    if name not in PRIMITIVES:
        raise InvalidInput(f"Fields of type {name} are not supported yet")
    return PRIMITIVES[name]


def _fields_of(schema: Schema) -> list[FieldLayout]:
    fields = [_field_layout(field) for field in schema.fields.values()]
    known = schema.fields.keys()
    plain = (FieldLayout(n, str(t), None, None, None) for n, t in schema.document.fields.items() if n not in known)
    return [*fields, *plain]


def _field_layout(field: Field) -> FieldLayout:
    data_type = type_of(str(field.type))
    attribute = field.attribute
    if attribute is not None:
        if not can_be_attribute(data_type):
            raise InvalidInput(f"Field '{field.name}': attributes of type {data_type} are not supported yet")
        attribute = AttributeSettings(attribute.fast_search, attribute.fast_rank, attribute.cased or field.cased)
    return FieldLayout(field.name, str(data_type), field.index, attribute, field.match, field.cased)


def _check_change(document_type: str, known: FieldLayout | None, field: FieldLayout) -> None:
    if known is not None and known.how_indexed != field.how_indexed:
        raise InvalidInput(f"Field '{field.name}' of document type '{document_type}' cannot change its type or index")
    if known is not None and (known.attribute is None) != (field.attribute is None):
        raise InvalidInput(f"Field '{field.name}' of document type '{document_type}' cannot change its attribute")


def _read_type(described: Mapping[str, Any]) -> TypeLayout:
    fields = (_read_field(field) for field in described["fields"])
    return TypeLayout(described["name"], described["number"], {field.name: field for field in fields})


def _read_field(described: Mapping[str, Any]) -> FieldLayout:
    index, attribute = described["index"], described["attribute"]
    return FieldLayout(
        described["name"],
        described["type_name"],
        IndexSettings(**index) if index else None,
        AttributeSettings(**attribute) if attribute else None,
        described["match"],
        described.get("cased", False),
    )


def _check_of(data_type: DataType) -> Callable[[Any], bool]:
    """Whether a value is one of this type. A lone surrogate is found later, when the text is encoded."""
    if isinstance(data_type, ArrayType):
        check = _check_of(data_type.element)
        return lambda value: type(value) is list and all(map(check, value))
    if data_type == STRING:
        return lambda value: type(value) is str
    if data_type == BOOL:
        return lambda value: type(value) is bool
    if data_type == FLOAT:
        return lambda value: type(value) is float and (abs(value) <= _FLOAT_MAX or not math.isfinite(value))
    if isinstance(data_type, NumericType) and data_type.low is not None and data_type.high is not None:
        low, high = data_type.low, data_type.high
        return lambda value: type(value) is int and low <= value <= high
    return lambda value: type(value) is float
