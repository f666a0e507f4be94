"""Writes a backup: a folder, or one archive. It has its name only when it is whole, verified and synced."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Final

import zstandard

from paperwasp.base.env import sync_directory
from paperwasp.errors import Conflict, InvalidInput
from paperwasp.limits.backup import BACKUP_ZSTD_LEVEL
from paperwasp.operations.backup.manifest import DATA, NAME, BackedUp, DamagedBackup, Manifest
from paperwasp.operations.backup.reading import read_manifest
from paperwasp.operations.backup.stream import Note, Readable, compare, read_pieces, unpack

ARCHIVES: Final = (".tar", ".tar.zst")
_PARTIAL: Final = ".partial"
_FILE_MODE: Final = 0o600
_FOLDER_MODE: Final = 0o700


def is_archive(destination: Path) -> bool:
    """Whether a backup of that name is one file."""
    return destination.name.endswith(ARCHIVES)


def check_destination(destination: Path) -> None:
    """Errors: Conflict, InvalidInput where no backup can be written there."""
    if not destination.parent.is_dir():
        raise InvalidInput(f"There is no folder '{destination.parent}' for the backup")
    if destination.is_dir() and not is_archive(destination):
        if any(destination.iterdir()):
            raise Conflict(f"'{destination}' {_what_holds(destination)}: a backup is written to a new place")
    elif destination.exists():
        raise Conflict(f"'{destination}' exists: a backup is written to a new place")


def _what_holds(destination: Path) -> str:
    """What is in a folder that is not empty, for who would write a backup there."""
    if (destination / NAME).is_file():
        return "holds a whole backup already"
    if (destination / DATA).is_dir():
        return "holds a backup that was not finished, which can be deleted"
    return "is not empty"


def known_files(earlier: Path) -> dict[str, Path]:
    """The files of a backup that is a folder, by SHA-256. Errors: DamagedBackup."""
    manifest = read_manifest(earlier)
    return {file.sha256: earlier / DATA / name for name, file in manifest.files.items()}


def write_backup(
    stream: Readable, destination: Path, known: Mapping[str, Path] | None = None, note: Note = lambda _: None
) -> Manifest:
    """Writes the archive that `stream` yields to `destination`, a folder or, by its name, an archive.

    `known`: files by SHA-256 that need not be in the stream, for a folder: they are linked. `note` gets the bytes done.
    Errors: DamagedBackup where the stream is not whole; Conflict. Then there is nothing at `destination`.
    """
    check_destination(destination)
    partial = destination.with_name(destination.name + _PARTIAL)
    if is_archive(destination):
        with _own_file(partial) as file:
            manifest = _write_archive(stream, file, destination.suffix == ".zst", note)
            file.flush()
            os.fsync(file.fileno())
            partial.rename(destination)
    else:
        with _own_folder(partial):
            manifest = _write_folder(stream, partial, known or {}, note)
            partial.rename(destination)
    sync_directory(destination.parent)
    return manifest


def _write_archive(stream: Readable, file: IO[bytes], compressed: bool, note: Note) -> Manifest:
    if not compressed:
        return _copy_verified(stream, file, note)
    compressor = zstandard.ZstdCompressor(BACKUP_ZSTD_LEVEL, write_checksum=True)
    with compressor.stream_writer(file, closefd=False) as writer:
        return _copy_verified(stream, writer, note)


def _copy_verified(stream: Readable, sink: IO[bytes], note: Note) -> Manifest:
    copied = _Copied(stream, sink)

    def take(name: str, pieces: Iterator[bytes]) -> None:
        for piece in pieces:
            note(len(piece))

    manifest, found = unpack(copied, take)
    for _ in read_pieces(copied):
        pass
    compare(manifest, found)
    return manifest


def _write_folder(stream: Readable, folder: Path, known: Mapping[str, Path], note: Note) -> Manifest:
    data = folder / DATA
    data.mkdir()

    def take(name: str, pieces: Iterator[bytes]) -> None:
        write_file(data / name, pieces, note)

    manifest, found = unpack(stream, take)
    for name, file in manifest.files.items():
        if name not in found and file.sha256 in known:
            _link(known[file.sha256], data / name, file)
            found[name] = file
            note(file.size_bytes)
    compare(manifest, found)
    write_file(folder / NAME, iter((manifest.encode(),)))
    sync_tree(folder)
    return manifest


def write_file(path: Path, pieces: Iterator[bytes], note: Note = lambda _: None) -> None:
    """Writes a new file, synced, and the folders above it, which are not."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with _open_private(path, os.O_EXCL) as file:
        for piece in pieces:
            file.write(piece)
            note(len(piece))
        file.flush()
        os.fsync(file.fileno())


def sync_tree(folder: Path) -> None:
    """Makes the names of all files below a folder durable."""
    for path in folder.rglob("*"):
        if path.is_dir():
            sync_directory(path)
    sync_directory(folder)


def _open_private(path: Path, flags: int = 0) -> IO[bytes]:
    """A file to write, which nobody else may read unless its owner says so."""
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | flags, _FILE_MODE), "wb")


def _link(earlier: Path, path: Path, file: BackedUp) -> None:
    """The same file under another name; a copy where the file system cannot. Errors: DamagedBackup."""
    with earlier.open("rb") as content:
        if hashlib.file_digest(content, "sha256").hexdigest() != file.sha256:
            raise DamagedBackup(f"the earlier backup is damaged: the checksum of '{earlier}' differs")
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.link(earlier, path)
    except OSError:
        with earlier.open("rb") as content, _open_private(path, os.O_EXCL) as copy:
            shutil.copyfileobj(content, copy)
            copy.flush()
            os.fsync(copy.fileno())


@contextmanager
def _own_file(path: Path) -> Iterator[IO[bytes]]:
    """An empty file that no other backup writes; removed where it keeps its name."""
    with _open_private(path) as file:
        _lock(file.fileno(), path)
        file.truncate(0)
        try:
            yield file
        except BaseException:
            path.unlink(missing_ok=True)
            raise


@contextmanager
def _own_folder(path: Path) -> Iterator[None]:
    """An empty folder that no other backup writes; removed where it keeps its name."""
    path.mkdir(_FOLDER_MODE, exist_ok=True)
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        _lock(descriptor, path)
        for left in path.iterdir():  # of a backup that was not finished
            shutil.rmtree(left) if left.is_dir() else left.unlink()
        try:
            yield
        except BaseException:
            shutil.rmtree(path, ignore_errors=True)
            raise
    finally:
        os.close(descriptor)


def _lock(descriptor: int, path: Path) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise Conflict(f"Another backup is being written to '{path}'") from None


class _Copied:
    """A stream of which everything that is read is written elsewhere, too."""

    def __init__(self, stream: Readable, sink: IO[bytes]) -> None:
        self._stream = stream
        self._sink = sink

    def read(self, size: int = -1, /) -> bytes:
        data = self._stream.read(size)
        self._sink.write(data)
        return data
