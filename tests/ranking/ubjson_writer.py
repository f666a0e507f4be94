"""Writes Universal Binary JSON as xgboost does: lengths of eight bytes, arrays of numbers with their type."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np

MARKERS = {"int8": "i", "uint8": "U", "int16": "I", "int32": "l", "int64": "L", "float32": "d", "float64": "D"}


def ubjson(value: Any) -> bytes:
    if isinstance(value, dict):
        return b"{" + b"".join(_counted(key.encode()) + ubjson(inner) for key, inner in value.items()) + b"}"
    if isinstance(value, np.ndarray):
        content = value.astype(value.dtype.newbyteorder(">")).tobytes()
        return b"[$" + MARKERS[value.dtype.name].encode() + b"#" + _length(len(value)) + content
    if isinstance(value, list):
        return b"[#" + _length(len(value)) + b"".join(map(ubjson, value))
    if isinstance(value, str):
        return b"S" + _counted(value.encode())
    if isinstance(value, float):
        return b"D" + struct.pack(">d", value)
    return (
        {None: b"Z", True: b"T", False: b"F"}[value]
        if value is None or value is True or value is False
        else _length(value)
    )


def _length(number: int) -> bytes:
    return b"L" + struct.pack(">q", number)


def _counted(content: bytes) -> bytes:
    return _length(len(content)) + content
