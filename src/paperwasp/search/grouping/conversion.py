"""Values of one type as values of another, as Vespa's result nodes convert them.

Of several values a function that takes one takes the first; of none, what is unset: the least long, NaN, the empty
string.
Vespa: searchlib/expression/resultnodes.cpp (getInteger, getFloat, getString of each type), resultvector.h
Differs: a bucket has no value here: InvalidQuery; there it is 0 or garbage.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from paperwasp.base.patterns import compile_later
from paperwasp.errors import InvalidQuery
from paperwasp.search.grouping.tables import RawTable, TextTable, bytes_of, distinct, encoded, in_pieces, mapped
from paperwasp.search.grouping.values import Kind, Values, lengths_of

Longs = NDArray[np.int64]
Doubles = NDArray[np.float64]

LEAST: Final = -(2**63)
MOST: Final = 2**63 - 1
BUCKETS: Final = frozenset({Kind.LONG_BUCKET, Kind.DOUBLE_BUCKET, Kind.STRING_BUCKET, Kind.RAW_BUCKET})
TEXTS: Final = frozenset({Kind.STRING, Kind.RAW})
WHOLE: Final = frozenset({Kind.LONG, Kind.BOOL})

_DTYPES: Final[dict[Kind, Any]] = {Kind.LONG: np.int64, Kind.DOUBLE: np.float64, Kind.BOOL: np.bool_}
_WHOLE: Final = compile_later(rb"[ \t\n\v\f\r]*([+-]?)(?:0[xX]([0-9a-fA-F]+)|(0[0-7]*)|([1-9][0-9]*))")
_NUMBER: Final = compile_later(
    rb"[ \t\n\v\f\r]*([+-]?(?:0[xX](?:[0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)(?:[pP][+-]?[0-9]+)?"
    rb"|(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|inf(?:inity)?|nan))",
    re.IGNORECASE,
)


def dtype_of(kind: Kind) -> Any:
    """The dtype of `Values.data` of this kind."""
    return _DTYPES.get(kind, np.uint32)


def whole_of(text: bytes) -> int:
    """The integer that a text begins with, as strtoll with base 0 reads it; 0 where there is none."""
    return min(MOST, max(LEAST, whole_in(text) or 0))


def whole_in(text: bytes) -> int | None:
    """The integer that a text begins with, however large; None: there is none."""
    found = _WHOLE.match(text)
    if found is None:
        return None
    sign, hexadecimal, octal, decimal = found.groups()
    if hexadecimal is not None:
        number = int(hexadecimal, 16)
    elif octal is not None:
        number = int(octal, 8)
    else:  # thousands of digits, of which Python reads no number, are more than any long, too
        number = int(decimal) if len(decimal) < 32 else MOST + 2
    return -number if sign == b"-" else number


def number_of(text: bytes) -> float:
    """The number that a text begins with, as strtod reads it; 0 where there is none."""
    found = number_in(text)
    return 0.0 if found is None else found


def number_in(text: bytes) -> float | None:
    """The number that a text begins with, as strtod reads it; None: there is none."""
    found = _NUMBER.match(text)
    if found is None:
        return None
    number = found.group(1).decode()
    if "x" not in number.lower():
        return float(number)
    try:
        return float.fromhex(number)
    except OverflowError:
        return float("-inf") if number.startswith("-") else float("inf")


def rounded(numbers: Doubles) -> Longs:
    """The nearest integers, those halfway away from zero; of what is no long, the least long."""
    with np.errstate(invalid="ignore"):
        whole = np.trunc(numbers)
        whole += np.where(np.abs(numbers - whole) >= 0.5, np.sign(numbers), 0.0)
        fits = (whole >= -(2.0**63)) & (whole < 2.0**63)
    return np.where(fits, np.where(fits, whole, 0.0).astype(np.int64), np.int64(LEAST))


def as_longs(values: Values) -> Longs:
    """Each value as a long, offsets aside. Errors: InvalidQuery for buckets."""
    data = values.data
    match values.kind:
        case Kind.LONG:
            return data
        case Kind.BOOL:
            return data.astype(np.int64)
        case Kind.DOUBLE:
            return rounded(data)
        case Kind.NULL:
            return np.zeros(len(data), np.int64)
    return _by_bytes(values, whole_of if values.kind == Kind.STRING else _first_long, np.int64)


def as_doubles(values: Values) -> Doubles:
    """Each value as a double, offsets aside. Errors: InvalidQuery for buckets."""
    data = values.data
    match values.kind:
        case Kind.DOUBLE:
            return data
        case Kind.LONG | Kind.BOOL:
            return data.astype(np.float64)
        case Kind.NULL:
            return np.zeros(len(data))
    return _by_bytes(values, number_of if values.kind == Kind.STRING else _first_double, np.float64)


def as_texts(values: Values, table: RawTable) -> NDArray[np.uint32]:
    """The code in `table` of each value as text, offsets aside. Errors: InvalidQuery for buckets."""
    match values.kind:
        case Kind.LONG:
            return _texts_of(values.data, lambda number: b"%d" % number, table)
        case Kind.DOUBLE:
            return _texts_of(values.data.view(np.int64), _double_text, table)
        case Kind.BOOL:
            return table.codes_of((b"false", b"true"))[values.data.astype(np.intp)]
        case Kind.NULL:
            return np.full(len(values.data), table.codes_of((b"",))[0])
    _refuse_buckets(values.kind)
    codes, places = distinct(values.data)
    return table.codes_of(bytes_of(values.table, codes))[places]


def as_kind(values: Values, kind: Kind, table: RawTable) -> Values:
    """The values as others of a kind: LONG, DOUBLE, or STRING or RAW in `table`. Errors: InvalidQuery."""
    if kind == Kind.LONG:
        return Values(kind, as_longs(values), None, values.offsets)
    if kind == Kind.DOUBLE:
        return Values(kind, as_doubles(values), None, values.offsets)
    return Values(kind, as_texts(values, table), table, values.offsets)


def first_longs(values: Values) -> Longs:
    """The first value of each row as a long; of none the least long. Errors: InvalidQuery for buckets."""
    return _of_first(values, as_longs, LEAST)


def first_doubles(values: Values) -> Doubles:
    """The first value of each row as a double; of none NaN. Errors: InvalidQuery for buckets."""
    return _of_first(values, as_doubles, np.nan)


def first_texts(values: Values, table: TextTable) -> NDArray[np.uint32]:
    """The code in `table` of the first value of each row as text; of none the empty one. Errors: InvalidQuery for
    buckets."""
    return _of_first(values, lambda first: as_texts(first, table), int(table.codes_of((b"",))[0]))


def _of_first(values: Values, convert: Callable[[Values], NDArray[Any]], unset: Any) -> NDArray[Any]:
    if values.offsets is None:
        return convert(values)
    starts, ends = values.offsets[:-1], values.offsets[1:]
    has = ends > starts
    found = convert(Values(values.kind, values.data[starts[has]], values.table))
    if len(found) == len(starts):
        return found
    first = np.full(len(starts), unset, found.dtype)
    first[has] = found
    return first


def double_text(number: float) -> bytes:
    """A double with six digits, as C's %g writes it."""
    return b"%g" % number if number == number else (b"-nan" if struct.pack(">d", number)[0] & 0x80 else b"nan")


