"""Files as one stream of bytes: a tar archive whose last member is the manifest, since that needs all checksums."""

from __future__ import annotations

import hashlib
import tarfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import IO, Final, Protocol, cast

from paperwasp.limits.backup import BACKUP_MANIFEST_BYTES, BACKUP_PIECE_BYTES
from paperwasp.operations.backup.manifest import (
    DATA,
    NAME,
    BackedUp,
    DamagedBackup,
    Manifest,
    check_name,
    decode_manifest,
)
from paperwasp.operations.backup.source import SourceFile, close_all

Note = Callable[[int], None]
"""Gets how many more bytes are done."""
Take = Callable[[str, Iterator[bytes]], None]
"""Is given each file with its pieces, all of which it has to take."""


class Readable(Protocol):
    """Where bytes come from: fewer than asked for only at the end."""

    def read(self, size: int = ..., /) -> bytes: ...


_FILE_MODE: Final = 0o640


def packed(files: Sequence[SourceFile], known: frozenset[str] = frozenset()) -> Iterator[bytes]:
    """The archive, in pieces, none of them empty. Closes the files when it ends, however it does.

    Files whose SHA-256 is among `known` are in the manifest only: whoever has them need not be sent them.
    """
    listed: dict[str, BackedUp] = {}
    try:
        for file in files:
            sha256 = _digest(file.pieces()) if known else ""
            if sha256 not in known or not known:
                digest = hashlib.sha256()
                yield _header(DATA + file.name, file.size_bytes)
                for piece in file.pieces():
                    digest.update(piece)
                    yield piece
                if padding := -file.size_bytes % tarfile.BLOCKSIZE:
                    yield bytes(padding)
                sha256 = digest.hexdigest()
            listed[file.name] = BackedUp(file.size_bytes, sha256)
        content = Manifest(listed).encode()
        yield _header(NAME, len(content)) + content + bytes(-len(content) % tarfile.BLOCKSIZE)
        yield bytes(2 * tarfile.BLOCKSIZE)
    finally:
        close_all(files)


def unpack(archive: Readable, take: Take) -> tuple[Manifest, dict[str, BackedUp]]:
    """Reads an archive: gives every file to `take`, and returns the manifest and what was there, by name.

    Errors: DamagedBackup for what is cut off or no archive. Whether the two fit together is the caller's to check.
    """
    found: dict[str, BackedUp] = {}
    manifest: Manifest | None = None
    try:
        with tarfile.open(fileobj=cast(IO[bytes], archive), mode="r|", bufsize=BACKUP_PIECE_BYTES) as members:
            for member in members:
                if manifest is not None or not member.isreg():
                    raise DamagedBackup(f"the backup is damaged: it has a member '{member.name}' that does not belong")
                content = members.extractfile(member)
                assert content is not None
                if member.name == NAME:
                    manifest = decode_manifest(_whole(content, member.size))
                else:
                    _take_one(member, content, take, found)
    except (tarfile.TarError, EOFError, ValueError, OverflowError) as error:
        raise DamagedBackup(f"the backup is damaged, or is none: {error}") from None
    if manifest is None:
        raise DamagedBackup(f"the backup is cut off, or is none: it has no {NAME}")
    return manifest, found


def compare(manifest: Manifest, found: dict[str, BackedUp]) -> None:
    """Errors: DamagedBackup, naming the first file that is not as the manifest says."""
    for name, file in manifest.files.items():
        if name not in found:
            raise DamagedBackup(f"the backup is damaged: '{name}' is missing")
        if found[name] != file:
            raise DamagedBackup(f"the backup is damaged: the checksum of '{name}' differs")
    for name in found:
        if name not in manifest.files:
            raise DamagedBackup(f"the backup is damaged: '{name}' does not belong to it")


def hashed(pieces: Iterable[bytes], end: Callable[[BackedUp], None], note: Note = lambda _: None) -> Iterator[bytes]:
    """The same pieces; their size and checksum are known at the end."""
    digest, size_bytes = hashlib.sha256(), 0
    for piece in pieces:
        digest.update(piece)
        size_bytes += len(piece)
        note(len(piece))
        yield piece
    end(BackedUp(size_bytes, digest.hexdigest()))


def read_pieces(file: Readable) -> Iterator[bytes]:
    """What is left of a file."""
    while piece := file.read(BACKUP_PIECE_BYTES):
        yield piece


def _take_one(member: tarfile.TarInfo, content: Readable, take: Take, found: dict[str, BackedUp]) -> None:
    if not member.name.startswith(DATA):
        raise DamagedBackup(f"the backup is damaged, or is none: it has a member '{member.name}'")
    name = member.name.removeprefix(DATA)
    check_name(name)
    if name in found:
        raise DamagedBackup(f"the backup is damaged: '{name}' is there twice")
    take(name, hashed(read_pieces(content), partial(found.__setitem__, name)))


def _whole(content: Readable, size_bytes: int) -> bytes:
    if size_bytes > BACKUP_MANIFEST_BYTES:
        raise DamagedBackup(f"the backup is damaged: its {NAME} has {size_bytes} bytes")
    data = content.read()
    if len(data) != size_bytes:
        raise DamagedBackup(f"the backup is cut off within its {NAME}")
    return data


def _digest(pieces: Iterable[bytes]) -> str:
    digest = hashlib.sha256()
    for piece in pieces:
        digest.update(piece)
    return digest.hexdigest()


def _header(name: str, size_bytes: int) -> bytes:
    member = tarfile.TarInfo(name)
    member.size, member.mode = size_bytes, _FILE_MODE
    return member.tobuf(tarfile.PAX_FORMAT)
