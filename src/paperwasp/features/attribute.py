"""attribute(name), attribute(name, n) and attribute(name).count: what an attribute holds.

Vespa: https://docs.vespa.ai/en/reference/ranking/rank-features.html#attribute(name)
Differs: text attributes have no value here yet (Vespa answers a hash of it).
"""

from __future__ import annotations

import math

import numpy as np

from paperwasp.document.types import BOOL, STRING, URI, ArrayType, NumericType, TensorFieldType
from paperwasp.features.base import MatchContext
from paperwasp.features.family import Compute, Floats, RankSetup, constant, number_in, register
from paperwasp.tensor.types import NUMBER, TensorType


def _type(setup: RankSetup, arguments: tuple[str, ...], output: str) -> TensorType:
    """A tensor has its type; everything else is a number."""
    described = setup.described(arguments[0])
    is_tensor = described is not None and isinstance(described.type, TensorFieldType)
    return described.type.tensor if is_tensor and output in ("", "value") else NUMBER  # type: ignore[union-attr]


def _pending(setup: RankSetup, arguments: tuple[str, ...], output: str) -> str:
    described = setup.described(arguments[0])
    assert described is not None
    if _type(setup, arguments, output) is not NUMBER:
        return ""  # it is the type that is not executed
    kind = described.type.element if isinstance(described.type, ArrayType) else described.type
    is_read = output in ("", "value") and (kind is described.type or len(arguments) == 2)
    executed = isinstance(kind, NumericType) or (kind in (STRING, URI) and not is_read)
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
def bind(setup: RankSetup, arguments: tuple[str, ...], output: str) -> Compute:
    name = arguments[0]
    described = setup.schema.fields[name]
    is_array = isinstance(described.type, ArrayType)
    if output == "count":
        return _count(name) if is_array and len(arguments) == 1 else constant(0.0 if is_array else 1.0)
    if output in ("weight", "contains"):
        return constant(0.0)
    element = number_in(arguments[1], "attribute") if len(arguments) == 2 else None
    if is_array and element is None:
        return constant(0.0)
    if is_array and element is not None:
        return _element(name, element)
    # A single value is the value at any index, as Vespa looks it up. A bool has no unset value.
    return _value(name, math.nan if described.type != BOOL else 0.0)


def _value(name: str, unset: float) -> Compute:
    def compute(context: MatchContext) -> Floats:
        values = context.attribute(name)
        return values if math.isnan(unset) else np.where(np.isnan(values), unset, values)

    return compute


def _element(name: str, element: int) -> Compute:
    def compute(context: MatchContext) -> Floats:
        return context.attribute_element(name, element)

    return compute


def _count(name: str) -> Compute:
    def compute(context: MatchContext) -> Floats:
        return context.attribute_count(name)

    return compute
