"""Reading archives that strangers made: what comes out is a mapping of safe paths to contents, or an error.

Refused: paths that are absolute or lead outside, links and devices, two entries of one path, a file where others
need a folder, encrypted entries, more files or bytes than the limits, and archives that unpack to far more than
their size.
"""

from __future__ import annotations

import io
import stat
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import IO, Final

from paperwasp import limits
from paperwasp.base.file_contents import FileContents, OnDisk, Scratch, size_of
from paperwasp.errors import UnreadablePackage

_ZIP_ERRORS: Final = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    EOFError,
    OSError,
    ValueError,
    LookupError,
    RuntimeError,
    OverflowError,
)
"""The errors of `zipfile` for damaged input, found by mutating archives (RuntimeError includes NotImplementedError)."""
_CENTRAL_ENTRY: Final = b"PK\x01\x02"
_DEFLATE_FACTOR: Final = 1032
"""No more bytes than this come of one that is deflated."""
_PIECE_BYTES: Final = 1 << 20
"""Unpacked at a time."""
_ENCRYPTED: Final = 0x1
_UNIX: Final = 3


def read_zip(content: bytes, scratch: Scratch) -> dict[str, bytes | OnDisk]:
    """The files in a zip archive, the large ones in `scratch`. Errors: UnreadablePackage."""
    if content.count(_CENTRAL_ENTRY) > limits.PACKAGE_FILES:
        raise _too_many()
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            return _read_zip(archive, len(content), scratch)
    except _ZIP_ERRORS as error:
        raise UnreadablePackage(f"The zip archive is damaged: {_describe_error(error)}") from error


def _read_zip(archive: zipfile.ZipFile, archive_bytes: int, scratch: Scratch) -> dict[str, bytes | OnDisk]:
    entries = archive.infolist()
    _check_size(sum(entry.file_size for entry in entries), archive_bytes)
    files = _Files()
    for entry in entries:
        path = safe_path(_without_dots(entry.orig_filename))
        _check_zip_entry(entry, path)
        if not entry.is_dir():
            files.add(path, scratch.keep(_pieces(archive, entry)))
    return files.contents


