"""The value of a tensor: dense subspaces, each with the labels of its mapped dimensions.

A tensor without mapped dimensions has one subspace, without labels; one without indexed dimensions has subspaces of one
cell. So every operation on tensors is an operation on the rows of one array, and a map from labels to rows.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, Final, NoReturn

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from paperwasp import limits
from paperwasp.document.tensor.types import Dimension, TensorType

DTYPES: Final[Mapping[str, str]] = {"double": "float64", "float": "float32", "bfloat16": "float32", "int8": "int8"}
"""Cell type → the type of the array. A bfloat16 is a float32 whose lower 16 bits are 0."""
CELL_BYTES: Final[Mapping[str, int]] = {"double": 8, "float": 4, "bfloat16": 2, "int8": 1}
"""Cell type → the bytes of a cell in binary forms and in hex."""

Labels = tuple[str, ...]
_ROWS_AT_ONCE: Final = 1024


class Tensor(Struct, frozen=True, eq=False, dict=True):
    """A tensor value. It never changes."""

    type: TensorType
    labels: tuple[Labels, ...]
    """The labels of each subspace: one for each mapped dimension of the type, in its order."""
    cells: NDArray[Any]
    """The cells: a dtype of `DTYPES`, shape (subspaces, *type.shape)."""

    @cached_property
    def rows(self) -> Mapping[Labels, int]:
        """Labels → the row of `cells`."""
        return {labels: row for row, labels in enumerate(self.labels)}

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Tensor)
            and self.type == other.type
            and self.rows.keys() == other.rows.keys()
            and all(
                np.array_equal(self.cells[row], other.cells[other.rows[labels]], equal_nan=True)
                for labels, row in self.rows.items()
            )
        )

    def __hash__(self) -> int:
        return hash((self.type, frozenset(self.labels)))

    def cell(self, labels: Labels, *indexes: int) -> float | None:
        """The value of one cell; None for one that is not there."""
        row = self.rows.get(labels)
        return None if row is None else float(self.cells[(row, *indexes)])

    def __str__(self) -> str:
        """The literal that gives this value again."""
        cells = self.cells.astype(np.float64).tolist()
        if self.type.is_number:
            return f"{self.type}:{{{{}}:{_as_text(cells[0])}}}"
        if not self.type.mapped:
            return f"{self.type}:{_as_text(cells[0])}"
        names = [dimension.name for dimension in self.type.mapped]
        parts = []
        for labels, values in zip(self.labels, cells, strict=True):
            address = ",".join(f"{name}:{quoted(label)}" for name, label in zip(names, labels, strict=True))
            for place, value in _places(values, self.type.shape):
                indexes = (f",{d.name}:{index}" for d, index in zip(self.type.indexed, place, strict=True))
                parts.append(f"{{{address}{''.join(indexes)}}}:{_as_text(value)}")
        return f"{self.type}:{{{', '.join(parts)}}}"


class TensorBuilder:
    """Collects the cells of a tensor. Cells of indexed dimensions that are not given are 0.

    Errors: ValueError for what does not fit the type.
    """

    def __init__(self, type_: TensorType) -> None:
        if 0 in type_.shape:
            raise ValueError(f"a value of {type_} needs the sizes of all indexed dimensions")
        self.type = type_
        self.subspace_cells = math.prod(type_.shape)
        self._numbers: dict[Labels, float] = {}
        """The subspaces of one cell."""
        self._rows: dict[Labels, NDArray[np.float64]] = {}
        """All others."""
        if not type_.mapped:
            self._set((), None)

    def subspace(self, labels: Labels, values: Sequence[float] | NDArray[np.float64]) -> None:
        """All cells of one subspace, the last dimension running fastest."""
        if len(values) != self.subspace_cells:
            raise ValueError(f"expected {self.subspace_cells} value(s), found {len(values)}")
        self._set(labels, values)

    def cell(self, labels: Labels, indexes: tuple[int, ...], value: float) -> None:
        if self.subspace_cells == 1:
            if indexes:
                check_indexes(indexes, self.type)
            self._numbers[labels] = value
            if len(self._numbers) > limits.TENSOR_CELLS:
                self._refuse()
            return
        check_indexes(indexes, self.type)
        if labels not in self._rows:
            self._set(labels, None)
        self._rows[labels][int(np.ravel_multi_index(indexes, self.type.shape))] = value

    def _set(self, labels: Labels, values: Sequence[float] | NDArray[np.float64] | None) -> None:
        """The number of cells is checked before any is made. `values` None: zeros."""
        kept: Mapping[Labels, object] = self._numbers if self.subspace_cells == 1 else self._rows
        if (len(kept) + (labels not in kept)) * self.subspace_cells > limits.TENSOR_CELLS:
            self._refuse()
        if self.subspace_cells == 1:
            self._numbers[labels] = 0.0 if values is None else values[0]
        else:
            self._rows[labels] = np.zeros(self.subspace_cells) if values is None else np.array(values, np.float64)

    def _refuse(self) -> NoReturn:
        raise ValueError(f"a tensor has at most {limits.TENSOR_CELLS} cells")

    def build(self) -> Tensor:
        labels = tuple(self._numbers or self._rows)
        if self.subspace_cells == 1:
            values = np.fromiter(self._numbers.values(), np.float64, len(labels))
        else:
            values = np.empty((len(labels), self.subspace_cells))
            rows = list(self._rows.values())
            for start in range(0, len(rows), _ROWS_AT_ONCE):  # one step would keep the interpreter's lock too long
                values[start : start + _ROWS_AT_ONCE] = rows[start : start + _ROWS_AT_ONCE]
        shaped = values.reshape(len(labels), *self.type.shape)
        return Tensor(self.type, labels, as_cells(shaped, self.type.cell_type))


def empty_tensor(type_: TensorType) -> Tensor:
    """The tensor that stands for one that is not given: no subspaces, or cells that are 0. Open sizes are 1."""
    sized = (Dimension(d.name, None if d.is_mapped else d.size or 1) for d in type_.dimensions)
    return TensorBuilder(TensorType.of(sized, type_.cell_type)).build()


class CellCollector:
    """Collects cells one by one, as they are given: what is not given is not there. In the place of a TensorBuilder."""

    def __init__(self, type_: TensorType) -> None:
        self.type = type_
        self.cells: dict[tuple[Labels, tuple[int, ...]], float] = {}

    def subspace(self, labels: Labels, values: Sequence[float] | NDArray[np.float64]) -> None:
        """All cells of one subspace, the last dimension running fastest."""
        if len(values) != math.prod(self.type.shape):
            raise ValueError(f"expected {math.prod(self.type.shape)} value(s), found {len(values)}")
        for place, value in zip(np.ndindex(*self.type.shape), values, strict=True):
            self.cells[labels, place] = float(value)

    def cell(self, labels: Labels, indexes: tuple[int, ...], value: float) -> None:
        check_indexes(indexes, self.type)
        self.cells[labels, indexes] = value


def check_indexes(indexes: tuple[int, ...], type_: TensorType) -> None:
    """Errors: ValueError for an index that is not in its dimension."""
    for index, dimension in zip(indexes, type_.indexed, strict=True):
        if not 0 <= index < (dimension.size or 0):
            raise ValueError(f"index {index} is not in dimension {dimension}")


def as_cells(values: NDArray[np.float64], cell_type: str) -> NDArray[Any]:
    """The values as cells of this type. Errors: ValueError for int8 that is none."""
    if cell_type == "int8":
        if values.size and not ((values >= -128) & (values <= 127)).all():
            raise ValueError("a cell of int8 is from -128 to 127")
        return values.astype(np.int8)
    with np.errstate(over="ignore"):
        cells = values.astype(DTYPES[cell_type])
    if cell_type == "bfloat16":
        cells = (cells.view(np.uint32) & np.uint32(0xFFFF0000)).view(np.float32)
    return cells


def hex_cells(text: str, type_: TensorType) -> NDArray[np.float64]:
    """The cells that a hex dump of big-endian bytes writes. What is less than a cell at its end is left out."""
    digits = 2 * CELL_BYTES[type_.cell_type]
    data = bytes.fromhex(text[: len(text) // digits * digits])
    if type_.cell_type == "bfloat16":
        return (np.frombuffer(data, ">u2").astype(np.uint32) << np.uint32(16)).view(np.float32).astype(np.float64)
    return np.frombuffer(data, {"double": ">f8", "float": ">f4", "int8": "i1"}[type_.cell_type]).astype(np.float64)


def quoted(label: str) -> str:
    """A label as a literal writes it: in quotes unless it is a plain word."""
    if label and label.replace("_", "a").isalnum() and label.isascii():
        return label
    escaped = label.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _as_text(value: Any) -> str:
    if isinstance(value, list):
        return f"[{','.join(map(_as_text, value))}]"
    return repr(float(value))


def _places(values: Any, shape: tuple[int, ...]) -> list[tuple[tuple[int, ...], float]]:
    flat = np.asarray(values, np.float64)
    return [(place, float(flat[place])) for place in np.ndindex(*shape)]
