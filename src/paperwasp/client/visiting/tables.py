"""Makes tables of lines of documents: a column a field, and `documentid`. The lines are read twice and never held."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import orjson

from paperwasp.client.sources.rows import DOCUMENT_ID
from paperwasp.client.visiting.shapes import merge, shape_of
from paperwasp.errors import InvalidInput

_BATCH_ROWS: Final = 1000
_NEEDS_ARROW: Final = "Parquet needs pyarrow, which is not installed: pip install pyarrow"


def write_csv(lines: Path, output: Path) -> None:
    """Writes CSV, or TSV by the ending: texts as they are, all else as JSON, and texts that are JSON too in quotes.

    `paperwasp feed --field-type '*=auto'` reads it again.
    """
    columns = list(find_columns(lines))
    delimiter = "\t" if output.suffix.lower() == ".tsv" else ","
    with output.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, delimiter=delimiter, lineterminator="\n")
        writer.writerow((DOCUMENT_ID, *columns))
        for document_id, fields in _documents(lines):
            writer.writerow((document_id, *(_cell(fields.get(column)) for column in columns)))


def write_parquet(lines: Path, output: Path) -> None:
    """Writes Parquet: numbers, texts, lists and vectors as such, all else as JSON. Errors: InvalidInput without
    pyarrow."""
    from paperwasp.client.visiting.parquet import ParquetOutput

    with ParquetOutput(output, find_columns(lines)) as file:
        rows: list[tuple[str, dict[str, Any]]] = []
        for row in _documents(lines):
            rows.append(row)
            if len(rows) == _BATCH_ROWS:
                file.write(rows)
                rows = []
        if rows:
            file.write(rows)


def check_parquet() -> None:
    """Errors: InvalidInput where Parquet cannot be written, before anything is visited."""
    try:
        _import_parquet()
    except ModuleNotFoundError:
        raise InvalidInput(_NEEDS_ARROW) from None


def _import_parquet() -> None:
    import paperwasp.client.visiting.parquet  # noqa: F401


def find_columns(lines: Path) -> dict[str, str]:
    """Field → the shape that all its values have, in the order in which fields are first seen."""
    shapes: dict[str, str] = {}
    for _, fields in _documents(lines):
        for name, value in fields.items():
            if value is not None:
                shapes[name] = merge(shapes.get(name), shape_of(value))
    if DOCUMENT_ID in shapes:
        raise InvalidInput(f"A field is named '{DOCUMENT_ID}', as the column of ids: write JSON lines instead")
    return shapes


def _documents(lines: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    with lines.open("rb") as file:
        for line in file:
            content = orjson.loads(line)
            if "put" in content:
                yield content["put"], content.get("fields") or {}


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, str) and not _is_json(value):
        return value
    return orjson.dumps(value).decode()


def _is_json(text: str) -> bool:
    """Whether a reader could take the text for a value that is no text."""
    if not text:
        return True
    try:
        orjson.loads(text)
    except orjson.JSONDecodeError:
        return False
    return True
