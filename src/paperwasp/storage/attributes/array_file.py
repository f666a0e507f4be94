"""Arrays in one checksummed file, in which columns are saved. The format: docs/internals/formats/attributes.md."""

from __future__ import annotations

import mmap
import os
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple
from zlib import crc32

import numpy as np
import orjson
from numpy.typing import NDArray

from paperwasp.errors import Corruption

_MAGIC: Final = b"PWASPARR"
_VERSION: Final = 1
_START: Final = struct.Struct("<8sIII")
_ALIGNMENT_BYTES: Final = 64


class FilePlace(NamedTuple):
    """The place in a file where an array begins. The file is never changed; it may lose its name."""

    path: Path
    offset: int


def write_arrays(path: Path, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write a new file, synced. (Its folder is not: whoever makes the folder known syncs it.)"""
    blocks = {name: np.ascontiguousarray(values) for name, values in arrays.items()}
    entries = [
        {
            "name": name,
            "dtype": values.dtype.str,
            "shape": values.shape,
            "size_bytes": values.nbytes,
            "crc": crc32(values.data if values.size else b""),
        }
        for name, values in blocks.items()
    ]
    header = orjson.dumps(entries)
    with path.open("xb") as file:
        file.write(_START.pack(_MAGIC, _VERSION, len(header), crc32(header)))
        file.write(header)
        for values in blocks.values():
            file.write(bytes(-file.tell() % _ALIGNMENT_BYTES))
            file.write(values.data if values.size else b"")
        file.flush()
        os.fsync(file.fileno())


class FileArrays(dict[str, NDArray[Any]]):
    """The arrays of a file by name, read-only, and where in it each is."""

    def __init__(self) -> None:
        super().__init__()
        self.places: dict[str, FilePlace] = {}


def read_arrays(path: Path) -> FileArrays:
    """Read the arrays of a file, read-only: the file is mapped as long as one of them is kept.

    Errors: Corruption with file and offset; FileNotFoundError.
    """
    with path.open("rb") as file:
        if os.fstat(file.fileno()).st_size < _START.size:
            raise Corruption(f"{path}: offset 0: cut within its header")
        data = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    magic, version, length, crc = _START.unpack_from(data)
    header = data[_START.size : _START.size + length]
    if (magic, version) != (_MAGIC, _VERSION) or crc != crc32(header):
        raise Corruption(f"{path}: offset 0: a damaged header")
    arrays = FileArrays()
    offset = _START.size + length
    for entry in orjson.loads(header):
        offset += -offset % _ALIGNMENT_BYTES
        arrays[entry["name"]] = _read(path, data[offset : offset + entry["size_bytes"]], entry, offset)
        arrays.places[entry["name"]] = FilePlace(path, offset)
        offset += entry["size_bytes"]
    if offset != len(data):
        raise Corruption(f"{path}: offset {offset}: {len(data) - offset} bytes too many")
    return arrays


def _read(path: Path, block: memoryview, entry: dict[str, Any], offset: int) -> NDArray[Any]:
    if len(block) != entry["size_bytes"] or crc32(block) != entry["crc"]:
        raise Corruption(f"{path}: offset {offset}: array '{entry['name']}' is damaged")
    return np.frombuffer(block, np.dtype(entry["dtype"])).reshape(entry["shape"])
