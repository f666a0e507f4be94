"""Reads a backup, a folder or an archive, and checks all of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import IO, Final, cast

import zstandard

from paperwasp.errors import NotFound
from paperwasp.operations.backup.manifest import DATA, NAME, BackedUp, DamagedBackup, Manifest, decode_manifest
from paperwasp.operations.backup.stream import Note, Readable, Take, compare, hashed, read_pieces, unpack

_ZSTD: Final = b"\x28\xb5\x2f\xfd"
"""What a compressed archive begins with, whatever it is called."""


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
    """What the archive holds, without its compression."""
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
