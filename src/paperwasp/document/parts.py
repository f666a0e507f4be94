"""Parts of values that hold others: what a path below a field leads to.

Vespa: https://docs.vespa.ai/en/reference/schemas/schemas.html#struct-field
"""

from __future__ import annotations

from paperwasp.document.types import URI, ArrayType, DataType, MapType, StructType, WeightedSetType, unroll


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
    """Whether the values are URIs: one, an array of them, or the keys of a weighted set."""
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
