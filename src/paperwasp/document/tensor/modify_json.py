"""The JSON of changes of single cells of a tensor: `modify`, and the addresses of `remove`.

    {"operation": "add", "create": true, "cells": [{"address": {"x": "a"}, "value": 2.0}]}
    {"operation": "replace", "blocks": {"a": [1, 2, 3]}}          {"addresses": [{"x": "b"}, {"x": "c"}]}

Vespa: https://docs.vespa.ai/en/reference/schemas/document-json-format.html#tensor-modify
Differs: a value that int8 has no room for is refused, as in all tensors.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple, Protocol

import numpy as np

from paperwasp.document.tensor.json_format import read_blocks, read_cells
from paperwasp.document.tensor.modify import CREATED_WITH, Cell, CellOperation
from paperwasp.document.tensor.types import TensorType
from paperwasp.document.tensor.value import as_cells
from paperwasp.errors import LanguageError
from paperwasp.text.large_json import array_in_pieces

_CELLS: Final = ("cells", "addresses")
_KNOWN: Final = frozenset(("operation", "create", "blocks", *_CELLS))


class ModifySpec(NamedTuple):
    """A `modify` update, as `tensor.modify.modify` takes it."""

    operation: CellOperation
    cells: tuple[Cell, ...]
    create_default: float | None


class _Modification(Protocol):
    @property
    def operation(self) -> CellOperation: ...
    @property
    def cells(self) -> Sequence[Cell]: ...
    @property
    def create_default(self) -> float | None: ...


def read_modify(value: Any, type_: TensorType, field: str) -> ModifySpec:
    """The modification that a JSON value writes. Errors: ValueError."""
    if not isinstance(value, dict):
        raise ValueError("Expected an object with operation and cells")
    if (unknown := next((key for key in value if key not in _KNOWN), None)) is not None:
        raise ValueError(f"Unknown JSON string '{unknown}' in modify update for field '{field}'")
    if "operation" not in value:
        raise ValueError(f"Modify update for field '{field}' does not contain an operation")
    operation = value["operation"]
    if operation not in list(CREATED_WITH):
        raise ValueError(f"Unknown operation '{operation}' in modify update for field '{field}'")
    create = value.get("create", False)
    if not isinstance(create, bool):
        raise ValueError(f"Expected true or false for create in modify update for field '{field}'")
    keys = [key for key in value if key in ("blocks", *_CELLS)]
    if not keys:
        raise ValueError(f"Modify update for field '{field}' does not contain tensor cells")
    if len(keys) > 1:
        raise ValueError(f"Expected either {keys[0]} or {keys[1]} in modify update for field '{field}'")
    try:
        read = read_blocks if keys[0] == "blocks" else read_cells
        cells = read(value[keys[0]], type_, keys[0])
    except LanguageError as error:
        raise ValueError(error.bare_message) from None
    return ModifySpec(operation, _as_stored(cells, type_), CREATED_WITH[operation] if create else None)


def _as_stored(cells: Mapping[tuple[tuple[str, ...], tuple[int, ...]], float], type_: TensorType) -> tuple[Cell, ...]:
    """With the operands as cells of the tensor's type have them."""
    operands = as_cells(np.array(list(cells.values()), np.float64), type_.cell_type).astype(np.float64).tolist()
    return tuple((*place, operand) for place, operand in zip(cells, operands, strict=True))


def write_modify(modification: _Modification, type_: TensorType) -> dict[str, Any]:
    """The JSON of a modification that was read, for orjson."""
    written: dict[str, Any] = {"operation": modification.operation}
    if modification.create_default is not None:
        written["create"] = True
    mapped, indexed = [d.name for d in type_.mapped], [d.name for d in type_.indexed]
    written["cells"] = array_in_pieces(
        {
            "address": dict(zip(mapped, labels, strict=True)) | dict(zip(indexed, map(str, indexes), strict=True)),
            "value": _as_json(operand),
        }
        for labels, indexes, operand in modification.cells
    )
    return written


def _as_json(operand: float) -> Any:
    if np.isfinite(operand):
        return operand
    return "NaN" if np.isnan(operand) else "Infinity" if operand > 0 else "-Infinity"


def read_addresses(value: Any, type_: TensorType, field: str) -> tuple[tuple[tuple[str, str], ...], ...]:
    """The addresses to remove: of each, (dimension, label) in the order of dimensions. Errors: ValueError."""
    if not type_.mapped:
        raise ValueError(
            "A remove update can only be applied to tensors with at least one mapped dimension. "
            f"Field '{field}' has unsupported tensor type '{type_}'"
        )
    addresses = value.get("addresses") if isinstance(value, dict) else None
    if not isinstance(addresses, list):
        raise ValueError("Expected an object with an array of addresses")
    if not addresses:
        raise ValueError(f"Remove update for field '{field}' does not contain tensor addresses")
    names = frozenset(d.name for d in type_.mapped)
    found = tuple(_address(address, names, type_) for address in addresses)
    if any([name for name, _ in address] != [name for name, _ in found[0]] for address in found):
        raise ValueError("All addresses of a remove update must have the same dimensions")
    return tuple(dict.fromkeys(found))


def _address(address: Any, names: frozenset[str], type_: TensorType) -> tuple[tuple[str, str], ...]:
    if not isinstance(address, dict) or not address:
        raise ValueError("Expected an address: an object of dimensions and labels")
    for name, label in address.items():
        if name not in names:
            raise ValueError(f"Dimension '{name}' is no mapped dimension of {type_}")
        if not isinstance(label, str | int) or isinstance(label, bool):
            raise ValueError(f"Expected a label of dimension '{name}'")
    return tuple((name, str(address[name])) for name in sorted(address))


def write_addresses(addresses: Iterable[Iterable[tuple[str, str]]]) -> dict[str, Any]:
    """The JSON of addresses that were read, for orjson."""
    return {"addresses": array_in_pieces(map(dict, addresses))}
