"""Rows of Parquet and Arrow files, a batch of rows at a time. Imported where there is such a file: it needs pyarrow."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet

from paperwasp.client.sources.arrow_values import BadValue, column_values
from paperwasp.client.sources.operations import BadInput, Item
from paperwasp.client.sources.rows import RowMapping
from paperwasp.errors import InvalidInput

_BATCH_ROWS: Final = 256
_ARROW_FILE: Final = b"ARROW1"
_DAMAGES: Final = (pa.ArrowException, OSError, ValueError, OverflowError, MemoryError)
"""What pyarrow raises for files that are damaged, also by sizes that they do not have."""

Report = Callable[[int, int], None]
"""Called with how many rows have been read, and how many there are."""


def read_parquet(path: str, rows: RowMapping, time_unit: str, report: Report) -> Iterator[Item]:
    """Yields the operations of a Parquet file, row by row. Errors: InvalidInput for what is no Parquet file."""
    with _refused(path, "Parquet"):
        file = pa.parquet.ParquetFile(path, memory_map=False, pre_buffer=False)
    with file:
        with _refused(path, "Parquet"):
            total, names = file.metadata.num_rows, file.schema_arrow.names
        rows.check_columns(path, names)
        batches = file.iter_batches(batch_size=_BATCH_ROWS)
        yield from _read_batches(path, batches, rows, time_unit, lambda done: report(done, total))


def read_arrow(name: str, stream: io.BufferedReader, rows: RowMapping, time_unit: str) -> Iterator[Item]:
    """Yields the operations of Arrow's IPC formats, that of files and that of streams. Errors: InvalidInput."""
    with _refused(name, "Arrow"):
        if stream.peek(len(_ARROW_FILE)).startswith(_ARROW_FILE):
            # The schema and the batches stand in a file as in a stream, behind eight bytes.
            stream.read(8)
        reader = pa.ipc.open_stream(stream)
        names = reader.schema.names
    rows.check_columns(name, names)
    yield from _read_batches(name, _small(reader), rows, time_unit, lambda done: None)


def read_table(name: str, source: Any, rows: RowMapping, time_unit: str) -> Iterator[Item]:
    """Yields the operations of what says its rows in Arrow's form (`__arrow_c_stream__`): frames of pandas and polars,
    tables of pyarrow. Errors: InvalidInput."""
    with _refused(name, "Arrow"):
        reader = pa.RecordBatchReader.from_stream(source)
    rows.check_columns(name, reader.schema.names)
    yield from _read_batches(name, _small(reader), rows, time_unit, lambda done: None)


def _small(batches: Iterator[Any]) -> Iterator[Any]:
    for batch in batches:
        for start in range(0, batch.num_rows, _BATCH_ROWS):
            yield batch.slice(start, _BATCH_ROWS)


def _read_batches(
    name: str, batches: Iterator[Any], rows: RowMapping, time_unit: str, report: Callable[[int], None]
) -> Iterator[Item]:
    done = 0
    while True:
        try:
            batch = next(batches, None)
        except _DAMAGES as error:
            yield BadInput(f"{name}, behind row {done}: damaged: {_first_line(error)}", is_end=True)
            return
        if batch is None:
            return
        yield from _read_batch(name, batch, done, rows, time_unit)
        done += batch.num_rows
        report(done)


def _read_batch(name: str, batch: Any, done: int, rows: RowMapping, time_unit: str) -> Iterator[Item]:
    """The rows of a batch. Where one value of it is none, all before it and behind it are read one by one."""
    names = batch.schema.names
    try:
        batch.validate(full=True)  # places beyond the end of a buffer would be read otherwise
        columns = [_values(name, batch, number, time_unit) for number in range(batch.num_columns)]
    except (*_DAMAGES, InvalidInput) as error:
        if batch.num_rows > 1:
            for row in range(batch.num_rows):
                yield from _read_batch(name, batch.slice(row, 1), done + row, rows, time_unit)
        else:
            yield BadInput(f"{name}, row {done + 1}: {_first_line(error)}")
        return
    for number, values in enumerate(zip(*columns, strict=True), done + 1):
        try:
            yield rows.operation(dict(zip(names, values, strict=True)), f"{name}, row {number}")
        except InvalidInput as error:
            yield BadInput(error.message)


def _values(name: str, batch: Any, number: int, time_unit: str) -> Sequence[Any]:
    column = batch.schema.names[number]
    try:
        return column_values(batch.column(number), time_unit)
    except BadValue as error:
        raise BadValue(error.row, f"column '{column}': {error}") from None
    except NotImplementedError as error:
        raise InvalidInput(f"column '{column}': {error}; leave it out with --map {column}=") from None
    except UnicodeDecodeError:
        raise BadValue(0, f"column '{column}': a text that is no UTF-8") from None


@contextmanager
def _refused(name: str, form: str) -> Iterator[None]:
    try:
        yield
    except _DAMAGES as error:
        raise InvalidInput(f"Could not read '{name}' as {form}: {_first_line(error)}") from None


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0] or type(error).__name__
