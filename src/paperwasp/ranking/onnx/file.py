"""Reads names, types and shapes of the inputs and outputs in an ONNX file. Nothing of the model is run or loaded.

An ONNX file is a protocol buffer, and this reads the few fields of it that a deploy must check, in a pass over the
top levels: large weights are skipped without a copy. The runtime that executes models is no reader for files from
strangers: it may take memory and time without bound before it says no, and a defect in it would end the process.

Errors: LanguageError for what is no readable model. What is inside the nodes of the graph is not looked at.
Format: https://onnx.ai/onnx/repo-docs/IR.html
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from msgspec import Struct

from paperwasp import limits
from paperwasp.document.tensor.types import Dimension, TensorType
from paperwasp.errors import LanguageError

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5

# Field numbers of the messages of onnx.proto
_MODEL_GRAPH: Final = 7
_GRAPH_NODE, _GRAPH_INITIALIZER, _GRAPH_INPUT, _GRAPH_OUTPUT, _GRAPH_SPARSE = 1, 5, 11, 12, 15
_TENSOR_NAME: Final = 8
_VALUE_NAME, _VALUE_TYPE = 1, 2
_TYPE_TENSOR: Final = 1
_TENSOR_ELEMENT, _TENSOR_SHAPE = 1, 2
_SHAPE_DIMENSION: Final = 1
_DIMENSION_SIZE, _DIMENSION_NAME = 1, 2

_CELL_TYPES: Final[Mapping[int, str]] = {3: "int8", 11: "double", 16: "bfloat16"}
"""Element type of ONNX → cell type; the other numbers become float."""
_NO_NUMBERS: Final = frozenset((0, 8, 14, 15))
"""Undefined, strings, and complex numbers."""


class OnnxValue(Struct, frozen=True):
    """One input or output. A size is a number, or a name for one that may differ from call to call."""

    name: str
    cell_type: str
    sizes: tuple[int | str, ...] | None
    """None: the file does not say."""

    @property
    def identifier(self) -> str:
        """The name as expressions write it."""
        return re.sub(r"\W", "_", self.name)

    def type(self, known: Mapping[str, int]) -> TensorType | None:
        """As a tensor type with dimensions d0, d1, …; None while a size is not known. `known`: sizes by their names."""
        if self.sizes is None:
            return None
        sizes = [size if isinstance(size, int) else known.get(size, 0) for size in self.sizes]
        if not all(sizes):
            return None
        return TensorType.of((Dimension(f"d{n}", size) for n, size in enumerate(sizes)), self.cell_type)

    def bind(self, given: TensorType) -> dict[str, int]:
        """The named sizes, if a value of type `given` is this input. Errors: ValueError if it cannot be."""
        if given.mapped:
            raise ValueError(f"a dense tensor is expected, and {given} has mapped dimensions")
        if self.sizes is None:
            return {}
        if len(given.indexed) != len(self.sizes):
            raise ValueError(f"{len(self.sizes)} dimension(s) are expected, and {given} has {len(given.indexed)}")
        named: dict[str, int] = {}
        for wanted, dimension in zip(self.sizes, given.indexed, strict=True):
            size = named.setdefault(wanted, dimension.size or 0) if isinstance(wanted, str) else wanted
            if size and dimension.size and size != dimension.size:
                raise ValueError(f"size {size} is expected, and {given} has {dimension}")
        return {name: size for name, size in named.items() if size}


class OnnxSignature(Struct, frozen=True):
    """The inputs and outputs of a model."""

    inputs: tuple[OnnxValue, ...]
    outputs: tuple[OnnxValue, ...]


def read_onnx(path: str, content: bytes) -> OnnxSignature:
    """The signature of the model in a file."""
    if len(content) > limits.MODEL_FILE_BYTES:
        raise LanguageError(f"{path} has {len(content)} bytes; a model has at most {limits.MODEL_FILE_BYTES}")
    try:
        graphs = [value for number, value in message_fields(memoryview(content)) if number == _MODEL_GRAPH]
        if len(graphs) != 1 or not isinstance(graphs[0], memoryview):
            raise ValueError("it has no graph")
        return _signature(graphs[0])
    except ValueError as error:
        raise LanguageError(f"{path} is no ONNX model: {error}") from None


def _signature(graph: memoryview) -> OnnxSignature:
    inputs, outputs = [], []
    given: set[str] = set()
    nodes = 0
    for number, value in message_fields(graph):
        if not isinstance(value, memoryview):
            continue
        if number == _GRAPH_INPUT:
            inputs.append(_value(value))
        elif number == _GRAPH_OUTPUT:
            outputs.append(_value(value))
        elif number == _GRAPH_INITIALIZER:
            given.add(_text(value, _TENSOR_NAME))
        nodes += number == _GRAPH_NODE
        if len(inputs) + len(outputs) > limits.MODEL_VALUES:
            raise ValueError(f"it has more than {limits.MODEL_VALUES} inputs and outputs")
    if not outputs:
        raise ValueError("it has no outputs")
    return OnnxSignature(tuple(value for value in inputs if value.name not in given), tuple(outputs))


def _value(message: memoryview) -> OnnxValue:
    name = _text(message, _VALUE_NAME)
    if not name:
        raise ValueError("an input or output has no name")
    type_ = _inner(message, _VALUE_TYPE)
    tensor = _inner(type_, _TYPE_TENSOR) if type_ is not None else None
    if tensor is None:
        raise ValueError(f"{name!r} is no tensor")
    element = next((v for number, v in message_fields(tensor) if number == _TENSOR_ELEMENT), 0)
    if not isinstance(element, int) or element in _NO_NUMBERS:
        raise ValueError(f"{name!r} holds no numbers")
    shape = _inner(tensor, _TENSOR_SHAPE)
    sizes = None if shape is None else tuple(_sizes(name, shape))
    return OnnxValue(name, _CELL_TYPES.get(element, "float"), sizes)


def _sizes(name: str, shape: memoryview) -> Iterator[int | str]:
    place = 0
    for number, dimension in message_fields(shape):
        if number == _SHAPE_DIMENSION and isinstance(dimension, memoryview):
            size = next((v for n, v in message_fields(dimension) if n == _DIMENSION_SIZE), 0)
            if place == limits.TENSOR_DIMENSIONS:
                raise ValueError(f"{name!r} has more than {place} dimensions")
            known = isinstance(size, int) and 0 < size <= limits.TENSOR_DIMENSION_SIZE
            yield size if known and isinstance(size, int) else _text(dimension, _DIMENSION_NAME) or f"{name}.{place}"
            place += 1


# The wire format of protocol buffers


def message_fields(message: memoryview) -> Iterator[tuple[int, int | memoryview]]:
    """(number, value) of each field; the content of strings and messages is a view. Errors: ValueError."""
    at = 0
    while at < len(message):
        key, at = _varint(message, at)
        number, kind = key >> 3, key & 7
        if number == 0:
            raise ValueError("it is damaged: a field without a number")
        if kind == _VARINT:
            value, at = _varint(message, at)
            yield number, value
            continue
        if kind == _BYTES:
            size, at = _varint(message, at)
        elif kind in (_FIXED64, _FIXED32):
            size = 8 if kind == _FIXED64 else 4
        else:
            raise ValueError(f"it is damaged: a field of kind {kind}")
        if at + size > len(message):
            raise ValueError("it is cut off")
        if kind == _BYTES:
            yield number, message[at : at + size]
        at += size


def _varint(message: memoryview, at: int) -> tuple[int, int]:
    value = shift = 0
    while at < len(message) and shift < 64:
        byte = message[at]
        value |= (byte & 0x7F) << shift
        at += 1
        if byte < 0x80:
            return value, at
        shift += 7
    raise ValueError("it is cut off" if at >= len(message) else "it is damaged: a number that is too long")


def _inner(message: memoryview, wanted: int) -> memoryview | None:
    found = (value for number, value in message_fields(message) if number == wanted)
    return next((value for value in found if isinstance(value, memoryview)), None)


def _text(message: memoryview, wanted: int) -> str:
    """A string field; empty where there is none. Errors: ValueError."""
    found = _inner(message, wanted)
    return "" if found is None else bytes(found[: limits.MODEL_NAME_BYTES]).decode()
