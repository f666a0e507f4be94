"""Computing with numbers: add, sub, mul, div, mod, min, max and neg; and, or and xor of bits; math.exp and its like."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from paperwasp.core import _core
from paperwasp.errors import InvalidQuery
from paperwasp.search.grouping.attribute_columns import offsets_of
from paperwasp.search.grouping.conversion import (
    BUCKETS,
    LEAST,
    MOST,
    TEXTS,
    WHOLE,
    as_doubles,
    as_kind,
    as_longs,
    first_doubles,
    first_longs,
)
from paperwasp.search.grouping.expression_node import Computed, ExpressionNode, Scope, bind_arguments, register
from paperwasp.search.grouping.request import Expression
from paperwasp.search.grouping.tables import RawTable, TextTable, bytes_of, distinct, distinct_rows, in_pieces, mapped
from paperwasp.search.grouping.values import Kind, Values
from paperwasp.storage.attributes.rows import spread

# add, sub, mul, div, mod, min, max and neg: of numbers, of arrays element by element, of texts byte by byte.
#
# Numbers are longs, which go round beyond 64 bits, unless one argument is a double. What is divided by 0 is 0. Where an
# argument has several values the result has: as many as the longest, the others begin again at their first; of an array
# and an empty one it is the array. One argument alone that has several is added up (multiplied, …).
# Vespa: searchlib/expression/numericfunctionnode.cpp, functionnodes.cpp
# Differs: modulo 0 of doubles is 0; there it ends the process.


Data = NDArray[Any]
_SMALLEST_NORMAL: Final = float(np.finfo(np.float64).tiny)
_FLAT: Final = frozenset({"add", "sub", "mul", "min", "max"})
"""The functions that combine the values of one argument."""
_STARTS: Final[dict[str, tuple[int, float]]] = {
    "min": (MOST, float(np.finfo(np.float64).max)),
    "max": (LEAST, _SMALLEST_NORMAL),
}
"""By function: from what it starts, of longs and of doubles."""
_OF_TEXTS: Final = frozenset({"add", "sub", "min", "max"})


@register("add", "sub", "mul", "div", "mod", "min", "max")
def _arithmetic(expression: Expression, scope: Scope) -> ExpressionNode:
    arguments = bind_arguments(expression, scope)
    function = expression.function
    if function == "sub":
        arguments = [arguments[0], *(negated(each, scope) for each in arguments[1:])]
        function = "add"
    if len(arguments) == 1:
        return _flattened(function, arguments[0])
    kind = _common_kind([each.kind for each in arguments])
    is_multi = any(each.is_multi for each in arguments)
    if kind in TEXTS and (is_multi or function not in _OF_TEXTS):
        raise InvalidQuery(f"Function '{expression.function}' takes numbers, not {kind.value} values")
    table = (RawTable if kind == Kind.RAW else TextTable)(memory=scope.texts)

    def compute(values: Sequence[Values]) -> Values:
        found = as_kind(values[0], kind, table)
        for each in values[1:]:
            found = _combined(function, kind, found, each, table)
        return found

    return Computed(kind, arguments, compute, is_multi=is_multi)


def _common_kind(kinds: Sequence[Kind]) -> Kind:
    if BUCKETS.intersection(kinds):
        raise InvalidQuery("A bucket is no number that a function could take")
    if Kind.DOUBLE in kinds:
        return Kind.DOUBLE
    if WHOLE.intersection(kinds):
        return Kind.LONG
    return Kind.STRING if Kind.STRING in kinds else Kind.RAW


def _combined(function: str, kind: Kind, left: Values, right: Values, table: RawTable) -> Values:
    """One step: what was found so far, of `kind`, with the next argument."""
    if kind in TEXTS:
        return _combined_texts(function, kind, left, as_kind(right, kind, table), table)
    if left.offsets is not None or right.offsets is not None:
        return _combined_arrays(function, kind, left, right, table)
    return Values(kind, _combined_numbers(function, kind, left.data, right))


def _combined_numbers(function: str, kind: Kind, left: Data, right: Values) -> Data:
    """As many numbers on both sides, of which the first are of `kind`."""
    if kind == Kind.DOUBLE:
        return _combined_doubles(function, left, right)
    return _combined_longs(function, left, as_longs(right))


def _combined_arrays(function: str, kind: Kind, left: Values, right: Values, table: RawTable) -> Values:
    """The shorter array of a row begins again at its first; an empty one leaves the other as it is. A single number has
    nothing to be combined with in a row whose array, so far, is empty.

    Vespa: numericfunctionnode.cpp (`VectorHandler`)
    """
    sizes = (_sizes(left), _sizes(right))
    is_both = (sizes[0] > 0) & (sizes[1] > 0)
    lengths = np.maximum(*sizes)
    if right.offsets is None:
        lengths = np.where(is_both, lengths, 0)
    numbers = spread(np.zeros(len(lengths), np.int64), lengths)
    places = []
    for each, size in zip((left, right), sizes, strict=True):
        starts = np.arange(len(lengths)) if each.offsets is None else each.offsets[:-1].astype(np.int64)
        places.append(np.repeat(starts, lengths) + numbers % np.repeat(np.maximum(size, 1), lengths))
    combines = np.repeat(is_both, lengths)
    data = np.empty(len(numbers), left.data.dtype)
    others = Values(right.kind, right.data[places[1][combines]], right.table)
    data[combines] = _combined_numbers(function, kind, left.data[places[0][combines]], others)
    for each, size, found in zip((left, right), sizes, places, strict=True):
        alone = np.repeat((size > 0) & ~is_both, lengths)
        data[alone] = as_kind(Values(each.kind, each.data[found[alone]], each.table), kind, table).data
    return Values(kind, data, None, offsets_of(lengths))


def _sizes(values: Values) -> NDArray[np.int64]:
    if values.offsets is None:
        return np.ones(len(values.data), np.int64)
    offsets = values.offsets.astype(np.int64)
    return offsets[1:] - offsets[:-1]


def _combined_longs(function: str, left: Data, right: Data) -> Data:
    with np.errstate(over="ignore"):
        match function:
            case "add":
                return left + right
            case "mul":
                return left * right
            case "min":
                return np.minimum(left, right)
            case "max":
                return np.maximum(left, right)
    quotients, remainders = _divided(left, right)
    return quotients if function == "div" else remainders


def _divided(left: Data, right: Data) -> tuple[Data, Data]:
    """Quotients rounded toward zero, and remainders with the sign of what is divided; of a division by 0, 0 and 0."""
    special = (right == 0) | (right == -1)
    divisors = np.where(special, 1, right)
    quotients = left // divisors
    remainders = left - quotients * divisors
    wrong = (remainders != 0) & ((left < 0) != (divisors < 0))
    quotients += wrong
    remainders = np.where(special, 0, remainders - np.where(wrong, divisors, 0))
    with np.errstate(over="ignore"):
        quotients = np.where(right == -1, -left, np.where(right == 0, 0, quotients))
    return quotients, remainders


def _combined_doubles(function: str, left: Data, right: Values) -> Data:
    if function == "mod":
        first = as_longs(Values(Kind.DOUBLE, left))
        return _divided(first, as_longs(right))[1].astype(np.float64)
    numbers = as_doubles(right)
    with np.errstate(all="ignore"):
        match function:
            case "add":
                return left + numbers
            case "mul":
                return left * numbers
            case "div":
                return np.where(numbers == 0.0, 0.0, left / np.where(numbers == 0.0, 1.0, numbers))
            case "min":
                return np.where(numbers < left, numbers, left)
        return np.where(numbers > left, numbers, left)


def _combined_texts(function: str, kind: Kind, left: Values, right: Values, table: RawTable) -> Values:
    combine: Callable[[bytes, bytes], bytes] = _sum_of_bytes
    if function in ("min", "max"):
        combine = _text_choice(function == "min", kind == Kind.RAW)
    first, places = distinct_rows([left.data, right.data])
    pairs = zip(table.bytes_of(left.data[first]), table.bytes_of(right.data[first]), strict=True)
    codes = mapped(lambda pair: combine(*pair), list(pairs), table)
    return Values(kind, codes[places], table)


def _sum_of_bytes(left: bytes, right: bytes) -> bytes:
    summed = bytes((one + other) & 0xFF for one, other in zip(left, right, strict=False))
    return summed + left[len(summed) :] + right[len(summed) :]


def _text_choice(is_min: bool, is_raw: bool) -> Callable[[bytes, bytes], bytes]:
    def choose(left: bytes, right: bytes) -> bytes:
        size = min(len(left), len(right)) if is_raw else None
        first, other = left[:size], right[:size]
        return right if (other < first if is_min else other > first) else left

    return choose


def _flattened(function: str, argument: ExpressionNode) -> ExpressionNode:
    """One argument with several values: all of them in one."""
    if not argument.is_multi or argument.kind not in (*WHOLE, Kind.DOUBLE) or function not in _FLAT:
        raise InvalidQuery(f"Function '{function}' of one argument takes an array of numbers")
    kind = Kind.DOUBLE if argument.kind == Kind.DOUBLE else Kind.LONG

    def compute(values: Sequence[Values]) -> Values:
        (each,) = values
        assert each.offsets is not None
        data = as_doubles(each) if kind == Kind.DOUBLE else as_longs(each)
        return Values(kind, _combined_rows(function, data, each.offsets))

    return Computed(kind, [argument], compute)


def _combined_rows(function: str, data: Data, offsets: NDArray[np.uint32]) -> Data:
    """All values of each row, in their order. min and max pass over NaN."""
    if function == "mul":
        return reduced(np.multiply, data, offsets, 1)
    count = len(offsets) - 1
    rows = np.repeat(np.arange(count, dtype=np.uint32), np.diff(offsets))
    if function in _STARTS:
        start = _STARTS[function][data.dtype == np.float64]
        return _core.group_extremes(data, rows, count, start, is_max=function == "max")
    return _core.group_sums(data, rows, count)


def reduced(combine: Any, data: Data, offsets: NDArray[np.uint32], initial: Any) -> Data:
    """All values of each row combined with `initial`. `combine`: a ufunc."""
    found = np.full(len(offsets) - 1, initial, data.dtype)
    has = np.flatnonzero(offsets[1:] > offsets[:-1])
    with np.errstate(all="ignore"):
        if len(has):
            found[has] = combine(found[has], combine.reduceat(data, offsets[has].astype(np.intp)))
    return found


@register("neg")
def _neg(expression: Expression, scope: Scope) -> ExpressionNode:
    (argument,) = bind_arguments(expression, scope, 1, 1)
    return negated(argument, scope)


def negated(argument: ExpressionNode, scope: Scope) -> ExpressionNode:
    """The negation of each value; of a string or raw value, of each of its bytes; a bool stays as it is."""
    kind = argument.kind
    if kind in BUCKETS:
        raise InvalidQuery("A bucket is no number that a function could take")
    table = (RawTable if kind == Kind.RAW else TextTable)(memory=scope.texts)

    def compute(values: Sequence[Values]) -> Values:
        (each,) = values
        if kind in TEXTS:
            codes, places = distinct(each.data)
            negatives = [bytes(-byte & 0xFF for byte in text) for text in in_pieces(bytes_of(each.table, codes))]
            return Values(kind, table.codes_of(negatives)[places], table, each.offsets)
        with np.errstate(over="ignore"):
            return Values(kind, each.data if kind == Kind.BOOL else -each.data, None, each.offsets)

    return Computed(kind, [argument], compute, is_multi=argument.is_multi, size_bytes=argument.size_bytes)


# and, or and xor of longs, bit by bit. Of an argument with several values the first counts; of one alone, all.
#
# Vespa: https://docs.vespa.ai/en/reference/querying/grouping-language.html#bitwise-expressions


_OF_BITS: Final[dict[str, tuple[Any, int]]] = {
    "and": (np.bitwise_and, -1),
    "or": (np.bitwise_or, 0),
    "xor": (np.bitwise_xor, 0),
}


@register(*_OF_BITS)
def _bits(expression: Expression, scope: Scope) -> ExpressionNode:
    arguments = bind_arguments(expression, scope)
    combine, initial = _OF_BITS[expression.function]
    if BUCKETS.intersection(each.kind for each in arguments):
        raise InvalidQuery(f"Function '{expression.function}' takes numbers, not buckets")
    if len(arguments) == 1 and not arguments[0].is_multi:
        raise InvalidQuery(f"Function '{expression.function}' of one argument takes an array of numbers")

    def compute(values: Sequence[Values]) -> Values:
        if len(values) == 1:
            offsets = values[0].offsets
            assert offsets is not None
            return Values(Kind.LONG, reduced(combine, as_longs(values[0]), offsets, initial))
        return Values(Kind.LONG, reduce(combine, [first_longs(each) for each in values]))

    return Computed(Kind.LONG, arguments, compute)


# math.exp, math.log, … : functions of one double or two. Of several values the first counts.
#
# Vespa:
# https://docs.vespa.ai/en/reference/querying/grouping-language.html#single-argument-standard-mathematical-expressions
# Differs: by a unit in the last place at most, where NumPy's functions and the C library's do.


_OF_DOUBLES: Final[dict[str, Any]] = {
    "math.exp": np.exp,
    "math.log": np.log,
    "math.log1p": np.log1p,
    "math.log10": np.log10,
    "math.sqrt": np.sqrt,
    "math.cbrt": np.cbrt,
    "math.sin": np.sin,
    "math.cos": np.cos,
    "math.tan": np.tan,
    "math.asin": np.arcsin,
    "math.acos": np.arccos,
    "math.atan": np.arctan,
    "math.sinh": np.sinh,
    "math.cosh": np.cosh,
    "math.tanh": np.tanh,
    "math.asinh": np.arcsinh,
    "math.acosh": np.arccosh,
    "math.atanh": np.arctanh,
    "math.floor": np.floor,
    "math.pow": np.power,
    "math.hypot": np.hypot,
}


@register(*_OF_DOUBLES)
def _math(expression: Expression, scope: Scope) -> ExpressionNode:
    function = _OF_DOUBLES[expression.function]
    arguments = bind_arguments(expression, scope, function.nin, function.nin)
    if BUCKETS.intersection(each.kind for each in arguments):
        raise InvalidQuery(f"Function '{expression.function}' takes numbers, not buckets")

    def compute(values: Sequence[Values]) -> Values:
        with np.errstate(all="ignore"):
            return Values(Kind.DOUBLE, function(*map(first_doubles, values)))

    return Computed(Kind.DOUBLE, arguments, compute)
