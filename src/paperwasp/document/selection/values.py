"""The values of selections, and how they are compared, calculated with and changed by functions.

None is null; a str, int or float is itself; `Many` are several, of an array or a path through one. `Special.OPAQUE` is
there but can only be asked whether it is null (a tensor, bytes); `Special.INVALID` is nothing at all: what a field of
another document type or a calculation without sense has.

All of it is total: numbers wrap at 64 bits, and division by zero is invalid, where Vespa lets the operation fail.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Mapping
from enum import Enum
from hashlib import md5
from typing import Final, NamedTuple

from paperwasp import limits
from paperwasp.document.selection.patterns import PatternError, glob, regular_expression
from paperwasp.document.selection.truth import FALSE, INVALID, NOT, TRUE, Binding, Bound, Results, combine


class Special(Enum):
    """Values without a representation of their own."""

    INVALID = "invalid"
    OPAQUE = "opaque"


Scalar = str | int | float | Special | None


class Many(NamedTuple):
    """Several values, each with the variables of the path to it. Never empty."""

    items: tuple[tuple[Binding, Scalar], ...]


Operand = Scalar | Many
ScalarTest = Callable[[Operand, Operand], int]
"""Compares two values, of which the left one is not a `Many`; returns a set of truths."""

_NUMBERS: Final = (int, float)


def wrap_to_int64(number: int) -> int:
    """The number modulo 2**64 as a signed integer of 64 bits."""
    return ((number + (1 << 63)) & ((1 << 64) - 1)) - (1 << 63)


def _truth(holds: bool) -> int:
    return TRUE if holds else FALSE


def _equal(left: Operand, right: Operand) -> int:
    kind = type(left)
    if kind is type(right) and (kind is str or kind is int):
        return _truth(left == right)
    if left is Special.INVALID or right is Special.INVALID:
        return INVALID
    if left is None or right is None:
        return _truth(left is right)
    if isinstance(left, _NUMBERS) and isinstance(right, _NUMBERS):
        return _truth(float(left) == float(right))
    return INVALID


def _unequal(left: Operand, right: Operand) -> int:
    return NOT[_equal(left, right)]


def _comparison(holds: Callable[[bool, bool], bool]) -> ScalarTest:
    """`holds`: whether the comparison does, by whether left is less than right and whether they are equal."""

    def compare(left: Operand, right: Operand) -> int:
        if isinstance(left, str) and isinstance(right, str):
            return _truth(holds(left < right, left == right))
        if isinstance(left, int) and isinstance(right, int):
            return _truth(holds(left < right, left == right))
        if isinstance(left, _NUMBERS) and isinstance(right, _NUMBERS):
            return _truth(holds(float(left) < float(right), float(left) == float(right)))
        return INVALID

    return compare


def _glob(left: Operand, right: Operand) -> int:
    if not isinstance(right, str):
        return _equal(left, right)
    return _truth(glob(right)(left)) if isinstance(left, str) else INVALID


def _regular_expression(left: Operand, right: Operand) -> int:
    if not isinstance(left, str) or not isinstance(right, str):
        return INVALID
    try:
        return _truth(regular_expression(right)(left))
    except PatternError:
        return FALSE


_TESTS: Final[Mapping[str, ScalarTest]] = {
    "==": _equal,
    "!=": _unequal,
    "<": _comparison(lambda less, equal: less),
    "<=": _comparison(lambda less, equal: less or equal),
    ">": _comparison(lambda less, equal: not less and not equal),
    ">=": _comparison(lambda less, equal: not less),
    "=": _glob,
    "=~": _regular_expression,
}


def comparison(operator: str) -> Callable[[Operand, Operand], Results]:
    """The function that compares two values of any kind by an operator."""
    test = _TESTS[operator]
    of_sizes = _TESTS[operator if operator not in ("=", "=~") else "=="]

    def compare(left: Operand, right: Operand) -> Results:
        if type(left) is not Many:
            return test(left, right)
        return _of_both(left, right, test, of_sizes) if type(right) is Many else _of_each(left, right, test)

    return compare


def _of_each(many: Many, other: Operand, test: ScalarTest) -> Results:
    found: Bound = {}
    for binding, value in many.items:
        found[binding] = found.get(binding, 0) | test(value, other)
    return found[()] if found.keys() == {()} else found


def _of_both(left: Many, right: Many, test: ScalarTest, of_sizes: ScalarTest) -> int:
    """All of one must compare with all of the other, in order."""
    if len(left.items) != len(right.items):
        return of_sizes(len(left.items), len(right.items))
    for (_, one), (_, other) in zip(left.items, right.items, strict=True):
        truth = combine(test(one, other))
        if truth != TRUE:
            return truth
    return TRUE


def _quotient(left: int, right: int) -> int:
    """Rounded towards zero, as processors do."""
    found = abs(left) // abs(right)
    return found if (left < 0) == (right < 0) else -found


_ON_INTEGERS: Final[Mapping[str, Callable[[int, int], int]]] = {
    "+": lambda left, right: left + right,
    "-": lambda left, right: left - right,
    "*": lambda left, right: left * right,
    "/": _quotient,
    "%": lambda left, right: left - right * _quotient(left, right),
}
_ON_FLOATS: Final[Mapping[str, Callable[[float, float], float]]] = {
    "+": lambda left, right: left + right,
    "-": lambda left, right: left - right,
    "*": lambda left, right: left * right,
    "/": lambda left, right: left / right,
}


def _concatenate(left: str, right: str) -> Operand:
    """Joins two texts; invalid if longer than a named limit: a short selection could demand more than the memory."""
    return left + right if len(left) + len(right) <= limits.SELECTION_TEXT_CHARACTERS else Special.INVALID


def arithmetic(operator: str) -> Callable[[Operand, Operand], Operand]:
    """The value of an operator of arithmetic; `+` joins two strings."""
    on_integers, on_floats = _ON_INTEGERS[operator], _ON_FLOATS.get(operator)

    def calculate(left: Operand, right: Operand) -> Operand:
        if isinstance(left, str) and isinstance(right, str) and operator == "+":
            return _concatenate(left, right)
        if not isinstance(left, _NUMBERS) or not isinstance(right, _NUMBERS):
            return Special.INVALID
        if right == 0 and operator in "/%":
            return Special.INVALID
        if isinstance(left, int) and isinstance(right, int):
            return wrap_to_int64(on_integers(left, right))
        return Special.INVALID if on_floats is None else on_floats(float(left), float(right))

    return calculate


def _absolute(value: Operand) -> Operand:
    if isinstance(value, int):
        return wrap_to_int64(abs(value))
    return math.fabs(value) if isinstance(value, float) else Special.INVALID


def _hash(value: Operand) -> Operand:
    """The first 8 bytes of the MD5 of a string's UTF-8, or of a number's 8 bytes."""
    if isinstance(value, str):
        content = value.encode("utf-8", "surrogatepass")
    elif isinstance(value, int):
        content = struct.pack("<q", value)
    elif isinstance(value, float):
        content = struct.pack("<d", value)
    else:
        return Special.INVALID
    return int.from_bytes(md5(content, usedforsecurity=False).digest()[:8], "little", signed=True)


def _lowercase(value: Operand) -> Operand:
    """Character by character: what has no lower case of one character stays."""
    if not isinstance(value, str):
        return Special.INVALID
    if value.isascii():
        return value.lower()
    return "".join(low if len(low := character.lower()) == 1 else character for character in value)


FUNCTIONS: Final[Mapping[str, Callable[[Operand], Operand]]] = {
    "abs": _absolute,
    "hash": _hash,
    "lowercase": _lowercase,
}
