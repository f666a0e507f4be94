"""The tensor functions of ranking expressions, in one table: what each takes, and the type of what it gives.

Functions that Vespa defines by others have the type of that definition.
Vespa: https://docs.vespa.ai/en/reference/ranking/ranking-expressions.html#tensor-functions
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, Literal

from msgspec import Struct

from paperwasp.document.tensor import types as rules
from paperwasp.document.tensor.types import CELL_TYPES, NUMBER, Dimension, TensorType
from paperwasp.ranking.tree import Slice

Parameter = Literal[
    "tensor", "lambda", "lambda2", "dimension", "dimensions", "names", "aggregator", "cells", "order", "endian"
]
"""An expression; a function of one value, or of two; one dimension, or the rest of the arguments; names in parentheses;
or one of `CHOICES`."""

CHOICES: Final[Mapping[Parameter, tuple[str, ...]]] = {
    "aggregator": ("avg", "count", "max", "median", "min", "prod", "sum"),
    "cells": CELL_TYPES,
    "order": ("max", "min"),
    "endian": ("big", "little"),
}
"""The words that an argument can be."""


class Operands(Struct, frozen=True):
    """The parts of a call that its type depends on."""

    types: tuple[TensorType, ...]
    """The types of the arguments that are expressions."""
    words: tuple[str, ...]
    names: tuple[tuple[str, ...], ...]
    of_lambda: Callable[..., TensorType]
    """The type that the lambda gives, from those of its parameters."""


class TensorFunction(Struct, frozen=True):
    """One tensor function. The last `optional` parameters may be left out. Type rules raise ValueError."""

    parameters: tuple[Parameter, ...]
    type: Callable[[Operands], TensorType]
    optional: int = 0


def _cellwise(lambda_parameters: int, combine: Callable[..., TensorType]) -> Callable[[Operands], TensorType]:
    """The type rule of functions that take a lambda over the values of cells."""

    def type_of(given: Operands) -> TensorType:
        value = given.of_lambda(*[NUMBER] * lambda_parameters)
        if not value.is_number:
            raise ValueError(f"a function of cells must give a number, not a {value}")
        return combine(*given.types)

    return type_of


def _with_reduced(given: Operands) -> TensorType:
    """The type of functions that combine a tensor with what it reduces to."""
    [type_] = given.types
    return rules.joined(type_, rules.reduced(type_, given.words))


def _product(given: Operands) -> TensorType:
    return rules.reduced(rules.joined(*given.types[:2]), given.words)


def _map_subspaces(given: Operands) -> TensorType:
    [type_] = given.types
    return rules.with_subspaces(type_, given.of_lambda(rules.dense_part(type_)))


def _filter_subspaces(given: Operands) -> TensorType:
    [type_] = given.types
    given.of_lambda(rules.dense_part(type_))
    return rules.filtered(type_)


def _unpack_bits(given: Operands) -> TensorType:
    return rules.unpacked(given.types[0], given.words[0] if given.words else "float")


def _expand(given: Operands) -> TensorType:
    [dimension] = given.words
    return rules.joined(given.types[0], TensorType.of([Dimension(dimension, 1)]))


def _top(given: Operands) -> TensorType:
    count, type_ = given.types
    return rules.joined(type_, rules.filtered(rules.joined(rules.mapped(type_), count)))


_OVER_DIMENSIONS: Final[tuple[Parameter, ...]] = ("tensor", "dimensions")
_PAIR_IN_DIMENSION: Final[tuple[Parameter, ...]] = ("tensor", "tensor", "dimension")

FUNCTIONS: Final[Mapping[str, TensorFunction]] = {
    "map": TensorFunction(("tensor", "lambda"), _cellwise(1, rules.mapped)),
    "map_subspaces": TensorFunction(("tensor", "lambda"), _map_subspaces),
    "filter_subspaces": TensorFunction(("tensor", "lambda"), _filter_subspaces),
    "reduce": TensorFunction(("tensor", "aggregator", "dimensions"), lambda g: rules.reduced(g.types[0], g.words[1:])),
    "join": TensorFunction(("tensor", "tensor", "lambda2"), _cellwise(2, rules.joined)),
    "merge": TensorFunction(("tensor", "tensor", "lambda2"), _cellwise(2, rules.merged)),
    "rename": TensorFunction(("tensor", "names", "names"), lambda g: rules.renamed(g.types[0], *g.names)),
    "concat": TensorFunction(_PAIR_IN_DIMENSION, lambda g: rules.concatenated(g.types[0], g.types[1], g.words[0])),
    "cell_cast": TensorFunction(("tensor", "cells"), lambda g: rules.cast(g.types[0], g.words[0])),
    "cell_order": TensorFunction(("tensor", "order"), lambda g: rules.mapped(g.types[0])),
    **dict.fromkeys(
        CHOICES["aggregator"], TensorFunction(_OVER_DIMENSIONS, lambda g: rules.reduced(g.types[0], g.words))
    ),
    **dict.fromkeys(
        ("argmax", "argmin", "l1_normalize", "l2_normalize", "softmax"),
        TensorFunction(_OVER_DIMENSIONS, _with_reduced),
    ),
    **dict.fromkeys(
        ("cosine_similarity", "euclidean_distance", "matmul"), TensorFunction(_PAIR_IN_DIMENSION, _product)
    ),
    "xw_plus_b": TensorFunction(
        ("tensor", "tensor", "tensor", "dimension"), lambda g: rules.joined(_product(g), g.types[2])
    ),
    "expand": TensorFunction(("tensor", "dimension"), _expand),
    "top": TensorFunction(("tensor", "tensor"), _top),
    "unpack_bits": TensorFunction(("tensor", "cells", "endian"), _unpack_bits, optional=2),
}

OF_TYPE: Final = frozenset(("range", "diag", "random"))
"""Functions that take the dimensions of an indexed tensor type."""


def sliced_type(node: Slice, type_: TensorType) -> TensorType:
    """Return the type of a slice of a tensor. Errors: ValueError where it is cut at a place that is not in the tensor.

    Vespa: https://docs.vespa.ai/en/reference/ranking/ranking-expressions.html#slice
    """
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
