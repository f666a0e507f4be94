"""Answers of the search API in forms for other programs: JSON lines, CSV, and a plain table."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from typing import Any, Final

import orjson
from rich.table import Table
from rich.text import Text

from paperwasp.client.groups import is_root

FORMATS: Final = ("pretty", "json", "table", "jsonl", "csv")
_HEAD: Final = ("id", "relevance")

Hit = Mapping[str, Any]


def hits_of(answer: Mapping[str, Any]) -> list[Hit]:
    """The hits of an answer, without its groups."""
    return [child for child in answer.get("root", {}).get("children", ()) if not is_root(child)]


def write_lines(hits: Sequence[Hit]) -> str:
    """A line of JSON a hit, as it stands in the answer."""
    return "".join(orjson.dumps(hit).decode() + "\n" for hit in hits)


def write_csv(hits: Sequence[Hit]) -> str:
    """A row a hit: id, relevance, and a column a field. What is neither text nor number is JSON."""
    columns = _columns(hits)
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow((*_HEAD, *columns))
    for hit in hits:
        fields = hit.get("fields", {})
        writer.writerow((hit.get("id", ""), hit.get("relevance", ""), *(_cell(fields.get(name)) for name in columns)))
    return text.getvalue()


def plain_table(hits: Sequence[Hit]) -> Table:
    """A table with a column a field, with its values whole."""
    columns = _columns(hits)
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for name in (*_HEAD, *columns):
        table.add_column(name, overflow="fold")
    for hit in hits:
        fields = hit.get("fields", {})
        cells = (_cell(hit.get("id")), _cell(hit.get("relevance")), *(_cell(fields.get(name)) for name in columns))
        table.add_row(*map(Text, cells))
    return table


def _columns(hits: Sequence[Hit]) -> list[str]:
    """All fields that any hit has, in the order in which they are first seen."""
    return list(dict.fromkeys(name for hit in hits for name in hit.get("fields", {})))


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else orjson.dumps(value).decode()