def _pieces(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> Iterator[bytes]:
    """A file piece by piece, of which no more is inflated than the archive says that it has: asked for everything,
    `zipfile` inflates all that there is before it looks at that."""
    with archive.open(entry) as file:
        yield from _read_pieces(file, entry.file_size + 1)


def _read_pieces(file: IO[bytes], most: int) -> Iterator[bytes]:
    """Yield the first `most` bytes of a file, or all that it has, piece by piece."""
    while piece := file.read(min(most, _PIECE_BYTES)):
        most -= len(piece)
        yield piece


def _check_zip_entry(entry: zipfile.ZipInfo, path: str) -> None:
    if entry.flag_bits & _ENCRYPTED:
        raise UnreadablePackage(f"'{path}' in the application package is encrypted")
    if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise UnreadablePackage(f"'{path}' in the application package is compressed by an unsupported method")
    kind = stat.S_IFMT(entry.external_attr >> 16) if entry.create_system == _UNIX else 0
    if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
        raise UnreadablePackage(f"'{path}' in the application package is neither a file nor a folder")


def read_tar_gz(content: bytes, scratch: Scratch) -> dict[str, bytes | OnDisk]:
    """The files in a gzipped tar archive, the large ones in `scratch`. Errors: UnreadablePackage."""
    unpacked = _gunzip(content)
    try:
        with tarfile.open(fileobj=io.BytesIO(unpacked), mode="r:") as archive:
            return _read_tar(archive, scratch)
    except (tarfile.TarError, EOFError, OSError, ValueError, LookupError, OverflowError, struct.error) as error:
        raise UnreadablePackage(f"The tar archive is damaged: {_describe_error(error)}") from error


def _read_tar(archive: tarfile.TarFile, scratch: Scratch) -> dict[str, bytes | OnDisk]:
    files = _Files()
    for entry in archive:
        name = _without_dots(entry.name)
        if entry.isdir() and not name:
            continue
        path = safe_path(name)
        if entry.isdir():
            continue
        if entry.type not in (tarfile.REGTYPE, tarfile.AREGTYPE) or entry.issparse():
            raise UnreadablePackage(f"'{path}' in the application package is neither a file nor a folder")
        extracted = archive.extractfile(entry)
        content = scratch.keep(_read_pieces(extracted, entry.size) if extracted else ())
        if size_of(FileContents({path: content}), path) != entry.size:
            raise UnreadablePackage(f"The tar archive is damaged: it ends within '{path}'")
        files.add(path, content)
    return files.contents


def _gunzip(content: bytes) -> bytes:
    """All members of a gzip file, unpacked, but never more than may be: where it may be more, that is counted first."""
    allowed = _allowed_bytes(len(content))
    if len(content) * _DEFLATE_FACTOR > allowed:
        _check_size(_unpacked_bytes(content, allowed), len(content))
    parts: list[bytes] = []
    while content.startswith(b"\x1f\x8b"):
        member = zlib.decompressobj(wbits=31)
        try:
            parts.append(member.decompress(content, allowed + 1))
        except zlib.error as error:
            raise UnreadablePackage(f"The gzip archive is damaged: {_describe_error(error)}") from error
        allowed -= len(parts[-1])
        if allowed < 0:
            raise _too_large()
        if not member.eof:
            raise UnreadablePackage("The gzip archive is damaged: it ends too early")
        content = member.unused_data
    return b"".join(parts)


def _unpacked_bytes(content: bytes, allowed: int) -> int:
    """To how many bytes the members of a gzip file unpack, as far as they can be read; not counted beyond `allowed`."""
    count = 0
    while content.startswith(b"\x1f\x8b") and count <= allowed:
        member = zlib.decompressobj(wbits=31)
        try:
            while not member.eof and (piece := member.decompress(content, _PIECE_BYTES)) and count <= allowed:
                count += len(piece)
                content = member.unconsumed_tail
        except zlib.error:
            break
        content = member.unused_data
    return count


class _Files:
    """The files so far. Refuses what cannot stand together in a folder."""

    def __init__(self) -> None:
        self.contents: dict[str, bytes | OnDisk] = {}
        self._folders: set[str] = set()

    def add(self, path: str, content: bytes | OnDisk) -> None:
        folders = {str(parent) for parent in PurePosixPath(path).parents}
        if path in self.contents or path in self._folders or not folders.isdisjoint(self.contents):
            raise UnreadablePackage(f"'{path}' is in the application package more than once")
        self._folders |= folders
        self.contents[path] = content
        if len(self.contents) > limits.PACKAGE_FILES:
            raise _too_many()


def _without_dots(name: str) -> str:
    """The name of an entry without the segments `.`, which archives of a folder have and Vespa takes."""
    return "/".join(segment for segment in name.split("/") if segment != ".")


def safe_path(name: str) -> str:
    """`name` as a path in a package, without the slash of a folder. Errors: UnreadablePackage."""
    path = name.removesuffix("/")
    segments = path.split("/")
    unsafe = any(segment in ("", ".", "..") for segment in segments)
    if unsafe or "\\" in path or not path.isprintable() or ":" in segments[0]:
        raise UnreadablePackage(f"The path {name!r} in the application package is not allowed")
    if len(path.encode("utf-8", "replace")) > limits.PACKAGE_PATH_LENGTH:
        raise UnreadablePackage(f"A path in the application package is longer than {limits.PACKAGE_PATH_LENGTH} bytes")
    return path


def _allowed_bytes(archive_bytes: int) -> int:
    by_factor = max(archive_bytes * limits.PACKAGE_UNPACKED_FACTOR, limits.PACKAGE_UNPACKED_FREE_BYTES)
    return min(by_factor, limits.PACKAGE_UNPACKED_BYTES)


def _check_size(unpacked_bytes: int, archive_bytes: int) -> None:
    if unpacked_bytes > _allowed_bytes(archive_bytes):
        raise _too_large()


def _too_large() -> UnreadablePackage:
    return UnreadablePackage(
        f"The application package unpacks to too much: at most {limits.PACKAGE_UNPACKED_BYTES} bytes are allowed, "
        f"and at most {limits.PACKAGE_UNPACKED_FACTOR} times the size of the archive"
    )


def _too_many() -> UnreadablePackage:
    return UnreadablePackage(f"The application package has more than {limits.PACKAGE_FILES} files")


def _describe_error(error: BaseException) -> str:
    return str(error) or type(error).__name__
