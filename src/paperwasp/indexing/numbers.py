"""Expressions on numbers and tensors: arithmetic, numbers as text, `binarize`, `pack_bits`, `to_tensor`.

Arithmetic is that of Java's decimals, as in Vespa: `0.1 + 0.2` is 0.3, a quotient has 16 digits, whole numbers that do
not fit keep their lowest bits, and nothing is divided by zero.
"""

from __future__ import annotations

import base64
import binascii
import math
import struct
from collections.abc import Callable, Mapping
from decimal import ROUND_HALF_EVEN, Context, Decimal
from typing import Final

import numpy as np

from paperwasp.base.patterns import compile_later
from paperwasp.core import _core
from paperwasp.document.numbers import single
from paperwasp.document.tensor.types import Dimension, TensorType
from paperwasp.document.tensor.value import Tensor, TensorBuilder, as_cells
from paperwasp.document.types import (
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    POSITION,
    STRING,
    ArrayType,
    DataType,
    NumericType,
    TensorFieldType,
    tensor_field,
)
from paperwasp.document.z_curve import z_curve
from paperwasp.indexing.scope import (
    NEEDED,
    Compiled,
    Run,
    Scope,
    ScriptError,
    Value,
    compiles,
    is_float,
    is_number,
    is_text,
    primitive_of,
)
from paperwasp.indexing.sources import wrap
from paperwasp.schema.indexing_tree import Expression

Number = int | float
_EXACT: Final = Context(prec=2000)
_SIXTEEN_DIGITS: Final = Context(prec=16, rounding=ROUND_HALF_EVEN)
_DECIMALS: Final[Mapping[str, Callable[[Decimal, Decimal], Decimal]]] = {
    "+": _EXACT.add,
    "-": _EXACT.subtract,
    "*": _EXACT.multiply,
    "/": _SIXTEEN_DIGITS.divide,
    "%": _EXACT.remainder,
}
_BITS: Final = {INT: 32, LONG: 64}
_HEX: Final = compile_later(r"[-+]?[0-9a-fA-F]+")
_LONG_MIN: Final = -(2**63)
_LONGEST_BASE64: Final = 12
_LONGEST_HEX: Final = 1000


# Arithmetic


@compiles("arithmetic")
def _arithmetic(expression: Expression, type_: DataType | None, scope: Scope) -> Compiled:
    """Compile arithmetic: from left to right; without one of the numbers there is no value."""
    first, *others = (scope.compile(operand, type_) for operand in expression.operands)
    found = _number(expression, first.type, scope)
    rest: list[tuple[Compiled, Callable[[Number, Number], Number]]] = []
    for sign, other in zip(expression.arguments, others, strict=True):
        right = _number(expression, other.type, scope, f"[{found}] {sign} ")
        if is_float(found) or is_float(right):
            found = DOUBLE if DOUBLE in (found, right) else FLOAT
        else:
            found = LONG if LONG in (found, right) else INT
        rest.append((other, _calculation(sign, found)))

    def run_all(value: Value, run: Run) -> Value:
        total = first.after(value, run)
        for other, calculate in rest:
            operand = other.after(value, run)
            if total is None or operand is None:
                return None
            total = calculate(total, operand)
        return total

    return Compiled(run_all, found, all(each.needs_input for each in (first, *others)))


def _number(expression: Expression, type_: DataType | None, scope: Scope, before: str = "") -> DataType:
    if type_ is None:
        scope.fail(expression, "Attempting to perform arithmetic on a null value")
    if not is_number(type_):
        scope.fail(expression, f"Attempting to perform unsupported arithmetic: {before}[{type_}]")
    return type_


def _calculation(sign: str, type_: NumericType) -> Callable[[Number, Number], Number]:
    calculate = _DECIMALS[sign]
    if type_ not in _BITS:
        narrow = single if type_ == FLOAT else float
        # what is too large for a float is infinite, as in Java
        return lambda a, b: narrow(float(_calculate(calculate, _decimal(a), _decimal(b))))
    bits, whole = _BITS[type_], _WHOLE.get(sign)
    if whole is not None:
        return lambda a, b: wrap(whole(a, b), bits)  # type: ignore[arg-type]
    return lambda a, b: wrap(int(_calculate(calculate, Decimal(a), Decimal(b))), bits)


_WHOLE: Final[Mapping[str, Callable[[int, int], int]]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
}


