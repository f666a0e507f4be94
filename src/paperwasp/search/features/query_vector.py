"""Vectors that a query brings as text, in rank properties: for dotProduct and euclideanDistance.

`[1 2 3]` (or with commas) and `{0:1,2:3}` for arrays, `{key:weight,…}` for weighted sets; `(…)` stands for `{…}`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from paperwasp import limits
from paperwasp.base.records import dataclass
from paperwasp.errors import InvalidQuery
from paperwasp.search.features.family import Floats

_LONGEST_INDEX: Final = 9
"""Digits."""


@dataclass(frozen=True, slots=True, eq=False)
class SparseVector:
    """Numbers by their index; all others are 0."""

    indexes: NDArray[np.int64]
    """Rising."""
    values: Floats

    @property
    def length(self) -> int:
        return int(self.indexes[-1]) + 1 if len(self.indexes) else 0

    def at(self, indexes: NDArray[np.int64]) -> Floats:
        """The numbers with these indexes."""
        if not len(self.indexes):
            return np.zeros(len(indexes))
        places = np.minimum(np.searchsorted(self.indexes, indexes), len(self.indexes) - 1)
        return np.where(self.indexes[places] == indexes, self.values[places], 0.0)


@lru_cache(maxsize=64)
def array_vector(name: str, text: str, whole: bool) -> SparseVector:
    """The vector `name` for an array; `whole`: one of integers. Errors: InvalidQuery."""
    text = text.strip()
    if text[:1] == "[" and text[-1:] == "]":
        items = [item for item in re.split(r"[\s,]+", text[1:-1]) if item]
        _check_length(name, len(items))
        pairs = [(index, _number(name, item, whole)) for index, item in enumerate(items)]
    else:
        pairs = [(_index(name, key), _number(name, value, whole)) for key, value in _pairs(name, text)]
    found = dict(pairs)
    indexes = np.array(sorted(found), np.int64)
    return SparseVector(indexes, np.array([found[index] for index in indexes.tolist()], np.float64))


@lru_cache(maxsize=64)
def weight_vector(name: str, text: str) -> Mapping[str, float]:
    """The vector `name` for a weighted set. Errors: InvalidQuery."""
    return {key: _number(name, value, whole=False) for key, value in _pairs(name, text.strip())}


def _pairs(name: str, text: str) -> list[tuple[str, str]]:
    if (text[:1], text[-1:]) not in (("{", "}"), ("(", ")")) or len(text) < 2:
        raise InvalidQuery(f"{name}: expected a vector such as {{a:1,b:2}} or [1 2], not {_short(text)}")
    inner = text[1:-1]
    items = inner.split(",") if inner.strip() else []
    _check_length(name, len(items))
    pairs = []
    for item in items:
        key, colon, value = item.partition(":")
        if not colon:
            raise InvalidQuery(f"{name}: expected ':' between a dimension and its number in {_short(item)}")
        pairs.append((key.lstrip(" "), value.strip()))
    return pairs


def _check_length(name: str, length: int) -> None:
    if length > limits.QUERY_VECTOR_ITEMS:
        raise InvalidQuery(f"{name}: a vector of {length} numbers; at most {limits.QUERY_VECTOR_ITEMS}")


def _index(name: str, key: str) -> int:
    key = key.strip()
    if not (key.isascii() and key.isdigit() and len(key) <= _LONGEST_INDEX):
        raise InvalidQuery(f"{name}: expected an index counted from 0, not {_short(key)}")
    return int(key)


def _number(name: str, text: str, whole: bool) -> float:
    try:
        if "_" in text:  # which Python allows in numbers
            raise ValueError
        return float(int(text)) if whole else float(text)
    except (ValueError, OverflowError):
        expected = "an integer" if whole else "a number"
        raise InvalidQuery(f"{name}: expected {expected}, not {_short(text)}") from None


def _short(text: str) -> str:
    return repr(text if len(text) <= 40 else f"{text[:40]}…")
