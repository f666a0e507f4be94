"""An application package: files by path, immutable, from an archive or a folder that a stranger made.

Vespa: https://docs.vespa.ai/en/reference/applications/application-packages.html
"""

from __future__ import annotations

import hashlib
import io
import re
import stat
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path, PurePosixPath
from types import MappingProxyType
from typing import IO, Final

from msgspec import Struct

from paperwasp import limits
from paperwasp.base.file_contents import FileContents, OnDisk, Scratch, size_of
from paperwasp.base.patterns import compile_later
from paperwasp.errors import LanguageError, Position, UnreadablePackage


class ApplicationPackage(Struct, frozen=True, dict=True):
    """The files of an application: relative path with `/` → content. No path is absolute or leads outside.

    Large ones may be read from disk at each look-up (`file_contents`).
    """

    files: Mapping[str, bytes]

    @cached_property
    def checksum(self) -> str:
        """The same for the same files, whatever archive they came in."""
        digest = hashlib.md5(usedforsecurity=False)
        for path in sorted(self.files):
            digest.update(f"{len(path)} {size_of(self.files, path)} {path}".encode())
            digest.update(self.files[path])
        return digest.hexdigest()

    def under(self, folder: str, *suffixes: str) -> Iterator[tuple[str, bytes]]:
        """The files in `folder` and below it with one of the suffixes (none: all), by path."""
        for path in sorted(self.files):
            if path.startswith(folder + "/") and (not suffixes or PurePosixPath(path).suffix in suffixes):
                yield path, self.files[path]

    def to_zip(self) -> bytes:
        """The package as an archive: the same bytes for the same files."""
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
            for path in sorted(self.files):
                archive.writestr(zipfile.ZipInfo(path), self.files[path], zipfile.ZIP_DEFLATED)
        return buffer.getvalue()


def read_package(content: bytes, scratch: Path | None = None) -> ApplicationPackage:
    """The package in a zip or tar.gz archive, distinguished by the first bytes; it may be in a folder of its own.

    `scratch`: the folder on whose disk large files are kept, without a name; None: all files are kept in memory.
    Errors: UnreadablePackage for anything else, for damage, and for an archive that is not safe to unpack.
    """
    if content.startswith(b"PK"):
        files = read_zip(content, Scratch(scratch))
    elif content.startswith(b"\x1f\x8b"):
        files = read_tar_gz(content, Scratch(scratch))
    else:
        raise UnreadablePackage("The application package is neither a zip nor a gzipped tar archive")
    return ApplicationPackage(FileContents(_at_the_root(files)))


def _at_the_root(files: Mapping[str, bytes | OnDisk]) -> Mapping[str, bytes | OnDisk]:
    """The files of a package that was archived together with its folder, without that folder, as in Vespa."""
    folders = {path.partition("/")[0] for path in files}
    if len(folders) != 1:
        return files
    prefix = f"{folders.pop()}/"
    if f"{prefix}services.xml" not in files:
        return files
    return {path.removeprefix(prefix): content for path, content in files.items()}


# Reading archives that strangers made: what comes out is a mapping of safe paths to contents, or an error.
#
# Refused: paths that are absolute or lead outside, links and devices, two entries of one path, a file where others
# need a folder, encrypted entries, more files or bytes than the limits, and archives that unpack to far more than
# their size.


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


# `.vespaignore`: patterns of paths that are not part of the package. The command line heeds it, the server does not.
#
# Vespa: https://docs.vespa.ai/en/applications/vespaignore.html; patterns are those of Go's `filepath.Match`.


IGNORE_FILE: Final = ".vespaignore"
_PIECE: Final = compile_later(r"(?P<any>\*+)|(?P<one>\?)|\\(?P<escaped>.)|(?P<set>\[)|(?P<plain>[^\\])", re.DOTALL)
_SET: Final = compile_later(r"\[(?P<not>\^?)(?P<ranges>(?:(?:\\.|[^\\\]-])(?:-(?:\\.|[^\\\]-]))?)+)\]", re.DOTALL)
_RANGE: Final = compile_later(r"\\?(.)(?:-\\?(.))?", re.DOTALL)


class Ignored(Struct, frozen=True):
    """The patterns of one package."""

    patterns: tuple[re.Pattern[str], ...] = ()
    folders: tuple[str, ...] = ()
    """Patterns that end in a slash: all that is below is ignored, though not the folder."""

    def __contains__(self, path: str) -> bool:
        """Return whether a file or folder is left out; with a folder all that is in it."""
        return path.startswith(self.folders) or any(pattern.fullmatch(path) for pattern in self.patterns)


