"""Rows of CSV and TSV: the first names the columns. Empty cells are no values."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator

from paperwasp.client.sources.opening import OPERATION_BYTES, Line, lines_of
from paperwasp.client.sources.operations import BadInput, Item
from paperwasp.client.sources.rows import RowMapping
from paperwasp.errors import InvalidInput


def read_delimited(
    name: str, stream: io.BufferedReader, rows: RowMapping, delimiter: str = ",", most_bytes: int = OPERATION_BYTES
) -> Iterator[Item]:
    """Yields the operation of each row, or what is wrong with it. Lines are those on which rows begin."""
    csv.field_size_limit(most_bytes)
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
