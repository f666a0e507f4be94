"""Changes of single cells of a tensor: what `modify`, `add` and `remove` of an update make of a value.

A result of more cells than a tensor may have is not made: the tensor stays as it was.

Vespa: https://docs.vespa.ai/en/reference/schemas/document-json-format.html#tensor-modify
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import itemgetter
from typing import Any, Final, Literal, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from paperwasp import limits
from paperwasp.document.tensor.json_format import read_blocks, read_cells
from paperwasp.document.tensor.types import TensorType
from paperwasp.document.tensor.value import DTYPES, Labels, Tensor, as_cells
from paperwasp.errors import LanguageError
from paperwasp.text.large_json import array_in_pieces

CellOperation = Literal["replace", "add", "multiply"]
Cell = tuple[Labels, tuple[int, ...], float]
"""Labels of the mapped dimensions, indexes of the indexed ones, operand."""

_Numbers = NDArray[np.float64]
_JOIN: Final[Mapping[CellOperation, Callable[[_Numbers, NDArray[np.int64], _Numbers], None]]] = {
    "replace": lambda cells, places, operands: cells.__setitem__(places, operands),
    "add": np.add.at,
    "multiply": np.multiply.at,
}
"""Joins the cells at some places with operands, in their order where a place is named again."""
CREATED_WITH: Final[Mapping[CellOperation, float]] = {"replace": 0.0, "add": 0.0, "multiply": 1.0}
"""The values of new cells before the operation, where it creates cells."""


def empty(type_: TensorType) -> Tensor:
    """The tensor without cells; without mapped dimensions, of zeros."""
    labels: tuple[Labels, ...] = () if type_.mapped else ((),)
    return Tensor(type_, labels, np.zeros((len(labels), *type_.shape), DTYPES[type_.cell_type]))


def modify(tensor: Tensor, operation: CellOperation, cells: Sequence[Cell], create_default: float | None) -> Tensor:
    """Joins each of these cells with its operand.

    Cells that are not there stay away; with `create_default`, their whole subspace is made of it first.
    """
    if create_default is not None:
        tensor = _with_subspaces(tensor, [labels for labels, _, _ in cells], create_default)
    rows = tensor.rows
    there = [cell for cell in cells if cell[0] in rows]
    values = np.array(tensor.cells, np.float64, order="C")
    operands = np.array([operand for _, _, operand in there], np.float64)
    with np.errstate(all="ignore"):
        _JOIN[operation](values.reshape(-1), _places(tensor, there), operands)
    if tensor.type.cell_type == "int8":  # of what does not fit, the lowest bits; of NaN and infinities, 0
        values = np.trunc(np.where(np.isfinite(values), values, 0.0))
        values = np.remainder(values + 128.0, 256.0) - 128.0
    return Tensor(tensor.type, tensor.labels, as_cells(values, tensor.type.cell_type))


def _places(tensor: Tensor, cells: Sequence[Cell]) -> NDArray[np.int64]:
    """Where cells that are there stand among all cells of the tensor, one row after the other."""
    rows = np.array([tensor.rows[labels] for labels, _, _ in cells], np.int64)
    if not tensor.type.indexed or not cells:
        return rows
    indexes = np.array([indexes for _, indexes, _ in cells], np.int64)
    return np.ravel_multi_index((rows, *indexes.T), tensor.cells.shape).astype(np.int64)


def add(tensor: Tensor, addition: Tensor) -> Tensor:
    """Adds subspaces: those of `addition`, of the same type, replace those with the same labels."""
    kept = [row for labels, row in tensor.rows.items() if labels not in addition.rows]
    labels = (*(tensor.labels[row] for row in kept), *addition.labels)
    if len(labels) * math.prod(tensor.type.shape) > limits.TENSOR_CELLS:
        return tensor
    return Tensor(tensor.type, labels, np.concatenate([tensor.cells[kept], addition.cells]))


def remove(tensor: Tensor, addresses: Iterable[tuple[tuple[str, str], ...]]) -> Tensor:
    """Removes the subspaces of these addresses (dimension name, label); an address matches any label elsewhere."""
    places = {dimension.name: place for place, dimension in enumerate(tensor.type.mapped)}
    wanted: dict[tuple[int, ...], set[Labels]] = {}
    for address in addresses:
        pairs = sorted((places[name], label) for name, label in address)
        wanted.setdefault(tuple(place for place, _ in pairs), set()).add(tuple(label for _, label in pairs))
    kept = list(range(len(tensor.labels)))
    for at, found in wanted.items():
        part = _part(at)
        kept = [row for row in kept if part(tensor.labels[row]) not in found]
    return Tensor(tensor.type, tuple(tensor.labels[row] for row in kept), tensor.cells[kept])


def _part(places: tuple[int, ...]) -> Callable[[Labels], Labels]:
    """Takes the labels at these places."""
    if not places:
        return lambda labels: ()
    if len(places) == 1:
        (place,) = places
        return lambda labels: (labels[place],)
    return itemgetter(*places)


def _with_subspaces(tensor: Tensor, wanted: Iterable[Labels], value: float) -> Tensor:
    """New ones are in the order in which they are named: to sort many would keep the interpreter's lock too long."""
    missing = list(dict.fromkeys(labels for labels in wanted if labels not in tensor.rows))
    labels = (*tensor.labels, *missing)
    if not missing or len(labels) * math.prod(tensor.type.shape) > limits.TENSOR_CELLS:
        return tensor
    filled = as_cells(np.full((len(missing), *tensor.type.shape), value), tensor.type.cell_type)
    return Tensor(tensor.type, labels, np.concatenate([tensor.cells, filled]))


# The JSON of changes of single cells of a tensor: `modify`, and the addresses of `remove`.
#
#     {"operation": "add", "create": true, "cells": [{"address": {"x": "a"}, "value": 2.0}]}
#     {"operation": "replace", "blocks": {"a": [1, 2, 3]}}          {"addresses": [{"x": "b"}, {"x": "c"}]}
#
# Vespa: https://docs.vespa.ai/en/reference/schemas/document-json-format.html#tensor-modify
# Differs: a value that int8 has no room for is refused, as in all tensors.


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
    operands = as_cells(np.array(list(cells.values()), np.float64), type_.cell_type).astype(np.float64).tolist()
    changed = tuple((*place, operand) for place, operand in zip(cells, operands, strict=True))
    return ModifySpec(operation, changed, CREATED_WITH[operation] if create else None)


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
