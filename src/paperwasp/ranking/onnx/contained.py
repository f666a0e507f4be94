"""Finds what an ONNX model would read from other files: such a model is refused before any runtime has seen it.

The weights of a tensor may be at a path outside the package, or outside of everything that a package should reach. They
may be in the graph, in nodes, in the graphs within nodes, and in functions.

Format: https://onnx.ai/onnx/repo-docs/ExternalData.html
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from paperwasp.ranking.onnx.file import message_fields

_MODEL, _GRAPH, _FUNCTION, _NODE, _ATTRIBUTE, _SPARSE, _TENSOR = range(7)

_INSIDE: Final[Mapping[int, Mapping[int, int]]] = {
    _MODEL: {7: _GRAPH, 25: _FUNCTION},
    _GRAPH: {1: _NODE, 5: _TENSOR, 15: _SPARSE},
    _FUNCTION: {7: _NODE, 11: _ATTRIBUTE},
    _NODE: {5: _ATTRIBUTE},
    _ATTRIBUTE: {5: _TENSOR, 6: _GRAPH, 10: _TENSOR, 11: _GRAPH, 22: _SPARSE, 23: _SPARSE},
    _SPARSE: {1: _TENSOR, 2: _TENSOR},
}
"""Kind of message → number of a field → kind of the message in it, of onnx.proto."""
_EXTERNAL_DATA, _DATA_LOCATION = 13, 14
_KEY, _VALUE = 1, 2


def other_file(content: bytes) -> str | None:
    """The name of a file that the model would read; None: it has all of its weights. A damaged model reads none."""
    try:
        return next(_other_files(memoryview(content)), None)
    except ValueError:
        return None


def _other_files(model: memoryview) -> Iterator[str]:
    waiting: list[tuple[int, memoryview]] = [(_MODEL, model)]
    while waiting:
        kind, message = waiting.pop()
        if kind == _TENSOR:
            yield from _location(message)
            continue
        inside = _INSIDE[kind]
        for number, value in message_fields(message):
            if isinstance(value, memoryview) and number in inside:
                waiting.append((inside[number], value))


def _location(tensor: memoryview) -> Iterator[str]:
    is_external = False
    name = ""
    for number, value in message_fields(tensor):
        if number == _DATA_LOCATION:
            is_external = value == 1
        elif number == _EXTERNAL_DATA and isinstance(value, memoryview):
            is_external = True
            entry = dict(message_fields(value))
            if bytes(_bytes(entry.get(_KEY))) == b"location":
                name = bytes(_bytes(entry.get(_VALUE))).decode(errors="replace")
    if is_external:
        yield name[:300]


def _bytes(value: int | memoryview | None) -> memoryview | bytes:
    return value if isinstance(value, memoryview) else b""
