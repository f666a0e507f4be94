"""Expressions on tensors: `binarize`, `pack_bits`, `to_tensor`."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from paperwasp.document.tensor.types import Dimension, TensorType
from paperwasp.document.tensor.value import Tensor, TensorBuilder, as_cells
from paperwasp.document.types import (
    ArrayType,
    DataType,
    TensorFieldType,
    tensor_field,
)
from paperwasp.indexing.scope import NEEDED, Compiled, Run, Scope, ScriptError, Value, compiles
from paperwasp.indexing.values import is_number
from paperwasp.schema.indexing_tree import Expression

_BYTE_BITS: Final = 8


@compiles("binarize")
def _binarize(expression: Expression, type_: DataType | None, scope: Scope) -> Compiled:
    if not isinstance(type_, TensorFieldType):
        scope.expected(expression, "tensor", type_)
    threshold = float(expression.arguments[0].rstrip("fFlL")) if expression.arguments else 0.0

    def binarize(tensor: Value, run: Run) -> Tensor:
        return Tensor(tensor.type, tensor.labels, (tensor.cells > threshold).astype(tensor.cells.dtype))

    return Compiled(binarize, type_)


@compiles("pack_bits")
def _pack_bits(expression: Expression, type_: DataType | None, scope: Scope) -> Compiled:
    if not isinstance(type_, TensorFieldType) or len(type_.tensor.indexed) != 1:
        scope.fail(expression, f"Require a tensor with one dense dimension, but got {type_}")
    (dense,) = type_.tensor.indexed
    packed = Dimension(dense.name, math.ceil((dense.size or 0) / _BYTE_BITS))
    made = TensorType.of([*type_.tensor.mapped, packed], "int8")

    def pack(tensor: Value, run: Run) -> Tensor:
        return Tensor(made, tensor.labels, np.packbits(tensor.cells > 0, axis=-1).view(np.int8))

    return Compiled(pack, tensor_field(made))


def _unpacked(needed: DataType) -> DataType:
    """The type that `pack_bits` needs to make another. Vespa: PackBitsExpression.setOutputType."""
    if not isinstance(needed, TensorFieldType) or len(needed.tensor.indexed) != 1:
        return needed
    (dense,) = needed.tensor.indexed
    bits = Dimension(dense.name, (dense.size or 0) * _BYTE_BITS)
    return tensor_field(TensorType.of([*needed.tensor.mapped, bits], "double"))


NEEDED["pack_bits"] = _unpacked


@compiles("to_tensor")
def _to_tensor(expression: Expression, type_: DataType | None, scope: Scope) -> Compiled:
    """Compiles to_tensor: of the elements of an array, along a new dimension; the type is that of the field."""
    if not isinstance(scope.type, TensorFieldType):
        scope.fail(expression, f"This creates a tensor, but type {scope.type} is needed")
    target = scope.type.tensor
    if not isinstance(type_, ArrayType) or not (is_number(type_.element) or isinstance(type_.element, TensorFieldType)):
        scope.expected(expression, "Array of numbers or tensors", type_)
    dimension = _dimension(expression, target, scope)
    inner = type_.element.tensor if isinstance(type_.element, TensorFieldType) else TensorType()
    others = tuple(each for each in target.dimensions if each.name != dimension.name)
    if others != inner.dimensions:
        message = f"{target} has not the dimension {dimension.name} and those of {type_.element}"
        scope.fail(expression, message)

    def collect(values: Value, run: Run) -> Tensor:
        if dimension.size is not None and len(values) != dimension.size:
            raise ScriptError(f"to_tensor needs {dimension.size} elements for {dimension}, and there are {len(values)}")
        return _numbers(values, target) if not inner.dimensions else _stack(values, inner, target, dimension)

    return Compiled(collect, scope.type)


def _dimension(expression: Expression, target: TensorType, scope: Scope) -> Dimension:
    """The one that is named, or the only one."""
    known = {dimension.name: dimension for dimension in target.dimensions}
    if expression.arguments:
        if expression.arguments[0] not in known:
            scope.fail(expression, f"{target} has no dimension {expression.arguments[0]}")
        return known[expression.arguments[0]]
    if len(known) != 1:
        scope.fail(expression, f"which dimension of {target} must be said")
    return next(iter(known.values()))


def _numbers(values: list[float], target: TensorType) -> Tensor:
    cells = as_cells(np.array(values, np.float64), target.cell_type)
    if target.mapped:
        return Tensor(target, tuple((str(place),) for place in range(len(values))), cells.reshape(len(values)))
    return Tensor(target, ((),), cells.reshape(1, len(values)))


def _stack(values: list[Tensor], inner: TensorType, target: TensorType, dimension: Dimension) -> Tensor:
    builder = TensorBuilder(target)
    mapped = [each.name for each in target.mapped]
    indexed = [each.name for each in target.indexed]
    for place, tensor in enumerate(values):
        for labels, cells in zip(tensor.labels, tensor.cells, strict=True):
            names = dict(zip((each.name for each in inner.mapped), labels, strict=True)) | {dimension.name: str(place)}
            for at, value in np.ndenumerate(cells):
                indexes = dict(zip((each.name for each in inner.indexed), at, strict=True)) | {dimension.name: place}
                builder.cell(
                    tuple(names[name] for name in mapped), tuple(indexes[name] for name in indexed), float(value)
                )
    return builder.build()
