"""Rows of Parquet and Arrow files, a batch of rows at a time. Imported where there is such a file: it needs pyarrow."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Sequence, Set
from contextlib import contextmanager
from functools import partial
from typing import Any, Final, TypeVar

import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet

from paperwasp.base.patterns import compile_later
from paperwasp.client.sources.arrow_values import BadValue, column_values, meaning_of
from paperwasp.client.sources.operations import BadInput, DecodedPuts, Item
from paperwasp.client.sources.plain_puts import plain_puts
from paperwasp.client.sources.rows import PlainColumns, RowMapping
from paperwasp.errors import InvalidInput

_BATCH_ROWS: Final = 256
_INDEX: Final = compile_later(r"__index_level_\d+__")
"""What pandas names an index without a name: the numbers of rows, which are not a field."""
_ARROW_FILE: Final = b"ARROW1"
_DAMAGES: Final = (pa.ArrowException, OSError, ValueError, OverflowError, MemoryError)
"""What pyarrow raises for files that are damaged, also by sizes that they do not have."""

_Read = TypeVar("_Read")
Report = Callable[[int, int], None]
"""Called with how many rows have been read, and how many there are."""


def read_parquet(path: str, rows: RowMapping, time_unit: str, report: Report) -> Iterator[Item]:
    """Yields the operations of a Parquet file, row by row. Errors: InvalidInput for what is no Parquet file."""
    with _refused(path, "Parquet"):
        file = pa.parquet.ParquetFile(path, memory_map=False, pre_buffer=False)
    with file:
        with _refused(path, "Parquet"):
            total, schema = file.metadata.num_rows, file.schema_arrow
        names = _fields_of(schema.names, rows)
        rows.check_columns(path, names)
        rows.note_meanings(_meanings(schema))
        read = partial(_read_batch, path, rows=rows, time_unit=time_unit)
        batches = file.iter_batches(batch_size=_BATCH_ROWS)
        yield from _read_batches(path, _selected(batches, names), read, lambda done: report(done, total))


def read_arrow(name: str, stream: io.BufferedReader, rows: RowMapping, time_unit: str) -> Iterator[Item]:
    """Yields the operations of Arrow's IPC formats, that of files and that of streams. Errors: InvalidInput."""
    with _refused(name, "Arrow"):
        if stream.peek(len(_ARROW_FILE)).startswith(_ARROW_FILE):
            # The schema and the batches stand in a file as in a stream, behind eight bytes.
            stream.read(8)
        reader = pa.ipc.open_stream(stream)
    names = _fields_of(reader.schema.names, rows)
    rows.check_columns(name, names)
    rows.note_meanings(_meanings(reader.schema))
    read = partial(_read_batch, name, rows=rows, time_unit=time_unit)
    yield from _read_batches(name, _selected(_small(reader), names), read)


def read_table(
    name: str, source: Any, rows: RowMapping, time_unit: str, takes_decoded: Callable[[Set[str]], bool]
) -> Iterator[Item | DecodedPuts]:
    """Yields the operations of what says its rows in Arrow's form (`__arrow_c_stream__`): frames of pandas and polars,
    tables of pyarrow. Where puts of these document types may come without their JSON (`takes_decoded`), batches whose
    rows allow it come so. Errors: InvalidInput."""
    with _refused(name, "Arrow"):
        reader = pa.RecordBatchReader.from_stream(source)
    names = _fields_of(reader.schema.names, rows)
    rows.check_columns(name, names)
    plain = rows.plain_columns(names)

    def read(batch: Any, done: int) -> Iterator[Item | DecodedPuts]:
        puts = None if plain is None else _decoded(batch, plain)
        if puts is not None and takes_decoded(puts.document_types):
            yield puts
        else:
            yield from _read_batch(name, batch, done, rows, time_unit)

    yield from _read_batches(name, _selected(_small(reader), names), read)


def _decoded(batch: Any, columns: PlainColumns) -> DecodedPuts | None:
    """The puts of a batch; None: reading its rows one by one says what is wrong with them."""
    try:
        batch.validate(full=True)
        return plain_puts(batch, columns)
    except _DAMAGES:
        return None


def _fields_of(names: Sequence[str], rows: RowMapping) -> list[str]:
    return [name for name in names if not _INDEX.fullmatch(name) or rows.is_named(name)]


def _meanings(schema: Any) -> dict[str, str]:
    return {column.name: meaning_of(column.type) for column in schema}


def _selected(batches: Iterator[Any], names: Sequence[str]) -> Iterator[Any]:
    for batch in batches:
        yield batch if batch.num_columns == len(names) else batch.select(names)


def _small(batches: Iterator[Any]) -> Iterator[Any]:
    for batch in batches:
        for start in range(0, batch.num_rows, _BATCH_ROWS):
            yield batch.slice(start, _BATCH_ROWS)


def _read_batches(
    name: str,
    batches: Iterator[Any],
    read: Callable[[Any, int], Iterator[_Read]],
    report: Callable[[int], None] = lambda done: None,
) -> Iterator[_Read | BadInput]:
    """What `read` makes of each batch, and of how many rows come before it."""
    done = 0
    while True:
        try:
            batch = next(batches, None)
        except _DAMAGES as error:
            yield BadInput(f"{name}, behind row {done}: damaged: {_first_line(error)}", is_end=True)
            return
        if batch is None:
            return
        yield from read(batch, done)
        done += batch.num_rows
        report(done)


def _read_batch(name: str, batch: Any, done: int, rows: RowMapping, time_unit: str) -> Iterator[Item]:
    """The rows of a batch. Where one value of it is none, all before it and behind it are read one by one."""
    names = batch.schema.names
    try:
        batch.validate(full=True)  # places beyond the end of a buffer would be read otherwise
        columns = [_values(batch, number, rows, time_unit) for number in range(batch.num_columns)]
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


def _values(batch: Any, number: int, rows: RowMapping, time_unit: str) -> Sequence[Any]:
    column = batch.schema.names[number]
    try:
        return column_values(batch.column(number), time_unit)
    except BadValue as error:
        raise BadValue(error.row, f"column '{column}': {error}") from None
    except NotImplementedError as error:
        raise InvalidInput(f"column '{column}': {error}; leave it out with {rows.leaving_out(column)}") from None
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
