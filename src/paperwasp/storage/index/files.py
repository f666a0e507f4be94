"""Field indexes on disk, and what all files of an index share. docs/internals/formats/index.md

A file is written once under a name of its own, synced, and never changed; the state that `TextIndex.flush`
returns names it with its size and CRC-32, which `check_file` compares.
"""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Executor, Future
from pathlib import Path
from typing import Any, Final

import numpy as np
from msgspec import Struct, field
from numpy.typing import NDArray

from paperwasp.base.records import replace
from paperwasp.core import _core
from paperwasp.errors import Corruption
from paperwasp.storage.index.segments import Postings, Segment
from paperwasp.storage.index.tokens import Buffer
from paperwasp.storage.mapped_file import forget_pages, map_file
from paperwasp.text.linguistics import STEMMERS

_CHUNK_BYTES = 1 << 22


def write_file(directory: Path, stem: str, data: bytes | memoryview) -> Path:
    """Writes a new file and syncs it."""
    number = 1 + max((int(path.suffixes[0][1:]) for path in directory.glob(f"{stem}.*.bin")), default=0)
    path = directory / f"{stem}.{number}.bin"
    with path.open("xb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    return path


def write_segment(directory: Path, segment: Segment) -> Segment:
    """The same segment with its field indexes on disk, mapped from there."""
    if not segment.in_memory:
        return segment
    paths: list[Path | None] = []
    field_indexes: list[Postings | None] = []
    for number, field_index in enumerate(segment.field_indexes):
        if field_index is None:
            paths.append(None)
            field_indexes.append(None)
            continue
        path = write_file(directory, f"field-{number}-{segment.base}-{segment.limit}", field_index.data)
        paths.append(path)
        field_indexes.append(map_file(path))
    return replace(segment, fields=tuple(field_indexes), files=tuple(paths))


def describe_file(path: Path) -> dict[str, Any]:
    return {"name": path.name, "size_bytes": path.stat().st_size, "crc32": checksum(path)}


def describe_segment(segment: Segment) -> dict[str, Any]:
    return {
        "base": segment.base,
        "documents": segment.documents,
        "tokens": segment.tokens,
        "files": [describe_file(path) if path is not None else None for path in segment.files],
    }


def open_segments(
    directory: Path, described: Sequence[Mapping[str, Any]], pool: Executor
) -> Callable[[], tuple[Segment, ...]]:
    """Begins to map the field indexes of segments and to check them, largest first; gives what waits for them, and
    raises Corruption naming the first file that is not what was written."""
    all_files = [file for segment in described for file in segment["files"] if file is not None]
    all_files.sort(key=lambda file: -int(file["size_bytes"]))
    opened = {file["name"]: pool.submit(_open_field_index, directory, file) for file in all_files}

    def segments() -> tuple[Segment, ...]:
        return tuple(_opened_segment(segment, opened) for segment in described)

    return segments


def _opened_segment(described: Mapping[str, Any], opened: Mapping[str, Future[tuple[Path, Buffer]]]) -> Segment:
    files = [opened[file["name"]].result() if file is not None else None for file in described["files"]]
    return Segment(
        described["base"],
        described["documents"],
        tuple(file and file[1] for file in files),
        described["tokens"],
        tuple(file and file[0] for file in files),
    )


def _open_field_index(directory: Path, described: Mapping[str, Any]) -> tuple[Path, Buffer]:
    path = _sized_file(directory, described)
    data = map_file(path)
    _compare(path, zlib.crc32(data.data), described)
    try:
        _core.check_field_index(data)
    except ValueError as error:
        raise Corruption(f"{path}: offset 0: {error}") from error
    forget_pages(data)
    return path, data


def check_file(directory: Path, described: Mapping[str, Any]) -> Path:
    """The path of a described file that is whole. Errors: Corruption."""
    path = _sized_file(directory, described)
    _compare(path, checksum(path), described)
    return path


def _sized_file(directory: Path, described: Mapping[str, Any]) -> Path:
    path = directory / str(described["name"])
    if not path.is_file():
        raise Corruption(f"{path}: the file is missing")
    if (size := path.stat().st_size) != described["size_bytes"]:
        raise Corruption(f"{path}: damaged at offset {size}: {described['size_bytes']} bytes were written")
    return path


def _compare(path: Path, found: int, described: Mapping[str, Any]) -> None:
    if found != described["crc32"]:
        raise Corruption(f"{path}: damaged somewhere in its {described['size_bytes']} bytes: the checksum differs")


def checksum(path: Path) -> int:
    """CRC-32 of a file. Read, not mapped, so that its pages do not count as ours."""
    value = 0
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK_BYTES):
            value = zlib.crc32(chunk, value)
    return value


