"""Columns of single values: their order, some of their rows, several as one, and as arrays for any process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from paperwasp.search.grouping.conversion import as_numbers
from paperwasp.search.grouping.tables import InternedTable, decoded, distinct, encoded, values_of
from paperwasp.search.grouping.values import Kind, ListTable, Values

# The order of values of groups: of their ids, and of what they are ordered by.


_NO_BUCKETS: Final[Mapping[Kind, Any]] = {
    Kind.LONG_BUCKET: (0, 0),
    Kind.DOUBLE_BUCKET: (0.0, 0.0),
    Kind.STRING_BUCKET: ("", ""),
    Kind.RAW_BUCKET: (b"", b""),
}
"""By kind: the bucket whose place a value in no bucket has."""


def order_key(value: Any) -> Any:
    """The key that values of one kind are compared by: text by its bytes, buckets by their limits, low before high, NaN
    before all numbers."""
    if isinstance(value, str):
        return encoded(value)
    if isinstance(value, tuple):
        return tuple(order_key(limit) for limit in value)
    return (value == value, 0.0 if value != value else value) if isinstance(value, float) else value


def ranks_of(values: Values) -> NDArray[Any]:
    """Integers that rise with single values, and are equal where these are. NaN is less than any number.

    Cost: text and buckets are sorted, each distinct one once.
    Vespa: the `onCmp` of result nodes.
    """
    if values.table is None:
        data = values.data
        return _ranks_of_doubles(data) if data.dtype == np.float64 else data.astype(np.int64)
    codes, numbers = distinct(values.data)
    found = values.table.values_of(codes)
    if set(map(type, found)) == {str} and len(set(found)) == len(found):
        # Text is in the order of its characters in the order of its bytes, too: UTF-8 is made so.
        ranks = np.empty(len(found), np.int64)
        ranks[sorted(range(len(found)), key=found.__getitem__)] = np.arange(len(found))
        return ranks[numbers]
    # None is a value that is in no bucket. It is before the bucket of texts that has the same limits and no end.
    none = order_key(_NO_BUCKETS.get(values.kind))
    keys = [(none, False) if value is None else (order_key(value), True) for value in found]
    ranks = np.zeros(len(keys), np.int64)
    order = sorted(range(len(keys)), key=keys.__getitem__)
    rank = 0
    for place, number in enumerate(order):
        rank += place > 0 and keys[number] != keys[order[place - 1]]
        ranks[number] = rank
    return ranks[numbers]


def ranks_of_distinct(values: Values) -> NDArray[Any]:
    """The ranks of `ranks_of` for values of which no two are equal."""
    if values.kind is not Kind.STRING or values.table is None:
        return ranks_of(values)
    texts = values.table.values_of(values.data)
    ranks = np.empty(len(texts), np.int64)
    ranks[sorted(range(len(texts)), key=texts.__getitem__)] = np.arange(len(texts))
    return ranks


def _ranks_of_doubles(data: NDArray[np.float64]) -> NDArray[np.int64]:
    """Their bits, of which those of negative numbers fall where the numbers rise."""
    bits = (data + 0.0).view(np.int64)  # both zeros are one
    return np.where(np.isnan(data), np.iinfo(np.int64).min, np.where(bits < 0, bits ^ np.iinfo(np.int64).max, bits))


def group_keys(values: Values) -> NDArray[Any]:
    """Return keys that only equal single values share: int64, or the uint32 of codes. All NaN are one value, and so
    are both zeros."""
    data = values.data
    if data.dtype == np.float64:
        plain = np.where(np.isnan(data), np.nan, data) + 0.0
        bits: NDArray[np.int64] = plain.view(np.int64)
        return bits
    return data if data.dtype == np.uint32 else data.astype(np.int64, copy=False)


# Parts of columns of values: some of their rows, and columns of several parts as one.


_NUMBER_KINDS: Final = frozenset({Kind.BOOL, Kind.LONG, Kind.DOUBLE})


def values_at(values: Values, rows: NDArray[Any]) -> Values:
    """The single values of these rows."""
    return Values(values.kind, values.data[rows], values.table)


def unified(parts: Sequence[Values]) -> Values:
    """Single values of several parts as one column. Of different types they become floats or, where not all are
    numbers, text."""
    kinds = {part.kind for part in parts if len(part.data)} or {parts[0].kind}
    if kinds <= _NUMBER_KINDS:
        kind = kinds.pop() if len(kinds) == 1 else Kind.DOUBLE if Kind.DOUBLE in kinds else Kind.LONG
        data = [part.data if kind is part.kind else as_numbers(part) for part in parts if len(part.data)]
        empty: NDArray[Any] = np.zeros(0, {Kind.BOOL: np.bool_, Kind.LONG: np.int64}.get(kind, np.float64))
        return Values(kind, np.concatenate([empty, *data]))
    kind = kinds.pop() if len(kinds) == 1 else Kind.STRING
    table = InternedTable()
    found = [table.codes_of(_texts(part, as_text=kind != part.kind)) for part in parts]
    return Values(kind, np.concatenate(found), table)


def _texts(values: Values, *, as_text: bool) -> Sequence[Any]:
    found = values.data.tolist() if values.table is None else values.table.values_of(values.data)
    return [str(value) for value in found] if as_text else found


# Columns of single values as arrays that any process can read, and back.
#
# Numbers stand as they are; text and raw values as bytes behind each other, with where each ends; buckets as limits.
# The layout is in docs/internals/formats/grouping.md.


Arrays = Mapping[str, NDArray[Any]]

_TEXTS: Final = {Kind.STRING: "text", Kind.RAW: "raw"}
_ARRAYS_OF_NUMBERS: Final = {
    Kind.BOOL: ("bools", np.uint8),
    Kind.LONG: ("longs", np.int64),
    Kind.DOUBLE: ("doubles", np.float64),
}
_LIMITS: Final = {
    Kind.LONG_BUCKET: Kind.LONG,
    Kind.DOUBLE_BUCKET: Kind.DOUBLE,
    Kind.STRING_BUCKET: Kind.STRING,
    Kind.RAW_BUCKET: Kind.RAW,
}
_BUCKETS: Final = {limit: bucket for bucket, limit in _LIMITS.items()}
_NO_LIMIT: Final[dict[Kind, Any]] = {Kind.LONG: 0, Kind.DOUBLE: 0.0, Kind.STRING: "", Kind.RAW: b""}


def arrays_of(values: Values) -> dict[str, NDArray[Any]]:
    """Single values as arrays."""
    kind = values.kind
    if kind in _ARRAYS_OF_NUMBERS:
        name, dtype = _ARRAYS_OF_NUMBERS[kind]
        return {name: values.data.astype(dtype, copy=False)}
    if kind is Kind.NULL:
        return {"nulls": np.zeros(len(values.data), np.uint8)}
    found = values_of(values.table, values.data)
    return _text_arrays(kind, found) if kind in _TEXTS else _bucket_arrays(_LIMITS[kind], found)


def values_from(arrays: Arrays) -> Values:
    """Single values from their arrays. Errors: ValueError for arrays that are no values."""
    names = frozenset(arrays)
    if "buckets" in names:
        return _buckets_from(arrays)
    if names == {"nulls"}:
        return Values(Kind.NULL, np.zeros(len(_plain(arrays["nulls"], np.uint8)), np.uint32))
    for kind, (name, dtype) in _ARRAYS_OF_NUMBERS.items():
        if names == {name}:
            numbers = _plain(arrays[name], dtype)
            return Values(kind, numbers != 0 if kind is Kind.BOOL else numbers)
    for kind, name in _TEXTS.items():
        if names == {name, "ends"}:
            return _coded(kind, _texts_from(kind, arrays[name], arrays["ends"]))
    raise ValueError(f"the values of a state are not in the arrays {sorted(arrays)}")


def _text_arrays(kind: Kind, texts: Sequence[Any]) -> dict[str, NDArray[Any]]:
    whole = [encoded(text) if isinstance(text, str) else text for text in texts]
    ends = np.cumsum([len(text) for text in whole], dtype=np.uint64)
    return {_TEXTS[kind]: np.frombuffer(b"".join(whole), np.uint8), "ends": ends}


def _texts_from(kind: Kind, text: NDArray[Any], ends: NDArray[Any]) -> list[Any]:
    whole, bounds = _plain(text, np.uint8).tobytes(), [0, *_plain(ends, np.uint64).tolist()]
    if any(low > high for low, high in pairwise(bounds)) or bounds[-1] != len(whole):
        raise ValueError("the texts of a state do not end where they should")
    found = [whole[low:high] for low, high in pairwise(bounds)]
    return found if kind is Kind.RAW else [decoded(each) for each in found]


def _bucket_arrays(limit: Kind, buckets: Sequence[Any]) -> dict[str, NDArray[Any]]:
    """The low limits, then the high ones, and which buckets there are: a value in no bucket has None."""
    none = (_NO_LIMIT[limit],) * 2
    limits = [(none if bucket is None else bucket)[side] for side in (0, 1) for bucket in buckets]
    is_there = np.array([bucket is not None for bucket in buckets], np.uint8)
    if limit in _TEXTS:
        return {"buckets": is_there, **_text_arrays(limit, limits)}
    name, dtype = _ARRAYS_OF_NUMBERS[limit]
    return {"buckets": is_there, name: np.array(limits, dtype)}


def _buckets_from(arrays: Arrays) -> Values:
    is_there = _plain(arrays["buckets"], np.uint8)
    limits = values_from({name: array for name, array in arrays.items() if name != "buckets"})
    count = len(is_there)
    if limits.kind not in _BUCKETS or len(limits.data) != 2 * count:
        raise ValueError("the buckets of a state do not have two limits each")
    found = limits.data.tolist() if limits.table is None else limits.table.values_of(limits.data)
    pairs = zip(is_there.tolist(), found[:count], found[count:], strict=True)
    return _coded(_BUCKETS[limits.kind], [(low, high) if there else None for there, low, high in pairs])


def _coded(kind: Kind, values: Sequence[Any]) -> Values:
    """Values with one code for equal ones, as a table must have them."""
    codes: dict[Any, int] = {}
    data = [codes.setdefault(value, len(codes)) for value in values]
    return Values(kind, np.array(data, np.uint32), ListTable(list(codes)))


def _plain(array: NDArray[Any], dtype: Any) -> NDArray[Any]:
    if array.dtype != dtype or array.ndim != 1:
        raise ValueError("an array of values of a state has another type or form")
    return array
