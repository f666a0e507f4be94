"""Reads a file of operations or rows, by its ending or as it is said: Vespa's JSON, CSV, Parquet, Arrow."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from msgspec import Struct, field

from paperwasp.client.sources.json_operations import read_json, read_json_lines
from paperwasp.client.sources.operations import (
    DAMAGED,
    OPERATION_BYTES,
    STANDARD_INPUT,
    BadInput,
    Item,
    Line,
    OpenFile,
    lines_of,
    open_file,
    plain_name,
)
from paperwasp.client.sources.rows import RowMapping, RowOptions
from paperwasp.client.sources.values import TypeOf
from paperwasp.errors import InvalidInput

FORMATS: Final = ("json", "jsonl", "csv", "tsv", "parquet", "arrow")
_ENDINGS: Final = {
    ".json": "json",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".arrows": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
}
_DELIMITERS: Final = {"csv": None, "tsv": "\t"}
_NEEDS_ARROW: Final = "Parquet and Arrow need pyarrow, which is not installed: pip install pyarrow"

Report = Callable[[int, int | None], None]
"""Called with how many bytes of the file have been read, and how many it has, where that is known."""


class ReadOptions(Struct, frozen=True):
    """How files are read."""

    format: str | None = None
    """None: by the ending of each file; standard input is JSON."""
    delimiter: str | None = None
    """Between the cells of CSV; None: what the first line has, or a tab in TSV."""
    rows: RowOptions = field(default_factory=RowOptions)
    most_bytes: int = OPERATION_BYTES
    type_of: TypeOf | None = None
    """Says which fields take whole numbers; None: nobody does."""

    def mapping(self) -> RowMapping:
        """Return the mapping that makes operations of rows."""
        return RowMapping(self.rows, self.type_of)


def format_of(path: str, said: str | None = None) -> str:
    """The format of a file. Errors: InvalidInput for an ending that says nothing."""
    if said is not None:
        if said not in FORMATS:
            raise InvalidInput(f"--format: '{said}' is not one of {', '.join(FORMATS)}")
        return said
    if path == STANDARD_INPUT:
        return "json"
    ending = Path(plain_name(path)).suffix.lower()
    if ending not in _ENDINGS:
        raise InvalidInput(f"The name '{path}' does not say its format: give one with --format {'|'.join(FORMATS)}")
    return _ENDINGS[ending]


def read_file(
    path: str, options: ReadOptions, report: Report | None = None, rows: RowMapping | None = None
) -> Iterator[Item]:
    """Yields the operations of a file and what of it cannot be read; nothing of it is held for longer.

    `rows` makes the operations of rows; None: as the options say.
    """
    try:
        kind = format_of(path, options.format)
        rows = options.mapping() if rows is None else rows
        if kind == "parquet":
            yield from _read_parquet(path, options, rows, report)
            return
        with open_file(path) as file:
            try:
                for item in _read_open(file, kind, options, rows):
                    if report is not None:
                        report(file.count_read(), file.total_bytes)
                    yield item
            except DAMAGED as error:
                yield BadInput(f"{file.name}: damaged or cut off: {error}", is_end=True)
    except InvalidInput as error:
        yield BadInput(error.message, is_end=True)
    except ModuleNotFoundError:
        yield BadInput(f"{path}: {_NEEDS_ARROW}", is_end=True)


def _read_open(file: OpenFile, kind: str, options: ReadOptions, rows: RowMapping) -> Iterator[Item]:
    if kind in _DELIMITERS:
        delimiter = options.delimiter or _DELIMITERS[kind]
        return read_delimited(file.name, file.stream, rows, delimiter, options.most_bytes)
    if kind == "arrow":
        return _read_arrow(file, rows, options)
    json_rows = rows if options.rows.document_type is not None else None
    if kind == "jsonl" and not file.stream.peek(1).lstrip().startswith(b"["):
        return read_json_lines(file.name, file.stream, json_rows, options.most_bytes)
    return read_json(file.name, file.stream, json_rows, options.most_bytes)


def _read_arrow(file: OpenFile, rows: RowMapping, options: ReadOptions) -> Iterator[Item]:
    from paperwasp.client.sources.arrow import read_arrow

    return read_arrow(file.name, file.stream, rows, options.rows.time_unit)


def _read_parquet(path: str, options: ReadOptions, rows: RowMapping, report: Report | None) -> Iterator[Item]:
    from paperwasp.client.sources.arrow import read_parquet

    if path == STANDARD_INPUT or plain_name(path) != path:
        raise InvalidInput(f"{path}: Parquet is read from its end: save it to a file, not compressed as a whole")
    with open_file(path) as file:  # that it is there is said as for other files
        size = file.total_bytes or 0

    def say(done: int, total: int) -> None:
        if report is not None:
            report(size * done // max(total, 1), size)

    return read_parquet(path, rows, options.rows.time_unit, say)


# Rows of CSV and TSV: the first names the columns. Empty cells are no values.
#
# Where nobody says what is between cells, it is a comma, or else which of `;`, tab and `|` the first line has most of.


_OTHER_DELIMITERS: Final = (b";", b"\t", b"|")


def read_delimited(
    name: str,
    stream: io.BufferedReader,
    rows: RowMapping,
    delimiter: str | None = None,
    most_bytes: int = OPERATION_BYTES,
) -> Iterator[Item]:
    """Yields the operation of each row, or what is wrong with it. Lines are those on which rows begin."""
    csv.field_size_limit(most_bytes)
    delimiter = delimiter or _delimiter_of(stream)
    texts = _Texts(name, lines_of(stream, most_bytes))
    reader = csv.reader(texts, delimiter=delimiter, strict=True)
    columns: list[str] | None = None
    while True:
        line = texts.line + 1
        place = f"{name}, line {line}"
        try:
            cells = next(reader)
            if not cells:
                continue
            if columns is None:
                rows.check_columns(name, cells)
                columns = cells
                continue
            if len(cells) != len(columns):
                raise InvalidInput(f"{place}: {len(cells)} cells, and there are {len(columns)} columns")
            row = {column: cell or None for column, cell in zip(columns, cells, strict=True)}
            yield rows.operation(row, place)
        except StopIteration:
            return
        except (InvalidInput, csv.Error) as error:
            bad = _describe(error, place)
            yield BadInput(bad, is_end=columns is None)
            if columns is None:
                return


def _delimiter_of(stream: io.BufferedReader) -> str:
    """Find the character between the cells of the first line. Nothing of the stream is taken."""
    line = stream.peek(1).lstrip(b"\r\n").split(b"\n", 1)[0]
    bare = b"".join(line.split(b'"')[::2])
    most = max(_OTHER_DELIMITERS, key=bare.count)
    return "," if b"," in bare or most not in bare else most.decode()


def _describe(error: Exception, place: str) -> str:
    if isinstance(error, InvalidInput):
        return error.message
    if "unexpected end of data" in str(error):
        return f"{place}: a quote that begins in this row does not end"
    return f"{place}: {error}"


class _Texts:
    """The lines as text; `line` is the number of the last."""

    def __init__(self, name: str, lines: Iterator[Line]) -> None:
        self._name = name
        self._lines = lines
        self.line = 0

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        line = next(self._lines)
        self.line = line.number
        if line.text is None:
            raise InvalidInput(f"{self._name}, line {line.number}: longer than any document may be")
        try:
            return line.text.decode()
        except UnicodeDecodeError as error:
            byte = f"0x{line.text[error.start]:02X}"
            raise InvalidInput(
                f"{self._name}, line {line.number}, byte {error.start + 1}: no UTF-8 (byte {byte}); "
                "make the file UTF-8, e.g. with `iconv -f LATIN1 -t UTF-8`"
            ) from None
