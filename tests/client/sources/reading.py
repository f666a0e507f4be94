"""Files of tests, read as the command reads them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson

from paperwasp.client.sources.operations import BadInput, Item, SourceOperation
from paperwasp.client.sources.read import ReadOptions, read_file
from paperwasp.client.sources.rows import RowOptions

BOOKS = RowOptions(document_type="book", namespace="shop", id="isbn")


def read_items(path: Path, options: ReadOptions | None = None) -> list[Item]:
    return list(read_file(str(path), options or ReadOptions()))


def read_content(
    folder: Path, name: str, content: bytes, rows: RowOptions | None = None, most_bytes: int | None = None
) -> list[Item]:
    """Writes a file and reads it."""
    path = folder / name
    path.write_bytes(content)
    options = ReadOptions(rows=rows or RowOptions())
    if most_bytes is not None:
        options = ReadOptions(rows=options.rows, most_bytes=most_bytes)
    return read_items(path, options)


def shown(items: list[Item], folder: Path) -> list[str]:
    """A line an item: the id, or what is wrong, with names of files without their folder."""
    return [item.id if isinstance(item, SourceOperation) else item.message.replace(f"{folder}/", "") for item in items]


def fields_of(items: list[Item]) -> list[dict[str, Any]]:
    """The fields of all items, of which none may be bad."""
    return [orjson.loads(operation.fields or b"{}") for operation in operations_of(items)]


def operations_of(items: list[Item]) -> list[SourceOperation]:
    assert not [item for item in items if isinstance(item, BadInput)], items
    return [item for item in items if isinstance(item, SourceOperation)]
