"""The plain twin of core/rank/rank_program.cpp: what the operations of rank programs compute, in double as in Vespa."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from paperwasp.core.rank.rank_program import OPERATION_WIDTH, OPERATIONS

Floats = NDArray[np.float64]


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

OPERATION_FUNCTIONS: Final[dict[str, Operation]] = {
    "negate": np.negative,
    "not": lambda a: _truth(~(a != 0.0)),
    "acos": np.arccos,
    "asin": np.arcsin,
    "atan": np.arctan,
    "ceil": np.ceil,
    "cos": np.cos,
    "cosh": np.cosh,
    "elu": lambda a: np.where(a < 0, np.exp(a) - 1.0, a),
    "erf": _error_function,
    "exp": np.exp,
    "fabs": np.fabs,
    "floor": np.floor,
    "isNan": lambda a: _truth(np.isnan(a)),
    "log": np.log,
    "log10": np.log10,
    "relu": lambda a: np.where(a < 0.0, 0.0, a),
    "round": _round,
    "sigmoid": lambda a: 1.0 / (1.0 + np.exp(-1.0 * a)),
    "sign": _sign,
    "sin": np.sin,
    "sinh": np.sinh,
    "sqrt": np.sqrt,
    "square": lambda a: a * a,
    "tan": np.tan,
    "tanh": np.tanh,
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "divide": np.divide,
    "modulo": np.fmod,
    "power": np.power,
    "equal": lambda a, b: _truth(a == b),
    "notEqual": lambda a, b: _truth(a != b),
    "approximatelyEqual": _approximately_equal,
    "less": lambda a, b: _truth(a < b),
    "lessEqual": lambda a, b: _truth(a <= b),
    "greater": lambda a, b: _truth(a > b),
    "greaterEqual": lambda a, b: _truth(a >= b),
    "and": lambda a, b: _truth((a != 0.0) & (b != 0.0)),
    "or": lambda a, b: _truth((a != 0.0) | (b != 0.0)),
    "atan2": np.arctan2,
    "bit": _bit,
    "hamming": _hamming,
    "ldexp": lambda a, b: np.ldexp(a, _truncated(b, 32).astype(np.int32)),
    "max": lambda a, b: np.where(a < b, b, a),
    "min": lambda a, b: np.where(b < a, b, a),
    "select": lambda a, b, c: np.where(a != 0.0, b, c),
}
"""By the names of operations."""


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
    operations = [(arity, OPERATION_FUNCTIONS[name]) for name, arity in OPERATIONS.items()]
    operands: list[Floats] = [np.broadcast_to(column, n).astype(np.float64) for column in columns]
    operands += [np.full(n, constant) for constant in constants]
    operands += [np.zeros(n)] * temporaries
    with np.errstate(all="ignore"):
        for opcode, target, *arguments in code.reshape(-1, OPERATION_WIDTH).tolist():
            arity, function = operations[opcode]
            operands[target] = function(*(operands[argument] for argument in arguments[:arity]))
    return operands[result].copy()
