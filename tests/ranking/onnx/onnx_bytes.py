"""ONNX files for tests, written field by field: a graph with one node, and whatever inputs and outputs are wanted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

FLOAT, INT64, DOUBLE, STRING = 1, 7, 11, 8
Shape = Sequence[int | str] | None


def varint(value: int) -> bytes:
    out = b""
    while value > 0x7F:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


def field(number: int, value: int | bytes | str) -> bytes:
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    data = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


def value_info(name: str, element: int, shape: Shape) -> bytes:
    tensor = field(1, element)
    if shape is not None:
        dimensions = [field(1, field(1 if isinstance(size, int) else 2, size)) for size in shape]
        tensor += field(2, b"".join(dimensions))
    return field(1, name) + field(2, field(1, tensor))


def onnx_model(
    inputs: Mapping[str, tuple[int, Shape]],
    outputs: Mapping[str, tuple[int, Shape]],
    weights: Sequence[str] = (),
) -> bytes:
    """`weights`: inputs that the model itself gives."""
    graph = field(1, field(4, "Add") + field(1, "a") + field(2, "b"))
    graph += b"".join(field(5, field(1, 3) + field(8, name) + field(9, b"\0" * 64)) for name in weights)
    graph += b"".join(field(11, value_info(name, *of)) for name, of in inputs.items())
    graph += b"".join(field(12, value_info(name, *of)) for name, of in outputs.items())
    return field(1, 8) + field(2, "a test") + field(7, graph) + field(8, field(2, 13))
