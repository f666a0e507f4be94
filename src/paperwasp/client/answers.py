"""Answers of the search API for people and for other programs: groups, explanations, tables, JSON lines, CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import orjson
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

# Groups, a row each, those within others below them.


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


# Shows why a hit ranks where it does: the `explanation` of a search answer as a tree for reading.


Json = Mapping[str, Any]


def explanation_tree(number: int, hit: Json) -> Tree:
    """One branch a phase, and below it the expression: each node's value before what it is the value of."""
    tree = Tree(Text(f"#{number} {hit['id']}", "bold"), guide_style="dim")
    explanation = hit.get("explanation", {})
    if note := explanation.get("note"):
        tree.add(Text(note, "dim"))
    for phase in explanation.get("phases", ()):
        branch = tree.add(_with_value(phase["score"], Text(phase["phase"], "bold")))
        if note := phase.get("note"):
            branch.add(Text(note, "dim"))
        if "tree" in phase:
            _add(branch, phase["tree"])
    return tree


def _add(branch: Tree, node: Json) -> None:
    branch = branch.add(_line(node))
    for child in node.get("children", ()):
        _add(branch, child)
    if cut := node.get("cut"):
        branch.add(Text(f"… {cut}", "dim"))


def _line(node: Json) -> Text:
    text = Text(node["expression"])
    if "feature" in node:
        text.append(f" = {node['feature']}", "dim")
    if "shown" in node:
        text.append(" (shown above)", "dim")
    if node.get("taken") is False:
        return Text("not taken: ", "dim") + Text(node["expression"], "dim")
    return _with_value(node.get("value"), text)


def _with_value(value: object, text: Text) -> Text:
    shown = f"{value:.6g}" if isinstance(value, float) else str(value)
    return Text(f"{shown}  ", "cyan") + text


# Answers of the search API in forms for other programs: JSON lines, CSV, and a plain table.


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
