"""Rows of Parquet and Arrow files, a batch of rows at a time: their values for JSON, and puts that need not become
JSON.

Imported where there is such a file: it needs pyarrow.
"""

from __future__ import annotations

import io
from base64 import b64encode
from collections.abc import Callable, Iterator, Sequence, Set
from contextlib import contextmanager
from functools import partial
from typing import Any, Final, TypeVar

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.ipc
import pyarrow.parquet
import pyarrow.types as is_type

from paperwasp import limits
from paperwasp.base.patterns import compile_later
from paperwasp.client.sources.operations import BadInput, DecodedPut, DecodedPuts, Item
from paperwasp.client.sources.rows import BYTES, DATES, DURATIONS, TIMES, TIMES_OF_DAY, PlainColumns, RowMapping
from paperwasp.client.sources.values import TIME_UNITS, WHOLE_TYPES, is_like_whole, made_whole
from paperwasp.document.ids import DocumentId
from paperwasp.errors import InvalidInput

# Arrow columns as values for JSON: vectors stay arrays of NumPy, times become numbers, bytes become base64.
#
# None stands where there is no value. Lists of numbers, which may be vectors, must have all their elements; from other
# lists, those without a value are left out.


_JSON: Final = "arrow.json"
"""Arrow's name of texts that are JSON."""
_DAY_SECONDS: Final = 86_400


class BadValue(ValueError):
    """A value that no field can have; `row` counts from 0 in its batch."""

    def __init__(self, row: int, message: str) -> None:
        super().__init__(message)
        self.row = row


def column_values(column: Any, time_unit: str = "s") -> Sequence[Any]:
    """The values of an Arrow array, one a row. Errors: BadValue; NotImplementedError for a type that JSON has not."""
    kind = column.type
    for is_kind, values in _KINDS:
        if is_kind(kind):
            return values(column, time_unit)
    raise NotImplementedError(f"there is no JSON for {kind}")


def meaning_of(kind: Any) -> str:
    """Name the meaning of values that `column_values` makes plain numbers or texts of; empty: they have no other."""
    if is_type.is_dictionary(kind):
        return meaning_of(kind.value_type)
    return next((meaning for is_kind, meaning in _MEANINGS if is_kind(kind)), "")


def _plain(column: Any, _unit: str) -> Sequence[Any]:
    return list(column.to_pylist())


def _floats(column: Any, _unit: str) -> Sequence[Any]:
    """Floats with no more digits than their type has; what is not finite by its name, as services take it."""
    single = column.type != pa.float64()
    numbers = column.to_numpy(zero_copy_only=False)
    numbers = numbers.astype(np.float32) if single else numbers
    if column.null_count == 0 and np.isfinite(numbers).all():
        return list(numbers)
    missing = column.is_null().to_pylist()
    return [None if gone else _float(number) for number, gone in zip(numbers, missing, strict=True)]


def _float(number: Any) -> Any:
    if np.isfinite(number):
        return number
    return "NaN" if np.isnan(number) else "Infinity" if number > 0 else "-Infinity"


def _decimals(column: Any, _unit: str) -> Sequence[Any]:
    """With all their digits."""
    return [None if value is None else str(value) for value in column.to_pylist()]


def _bytes(column: Any, _unit: str) -> Sequence[Any]:
    return [None if value is None else b64encode(value).decode() for value in column.to_pylist()]


def _decoded(column: Any, unit: str) -> Sequence[Any]:
    if column.type.value_type == pa.string_view():  # Arrow cannot decode these: categories of polars
        column = pa.DictionaryArray.from_arrays(column.indices, column.dictionary.cast(pa.large_string()))
    return column_values(column.dictionary_decode(), unit)


def _extension(column: Any, unit: str) -> Sequence[Any]:
    if column.type.extension_name == _JSON:
        return [_json(row, text) for row, text in enumerate(column.storage.to_pylist())]
    return column_values(column.storage, unit)


