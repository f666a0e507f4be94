"""Sources of a feed, as people have them in Python: operations, rows, frames, tables and files become operations.

Rows become documents by the same mapping as those of files (`client/sources`).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from typing import Any, Final, Protocol, runtime_checkable

from paperwasp.client.sources.operations import KINDS, BadInput, DecodedPuts, Item, Kind, SourceOperation
from paperwasp.client.sources.read import ReadOptions, read_file
from paperwasp.client.sources.rows import RowMapping, RowOptions
from paperwasp.client.sources.values import TypeOf
from paperwasp.document.ids import DocumentId
from paperwasp.embedded.frames import arrow_rows, table_fitting
from paperwasp.embedded.requests import to_json
from paperwasp.errors import InvalidInput


@runtime_checkable
class ArrowStream(Protocol):
    """A table in Arrow's form: a frame of pandas or polars, a table or batches of pyarrow, a relation of DuckDB."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object: ...


TakesDecoded = Callable[[Set[str]], bool]
Row = Mapping[str, Any]
_MEMBERS: Final[Mapping[Kind, frozenset[str]]] = {
    "put": frozenset(("put", "fields", "condition", "create")),
    "update": frozenset(("update", "fields", "condition", "create")),
    "remove": frozenset(("remove", "condition")),
}
Source = Iterable[Row | SourceOperation] | ArrowStream | str | os.PathLike[str]
"""Rows, what readers of files make of them, operations of Vespa's feed format, a table in Arrow's form, or the path of
a file."""


def fitted(source: Source, options: RowOptions, fields: Mapping[str, str] | None) -> Source:
    """The source; a table so that it fits a document type with these fields, name → type, before anything is fed. None:
    the ids say which types there are. Errors: InvalidInput for a column, or a row of it, that does not fit."""
    if isinstance(source, str | os.PathLike) or not isinstance(source, ArrowStream):
        return source
    table: Source = table_fitting().fit_table(source, options, fields)
    return table


def operations_of(
    source: Source, options: RowOptions, type_of: TypeOf, takes_decoded: TakesDecoded
) -> Iterator[SourceOperation | DecodedPuts]:
    """The operations of a source, in its order. `takes_decoded`: whether puts of such document types may come without
    their JSON. Errors: InvalidInput, when the place that is wrong is reached."""
    for item in _items(source, ReadOptions(rows=options, type_of=type_of), takes_decoded):
        if isinstance(item, BadInput):
            raise InvalidInput(item.message)
        yield item


def _items(source: Source, options: ReadOptions, takes_decoded: TakesDecoded) -> Iterator[Item | DecodedPuts]:
    if isinstance(source, str | os.PathLike):
        return read_file(os.fspath(source), options)
    if isinstance(source, ArrowStream):
        return _of_table(source, options, takes_decoded)
    if isinstance(source, Mapping | bytes) or not isinstance(source, Iterable):
        raise InvalidInput(
            f"A feed is a sequence of rows or operations, a frame, an Arrow table, or a file by its path; this is one "
            f"{type(source).__name__}{_advice(source)}"
        )
    return _of_rows(source, options.mapping(), options.rows)


def _advice(source: object) -> str:
    if isinstance(source, Mapping):
        return ": put a single row into a list"
    return ": collect() it first" if hasattr(source, "collect") else ""


def _of_table(source: ArrowStream, options: ReadOptions, takes_decoded: TakesDecoded) -> Iterator[Item | DecodedPuts]:
    time_unit = options.rows.time_unit
    yield from arrow_rows().read_table("the table", source, options.mapping(), time_unit, takes_decoded)


def _of_rows(source: Iterable[Row | SourceOperation], rows: RowMapping, options: RowOptions) -> Iterator[Item]:
    for number, row in enumerate(source, 1):
        place = f"row {number}"
        if isinstance(row, SourceOperation):
            yield row
            continue
        if not isinstance(row, Mapping):
            raise InvalidInput(f"{place}: a row is a mapping of columns to values; this is a {type(row).__name__}")
        yield _operation(row, place, options) or rows.operation(row, place)


def _operation(row: Row, place: str, options: RowOptions) -> SourceOperation | None:
    """The row as an operation with `fields`, named `put`, `update`, `remove` or `id`; None: its columns are fields."""
    for kind in KINDS:
        if kind in row and _is_operation(kind, row):
            return _with_members(kind, row[kind], row, place, options)
    if "id" in row and isinstance(row.get("fields"), Mapping) and options.id is None:
        return _with_members(options.operation, row["id"], row, place, options)
    return None


def _is_operation(kind: Kind, row: Row) -> bool:
    """Whether a row with such a member is that operation; else it is a document with a field of that name."""
    if kind != "remove" and not isinstance(row.get("fields"), Mapping):
        return False
    identity = row[kind]
    return (isinstance(identity, str) and identity.startswith("id:")) or _MEMBERS[kind].issuperset(row)


def _with_members(kind: Kind, identity: object, row: Row, place: str, options: RowOptions) -> SourceOperation:
    text = str(identity)
    if not text.startswith("id:"):
        if options.document_type is None:
            raise InvalidInput(f"{place}: '{text}' is not a whole document id: say which schema it is of")
        text = f"id:{options.namespace or options.document_type}:{options.document_type}::{text}"
    condition = None if row.get("condition") is None else str(row["condition"])
    try:
        document_id = DocumentId.parse(text)
        fields = None if kind == "remove" else to_json(row.get("fields", {}))
    except InvalidInput as error:
        raise InvalidInput(f"{place}: {error.message}") from None
    return SourceOperation(kind, document_id, fields, condition, bool(row.get("create")), place)
