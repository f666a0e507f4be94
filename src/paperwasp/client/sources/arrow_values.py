"""Arrow columns as values for JSON: vectors stay arrays of NumPy, times become numbers, bytes become base64.

None stands where there is no value. Lists of numbers, which may be vectors, must have all their elements; from other
lists, those without a value are left out.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.types as is_type

from paperwasp.client.sources.rows import BYTES, DATES, DURATIONS, TIMES, TIMES_OF_DAY
from paperwasp.client.sources.values import TIME_UNITS

_JSON: Final = "arrow.json"
"""Arrow's name of texts that are JSON."""
_DAY_SECONDS: Final = 86_400


class BadValue(ValueError):
    """A value that no field can have; `row` counts from 0 in its batch."""

    def __init__(self, row: int, message: str) -> None:
        super().__init__(message)
        self.row = row


def column_values(column: Any, time_unit: str = "s") -> Sequence[Any]:
    """The values of an Arrow array, one a row. Errors: BadValue; NotImplementedError for a type that JSON has not."""
    kind = column.type
    for is_kind, values in _KINDS:
        if is_kind(kind):
            return values(column, time_unit)
    raise NotImplementedError(f"there is no JSON for {kind}")


def meaning_of(kind: Any) -> str:
    """What a type says of values that `column_values` makes plain numbers or texts of; empty: nothing more."""
    if is_type.is_dictionary(kind):
        return meaning_of(kind.value_type)
    return next((meaning for is_kind, meaning in _MEANINGS if is_kind(kind)), "")


def _plain(column: Any, _unit: str) -> Sequence[Any]:
    return list(column.to_pylist())


def _floats(column: Any, _unit: str) -> Sequence[Any]:
    """Floats with no more digits than their type has; what is not finite by its name, as services take it."""
    single = column.type != pa.float64()
    numbers = column.to_numpy(zero_copy_only=False)
    numbers = numbers.astype(np.float32) if single else numbers
    if column.null_count == 0 and np.isfinite(numbers).all():
        return list(numbers)
    missing = column.is_null().to_pylist()
    return [None if gone else _float(number) for number, gone in zip(numbers, missing, strict=True)]


def _float(number: Any) -> Any:
    if np.isfinite(number):
        return number
    return "NaN" if np.isnan(number) else "Infinity" if number > 0 else "-Infinity"


def _decimals(column: Any, _unit: str) -> Sequence[Any]:
    """With all their digits."""
    return [None if value is None else str(value) for value in column.to_pylist()]


def _bytes(column: Any, _unit: str) -> Sequence[Any]:
    return [None if value is None else b64encode(value).decode() for value in column.to_pylist()]


def _decoded(column: Any, unit: str) -> Sequence[Any]:
    if column.type.value_type == pa.string_view():  # Arrow cannot decode these: categories of polars
        column = pa.DictionaryArray.from_arrays(column.indices, column.dictionary.cast(pa.large_string()))
    return column_values(column.dictionary_decode(), unit)


def _extension(column: Any, unit: str) -> Sequence[Any]:
    if column.type.extension_name == _JSON:
        return [_json(row, text) for row, text in enumerate(column.storage.to_pylist())]
    return column_values(column.storage, unit)


def _json(row: int, text: str | None) -> Any:
    """A text that is JSON, as it stands there."""
    if text is None:
        return None
    try:
        return None if orjson.loads(text) is None else orjson.Fragment(text)
    except orjson.JSONDecodeError as error:
        raise BadValue(row, f"no JSON: {error.msg}") from None


def _moments(column: Any, unit: str) -> Sequence[Any]:
    """Timestamps and durations in `unit` since 1970, rounded down."""
    return _in_units(column.cast(pa.int64()), TIME_UNITS[column.type.unit], unit)


def _times(column: Any, unit: str) -> Sequence[Any]:
    whole = column.cast(pa.int32() if column.type.bit_width == 32 else pa.int64())
    return _in_units(whole, TIME_UNITS[column.type.unit], unit)


def _days(column: Any, unit: str) -> Sequence[Any]:
    if is_type.is_date64(column.type):
        return _in_units(column.cast(pa.int64()), TIME_UNITS["ms"], unit)
    factor = _DAY_SECONDS * TIME_UNITS[unit]
    return [None if value is None else value * factor for value in column.cast(pa.int32()).to_pylist()]