def delete_unused(directory: Path, states: Iterable[Mapping[str, Any]]) -> None:
    """Deletes files that none of the states names. A reader's mapping outlives the name."""
    used: set[str] = set()
    for state in states:
        used.update(file["name"] for file in state["words"])
        used.update(file["name"] for segment in state["segments"] for file in segment["files"] if file is not None)
    for path in directory.glob("*.bin"):
        if path.name not in used:
            path.unlink()


def total_tokens(segments: Sequence[Segment], number: int) -> tuple[int, int]:
    """(documents with field `number`, tokens in it) over segments."""
    documents = tokens = 0
    for segment in segments:
        if number < len(segment.field_indexes) and (field_index := segment.field_indexes[number]) is not None:
            described = _core.describe(field_index)
            documents += described["documents_with_field"]
            tokens += described["tokens"]
    return documents, tokens


# The words of the lexicon on disk: runs of them, each a file that is written once. docs/internals/formats/index.md
#
# A checkpoint writes the words that came since the one before, and the terms that words before those have got. Two
# neighbouring files become one where the earlier is not more than twice the later: so there are few of them, and a word
# is written again about as often as the number of words doubles.


_HEADER: Final = struct.Struct("<8sIIIIII")
_MAGIC: Final = b"pwlex\x00\x00\x03"
_WHOLE_HEADER: Final = struct.Struct("<8sIIII")
_WHOLE_MAGIC: Final = b"pwlex\x00\x00\x02"
"""Of a file that has all words, as they were written before there were runs."""
_FIRST_MAGIC: Final = b"pwlex\x00\x00\x01"
_FUSED_RATIO: Final = 2

Terms = NDArray[np.uint32]


class WordRun(Struct, frozen=True):
    """Words `first`.. of the lexicon with their terms, and terms of earlier words that were learned meanwhile.

    `stems` has for each stemmer's name the term of each word, NO_TERM where it was never needed; `late` for each
    stemmer's name the words before `first` and their terms.
    """

    first: int
    sizes: Terms
    words: bytes
    stems: Mapping[str, Terms]
    late: Mapping[str, tuple[Terms, Terms]] = field(default_factory=dict)

    @property
    def limit(self) -> int:
        return self.first + len(self.sizes)

    @property
    def empty(self) -> bool:
        return not len(self.sizes) and not self.late

    def to_bytes(self) -> bytes:
        names = [*self.stems, *(name for name in self.late if name not in self.stems)]
        late = [(names.index(name), *pairs) for name, pairs in self.late.items()]
        stemmers = np.concatenate([np.full(len(of), place, np.uint32) for place, of, _ in late] or [_NO_TERMS])
        unknown = np.full(len(self.sizes), _core.NO_TERM, np.uint32)
        said = ",".join(names).encode()
        parts = [
            _HEADER.pack(_MAGIC, self.first, len(self.sizes), len(names), len(stemmers), len(said), len(self.words)),
            self.sizes.tobytes(),
            *(self.stems.get(name, unknown).tobytes() for name in names),
            stemmers.tobytes(),
            *(of.tobytes() for _, of, _ in late),
            *(terms.tobytes() for _, _, terms in late),
            said,
            self.words,
        ]
        return b"".join(parts)

    def followed_by(self, later: WordRun) -> WordRun:
        """This run and the one after it as one."""
        names = dict.fromkeys([*self.stems, *later.stems, *later.late])
        stems, late = {}, dict(self.late)
        for name in names:
            terms = np.full(later.limit - self.first, _core.NO_TERM, np.uint32)
            for run in (self, later):
                if name in run.stems:
                    terms[run.first - self.first : run.limit - self.first] = run.stems[name]
            if name in later.late:
                surfaces, of_surfaces = later.late[name]
                mine = surfaces >= self.first
                terms[surfaces[mine] - self.first] = of_surfaces[mine]
                if not mine.all():
                    before = late.get(name, (_NO_TERMS, _NO_TERMS))
                    pairs = zip(before, (surfaces[~mine], of_surfaces[~mine]), strict=True)
                    late[name] = tuple(np.concatenate(pair) for pair in pairs)  # type: ignore[assignment]
            stems[name] = terms
        sizes = np.concatenate([self.sizes, later.sizes])
        return WordRun(self.first, sizes, self.words + later.words, stems, late)


_NO_TERMS: Final[Terms] = np.empty(0, np.uint32)


