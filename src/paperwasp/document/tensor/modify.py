"""Changes of single cells of a tensor: what `modify`, `add` and `remove` of an update make of a value.

A result of more cells than a tensor may have is not made: the tensor stays as it was.

Vespa: https://docs.vespa.ai/en/reference/schemas/document-json-format.html#tensor-modify
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import itemgetter
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from paperwasp import limits
from paperwasp.document.tensor.types import TensorType
from paperwasp.document.tensor.value import DTYPES, Labels, Tensor, as_cells

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
    return Tensor(tensor.type, tensor.labels, _wrapped_cells(values, tensor.type.cell_type))


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


def _wrapped_cells(values: NDArray[np.float64], cell_type: str) -> NDArray[Any]:
    """As cells of this type: of what does not fit into int8, the lowest bits; of NaN and infinities, 0."""
    if cell_type == "int8":
        values = np.trunc(np.where(np.isfinite(values), values, 0.0))
        values = np.remainder(values + 128.0, 256.0) - 128.0
    return as_cells(values, cell_type)