def _in_units(column: Any, has: int, unit: str) -> Sequence[Any]:
    wanted = TIME_UNITS[unit]
    return [None if value is None else value * wanted // has for value in column.to_pylist()]


def _lists(column: Any, unit: str) -> Sequence[Any]:
    """Lists of any length; those of numbers are slices of one array."""
    if is_type.is_fixed_size_list(column.type):
        size = column.type.list_size
        offsets = (np.arange(len(column) + 1, dtype=np.int64) + column.offset) * size
    else:
        offsets = column.offsets.to_numpy().astype(np.int64)
    first = int(offsets[0]) if len(offsets) else 0
    elements = column.values.slice(first, (int(offsets[-1]) - first) if len(offsets) else 0)
    starts, ends = (offsets[:-1] - first).tolist(), (offsets[1:] - first).tolist()
    there = column.is_valid().to_pylist()
    numbers = _numbers(elements)
    if numbers is not None:
        return [numbers[a:b] if is_there else None for a, b, is_there in zip(starts, ends, there, strict=True)]
    values = column_values(elements, unit)
    lists = []
    for row, (start, end, is_there) in enumerate(zip(starts, ends, there, strict=True)):
        part = [value for value in values[start:end] if value is not None] if is_there else None
        if part is not None and len(part) < end - start and _is_number(elements.type):
            raise BadValue(row, f"a list of {end - start} numbers of which {end - start - len(part)} are missing")
        lists.append(part)
    return lists


def _numbers(elements: Any) -> Any:
    """The elements as one array of finite numbers, if they are that."""
    if not _is_number(elements.type) or elements.null_count:
        return None
    numbers = elements.to_numpy(zero_copy_only=False)
    if is_type.is_floating(elements.type):
        if not np.isfinite(numbers).all():
            return None
        if is_type.is_float16(elements.type):
            numbers = numbers.astype(np.float32)
    return np.ascontiguousarray(numbers)


def _is_number(kind: Any) -> bool:
    return bool(is_type.is_integer(kind) or is_type.is_floating(kind))


def _structs(column: Any, unit: str) -> Sequence[Any]:
    names = [field.name for field in column.type]
    members = [column_values(member, unit) for member in column.flatten()]
    rows = zip(*members, strict=True) if members else (() for _ in range(len(column)))
    there = column.is_valid().to_pylist()
    return [
        {name: value for name, value in zip(names, row, strict=True) if value is not None} if is_there else None
        for row, is_there in zip(rows, there, strict=True)
    ]


def _maps(column: Any, unit: str) -> Sequence[Any]:
    offsets = column.offsets.to_pylist()
    first = offsets[0] if offsets else 0
    count = (offsets[-1] - first) if offsets else 0
    keys = column_values(column.keys.slice(first, count), unit)
    values = column_values(column.items.slice(first, count), unit)
    there = column.is_valid().to_pylist()
    pairs = list(zip(keys, values, strict=True))
    return [
        {key: value for key, value in pairs[offsets[row] - first : offsets[row + 1] - first] if value is not None}
        if is_there
        else None
        for row, is_there in enumerate(there)
    ]


def _is_text_or_whole(kind: Any) -> bool:
    plain = (is_type.is_boolean, is_type.is_integer, is_type.is_null)
    return _is_text(kind) or any(is_kind(kind) for is_kind in plain)


def _is_text(kind: Any) -> bool:
    return bool(is_type.is_string(kind) or is_type.is_large_string(kind) or is_type.is_string_view(kind))


def _is_bytes(kind: Any) -> bool:
    kinds = (is_type.is_binary, is_type.is_large_binary, is_type.is_fixed_size_binary, is_type.is_binary_view)
    return any(is_kind(kind) for is_kind in kinds)


def _is_extension(kind: Any) -> bool:
    return isinstance(kind, pa.BaseExtensionType)


def _is_list(kind: Any) -> bool:
    return bool(is_type.is_list(kind) or is_type.is_large_list(kind) or is_type.is_fixed_size_list(kind))


def _is_moment(kind: Any) -> bool:
    return bool(is_type.is_timestamp(kind) or is_type.is_duration(kind))


_MEANINGS: Final[tuple[tuple[Callable[[Any], bool], str], ...]] = (
    (is_type.is_timestamp, TIMES),
    (is_type.is_date, DATES),
    (is_type.is_time, TIMES_OF_DAY),
    (is_type.is_duration, DURATIONS),
    (_is_bytes, BYTES),
)
_KINDS: Final[tuple[tuple[Callable[[Any], bool], Callable[[Any, str], Sequence[Any]]], ...]] = (
    (_is_extension, _extension),
    (_is_text_or_whole, _plain),
    (is_type.is_floating, _floats),
    (_is_list, _lists),
    (is_type.is_dictionary, _decoded),
    (_is_moment, _moments),
    (is_type.is_date, _days),
    (is_type.is_time, _times),
    (is_type.is_decimal, _decimals),
    (_is_bytes, _bytes),
    (is_type.is_map, _maps),
    (is_type.is_struct, _structs),
)
