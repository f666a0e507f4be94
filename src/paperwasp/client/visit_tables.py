"""Tables of the documents of a visit: a column a field, and `documentid`, as CSV or Parquet. The lines are read twice
and never held.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import orjson

from paperwasp.base.patterns import compile_later
from paperwasp.client.sources.rows import DOCUMENT_ID
from paperwasp.errors import InvalidInput

# What the values of a field have in common, for a column of a table.


NON_FINITE: Final = frozenset(("NaN", "Infinity", "-Infinity"))
"""How services write numbers that JSON has not."""
SPECIAL: Final = "special"
"""The shape of such a value: a number among numbers, a text among texts."""
JSON: Final = "json"
"""The shape of everything that no other is of: it is written as JSON."""
_VECTOR: Final = compile_later(r"tensor(?:<(float|double|bfloat16|int8)>)?\([A-Za-z_]\w*\[(\d+)\]\)")
_WHOLE: Final = range(-(2**63), 2**63)
_NUMBERS: Final = ("float", "int", SPECIAL)


def shape_of(value: Any) -> str:
    """The shape of a value: `bool`, `int`, `float`, `text`, `list:` and the shape of the elements, `vector:` and the
    type and size of its numbers, or JSON."""
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int):
        return "int" if value in _WHOLE else JSON
    if isinstance(value, float):
        return "float"
    if isinstance(value, str):
        return SPECIAL if value in NON_FINITE else "text"
    if isinstance(value, list):
        return _list_shape(value)
    return _vector_shape(value) if isinstance(value, dict) else JSON


def merge(one: str | None, other: str) -> str:
    """The shape that values of both have."""
    if one is None or one == other:
        return other
    pair = {one, other}
    if pair <= set(_NUMBERS):
        return "float"
    if pair == {SPECIAL, "text"}:
        return "text"
    if one.startswith("list:") and other.startswith("list:"):
        inner = merge(one.removeprefix("list:"), other.removeprefix("list:"))
        return JSON if inner == JSON else f"list:{inner}"
    return JSON


def _list_shape(values: list[Any]) -> str:
    shape: str | None = None
    for value in values:
        shape = merge(shape, JSON if isinstance(value, list | dict) else shape_of(value))
        if shape == JSON:
            return JSON
    return f"list:{shape or 'text'}"


def _vector_shape(value: dict[str, Any]) -> str:
    match = _VECTOR.fullmatch(str(value.get("type", "")))
    numbers = value.get("values")
    if match is None or value.keys() != {"type", "values"} or not isinstance(numbers, list):
        return JSON
    if not all(isinstance(number, int | float) for number in numbers) or len(numbers) != int(match[2]):
        return JSON
    return f"vector:{match[1] or 'double'}:{match[2]}"


def write_csv(lines: Path, output: Path) -> None:
    """Writes CSV, or TSV by the ending: texts as they are, all else as JSON, and texts that are JSON too in quotes.

    `paperwasp feed --field-type '*=auto'` reads it again.
    """
    columns = list(find_columns(lines))
    delimiter = "\t" if output.suffix.lower() == ".tsv" else ","
    with output.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, delimiter=delimiter, lineterminator="\n")
        writer.writerow((DOCUMENT_ID, *columns))
        for document_id, fields in read_documents(lines):
            writer.writerow((document_id, *(_cell(fields.get(column)) for column in columns)))


def find_columns(lines: Path) -> dict[str, str]:
    """Field → the shape that all its values have, in the order in which fields are first seen."""
    shapes: dict[str, str] = {}
    for _, fields in read_documents(lines):
        for name, value in fields.items():
            if value is not None:
                shapes[name] = merge(shapes.get(name), shape_of(value))
    if DOCUMENT_ID in shapes:
        raise InvalidInput(f"A field is named '{DOCUMENT_ID}', as the column of ids: write JSON lines instead")
    return shapes


def read_documents(lines: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """The id and the fields of each document."""
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
