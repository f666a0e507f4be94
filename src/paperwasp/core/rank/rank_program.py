"""Scalar rank programs over columns: their operations.

A program is a list of operations on operands. An operand is a number: the columns come first, then the constants, then
the temporaries. Each operation is five int32: opcode, target (a temporary), and three operands, of which it uses the
first one, two or three. All arithmetic is in double, as in Vespa: NaN and infinities follow IEEE 754 and the C library.
What each operation computes is in tests/oracles/rank_program.py.
"""

from __future__ import annotations

from typing import Final

OPERATION_WIDTH: Final = 5
"""int32 values of one operation: opcode, target, and three operands."""

OPERATIONS: Final[dict[str, int]] = {
    "negate": 1,
    "not": 1,
    "acos": 1,
    "asin": 1,
    "atan": 1,
    "ceil": 1,
    "cos": 1,
    "cosh": 1,
    "elu": 1,
    "erf": 1,
    "exp": 1,
    "fabs": 1,
    "floor": 1,
    "isNan": 1,
    "log": 1,
    "log10": 1,
    "relu": 1,
    "round": 1,
    "sigmoid": 1,
    "sign": 1,
    "sin": 1,
    "sinh": 1,
    "sqrt": 1,
    "square": 1,
    "tan": 1,
    "tanh": 1,
    "add": 2,
    "subtract": 2,
    "multiply": 2,
    "divide": 2,
    "modulo": 2,
    "power": 2,
    "equal": 2,
    "notEqual": 2,
    "approximatelyEqual": 2,
    "less": 2,
    "lessEqual": 2,
    "greater": 2,
    "greaterEqual": 2,
    "and": 2,
    "or": 2,
    "atan2": 2,
    "bit": 2,
    "hamming": 2,
    "ldexp": 2,
    "max": 2,
    "min": 2,
    "select": 3,
}
"""name → number of operands. The place in this table is the opcode, as in core/rank/rank_program.cpp."""

OPCODES: Final[dict[str, int]] = {name: opcode for opcode, name in enumerate(OPERATIONS)}
