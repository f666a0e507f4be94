"""Common to readers of files: opening them, the operations that were read, and lines that could not be read."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, BinaryIO, Final, Literal, NamedTuple, cast

import orjson
import zstandard
from isal import igzip, isal_zlib
from msgspec import Struct

from paperwasp.document.ids import DocumentId
from paperwasp.errors import InvalidInput

Kind = Literal["put", "update", "remove"]
KINDS: Final[tuple[Kind, ...]] = ("put", "update", "remove")


class SourceOperation(Struct, frozen=True):
    """One operation of a file, checked but for what only the schema can tell."""

    kind: Kind
    document_id: DocumentId
    fields: bytes | None
    """The JSON object of `fields` as it is to be sent; None for a remove."""
    condition: str | None
    create: bool
    place: str
    """Where it stands, for messages: `books.csv, line 7`."""

    @property
    def id(self) -> str:
        """The whole document id: `id:…`."""
        return self.document_id.text

    def to_line(self) -> bytes:
        """The operation in Vespa's feed format, in one line of JSON with its end: it can be fed again."""
        content: dict[str, object] = {self.kind: self.id}
        if self.condition is not None:
            content["condition"] = self.condition
        if self.create:
            content["create"] = True
        if self.fields is not None:
            # A line: what was written in several lines in its file is not copied as it stands there.
            content["fields"] = orjson.loads(self.fields) if b"\n" in self.fields else orjson.Fragment(self.fields)
        return orjson.dumps(content, option=orjson.OPT_APPEND_NEWLINE)


class BadInput(Struct, frozen=True):
    """A part of a file that is no operation. The message names file, place, what is wrong and what to do."""

    message: str
    is_end: bool = False
    """Whether the rest of the file cannot be read either."""


Item = SourceOperation | BadInput


class DecodedPut(NamedTuple):
    """A put without condition, whose values are those that its JSON would have."""

    document_id: DocumentId
    fields: Mapping[str, Any]
    """Without those that have no value."""
    size_bytes: int
    """About that of its JSON."""


class DecodedPuts(Struct, frozen=True):
    """Puts of rows that follow each other."""

    puts: Sequence[DecodedPut]
    document_types: frozenset[str]


# Opens files for reading: plain, compressed with gzip or zstd, or standard input.


STANDARD_INPUT: Final = "-"
OPERATION_BYTES: Final = 128 * 2**20
"""The longest operation, line or row of text that is read. Services take documents of up to 100 MiB."""
DAMAGED: Final[tuple[type[Exception], ...]] = (isal_zlib.error, zstandard.ZstdError, EOFError, OSError)  # type: ignore[assignment]
"""The errors of reading a stream."""
_CHUNK: Final = 1 << 16
_BOM: Final = b"\xef\xbb\xbf"
_OTHER_BOMS: Final = {b"\xff\xfe": "UTF-16", b"\xfe\xff": "UTF-16"}
_COMPRESSIONS: Final = (".gz", ".zst")


class OpenFile(Struct):
    """A stream of text in UTF-8, without its byte order mark, and how far it has been read."""

    name: str
    """As messages have it."""
    stream: io.BufferedReader
    total_bytes: int | None
    """Of the file as it is stored; None where nobody knows."""
    raw: io.RawIOBase | BinaryIO

    def count_read(self) -> int:
        """The bytes of the file that have been read, as it is stored."""
        try:
            return self.raw.tell()
        except (OSError, ValueError):
            return 0


class Line(NamedTuple):
    """A line of a file with its end; `text` is None for one that is too long."""

    number: int
    text: bytes | None


@contextmanager
def open_file(path: str) -> Iterator[OpenFile]:
    """Opens a file for as long as the block runs. Errors: InvalidInput where it cannot be read or is no UTF-8."""
    if path == STANDARD_INPUT:
        # Without its buffer: what somebody writes bit by bit is fed bit by bit.
        raw_input = getattr(sys.stdin.buffer, "raw", sys.stdin.buffer)
        yield _opened("standard input", raw_input, raw_input, None)
        return
    with ExitStack() as stack:
        try:
            raw = stack.enter_context(Path(path).open("rb", buffering=0))
            size = Path(path).stat().st_size
        except OSError as error:
            raise InvalidInput(f"Could not read '{path}': {error.strerror}") from None
        yield _opened(path, raw, _inflated(path, raw), size)


def plain_name(path: str) -> str:
    """The name without the ending of a compression."""
    return path.removesuffix(next((ending for ending in _COMPRESSIONS if path.lower().endswith(ending)), ""))


def lines_of(stream: io.BufferedReader, most_bytes: int = OPERATION_BYTES) -> Iterator[Line]:
    """Yields all lines. Of one that is longer than `most_bytes`, no more than that is ever held."""
    number = 0
    while text := stream.readline(most_bytes + 1):
        number += 1
        if len(text) <= most_bytes:
            yield Line(number, text)
            continue
        while not text.endswith(b"\n") and (text := stream.readline(_CHUNK)):
            pass
        yield Line(number, None)


def _inflated(path: str, raw: io.RawIOBase | BinaryIO) -> BinaryIO:
    if path.lower().endswith(".gz"):
        return cast(BinaryIO, igzip.IGzipFile(fileobj=raw, mode="rb"))  # type: ignore[no-untyped-call]
    if path.lower().endswith(".zst"):
        return cast(BinaryIO, zstandard.ZstdDecompressor().stream_reader(cast(BinaryIO, raw), read_across_frames=True))
    return cast(BinaryIO, raw)


def _opened(name: str, raw: io.RawIOBase | BinaryIO, stream: BinaryIO, size: int | None) -> OpenFile:
    try:
        start = stream.read(_CHUNK) or b""
    except DAMAGED as error:
        raise InvalidInput(f"Could not read '{name}': {error}") from None
    for mark, encoding in _OTHER_BOMS.items():
        if start.startswith(mark):
            raise InvalidInput(f"{name} is in {encoding}: make it UTF-8, e.g. with `iconv -f {encoding} -t UTF-8`")
    behind = _Behind(start.removeprefix(_BOM), stream)
    return OpenFile(name, io.BufferedReader(behind, _CHUNK), size, raw)


class _Behind(io.RawIOBase):
    """A stream with bytes before it that have been read from it already."""

    def __init__(self, start: bytes, stream: BinaryIO) -> None:
        self._start = start
        self._stream = stream

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        content, self._start = self._start[: len(buffer)], self._start[len(buffer) :]
        if not content:
            content = self._stream.read(len(buffer)) or b""
        buffer[: len(content)] = content
        return len(content)
