"""Rows of CSV and TSV: the first names the columns. Empty cells are no values.

Where nobody says what is between cells, it is a comma, or else which of `;`, tab and `|` the first line has most of.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from typing import Final

from paperwasp.client.sources.opening import OPERATION_BYTES, Line, lines_of
from paperwasp.client.sources.operations import BadInput, Item
from paperwasp.client.sources.rows import RowMapping
from paperwasp.errors import InvalidInput

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
    """What is between the cells of the first line. Nothing of the stream is taken."""
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
