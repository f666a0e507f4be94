"""tensorFromLabels, tensorFromWeightedSet, tensorFromLabelsWithOffset and tensorFromStructs: attributes as tensors.

The labels are the elements of an attribute of strings or whole numbers; the first two also take query(name), a text
such as `[a,b]` or `{a:1,b:2}`. An attribute of another kind gives a tensor without cells, as in Vespa.

Vespa: https://docs.vespa.ai/en/reference/ranking/rank-features.html#document-features
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import islice
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from paperwasp.base.patterns import compile_later
from paperwasp.document.tensor.algebra import converted
from paperwasp.document.tensor.batch import TensorBatch
from paperwasp.document.tensor.types import Dimension, TensorType
from paperwasp.document.types import ArrayType, MapType, NumericType, StructType, TensorFieldType, WeightedSetType
from paperwasp.errors import LanguageError
from paperwasp.search.features.block import Block
from paperwasp.search.features.family import RankSetup, TensorCompute, check_field, register
from paperwasp.storage.attributes.elements import labelled, numbers_in, numbers_within

_SOURCE: Final = compile_later(r"(attribute|query)\((.+)\)")
_INT32: Final = compile_later(r"\s*([+-]?[0-9]{1,10})")


def _source(argument: str, feature: str) -> tuple[str, str]:
    """The kind of the source, and its name."""
    match = _SOURCE.fullmatch(argument)
    if match is None:
        raise LanguageError(f"rank feature {feature!r} takes attribute(name) or query(name), not {argument!r}")
    return match[1], match[2]


def _one_mapped(feature: str, wrong: tuple[type, ...]) -> Any:
    """The rule for the type: one mapped dimension, that of the second argument, or named as the source.
    `wrong`: the types of fields that the feature is not for."""

    def type_of(setup: RankSetup, arguments: tuple[str, ...], output: str) -> TensorType:
        kind, name = _source(arguments[0], feature)
        if kind == "attribute":
            check_field("attribute", name, setup, feature)
            described = setup.described(name)
            assert described is not None
            is_set = isinstance(described.type, WeightedSetType)
            if isinstance(described.type, wrong) or (not is_set and WeightedSetType not in wrong):
                raise LanguageError(f"rank feature {feature!r}: field {name!r} is a {described.type}")
        return TensorType.of([Dimension(arguments[1] if len(arguments) > 1 else name)])

    return type_of


_NO_LABELS: Final = (MapType, StructType, TensorFieldType)


@register(
    "tensorFromLabels",
    "name",
    "name",
    optional=1,
    outputs=("tensor",),
    type_=_one_mapped("tensorFromLabels", (*_NO_LABELS, WeightedSetType)),
)
def bind_labels(setup: RankSetup, arguments: tuple[str, ...], output: str) -> TensorCompute:
    kind, name = _source(arguments[0], "tensorFromLabels")
    type_ = TensorType.of([Dimension(arguments[1] if len(arguments) > 1 else name)])

    def compute(block: Block) -> TensorBatch:
        if kind == "query":
            return _of_query(block, type_, [(label, 1.0) for label in _listed(block.setting.texts.get(name, ""))])
        counts, labels, weights = labelled(block.column(name), block.lids, block.setting.label_table(name))
        return _distinct(type_, counts, labels.reshape(-1, 1), np.ones(len(weights)))

    return compute


@register(
    "tensorFromWeightedSet",
    "name",
    "name",
    optional=1,
    outputs=("tensor",),
    type_=_one_mapped("tensorFromWeightedSet", _NO_LABELS),
)
def bind_weighted_set(setup: RankSetup, arguments: tuple[str, ...], output: str) -> TensorCompute:
    kind, name = _source(arguments[0], "tensorFromWeightedSet")
    type_ = TensorType.of([Dimension(arguments[1] if len(arguments) > 1 else name)])

    def compute(block: Block) -> TensorBatch:
        if kind == "query":
            return _of_query(block, type_, _weighted(block.setting.texts.get(name, "")))
        counts, labels, weights = labelled(block.column(name), block.lids, block.setting.label_table(name))
        return _distinct(type_, counts, labels.reshape(-1, 1), weights)

    return compute


def _two_mapped(setup: RankSetup, arguments: tuple[str, ...], output: str) -> TensorType:
    """A dimension of labels, and one of their places in the array."""
    if arguments[1] == arguments[2]:
        raise LanguageError(f"the two dimensions of a tensor cannot both be {arguments[1]!r}")
    kind, name = _source(arguments[0], "tensorFromLabelsWithOffset")
    check_field("attribute", name, setup, "tensorFromLabelsWithOffset")
    described = setup.described(name)
    if kind != "attribute" or described is None or isinstance(described.type, (*_NO_LABELS, WeightedSetType)):
        raise LanguageError(f"tensorFromLabelsWithOffset takes attribute(name) of an array, not {arguments[0]!r}")
    return TensorType.of([Dimension(arguments[1]), Dimension(arguments[2])])


@register("tensorFromLabelsWithOffset", "name", "name", "name", outputs=("tensor",), type_=_two_mapped)
def bind_with_offset(setup: RankSetup, arguments: tuple[str, ...], output: str) -> TensorCompute:
    _, name = _source(arguments[0], "tensorFromLabelsWithOffset")
    type_ = _two_mapped(setup, arguments, output)
    order = [0, 1] if arguments[1] < arguments[2] else [1, 0]

    def compute(block: Block) -> TensorBatch:
        counts, labels, weights = labelled(block.column(name), block.lids, block.setting.label_table(name))
        places = np.stack([labels, numbers_within(counts)], axis=1)[:, order]
        return _distinct(type_, counts, places, np.ones(len(weights)))

    return compute


def _of_structs(setup: RankSetup, arguments: tuple[str, ...], output: str) -> TensorType:
    """A mapped dimension for each key."""
    keys, value, cells = arguments[1:-2], arguments[-2], arguments[-1]
    kind, name = _source(arguments[0], "tensorFromStructs")
    described = setup.described(name)
    if kind != "attribute":
        raise LanguageError(f"tensorFromStructs takes attribute(name), not {arguments[0]!r}")
    if described is None or not any(isinstance(type_, StructType) for type_ in described.type.walk()):
        raise LanguageError(f"tensorFromStructs: {name!r} is no array of structs in {setup.schema.name!r}")
    if not 1 <= len(keys) <= 3 or len(set(keys)) < len(keys):
        raise LanguageError("tensorFromStructs takes one to three keys, each once")
    if cells not in ("float", "double"):
        raise LanguageError(f"the cell type is float or double, not {cells!r}")
    for part in (*keys, value):
        check_field("attribute", f"{name}.{part}", setup, "tensorFromStructs")
    return TensorType.of([Dimension(key) for key in keys], cells)


@register(
    "tensorFromStructs", "name", "name", "name", "name", "name", repeated=True, outputs=("tensor",), type_=_of_structs
)
def bind_structs(setup: RankSetup, arguments: tuple[str, ...], output: str) -> TensorCompute:
    _, name = _source(arguments[0], "tensorFromStructs")
    type_ = _of_structs(setup, arguments, output)
    values = f"{name}.{arguments[-2]}"
    kind = setup.schema.field_named(values)
    element = kind.type.element if kind is not None and isinstance(kind.type, ArrayType) else None
    is_number = isinstance(element, NumericType)

    def compute(block: Block) -> TensorBatch:
        names = [f"{name}.{dimension.name}" for dimension in type_.dimensions]
        keys = [labelled(block.column(each), block.lids, block.setting.label_table(each)) for each in names]
        counts, cells = numbers_in(block.column(values), block.lids)
        least = np.minimum.reduce([counts, *(key[0] for key in keys)]) if is_number else np.zeros_like(counts)
        labels = np.stack([_first(key[1], key[0], least) for key in keys], axis=1)
        return _distinct(type_, least, labels, _first(cells, counts, least))

    return compute


def _first(values: NDArray[Any], counts: NDArray[np.int64], kept: NDArray[np.int64]) -> NDArray[Any]:
    """For each hit, how many of its values there are."""
    taken: NDArray[Any] = values[numbers_within(counts) < np.repeat(kept, counts)]
    return taken


def _distinct(
    type_: TensorType, counts: NDArray[np.int64], labels: NDArray[np.int64], cells: NDArray[np.float64]
) -> TensorBatch:
    """Tensors of these cells; of those with the same labels the last one counts."""
    owners = np.repeat(np.arange(len(counts)), counts)
    rows = np.concatenate([owners[:, None], labels], axis=1)[::-1]
    _, last = np.unique(rows, axis=0, return_index=True)
    kept = np.sort(len(rows) - 1 - last)
    starts = np.searchsorted(owners[kept], np.arange(len(counts) + 1)).astype(np.int64)
    return TensorBatch(type_, starts, labels[kept], converted(cells[kept], type_.cell_type))


def _of_query(block: Block, type_: TensorType, cells: Sequence[tuple[str, float]]) -> TensorBatch:
    unique = dict(cells)
    labels = block.labels.numbers(unique).reshape(-1, 1)
    starts = np.array([0, len(unique)], np.int64)
    return TensorBatch(type_, starts, labels, np.array(list(unique.values()), np.float64), is_single=True)


_MOST_LABELS: Final = 1 << 16


def _listed(text: str) -> list[str]:
    """The labels of `[a,b]` or `[a b]`."""
    text = text.strip()
    if not (text.startswith("[") and text.endswith("]")):
        return []
    parts = (part.strip() for part in re.split(r"[,\s]", text[1:-1]))
    return list(islice((part for part in parts if part), _MOST_LABELS))


def _weighted(text: str) -> list[tuple[str, float]]:
    """The labels and weights of `{a:1,b:2}`."""
    text = text.strip()
    if not (text.startswith(("{", "(")) and text.endswith(("}", ")"))):
        return []
    found = []
    for part in islice(text[1:-1].split(","), _MOST_LABELS):
        label, colon, weight = part.rpartition(":")
        if colon:
            number = _INT32.match(weight)
            found.append((label.strip(), float(number[1]) if number else 0.0))
    return found
