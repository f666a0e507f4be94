"""Field indexes on disk, and what all files of an index share. docs/formats/index.md

A file is written once under a name of its own, synced, and never changed; the state that `TextIndex.flush`
returns names it with its size and CRC-32, which `check_file` compares.
"""

from __future__ import annotations

import mmap
import os
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from paperwasp.core import _core
from paperwasp.errors import Corruption
from paperwasp.index.segments import Postings, Segment
from paperwasp.index.tokens import Buffer

_CHUNK_BYTES = 1 << 22


def write_file(directory: Path, stem: str, data: bytes | memoryview) -> Path:
    """Writes a new file and syncs it."""
    number = 1 + max((int(path.suffixes[0][1:]) for path in directory.glob(f"{stem}.*.bin")), default=0)
    path = directory / f"{stem}.{number}.bin"
    with path.open("xb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    return path


def write_segment(directory: Path, segment: Segment) -> Segment:
    """The same segment with its field indexes on disk, mapped from there."""
    if not segment.in_memory:
        return segment
    paths: list[Path | None] = []
    field_indexes: list[Postings | None] = []
    for number, field_index in enumerate(segment.field_indexes):
        if field_index is None:
            paths.append(None)
            field_indexes.append(None)
            continue
        path = write_file(directory, f"field-{number}-{segment.base}-{segment.limit}", field_index.data)
        paths.append(path)
        field_indexes.append(_map(path))
    return replace(segment, fields=tuple(field_indexes), files=tuple(paths))


def describe_file(path: Path) -> dict[str, Any]:
    return {"name": path.name, "size_bytes": path.stat().st_size, "crc32": checksum(path)}


def describe_segment(segment: Segment) -> dict[str, Any]:
    return {
        "base": segment.base,
        "documents": segment.documents,
        "tokens": segment.tokens,
        "files": [describe_file(path) if path is not None else None for path in segment.files],
    }


def open_segment(directory: Path, described: Mapping[str, Any]) -> Segment:
    """Maps a segment's field indexes; raises Corruption naming the file that is not what was written."""
    paths = [check_file(directory, file) if file is not None else None for file in described["files"]]
    field_indexes = tuple(_field_index(path) if path is not None else None for path in paths)
    return Segment(described["base"], described["documents"], field_indexes, described["tokens"], tuple(paths))


def _field_index(path: Path) -> Buffer:
    data = _map(path)
    try:
        _core.check_field_index(data)
    except ValueError as error:
        raise Corruption(f"{path}: offset 0: {error}") from error
    return _unread(data)


def check_file(directory: Path, described: Mapping[str, Any]) -> Path:
    """The path of a described file that is whole."""
    path = directory / str(described["name"])
    if not path.is_file():
        raise Corruption(f"{path}: the file is missing")
    if (size := path.stat().st_size) != described["size_bytes"]:
        raise Corruption(f"{path}: damaged at offset {size}: {described['size_bytes']} bytes were written")
    if checksum(path) != described["crc32"]:
        raise Corruption(f"{path}: damaged somewhere in its {size} bytes: the checksum differs")
    return path


def checksum(path: Path) -> int:
    """CRC-32 of a file. Read, not mapped, so that its pages do not count as ours."""
    value = 0
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK_BYTES):
            value = zlib.crc32(chunk, value)
    return value


def delete_unused(directory: Path, states: Iterable[Mapping[str, Any]]) -> None:
    """Deletes files that none of the states names. A reader's mapping outlives the name."""
    used: set[str] = set()
    for state in states:
        used.update(file["name"] for file in state["words"])
        used.update(file["name"] for segment in state["segments"] for file in segment["files"] if file is not None)
    for path in directory.glob("*.bin"):
        if path.name not in used:
            path.unlink()


def _map(path: Path) -> Buffer:
    return np.memmap(path, dtype=np.uint8, mode="r").view(np.ndarray)


def _unread(mapped: Buffer) -> Buffer:
    """The same, less the pages that reading it has brought: those that queries want come again."""
    memory = mapped.base
    if isinstance(memory, np.memmap) and (pages := getattr(memory, "_mmap", None)) is not None:
        pages.madvise(mmap.MADV_DONTNEED)
    return mapped


def total_tokens(segments: Sequence[Segment], number: int) -> tuple[int, int]:
    """(documents with field `number`, tokens in it) over segments."""
    documents = tokens = 0
    for segment in segments:
        if number < len(segment.field_indexes) and (field_index := segment.field_indexes[number]) is not None:
            described = _core.describe(field_index)
            documents += described["documents_with_field"]
            tokens += described["tokens"]
    return documents, tokens
