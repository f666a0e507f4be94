"""A walk through a type, for what changes the JSON of its values at the structs and tensors in them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from paperwasp.document.tensor.types import TensorType
from paperwasp.document.types import ArrayType, DataType, InnerStructType, MapType, StructType, TensorFieldType

Json = Any
Prune = Callable[[Json], Json]
OfStruct = Callable[[StructType, Mapping[str, Prune]], Prune]
"""What changes the members of a struct. The mapping has what changes their values, by name, when it runs."""


def pruner(
    data_type: DataType,
    of_struct: OfStruct,
    of_tensor: Callable[[TensorType], Prune] | None = None,
    outer: Prune | None = None,
) -> Prune | None:
    """What changes values of a type; None where nothing does. `outer`: that of the struct which the type is in."""
    match data_type:
        case StructType():
            members: dict[str, Prune] = {}
            prune = of_struct(data_type, members)
            found = {name: pruner(kind, of_struct, of_tensor, prune) for name, kind in data_type.fields}
            members |= {name: member for name, member in found.items() if member is not None}
            return prune
        case InnerStructType():
            return outer
        case TensorFieldType():
            return of_tensor and of_tensor(data_type.tensor)
        case ArrayType():
            element = pruner(data_type.element, of_struct, of_tensor, outer)
            return element and (lambda values: [element(value) for value in values])
        case MapType():
            item = pruner(data_type.value, of_struct, of_tensor, outer)
            return item and (lambda entries: {key: item(value) for key, value in entries.items()})
    return None
