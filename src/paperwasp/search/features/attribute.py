"""attribute(name), attribute(name, n), attribute(name, key).weight and attribute(name).count: what an attribute holds.

A text is its hash (`ranking.text_hash`); a tensor is a tensor.
Vespa: https://docs.vespa.ai/en/reference/ranking/rank-features.html#attribute(name)
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np
from msgspec import Struct

from paperwasp.base.patterns import compile_later
from paperwasp.document.tensor.batch import KeptTensors, StoredTensors, TensorBatch
from paperwasp.document.tensor.types import NUMBER, TensorType
from paperwasp.document.types import (
    BOOL,
    STRING,
    URI,
    ArrayType,
    DataType,
    NumericType,
    TensorFieldType,
    WeightedSetType,
)
from paperwasp.document.z_curve import z_curve
from paperwasp.ranking.text_hash import text_hash
from paperwasp.schema.model import Field
from paperwasp.schema.pending import Z_CURVE_SUFFIX, is_z_curve
from paperwasp.search.features.block import Block
from paperwasp.search.features.family import Compute, Floats, RankSetup, constant, number_in, register
from paperwasp.storage.attributes.elements import kept_tensors, positions_in, stored_tensors, tensors_in, text_numbers

# attribute(position_zcurve): a position, or the positions of an array, as numbers that interleave their bits.
#
# Vespa has an attribute of that name for each attribute of positions; here the positions are a column of their own.


def z_curve_feature(setup: RankSetup, name: str, element: int | None, output: str) -> Compute:
    """An output of the attribute of this name; `element` of an array."""
    field = name.removesuffix(Z_CURVE_SUFFIX)
    is_array = isinstance(setup.field(field).type, ArrayType)
    if output == "count":
        return _z_curve_count(field) if is_array and element is None else constant(0.0 if is_array else 1.0)
    if output in ("weight", "contains") or (is_array and element is None):
        return constant(0.0)
    return _z_curve_value(field, element if is_array and element is not None else 0, 0.0 if is_array else np.nan)


def _z_curve_count(field: str) -> Compute:
    def compute(block: Block) -> Floats:
        return positions_in(block.column(field), block.lids)[0].astype(np.float64)

    return compute


def _z_curve_value(field: str, element: int, unset: float) -> Compute:
    def compute(block: Block) -> Floats:
        counts, positions = positions_in(block.column(field), block.lids)
        starts = np.cumsum(counts) - counts
        there = counts > element
        values = np.full(len(counts), unset)
        values[there] = z_curve(positions[starts[there] + element])
        return values

    return compute


_WHOLE: Final = compile_later(r"\s*[+-]?[0-9]{1,19}")


def _type(setup: RankSetup, arguments: tuple[str, ...], output: str) -> TensorType:
    """A tensor has its type; everything else is a number."""
    described = setup.schema.field_named(arguments[0])
    is_tensor = described is not None and isinstance(described.type, TensorFieldType)
    return described.type.tensor if is_tensor and output in ("", "value") else NUMBER  # type: ignore[union-attr]


def _pending(setup: RankSetup, arguments: tuple[str, ...], output: str) -> str:
    described = setup.schema.field_named(arguments[0])
    assert described is not None
    kind = described.type
    if isinstance(kind, WeightedSetType | ArrayType):
        kind = kind.key if isinstance(kind, WeightedSetType) else kind.element
    executed = isinstance(kind, NumericType | TensorFieldType) or kind in (STRING, URI)
    return "" if executed else f"attribute({arguments[0]}) of type {described.type}"


@register(
    "attribute",
    "attribute",
    "name",
    optional=1,
    outputs=("value", "weight", "contains", "count"),
    type_=_type,
    pending=_pending,
)
def bind(setup: RankSetup, arguments: tuple[str, ...], output: str) -> Callable[[Block], Any]:
    name = arguments[0]
    described = setup.schema.field_named(name)
    assert described is not None
    type_ = _type(setup, arguments, output)
    if not type_.is_number:
        return TensorAttribute(name, type_)
    if isinstance(described.type, WeightedSetType):
        return _of_weighted_set(name, described.type.key, arguments[1:], output)
    is_array = isinstance(described.type, ArrayType)
    if isinstance(described, Field) and is_z_curve(described, setup.schema):
        return z_curve_feature(setup, name, number_in(arguments[1], "attribute") if arguments[1:] else None, output)
    if output == "count":
        return _count(name) if is_array and len(arguments) == 1 else constant(0.0 if is_array else 1.0)
    if output in ("weight", "contains"):
        return constant(0.0)
    element = number_in(arguments[1], "attribute") if len(arguments) == 2 else None
    if is_array and element is None:
        return constant(0.0)
    kind = described.type.element if isinstance(described.type, ArrayType) else described.type
    if kind in (STRING, URI):
        return _hash(name, element if is_array and element is not None else 0)
    if is_array and element is not None:
        return _element(name, element)
    if isinstance(kind, TensorFieldType):
        return constant(0.0)
    # A single value is the value at any index, as Vespa looks it up. A bool has no unset value.
    return _value(name, math.nan if described.type != BOOL else 0.0)


class TensorAttribute(Struct, frozen=True):
    """The tensor of each hit; `kept` tells where it stands, `stored` where those of all documents do."""

    name: str
    type: TensorType

    def __call__(self, block: Block) -> TensorBatch:
        return tensors_in(block.column(self.name), block.lids, self.type, block.setting.label_table(self.name))

    def kept(self, block: Block) -> KeptTensors:
        return kept_tensors(block.column(self.name), block.lids, self.type)

    def stored(self, block: Block) -> StoredTensors | None:
        return stored_tensors(block.column(self.name), self.type)


def _of_weighted_set(name: str, key_type: DataType, keys: tuple[str, ...], output: str) -> Compute:
    """Without a key there is a count alone, and with one there is none, as Vespa computes it."""
    if not keys:
        return _count(name) if output == "count" else constant(0.0)
    if output == "count":
        return constant(0.0)
    key: str | int = _whole(keys[0]) if isinstance(key_type, NumericType) else keys[0]
    value = float(key) if isinstance(key, int) else text_hash(key)

    def compute(block: Block) -> Floats:
        weights = block.column(name).weights(block.lids, key)
        if output == "weight":
            return np.nan_to_num(weights)
        return np.where(np.isnan(weights), 0.0, 1.0 if output == "contains" else value)

    return compute


def _whole(key: str) -> int:
    """The number that a key begins with; 0 where it begins with none."""
    found = _WHOLE.match(key)
    return int(found[0]) if found else 0


def _value(name: str, unset: float) -> Compute:
    def compute(block: Block) -> Floats:
        values = block.column(name).as_float64(block.lids)
        return values if math.isnan(unset) else np.where(np.isnan(values), unset, values)

    return compute


def _hash(name: str, element: int) -> Compute:
    def compute(block: Block) -> Floats:
        return text_numbers(block.column(name), block.lids, element, block.setting.hash_table)

    return compute


def _element(name: str, element: int) -> Compute:
    def compute(block: Block) -> Floats:
        return block.column(name).element(block.lids, element)

    return compute


def _count(name: str) -> Compute:
    def compute(block: Block) -> Floats:
        return block.column(name).counts(block.lids)

    return compute
