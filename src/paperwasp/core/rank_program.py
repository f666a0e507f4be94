"""Scalar rank programs over columns: the operations, and the plain NumPy twin of core/rank/rank_program.cpp.

A program is a list of operations on operands. An operand is a number: the columns come first, then the constants, then
the temporaries. Each operation is five int32: opcode, target (a temporary), and three operands, of which it uses the
first one, two or three. All arithmetic is in double, as in Vespa: NaN and infinities follow IEEE 754 and the C library.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

OPERATION_WIDTH: Final = 5
"""int32 values of one operation: opcode, target, and three operands."""


def _truth(values: NDArray[np.bool_]) -> Floats:
    return values.astype(np.float64)


def _approximately_equal(a: Floats, b: Floats) -> Floats:
    """Equal to the 23 bits of a float: both sides rounded, and one step in the last place allowed."""
    quotient = np.nextafter((b / a).astype(np.float32), np.float32(1.0)) == np.float32(1.0)
    a32, b32 = a.astype(np.float32), b.astype(np.float32)
    stepped = a32 == np.nextafter(b32, a32)
    return _truth((a == b) | np.where(np.abs(a) > 1.0, quotient, stepped))


def _truncated(values: Floats, bits: int) -> NDArray[np.int64]:
    """The integer part as a signed integer of `bits`; its lowest value where it does not fit, as x86 converts."""
    limit = 2.0 ** (bits - 1)
    fits = (values > -limit - 1.0) & (values < limit) if bits < 64 else (values >= -limit) & (values < limit)
    lowest = np.int64(-(2 ** (bits - 1)))
    return np.where(fits, np.trunc(np.where(fits, values, 0.0)).astype(np.int64), lowest)


def _bit(a: Floats, b: Floats) -> Floats:
    place = _truncated(b, 64) & 0xFFFFFFFF
    set_there = (_truncated(a, 32) >> np.minimum(place, 7)) & 1
    return _truth((place < 8) & (set_there == 1))


def _hamming(a: Floats, b: Floats) -> Floats:
    different = ((_truncated(a, 32) ^ _truncated(b, 32)) & 0xFF).astype(np.uint8)
    ones: Floats = np.unpackbits(different[:, None], axis=1).sum(axis=1).astype(np.float64)
    return ones


def _round(a: Floats) -> Floats:
    """Half up, exactly."""
    whole = np.floor(a)
    return np.where(a - whole >= 0.5, whole + 1.0, whole)


def _sign(a: Floats) -> Floats:
    return np.where(a > 0, 1.0, np.where(a < 0, -1.0, a))


_error_function = np.vectorize(math.erf, otypes=[np.float64])

Operation = Callable[..., Any]

OPERATIONS: Final[dict[str, tuple[int, Operation]]] = {
    "negate": (1, np.negative),
    "not": (1, lambda a: _truth(~(a != 0.0))),
    "acos": (1, np.arccos),
    "asin": (1, np.arcsin),
    "atan": (1, np.arctan),
    "ceil": (1, np.ceil),
    "cos": (1, np.cos),
    "cosh": (1, np.cosh),
    "elu": (1, lambda a: np.where(a < 0, np.exp(a) - 1.0, a)),
    "erf": (1, _error_function),
    "exp": (1, np.exp),
    "fabs": (1, np.fabs),
    "floor": (1, np.floor),
    "isNan": (1, lambda a: _truth(np.isnan(a))),
    "log": (1, np.log),
    "log10": (1, np.log10),
    "relu": (1, lambda a: np.where(a < 0.0, 0.0, a)),
    "round": (1, _round),
    "sigmoid": (1, lambda a: 1.0 / (1.0 + np.exp(-1.0 * a))),
    "sign": (1, _sign),
    "sin": (1, np.sin),
    "sinh": (1, np.sinh),
    "sqrt": (1, np.sqrt),
    "square": (1, lambda a: a * a),
    "tan": (1, np.tan),
    "tanh": (1, np.tanh),
    "add": (2, np.add),
    "subtract": (2, np.subtract),
    "multiply": (2, np.multiply),
    "divide": (2, np.divide),
    "modulo": (2, np.fmod),
    "power": (2, np.power),
    "equal": (2, lambda a, b: _truth(a == b)),
    "notEqual": (2, lambda a, b: _truth(a != b)),
    "approximatelyEqual": (2, _approximately_equal),
    "less": (2, lambda a, b: _truth(a < b)),
    "lessEqual": (2, lambda a, b: _truth(a <= b)),
    "greater": (2, lambda a, b: _truth(a > b)),
    "greaterEqual": (2, lambda a, b: _truth(a >= b)),
    "and": (2, lambda a, b: _truth((a != 0.0) & (b != 0.0))),
    "or": (2, lambda a, b: _truth((a != 0.0) | (b != 0.0))),
    "atan2": (2, np.arctan2),
    "bit": (2, _bit),
    "hamming": (2, _hamming),
    "ldexp": (2, lambda a, b: np.ldexp(a, _truncated(b, 32).astype(np.int32))),
    "max": (2, lambda a, b: np.where(a < b, b, a)),
    "min": (2, lambda a, b: np.where(b < a, b, a)),
    "select": (3, lambda a, b, c: np.where(a != 0.0, b, c)),
}
"""name → (number of operands, what it computes). The place in this table is the opcode, as in
core/rank/rank_program.cpp."""

OPCODES: Final[dict[str, int]] = {name: opcode for opcode, name in enumerate(OPERATIONS)}


def evaluate(
    code: NDArray[np.int32],
    constants: Floats,
    columns: Sequence[Floats],
    temporaries: int,
    result: int,
    n: int,
) -> Floats:
    """The value of operand `result` for each of `n` rows, after running `code`.

    `columns`: float64 arrays of length n, or of length 1 for a value that is the same in every row.
    """
    functions = list(OPERATIONS.values())
    operands: list[Floats] = [np.broadcast_to(column, n).astype(np.float64) for column in columns]
    operands += [np.full(n, constant) for constant in constants]
    operands += [np.zeros(n)] * temporaries
    with np.errstate(all="ignore"):
        for opcode, target, *arguments in code.reshape(-1, OPERATION_WIDTH).tolist():
            arity, function = functions[opcode]
            operands[target] = function(*(operands[argument] for argument in arguments[:arity]))
    return operands[result].copy()
