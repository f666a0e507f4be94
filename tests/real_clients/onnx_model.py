"""A small ONNX model, written by hand: one Identity node from a float input to an output of the same shape."""

from __future__ import annotations

_FLOAT = 1


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def _bytes(field: int, value: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(value)) + value


def _value(name: str, *sizes: int) -> bytes:
    """ValueInfoProto: a tensor of floats."""
    shape = b"".join(_bytes(1, _number(1, size)) for size in sizes)
    return _bytes(1, name.encode()) + _bytes(2, _bytes(1, _number(1, _FLOAT) + _bytes(2, shape)))


def onnx_model(input: str = "input", output: str = "output", size: int = 3) -> bytes:
    """ModelProto."""
    node = _bytes(1, input.encode()) + _bytes(2, output.encode()) + _bytes(4, b"Identity")
    graph = (
        _bytes(1, node) + _bytes(2, b"graph") + _bytes(11, _value(input, 1, size)) + _bytes(12, _value(output, 1, size))
    )
    return _number(1, 8) + _bytes(7, graph) + _bytes(8, _number(2, 13))