def _decimal(number: Number) -> Decimal:
    found = Decimal(number) if isinstance(number, int) else Decimal(repr(number))
    if not found.is_finite():
        raise ScriptError(f"there is no arithmetic on {number}")
    return found


def _calculate(calculate: Callable[[Decimal, Decimal], Decimal], a: Decimal, b: Decimal) -> Decimal:
    try:
        return calculate(a, b)
    except ArithmeticError:
        raise ScriptError("Division by zero" if b == 0 else "the result is no number") from None


# Numbers as text


@compiles("hexencode", "base64encode")
def _encode(expression: Expression, type_: DataType | None, scope: Scope) -> Compiled:
    if not is_number(type_) or is_float(type_):
        scope.expected(expression, "long", type_)
    if expression.keyword == "hexencode":
        return Compiled(lambda value, run: f"{value & 0xFFFF_FFFF_FFFF_FFFF:x}", STRING)
    return Compiled(lambda value, run: base64.b64encode(value.to_bytes(8, "little", signed=True)).decode(), STRING)


@compiles("hexdecode", "base64decode")
def _decode(expression: Expression, type_: DataType | None, scope: Scope) -> Compiled:
    if not is_text(type_):
        scope.expected(expression, "string", type_)
    decode = _hexdecode if expression.keyword == "hexdecode" else _base64decode
    return Compiled(lambda value, run: decode(value) if value else _LONG_MIN, LONG)


def _hexdecode(text: str) -> int:
    if len(text) > _LONGEST_HEX or not _HEX.fullmatch(text):
        raise ScriptError(f"Illegal hex value '{text[:40]}'")
    number = int(text, 16)
    if (number if number >= 0 else ~number).bit_length() > 64:
        raise ScriptError(f"Hex value '{text[:40]}' is out of range")
    return wrap(number, 64)


def _base64decode(text: str) -> int:
    if len(text) > _LONGEST_BASE64:
        raise ScriptError(f"Base64 value '{text[:40]}' is out of range")
    try:
        decoded = base64.b64decode(text if "=" in text else text + "=" * (-len(text) % 4), validate=True)
    except (binascii.Error, ValueError):
        decoded = b""
    if not decoded:
        raise ScriptError(f"Illegal base64 value '{text}'")
    return wrap(int.from_bytes(decoded, "little"), 64)


@compiles("exhex8encode", "exhex16encode")
def _excess(expression: Expression, type_: DataType | None, scope: Scope) -> Compiled:
    """Digits that are in order as the numbers are."""
    digits = 8 if expression.keyword == "exhex8encode" else 16
    wide = digits == 8 and type_ == LONG
    if not is_number(type_) or is_float(type_) or wide:
        scope.expected(expression, "int" if digits == 8 else "long", type_)
    bias = 1 << (4 * digits - 1)
    return Compiled(lambda value, run: f"{value + bias:0{digits}x}", STRING)


@compiles("exhex8floatencode", "exhex16doubleencode")
def _excess_float(expression: Expression, type_: DataType | None, scope: Scope) -> Compiled:
    digits, form = (8, "f") if expression.keyword == "exhex8floatencode" else (16, "d")
    if not is_number(type_) or (form == "f" and type_ == DOUBLE):
        scope.expected(expression, "float" if form == "f" else "double", type_)
    top, every = 1 << (4 * digits - 1), (1 << 4 * digits) - 1

    def encode(value: Value, run: Run) -> str:
        bits = int.from_bytes(struct.pack(f">{form}", value), "big")
        return f"{(bits ^ every) if bits & top else (bits | top):0{digits}x}"

    return Compiled(encode, STRING)


# Numbers of other things


@compiles("hash")
def _hash(expression: Expression, type_: DataType | None, scope: Scope) -> Compiled:
    if not is_text(type_):
        scope.expected(expression, "string", type_)
    target = primitive_of(scope.type)
    if target not in (INT, LONG):
        message = f"The type of the output field {scope.owner} is not int or long but {scope.type}"
        scope.fail(expression, message)
    bits = _BITS[target]
    return Compiled(lambda value, run: wrap(_core.siphash(value.encode("utf-8", "replace")), bits), target)


@compiles("zcurve")
def _zcurve(expression: Expression, type_: DataType | None, scope: Scope) -> Compiled:
    if type_ != POSITION:
        scope.expected(expression, "position", type_)
    return Compiled(lambda place, run: int(z_curve(np.array([place], np.int64).astype(np.int32))[0]), LONG)


# Tensors

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
