"""Field indexes on disk, and what all files of an index share. docs/internals/formats/index.md

A file is written once under a name of its own, synced, and never changed; the state that `TextIndex.flush`
returns names it with its size and CRC-32, which `check_file` compares.
"""

from __future__ import annotations

import mmap
import os
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Executor, Future
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from paperwasp.core import _core
from paperwasp.errors import Corruption
from paperwasp.storage.index.segments import Postings, Segment
from paperwasp.storage.index.tokens import Buffer

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


def open_segments(
    directory: Path, described: Sequence[Mapping[str, Any]], pool: Executor
) -> Callable[[], tuple[Segment, ...]]:
    """Begins to map the field indexes of segments and to check them, largest first; gives what waits for them, and
    raises Corruption naming the first file that is not what was written."""
    all_files = [file for segment in described for file in segment["files"] if file is not None]
    all_files.sort(key=lambda file: -int(file["size_bytes"]))
    opened = {file["name"]: pool.submit(_open_field_index, directory, file) for file in all_files}

    def segments() -> tuple[Segment, ...]:
        return tuple(_opened_segment(segment, opened) for segment in described)

    return segments


def _opened_segment(described: Mapping[str, Any], opened: Mapping[str, Future[tuple[Path, Buffer]]]) -> Segment:
    files = [opened[file["name"]].result() if file is not None else None for file in described["files"]]
    return Segment(
        described["base"],
        described["documents"],
        tuple(file and file[1] for file in files),
        described["tokens"],
        tuple(file and file[0] for file in files),
    )


def _open_field_index(directory: Path, described: Mapping[str, Any]) -> tuple[Path, Buffer]:
    path = _sized_file(directory, described)
    data = _map(path)
    _compare(path, zlib.crc32(data.data), described)
    try:
        _core.check_field_index(data)
    except ValueError as error:
        raise Corruption(f"{path}: offset 0: {error}") from error
    return path, _unread(data)


def check_file(directory: Path, described: Mapping[str, Any]) -> Path:
    """The path of a described file that is whole. Errors: Corruption."""
    path = _sized_file(directory, described)
    _compare(path, checksum(path), described)
    return path


def _sized_file(directory: Path, described: Mapping[str, Any]) -> Path:
    path = directory / str(described["name"])
    if not path.is_file():
        raise Corruption(f"{path}: the file is missing")
    if (size := path.stat().st_size) != described["size_bytes"]:
        raise Corruption(f"{path}: damaged at offset {size}: {described['size_bytes']} bytes were written")
    return path


def _compare(path: Path, found: int, described: Mapping[str, Any]) -> None:
    if found != described["crc32"]:
        raise Corruption(f"{path}: damaged somewhere in its {described['size_bytes']} bytes: the checksum differs")


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
