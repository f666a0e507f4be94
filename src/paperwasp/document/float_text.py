"""Floating-point numbers as the texts that Java makes of them: 1.0, 1.0E-5 and 1.2E7."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

_PLAIN_FROM: Final = 1e-3
_PLAIN_TO: Final = 1e7


def double_text(number: float) -> str:
    """The text of a number with the fewest digits that say which double it is."""
    return _java_text(number, repr(float(number)))


def single_text(number: float) -> str:
    """The text of a number with the fewest digits that say which float of 32 bits it is."""
    return _java_text(number, str(np.float32(number)))


def _java_text(number: float, shortest: str) -> str:
    """A number whose shortest digits are known, in the form that Java gives it."""
    if not math.isfinite(number):
        return "NaN" if math.isnan(number) else "Infinity" if number > 0 else "-Infinity"
    if number == 0 or _PLAIN_FROM <= abs(number) < _PLAIN_TO:
        text = np.format_float_positional(float(shortest), trim="0") if "e" in shortest else shortest
        return text if "." in text else f"{text}.0"
    mantissa, _, exponent = np.format_float_scientific(float(shortest), trim="0").partition("e")
    return f"{mantissa}E{int(exponent)}"
