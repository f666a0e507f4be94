"""The values that parts of arrays of structs, and of maps, have in columns of their own.

Such a column is an array with an element for each of the field's: element i of `persons.name` and of `persons.age` are
of the same person. A struct without the member has there what stands for "unset" in a single value of the type.

    persons.name        member of the structs of an array
    map.key, map.value  keys, and values that are no structs
    map.value.name      member of values that are structs

Vespa: https://docs.vespa.ai/en/reference/schemas/schemas.html#struct-field
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from paperwasp.attribute.numeric import unset_of
from paperwasp.document.operations import Value
from paperwasp.document.parts import part_of
from paperwasp.document.types import DataType, MapType, NumericType


def part_reader(data_type: DataType, path: str) -> Callable[[Value], list[Value]]:
    """What gives the values of the part at `path` (with the field's name) of a value of the field."""
    names = path.split(".")[1:]
    part = part_of(data_type, ".".join(names))
    unset: Any = unset_of(part) if isinstance(part, NumericType) else ""
    elements: Callable[[Any], Iterable[Any]] = iter
    if isinstance(data_type, MapType):
        elements = dict.keys if names.pop(0) == "key" else dict.values

    def read(value: Value) -> list[Value]:
        found: list[Any] = list(elements(value))
        for name in names:
            found = [None if struct is None else struct.get(name) for struct in found]
        return [unset if each is None else each for each in found] if names else found

    return read