class WordsEnd(Struct, frozen=True):
    """The end of the saved words of a lexicon: `words` of them, and of the terms learned late those before `late`."""

    words: int = 0
    late: int = 0


def words_since(lexicon: _core.Lexicon, saved: WordsEnd) -> tuple[WordRun, WordsEnd]:
    """Copy the words since `saved`, and say how far they go. To be called by the lexicon's writer."""
    words, sizes = lexicon.words_from(saved.words)
    stems = {STEMMERS[number]: lexicon.stems_from(number, saved.words) for number in lexicon.stemmers()}
    stemmers, surfaces, terms, end = lexicon.late_stems(saved.late)
    late = {}
    for number in np.unique(stemmers).tolist():
        mine = (stemmers == number) & (surfaces < saved.words)
        if mine.any():
            late[STEMMERS[number]] = (surfaces[mine], terms[mine])
    return WordRun(saved.words, sizes, words, stems, late), WordsEnd(saved.words + len(sizes), end)


def write_words(directory: Path, saved: list[dict[str, Any]], run: WordRun) -> list[dict[str, Any]]:
    """The descriptions of the files that have the words of `saved` and those of the run, which is written. Synced.

    Errors: Corruption where a file that is to be fused with the run is damaged.
    """
    if run.empty:
        return saved
    files = list(saved)
    limit_bytes = len(content := run.to_bytes())
    while files and files[-1]["size_bytes"] <= _FUSED_RATIO * limit_bytes:
        run = read_words(check_file(directory, files.pop())).followed_by(run)
        limit_bytes = len(content := run.to_bytes())
    return [*files, describe_file(write_file(directory, "lexicon", content))]


def read_words(path: Path) -> WordRun:
    """Errors: Corruption, naming the file, where it is not one that is understood."""
    try:
        return _word_run(path.read_bytes())
    except ValueError as error:
        raise Corruption(f"{path}: {error}") from error


def restore_words(lexicon: _core.Lexicon, paths: Iterable[Path]) -> WordsEnd:
    """Fills an empty lexicon. Errors: Corruption, naming the file that is not understood."""
    for path in paths:
        run = read_words(path)
        if run.first != len(lexicon):
            raise Corruption(f"{path}: begins with word {run.first}; the files before it have {len(lexicon)}")
        try:
            lexicon.add_words(run.words, run.sizes)
            for name, terms in run.stems.items():
                lexicon.set_stems(STEMMERS.index(name), run.first, terms)
            for name, (surfaces, terms) in run.late.items():
                lexicon.set_stems_of(STEMMERS.index(name), surfaces, terms)
        except ValueError as error:
            raise Corruption(f"{path}: {error}") from error
    *_, late = lexicon.late_stems(0)
    return WordsEnd(len(lexicon), late)


def _word_run(data: bytes) -> WordRun:
    if data.startswith(_FIRST_MAGIC):
        raise ValueError("written by a version that stems English otherwise: feed the documents into a new index")
    if data.startswith(_WHOLE_MAGIC) and len(data) >= _WHOLE_HEADER.size:
        _, count, stemmers, names_bytes, size = _WHOLE_HEADER.unpack_from(data)
        first, late, at = 0, 0, _WHOLE_HEADER.size
    elif data.startswith(_MAGIC) and len(data) >= _HEADER.size:
        _, first, count, stemmers, late, names_bytes, size = _HEADER.unpack_from(data)
        at = _HEADER.size
    else:
        raise ValueError("not a saved lexicon")
    numbers = count * (1 + stemmers) + 3 * late
    if len(data) != at + 4 * numbers + names_bytes + size:
        raise ValueError("not a saved lexicon")
    arrays = np.frombuffer(data, np.uint32, numbers, at)
    names = data[len(data) - size - names_bytes : len(data) - size].decode().split(",") if stemmers else []
    if unknown := [name for name in names if name not in STEMMERS]:
        raise ValueError(f"has stems of an unknown stemmer '{unknown[0]}'")
    if len(names) != stemmers:
        raise ValueError("not a saved lexicon")
    sizes, *stems = arrays[: count * (1 + stemmers)].reshape(1 + stemmers, count)
    of, surfaces, terms = arrays[count * (1 + stemmers) :].reshape(3, late)
    pairs = {name: (surfaces[of == place], terms[of == place]) for place, name in enumerate(names)}
    return WordRun(
        first,
        sizes,
        data[len(data) - size :],
        dict(zip(names, stems, strict=True)),
        {name: pair for name, pair in pairs.items() if len(pair[0])},
    )
