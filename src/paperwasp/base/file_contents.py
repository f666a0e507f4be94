"""The contents of a package's files: small ones in memory, large ones in one file on disk that has no name.

A model of a hundred megabytes is needed for a moment, when it is compiled or loaded, and its package for as long as the
application runs. So a large file is read from disk each time that its content is asked for, and not kept in memory.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
import weakref
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

from msgspec import Struct

from paperwasp import limits
from paperwasp.errors import Corruption

_READ_BYTES: Final = 1 << 30
"""The most that is asked of the system at once: Linux gives no more than two gigabytes."""


class UnnamedFile:
    """A file on the disk of a folder. Its room is free again when nobody has it any more."""

    def __init__(self, folder: Path | None) -> None:
        """Errors: OSError."""
        opened = tempfile.TemporaryFile(buffering=0, dir=folder)  # noqa: SIM115 — it stays open
        self.number: Final = opened.fileno()
        weakref.finalize(self, opened.close)


class OnDisk(Struct, frozen=True, eq=False):
    """A content that lies in a file, which is open as long as one of its contents is in use. Any thread."""

    file: UnnamedFile
    start: int
    size_bytes: int
    sha256: bytes

    def read(self) -> bytes:
        """The content. Errors: Corruption where the file is shorter; OSError."""
        found: list[bytes] = []
        at, end = self.start, self.start + self.size_bytes
        while at < end:
            piece = os.pread(self.file.number, min(end - at, _READ_BYTES), at)
            if not piece:
                raise Corruption(f"The file of an application package ends at byte {at}, and had {end}")
            found.append(piece)
            at += len(piece)
        return found[0] if len(found) == 1 else b"".join(found)


class Scratch:
    """The place for the large contents of one package. Not for several threads at once.

    `folder`: where the file without a name is made; None, or one that cannot take it: everything stays in memory.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder
        self._file: UnnamedFile | None = None
        self._end = 0

    def keep(self, pieces: Iterable[bytes]) -> bytes | OnDisk:
        """The content that comes in these pieces. Errors: those of the pieces."""
        each = iter(pieces)
        begun = bytearray()
        for piece in each:
            begun += piece
            if len(begun) > limits.PACKAGE_FILE_KEPT_BYTES and self._folder is not None:
                return self._keep_large(bytes(begun), each)
        return bytes(begun)

    def _keep_large(self, begun: bytes, rest: Iterator[bytes]) -> bytes | OnDisk:
        start, digest = self._end, hashlib.sha256()
        piece: bytes | None = begun
        while piece is not None:
            try:
                self._write(piece)
            except OSError:  # the disk is full, or refuses: what was written is read back
                self._folder = None
                before = b"" if self._file is None else OnDisk(self._file, start, self._end - start, b"").read()
                return b"".join((before, piece, *rest))
            digest.update(piece)
            piece = next(rest, None)
        assert self._file is not None
        return OnDisk(self._file, start, self._end - start, digest.digest())

    def _write(self, piece: bytes) -> None:
        """Errors: OSError; the end is still that of the piece before."""
        if self._file is None:
            self._file = UnnamedFile(self._folder)
        view, at = memoryview(piece), self._end
        while view:
            written = os.pwrite(self._file.number, view, at)
            view, at = view[written:], at + written
        self._end = at


class FileContents(Mapping[str, bytes]):
    """Path → content, read when it is asked for. Immutable; any thread. Errors of a look-up: those of `OnDisk.read`."""

    def __init__(self, contents: Mapping[str, bytes | OnDisk]) -> None:
        self.held: Final = contents
        """The contents as they are kept."""

    def __getitem__(self, path: str) -> bytes:
        content = self.held[path]
        return content if isinstance(content, bytes) else content.read()

    def __iter__(self) -> Iterator[str]:
        return iter(self.held)

    def __len__(self) -> int:
        return len(self.held)

    def __contains__(self, path: object) -> bool:
        return path in self.held


def held_contents(files: Mapping[str, bytes]) -> Mapping[str, bytes | OnDisk]:
    """The contents as they are kept: none is read."""
    return files.held if isinstance(files, FileContents) else files


def size_of(files: Mapping[str, bytes], path: str) -> int:
    """The bytes of a file, which is not read for that."""
    content = held_contents(files)[path]
    return len(content) if isinstance(content, bytes) else content.size_bytes


def total_bytes(files: Mapping[str, bytes]) -> int:
    """Bytes of all files together."""
    return sum(size_of(files, path) for path in files)


def digest_of(files: Mapping[str, bytes], path: str) -> bytes:
    """The SHA-256 of a file."""
    content = held_contents(files)[path]
    return hashlib.sha256(content).digest() if isinstance(content, bytes) else content.sha256
