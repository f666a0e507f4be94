"""The values that parts of arrays of structs, and of maps, have in columns of their own.

Such a column is an array with an element for each of the field's: element i of `persons.name` and of `persons.age` are
of the same person. A struct without the member has there what stands for "unset" in a single value of the type; a bool
has no such value there and is false, as in Vespa.

    persons.name        member of the structs of an array
    map.key, map.value  keys, and values that are no structs
    map.value.name      member of values that are structs

Vespa: https://docs.vespa.ai/en/reference/schemas/schemas.html#struct-field
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final

from paperwasp.document.operations import Value
from paperwasp.document.types import (
    BOOL,
    PRIMITIVES,
    ArrayType,
    DataType,
    MapType,
    NumericType,
    StructType,
    part_of,
    part_of_element,
    unroll,
)
from paperwasp.storage.attributes.numeric import unset_of

_SINGLE: Final = frozenset(PRIMITIVES.values())


def streamed_part_reader(data_type: DataType, path: str) -> Callable[[Value], Value]:
    """As `part_reader`, for parts of any type: of a single struct the member itself, or None; of elements that have
    several values each, those of all elements."""
    names = path.split(".")[1:]
    if is_one_of_each(data_type, path):
        return part_reader(data_type, path)
    if _is_single(data_type, names):
        return lambda value: next(_values(data_type, value, names), None)
    return lambda value: list(_values(data_type, value, names))


def is_one_of_each(data_type: DataType, path: str) -> bool:
    """Return whether each element of an array or a map has at most one value of the part."""
    part = path.partition(".")[2]
    return isinstance(data_type, ArrayType | MapType) and part_of_element(data_type, part) in _SINGLE


def _is_single(type_: DataType, names: Sequence[str]) -> bool:
    """Return whether a value of the type has at most one at the path below it."""
    for name in names:
        inner = type_.field(name) if isinstance(type_, StructType) else None
        if inner is None:
            return False
        type_ = unroll(inner)
    return type_ in _SINGLE


def _values(type_: DataType, value: Any, names: Sequence[str]) -> Iterator[Value]:
    """All values at a path below a value of the type."""
    if value is None:
        return
    match type_:
        case ArrayType():
            for element in value:
                yield from _values(type_.element, element, names)
        case MapType():
            inner, found = (type_.key, value) if names[0] == "key" else (type_.value, value.values())
            for each in found:
                yield from _values(inner, each, names[1:])
        case StructType():
            member = type_.field(names[0])
            if member is not None:
                yield from _values(unroll(member), value.get(names[0]), names[1:])
        case _:
            yield value


def part_reader(data_type: DataType, path: str) -> Callable[[Value], list[Value]]:
    """Make a function that reads the values of a part from a value of the field. `path` has the field's name."""
    unset = _unset_element(part_of(data_type, path.partition(".")[2]))
    read = set_part_reader(data_type, path)
    return lambda value: [unset if each is None else each for each in read(value)]


def set_part_reader(data_type: DataType, path: str) -> Callable[[Value], list[Value | None]]:
    """Return the same function, but with None for what is not set."""
    names = path.split(".")[1:]
    elements: Callable[[Any], Iterable[Any]] = iter
    if isinstance(data_type, MapType):
        elements = dict.keys if names.pop(0) == "key" else dict.values

    def read(value: Value) -> list[Value | None]:
        found: list[Any] = list(elements(value))
        for name in names:
            found = [None if struct is None else struct.get(name) for struct in found]
        return found

    return read


def _unset_element(part: DataType | None) -> Value:
    if part == BOOL:
        return False
    return unset_of(part) if isinstance(part, NumericType) else ""
