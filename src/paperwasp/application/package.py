"""An application package: files by path, immutable, however it came.

Vespa: https://docs.vespa.ai/en/reference/applications/application-packages.html
"""

from __future__ import annotations

import hashlib
import io
import zipfile
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path, PurePosixPath

from paperwasp.application.archive import read_tar_gz, read_zip
from paperwasp.base.file_contents import FileContents, OnDisk, Scratch, size_of
from paperwasp.base.records import dataclass
from paperwasp.errors import UnreadablePackage


@dataclass(frozen=True)
class ApplicationPackage:
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
