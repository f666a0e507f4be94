"""Columns of single values as arrays that any process can read, and back.

Numbers stand as they are; text and raw values as bytes behind each other, with where each ends; buckets as limits.
The layout is in docs/internals/formats/grouping.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from paperwasp.search.grouping.tables import decoded, encoded, values_of
from paperwasp.search.grouping.values import Kind, ListTable, Values

Arrays = Mapping[str, NDArray[Any]]

_TEXTS: Final = {Kind.STRING: "text", Kind.RAW: "raw"}
_NUMBERS: Final = {Kind.BOOL: ("bools", np.uint8), Kind.LONG: ("longs", np.int64), Kind.DOUBLE: ("doubles", np.float64)}
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
    if kind in _NUMBERS:
        name, dtype = _NUMBERS[kind]
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
    for kind, (name, dtype) in _NUMBERS.items():
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
    name, dtype = _NUMBERS[limit]
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
