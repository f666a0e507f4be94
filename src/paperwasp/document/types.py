"""Data types of fields, the parts of values that hold others, and whether a value is one of its type.

A type is a value: equal types are equal, and `str()` is the name that a schema writes. `describe` and
`type_from_description` carry a type to JSON and back with everything it says, for what is kept on disk.

Vespa: https://docs.vespa.ai/en/reference/schemas/schemas.html#field-types
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar, Final

from msgspec import Struct, field

from paperwasp.base.records import PartlyCompared
from paperwasp.document.tensor.types import TensorType
from paperwasp.document.tensor.value import Tensor


class DataType(Struct, frozen=True):
    """A field's type. `str()` is its name as a schema writes it."""

    name: str

    def __str__(self) -> str:
        return self.name

    @property
    def inner(self) -> tuple[DataType, ...]:
        """The types that values of this one hold."""
        return ()

    def walk(self) -> Iterator[DataType]:
        """This type and all within it."""
        yield self
        for type_ in self.inner:
            yield from type_.walk()


class NumericType(DataType, frozen=True):
    """A number with the range of `low`..`high` (inclusive, for integers) and a NumPy dtype name for its column."""

    dtype: str
    low: int | None = None
    high: int | None = None


BYTE = NumericType("byte", "int8", -128, 127)
INT = NumericType("int", "int32", -(2**31), 2**31 - 1)
LONG = NumericType("long", "int64", -(2**63), 2**63 - 1)
FLOAT16 = NumericType("float16", "float16")
FLOAT = NumericType("float", "float32")
DOUBLE = NumericType("double", "float64")
BOOL = NumericType("bool", "int8", 0, 1)
STRING = DataType("string")
URI = DataType("uri")
RAW = DataType("raw")
PREDICATE = DataType("predicate")
POSITION = DataType("position")

PRIMITIVES: Mapping[str, DataType] = {t.name: t for t in (BYTE, INT, LONG, FLOAT, DOUBLE, BOOL, STRING)}
SINGLE_TYPES: Final[Mapping[str, DataType]] = {
    **PRIMITIVES, **{t.name: t for t in (FLOAT16, URI, RAW, PREDICATE, POSITION)}
}  # fmt: skip
"""Every type that is written as one word, by its name; structs and `tag` excepted."""


class ArrayType(DataType, frozen=True):
    """`array<…>` of any type."""

    element: DataType

    @property
    def inner(self) -> tuple[DataType, ...]:
        return (self.element,)


class WeightedSetType(DataType, frozen=True):
    """`weightedset<…>`: keys with integer weights. The flags say what updates do with keys that are absent or zero."""

    key: DataType
    create_if_nonexistent: bool = False
    remove_if_zero: bool = False

    @property
    def inner(self) -> tuple[DataType, ...]:
        return (self.key,)


class MapType(DataType, frozen=True):
    """`map<…,…>`."""

    key: DataType
    value: DataType

    @property
    def inner(self) -> tuple[DataType, ...]:
        return self.key, self.value


class StructType(DataType, frozen=True):
    """A struct by its name, with its fields in order, inherited ones first."""

    fields: tuple[tuple[str, DataType], ...]

    @property
    def inner(self) -> tuple[DataType, ...]:
        return tuple(type_ for _, type_ in self.fields)

    def field(self, name: str) -> DataType | None:
        return dict(self.fields).get(name)


class InnerStructType(DataType, PartlyCompared, frozen=True):
    """A struct within itself, by its name: no type can hold itself whole. It is there only within that struct."""

    UNCOMPARED: ClassVar = frozenset({"structs"})

    structs: Mapping[str, DataType]
    """By name, where the whole one is found."""


class ReferenceType(DataType, frozen=True):
    """`reference<…>`: the id of a document of type `target`."""

    target: str


class AnnotationReferenceType(DataType, frozen=True):
    """`annotationreference<…>`: accepted in a struct, and never filled."""

    annotation: str


