"""Functions of cells, and cells as other cell types.

Arithmetic on cells of float is done in float where Vespa does it so, and in double otherwise.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from paperwasp.core import _core
from paperwasp.core.rank.rank_program import OPCODES, OPERATION_WIDTH, OPERATIONS
from paperwasp.document.tensor.algebra.pieces import PIECE_CELLS, pieces
from paperwasp.document.tensor.value import DTYPES

Cells = NDArray[Any]
CellFunction = Callable[..., Cells]
"""A function of arrays of one shape, each of float32 or float64 (they may be read-only); it gives an array of that
shape, or one that can be broadcast to it."""


def operand(cells: Cells) -> Cells:
    """Cells as what functions take: int8 as float32."""
    return cells.astype(np.float32) if cells.dtype == np.int8 else cells


def converted(values: Cells, cell_type: str) -> Cells:
    """Values as cells of this type, whatever they are: int8 drops what is behind the point and keeps the low byte."""
    if cell_type == "int8":
        return values if values.dtype == np.int8 else _low_bytes(values)
    with np.errstate(over="ignore"):
        cells = values.astype(DTYPES[cell_type], copy=False)
    if cell_type == "bfloat16":
        cells = (np.ascontiguousarray(cells).view(np.uint32) & np.uint32(0xFFFF0000)).view(np.float32)
    return cells


def apply_function(function: CellFunction, shape: tuple[int, ...], cell_type: str, *operands: Cells) -> Cells:
    """The function of the operands, which have this shape, as cells of this type in an array of their own.

    Errors: OutOfTime where they are many.
    """
    with np.errstate(all="ignore"):
        if math.prod(shape) <= PIECE_CELLS:
            values = np.asarray(function(*map(operand, operands)))
            return np.ascontiguousarray(np.broadcast_to(converted(values, cell_type), shape))
        cells = np.empty(shape, DTYPES[cell_type])
        for piece in pieces(shape):
            values = np.asarray(function(*(operand(each[piece]) for each in operands)))
            cells[piece] = converted(values, cell_type)
        return cells


def _low_bytes(values: Cells) -> Cells:
    fits = np.abs(values) < 2.0**31
    return np.where(fits, values, 0).astype(np.int32).astype(np.int8)


def _by_kernel(name: str) -> CellFunction:
    """As a scalar program computes it."""
    arity = OPERATIONS[name]
    code = np.array([OPCODES[name], arity, *range(arity), *[0] * (OPERATION_WIDTH - 2 - arity)], np.int32)
    no_constants = np.zeros(0)

    def function(*operands: Cells) -> Cells:
        columns = [np.ascontiguousarray(values, np.float64).reshape(-1) for values in operands]
        out = np.empty(operands[0].size, np.float64)
        if len(out):
            _core.rank_program_evaluate(code, no_constants, columns, 1, arity, out)
        return out.reshape(operands[0].shape)

    return function


def _true(condition: Callable[..., NDArray[np.bool_]]) -> CellFunction:
    return lambda *operands: condition(*operands).astype(np.float32)


def _either(condition: NDArray[np.bool_], a: Any, b: Any) -> Cells:
    chosen: Cells = np.where(condition, a, b)
    return chosen


_ONES: Final = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1).sum(axis=1).astype(np.float32)
"""Bits that are set in each byte."""


def _hamming(a: Cells, b: Cells) -> Cells:
    different: Cells = _ONES[(_low_bytes(a) ^ _low_bytes(b)).view(np.uint8)]
    return different


_OF_ANY_FLOAT: Final[Mapping[str, CellFunction]] = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "divide": np.divide,
    "power": np.power,
    "exp": np.exp,
    "sqrt": np.sqrt,
    "square": np.square,
    "tanh": np.tanh,
}
"""Float of float, double of double: these round."""

_EXACT: Final[Mapping[str, CellFunction]] = {
    "negate": np.negative,
    "ceil": np.ceil,
    "floor": np.floor,
    "fabs": np.fabs,
    "relu": lambda a: _either(a < 0, a.dtype.type(0), a),
    "max": lambda a, b: _either(a < b, b, a),
    "min": lambda a, b: _either(b < a, b, a),
    "select": lambda a, b, c: _either(a != 0, b, c),
    "isNan": _true(np.isnan),
    "not": _true(lambda a: a == 0),
    "equal": _true(np.equal),
    "notEqual": _true(np.not_equal),
    "less": _true(np.less),
    "lessEqual": _true(np.less_equal),
    "greater": _true(np.greater),
    "greaterEqual": _true(np.greater_equal),
    "and": _true(lambda a, b: (a != 0) & (b != 0)),
    "or": _true(lambda a, b: (a != 0) | (b != 0)),
    "hamming": _hamming,
}
"""Functions that NumPy computes faster than the kernel, with the same result in float and in double."""

CELL_FUNCTIONS: Final[Mapping[str, CellFunction]] = {
    **{name: _by_kernel(name) for name in OPERATIONS},
    **_EXACT,
    **_OF_ANY_FLOAT,
}
"""The functions of ranking expressions by the names of `core.rank.rank_program.OPERATIONS`."""
