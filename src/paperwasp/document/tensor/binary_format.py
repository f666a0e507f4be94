"""Tensors in Vespa's typed binary format: in files of constants that end in .tbf, and in messages.

    tag · cell type · mapped dimensions · indexed dimensions · number of subspaces · each: its labels, its cells

The tag says which of these parts there are. All is big-endian; sizes take one byte, or four with the highest bit set.
The content is not trusted: sizes are compared with the bytes that are there before anything is made for them.

Vespa: eval/src/vespa/eval/eval/value_codec.cpp has the format; the documentation does not.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from paperwasp import limits
from paperwasp.document.tensor.types import Dimension, TensorType
from paperwasp.document.tensor.value import Labels, Tensor, TensorBuilder, as_cells

_MAPPED, _INDEXED, _CELL_TYPE = 1, 2, 4
"""The bits of the tag."""
_CELLS: Final = (("double", ">f8"), ("float", ">f4"), ("bfloat16", ">u2"), ("int8", "i1"))
"""Number of a cell type → its name, and what its cells are in the file."""


def read_tensor(content: bytes) -> Tensor:
    """The tensor that the content is. Errors: ValueError that says where in it."""
    reader = _Reader(content)
    tag = reader.size()
    if tag > _MAPPED | _INDEXED | _CELL_TYPE:
        raise ValueError(f"byte 0: {tag} is no tag of a tensor")
    type_, cells = _type(reader, tag)
    subspaces = reader.size() if type_.mapped or not tag & _INDEXED else 1
    if not type_.mapped and subspaces != 1:
        raise ValueError(f"byte {reader.at}: a {type_} has one subspace, not {subspaces}")
    width = np.dtype(cells).itemsize * math.prod(type_.shape)
    least = subspaces * (width + len(type_.mapped))
    if least > reader.left or subspaces * math.prod(type_.shape) > limits.TENSOR_CELLS:
        raise ValueError(f"byte {reader.at}: {reader.left} bytes follow, which are no {subspaces} subspaces of {type_}")
    builder = TensorBuilder(type_)
    seen: set[Labels] = set()
    for _ in range(subspaces):
        labels = tuple(reader.text() for _ in type_.mapped)
        if labels in seen:
            raise ValueError(f"byte {reader.at}: the subspace {', '.join(labels)} is there twice")
        seen.add(labels)
        found = np.frombuffer(reader.take(width), cells)
        if found.dtype.kind == "u":  # bfloat16: the upper half of a float
            found = (found.astype(np.uint32) << np.uint32(16)).view(np.float32)
        builder.subspace(labels, found.astype(np.float64))
    if reader.left:
        raise ValueError(f"byte {reader.at}: something follows the tensor")
    return builder.build()


def write_tensor(tensor: Tensor) -> bytes:
    """The content that `read_tensor` makes the tensor of. Errors: ValueError for a label that is no text."""
    type_ = tensor.type
    tag = _MAPPED * bool(type_.mapped) | _INDEXED * bool(type_.indexed) | _CELL_TYPE
    names = [name for name, _ in _CELLS]
    parts = [_size(tag), _size(names.index(type_.cell_type))]
    if type_.mapped:
        parts += [_size(len(type_.mapped)), *(_text(dimension.name) for dimension in type_.mapped)]
    if type_.indexed:
        parts.append(_size(len(type_.indexed)))
        for dimension in type_.indexed:
            parts += [_text(dimension.name), _size(dimension.size or 0)]
    if type_.mapped or not type_.indexed:
        parts.append(_size(len(tensor.labels)))
    content = _content(tensor)
    width = len(content) // max(len(tensor.labels), 1)
    for row, labels in enumerate(tensor.labels):
        parts += [*map(_text, labels), content[row * width : (row + 1) * width]]
    return b"".join(parts)


def _content(tensor: Tensor) -> bytes:
    """The cells as they are in the file."""
    cells = tensor.cells
    if tensor.type.cell_type == "bfloat16":
        cells = (cells.view(np.uint32) >> np.uint32(16)).astype(np.uint16)
    return cells.astype(cells.dtype.newbyteorder(">")).tobytes()


def _size(size: int) -> bytes:
    return bytes([size]) if size < 0x80 else (size | 0x80000000).to_bytes(4)


def _text(text: str) -> bytes:
    content = text.encode()
    return _size(len(content)) + content


def _type(reader: _Reader, tag: int) -> tuple[TensorType, str]:
    """The type, and what a cell is in the file."""
    number = reader.size() if tag & _CELL_TYPE else 0
    if number >= len(_CELLS):
        raise ValueError(f"byte {reader.at}: {number} is no type of cells")
    name, cells = _CELLS[number]
    dimensions: list[Dimension] = []
    for bit in (_MAPPED, _INDEXED):
        count = reader.size() if tag & bit else 0
        if count + len(dimensions) > limits.TENSOR_DIMENSIONS:
            raise ValueError(f"byte {reader.at}: a tensor has at most {limits.TENSOR_DIMENSIONS} dimensions")
        for _ in range(count):
            dimension = reader.text()
            if not dimension.replace("_", "a").isalnum():
                raise ValueError(f"byte {reader.at}: {dimension[:40]!r} is no name of a dimension")
            dimensions.append(Dimension(dimension, None if bit == _MAPPED else reader.size()))
    found = TensorType.of(dimensions, name)
    if found.is_number and name != "double":
        raise ValueError(f"byte {reader.at}: a number has cells of double, not {name}")
    if 0 in found.shape:
        raise ValueError(f"byte {reader.at}: a dimension has no size")
    return found, cells


class _Reader:
    def __init__(self, content: bytes) -> None:
        self.at = 0
        self._content = content

    @property
    def left(self) -> int:
        """Bytes that were not taken yet."""
        return len(self._content) - self.at

    def take(self, size_bytes: int) -> bytes:
        if size_bytes > self.left:
            raise ValueError(f"byte {len(self._content)}: it is cut off")
        self.at, start = self.at + size_bytes, self.at
        return self._content[start : self.at]

    def size(self) -> int:
        first = self.take(1)
        if first[0] < 0x80:
            return first[0]
        return int.from_bytes(first + self.take(3)) & 0x7FFFFFFF

    def text(self) -> str:
        start = self.at
        try:
            return self.take(self.size()).decode()
        except UnicodeDecodeError:
            raise ValueError(f"byte {start}: a text is not UTF-8") from None


def convert(tensor: Tensor, type_: TensorType) -> Tensor:
    """Converts a tensor to a type with the same dimensions. Errors: ValueError where the dimensions differ."""
    if tensor.type.dimensions != type_.dimensions:
        raise ValueError(f"expected {type_}, found {tensor.type}")
    return Tensor(type_, tensor.labels, as_cells(tensor.cells.astype(np.float64), type_.cell_type))