class TensorFieldType(DataType, frozen=True):
    """`tensor<…>(…)`."""

    tensor: TensorType


def array_of(element: DataType) -> ArrayType:
    return ArrayType(f"array<{element}>", element)


def weighted_set_of(
    key: DataType, *, create_if_nonexistent: bool = False, remove_if_zero: bool = False
) -> WeightedSetType:
    return WeightedSetType(f"weightedset<{key}>", key, create_if_nonexistent, remove_if_zero)


def map_of(key: DataType, value: DataType) -> MapType:
    return MapType(f"map<{key},{value}>", key, value)


def struct_of(name: str, fields: Mapping[str, DataType]) -> StructType:
    return StructType(name, tuple(fields.items()))


def unroll(type_: DataType) -> DataType:
    """Unrolls the type of a field of a struct: the type as it is outside of the struct."""
    match type_:
        case ArrayType():
            return array_of(unroll(type_.element))
        case MapType():
            return map_of(type_.key, unroll(type_.value))
        case InnerStructType():
            return type_.structs[type_.name]
    return type_


def reference_to(target: str) -> ReferenceType:
    return ReferenceType(f"reference<{target}>", target)


def tensor_field(tensor: TensorType) -> TensorFieldType:
    return TensorFieldType(str(tensor), tensor)


TAG = WeightedSetType("tag", STRING, create_if_nonexistent=True, remove_if_zero=True)


def describe(type_: DataType) -> Any:
    """The type as JSON values, everything it says included."""
    match type_:
        case ArrayType():
            return {"array": describe(type_.element)}
        case WeightedSetType():
            flags = [type_.create_if_nonexistent, type_.remove_if_zero]
            return {"weightedset": describe(type_.key), "flags": flags, "name": type_.name}
        case MapType():
            return {"map": [describe(type_.key), describe(type_.value)]}
        case StructType():
            return {"struct": type_.name, "fields": [[name, describe(inner)] for name, inner in type_.fields]}
        case InnerStructType():
            return {"inner": type_.name}
        case ReferenceType():
            return {"reference": type_.target}
        case AnnotationReferenceType():
            return {"annotationreference": type_.annotation}
        case TensorFieldType():
            return {"tensor": type_.name}
    return type_.name


def type_from_description(description: Any, structs: dict[str, DataType] | None = None) -> DataType:
    """The type that `describe` gave. Errors: KeyError, ValueError for what it never gives.

    `structs`: where structs that hold themselves find themselves.
    """
    structs = {} if structs is None else structs
    match description:
        case str():
            return SINGLE_TYPES[description]
        case {"array": element}:
            return array_of(type_from_description(element, structs))
        case {"weightedset": key, "flags": [create, remove], "name": name}:
            return WeightedSetType(name, type_from_description(key), create, remove)
        case {"map": [key, value]}:
            return map_of(type_from_description(key), type_from_description(value, structs))
        case {"struct": name, "fields": fields}:
            within: dict[str, DataType] = {}
            members = tuple((field_name, type_from_description(inner, within)) for field_name, inner in fields)
            return within.setdefault(name, StructType(name, members))
        case {"inner": name}:
            return InnerStructType(name, structs)
        case {"reference": target}:
            return reference_to(target)
        case {"annotationreference": annotation}:
            return AnnotationReferenceType(f"annotationreference<{annotation}>", annotation)
        case {"tensor": text}:
            return tensor_field(TensorType.parse(text))
    raise ValueError(f"no description of a data type: {description!r}")


class DocumentType(Struct, frozen=True):
    """A document type: its fields by name, in the order of the schema, inherited ones first."""

    name: str
    fields: Mapping[str, DataType]
    inherits: tuple[str, ...] = field(default=())


# Parts of values that hold others: what a path below a field leads to.
#
# Vespa: https://docs.vespa.ai/en/reference/schemas/schemas.html#struct-field


