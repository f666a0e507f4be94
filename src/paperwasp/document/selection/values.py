"""The values of selections, how they are compared, calculated with, changed by functions and matched by patterns.

None is null; a str, int or float is itself; `Many` are several, of an array or a path through one. `Special.OPAQUE` is
there but can only be asked whether it is null (a tensor, bytes); `Special.INVALID` is nothing at all: what a field of
another document type or a calculation without sense has.

All of it is total: numbers wrap at 64 bits, and division by zero is invalid, where Vespa lets the operation fail.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from functools import lru_cache
from hashlib import md5
from typing import Any, Final, NamedTuple

import re2

from paperwasp import limits
from paperwasp.base.patterns import compile_later

# Three-valued logic over sets of truths.
#
# What a condition says of one document is true, false or invalid. Where a field has several values it may be several of
# them at once, one for each value: `numbers == 1` is true and false of [1, 2]. Such a set is an integer of three bits,
# and an operator is a table from sets to sets. In the end a document matches if true is in the set, and does not if
# only false and perhaps invalid are.
#
# Conditions over variables say something for each binding of the variables: `Bound`, binding → set. Operators join them
# where the bindings agree.


FALSE: Final = 1
INVALID: Final = 2
TRUE: Final = 4

Binding = tuple[tuple[str, object], ...]
"""Variables with what they stand for, by name."""
Bound = dict[Binding, int]
Results = int | Bound
Table = tuple[tuple[int, ...], ...]

_TRUTHS: Final = (FALSE, INVALID, TRUE)


def _conjoin(left: int, right: int) -> int:
    """The conjunction of two single truths: the lower one, since truths are numbered in that order."""
    return min(left, right)


def _table(operator: Callable[[int, int], int]) -> Table:
    def together(left: int, right: int) -> int:
        found = 0
        for one in _TRUTHS:
            for other in _TRUTHS:
                if left & one and right & other:
                    found |= operator(one, other)
        return found

    return tuple(tuple(together(left, right) for right in range(8)) for left in range(8))


AND: Final = _table(_conjoin)
OR: Final = _table(max)
NOT: Final = tuple((s & INVALID) | (TRUE if s & FALSE else 0) | (FALSE if s & TRUE else 0) for s in range(8))


def combine(results: Results) -> int:
    """Reduces results to one truth: true if there is any, else false if there is any, else invalid."""
    if type(results) is int:
        found = results
    else:
        found = 0
        for truths in results.values():  # type: ignore[union-attr]
            found |= truths
        found = found or FALSE
    return TRUE if found & TRUE else FALSE if found & FALSE else INVALID


def negated_results(results: Results) -> Results:
    if isinstance(results, int):
        return NOT[results]
    return {binding: NOT[truths] for binding, truths in results.items()}


def join(left: Results, right: Results, table: Table) -> Results:
    """Combines each of the left with each of the right whose variables stand for the same.

    Invalid as a whole where these would be more than a named limit.
    """
    if isinstance(left, int) and isinstance(right, int):
        return table[left][right]
    left = {(): left} if isinstance(left, int) else left
    right = {(): right} if isinstance(right, int) else right
    found: Bound = {}
    pairs = 0
    groups = _groups(left, right)
    for binding, truths in left.items():
        candidates = groups(binding)
        pairs += len(candidates)
        if pairs > limits.SELECTION_BINDINGS:
            return INVALID
        for other, others in candidates:
            together = _together(binding, other)
            if together is not None:
                found[together] = found.get(together, 0) | table[truths][others]
    return found


def _groups(left: Bound, right: Bound) -> Callable[[Binding], list[tuple[Binding, int]]]:
    """Binding of the left → the bindings of the right that may agree with it, with their truths.

    Found by the variables that all of both have; the others are compared one by one.
    """
    shared = _names_of_all(left) & _names_of_all(right)
    groups: dict[Binding, list[tuple[Binding, int]]] = {}
    for binding, truths in right.items():
        groups.setdefault(_part(binding, shared), []).append((binding, truths))
    return lambda binding: groups.get(_part(binding, shared), [])


def _names_of_all(bindings: Iterable[Binding]) -> frozenset[str]:
    names = [frozenset(name for name, _ in binding) for binding in bindings]
    return frozenset.intersection(*names) if names else frozenset()


def _part(binding: Binding, names: frozenset[str]) -> Binding:
    return tuple(item for item in binding if item[0] in names)


def _together(left: Binding, right: Binding) -> Binding | None:
    merged = dict(left)
    for name, value in right:
        if merged.setdefault(name, value) != value:
            return None
    return tuple(sorted(merged.items(), key=lambda item: item[0]))


# Patterns of strings: regular expressions (`=~`) and globs (`=`).
#
# RE2 runs both, as in Vespa: time is linear in the text whatever the pattern, and memory is bounded. So a pattern from
# a request cannot stop a node, which a backtracking engine like Python's would allow. In turn RE2 has no look-around
# and no back references, and counts at most 1000 in a repetition: what it refuses is refused when the selection is
# parsed.
#
# Compiled patterns are kept here, and only a limited number of them: matchers, which others keep, know their texts
# alone.
#
# Differs: `*` and `?` of a glob match a newline too, as Vespa's page says; its implementation takes only those at
# either end for that.


Test = Callable[[str], bool]
"""Whether a text matches."""

_WILDCARDS: Final = compile_later(r"(\*+|\?)")


class PatternError(ValueError):
    """A text is no regular expression, or is one that is too large."""


def _options() -> Any:
    options = re2.Options()
    options.log_errors = False
    options.never_capture = True  # what groups capture is never used, and thousands of them cost 0.4 ms a byte
    options.max_mem = limits.SELECTION_PATTERN_BYTES
    return options


_OPTIONS: Final = _options()


@lru_cache(limits.SELECTION_PATTERNS_KEPT)
def regular_expression(pattern: str) -> Test:
    """Return whether the pattern is found anywhere in a text. Raises PatternError."""
    if not pattern:
        return lambda text: True
    try:
        search = re2.compile(pattern.encode("utf-8", "surrogatepass"), _OPTIONS).search
    except re2.error as error:
        reason = error.args[0] if error.args else ""
        raise PatternError(reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason)) from None
    return lambda text: search(text.encode("utf-8", "surrogatepass")) is not None


@lru_cache(limits.SELECTION_PATTERNS_KEPT)
def glob(pattern: str) -> Test:
    """Return whether a text is the pattern: `*` stands for any characters, `?` for one."""
    parts = _WILDCARDS.split(pattern)
    kinds = "".join("*" if part.startswith("*") else "?" if part == "?" else "t" for part in parts if part)
    text = "".join(parts[::2])
    match kinds:
        case "" | "t":
            return pattern.__eq__
        case "*":
            return lambda value: True
        case "t*":
            return lambda value: value.startswith(text)
        case "*t":
            return lambda value: value.endswith(text)
        case "*t*":
            return lambda value: text in value
    try:
        return regular_expression("(?s)^" + "".join(map(_expression, parts)) + "$")
    except PatternError:
        return lambda value: False


def _expression(part: str) -> str:
    return ".*" if part.startswith("*") else "." if part == "?" else str(re2.escape(part))


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


def arithmetic(operator: str) -> Callable[[Operand, Operand], Operand]:
    """The value of an operator of arithmetic; `+` joins two strings."""
    on_integers, on_floats = _ON_INTEGERS[operator], _ON_FLOATS.get(operator)

    def calculate(left: Operand, right: Operand) -> Operand:
        if isinstance(left, str) and isinstance(right, str) and operator == "+":
            # A short selection could otherwise demand more than the memory.
            is_small = len(left) + len(right) <= limits.SELECTION_TEXT_CHARACTERS
            return left + right if is_small else Special.INVALID
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