def _double_text(bits: int) -> bytes:
    number: float = struct.unpack("<d", struct.pack("<q", bits))[0]
    return double_text(number)


def _texts_of(numbers: Longs, text_of: Any, table: RawTable) -> NDArray[np.uint32]:
    found, places = distinct(numbers)
    return mapped(text_of, found.tolist(), table)[places]


def _by_bytes(values: Values, function: Any, dtype: Any) -> NDArray[Any]:
    _refuse_buckets(values.kind)
    codes, places = distinct(values.data)
    found = [function(text) for text in in_pieces(bytes_of(values.table, codes))]
    numbers: NDArray[Any] = np.array(found, dtype)[places]
    return numbers


def _first_long(raw: bytes) -> int:
    number: int = struct.unpack(">q", raw[:8].ljust(8, b"\0"))[0]
    return number


def _first_double(raw: bytes) -> float:
    number: float = struct.unpack(">d", raw[:8].ljust(8, b"\0"))[0]
    return number


def _refuse_buckets(kind: Kind) -> None:
    if kind in BUCKETS:
        raise InvalidQuery("A bucket is no number or text that a function could take")


def constant_bytes(value: object) -> bytes:
    """The bytes of a literal that is a string or raw."""
    return encoded(value) if isinstance(value, str) else bytes(value)  # type: ignore[call-overload]


# Values of rows as aggregators read them: one after another, with the group of each, as numbers of one type.


Groups = NDArray[np.uint32]


def spread(values: Values, groups: Groups) -> Groups:
    """The group of each value, where `groups` has that of each row."""
    return groups if values.offsets is None else np.repeat(groups, lengths_of(values.offsets))


def as_numbers(values: Values) -> NDArray[Any]:
    """The values as int64 where their type is an integer or bool, else as float64; buckets are 0.

    Vespa: the `getFloat` of result nodes.
    """
    if values.kind in WHOLE:
        return as_longs(values)
    return np.zeros(len(values.data)) if values.kind in BUCKETS else as_doubles(values)


def as_integers(values: Values) -> NDArray[np.int64]:
    """The values as int64: floats rounded, buckets 0. Vespa: the `getInteger` of result nodes."""
    return np.zeros(len(values.data), np.int64) if values.kind in BUCKETS else as_longs(values)


def valid_doubles(values: Values, groups: Groups) -> tuple[NDArray[np.float64], Groups]:
    """The values as float64 without those that are NaN, and the groups of those that are left."""
    numbers = as_numbers(values).astype(np.float64, copy=False)
    is_valid = ~np.isnan(numbers)
    return (numbers, groups) if is_valid.all() else (numbers[is_valid], groups[is_valid])