def part_of(type_: DataType, path: str) -> DataType | None:
    """The type at `path` within a field: names of structs' fields, `key` and `value` of maps, arrays passed through."""
    for name in path.split("."):
        while isinstance(type_, ArrayType):
            type_ = type_.element
        match type_:
            case StructType():
                inner = type_.field(name)
                found = inner and unroll(inner)
            case MapType():
                found = {"key": type_.key, "value": type_.value}.get(name)
            case _:
                found = None
        if found is None:
            return None
        type_ = found
    return type_


def is_uri(type_: DataType) -> bool:
    """Return whether the values are URIs: one, an array of them, or the keys of a weighted set."""
    element = type_.element if isinstance(type_, ArrayType) else type_
    return (element.key if isinstance(element, WeightedSetType) else element) == URI


def part_of_element(type_: DataType, path: str) -> DataType | None:
    """As `part_of`, where each element of the array or map has just one such value; None where it has several."""
    names = path.split(".")
    if isinstance(type_, MapType):
        found: DataType | None = {"key": type_.key, "value": type_.value}.get(names.pop(0))
    else:
        found = type_.element if isinstance(type_, ArrayType) else None
    for name in names:
        member = found.field(name) if isinstance(found, StructType) else None
        found = member and unroll(member)
    return found


def parts_of(type_: DataType) -> tuple[str, ...]:
    """The names that a path into a field of this type may start with."""
    while isinstance(type_, ArrayType):
        type_ = type_.element
    match type_:
        case StructType():
            return tuple(name for name, _ in type_.fields)
        case MapType():
            return ("key", "value")
    return ()


# Whether a value is one of its type: the last look at it before it is logged, since what is logged must be applied.
#
# Values: str, bool, int, float, bytes (raw), GeoPosition (position), Tensor, list (array), dict (map, weighted set,
# struct).


Check = Callable[[Any], bool]

_LARGEST: Final = {FLOAT16.name: 65504.0, FLOAT.name: 3.4028234663852886e38, "double": math.inf}


def check_of(data_type: DataType, outer: Check | None = None) -> Check:
    """The function that says whether a value is one of this type; `outer`: that of the struct it is in.

    A lone surrogate is found later, when the text is encoded.
    """
    match data_type:
        case ArrayType():
            element = check_of(data_type.element, outer)
            return lambda value: type(value) is list and all(map(element, value))
        case WeightedSetType():
            return _entries(check_of(data_type.key), check_of(INT))
        case MapType():
            return _entries(check_of(data_type.key), check_of(data_type.value, outer))
        case StructType():
            return _members(data_type)
        case InnerStructType() if outer is not None:
            return outer
        case NumericType():
            return _number(data_type)
        case TensorFieldType():
            return lambda value: type(value) is Tensor and value.type == data_type.tensor
        case AnnotationReferenceType():
            return lambda value: False
    if data_type == RAW:
        return lambda value: type(value) is bytes
    if data_type == POSITION:
        whole = check_of(INT)
        return lambda value: isinstance(value, tuple) and len(value) == 2 and all(map(whole, value))
    return lambda value: type(value) is str


def _number(data_type: NumericType) -> Check:
    if data_type == BOOL:
        return lambda value: type(value) is bool
    if data_type.low is not None and data_type.high is not None:
        low, high = data_type.low, data_type.high
        return lambda value: type(value) is int and low <= value <= high
    largest = _LARGEST[data_type.name]
    return lambda value: type(value) is float and (abs(value) <= largest or not math.isfinite(value))


def _entries(key: Check, item: Check) -> Check:
    return lambda value: type(value) is dict and all(map(key, value)) and all(map(item, value.values()))


def _members(data_type: StructType) -> Check:
    checks: dict[str, Check] = {}

    def check(value: Any) -> bool:
        return type(value) is dict and all(name in checks and checks[name](item) for name, item in value.items())

    checks |= {name: check_of(inner, check) for name, inner in data_type.fields}
    return check
