"""Values of grouping as Vespa's result nodes have them, and how one type is read as another, in plain Python.

Texts and raw values are bytes, buckets (low, high) or None. What is read or written as C does it is left to C.
Authority: searchlib/expression/resultnodes.cpp, integerresultnode.h, resultvector.h, attributenode.cpp
"""

from __future__ import annotations

import ctypes
import math
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from paperwasp.search.grouping.values import Kind

LEAST: Final = -(2**63)
MOST: Final = 2**63 - 1
NUMBERS = (Kind.LONG, Kind.BOOL, Kind.DOUBLE)
TEXTS = (Kind.STRING, Kind.RAW)
_C = ctypes.CDLL(None)
_C.strtoll.restype = ctypes.c_longlong
_C.strtod.restype = ctypes.c_double


class Unfit(Exception):
    """The function does not take these arguments."""


class Unsure(Exception):
    """What is made is not defined: the sign of a NaN shows."""


@dataclass(frozen=True)
class Result:
    """The value or values of a row. `size`: the bytes of a long in a binary form."""

    kind: Kind
    values: list[Any]
    is_multi: bool = False
    size: int = 8

    def each(self, kind: Kind, function: Callable[[Any], Any]) -> Result:
        return Result(kind, [function(value) for value in self.values], self.is_multi)


@dataclass(frozen=True)
class Column:
    """An attribute: the value of each lid, or the list of its values; None: unset."""

    kind: Kind
    values: Sequence[Any]
    is_multi: bool = False
    size: int = 8

    @property
    def unset(self) -> Any:
        return {Kind.LONG: -(1 << (8 * self.size - 1)), Kind.DOUBLE: math.nan, Kind.BOOL: False}.get(self.kind, b"")

    def of(self, lid: int) -> Result:
        value = self.values[lid]
        if self.is_multi:
            return Result(self.kind, list(value or ()), is_multi=True, size=self.size)
        return Result(self.kind, [self.unset if value is None else value], size=self.size)

    def at(self, lid: int, number: int) -> Result:
        """The element of a number, the last where there are fewer; the zero of the type where there is none."""
        values = self.values[lid] or ()
        zero = {Kind.LONG: 0, Kind.DOUBLE: 0.0, Kind.BOOL: False}.get(self.kind, b"")
        value = values[min(max(number, 0), len(values) - 1)] if len(values) else zero
        return Result(self.kind, [value], size=self.size)


@dataclass(frozen=True)
class Row:
    lid: int
    relevance: float = 0.0
    elements: Mapping[str, int] = field(default_factory=dict)


def wrapped(number: int) -> int:
    """The long with the same lowest 64 bits."""
    return (number + 2**63) % 2**64 - 2**63


def to_long(kind: Kind, value: Any) -> int:
    match kind:
        case Kind.LONG | Kind.BOOL:
            return int(value)
        case Kind.DOUBLE:
            if not -(2.0**63) <= value < 2.0**63:  # NaN, too
                return LEAST
            whole = math.floor(abs(value))
            whole += abs(value) - whole >= 0.5
            return LEAST if whole > MOST and value > 0 else -whole if value < 0 else whole
        case Kind.STRING:
            return int(_C.strtoll(value, None, 0))
        case Kind.RAW:
            return int.from_bytes(value[:8].ljust(8, b"\0"), "big", signed=True)
    raise Unfit


def to_double(kind: Kind, value: Any) -> float:
    match kind:
        case Kind.LONG | Kind.BOOL | Kind.DOUBLE:
            return float(value)
        case Kind.STRING:
            return float(_C.strtod(value, None))
        case Kind.RAW:
            return float(struct.unpack(">d", value[:8].ljust(8, b"\0"))[0])
    raise Unfit


def to_text(kind: Kind, value: Any) -> bytes:
    match kind:
        case Kind.LONG:
            return b"%d" % value
        case Kind.BOOL:
            return b"true" if value else b"false"
        case Kind.DOUBLE:
            return double_text(value)
        case Kind.STRING | Kind.RAW:
            return bytes(value)
    raise Unfit


def double_text(value: float) -> bytes:
    if math.isnan(value):
        raise Unsure
    buffer = ctypes.create_string_buffer(64)
    _C.snprintf(buffer, 64, b"%g", ctypes.c_double(value))
    return buffer.value


def first_long(result: Result) -> int:
    check_buckets(result)
    return to_long(result.kind, result.values[0]) if result.values else LEAST


def first_double(result: Result) -> float:
    check_buckets(result)
    return to_double(result.kind, result.values[0]) if result.values else math.nan


def first_text(result: Result) -> bytes:
    check_buckets(result)
    return to_text(result.kind, result.values[0]) if result.values else b""


def check_buckets(*results: Result) -> None:
    if any(result.kind not in NUMBERS + TEXTS for result in results):
        raise Unfit
