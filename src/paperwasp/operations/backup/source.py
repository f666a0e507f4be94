"""The files of one moment: each open for reading, so that what is deleted or renamed later is still read."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from paperwasp.base.records import dataclass
from paperwasp.errors import Corruption
from paperwasp.limits.backup import BACKUP_PIECE_BYTES


@dataclass(slots=True)
class SourceFile:
    """A file by its name below the data directory, with `/` between folders: its first `size_bytes` bytes."""

    name: str
    size_bytes: int
    content: bytes = b""
    """All of it, where it is held in memory."""
    descriptor: int = -1
    """Else where it is read from."""

    def pieces(self) -> Iterator[bytes]:
        """The bytes, in order. May be called more than once. Errors: Corruption where the file has become shorter."""
        if self.descriptor < 0:
            if self.content:
                yield self.content
            return
        offset = 0
        while offset < self.size_bytes:
            piece = os.pread(self.descriptor, min(BACKUP_PIECE_BYTES, self.size_bytes - offset), offset)
            if not piece:
                raise Corruption(f"{self.name}: offset {offset}: the file ends here, not at {self.size_bytes}")
            yield piece
            offset += len(piece)

    def close(self) -> None:
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1
            self.size_bytes = 0


def held(name: str, content: bytes) -> SourceFile:
    """A small file that may be written in place: its bytes are kept."""
    return SourceFile(name, len(content), content)


def open_file(name: str, path: Path, size_bytes: int | None = None) -> SourceFile:
    """A file that is only appended to, or never changed; `size_bytes` of it, or all. Errors: OSError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    return SourceFile(name, os.fstat(descriptor).st_size if size_bytes is None else size_bytes, descriptor=descriptor)


def open_folder(name: str, directory: Path) -> list[SourceFile]:
    """All regular files below a folder, in the order of their names; `name` is that of the folder. Errors: OSError."""
    files: list[SourceFile] = []
    try:
        found = (path for path in sorted(directory.rglob("*")) if path.is_file() and not path.is_symlink())
        files.extend(open_file(f"{name}/{path.relative_to(directory).as_posix()}", path) for path in found)
    except BaseException:
        close_all(files)
        raise
    return files


def below(folder: str, files: Iterable[SourceFile]) -> list[SourceFile]:
    """The same files, with names that begin with that folder."""
    moved = list(files)
    for file in moved:
        file.name = f"{folder}/{file.name}"
    return moved


def close_all(files: Sequence[SourceFile]) -> None:
    for file in files:
        file.close()
