"""dotProduct and euclideanDistance: attributes with a vector that the query brings as text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Final

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from paperwasp import limits
from paperwasp.document.tensor.value import Tensor
from paperwasp.document.types import BYTE, INT, LONG, STRING, ArrayType, NumericType, WeightedSetType
from paperwasp.errors import InvalidQuery
from paperwasp.search.features.block import Block
from paperwasp.search.features.family import Compute, Floats, RankSetup, constant, one, register
from paperwasp.storage.attributes.elements import numbers_in, numbers_within, sums_by_key, sums_of

# Vectors that a query brings as text, in rank properties: for dotProduct and euclideanDistance.
#
# `[1 2 3]` (or with commas) and `{0:1,2:3}` for arrays, `{key:weight,…}` for weighted sets; `(…)` stands for `{…}`.


_LONGEST_INDEX: Final = 9
"""Digits."""


class SparseVector(Struct, frozen=True, eq=False):
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


# dotProduct(attribute, vector): of a weighted set or an array of numbers with a vector of the query.
#
# The vector is the rank property `dotProduct.vector` of the query, or, where that is not set, its input
# `query(vector)`: a tensor of one dimension, mapped for a weighted set and indexed for an array.
# Vespa: https://docs.vespa.ai/en/reference/ranking/rank-features.html#dotProduct(name,vector)
# Differs: a vector that is not understood is an error; Vespa computes with what stands before the mistake.


INTEGERS = (BYTE, INT, LONG)


@register("dotProduct", "attribute", "name")
def bind_dot_product(setup: RankSetup, arguments: tuple[str, ...], output: str) -> Compute:
    field, vector = arguments
    described = setup.described(field)
    assert described is not None
    match described.type:
        case WeightedSetType(key=NumericType() as key) if key in INTEGERS:
            return _of_weighted_set(field, vector, is_numeric=True)
        case WeightedSetType() if described.type.key == STRING:
            return _of_weighted_set(field, vector, is_numeric=False)
        case ArrayType(element=NumericType()):
            return _of_array(field, vector, described.type.element in INTEGERS)
    return constant(0.0)


def _of_weighted_set(field: str, vector: str, is_numeric: bool) -> Compute:
    def compute(block: Block) -> Floats:
        weights = _weights(block, vector)
        keys: Iterator[int | str | None] = iter(weights)
        if is_numeric:  # such a set may have keys of 18 digits
            keys = (int(key) if re.fullmatch(r"\s*[+-]?[0-9]{1,18}\s*", key, re.ASCII) else None for key in weights)
        known = {key: weight for key, weight in zip(keys, weights.values(), strict=True) if key is not None}
        return sums_by_key(block.column(field), block.lids, known) if known else one(0.0)

    return compute


def _weights(block: Block, vector: str) -> Mapping[str, float]:
    name = f"dotProduct.{vector}"
    if text := block.setting.properties.get(name, "").strip("\"'"):
        return weight_vector(name, text)
    tensor = _tensor(block, vector, mapped=True)
    if tensor is None:
        return {}
    return {label: float(cell) for (label,), cell in zip(tensor.labels, tensor.cells.tolist(), strict=True)}


def _of_array(field: str, vector: str, whole: bool) -> Compute:
    def compute(block: Block) -> Floats:
        found = _array(block, vector, whole)
        if found is None or not len(found.indexes):
            return one(0.0)
        counts, values = numbers_in(block.column(field), block.lids)
        within = numbers_within(counts)
        # What stands beyond the vector does not count, not even where it is no number.
        factors = found.at(within)
        with np.errstate(invalid="ignore"):
            return sums_of(counts, np.where(within < found.length, values * factors, 0.0))

    return compute


def _array(block: Block, vector: str, whole: bool) -> SparseVector | None:
    name = f"dotProduct.{vector}"
    if text := block.setting.properties.get(name, "").strip("\"'"):
        return array_vector(name, text, whole)
    tensor = _tensor(block, vector, mapped=False)
    if tensor is None:
        return None
    cells = tensor.cells.reshape(-1).astype(np.float64)
    return SparseVector(np.arange(len(cells)), cells)


def _tensor(block: Block, vector: str, mapped: bool) -> Tensor | None:
    """The input of that name. Errors: InvalidQuery for one of another shape."""
    tensor = block.setting.tensors.get(vector)
    if tensor is None:
        return None
    shape = (len(tensor.type.mapped), len(tensor.type.indexed))
    if shape != ((1, 0) if mapped else (0, 1)):
        expected = "one mapped dimension" if mapped else "one indexed dimension"
        raise InvalidQuery(f"dotProduct: query({vector}) is a {tensor.type}: {expected} is expected")
    return tensor


# euclideanDistance(attribute, vector): between an array of numbers and a vector of the query.
#
# The vector is the rank property `euclideanDistance.vector` of the query; what is beyond the shorter of both does not
# count.
# Vespa: not in its reference; a feature of its content nodes.


NAME = "euclideanDistance"


@register(NAME, "attribute", "name", outputs=("distance",))
def bind_euclidean_distance(setup: RankSetup, arguments: tuple[str, ...], output: str) -> Compute:
    field, vector = arguments
    described = setup.described(field)
    assert described is not None
    if not (isinstance(described.type, ArrayType) and isinstance(described.type.element, NumericType)):
        return constant(0.0)
    whole = described.type.element in INTEGERS
    name = f"{NAME}.{vector}"

    def compute(block: Block) -> Floats:
        text = block.setting.properties.get(name, "").strip("\"'")
        if not text:
            return one(0.0)
        found = array_vector(name, text, whole)
        counts, values = numbers_in(block.column(field), block.lids)
        within = numbers_within(counts)
        apart = np.where(within < found.length, values - found.at(within), 0.0)
        return np.sqrt(sums_of(counts, apart * apart))

    return compute
