"""Writes documents as Parquet. Imported where somebody asks for it: it needs pyarrow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Final

import orjson
import pyarrow as pa
import pyarrow.parquet

from paperwasp.client.sources.rows import DOCUMENT_ID
from paperwasp.client.visit_tables import JSON, find_columns, read_documents

_TYPES: Final = {
    "bool": pa.bool_(),
    "int": pa.int64(),
    "float": pa.float64(),
    "text": pa.string(),
    "special": pa.string(),
    JSON: pa.json_(),
}
_NUMBERS: Final = {"float": pa.float32(), "double": pa.float64(), "bfloat16": pa.float32(), "int8": pa.int8()}
_BATCH_ROWS: Final = 1000


def write_parquet(lines: Path, output: Path) -> None:
    """Writes Parquet: numbers, texts, lists and vectors as such, all else as JSON."""
    with ParquetOutput(output, find_columns(lines)) as file:
        rows: list[tuple[str, dict[str, Any]]] = []
        for row in read_documents(lines):
            rows.append(row)
            if len(rows) == _BATCH_ROWS:
                file.write(rows)
                rows = []
        if rows:
            file.write(rows)


class ParquetOutput:
    """A file of rows, each batch of them a row group."""

    def __init__(self, path: Path, columns: Mapping[str, str]) -> None:
        """`columns`: field → shape."""
        self._columns = columns
        types = [(DOCUMENT_ID, pa.string()), *((name, _type_of(shape)) for name, shape in columns.items())]
        self._schema = pa.schema(types)
        self._writer = pa.parquet.ParquetWriter(path, self._schema)

    def write(self, rows: Sequence[tuple[str, Mapping[str, Any]]]) -> None:
        """Writes documents: ids and fields."""
        arrays = [pa.array([document_id for document_id, _ in rows], pa.string())]
        for name, shape in self._columns.items():
            arrays.append(_array([fields.get(name) for _, fields in rows], shape))
        self._writer.write_batch(pa.record_batch(arrays, schema=self._schema))

    def __enter__(self) -> ParquetOutput:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._writer.close()


def _type_of(shape: str) -> Any:
    kind, _, rest = shape.partition(":")
    if kind == "list":
        return pa.list_(_type_of(rest))
    if kind == "vector":
        numbers, _, size = rest.partition(":")
        return pa.list_(_NUMBERS[numbers], int(size))
    return _TYPES[kind]


def _array(values: list[Any], shape: str) -> Any:
    kind = shape.partition(":")[0]
    if kind == JSON:
        texts = [None if value is None else orjson.dumps(value).decode() for value in values]
        return pa.ExtensionArray.from_storage(pa.json_(), pa.array(texts, pa.string()))
    if kind == "float":
        values = [None if value is None else float(value) for value in values]
    elif kind == "vector":
        values = [None if value is None else value["values"] for value in values]
    elif shape == "list:float":
        values = [None if value is None else [float(each) for each in value] for value in values]
    return pa.array(values, _type_of(shape))
