"""The functions of numbers in ranking expressions, by their definitions and the names of `CELL_FUNCTIONS`."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Final

import numpy as np


def _ieee(function: Callable[..., float]) -> Callable[..., float]:
    """With NaN and infinity instead of errors."""

    def f(*values: float) -> float:
        with np.errstate(all="ignore"):
            return float(function(*map(np.float64, values)))

    return f


def _byte(value: float) -> int:
    return int(value) & 0xFF if abs(value) < 2**31 else 0


def _bit(value: float, place: float) -> float:
    number = int(place) & 0xFFFFFFFF if abs(place) < 2**63 else 0
    return float(number < 8 and _byte(value) >> number & 1)


def _sign(value: float) -> float:
    return value if value == 0 or math.isnan(value) else math.copysign(1.0, value)


EXACT: Final[Mapping[str, Callable[..., float]]] = {
    "negate": lambda a: -a,
    "not": lambda a: float(a == 0),
    "ceil": _ieee(np.ceil),
    "floor": _ieee(np.floor),
    "round": _ieee(lambda a: np.floor(a) + (a - np.floor(a) >= 0.5)),
    "fabs": abs,
    "isNan": lambda a: float(math.isnan(a)),
    "relu": lambda a: 0.0 if a < 0 else a,
    "sign": _sign,
    "square": lambda a: a * a,
    "add": lambda a, b: a + b,
    "subtract": lambda a, b: a - b,
    "multiply": lambda a, b: a * b,
    "modulo": _ieee(np.fmod),
    "equal": lambda a, b: float(a == b),
    "notEqual": lambda a, b: float(a != b),
    "less": lambda a, b: float(a < b),
    "lessEqual": lambda a, b: float(a <= b),
    "greater": lambda a, b: float(a > b),
    "greaterEqual": lambda a, b: float(a >= b),
    "and": lambda a, b: float(a != 0 and b != 0),
    "or": lambda a, b: float(a != 0 or b != 0),
    "bit": _bit,
    "hamming": lambda a, b: float((_byte(a) ^ _byte(b)).bit_count()),
    "max": lambda a, b: b if a < b else a,
    "min": lambda a, b: b if b < a else a,
}
"""Those whose results are exact where the operands are small whole numbers."""

ROUNDED: Final[Mapping[str, Callable[..., float]]] = {
    "acos": _ieee(np.arccos),
    "asin": _ieee(np.arcsin),
    "atan": _ieee(np.arctan),
    "cos": _ieee(np.cos),
    "cosh": _ieee(np.cosh),
    "elu": _ieee(lambda a: np.exp(a) - 1 if a < 0 else a),
    "erf": math.erf,
    "exp": _ieee(np.exp),
    "log": _ieee(np.log),
    "log10": _ieee(np.log10),
    "sigmoid": _ieee(lambda a: 1 / (1 + np.exp(-a))),
    "sin": _ieee(np.sin),
    "sinh": _ieee(np.sinh),
    "sqrt": _ieee(np.sqrt),
    "tan": _ieee(np.tan),
    "tanh": _ieee(np.tanh),
    "divide": _ieee(lambda a, b: a / b),
    "power": _ieee(lambda a, b: a**b),
    "atan2": _ieee(np.arctan2),
    "ldexp": _ieee(lambda a, b: np.ldexp(a, int(b) if abs(b) < 2**31 else -(2**31))),
}
"""Those whose results are rounded."""

ARITY: Final[Mapping[str, int]] = {
    **dict.fromkeys((*EXACT, *ROUNDED), 1),
    **dict.fromkeys(
        (
            "add", "subtract", "multiply", "modulo", "equal", "notEqual", "less", "lessEqual", "greater", "bit",
            "greaterEqual", "and", "or", "hamming", "max", "min", "divide", "power", "atan2", "ldexp",
        ),
        2,
    ),
}  # fmt: skip