def parse_ignored(text: str) -> Ignored:
    """The patterns in an ignore file: one a line, without empty lines and comments.

    Errors: LanguageError for a pattern that is none.
    """
    patterns: list[re.Pattern[str]] = []
    folders: list[str] = []
    for number, line in enumerate(text.splitlines(), 1):
        pattern = line.strip()
        if not pattern or pattern.startswith("#"):
            continue
        patterns.append(_pattern(pattern, Position(IGNORE_FILE, number, 1)))
        if pattern.endswith("/"):
            folders.append(pattern)
    return Ignored(tuple(patterns), tuple(folders))


def _pattern(pattern: str, position: Position) -> re.Pattern[str]:
    parts: list[str] = []
    at = 0
    while at < len(pattern):
        piece = _PIECE.match(pattern, at)
        if piece is None:
            raise LanguageError(f"bad pattern: {pattern}", position)
        at = piece.end()
        if piece["set"]:
            found = _SET.match(pattern, piece.start())
            if found is None:
                raise LanguageError(f"bad pattern: {pattern}", position)
            at = found.end()
            parts.append(_set(found, pattern, position))
        elif piece["any"]:
            parts.append("[^/]*")
        elif piece["one"]:
            parts.append("[^/]")
        else:
            parts.append(re.escape(piece["escaped"] or piece["plain"]))
    return re.compile("".join(parts), re.DOTALL)


def _set(found: re.Match[str], pattern: str, position: Position) -> str:
    ranges: list[str] = []
    for first, last in _RANGE.findall(found["ranges"]):
        if last and last < first:
            raise LanguageError(f"bad pattern: {pattern}", position)
        ranges.append(re.escape(first) + (f"-{re.escape(last)}" if last else ""))
    return f"[{found['not']}{''.join(ranges)}]"


# An application package in a folder on this machine, as `paperwasp serve APPLICATION` takes it.
#
# The folder is found and read as the Vespa command line does before it uploads: the packaged form of a Maven project
# first, and without what `.vespaignore` names.


def load_package(path: Path) -> ApplicationPackage:
    """The package at `path`: an archive file, or a folder that holds one.

    Errors: UnreadablePackage where there is none, or it cannot be read.
    """
    if path.suffix == ".sd" and path.is_file():
        raise UnreadablePackage(
            f"'{path}' is a schema, not an application package: give the folder that has services.xml and schemas/"
        )
    try:
        return read_package(path.read_bytes()) if path.is_file() else read_directory(find_package(path))
    except OSError as error:
        raise UnreadablePackage(f"Could not read the application package in '{path}': {error.strerror}") from error


def find_package(path: Path) -> Path:
    """The folder of the package in `path`: of a Maven project, of its sources, or `path` itself."""
    if not path.exists():
        raise UnreadablePackage(f"Could not find an application package in '{path}': there is no such file or folder")
    candidates = [path / "src" / "main" / "application", path]
    if (path / "pom.xml").exists():
        candidates.insert(0, path / "target" / "application")
    for candidate in candidates:
        if (candidate / "services.xml").is_file():
            return candidate
    raise UnreadablePackage(f"Could not find an application package in '{path}': there is no services.xml")


def read_directory(folder: Path) -> ApplicationPackage:
    """Every file below `folder` that is not ignored. Links are followed only to files."""
    ignore_file = folder / IGNORE_FILE
    ignored = parse_ignored(ignore_file.read_text(errors="replace") if ignore_file.is_file() else "")
    files: dict[str, bytes] = {}
    total_bytes = 0
    for path in _walk(folder, folder, ignored):
        name = safe_path(path.relative_to(folder).as_posix())
        total_bytes += path.stat().st_size
        if len(files) >= limits.PACKAGE_FILES or total_bytes > limits.PACKAGE_UNPACKED_BYTES:
            raise UnreadablePackage(
                f"The application package in '{folder}' is too large: at most {limits.PACKAGE_FILES} files of "
                f"{limits.PACKAGE_UNPACKED_BYTES} bytes together are allowed"
            )
        files[name] = path.read_bytes()
    return ApplicationPackage(MappingProxyType(files))


def _walk(root: Path, folder: Path, ignored: Ignored) -> Iterator[Path]:
    for path in sorted(folder.iterdir()):
        if path.relative_to(root).as_posix() in ignored or path.name == ".DS_Store":
            continue
        if path.is_dir() and not path.is_symlink():
            yield from _walk(root, path, ignored)
        elif path.is_file():
            yield path
