"""Names of field types → data types, and which of the language's types are executed so far."""

from __future__ import annotations

from collections.abc import Collection
from difflib import get_close_matches
from typing import Final

from paperwasp.document.types import BOOL, PRIMITIVES, STRING, ArrayType, DataType, NumericType, array_of
from paperwasp.schema.problems import Problems
from paperwasp.schema.tree import Node

LATER: Final = frozenset({"position", "predicate", "raw", "uri", "tag", "struct"})
"""Named types of the language that wait for their issue."""
LATER_GENERIC: Final = ("weightedset<", "map<", "reference<", "annotationreference<", "tensor")


def data_type(node: Node, structs: Collection[str], problems: Problems) -> DataType | None:
    """The type that `node` declares, or None after telling `problems` why there is none."""
    name = node.type
    element = name.removeprefix("array<").removesuffix(">") if name.startswith("array<") else name
    if element in PRIMITIVES:
        return PRIMITIVES[name] if name == element else array_of(PRIMITIVES[element])
    if name.startswith(("array<", *LATER_GENERIC)) or name in LATER or name in structs:
        problems.error(f"the type {name} of {node.describe()} is not supported yet", node.position)
        return None
    nearest = get_close_matches(name, [*PRIMITIVES, *LATER, *structs], n=1)
    hint = f"; did you mean {nearest[0]!r}?" if nearest else ""
    problems.error(f"unknown type {name!r} of {node.describe()}{hint}", node.position)
    return None


def innermost(type_: DataType) -> DataType:
    """The type of the single values in a field: the element type of an array, or the type itself."""
    return type_.element if isinstance(type_, ArrayType) else type_


def is_text(type_: DataType) -> bool:
    return innermost(type_) == STRING


def is_number(type_: DataType) -> bool:
    """Whether Vespa counts it among the numeric types, which bool is not."""
    return isinstance(innermost(type_), NumericType) and innermost(type_) != BOOL
