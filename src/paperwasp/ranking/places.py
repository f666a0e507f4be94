"""The type of a slice of a tensor: where it is cut must be in the tensor.

Vespa: https://docs.vespa.ai/en/reference/ranking/ranking-expressions.html#slice
"""

from __future__ import annotations

from paperwasp.document.tensor import type_rules as rules
from paperwasp.document.tensor.types import TensorType
from paperwasp.ranking.tensor_tree import Slice


def sliced_type(node: Slice, type_: TensorType) -> TensorType:
    """Errors: ValueError that says what does not fit."""
    [first, *_] = node.places
    if first.dimension:
        for place in node.places:
            _check_place(place.dimension, place.label, type_)
        return rules.sliced(type_, [place.dimension for place in node.places])
    kind, candidates = ("indexed", type_.indexed) if first.label is None else ("mapped", type_.mapped)
    if len(candidates) != 1:
        raise ValueError(f"a slice without the name of a dimension needs one {kind} dimension, and {type_} is sliced")
    return rules.sliced(type_, [candidates[0].name])


def _check_place(name: str, label: str | None, type_: TensorType) -> None:
    for dimension in type_.indexed:
        if dimension.name == name and label is not None:
            index = int(label) if label.isdecimal() and len(label) <= 10 else -1
            if index < 0 or (dimension.size and index >= dimension.size):
                raise ValueError(f"{label!r} is no index of dimension {dimension}")
