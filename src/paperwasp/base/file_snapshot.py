"""The files of one moment, such as a backup has: open for reading, their manifest with sizes and checksums, and all of
them as one stream of bytes.

Format: docs/internals/formats/backup.md.
"""

from __future__ import annotations

import hashlib
import os
import tarfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import IO, Any, Final, NamedTuple, Protocol, cast

import orjson
from msgspec import Struct

from paperwasp.base.patterns import compile_later
from paperwasp.base.version import VERSION
from paperwasp.errors import Corruption, InvalidInput
from paperwasp.limits.backup import BACKUP_MANIFEST_BYTES, BACKUP_PIECE_BYTES

# The files of one moment: each open for reading, so that what is deleted or renamed later is still read.


class SourceFile(Struct):
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


# The manifest of a backup: what is in it, with sizes and checksums. The first line is the SHA-256 of the rest.


NAME: Final = "manifest.json"
DATA: Final = "data/"
"""The beginning of the names of all other members."""
_FORMAT: Final = "paperwasp-backup"
_VERSION: Final = 1
_DIGEST: Final = compile_later("[0-9a-f]{64}")


class DamagedBackup(Corruption):
    """A backup is not what was written, or is none."""

    remedy = "Use another backup"


class UnknownBackup(InvalidInput):
    """A backup of a version that this program does not read."""


class BackedUp(NamedTuple):
    """One file of a backup."""

    size_bytes: int
    sha256: str


class Manifest(Struct, frozen=True):
    """The files of a backup by name, and when the list was made."""

    files: Mapping[str, BackedUp]
    created: str = ""
    program: str = VERSION

    @property
    def size_bytes(self) -> int:
        """Of all files together."""
        return sum(file.size_bytes for file in self.files.values())

    def encode(self) -> bytes:
        """The bytes of the manifest."""
        content = {
            "format": _FORMAT,
            "version": _VERSION,
            "paperwasp": self.program,
            "created": self.created or datetime.now(UTC).isoformat(timespec="seconds"),
            "files": [[name, *file] for name, file in self.files.items()],
        }
        text = orjson.dumps(content)
        return hashlib.sha256(text).hexdigest().encode() + b"\n" + text + b"\n"


def decode_manifest(data: bytes) -> Manifest:
    """The manifest in those bytes. Errors: DamagedBackup, UnknownBackup."""
    digest, _, rest = data.partition(b"\n")
    text = rest.removesuffix(b"\n")
    if hashlib.sha256(text).hexdigest().encode() != digest:
        raise DamagedBackup(f"the backup is damaged: the checksum of its {NAME} differs")
    try:
        return _manifest_of(orjson.loads(text))
    except (KeyError, TypeError, ValueError) as error:
        raise DamagedBackup(f"the backup is damaged: its {NAME} lacks something: {error}") from None


def _manifest_of(content: Any) -> Manifest:
    if content["format"] != _FORMAT:
        raise DamagedBackup(f"this is not a backup: its {NAME} says it is '{content['format']}'")
    if content["version"] != _VERSION:
        raise UnknownBackup(
            f"the backup is of version {content['version']}, and was written by paperwasp {content['paperwasp']}; "
            f"this is paperwasp {VERSION}, which reads version {_VERSION}. Nothing was changed"
        )
    files = {name: BackedUp(size_bytes, sha256) for name, size_bytes, sha256 in content["files"]}
    for name, file in files.items():
        check_name(name)
        if not _DIGEST.fullmatch(file.sha256):
            raise DamagedBackup(f"the backup is damaged: '{name}' has no checksum")
    return Manifest(files, content["created"], content["paperwasp"])


def check_name(name: str) -> None:
    """Errors: DamagedBackup where a name could lead out of the folder that a backup is put into."""
    parts = name.split("/")
    if any(part in ("", ".", "..") or "\0" in part or "\\" in part for part in parts) or len(name) > 4096:
        raise DamagedBackup(f"the backup is damaged: {name[:200]!r} is not the name of a file")


# Files as one stream of bytes: a tar archive whose last member is the manifest, since that needs all checksums.


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
    """The rest of a file."""
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
