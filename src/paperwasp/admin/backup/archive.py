"""A backup as a folder or one archive: written, read and checked, and restored into a data directory."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import IO, Final, cast

import zstandard

from paperwasp.admin.backup.placing import KEPT, RESTORING, holds_data, place
from paperwasp.base.env import sync_directory
from paperwasp.base.file_snapshot import (
    DATA,
    NAME,
    BackedUp,
    DamagedBackup,
    Manifest,
    Note,
    Readable,
    Take,
    compare,
    decode_manifest,
    hashed,
    read_pieces,
    unpack,
)
from paperwasp.errors import Conflict, InvalidInput, NotFound
from paperwasp.limits.backup import BACKUP_ZSTD_LEVEL

# Reads a backup, a folder or an archive, and checks all of it.


_ZSTD: Final = b"\x28\xb5\x2f\xfd"
"""The first bytes of a compressed archive, whatever it is called."""


def read_backup(backup: Path, take: Take, note: Note = lambda _: None) -> Manifest:
    """Gives every file to `take`; returns when all of them are as the manifest says.

    `note` gets the bytes that are read, of `size_bytes(backup)`. Errors: NotFound, DamagedBackup, UnknownBackup.
    """
    if backup.is_dir():
        return _read_folder(backup, take, note)
    try:
        file = backup.open("rb")
    except OSError as error:
        raise NotFound(f"The backup '{backup}' cannot be read: {error.strerror}") from None
    with file, _inflated(file, note) as archive:
        manifest, found = unpack(archive, take)
        for _ in read_pieces(archive):
            pass  # up to the checksum at the end
    compare(manifest, found)
    return manifest


def verify_backup(backup: Path, note: Note = lambda _: None) -> Manifest:
    """Reads all of it. Errors: those of `read_backup`."""
    return read_backup(backup, drop, note)


def backup_bytes(backup: Path) -> int:
    """How many bytes `read_backup` reads."""
    if backup.is_dir():
        return sum(path.stat().st_size for path in (backup / DATA).rglob("*") if path.is_file())
    return backup.stat().st_size if backup.is_file() else 0


def read_manifest(folder: Path) -> Manifest:
    """The manifest of a backup that is a folder. Errors: DamagedBackup, UnknownBackup."""
    try:
        return decode_manifest((folder / NAME).read_bytes())
    except FileNotFoundError:
        raise DamagedBackup(f"'{folder}' is not a backup: it has no {NAME}") from None


def drop(name: str, pieces: Iterator[bytes]) -> None:
    """Reads a file to its end, so that it is hashed."""
    for _ in pieces:
        pass


def _read_folder(folder: Path, take: Take, note: Note) -> Manifest:
    manifest = read_manifest(folder)
    data = folder / DATA
    found: dict[str, BackedUp] = {}
    for path in sorted(data.rglob("*")):
        name = path.relative_to(data).as_posix()
        if path.is_symlink():
            raise DamagedBackup(f"the backup is damaged: '{name}' is a link")
        if path.is_file():
            with path.open("rb") as file:
                take(name, hashed(read_pieces(file), partial(found.__setitem__, name), note))
    compare(manifest, found)
    return manifest


@contextmanager
def _inflated(file: IO[bytes], note: Note) -> Iterator[Readable]:
    """The content of the archive, without its compression."""
    start = file.read(len(_ZSTD))
    file.seek(0)
    noted = _Noted(file, note)
    if start != _ZSTD:
        yield noted
        return
    try:
        with zstandard.ZstdDecompressor().stream_reader(
            cast(IO[bytes], noted), closefd=False, read_across_frames=True
        ) as reader:
            yield reader
    except zstandard.ZstdError as error:
        raise DamagedBackup(f"the backup is damaged: {error}") from None


class _Noted:
    """A file that tells what is read of it."""

    def __init__(self, file: IO[bytes], note: Note) -> None:
        self._file = file
        self._note = note

    def read(self, size: int = -1, /) -> bytes:
        data = self._file.read(size)
        self._note(len(data))
        return data


# Writes a backup: a folder, or one archive. It has its name only when it is whole, verified and synced.


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
    """Name the content of a folder that is not empty, for who would write a backup there."""
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


# Restores a backup into a data directory: unpacked beside what is there, verified, and only then put in its place.


def restore_backup(
    backup: Path,
    directory: Path,
    *,
    replace: bool = False,
    note: Note = lambda _: None,
    check: Callable[[Path], None] = lambda _: None,
) -> Manifest:
    """Makes `directory` hold what the backup does. The caller has the lock of the data directory.

    `check` is given the folder that holds the unpacked data, and raises where that is not to be restored.

    Errors: Conflict where it holds data and `replace` is not said; DamagedBackup, UnknownBackup, OSError. Then what
    was there is there as before.
    """
    if holds_data(directory) and not replace:
        raise Conflict(f"'{directory}' holds data already: --replace puts the backup in its place, and deletes it")
    staged = directory / RESTORING
    shutil.rmtree(staged, ignore_errors=True)
    staged.mkdir()
    try:
        manifest = read_backup(backup, lambda name, pieces: _unpack(staged, name, pieces), note)
        check(staged)
        sync_tree(staged)
    except BaseException:
        shutil.rmtree(staged, ignore_errors=True)
        raise
    place(directory)
    return manifest


def _unpack(staged: Path, name: str, pieces: Iterator[bytes]) -> None:
    first = name.partition("/")[0]
    if first in KEPT or first.startswith("."):
        raise DamagedBackup(f"the backup is damaged: it has a file '{name}', which does not belong to the data")
    try:
        write_file(staged / name, pieces)
    except (FileExistsError, NotADirectoryError):
        raise DamagedBackup(f"the backup is damaged: '{name}' is there twice") from None
