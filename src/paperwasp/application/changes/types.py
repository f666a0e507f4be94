"""When a field's values of before are none of its type of now: those documents must be fed again.

A struct may gain and lose fields; what is in both must be of the same type.
"""

from __future__ import annotations

from paperwasp.document.types import ArrayType, DataType, MapType, ReferenceType, StructType, WeightedSetType
from paperwasp.schema.model import Schema


def type_changes(active: Schema, new: Schema) -> list[tuple[str, str]]:
    """Field → what changed, for every field of the document that is in both."""
    before, after = active.document.fields, new.document.fields
    return [
        (name, f"data type: '{type_name(before[name])}' -> '{type_name(after[name])}'")
        for name in before
        if name in after and types_differ(before[name], after[name])
    ]


def types_differ(active: DataType, new: DataType, nested: bool = False) -> bool:
    """Whether values of the one are none of the other. Within other types a struct is also known by its name."""
    match active, new:
        case StructType(), StructType():
            common = ((type_, new.field(name)) for name, type_ in active.fields)
            renamed = nested and active.name != new.name
            return renamed or any(after is not None and types_differ(type_, after) for type_, after in common)
        case WeightedSetType(), WeightedSetType():
            return _flags(active) != _flags(new) or types_differ(active.key, new.key, nested=True)
        case (ArrayType(), ArrayType()) | (MapType(), MapType()):
            pairs = zip(active.inner, new.inner, strict=True)
            return any(types_differ(before, after, nested=True) for before, after in pairs)
    return active != new


def type_name(type_: DataType) -> str:
    """The type as Vespa names it in messages, structs with what is in them."""
    match type_:
        case ArrayType():
            return f"Array<{type_name(type_.element)}>"
        case MapType():
            return f"Map<{type_name(type_.key)},{type_name(type_.value)}>"
        case WeightedSetType():
            return f"WeightedSet<{type_name(type_.key)}>{_flags(type_)}"
        case ReferenceType():
            return f"Reference<{type_.target}>"
        case StructType():
            fields = ",".join(f"{name}:{type_name(inner)}" for name, inner in type_.fields)
            return f"{type_.name}:{{{fields}}}"
    return str(type_)


def _flags(type_: WeightedSetType) -> str:
    return (";Add" if type_.create_if_nonexistent else "") + (";Remove" if type_.remove_if_zero else "")
