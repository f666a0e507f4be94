"""Groups of an answer, the way a person wants to read them: a row a group, those within others below them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import orjson
from rich.table import Table
from rich.text import Text

_ROOT: Final = "group:root:"
_STEP: Final = "  "


Describe = Callable[[Mapping[str, Any]], Text]
"""One line about a hit."""


class _Row(NamedTuple):
    depth: int
    name: Text
    outputs: Mapping[str, Any]


def is_root(child: Mapping[str, Any]) -> bool:
    """Whether a child of an answer's root is the root group of a grouping statement."""
    return str(child.get("id", "")).startswith(_ROOT)


def groups_table(root: Mapping[str, Any], describe: Describe) -> Table:
    """The groups below a root group, one row each, with a column an output; and their hits."""
    rows = list(_rows(root, 0, describe))
    if outputs := root.get("fields"):
        rows.insert(0, _Row(0, Text("all"), outputs))
    names = list(dict.fromkeys(name for row in rows for name in row.outputs))
    table = Table(show_header=True, header_style="dim", box=None, padding=(0, 2, 0, 0))
    table.add_column("group")
    for name in names:
        table.add_column(name, justify="right", style="cyan", no_wrap=True)
    for row in rows:
        shown = [_text(row.outputs[name]) if name in row.outputs else "" for name in names]
        table.add_row(Text(_STEP * row.depth, no_wrap=True, overflow="ellipsis") + row.name, *map(Text, shown))
    return table


def _rows(group: Mapping[str, Any], depth: int, describe: Describe) -> Iterator[_Row]:
    """The lists of a group. A list is named where there are several, or where it has other pages."""
    lists = group.get("children", ())
    for each in lists:
        inner = depth
        if len(lists) > 1 or "continuation" in each:
            yield _Row(depth, Text(_list_name(each), "dim"), {})
            inner += 1
        for child in each.get("children", ()):
            if str(each["id"]).startswith("hitlist:"):
                yield _Row(inner, Text("• ") + describe(child), {})
            else:
                yield _Row(inner, Text(_group_name(child)), child.get("fields", {}))
                yield from _rows(child, inner + 1, describe)


def _list_name(each: Mapping[str, Any]) -> str:
    pages = [f"{name} {text}" for name, text in each.get("continuation", {}).items()]
    return f"{each['label']} ({', '.join(pages)})" if pages else str(each["label"])


def _group_name(group: Mapping[str, Any]) -> str:
    """The value that identifies a group, or its limits."""
    if "limits" in group:
        return f"{group['limits']['from']} … {group['limits']['to']}"
    return str(group.get("value", "null"))


def _text(value: object) -> str:
    if isinstance(value, float):
        return f"{value:g}" if value.is_integer() else f"{value:.6g}"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return orjson.dumps(value).decode()
    return str(value)
