"""Reads a collection from wherever it is: a folder, an archive, three files, or the library ir_datasets."""

from __future__ import annotations

import tarfile
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from paperwasp.relevance.collection import BadCollection
from tools.collections.beir import is_beir, read_beir
from tools.collections.collection import Collection
from tools.collections.datasets import PREFIX, read_dataset
from tools.collections.pydoc import NAME, read_pydoc
from tools.collections.smart import is_smart_file, read_files, read_smart
from tools.collections.times import has_times, read_times
from tools.collections.written import is_written, read_written

ARCHIVE_BYTES: Final = 4 << 30
"""What an archive holds may not be larger."""
_BLOCK: Final = 1 << 20


def read(source: str, split: str = "test") -> Collection:
    """The collection in a folder or an archive, of a name behind `ir_datasets:`, or `pydoc`; `split` is which of BEIR's
    queries count. Errors: BadCollection with file and line."""
    if source == NAME and not Path(source).exists():
        collection = read_pydoc()
    elif source.startswith(PREFIX):
        collection = read_dataset(source.removeprefix(PREFIX))
    else:
        with _opened(Path(source)) as folder:
            collection = _read_folder(folder, split)
    collection.check()
    return collection


def read_three(documents: Path, queries: Path, judgments: Path) -> Collection:
    """The collection of three files of SMART. Errors: BadCollection with file and line."""
    collection = read_files(documents, queries, judgments)
    collection.check()
    return collection


def _read_folder(top: Path, split: str) -> Collection:
    """The collection in the folder, or in the first folder below that has one."""
    for folder in (top, *sorted(path for path in top.rglob("*") if path.is_dir())):
        if is_beir(folder):
            return read_beir(folder, split)
        if is_written(folder):
            return read_written(folder)
        files = [path for path in sorted(folder.iterdir()) if path.is_file()]
        if any(has_times(path) for path in files):
            return read_times(files)
        smart = [path for path in files if is_smart_file(path)]
        if len(smart) > 1:
            return read_smart(smart)
    raise BadCollection(
        f"{top}: there is no collection in it: neither of SMART, TIME nor BEIR, nor written by this tool"
    )


@contextmanager
def _opened(path: Path) -> Iterator[Path]:
    """The folder, or one with what is in the archive."""
    if path.is_dir():
        yield path
        return
    if not path.is_file():
        raise BadCollection(f"There is no folder or archive '{path}'")
    with tempfile.TemporaryDirectory(prefix="paperwasp-collection-") as folder:
        _extract(path, Path(folder))
        yield Path(folder)


def _extract(path: Path, folder: Path) -> None:
    try:
        if zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as archive:
                _check_size(path, sum(member.file_size for member in archive.infolist()))
                archive.extractall(folder)
        elif tarfile.is_tarfile(path):
            with tarfile.open(path) as archive:
                _extract_tar(path, archive, folder)
        else:
            raise BadCollection(f"'{path}' is not a folder, zip or tar")
    except (zipfile.BadZipFile, tarfile.TarError, EOFError, OSError, RecursionError) as error:
        raise BadCollection(f"{path}: could not be unpacked: {error}") from None


def _extract_tar(path: Path, archive: tarfile.TarFile, folder: Path) -> None:
    """Writes the files and what links lead to in the archive, but no links, so that no name leads out of the folder.

    `extractall` has a filter for that only as of Python 3.11.4.
    """
    size = 0
    for member in archive:
        try:
            content = archive.extractfile(member)
        except KeyError:  # a link to what is not in the archive
            continue
        if content is None:  # a folder, a device or the like
            continue
        target = folder / member.name
        if ".." in target.parts or not target.is_relative_to(folder):
            raise BadCollection(f"{path}: '{member.name}' leads out of the folder")
        target.parent.mkdir(parents=True, exist_ok=True)
        with content, target.open("wb") as file:
            while block := content.read(_BLOCK):
                size += len(block)
                _check_size(path, size)
                file.write(block)


def _check_size(path: Path, size: int) -> None:
    if size > ARCHIVE_BYTES:
        raise BadCollection(f"{path}: would become {size:,} bytes; at most {ARCHIVE_BYTES:,} are unpacked")
