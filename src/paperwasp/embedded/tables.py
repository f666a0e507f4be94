"""Tables and frames as they fit a schema, before anything of them is fed.

Frames have what documents have not: an index, categories, and whole numbers that became floats because one is missing.
Imported where there is a table: it needs pyarrow.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as is_type

from paperwasp.client.sources.rows import DEFAULT_IDS, RowOptions
from paperwasp.client.sources.values import EXACT, EXACT_SINGLE, WHOLE_TYPES
from paperwasp.errors import InvalidInput
from paperwasp.text.parsing.tokens import did_you_mean

_INDEX: Final = "__index_level_"
"""How Arrow names the levels of a frame's index that have no name."""

Fields = Mapping[str, str]
"""The type of each field by its name."""


def fit_table(source: Any, options: RowOptions, fields: Fields | None) -> Any:
    """The table, with an id, with columns that are fields, and of types that have JSON. None: the fields are not known,
    since the ids say the document types. Errors: InvalidInput with the column, and the row where it is one row's.

    A stream, which can be read only once, has its columns checked, and its rows are taken as they come.
    """
    try:
        reader = pa.RecordBatchReader.from_stream(source)
        table = reader.read_all() if hasattr(source, "shape") else None
    except (pa.ArrowException, OSError, ValueError) as error:
        raise InvalidInput(f"the table: {str(error).partition(chr(10))[0]}") from None
    names = _with_id(reader.schema.names, options)
    _check_columns([name for name in names if name], options, fields)
    if table is None:
        return reader
    columns = {
        name: _fitted(name, table.column(place), (fields or {}).get(options.fields.get(name, name), ""))
        for place, name in enumerate(names)
        if name
    }
    return pa.table(columns)


def _with_id(names: Sequence[str], options: RowOptions) -> list[str]:
    """The names of the columns; "" for those to leave out. An index without a name is the id where no column is, and
    else says only which row it is."""
    levels = [name for name in names if name.startswith(_INDEX)]
    is_needed = options.id is None and not any(name in names for name in DEFAULT_IDS)
    if is_needed and len(levels) == 1:
        return ["id" if name in levels else name for name in names]
    return ["" if name in levels else name for name in names]


def _check_columns(names: Collection[str], options: RowOptions, fields: Fields | None) -> None:
    there = f"the columns are {', '.join(names)}"
    if options.id is None and not any(name in names for name in DEFAULT_IDS):
        raise InvalidInput(f"the table: say with id= which column or text with columns makes the ids; {there}")
    if options.id is not None and "{" not in options.id and options.id not in names:
        raise InvalidInput(f"the table: id= names '{options.id}', and {there}")
    for name in options.fields:
        if name not in names:
            raise InvalidInput(f"the table: columns= names '{name}', and {there}")
    if fields is None or options.operation == "remove":
        return
    ids = {next((name for name in DEFAULT_IDS if name in names), None) if options.id is None else options.id}
    for name in names:
        named = options.fields.get(name, name)
        if named and named not in fields and (name not in ids or name in options.fields):
            known = ", ".join(fields)
            near = did_you_mean(named, fields).replace("?", "? Else ") or "; "
            raise InvalidInput(
                f"the table, column '{name}': there is no field '{named}', but {known}{near}"
                f"columns={{'{name}': ''}} leaves it out"
            )


def _fitted(name: str, column: Any, field_type: str) -> Any:
    chunks = [_plain(chunk) for chunk in column.chunks]
    if not chunks:
        return column
    plain = pa.chunked_array(chunks)
    has_fractions = is_type.is_floating(plain.type) or is_type.is_decimal(plain.type)
    return _whole(name, plain, field_type) if field_type in WHOLE_TYPES and has_fractions else plain


def _plain(array: Any) -> Any:
    """The same values in a form that more of Arrow's functions know."""
    kind = array.type
    if is_type.is_dictionary(kind):
        return pa.DictionaryArray.from_arrays(array.indices, _plain(array.dictionary)).dictionary_decode()
    if is_type.is_run_end_encoded(kind):
        return _plain(pc.run_end_decode(array))
    if is_type.is_string_view(kind):
        return array.cast(pa.large_string())
    if is_type.is_list_view(kind) or is_type.is_large_list_view(kind):
        return pa.array(array.to_pylist(), pa.large_list(kind.value_type))
    return array


def _whole(name: str, column: Any, field_type: str) -> Any:
    """Floats and decimals of a field of whole numbers. Errors: InvalidInput for one that is not whole, or too large;
    for a float that may have lost digits."""
    if is_type.is_floating(column.type):
        _check_digits(name, column)
    try:
        return column.cast(pa.int64())
    except pa.ArrowInvalid:
        values = column.to_pylist()
        for row, value in enumerate(values, 1):
            if value is not None and not (-(2**63) <= value < 2**63 and value == int(value)):
                raise InvalidInput(
                    f"the table, row {row}, column '{name}': {value} is no whole number, and the field is of type "
                    f"{field_type}"
                ) from None
        # Arrow refuses large floats and small decimals also where they are whole.
        return pa.array([None if value is None else int(value) for value in values], pa.int64())


def _check_digits(name: str, column: Any) -> None:
    """Errors: InvalidInput for a float so large that it may be another number than the one of which it was made."""
    exact = EXACT if is_type.is_float64(column.type) else EXACT_SINGLE
    largest = pc.min_max(column.cast(pa.float64()) if exact == EXACT_SINGLE else column)
    if not any(abs(bound) >= exact for bound in (largest["min"].as_py() or 0, largest["max"].as_py() or 0)):
        return
    for row, value in enumerate(column.to_pylist(), 1):
        if value is not None and exact <= abs(value) < 2**63:
            raise InvalidInput(
                f"the table, row {row}, column '{name}': {value} is a float so large that it may have lost digits; "
                "make the column one of whole numbers (in pandas: Int64)"
            )
