"""Values of rows as aggregators read them: one after another, with the group of each, as numbers of one type."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from paperwasp.grouping.ragged import lengths_of
from paperwasp.grouping.values import Kind, Values

Groups = NDArray[np.uint32]

_NUMBER: Final = re.compile(
    r"\s*([+-]?(?:0x[0-9a-f]+|(?:\d+(?:\.\d*)?|\.\d+)(?:e[+-]?\d+)?|inf(?:inity)?|nan))", re.IGNORECASE | re.ASCII
)
_INTEGER: Final = re.compile(r"\s*([+-]?)(0[xX][0-9a-fA-F]+|\d+)")
_DOUBLE: Final = struct.Struct(">d")
_LONG: Final = struct.Struct(">q")
LEAST_LONG: Final = -(1 << 63)
GREATEST_LONG: Final = (1 << 63) - 1


def spread(values: Values, groups: Groups) -> Groups:
    """The group of each value, where `groups` has that of each row."""
    return groups if values.offsets is None else np.repeat(groups, lengths_of(values.offsets))


def as_numbers(values: Values) -> NDArray[Any]:
    """The values as int64 where their type is an integer or bool, else as float64.

    Text is read as C's strtod does, raw bytes as a big-endian double; what is no number is 0. Vespa: the `getFloat` of
    result nodes.
    """
    if values.kind in (Kind.LONG, Kind.BOOL):
        return values.data.astype(np.int64, copy=False)
    if values.kind is Kind.DOUBLE:
        return values.data
    return _decoded(values, _double_of, np.float64)


def as_floats(values: Values) -> NDArray[np.float64]:
    """The values as float64."""
    return as_numbers(values).astype(np.float64, copy=False)


def as_integers(values: Values) -> NDArray[np.int64]:
    """The values as int64: floats are rounded, halves away from zero; text is read as C's strtoll does."""
    if values.kind in (Kind.LONG, Kind.BOOL):
        return values.data.astype(np.int64, copy=False)
    if values.kind is Kind.DOUBLE:
        rounded = np.copysign(np.floor(np.abs(values.data) + 0.5), values.data)
        fits = np.abs(rounded) < 2.0**63
        return np.where(fits, np.where(fits, rounded, 0).astype(np.int64), LEAST_LONG)
    return _decoded(values, _long_of, np.int64)


def _decoded(values: Values, read: Callable[[Any], float], dtype: type[Any]) -> NDArray[Any]:
    """The values of codes: each distinct one is read once."""
    if values.table is None:
        return np.zeros(len(values.data), dtype)
    codes, places = np.unique(values.data, return_inverse=True)
    return np.array([read(value) for value in values.table.values_of(codes)], dtype)[places]


def _double_of(value: Any) -> float:
    if isinstance(value, str):
        found = _NUMBER.match(value)
        if not found:
            return 0.0
        return float.fromhex(found[1]) if "x" in found[1].lower() else float(found[1])
    if isinstance(value, bytes):
        return float(_DOUBLE.unpack(value[:8].ljust(8, b"\0"))[0])
    return 0.0


def _long_of(value: Any) -> int:
    if isinstance(value, str):
        found = _INTEGER.match(value)
        if not found:
            return 0
        digits = found[2]
        base = 16 if digits[:2] in ("0x", "0X") else 8 if digits.startswith("0") else 10
        digits = "0" + digits[: len(digits) - len(digits.lstrip("01234567"))] if base == 8 else digits
        number = int(found[1] + digits, base)
        return max(LEAST_LONG, min(GREATEST_LONG, number))
    if isinstance(value, bytes):
        return int(_LONG.unpack(value[:8].ljust(8, b"\0"))[0])
    return 0
