"""Functions of cells, and cells as other cell types.

Arithmetic on cells of float is done in float where Vespa does it so, and in double otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from paperwasp.core import _core
from paperwasp.core.rank_program import OPCODES, OPERATION_WIDTH, OPERATIONS
from paperwasp.tensor.value import DTYPES

Cells = NDArray[Any]
CellFunction = Callable[..., Cells]
"""Of arrays of one shape, each of float32 or float64 (they may be read-only); gives an array of that shape, or what can
be broadcast to it."""


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


def worked(function: CellFunction, shape: tuple[int, ...], cell_type: str, *operands: Cells) -> Cells:
    """The function of the operands as cells of this type and shape, in an array of their own."""
    with np.errstate(all="ignore"):
        values = np.asarray(function(*map(operand, operands)))
    return np.ascontiguousarray(np.broadcast_to(converted(values, cell_type), shape))


def _low_bytes(values: Cells) -> Cells:
    fits = np.abs(values) < 2.0**31
    return np.where(fits, values, 0.0).astype(np.int64).astype(np.int8)


def _in_double(function: CellFunction) -> CellFunction:
    return lambda *operands: function(*(values.astype(np.float64, copy=False) for values in operands))


def _by_kernel(name: str) -> CellFunction:
    """As a scalar program computes it."""
    arity = OPERATIONS[name][0]
    code = np.array([OPCODES[name], arity, *range(arity), *[0] * (OPERATION_WIDTH - 2 - arity)], np.int32)
    no_constants = np.zeros(0)

    def function(*operands: Cells) -> Cells:
        columns = [np.ascontiguousarray(values, np.float64).reshape(-1) for values in operands]
        out = np.empty(operands[0].size, np.float64)
        if len(out):
            _core.rank_program_evaluate(code, no_constants, columns, 1, arity, out)
        return out.reshape(operands[0].shape)

    return function


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
"""Float of float, double of double."""

_PLAIN: Final = (
    "negate", "not", "ceil", "floor", "fabs", "isNan", "relu", "sign", "equal", "notEqual", "less", "lessEqual",
    "greater", "greaterEqual", "and", "or", "max", "min", "select",
)  # fmt: skip
"""What NumPy does as fast and as exactly as the kernel."""

CELL_FUNCTIONS: Final[Mapping[str, CellFunction]] = {
    **{name: _by_kernel(name) for name in OPERATIONS},
    **{name: _in_double(OPERATIONS[name][1]) for name in _PLAIN},
    **_OF_ANY_FLOAT,
}
"""The functions of ranking expressions by the names of `core.rank_program.OPERATIONS`."""