def _json(row: int, text: str | None) -> Any:
    """A text that is JSON, as it stands there."""
    if text is None:
        return None
    try:
        return None if orjson.loads(text) is None else orjson.Fragment(text)
    except orjson.JSONDecodeError as error:
        raise BadValue(row, f"no JSON: {error.msg}") from None


def _moments(column: Any, unit: str) -> Sequence[Any]:
    """Timestamps and durations in `unit` since 1970, rounded down."""
    return _in_units(column.cast(pa.int64()), TIME_UNITS[column.type.unit], unit)


def _times(column: Any, unit: str) -> Sequence[Any]:
    whole = column.cast(pa.int32() if column.type.bit_width == 32 else pa.int64())
    return _in_units(whole, TIME_UNITS[column.type.unit], unit)


def _days(column: Any, unit: str) -> Sequence[Any]:
    if is_type.is_date64(column.type):
        return _in_units(column.cast(pa.int64()), TIME_UNITS["ms"], unit)
    factor = _DAY_SECONDS * TIME_UNITS[unit]
    return [None if value is None else value * factor for value in column.cast(pa.int32()).to_pylist()]


def _in_units(column: Any, has: int, unit: str) -> Sequence[Any]:
    wanted = TIME_UNITS[unit]
    return [None if value is None else value * wanted // has for value in column.to_pylist()]


def _lists(column: Any, unit: str) -> Sequence[Any]:
    """Lists of any length; those of numbers are slices of one array."""
    if is_type.is_fixed_size_list(column.type):
        size = column.type.list_size
        offsets = (np.arange(len(column) + 1, dtype=np.int64) + column.offset) * size
    else:
        offsets = column.offsets.to_numpy().astype(np.int64)
    first = int(offsets[0]) if len(offsets) else 0
    elements = column.values.slice(first, (int(offsets[-1]) - first) if len(offsets) else 0)
    starts, ends = (offsets[:-1] - first).tolist(), (offsets[1:] - first).tolist()
    there = column.is_valid().to_pylist()
    numbers = _numbers(elements)
    if numbers is not None:
        return [numbers[a:b] if is_there else None for a, b, is_there in zip(starts, ends, there, strict=True)]
    values = column_values(elements, unit)
    lists = []
    for row, (start, end, is_there) in enumerate(zip(starts, ends, there, strict=True)):
        part = [value for value in values[start:end] if value is not None] if is_there else None
        if part is not None and len(part) < end - start and _is_number(elements.type):
            raise BadValue(row, f"a list of {end - start} numbers of which {end - start - len(part)} are missing")
        lists.append(part)
    return lists


def _numbers(elements: Any) -> Any:
    """The elements as one array of finite numbers, if they are that."""
    if not _is_number(elements.type) or elements.null_count:
        return None
    numbers = elements.to_numpy(zero_copy_only=False)
    if is_type.is_floating(elements.type):
        if not np.isfinite(numbers).all():
            return None
        if is_type.is_float16(elements.type):
            numbers = numbers.astype(np.float32)
    return np.ascontiguousarray(numbers)


def _is_number(kind: Any) -> bool:
    return bool(is_type.is_integer(kind) or is_type.is_floating(kind))


def _structs(column: Any, unit: str) -> Sequence[Any]:
    names = [field.name for field in column.type]
    members = [column_values(member, unit) for member in column.flatten()]
    rows = zip(*members, strict=True) if members else (() for _ in range(len(column)))
    there = column.is_valid().to_pylist()
    return [
        {name: value for name, value in zip(names, row, strict=True) if value is not None} if is_there else None
        for row, is_there in zip(rows, there, strict=True)
    ]


def _maps(column: Any, unit: str) -> Sequence[Any]:
    offsets = column.offsets.to_pylist()
    first = offsets[0] if offsets else 0
    count = (offsets[-1] - first) if offsets else 0
    keys = column_values(column.keys.slice(first, count), unit)
    values = column_values(column.items.slice(first, count), unit)
    there = column.is_valid().to_pylist()
    pairs = list(zip(keys, values, strict=True))
    return [
        {key: value for key, value in pairs[offsets[row] - first : offsets[row + 1] - first] if value is not None}
        if is_there
        else None
        for row, is_there in enumerate(there)
    ]


def _is_text_or_whole(kind: Any) -> bool:
    plain = (is_type.is_boolean, is_type.is_integer, is_type.is_null)
    return _is_text(kind) or any(is_kind(kind) for is_kind in plain)


def _is_text(kind: Any) -> bool:
    return bool(is_type.is_string(kind) or is_type.is_large_string(kind) or is_type.is_string_view(kind))


def _is_bytes(kind: Any) -> bool:
    kinds = (is_type.is_binary, is_type.is_large_binary, is_type.is_fixed_size_binary, is_type.is_binary_view)
    return any(is_kind(kind) for is_kind in kinds)


def _is_extension(kind: Any) -> bool:
    return isinstance(kind, pa.BaseExtensionType)


def _is_list(kind: Any) -> bool:
    return bool(is_type.is_list(kind) or is_type.is_large_list(kind) or is_type.is_fixed_size_list(kind))


def _is_moment(kind: Any) -> bool:
    return bool(is_type.is_timestamp(kind) or is_type.is_duration(kind))


_MEANINGS: Final[tuple[tuple[Callable[[Any], bool], str], ...]] = (
    (is_type.is_timestamp, TIMES),
    (is_type.is_date, DATES),
    (is_type.is_time, TIMES_OF_DAY),
    (is_type.is_duration, DURATIONS),
    (_is_bytes, BYTES),
)
_KINDS: Final[tuple[tuple[Callable[[Any], bool], Callable[[Any, str], Sequence[Any]]], ...]] = (
    (_is_extension, _extension),
    (_is_text_or_whole, _plain),
    (is_type.is_floating, _floats),
    (_is_list, _lists),
    (is_type.is_dictionary, _decoded),
    (_is_moment, _moments),
    (is_type.is_date, _days),
    (is_type.is_time, _times),
    (is_type.is_decimal, _decimals),
    (_is_bytes, _bytes),
    (is_type.is_map, _maps),
    (is_type.is_struct, _structs),
)


# Puts of tables whose values are in JSON what they are here: fed in this process, they need not become JSON.
#
# Texts, whole numbers, truth values, doubles and lists of texts are that. Batches with other columns or with ids that
# are not plain go the general way, as operations with JSON. Imported where there is a table: it needs pyarrow.


_MOST_BYTES: Final = limits.JSON_PIECE_BYTES // 2
"""Of a row's texts: larger documents are read beside the event loop."""
_NUMBER_BYTES: Final = 8


def plain_puts(batch: Any, columns: PlainColumns) -> DecodedPuts | None:
    """The puts of a batch of rows; None: it goes the general way, which also says what is wrong. Errors: those of Arrow
    for columns that are damaged, UnicodeDecodeError."""
    arrays = [batch.column(place) for place in columns.places]
    if not all(_is_plain(array.type) for array in arrays) or sum(map(_largest_bytes, arrays)) > _MOST_BYTES:
        return None
    ids = _ids(column_values(batch.column(columns.id)), columns)
    has_doubles = any(is_type.is_float64(array.type) for array in arrays)
    if ids is None or (has_doubles and not _are_known(ids, columns)):
        return None
    rows = zip(*map(_plain_values, arrays, columns.types), strict=True) if arrays else (() for _ in ids)
    size_bytes = _size_bytes(arrays, columns.fields, len(ids))
    names = columns.fields
    if any(array.null_count for array in arrays):
        fields = [{name: value for name, value in zip(names, row, strict=True) if value is not None} for row in rows]
    else:
        fields = [dict(zip(names, row, strict=True)) for row in rows]
    puts = [DecodedPut(*put, size_bytes) for put in zip(ids, fields, strict=True)]
    return DecodedPuts(puts, frozenset([each.document_type for each in ids]))


def _is_plain(kind: Any) -> bool:
    if is_type.is_list(kind) or is_type.is_large_list(kind):
        return _is_plain_text(kind.value_type)
    if is_type.is_dictionary(kind):
        return _is_plain_text(kind.value_type)
    plain = (_is_plain_text, is_type.is_boolean, is_type.is_integer, is_type.is_float64, is_type.is_null)
    return not isinstance(kind, pa.BaseExtensionType) and any(is_kind(kind) for is_kind in plain)


def _is_plain_text(kind: Any) -> bool:
    return bool(is_type.is_string(kind) or is_type.is_large_string(kind))


def _are_known(ids: Sequence[DocumentId], columns: PlainColumns) -> bool:
    """Whether the types of all fields are known: doubles of whole numbers become what these are."""
    return None not in columns.types and {each.document_type for each in ids} <= {columns.document_type}


def _plain_values(array: Any, field_type: str | None) -> Sequence[Any]:
    values = column_values(array)
    if is_type.is_float64(array.type):  # what is not finite is its name already
        if field_type in WHOLE_TYPES:
            values = [made_whole(value, field_type) if is_like_whole(value) else value for value in values]
            return [float(value) if isinstance(value, float) else value for value in values]
        return [value if value is None or type(value) is str else float(value) for value in values]
    return values


def _largest_bytes(array: Any) -> int:
    """The most bytes in the text of one row."""
    if _is_plain_text(array.type):
        return pc.max(pc.binary_length(array)).as_py() or 0
    return int(array.nbytes) if is_type.is_nested(array.type) else _NUMBER_BYTES


def _size_bytes(arrays: Sequence[Any], names: Sequence[str], rows: int) -> int:
    """About the bytes of a row as JSON."""
    content = sum(int(array.nbytes) for array in arrays)
    return content // max(rows, 1) + sum(map(len, names)) + 6 * len(names)


def _ids(values: Sequence[Any], columns: PlainColumns) -> list[DocumentId] | None:
    """The ids of the rows; None where one is not plain."""
    try:
        return list(_each_id(map(_plain_text, values), columns))
    except InvalidInput:
        return None


def _plain_text(value: Any) -> str:
    """Errors: InvalidInput."""
    text = "" if value is None else str(value)
    if not (text and text.isascii() and text.isprintable()):
        raise InvalidInput("no plain id")
    return text


def _each_id(texts: Iterator[str], columns: PlainColumns) -> Iterator[DocumentId]:
    """Errors: InvalidInput."""
    namespace = document_type = start = ""
    for text in texts:
        if not text.startswith("id:"):
            if columns.document_type is None:
                raise InvalidInput("no document type")
            yield DocumentId(columns.namespace, columns.document_type, text)
        elif start and text.startswith(start) and len(text) > len(start):
            yield DocumentId(namespace, document_type, text[len(start) :])
        else:
            found = DocumentId.parse(text)
            if found.number is not None or found.group is not None:
                raise InvalidInput("no plain id")
            namespace, document_type = found.namespace, found.document_type
            start = f"id:{namespace}:{document_type}::"
            yield found


_BATCH_ROWS: Final = 256
_INDEX: Final = compile_later(r"__index_level_\d+__")
"""The name that pandas gives an index without one: the numbers of rows, which are not a field."""
_ARROW_FILE: Final = b"ARROW1"
_DAMAGES: Final = (pa.ArrowException, OSError, ValueError, OverflowError, MemoryError)
"""The errors of pyarrow for damaged files, also for sizes that they do not have."""

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
        puts = None if plain is None else _puts_of(batch, plain)
        if puts is not None and takes_decoded(puts.document_types):
            yield puts
        else:
            yield from _read_batch(name, batch, done, rows, time_unit)

    yield from _read_batches(name, _selected(_small(reader), names), read)


def _puts_of(batch: Any, columns: PlainColumns) -> DecodedPuts | None:
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
    """Read each batch by `read`, which takes the batch and the number of rows before it."""
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
        columns = [_column(batch, number, rows, time_unit) for number in range(batch.num_columns)]
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


def _column(batch: Any, number: int, rows: RowMapping, time_unit: str) -> Sequence[Any]:
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
