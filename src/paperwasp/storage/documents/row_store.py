"""The row store: the documents of the document store once more, by row, as pages of hits are rendered from them.

Files of runs of consecutive rows, each written once and mapped: docs/internals/formats/rows.md. All of it is derived.
Nothing is synced, and a start waits for none of it: `open` takes those files that are whole and of these rows and
deletes the others, and whoever owns the store adds what is missing. A reader that does not find a row asks the document
store.

A row never changes: what is changed in place is in columns, and a document that is put again gets another row. So
`rows` may be of any moment after a view was published: it answers that view the same, or does not have the row.

One thread opens and adds, another notes what has just been put; any may read `rows`, which is one reference.
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Final, NamedTuple
from zlib import crc32

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from paperwasp import limits
from paperwasp.core import _core
from paperwasp.core._core import PlainChange
from paperwasp.storage.mapped_file import forget_pages, map_file

_HEADER: Final = struct.Struct("<8sIIQI")
_HEADER_CRC: Final = struct.Struct("<I")
_START_BYTES: Final = _HEADER.size + _HEADER_CRC.size
_MAGIC: Final = b"pwrows\x00\x01"
_FOLDER: Final = "rows"
_SUFFIX: Final = ".rows"
_NEW_SUFFIX: Final = ".new"

Gids = NDArray[np.uint8]
"""By row, twelve bytes each: what says that a file is of these rows."""
Bitmap = NDArray[np.uint64]


class RowDocument(NamedTuple):
    """The document of a row: its id, and the JSON of its fields."""

    id: bytes
    fields: bytes


class _File(Struct, frozen=True):
    """One mapped file."""

    path: Path
    base: int
    limit: int
    content: NDArray[np.uint8]

    @property
    def size_class(self) -> int:
        """How often a file of the least size goes into it, as a power of the number of files that are merged."""
        size, size_bytes = 0, self.content.nbytes
        while size_bytes > limits.ROW_FILE_LEAST_BYTES:
            size_bytes //= limits.ROW_FILES_MERGED
            size += 1
        return size


class RowStore:
    """The row store in one folder, which need not exist."""

    def __init__(self, directory: Path) -> None:
        """`directory`: that of the index with the same rows. The store is a folder in it, and goes with it."""
        self._directory = directory / _FOLDER
        self._files: tuple[_File, ...] = ()
        self._is_open = False
        self.rows = _core.RowFiles([])
        """The rows that can be read now."""
        self.limit = 0
        """Rows from here on have not been added."""
        self._noted: deque[tuple[int, Sequence[PlainChange]]] = deque()
        """Runs of puts by their first row, in order."""
        self._noted_bytes = 0
        self._noting = Lock()

    def open(self, gids: Gids) -> None:
        """Takes over the files that are there, where they are whole and the rows that they name have these gids. Done
        once. Deletes the other files."""
        if self._is_open:
            return
        self._is_open = True
        found = (_opened(path, gids) for path in self._directory.glob(f"*{_SUFFIX}"))
        # Where a merge was interrupted, what was merged overlaps its sources.
        for file in sorted((file for file in found if file is not None), key=lambda file: (file.base, -file.limit)):
            if file.base == self.limit:
                self._publish((*self._files, file))
        kept = {file.path for file in self._files}
        for path in self._directory.glob("*"):
            if path not in kept:
                path.unlink(missing_ok=True)

    def note(self, first: int, puts: Sequence[PlainChange]) -> None:
        """Keeps puts with rows from `first` on, as long as they are of the last few: whoever adds rows need not read
        them from the document store."""
        with self._noting:
            self._noted.append((first, puts))
            self._noted_bytes += sum([put.body_bytes for put in puts])
            while self._noted_bytes > limits.ROW_NOTED_BYTES:
                self._forget_first()

    def noted(self, rows: Sequence[int]) -> list[PlainChange | None]:
        """The puts of rows, in any order; None where there is none that is noted."""
        with self._noting:
            runs = list(self._noted) if self._noted and max(rows, default=-1) >= self._noted[0][0] else []
        if not runs:
            return [None] * len(rows)
        firsts = [first for first, _ in runs]
        found: list[PlainChange | None] = []
        for row in rows:
            number = bisect_right(firsts, row) - 1
            place = row - firsts[number]
            found.append(runs[number][1][place] if number >= 0 and place < len(runs[number][1]) else None)
        return found

    def _forget_first(self) -> None:
        _, puts = self._noted.popleft()
        self._noted_bytes -= sum([put.body_bytes for put in puts])

    def add(self, documents: Sequence[RowDocument | PlainChange | None], gids: Gids, live: Bitmap) -> None:
        """Adds the documents of the next rows; None for a row without one, or whose document is not to be read here.

        `gids` are those of all rows, and `live` says which rows have to stay in files that are merged. Errors: OSError
        where the disk takes nothing; then nothing was added.
        """
        lengths, records = _core.pack_rows(documents)
        self._publish((*self._files, self._written(self.limit, lengths, (records,), gids)))
        while (sources := _due_for_merge(self._files)) is not None:
            base = sources[0].base
            lengths = self.rows.lengths(base, sources[-1].limit, live)
            records_of = partial(self.rows.records, live=live)
            pieces = (records_of(base + first, base + end) for first, end in _pieces(lengths))
            self._publish((*self._files[: -len(sources)], self._written(base, lengths, pieces, gids)))
            for source in sources:
                source.path.unlink(missing_ok=True)

    def size_bytes(self) -> int:
        """On disk."""
        return sum(file.content.nbytes for file in self._files)

    def clear(self) -> None:
        """Deletes what is there. Only before `open`."""
        for path in self._directory.glob("*"):
            path.unlink(missing_ok=True)

    def _publish(self, files: tuple[_File, ...]) -> None:
        rows = _core.RowFiles([file.content for file in files])
        self._files, self.limit, self.rows = files, files[-1].limit, rows
        with self._noting:
            while self._noted and self._noted[0][0] + len(self._noted[0][1]) <= self.limit:
                self._forget_first()

    def _written(self, base: int, lengths: NDArray[np.uint32], records: Iterable[bytes], gids: Gids) -> _File:
        limit = base + len(lengths)
        table = np.concatenate((np.zeros(1, np.uint64), np.cumsum(lengths, dtype=np.uint64)))
        header = _HEADER.pack(_MAGIC, base, len(lengths), int(table[-1]), _crc_of(gids, base, limit))
        starts = table.astype("<u4").tobytes()
        self._directory.mkdir(parents=True, exist_ok=True)
        path = self._directory / f"{base}-{limit}{_SUFFIX}"
        new = path.with_suffix(_NEW_SUFFIX)
        try:
            with new.open("wb") as file:
                file.write(header + _HEADER_CRC.pack(crc32(starts, crc32(header))) + starts)
                file.writelines(records)
            new.replace(path)
        except OSError:
            with suppress(OSError):
                new.unlink(missing_ok=True)
            raise
        return _File(path, base, limit, map_file(path))


NO_ROWS: Final = RowStore(Path())
"""Of views that have none; nothing is added to it."""


def _due_for_merge(files: Sequence[_File]) -> Sequence[_File] | None:
    """The last files, where enough of them are of one size class or smaller; those that are full stay as they are."""
    sizes = [file.size_class for file in files]
    for count in range(limits.ROW_FILES_MERGED, len(files) + 1):
        size_bytes = sum(file.content.nbytes for file in files[-count:])
        if size_bytes > limits.ROW_FILE_MOST_BYTES:
            return None
        if sizes[-count:].count(sizes[-count]) >= limits.ROW_FILES_MERGED and max(sizes[-count:]) == sizes[-count]:
            return files[-count:]
    return None


def _pieces(lengths: NDArray[np.uint32]) -> Iterator[tuple[int, int]]:
    """Runs [from, to) of rows whose records are of about `ROW_PIECE_BYTES` together."""
    ends = np.cumsum(lengths, dtype=np.uint64)
    first = 0
    while first < len(ends):
        before = int(ends[first - 1]) if first else 0
        end = max(first + 1, int(np.searchsorted(ends, before + limits.ROW_PIECE_BYTES, "right")))
        yield first, end
        first = end


def _opened(path: Path, gids: Gids) -> _File | None:
    """A file; None where it is damaged, of another version, or of other rows."""
    try:
        content = map_file(path)
    except (OSError, ValueError):  # ValueError: there is nothing in it
        return None
    if content.nbytes < _START_BYTES:
        return None
    start = content[:_START_BYTES].tobytes()
    magic, base, count, _, gids_crc = _HEADER.unpack_from(start)
    table = content[_START_BYTES : _START_BYTES + 4 * (count + 1)]
    if magic != _MAGIC or _HEADER_CRC.unpack_from(start, _HEADER.size)[0] != crc32(
        table.data, crc32(start[: _HEADER.size])
    ):
        return None
    if base + count > len(gids) or gids_crc != _crc_of(gids, base, base + count):
        return None
    try:
        is_whole = _core.RowFiles([content]).is_whole()
    except ValueError:
        return None
    forget_pages(content)
    return _File(path, base, base + count, content) if is_whole else None


def _crc_of(gids: Gids, base: int, limit: int) -> int:
    return crc32(np.ascontiguousarray(gids[base:limit]).data)
