"""The plain twin of `read_vector` in core/vectors/vector_text.cpp, by the reader of the standard library."""

from __future__ import annotations

import json
import re

import numpy as np
from numpy.typing import NDArray

_MOST_CHARACTERS = 64
_MOST_INTEGER_DIGITS = 18
_NUMBER = re.compile(rb"[^\s,\[\]]+")


def read_vector(text: bytes, count: int) -> NDArray[np.float64] | None:
    """The numbers of a JSON array of exactly `count`. None where there are more or fewer, where something else is in
    it, or a number is too long or too large. What is so small that it becomes 0 may be refused by the kernel."""
    try:
        values = json.loads(text)
    except ValueError:
        return None
    if type(values) is not list or len(values) != count or any(type(value) not in (int, float) for value in values):
        return None
    for written, value in zip(_NUMBER.findall(text), values, strict=True):
        is_odd = type(value) is int and (len(written.lstrip(b"-")) > _MOST_INTEGER_DIGITS or written == b"-0")
        if is_odd or len(written) > _MOST_CHARACTERS or not np.isfinite(float(value)):
            return None
    return np.array(values, np.float64)
